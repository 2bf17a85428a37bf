//! A PostgreSQL server of Debian's package, as the child of a tree.
//!
//! ```text
//! server         one_for_one
//! └─ postgres    starts again 30 s after it was stopped from outside
//! ```
//!
//! The demo stops the server as a crash does, and it is the restart policy of this tree that starts it again.

use std::convert::Infallible;
use std::fs;
use std::future::pending;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use verger::{Application, Backoff, Context, Exit, ExitError, Readiness, Supervisor, worker_with};

use crate::error::{Failure, chain};
use crate::report::say;

/// Where Debian installs the server, below a directory for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The user of the package `postgresql`. The server refuses to run as root.
const UNPRIVILEGED: &str = "postgres";

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How long the server stays down.
    pub(crate) down: Duration,
    /// Where the connection string is written.
    pub(crate) url_file: PathBuf,
}

/// What all incarnations of the server share: program, data and port.
#[derive(Debug)]
struct Server {
    options: Options,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    url: String,
}

/// Serves a database until a signal arrives.
pub(crate) async fn serve(options: Options) -> Result<(), Failure> {
    let program = find()?;
    let environment = |error: io::Error| Failure::Environment(format!("no database: {error}"));
    let password = password().map_err(environment)?;
    let folder = folder(&password).map_err(environment)?;
    let (down, url_file) = (options.down, options.url_file.clone());
    let server = initialise(options, program, folder.path(), &password).await;
    let server = server.map_err(environment)?;
    let postgres = worker_with("postgres", Arc::new(server), postgres)
        .readiness(Readiness::Signal)
        .backoff(Backoff::constant(down))
        .shutdown(Duration::from_secs(20));
    // It is stopped on purpose, so there is no limit.
    let tree = Supervisor::builder("server").unlimited_restarts().child(postgres).build();
    let ended = Application::new(tree).run_to_end().await;
    // It may not be there yet.
    drop(fs::remove_file(url_file));
    ended.map_err(|error| Failure::Environment(chain(&error)))
}

/// Finds the newest version of the server.
fn find() -> Result<PathBuf, Failure> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let version = |it: &PathBuf| it.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|it| it.path()).max_by_key(version);
    let program = newest.map(|it| it.join("bin/postgres")).filter(|it| it.is_file());
    program.ok_or_else(|| {
        Failure::Environment(format!(
            "no PostgreSQL server in {DEBIAN}; install it with `apt-get install postgresql`, or set {} to the \
             connection string of a running one",
            crate::cli::URL
        ))
    })
}

/// Creates a directory that is deleted at the end, and gives it and the password in it to the server's user.
fn folder(password: &str) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("jobs-postgres-").tempdir()?;
    fs::write(folder.path().join("password"), password)?;
    if is_root()? {
        let mut chown = std::process::Command::new("chown");
        let owner = chown.args(["-R", UNPRIVILEGED]).arg(folder.path()).status()?;
        if !owner.success() {
            return Err(io::Error::other(format!("chown to the user {UNPRIVILEGED} has failed")));
        }
    }
    Ok(folder)
}

/// Creates the database and chooses a port.
async fn initialise(
    options: Options,
    program: PathBuf,
    folder: &Path,
    password: &str,
) -> io::Result<Server> {
    let folder = folder.to_owned();
    let mut initdb = unprivileged(&program.with_file_name("initdb"))?;
    initdb.arg("--pgdata").arg(folder.join("data"));
    initdb.arg(format!("--pwfile={}", folder.join("password").display()));
    // All connections are of this machine. Without optimisation, hashing the password would take the client long.
    initdb.args(["--username=jobs", "--auth=password", "--no-sync"]);
    let output = initdb.args(["--encoding=UTF8", "--locale=C"]).output().await?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let url = format!("postgres://jobs:{password}@127.0.0.1:{port}/postgres");
    Ok(Server { options, program, folder, port, url })
}

fn password() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_root() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

/// Returns a command that runs without the rights of root, and ends when this process is killed.
fn unprivileged(program: &Path) -> io::Result<Command> {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=INT");
    if is_root()? {
        command.arg(format!("--reuid={UNPRIVILEGED}")).arg(format!("--regid={UNPRIVILEGED}"));
        command.arg("--clear-groups");
    }
    // The working directory may be one that the user can't enter. Ctrl-C reaches this process only.
    command.arg("--").arg(program).current_dir("/").process_group(0);
    Ok(command)
}

/// Runs the server until it is stopped.
async fn postgres(ctx: Context, server: Arc<Server>) -> Exit {
    let (mut process, mut log) = server.start()?;
    let mut written = Vec::new();
    while let Some(line) = log.next_line().await? {
        if line.contains("database system is ready to accept connections") {
            written.clear();
            server.announce()?;
            ctx.ready();
            break;
        }
        written.push(line);
    }
    if !written.is_empty() {
        let error = format!("PostgreSQL has not started: {}", written.join("; "));
        // At the first start, the reason is one that a restart doesn't mend.
        return Err(match ctx.incarnation() {
            1 => ExitError::fatal(error),
            _ => error.into(),
        });
    }
    tokio::select! {
        never = drain(log) => match never {},
        ended = process.wait() => {
            let down = server.options.down;
            say!("PostgreSQL has ended ({}), and starts again in {down:?}", ended?);
            Err("PostgreSQL was stopped from outside".into())
        }
        () = ctx.cancelled() => {
            // A fast shutdown, which ends the sessions of clients.
            let id = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
            kill_process(id.ok_or("the process has ended")?, Signal::INT)?;
            process.wait().await?;
            Ok(())
        }
    }
}

/// Reads what the server writes, so that it never waits for a reader.
async fn drain(mut log: Lines<BufReader<ChildStderr>>) -> Infallible {
    while let Ok(Some(_)) = log.next_line().await {}
    pending().await
}

impl Server {
    fn start(&self) -> io::Result<(Child, Lines<BufReader<ChildStderr>>)> {
        let mut command = unprivileged(&self.program)?;
        command.arg("-D").arg(self.folder.join("data")).arg("-p").arg(self.port.to_string());
        let sockets = format!("unix_socket_directories={}", self.folder.display());
        for setting in ["listen_addresses=127.0.0.1", "shared_buffers=32MB", &sockets] {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn()?;
        let log = process.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((process, BufReader::new(log).lines()))
    }

    /// Writes the connection string to a file that only this user can read.
    fn announce(&self) -> io::Result<()> {
        let file = &self.options.url_file;
        // One that exists may have other permissions.
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut opened = options.write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(opened, "{}", self.url)?;
        say!(
            "PostgreSQL is ready on 127.0.0.1:{}, connection string in {}",
            self.port,
            file.display()
        );
        Ok(())
    }
}
