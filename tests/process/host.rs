//! Whole programs and what their machine tells them, or wants to be told: memory and systemd.

#![cfg(all(target_os = "linux", feature = "signal"))]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs, process};

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use verger::app::memory::MemoryGuard;
use verger::{Application, Context, worker};

use crate::programs::{Program, app, log_to_stderr};

/// The directory that contains the files of the kernel, and the group to run in.
const ROOT: &str = "VERGER_TEST_ROOT";
const GROUP: &str = "VERGER_TEST_GROUP";
const MEBI: usize = 1 << 20;

// --- The programs --------------------------------------------------------------------------------

/// Stops because of its memory. `stubborn`, a child goes on after a SIGTERM until there is a SIGUSR1.
pub(crate) async fn memory(stubborn: bool) -> ExitCode {
    log_to_stderr();
    let child = worker("a", move |ctx: Context| async move {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        let mut go_on = signal(SignalKind::user_defined1()).unwrap();
        eprintln!("up");
        ctx.cancelled().await;
        eprintln!("stopping because of {}", ctx.stop_reason().unwrap());
        if stubborn {
            terminate.recv().await;
            // The same signal would count as its echo until then.
            sleep(Duration::from_millis(300)).await;
            eprintln!("had a signal");
            go_on.recv().await;
        }
    });
    let guard = MemoryGuard::new().root(env::var(ROOT).unwrap());
    let guard = guard.period(Duration::from_millis(20));
    Application::new(app().child(child.shutdown(Duration::from_secs(60)))).memory(guard).run().await
}

/// Uses more and more memory, in a group with a limit.
pub(crate) async fn leaking_memory() -> ExitCode {
    log_to_stderr();
    let group = PathBuf::from(env::var(GROUP).unwrap());
    fs::write(group.join("cgroup.procs"), process::id().to_string()).unwrap();
    let child = worker("a", async |ctx: Context| {
        let mut leak = Vec::new();
        while !ctx.is_cancelled() {
            leak.push(vec![1_u8; MEBI]);
            sleep(Duration::from_millis(5)).await;
        }
        eprintln!("stopped while it had {}", if leak.len() > 32 { "much" } else { "little" });
    });
    let guard = MemoryGuard::new().threshold(0.5).period(Duration::from_millis(20));
    Application::new(app().child(child)).memory(guard).run().await
}

/// Tells systemd about itself. Its child goes on at each SIGUSR1: is ready, and ends once it is cancelled.
#[cfg(feature = "systemd")]
pub(crate) async fn systemd() -> ExitCode {
    let child = worker("a", async |ctx: Context| {
        let mut go_on = signal(SignalKind::user_defined1()).unwrap();
        eprintln!("starting");
        go_on.recv().await;
        ctx.ready();
        ctx.cancelled().await;
        eprintln!("stopping");
        go_on.recv().await;
    });
    let child = child.readiness(verger::Readiness::Signal).shutdown(Duration::from_secs(15));
    Application::new(app().child(child)).systemd().run().await
}

// --- Memory --------------------------------------------------------------------------------------

fn command() -> Command {
    Command::new(env::current_exe().unwrap())
}

/// A directory of files like the kernel's: a group that uses half of its 100 MiB.
struct FakeKernel(PathBuf);

impl FakeKernel {
    fn new(name: &str) -> Self {
        let unique = format!("kernel-{name}-{}", process::id());
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("sys/fs/cgroup/app")).unwrap();
        let kernel = Self(root);
        kernel.write("proc/self/cgroup", "0::/app");
        kernel.write("sys/fs/cgroup/app/memory.max", 100 * MEBI);
        kernel.write("sys/fs/cgroup/app/memory.stat", format!("inactive_file {}", 10 * MEBI));
        kernel.uses(60);
        kernel
    }

    /// Sets how much memory is used, in MiB, with 10 of page cache.
    fn uses(&self, mebi: usize) {
        self.write("sys/fs/cgroup/app/memory.current", mebi * MEBI);
    }

    /// Replaces a file at once, as the kernel does.
    fn write(&self, file: &str, content: impl ToString) {
        let new = self.0.join("new");
        fs::write(&new, format!("{}\n", content.to_string())).unwrap();
        fs::rename(new, self.0.join(file)).unwrap();
    }

    fn start(&self, program: &str) -> Program {
        let mut command = command();
        command.env(ROOT, &self.0);
        let mut program = Program::start_by(command, program, 1);
        program.wait_for(&["up"]);
        program
    }
}

impl Drop for FakeKernel {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CAUSE: &str = "memory at 90 % of 100 MiB (cgroup v2)";

#[test]
fn seed4_42_a_program_whose_memory_is_nearly_used_up_stops_in_order() {
    let kernel = FakeKernel::new("full");
    let program = kernel.start("memory");
    kernel.uses(99);
    kernel.uses(100);
    let (code, printed) = program.end();
    assert_eq!(code, Some(4));
    let expected = [
        format!(" INFO verger::shutdown: stage begins cause={CAUSE:?} stage=\"polite\" length=20s"),
        format!(" INFO verger::shutdown: shutting down child=app cause={CAUSE:?}"),
        format!("stopping because of {CAUSE}"),
        " INFO verger::shutdown: stopped child=app".to_owned(),
        format!("Error: `app` was stopped: {CAUSE}"),
    ];
    assert_eq!(printed, expected);
}

#[test]
fn seed4_42_after_a_stop_because_of_the_memory_one_signal_is_ignored() {
    for (second, code) in [(None, 4), (Some("TERM"), 143), (Some("INT"), 130)] {
        let kernel = FakeKernel::new(&format!("{second:?}"));
        let mut program = kernel.start("stubborn memory");
        kernel.uses(100);
        program.wait_for(&[&format!("stopping because of {CAUSE}")]);
        program.signal("TERM");
        program.wait_for(&["had a signal"]);
        match second {
            // The stop went on, and is completed in order.
            None => program.signal("USR1"),
            Some(signal) => program.signal(signal),
        }
        assert_eq!(program.end().0, Some(code), "{second:?}");
    }
}

/// A group of the kernel's with a memory limit, below the group of the tests. It is removed on drop.
struct Group(PathBuf);

impl Group {
    /// Makes a group. Returns why that isn't possible, if it isn't.
    fn new(limit: usize) -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let memory = groups.lines().find_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|it| it == "memory").then_some(group)
        });
        let own = memory.ok_or("there is no memory controller of cgroup v1")?;
        let unique = format!("verger-test-{}", process::id());
        let path = PathBuf::from(format!("/sys/fs/cgroup/memory{own}")).join(unique);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Self(path);
        let file = group.0.join("memory.limit_in_bytes");
        fs::write(file, limit.to_string()).map_err(|error| error.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn seed4_42_a_program_that_leaks_stops_in_order_before_the_kernel_kills_it() {
    let group = match Group::new(128 * MEBI) {
        Ok(group) => group,
        Err(error) => {
            eprintln!("skipped, because no group with a memory limit can be made: {error}");
            return;
        }
    };
    let mut command = command();
    command.env(GROUP, &group.0);
    let (code, printed) = Program::start_by(command, "leaking memory", 1).end();
    let text = printed.join("\n");
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("shutting down child=app cause=\"memory at 5"), "{text}");
    assert!(text.contains(" % of 128 MiB (cgroup v1)\""), "{text}");
    assert!(text.contains("stopped while it had much"), "{text}");
    assert!(text.contains("stopped child=app\nError: `app` was stopped: memory at 5"), "{text}");
}

// --- systemd -------------------------------------------------------------------------------------

/// The socket that systemd would listen on.
#[cfg(feature = "systemd")]
pub(crate) struct Systemd(std::os::unix::net::UnixDatagram);

#[cfg(feature = "systemd")]
impl Systemd {
    /// Listens at an address of its own, which is returned.
    pub(crate) fn listen(test: &str) -> (Self, String) {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};

        let name = format!("verger-test-{test}-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (Self(socket), format!("@{name}"))
    }

    /// Receives datagrams until one contains this line. Returns all of them.
    pub(crate) fn until(&self, line: &str) -> Vec<String> {
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let length = self.0.recv(&mut buffer).unwrap_or_else(|error| {
                panic!("no {line} after {received:?}: {error}");
            });
            let text = std::str::from_utf8(&buffer[..length]).unwrap().to_owned();
            let found = text.lines().any(|it| it == line);
            received.push(text);
            if found {
                return received;
            }
        }
    }
}

#[cfg(feature = "systemd")]
#[test]
fn seed3_35_systemd_learns_of_the_start_of_the_stop_and_that_the_loops_turn() {
    const WATCHDOG: Duration = Duration::from_secs(2);

    let (systemd, address) = Systemd::listen("watchdog");
    let mut command = command();
    command.env("NOTIFY_SOCKET", address);
    command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string()).env_remove("WATCHDOG_PID");
    let mut program = Program::start_by(command, "systemd", 1);
    program.wait_for(&["starting"]);

    let mut starting = systemd.until("WATCHDOG=1");
    starting.extend(systemd.until("WATCHDOG=1"));
    let second = std::time::Instant::now();
    starting.extend(systemd.until("WATCHDOG=1"));
    assert!(second.elapsed() < WATCHDOG, "systemd would have killed it");
    assert!(!starting.iter().any(|it| it.contains("READY")), "{starting:?}");

    program.signal("USR1");
    let ready = systemd.until("READY=1");
    assert_eq!(ready.last().unwrap(), "READY=1\nSTATUS=started");

    program.signal("TERM");
    program.wait_for(&["stopping"]);
    let mut last = systemd.until("STOPPING=1");
    assert_eq!(
        last.pop().unwrap(),
        "STOPPING=1\nSTATUS=stopping because of SIGTERM: drain\nEXTEND_TIMEOUT_USEC=15000000"
    );
    // Loops turn also while it stops.
    last.extend(systemd.until("WATCHDOG=1"));
    program.signal("USR1");
    assert_eq!(program.end(), (Some(0), vec![]));
    systemd.0.set_nonblocking(true).unwrap();
    last.extend(std::iter::from_fn(|| {
        let mut buffer = [0; 4096];
        let length = systemd.0.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }));
    assert!(!last.iter().any(|it| it.contains("READY") || it.contains("STOPPING")), "{last:?}");
}
