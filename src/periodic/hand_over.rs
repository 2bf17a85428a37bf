//! A calendar whose child has a lease: the last planned time belongs to the job, and not to one process.
//!
//! The memo of the lease has the time up to which the plan is settled: the planned time of the last run that a process
//! has begun.
//!
//! # Invariants
//!
//! 1. The time of a run is stored before its function is called, so no holder of the lease begins it again.
//! 2. A holder continues after the stored time, so a run that became due while nobody had the lease is missed, and made
//!    up for as [`Missed`](super::Missed) says.
//! 3. A run begins only while the store confirms that its process has the lease.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::life::{Job, LazyLife, RunFunction};
use super::plan::RunPlan;
use super::record::JobRecord;
use super::run::RunContext;
use crate::child::Context;
use crate::child::task::ExitFuture;
use crate::exit::{Exit, ExitError, Outcome};
use crate::lease::{HeldLease, Memo, MemoWrite};
use crate::subscriber::warn;

/// How long after a request without an answer the next one follows.
const RETRY: Duration = Duration::from_secs(1);

/// What a memo of a calendar begins with, before the nanoseconds since 1970.
const KIND: &[u8; 8] = b"vrg-cron";

/// Returns the future of an incarnation, if the plan of its child is kept with its lease.
pub(super) fn life<F: RunFunction>(
    job: &Arc<Job<F>>,
    ctx: &Context,
    grace: Option<Duration>,
) -> Option<ExitFuture> {
    let RunPlan::Calendar(calendar) = &job.plan else { return None };
    calendar.missed_within?;
    let held = ctx.property::<HeldLease>()?;
    let (ctx, calendar, job) = (ctx.clone(), Arc::clone(calendar), Arc::clone(job));
    Some(Box::pin(async move {
        let now = job.runs.clock.read();
        let Some(settled) = ctx.run_until_cancelled(settled(&held, &ctx, now)).await else {
            return Ok(());
        };
        let record = ctx.property::<JobRecord>().unwrap_or_default();
        record.continue_after(&calendar, settled);
        let noted = Job {
            plan: RunPlan::Calendar(calendar),
            text: Arc::clone(&job.text),
            runs: job.runs.clone(),
            function: Noted { job, held },
        };
        LazyLife::New { job: Arc::new(noted), ctx: Some(ctx), grace }.await
    }))
}

/// Returns the time up to which the plan is settled. The first holder ever settles it up to now.
async fn settled(held: &HeldLease, ctx: &Context, now: SystemTime) -> SystemTime {
    loop {
        let problem = match held.memo().await.map(|memo| time_of(&memo)) {
            Ok(Some(settled)) => return settled,
            Ok(None) => match held.write_memo(&memo_of(now)).await {
                Ok(MemoWrite::Stored) => return now,
                // The child is about to be stopped.
                Ok(MemoWrite::NotHeld) => std::future::pending().await,
                Err(error) => error,
            },
            Err(error) => error,
        };
        log(held, ctx, problem.into());
        tokio::time::sleep(RETRY).await;
    }
}

/// The function of a job, whose runs are stored first.
struct Noted<F> {
    job: Arc<Job<F>>,
    held: Arc<HeldLease>,
}

impl<F: RunFunction> RunFunction for Noted<F> {
    type Run = Pin<Box<dyn Future<Output = Exit> + Send>>;

    fn run(&self, ctx: RunContext) -> Self::Run {
        let (job, held) = (Arc::clone(&self.job), Arc::clone(&self.held));
        Box::pin(async move {
            let noted = ctx.run_until_cancelled(note(&held, &ctx, ctx.planned())).await;
            if noted != Some(true) {
                return Err("the run didn't begin: its lease is lost, or it was cancelled".into());
            }
            job.function.run(ctx).await.into_exit()
        })
    }
}

/// Stores the time of a run. Returns whether this process has the lease, as far as the store knows.
async fn note(held: &HeldLease, ctx: &Context, planned: SystemTime) -> bool {
    loop {
        match held.write_memo(&memo_of(planned)).await {
            Ok(written) => return written == MemoWrite::Stored,
            Err(error) => log(held, ctx, error.into()),
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn log(held: &HeldLease, ctx: &Context, error: ExitError) {
    let (child, lease, error) = (ctx.path(), &**held.name(), error.to_string());
    warn!(
        target: "verger::periodic",
        %child, lease, error, "the time of the last run can't be read or stored: runs wait"
    );
}

fn memo_of(time: SystemTime) -> Memo {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let bytes = [KIND.as_slice(), &nanos.to_be_bytes()].concat();
    Memo::new(bytes).expect("16 bytes")
}

fn time_of(memo: &Memo) -> Option<SystemTime> {
    let nanos = memo.as_bytes().strip_prefix(KIND)?.try_into().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::from_be_bytes(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_has_the_time_to_the_nanosecond_and_any_other_memo_has_none() {
        for nanos in [0, 1, 1_767_225_600_000_000_001] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
            assert_eq!(time_of(&memo_of(time)), Some(time));
        }
        for other in [&b""[..], b"vrg-cron", b"invoice 4711 and"] {
            assert_eq!(time_of(&Memo::new(other).unwrap()), None);
        }
    }
}
