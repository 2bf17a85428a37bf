//! Another process, with a tree whose child needs the lease.
//!
//! The test binary runs itself, with an environment variable that holds the address of the server. The process writes
//! a line to its standard error when its child starts, and stops its tree at a line on its standard input.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use verger::lease::{Lease, LeaseEngine};
use verger::{Context, Exit, Supervisor, worker};

const SERVER: &str = "VERGER_TEST_SERVER";
const NAME: &str = "takeover";
/// The TTL of the lease for which takeovers are measured.
const TTL: Duration = Duration::from_secs(4);

/// How long no child ran.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    /// From `kill -9` of the holder to the start of the other child.
    pub after_kill: Duration,
    /// From the order to stop to the start of the other child.
    pub after_release: Duration,
}

/// A process. It is killed when this is dropped.
struct Peer {
    process: Child,
    requests: ChildStdin,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Peer {
    /// Starts a process, and waits until its child runs. Returns the token.
    fn start(server: &str) -> (Self, u64) {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "peer", "--nocapture"])
            .env(SERVER, server)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut peer = Self { process, requests, lines };
        let token = peer
            .lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("active ").map(|token| token.parse().unwrap()));
        (peer, token.expect("the process has ended"))
    }

    fn send(&mut self, request: &str) {
        writeln!(self.requests, "{request}").unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn lease(engine: impl LeaseEngine) -> Lease {
    Lease::new(NAME, engine)
        .ttl(TTL)
        .renew_deadline(Duration::from_secs(2))
        .retry(Duration::from_millis(400))
        .poll(Duration::from_millis(100))
}

/// The process of a [`measure_takeovers`]: call it in a test with the name `peer`. As an ordinary test, it returns at once.
///
/// # Panics
///
/// If the tree doesn't start.
pub async fn serve_peer<E: LeaseEngine>(connect: impl AsyncFnOnce(String) -> E) {
    let Ok(server) = env::var(SERVER) else { return };
    let child = worker("job", async |ctx: Context| -> Exit {
        eprintln!("active {}", ctx.fencing_token().unwrap());
        ctx.cancelled().await;
        Ok(())
    });
    let child = child.lease(lease(connect(server).await));
    let tree = Supervisor::builder("peer").child(child).build().unwrap().start().await.unwrap();
    // Blocks the thread of the test, and none of those on which the tree runs.
    stdin().lines().next();
    tree.stop("the test says so").await.unwrap();
}

/// Measures how long a child on standby takes to run after the process that holds the lease is killed, and after it
/// stops.
///
/// # Panics
///
/// If it doesn't take over, or with a token that isn't higher.
pub async fn measure_takeovers<E: LeaseEngine + Clone>(server: &str, engine: E) -> Takeover {
    let takeover = async |end: fn(&mut Peer)| {
        let (mut peer, token) = Peer::start(server);
        let (started, starts) = mpsc::channel();
        let child = worker("job", move |ctx: Context| {
            let started = started.clone();
            async move {
                let at = Instant::now();
                started.send((at, ctx.fencing_token().unwrap().get())).unwrap();
                ctx.cancelled().await;
                Exit::Ok(())
            }
        });
        let child = child.lease(lease(engine.clone()));
        let tree = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(starts.try_recv().is_err(), "two have the lease");
        let began = Instant::now();
        end(&mut peer);
        let (at, next) = starts.recv_timeout(3 * TTL).expect("no takeover");
        tree.stop("over").await.unwrap();
        assert!(next > token, "{next} after {token}");
        at - began
    };
    let after_kill = takeover(|peer| peer.process.kill().unwrap()).await;
    let after_release = takeover(|peer| peer.send("stop")).await;
    let takeover = Takeover { after_kill, after_release };
    println!("TTL {TTL:?}, poll 100ms: {takeover:?}");
    assert!(after_kill < 2 * TTL, "{takeover:?}");
    assert!(after_release < Duration::from_secs(1), "{takeover:?}");
    takeover
}
