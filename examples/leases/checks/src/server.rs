//! A server of a test's own: in a process that ends with the test, and in a directory that is removed with it.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

/// Runs the program, and kills it once the standard input is closed: also if this process is killed.
const KEEPER: &str =
    r#"log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!; read -r line; kill -KILL $!; wait"#;
/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    keeper: Child,
    /// Taken when this is dropped.
    open: Option<ChildStdin>,
    id: String,
}

impl Process {
    /// Starts a program that writes its log into this file.
    ///
    /// # Panics
    ///
    /// If it can't be started.
    #[must_use]
    pub fn start(program: &str, arguments: &[&str], log: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(log).arg(program).args(arguments);
        let mut keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (open, mut id) = (keeper.stdin.take(), String::new());
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut id).unwrap();
        Self { keeper, open, id: id.trim().to_owned() }
    }

    /// Sends a signal, such as `-STOP` and `-CONT`.
    ///
    /// # Panics
    ///
    /// If the process has ended.
    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.id]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.open.take());
        drop(self.keeper.wait());
    }
}

/// A temporary directory. It is removed when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty directory.
    ///
    /// # Panics
    ///
    /// If that can't be done.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("verger-lease-{}-{next}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Returns the path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns a port of this machine that is free now.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until a server accepts connections.
///
/// # Panics
///
/// If it doesn't, with its log.
pub fn wait_for_port(port: u16, log: &Path) {
    let (address, began) = (SocketAddr::from(([127, 0, 0, 1], port)), Instant::now());
    while TcpStream::connect(address).is_err() {
        let log = || fs::read_to_string(log).unwrap_or_default();
        assert!(began.elapsed() < START, "the server hasn't started:\n{}", log());
        thread::sleep(Duration::from_millis(20));
    }
}
