//! A PostgreSQL server of a test's own, and PgBouncer in front of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use verger_lease_postgres::Postgres;

use crate::process::{Process, free_port, hand_over, unprivileged};
use crate::shared::folder::Folder;
use crate::shared::installed::{find, required};

pub(crate) const PASSWORD: &str = "hunter2";

/// A server with the database `postgres` and the user of that name. It is stopped when this is dropped.
pub(crate) struct Server {
    process: Option<Process>,
    postgres: PathBuf,
    pub(crate) port: u16,
    settings: Vec<String>,
    folder: Folder,
}

impl Server {
    /// Starts a server, or returns `None` if PostgreSQL isn't installed and needn't be.
    pub(crate) fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// Starts a server with these settings.
    pub(crate) fn with(settings: &[&str]) -> Option<Self> {
        let postgres = required(find("postgres", server_directories(), "postgresql"))?;
        let folder = Folder::new();
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        hand_over(folder.path());
        let mut initdb = unprivileged(postgres.with_file_name("initdb").to_str().unwrap());
        initdb.arg("--pgdata").arg(folder.path().join("data"));
        initdb.arg(format!("--pwfile={}", password.display()));
        // The password in plain text: without optimisation, hashing it takes the client longer than a test.
        initdb.args(["--username=postgres", "--auth=password", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C"]);
        let output = initdb.current_dir("/").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let settings = settings.iter().map(|it| (*it).to_owned()).collect();
        let mut server = Self { process: None, postgres, port: 0, settings, folder };
        server.start_again();
        Some(server)
    }

    /// Stops the server as a crash does: what isn't on the disk is lost.
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }

    /// Starts the server after a stop, with the same data and port.
    pub(crate) fn start_again(&mut self) {
        let mut attempts = 0;
        self.process = loop {
            let port = if self.port == 0 { free_port() } else { self.port };
            match self.run(port) {
                Ok(process) => {
                    self.port = port;
                    break Some(process);
                }
                // A different program has taken the port meanwhile.
                Err(error) if self.port == 0 && attempts < 3 && error.contains("TCP/IP") => {
                    attempts += 1;
                }
                Err(error) => panic!("{error}"),
            }
        };
    }

    /// Makes the server a read-only replica from its next start on, until it is promoted.
    pub(crate) fn become_replica(&self) {
        fs::write(self.folder.path().join("data/standby.signal"), "").unwrap();
        hand_over(self.folder.path());
    }

    fn run(&self, port: u16) -> Result<Process, String> {
        let folder = self.folder.path().display();
        let (data, port) = (format!("{folder}/data"), port.to_string());
        let sockets = format!("unix_socket_directories={folder}");
        let mut arguments = vec!["-D", &data, "-p", &port];
        let fixed = ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=32MB", &sockets];
        for setting in fixed.into_iter().chain(self.settings.iter().map(String::as_str)) {
            arguments.extend(["-c", setting]);
        }
        // An immediate shutdown, which doesn't wait for clients. A replica is ready for read-only connections.
        Process::start(&self.postgres, &arguments, "ready to accept ", "-QUIT")
    }

    /// Returns the connection string for a user and a database.
    pub(crate) fn url(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the connection string.
    pub(crate) fn own_url(&self) -> String {
        self.url("postgres", PASSWORD, "postgres")
    }

    /// Returns a new engine with a connection of its own.
    pub(crate) fn engine(&self) -> Postgres {
        engine(&self.own_url())
    }

    /// Returns a connection of a program.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.own_url()).await
    }

    /// Runs statements.
    pub(crate) async fn run_sql(&self, statements: &str) {
        self.client().await.batch_execute(statements).await.unwrap();
    }

    /// Sends a signal to the processes that serve engines, and returns how many these are.
    pub(crate) async fn signal_backends(&self, signal: &str) -> usize {
        let query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'verger'";
        let rows = self.client().await.query(query, &[]).await.unwrap();
        for row in &rows {
            kill(signal, row.get(0));
        }
        rows.len()
    }

    /// Sends a signal to the first process of the server.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.process_id());
    }

    /// Returns the ID of the first process of the server.
    pub(crate) fn process_id(&self) -> i32 {
        let file = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }
}

pub(crate) fn kill(signal: &str, process: i32) {
    let sent = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Returns an engine that waits for a busy machine.
pub(crate) fn engine(url: &str) -> Postgres {
    Postgres::new(url).unwrap().connect_timeout(Duration::from_secs(60))
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns where the server may be: the newest version of Debian's first.
fn server_directories() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = versions.map(|it| it.path()).collect();
    let number = |it: &PathBuf| it.file_name()?.to_str()?.parse::<u32>().ok();
    versions.sort_by_key(|it| std::cmp::Reverse(number(it)));
    versions.into_iter().map(|it| it.join("bin")).chain(path()).collect()
}

fn path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// PgBouncer in transaction mode.
pub(crate) struct Bouncer {
    _process: Process,
    pub(crate) port: u16,
    _folder: Folder,
}

impl Bouncer {
    /// The most connections to the server.
    pub(crate) const POOL: i64 = 3;

    /// Starts it in front of a server, or returns `None` if it isn't installed and needn't be.
    pub(crate) fn start(server: &Server) -> Option<Self> {
        let directories = ["/usr/sbin", "/usr/bin"].map(PathBuf::from).into_iter().chain(path());
        let bouncer = required(find("pgbouncer", directories.collect(), "pgbouncer"))?;
        let (folder, port) = (Folder::new(), free_port());
        let configuration = folder.path().join("pgbouncer.ini");
        let users = folder.path().join("users.txt");
        fs::write(&users, format!("\"postgres\" \"{PASSWORD}\"\n")).unwrap();
        let text = format!(
            "[databases]\n\
             * = host=127.0.0.1 port={}\n\
             [pgbouncer]\n\
             pool_mode = transaction\n\
             default_pool_size = {}\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = plain\n\
             auth_file = {}\n",
            server.port,
            Self::POOL,
            users.display(),
        );
        fs::write(&configuration, text).unwrap();
        hand_over(folder.path());
        let arguments = [configuration.to_str().unwrap()];
        let process =
            Process::start(Path::new(&bouncer), &arguments, "process up", "-KILL").unwrap();
        Some(Self { _process: process, port, _folder: folder })
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }
}
