//! An etcd server of a test's own.

use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions};
use lease_checks::{Folder, Process, free_port, wait_for_port};
use verger_lease_etcd::Etcd;

/// A cluster of one member. It is stopped when this is dropped.
pub(crate) struct Server {
    process: Option<Process>,
    /// For clients, and for other members.
    ports: [u16; 2],
    folder: Folder,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let mut server =
            Self { process: None, ports: [free_port(), free_port()], folder: Folder::new() };
        server.start_again();
        // It accepts connections before it has a leader.
        let began = Instant::now();
        while server.client().await.get("any", None).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "the server has no leader");
        }
        server
    }

    /// Kills the server as a crash does.
    pub(crate) fn crash(&mut self) {
        self.process = None;
    }

    /// Starts the server after a crash, with the same data and ports.
    pub(crate) fn start_again(&mut self) {
        let [clients, members] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let (data, cluster) = (self.folder.file("data"), format!("default={members}"));
        let arguments = [
            "--data-dir",
            data.to_str().unwrap(),
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
            "--listen-peer-urls",
            &members,
            "--initial-advertise-peer-urls",
            &members,
            "--initial-cluster",
            &cluster,
        ];
        let log = self.folder.file("log");
        self.process = Some(Process::start("etcd", &arguments, &log));
        wait_for_port(self.ports[0], &log);
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.as_ref().unwrap().signal(signal);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url()).await
    }

    /// Returns a new engine with a connection of its own.
    pub(crate) async fn engine(&self) -> Etcd {
        engine(&self.url()).await
    }
}

async fn client(url: &str) -> Client {
    let seconds = Duration::from_secs;
    // More than one ping in five seconds, and the server closes the connection.
    let options = ConnectOptions::new().with_keep_alive(seconds(6), seconds(2));
    let options = options.with_connect_timeout(seconds(1));
    Client::connect([url], Some(options)).await.unwrap()
}

pub(crate) async fn engine(url: &str) -> Etcd {
    Etcd::new(client(url).await)
}
