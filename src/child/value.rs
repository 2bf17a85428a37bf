//! The life of a child that is a value: `activate`, `run`, `deactivate`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::cell::StopLevel;
use super::child_trait::Child;
use super::context::Context;
use super::helpers::Helpers;
use super::incarnation::Signal;
use super::spec::Phases;
use super::task::{drop_after, panicked, with_failure};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::CatchPanic;

/// Runs the value to its end, and drops it.
///
/// A panic is caught before it reaches the value, so that the value can be dropped safely.
pub(super) async fn live(mut child: Box<dyn Child>, ctx: Context, phases: Phases) -> Exit {
    let exit = CatchPanic(pin!(run_phases(&mut *child, &ctx, phases))).await;
    let exit = exit.unwrap_or_else(|panic| Err(panicked(panic)));
    drop_after(exit, || drop(child))
}

async fn run_phases(child: &mut dyn Child, ctx: &Context, phases: Phases) -> Exit {
    tokio::select! {
        biased;
        exit = child.activate(ctx) => exit?,
        failure = helper_failure(ctx) => return Err(failure),
    }
    if phases.signals_ready {
        ctx.incarnation.notify(Signal::Ready);
    }
    let mut overdue = pin!(overdue(ctx, phases.grace));
    let mut is_overdue = false;
    let mut exit = tokio::select! {
        biased;
        exit = child.run(ctx) => exit,
        failure = helper_failure(ctx) => Err(failure),
        () = &mut overdue => {
            is_overdue = true;
            Err(ExitError::from_reason(ExitReason::Killed))
        }
    };
    if let Some(helpers) = ctx.incarnation.helpers() {
        // Failures of helpers from now on are logged.
        exit = with_failure(&ctx.incarnation, exit, helpers.settle());
        match phases.grace.filter(|_| is_overdue) {
            Some(grace) => stop_own(&helpers, tokio::time::sleep(grace / 8)).await,
            None => stop_own(&helpers, overdue).await,
        }
    }
    let deactivated = CatchPanic(child.deactivate(ctx)).await;
    let failure = match deactivated {
        Ok(Ok(())) => None,
        // Too late to decline, but not a failure either.
        Ok(Err(error)) if error.is_ignore() => None,
        Ok(Err(error)) => Some(ExitReason::Failed(error)),
        Err(panic) => Some(ExitReason::Panicked(panic)),
    };
    if let Some(reason) = failure {
        let incarnation = Arc::clone(&ctx.incarnation);
        incarnation.parent.deactivate_failed(&incarnation, reason);
    }
    exit
}

/// Stops the child's own supervisor in order, and aborts it when `patience` has passed.
///
/// What the child has started may need what `deactivate` gives up.
async fn stop_own(helpers: &Helpers, patience: impl Future<Output = ()>) {
    let Some(own) = helpers.own_to_stop() else { return };
    own.stop(StopLevel::Cancel);
    tokio::select! {
        biased;
        () = own.until_ended() => {}
        () = patience => own.stop(StopLevel::Abort),
    }
}

/// Resolves to the failure of a helper. A poll without one is repeated when there is: the child's task is woken.
fn helper_failure(ctx: &Context) -> impl Future<Output = ExitError> {
    poll_fn(|_| ctx.incarnation.take_failure().map_or(Poll::Pending, Poll::Ready))
}

/// Resolves when three quarters of the grace have passed, which leaves the last one to `deactivate`.
async fn overdue(ctx: &Context, grace: Option<Duration>) {
    ctx.cancelled().await;
    match grace {
        Some(grace) => tokio::time::sleep(grace / 4 * 3).await,
        None => std::future::pending().await,
    }
}
