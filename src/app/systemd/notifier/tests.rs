use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::time::sleep;

use super::*;

/// The end of the socket that systemd has.
struct Systemd {
    socket: UnixDatagram,
    address: OsString,
    path: Option<PathBuf>,
}

fn unique_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("verger-notify-{}-{number}", std::process::id())
}

impl Systemd {
    fn at_path() -> Self {
        let path = std::env::temp_dir().join(unique_name());
        let socket = UnixDatagram::bind(&path).unwrap();
        Self { socket, address: path.clone().into(), path: Some(path) }
    }

    fn abstract_socket() -> Self {
        let name = unique_name();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Self { socket, address: format!("@{name}").into(), path: None }
    }

    fn notifier(&self, watchdog_usec: Option<&str>) -> Notifier {
        let environment = Environment {
            socket: Some(self.address.clone()),
            watchdog_usec: watchdog_usec.map(OsString::from),
            ..Environment::default()
        };
        Notifier::new(&environment).unwrap()
    }

    /// Returns the datagrams that have arrived.
    fn received(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 4096];
        std::iter::from_fn(|| {
            let length = self.socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
        })
        .collect()
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn an_application_reports_itself_through_either_kind_of_socket() {
    for systemd in [Systemd::at_path(), Systemd::abstract_socket()] {
        let (notices, received) = mpsc::unbounded_channel();
        let running = tokio::spawn(systemd.notifier(None).run(received, || true));
        let send = |notice| notices.send(notice).unwrap();

        send(SystemdNotice::Status("1 of 2 active".to_owned()));
        send(SystemdNotice::Ready { status: "2 of 2 active".to_owned() });
        sleep(secs(31)).await;
        send(SystemdNotice::Stopping { status: "SIGTERM".to_owned(), within: secs(8) });
        sleep(secs(6)).await;
        send(SystemdNotice::Status("1 left".to_owned()));
        drop(notices);
        running.await.unwrap();

        assert_eq!(
            systemd.received(),
            [
                "STATUS=1 of 2 active",
                "READY=1\nSTATUS=2 of 2 active",
                "RESTART_RESET=1",
                "STOPPING=1\nSTATUS=SIGTERM\nEXTEND_TIMEOUT_USEC=13000000",
                "EXTEND_TIMEOUT_USEC=8000000",
                "STATUS=1 left",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_is_not_pinged_while_a_loop_is_stuck() {
    static TURNS: AtomicBool = AtomicBool::new(true);
    let systemd = Systemd::at_path();
    let (_notices, received) = mpsc::unbounded_channel();
    let notifier = systemd.notifier(Some("2000000"));
    let running = tokio::spawn(notifier.run(received, || TURNS.load(Ordering::Relaxed)));
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(systemd.received(), ["WATCHDOG=1"; 3]);
    TURNS.store(false, Ordering::Relaxed);
    sleep(secs(60)).await;
    assert_eq!(systemd.received(), [""; 0]);
    TURNS.store(true, Ordering::Relaxed);
    sleep(Duration::from_millis(250)).await;
    assert_eq!(systemd.received(), ["WATCHDOG=1"]);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_systemd_does_not_read_yet_is_sent_later_in_order() {
    let systemd = Systemd::at_path();
    let (notices, received) = mpsc::unbounded_channel();
    let running = tokio::spawn(systemd.notifier(None).run(received, || true));
    let sent: Vec<_> = (0..2000).map(|number| format!("STATUS={number}")).collect();
    for number in 0..2000 {
        notices.send(SystemdNotice::Status(number.to_string())).unwrap();
    }
    sleep(secs(1)).await;
    let mut arrived = systemd.received();
    assert!(arrived.len() < sent.len(), "the queue of the socket was never full");
    while arrived.len() < sent.len() {
        sleep(RETRY).await;
        let more = systemd.received();
        assert!(!more.is_empty(), "only {} arrived", arrived.len());
        arrived.extend(more);
    }
    assert_eq!(arrived, sent);
    drop(notices);
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_systemd_that_never_reads_or_is_gone_keeps_nothing_from_ending() {
    let systemd = Systemd::at_path();
    let (notices, received) = mpsc::unbounded_channel();
    let start = clock::now();
    for number in 0..2000 {
        notices.send(SystemdNotice::Status(number.to_string())).unwrap();
    }
    drop(notices);
    let notifier = systemd.notifier(None);
    notifier.run(received, || true).await;
    assert_eq!(clock::now() - start, secs(1));

    let (notices, received) = mpsc::unbounded_channel();
    let notifier = systemd.notifier(None);
    drop(systemd);
    notices.send(SystemdNotice::Reloading).unwrap();
    drop(notices);
    notifier.run(received, || true).await;
    assert_eq!(clock::now() - start, secs(1));
}

#[test]
fn without_an_address_that_can_be_used_there_is_no_notifier() {
    for address in [None, Some("vsock:2:9999"), Some("relative"), Some(""), Some("/a\0b")] {
        let socket = address.map(OsString::from);
        assert!(Notifier::new(&Environment { socket, ..Environment::default() }).is_none());
    }
}
