//! A NATS server of a test's own.

use std::process::Command;

use async_nats::Client;
use lease_checks::{Folder, Process, free_port, wait_for_port};
use verger_lease_nats::Nats;

/// Selects the program of the server. Default: `nats-server`.
const PROGRAM: &str = "VERGER_NATS_SERVER";
/// Where Debian installs its server.
const DEBIAN: &str = "/usr/sbin/nats-server";

/// A server with JetStream. It is stopped when this is dropped.
pub(crate) struct Server {
    process: Option<Process>,
    program: String,
    port: u16,
    folder: Folder,
}

impl Server {
    /// Starts a server, and creates the stream.
    pub(crate) async fn start() -> Self {
        let program = std::env::var(PROGRAM).unwrap_or_else(|_| "nats-server".to_owned());
        let server = Self::run(program);
        server.engine().await.create_stream(1).await.unwrap();
        server
    }

    /// Starts Debian's server if it is installed and older than 2.11.
    pub(crate) fn old() -> Option<Self> {
        let output = Command::new(DEBIAN).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_old = version.contains("v2.9.") || version.contains("v2.10.");
        if !is_old {
            println!("nothing was checked: `{DEBIAN}` is {version}");
        }
        is_old.then(|| Self::run(DEBIAN.to_owned()))
    }

    fn run(program: String) -> Self {
        let (port, folder) = (free_port(), Folder::new());
        let mut server = Self { process: None, program, port, folder };
        server.start_again();
        server
    }

    /// Kills the server as a crash does.
    pub(crate) fn crash(&mut self) {
        self.process = None;
    }

    /// Starts the server after a crash, with the same data and port.
    pub(crate) fn start_again(&mut self) {
        let (port, data) = (self.port.to_string(), self.folder.file("data"));
        let arguments = ["-a", "127.0.0.1", "-p", &port, "-js", "-sd", data.to_str().unwrap()];
        let log = self.folder.file("log");
        self.process = Some(Process::start(&self.program, &arguments, &log));
        wait_for_port(self.port, &log);
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.as_ref().unwrap().signal(signal);
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn client(&self) -> Client {
        async_nats::connect(self.url()).await.unwrap()
    }

    /// Returns a new engine with a connection of its own.
    pub(crate) async fn engine(&self) -> Nats {
        engine(&self.url()).await
    }
}

pub(crate) async fn engine(url: &str) -> Nats {
    Nats::new(async_nats::connect(url).await.unwrap())
}
