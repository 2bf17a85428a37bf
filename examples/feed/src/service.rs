//! One run of the service: opens its resources, runs the tree, and audits the result.
//!
//! Permanent errors, such as a missing file or a port in use, are found before the tree starts. The
//! tree handles failures that may pass.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::app::App;
use crate::audit::{self, Report};
use crate::chaos::Struck;
use crate::cli::Options;
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

pub(crate) async fn run(options: Options) -> Result<Outcome, Failure> {
    let file_len = file_len(&options.file)?;
    let (db, _temporary) = database(&options.db)?;
    let position = prepare(&db, &options.file, file_len)?;
    let listen = bind("--listen", options.listen).await?;
    let http = bind("--http", options.http).await?;
    say!("seed={}", options.seed);
    say!("listen={}", address(&listen)?);
    say!("http={}", address(&http)?);
    if position.n > 0 {
        say!("resume={position}");
    }
    let (app, mailboxes) = App::new(options, db, file_len, listen, http);
    let app = Arc::new(app);
    let ended = run::run(&app, mailboxes).await?;
    let struck = app.options.chaos.then(|| app.chaos.struck());
    let Ended { gave_up, tree, restarts, dead_letters } = ended;
    let gave_up = gave_up.or(app.ledger.senders().file_refused);
    let audit = tokio::task::spawn_blocking(move || audit::audit(&app)).await;
    let report = audit
        .map_err(|panic| panic.to_string())
        .and_then(|report| report.map_err(|error| error.to_string()));
    Ok(Outcome { gave_up, tree, struck, report, restarts, dead_letters })
}

/// Returns the length of the file, which must be seekable.
fn file_len(path: &Path) -> Result<u64, Failure> {
    let usage = |what: String| Failure::Usage(format!("--file {}: {what}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| usage(error.to_string()))?;
    if metadata.is_dir() {
        return Err(usage("it is a directory".into()));
    }
    if !metadata.is_file() {
        return Err(usage("it is not a regular file, so it can't be read again".into()));
    }
    fs::File::open(path).map_err(|error| format!("--file {}: {error}", path.display()))?;
    Ok(metadata.len())
}

/// Returns the path of the database, and the directory to delete if it is temporary.
fn database(given: &Option<PathBuf>) -> Result<(PathBuf, Option<TempDir>), Failure> {
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

/// Opens the database once, and checks that it works and may belong to this file.
fn prepare(db: &Path, file: &Path, file_len: u64) -> Result<Position, Failure> {
    let named = |error: rusqlite::Error| format!("--db {}: {error}", db.display());
    Store::open(db).map_err(named)?;
    let (position, _) = sqlite::resume(db).map_err(named)?;
    if position.offset > file_len {
        let (db, file, offset) = (db.display(), file.display(), position.offset);
        return Err(Failure::Usage(format!(
            "--db {db}: it holds {offset} bytes of a file, but {file} has only {file_len}"
        )));
    }
    Ok(position)
}

async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("{flag} {address}: {error}").into())
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    Ok(listener.local_addr().map_err(|error| error.to_string())?)
}
