//! The child that opens the database and provides the [`Pool`].
//!
//! | what happens to the database | what the service does |
//! | --- | --- |
//! | it can't be opened, or is locked, at the start | tries again with a backoff; isn't ready until then |
//! | another process locks it for longer than 2 s | answers 503, and isn't ready; restarts nothing |
//! | its file is deleted or replaced | this child fails within a second, and opens or creates the file anew |
//! | its file is no database | ends with exit code 1, because no restart mends that |

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;
use tokio::time::interval;
use verger::{Child, Context, Exit, ExitError, async_trait};

use super::notes;
use super::pool::Pool;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Database {
    path: PathBuf,
    pool: Option<Pool>,
    /// Device and inode of the file that is open.
    opened: Option<(u64, u64)>,
}

impl Database {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, pool: None, opened: None }
    }
}

#[async_trait]
impl Child for Database {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        let (path, of_pool) = (self.path.clone(), ctx.clone());
        let open = move || {
            let pool = Pool::open(of_pool, &path)?;
            Ok::<_, rusqlite::Error>((pool, identity(&path)))
        };
        let (pool, opened) = ctx.spawn_blocking(open).await?.map_err(exit_error)?;
        self.opened = opened;
        pool.run(|connection| notes::create_table(connection)).await?;
        ctx.provide(pool.clone())?;
        self.pool = Some(pool);
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let ended = self.watch_file(ctx).await;
        if let Some(pool) = self.pool.take() {
            pool.close().await;
        }
        ended
    }
}

impl Database {
    /// Looks at the file until the child is cancelled.
    async fn watch_file(&self, ctx: &Context) -> Exit {
        let mut looks = interval(LOOK);
        while ctx.run_until_cancelled(looks.tick()).await.is_some() {
            let path = self.path.clone();
            // SQLite would go on with the deleted file, and everything written to it would be lost.
            if ctx.spawn_blocking(move || identity(&path)).await? != self.opened {
                return Err(format!("{} was deleted or replaced", self.path.display()).into());
            }
        }
        Ok(())
    }
}

/// Fails while nothing can be written, as when another process has locked the database.
pub(crate) async fn is_writable(ctx: Context) -> Exit {
    let pool: Pool = ctx.service().await?;
    pool.run(|connection| connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")).await?;
    Ok(())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn exit_error(error: rusqlite::Error) -> ExitError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => ExitError::fatal(error),
        _ => error.into(),
    }
}
