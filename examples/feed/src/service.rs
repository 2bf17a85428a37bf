//! One run of the service: opens its resources, runs the tree, and audits the result.
//!
//! Permanent errors, such as a missing file or a port in use, are found before the tree starts. The
//! tree handles failures that may pass.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use tempfile::TempDir;
use tokio::net::TcpListener;
use verger::console::Console;
use verger::log_lines::LogLines;

use crate::acknowledged::Acknowledged;
use crate::app::{App, Resources};
use crate::audit::{self, Report};
use crate::chaos::Struck;
use crate::cli::Options;
use crate::config;
use crate::input::Input;
use crate::limits::{OTHER_FILES, REQUESTS};
use crate::report::say;
use crate::run::{self, Ended};
use crate::storage::batch::Position;
use crate::storage::sqlite::{self, Store};

/// Why the service did not run.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The flags contradict what exists, such as a database of a different file.
    Usage(String),
    /// A resource can't be opened.
    Environment(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Environment(message)
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Why not everything was stored, if that is so.
    pub(crate) gave_up: Option<String>,
    pub(crate) tree: String,
    pub(crate) struck: Option<Struck>,
    /// The result of the audit, or why there is none.
    pub(crate) report: Result<Report, String>,
    pub(crate) restarts: u64,
    pub(crate) dead_letters: u64,
}

/// `lines`: the last log lines, for the console.
pub(crate) async fn run(options: Options, lines: &LogLines) -> Result<Outcome, Failure> {
    // First, so that a signal during the start stops the service in order.
    let signals = verger::signals();
    let _claim = config::expect_signals(&options)?;
    check(&options).await?;
    let (db, _temporary) = database(&options.db)?;
    let (position, input) = prepare(&db, &options)?;
    let acknowledged = Acknowledged::open();
    let acknowledged = acknowledged.map_err(|error| format!("no temporary database: {error}"))?;
    let listen = bind("--listen", options.listen).await?;
    let http = bind("--http", options.http).await?;
    let probes = std::net::TcpListener::bind(options.probes);
    let probes = probes.map_err(|error| format!("--probes {}: {error}", options.probes))?;
    let console = options.console.map(std::net::TcpListener::bind).transpose();
    let console = console.map_err(|error| format!("--console: {error}"))?;
    say!("seed={}", options.seed);
    say!("listen={}", address(&listen)?);
    say!("http={}", address(&http)?);
    say!("probes={}", probes.local_addr().map_err(|error| error.to_string())?);
    // Its token is in the log.
    let console =
        console.map(|listener| (listener, Console::new().allow_actions(true).log_lines(lines)));
    if position.n > 0 {
        say!("resume={position}");
    }
    let app = App::new(options, Resources { db, input, listen, http, acknowledged });
    let app = Arc::new(app);
    let ended = run::run(&app, probes, console, signals).await?;
    let struck = app.options.chaos.then(|| app.chaos.struck());
    let Ended { gave_up, tree, restarts, dead_letters } = ended;
    let gave_up = gave_up.or(app.ledger.senders().file_refused);
    let audit = tokio::task::spawn_blocking(move || audit::audit(&app)).await;
    let report = audit
        .map_err(|panic| panic.to_string())
        .and_then(|report| report.map_err(|error| error.to_string()));
    Ok(Outcome { gave_up, tree, struck, report, restarts, dead_letters })
}

/// Checks what can be checked without opening the database, and starts nothing.
pub(crate) async fn check(options: &Options) -> Result<(), Failure> {
    check_open_files(options)?;
    check_file(&options.file)?;
    config::check(options).await
}

/// Checks that all connections together may be open, so that HTTP is served even then.
fn check_open_files(options: &Options) -> Result<(), Failure> {
    let needed = (options.connections + REQUESTS + options.clients + OTHER_FILES) as u64;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Err(Failure::Environment(format!(
            "--connections {}: {needed} files may be open at once, but the limit is {limit}; run \
             `ulimit -n {needed}` first, or ask for fewer connections",
            options.connections
        ))),
        _ => Ok(()),
    }
}

/// Checks that the file can be read again.
pub(crate) fn check_file(path: &Path) -> Result<(), Failure> {
    let usage = |what: String| Failure::Usage(format!("--file {}: {what}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| usage(error.to_string()))?;
    if metadata.is_dir() {
        return Err(usage("it is a directory".into()));
    }
    if !metadata.is_file() {
        return Err(usage("it is not a regular file, so it can't be read again".into()));
    }
    Ok(())
}

/// Returns the path of the database, and the directory to delete if it is temporary.
pub(crate) fn database(given: &Option<PathBuf>) -> Result<(PathBuf, Option<TempDir>), Failure> {
    match given {
        // An absolute path, so that it can't be a special name of SQLite, such as `:memory:`.
        Some(path) => match std::path::absolute(path) {
            Ok(path) => Ok((path, None)),
            Err(error) => Err(format!("--db {}: {error}", path.display()).into()),
        },
        None => {
            let dir = tempfile::Builder::new().prefix("feed-").tempdir();
            let dir = dir.map_err(|error| format!("no temporary database: {error}"))?;
            Ok((dir.path().join("feed.db"), Some(dir)))
        }
    }
}

/// Opens database and file once, and checks that they work and may belong together.
fn prepare(db: &Path, options: &Options) -> Result<(Position, Input), Failure> {
    let named = |error: rusqlite::Error| format!("--db {}: {error}", db.display());
    Store::open(db).map_err(named)?;
    let (position, last) = sqlite::resume(db).map_err(named)?;
    let input = Input::open(&options.file, options.follow, position, last.as_deref());
    let input = input.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => Failure::Usage(format!("--db {}: {error}", db.display())),
        _ => Failure::Environment(format!("--file {}: {error}", options.file.display())),
    })?;
    Ok((position, input))
}

async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("{flag} {address}: {error}").into())
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    Ok(listener.local_addr().map_err(|error| error.to_string())?)
}
