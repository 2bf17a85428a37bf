//! Keeps the lease of a child: carries out what a guard decides.
//!
//! # Invariants
//!
//! 1. The guard makes all decisions. The keeper reads the clock for it.
//! 2. Code of the user's ends a keeper neither by an error nor by a panic, and a request that is never answered delays
//!    no report.
//! 3. The preparation of a standby has ended before a grant is reported.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::clock::LeaseClock;
use super::engine::{Acquired, Claim, LeaseEngine};
use super::guard::{Answer, Guard, GuardRequest, GuardStep, LeaseChange, LeaseEnd, Line};
use super::spec::{Lease, StandbyHook};
use crate::clock::{later, now};
use crate::exit::{Exit, ExitError};
use crate::panic::{CatchPanic, Foreign, PanicMessage, catch_panic};
use crate::path::Path;
use crate::subscriber::{info, warn};

/// Requests the lease until it is granted, and then renews it until it is lost. Lines of the log name the child.
///
/// Returns after a loss is reported, or after `end`:
///
/// * On standby, the answer to a request in flight is waited for, and a lease that it grants is given back.
/// * While the lease is held, [`LeaseEnd::Release`] gives it back. [`LeaseEnd::Abandon`] and a dropped sender return at
///   once.
///
/// Both take at most two seconds. The times of the lease must have been [checked](Lease::check).
///
/// # Cancel safety
///
/// If the future is dropped, the lease isn't released.
pub(crate) async fn keep(
    lease: Lease,
    child: Path,
    holder: Arc<str>,
    end: oneshot::Receiver<LeaseEnd>,
    mut report: impl FnMut(LeaseChange) + Send,
) {
    let watch = lease.watch.clone();
    let mut keeper = Keeper::new(lease, child, holder);
    let mut end = Some(end);
    loop {
        let now = keeper.clock.now();
        match keeper.guard.step(now) {
            GuardStep::Report(change) => {
                if matches!(change, LeaseChange::Granted(_)) {
                    (keeper.on_standby, keeper.preparing) = (None, EngineCall::default());
                }
                if let Some(watch) = &watch {
                    watch(&change);
                }
                report(change);
            }
            GuardStep::Log(line) => keeper.log(&line),
            GuardStep::Send(what) => keeper.request = request(&keeper.engine, &keeper.claim, what),
            GuardStep::Drop => keeper.request = EngineCall::default(),
            GuardStep::Wait(until) => keeper.wait(until, &mut end).await,
            GuardStep::Done => return,
        }
    }
}

struct Keeper {
    child: Path,
    engine: Foreign<dyn LeaseEngine>,
    claim: Claim,
    guard: Guard,
    clock: LeaseClock,
    request: EngineCall<Answer>,
    /// Prepares a child on standby. Taken when it begins: it runs once for each standby.
    on_standby: Option<StandbyHook>,
    preparing: EngineCall<Exit>,
}

impl Keeper {
    fn new(lease: Lease, child: Path, holder: Arc<str>) -> Self {
        let Lease { name, engine, times, on_standby, suspended, .. } = lease;
        let mut clock = LeaseClock::new(suspended);
        let now = clock.now();
        Self {
            child,
            engine,
            claim: Claim::new(name, holder, times.ttl),
            guard: Guard::new(times, fastrand::Rng::new(), now),
            clock,
            request: EngineCall::default(),
            on_standby,
            preparing: EngineCall::default(),
        }
    }

    async fn wait(&mut self, until: Instant, end: &mut Option<oneshot::Receiver<LeaseEnd>>) {
        // In the time of tokio, which the wait is in.
        let wait = until.saturating_duration_since(self.clock.now().at());
        tokio::select! {
            biased;
            // First, so that a grant isn't reported to a caller that has ended the keeper.
            how = ended(end) => {
                *end = None;
                self.guard.end(how, self.clock.now());
            }
            answer = &mut self.request => {
                let answer = answer
                    .unwrap_or_else(|panic| unknown(format_args!("the engine panicked: {panic}")));
                if matches!(answer, Answer::Acquired(Acquired::Held { .. }))
                    && let Some(hook) = self.on_standby.take()
                {
                    // The call is inside of the future, where a panic is caught.
                    self.preparing = EngineCall::new(async move { hook().await });
                }
                self.guard.on_answer(answer, self.clock.now());
            }
            exit = &mut self.preparing => {
                let error = match exit {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(panic) => format!("panicked: {panic}"),
                };
                let (child, lease) = (&self.child, &**self.claim.name());
                warn!(target: "verger::lease", %child, lease, error, "the preparation of the standby has failed");
            }
            () = tokio::time::sleep_until(later(now(), wait).into()) => {}
        }
    }

    fn log(&self, line: &Line) {
        let (child, lease) = (&self.child, &**self.claim.name());
        match line {
            Line::NotAsked { problem, waited } => {
                let error = &**problem;
                let waited = Duration::from_secs(waited.as_secs());
                warn!(target: "verger::lease", %child, lease, error, ?waited, "still can't ask for the lease");
            }
            Line::NotRenewed { problem, lost_in } => {
                let error = &**problem;
                warn!(target: "verger::lease", %child, lease, error, ?lost_in, "can't renew the lease");
            }
            Line::RenewedAgain => {
                info!(target: "verger::lease", %child, lease, "the lease is renewed again");
            }
            Line::NotReleased { problem } => {
                let (error, expires_within) = (&**problem, self.claim.ttl());
                warn!(
                    target: "verger::lease", %child, lease, error, ?expires_within,
                    "can't release the lease"
                );
            }
        }
    }
}

/// Waits until the keeper is ended. Forever if it has been ended already.
async fn ended(end: &mut Option<oneshot::Receiver<LeaseEnd>>) -> LeaseEnd {
    match end {
        Some(end) => end.await.unwrap_or(LeaseEnd::Abandon),
        None => std::future::pending().await,
    }
}

/// A call that is polled. A panic of its future is the output, and a panic of its drop is caught.
///
/// Cancel safe: nothing is lost if a borrow of it is dropped.
pub(super) struct EngineCall<T>(Option<CatchPanic<Pin<Box<dyn Future<Output = T> + Send>>>>);

impl<T> EngineCall<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(CatchPanic(Box::pin(future))))
    }
}

/// No call. It is pending forever.
impl<T> Default for EngineCall<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Future for EngineCall<T> {
    type Output = Result<T, PanicMessage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else { return Poll::Pending };
        let poll = Pin::new(call).poll(cx);
        if poll.is_ready() {
            *self = Self::default();
        }
        poll
    }
}

impl<T> Drop for EngineCall<T> {
    fn drop(&mut self) {
        let call = self.0.take();
        catch_panic(|| drop(call));
    }
}

/// Sends a request.
fn request(
    engine: &Foreign<dyn LeaseEngine>,
    claim: &Claim,
    request: GuardRequest,
) -> EngineCall<Answer> {
    let (engine, claim) = (engine.clone(), claim.clone());
    EngineCall::new(async move {
        let answer = match request {
            GuardRequest::Acquire => engine.acquire(&claim).await.map(Answer::Acquired),
            GuardRequest::Renew(token) => engine.renew(&claim, token).await.map(Answer::Renewed),
            GuardRequest::Release(token) => {
                engine.release(&claim, token).await.map(Answer::Released)
            }
        };
        answer.unwrap_or_else(|error| unknown(ExitError::from(error)))
    })
}

fn unknown(problem: impl ToString) -> Answer {
    Answer::Unknown(Arc::from(problem.to_string()))
}

#[cfg(all(test, feature = "testing"))]
mod tests;
