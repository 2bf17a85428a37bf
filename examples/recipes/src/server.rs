//! Servers of Debian's packages, on a free port of the loopback interface and with their data in a temporary directory.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, error, fmt, fs};

use anyhow::ensure;
use tempfile::TempDir;
use verger::process::{ReadyWhen, StopSignal};
use verger::{Backoff, ChildSpec, command};

/// The user of the package `postgresql`. That server refuses to run as root.
const UNPRIVILEGED: &str = "postgres";

/// The package of a server isn't installed.
#[derive(Debug)]
pub struct MissingServer {
    program: &'static str,
    package: &'static str,
}

impl fmt::Display for MissingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, package } = self;
        write!(f, "no `{program}` is installed; install it with `apt-get install {package}`")
    }
}

impl error::Error for MissingServer {}

/// A server that a recipe breaks. Its data are deleted when this is dropped.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    ready: ReadyWhen,
    stop: StopSignal,
    address: SocketAddr,
    /// Holds the data.
    _folder: TempDir,
}

impl Server {
    pub fn mosquitto() -> anyhow::Result<Self> {
        let (program, address) = (find("mosquitto", "mosquitto")?, free_address()?);
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("mosquitto.conf");
        fs::write(&file, format!("listener {} 127.0.0.1\nallow_anonymous true\n", address.port()))?;
        Ok(Self::new(program, address, folder, ["-c".to_owned(), file.display().to_string()]))
    }

    pub fn nats() -> anyhow::Result<Self> {
        let (program, address) = (find("nats-server", "nats-server")?, free_address()?);
        let arguments = format!("--addr 127.0.0.1 --port {}", address.port());
        Ok(Self::new(program, address, tempfile::tempdir()?, words(&arguments)))
    }

    /// Its data don't survive a kill.
    pub fn redis() -> anyhow::Result<Self> {
        let (program, address) = (find("redis-server", "redis-server")?, free_address()?);
        let folder = tempfile::tempdir()?;
        let mut arguments = words(&format!("--bind 127.0.0.1 --port {} --save", address.port()));
        arguments.extend([String::new(), "--dir".to_owned(), folder.path().display().to_string()]);
        Ok(Self::new(program, address, folder, arguments))
    }

    /// With the database `postgres`, and a user of that name that needs no password.
    pub fn postgres() -> anyhow::Result<Self> {
        let (program, address) = (find("postgres", "postgresql")?, free_address()?);
        let folder = tempfile::tempdir()?;
        if is_root()? {
            let owner = format!("{UNPRIVILEGED}:");
            let changed = Command::new("chown").arg(owner).arg(folder.path()).status()?;
            ensure!(changed.success(), "chown to the user {UNPRIVILEGED} has failed");
        }
        let path = folder.path().display().to_string();
        let mut initdb = contained(&program.with_file_name("initdb"), true);
        initdb.args(["--pgdata", &path, "--username=postgres", "--auth=trust", "--no-sync"]);
        let output = initdb.args(["--encoding=UTF8", "--locale=C"]).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "initdb has failed: {errors}");
        let settings = format!(
            "-D {path} -p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={path} -c fsync=off",
            address.port(),
        );
        let mut server = Self::new(program, address, folder, words(&settings));
        // It accepts connections earlier, and refuses queries.
        server.ready = ReadyWhen::line_contains("ready to accept connections");
        // A fast shutdown, which ends the sessions of clients.
        server.stop = StopSignal::Int;
        Ok(server)
    }

    fn new(
        program: PathBuf,
        address: SocketAddr,
        folder: TempDir,
        arguments: impl Into<Vec<String>>,
    ) -> Self {
        let (arguments, ready) = (arguments.into(), ReadyWhen::tcp(address));
        Self { program, arguments, ready, stop: StopSignal::Term, address, _folder: folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the child `server`, which runs the server. A killed one starts again after half a second.
    pub fn child(&self) -> ChildSpec {
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        let is_postgres = program.ends_with("postgres");
        let server = command("server", move || {
            let mut command = contained(&program, is_postgres);
            command.args(&arguments);
            command
        });
        let server = server.ready_when(self.ready.clone()).stop_signal(self.stop).into_child();
        server.backoff(Backoff::constant(Duration::from_millis(500)))
    }
}

/// Looks for a program where shells do, and where Debian has those that only root calls.
fn find(program: &'static str, package: &'static str) -> Result<PathBuf, MissingServer> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|it| it.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    // First the directory of PostgreSQL, because the file has `initdb` beside it.
    let folders = versions.chain(env::split_paths(&path)).chain([PathBuf::from("/usr/sbin")]);
    let mut files = folders.map(|it| it.join(program)).filter(|it| it.is_file());
    files.next().ok_or(MissingServer { program, package })
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn is_root() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

/// Returns a command that is killed with this process, however that ends.
fn contained(program: &Path, unprivileged: bool) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    if unprivileged && is_root().unwrap_or(false) {
        command.arg(format!("--reuid={UNPRIVILEGED}")).arg(format!("--regid={UNPRIVILEGED}"));
        command.arg("--clear-groups");
    }
    // The working directory may be one that the user can't enter.
    command.arg("--").arg(program).current_dir("/");
    command
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}
