//! The statements of the queue: adding jobs, taking one, and the ledger.
//!
//! # Invariants
//!
//! 1. A job is locked from the moment at which a worker takes it until the worker has recorded its end. Both are one
//!    transaction, so a worker that dies, is paused or is cut off gives its job back, and has recorded nothing.
//! 2. `done_at` and the row of the ledger are written by one statement.
//! 3. Only the holder of the lease [`LEASE`] adds jobs: each transaction that does is fenced.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use verger::lease::FencingToken;
use verger_lease_postgres::fence;

use crate::database::{ANSWER, CHANNEL, Database};
use crate::error::DatabaseError;

/// The lease of the scheduler.
pub(crate) const LEASE: &str = "jobs-example/scheduler";

/// How many jobs are added at once.
pub(crate) const BATCH: i64 = 5;

/// The numbers continue after the last one. The fence makes this safe: no other scheduler adds jobs meanwhile, and
/// those of earlier ones are committed.
const ADD: &str = "INSERT INTO jobs_example.jobs (number, token) \
     SELECT (SELECT coalesce(max(number), 0) FROM jobs_example.jobs) + n, $1 FROM generate_series(1, $2) AS n \
     WHERE (SELECT is_open FROM jobs_example.schedule) RETURNING number";

const TAKE: &str = "SELECT number FROM jobs_example.jobs WHERE done_at IS NULL \
     ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED";

const FINISH: &str = "WITH done AS ( \
       UPDATE jobs_example.jobs SET done_at = clock_timestamp() WHERE number = $1 RETURNING number) \
     INSERT INTO jobs_example.ledger (job, worker) SELECT number, $2 FROM done";

const AUDIT: &str = "WITH runs AS (SELECT number, token, count(ledger.job) AS times \
       FROM jobs_example.jobs LEFT JOIN jobs_example.ledger ON job = number GROUP BY number), \
     ordered AS (SELECT *, max(token) OVER (ORDER BY number) AS newest FROM runs) \
     SELECT count(*), count(*) FILTER (WHERE times > 0), count(*) FILTER (WHERE times > 1), \
       count(*) FILTER (WHERE times = 0), count(*) FILTER (WHERE token < newest), count(DISTINCT token) FROM ordered";

/// What the tables prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Jobs that were added.
    pub(crate) jobs: i64,
    /// Jobs in the ledger.
    pub(crate) done: i64,
    /// Jobs that are more than once in the ledger.
    pub(crate) twice: i64,
    /// Jobs that aren't in the ledger.
    pub(crate) lost: i64,
    /// Jobs that were added with an older token than a job before them.
    pub(crate) stale: i64,
    /// How often a different scheduler has taken over, and the first one.
    pub(crate) schedulers: i64,
}

impl Audit {
    /// Returns whether each job ran to its end exactly once, and was added by the scheduler of its time.
    pub(crate) fn is_exact(self) -> bool {
        self.jobs > 0 && self.done == self.jobs && self.twice + self.lost + self.stale == 0
    }
}

impl std::fmt::Display for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { jobs, done, twice, lost, stale, schedulers } = self;
        write!(
            f,
            "jobs={jobs} done={done} twice={twice} lost={lost} stale={stale} schedulers={schedulers}"
        )
    }
}

/// Adds jobs and announces them, unless the schedule is closed.
///
/// # Errors
///
/// [`DatabaseError::is_stale`] if this process isn't the scheduler any more.
pub(crate) async fn add(
    database: &Database,
    client: &mut Client,
    token: FencingToken,
) -> Result<(), DatabaseError> {
    let failed = |error| database.failed(error);
    let adding = async {
        let transaction = client.transaction().await.map_err(failed)?;
        fence(&transaction, LEASE, token).await?;
        // A token is what PostgreSQL has counted, so it fits.
        let epoch = token.get().cast_signed();
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&epoch, Type::INT8), (&BATCH, Type::INT8)];
        let added = transaction.query_typed(ADD, &parameters).await.map_err(failed)?;
        if !added.is_empty() {
            // It arrives when the transaction is committed.
            transaction.batch_execute(&format!("NOTIFY {CHANNEL}")).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    };
    timeout(ANSWER, adding).await.unwrap_or_else(|_elapsed| Err(database.silent()))
}

/// Takes a job, runs it, and records its end. Returns `None` if no job waits.
///
/// # Errors
///
/// If the database doesn't answer. Then the job is given back, or its end is recorded already: whether a commit without
/// an answer has happened is known only to the database, and it has happened once or not at all.
pub(crate) async fn run_one(
    database: &Database,
    client: &mut Client,
    worker: &str,
) -> Result<Option<i64>, DatabaseError> {
    let transaction = database.answer(client.transaction()).await?;
    let Some(row) = database.answer(transaction.query_typed(TAKE, &[])).await?.pop() else {
        return Ok(None);
    };
    let number: i64 = row.get(0);
    work(number).await;
    let finishing = async {
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&number, Type::INT8), (&worker, Type::TEXT)];
        transaction.query_typed(FINISH, &parameters).await?;
        transaction.commit().await
    };
    database.answer(finishing).await?;
    Ok(Some(number))
}

/// Stands for the work of a job, which may take up to 40 ms. It has to be shorter than the time for which a
/// transaction may be idle.
async fn work(_number: i64) {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(10..=40))).await;
}

/// Compares jobs and ledger.
pub(crate) async fn audit(database: &Database, client: &Client) -> Result<Audit, DatabaseError> {
    let row = database.answer(client.query_one(AUDIT, &[])).await?;
    let [jobs, done, twice, lost, stale, schedulers] = [0, 1, 2, 3, 4, 5].map(|it| row.get(it));
    Ok(Audit { jobs, done, twice, lost, stale, schedulers })
}
