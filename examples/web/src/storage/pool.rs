//! Connections to the database, for statements of any child.
//!
//! A statement runs on a blocking thread that belongs to the child `database`. So that child has ended only
//! when its last statement has, and the next incarnation never runs beside one.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use verger::Context;

/// How many statements run at once.
const CONNECTIONS: usize = 4;
/// How long a statement waits for a lock of a different process, and then for a connection at most.
pub(crate) const BUSY: Duration = Duration::from_secs(2);

/// Why a statement has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// The database isn't usable now. It may be later.
    #[error("the database is busy: {0}")]
    Busy(String),
    #[error("the database has failed")]
    Failed(#[from] rusqlite::Error),
}

/// Cheap to clone. Clones are useless after [`close`](Self::close).
#[derive(Clone)]
pub(crate) struct Pool {
    /// That of the child `database`.
    ctx: Context,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    /// Opens all connections. Blocks.
    ///
    /// None is opened later: after the file was deleted, that would be a different database.
    pub(crate) fn open(ctx: Context, path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            Ok(connection)
        };
        let idle = (0..CONNECTIONS).map(|_| open()).collect::<rusqlite::Result<Vec<_>>>()?;
        let (permits, idle) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Mutex::new(idle)));
        Ok(Self { ctx, permits, idle })
    }

    /// Calls a function with a connection, on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        statement: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, PoolError> {
        let permit = timeout(BUSY, Arc::clone(&self.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(PoolError::Busy("no connection is free".into()));
        };
        let idle = Arc::clone(&self.idle);
        let ran = self.ctx.spawn_blocking(move || {
            // Held here, because the caller may stop waiting before the statement ends.
            let _permit = permit;
            let taken = lock(&idle).pop();
            let mut connection = taken.expect("one connection for each permit");
            let result = statement(&mut connection);
            lock(&idle).push(connection);
            result
        });
        match ran.await {
            Ok(result) => result.map_err(PoolError::from_statement),
            Err(ended) => Err(PoolError::Busy(ended.to_string())),
        }
    }

    /// Waits for the running statements, and closes all connections.
    ///
    /// The next incarnation must not open the file before: SQLite deletes the log beside a database by its name
    /// when the last connection is closed, and that name is also the one of the next log.
    pub(crate) async fn close(&self) {
        // It can only fail when it is closed already.
        let _all = self.permits.acquire_many(CONNECTIONS as u32).await;
        self.permits.close();
        let connections = std::mem::take(&mut *lock(&self.idle));
        // Not by `ctx`: its closures are dropped once the child is cancelled.
        let _ = spawn_blocking(move || drop(connections)).await;
    }
}

impl PoolError {
    fn from_statement(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy(error.to_string())
            }
            _ => Self::Failed(error),
        }
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
