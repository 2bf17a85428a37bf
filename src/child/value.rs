//! The life of a child that is a value: `activate`, `run`, `deactivate`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::child_trait::Child;
use super::context::Context;
use super::incarnation::Signal;
use super::spec::Phases;
use super::task::{drop_after, panicked};
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
    child.activate(ctx).await?;
    if phases.signals_ready {
        ctx.incarnation.notify(Signal::Ready);
    }
    let exit = {
        let overdue = pin!(overdue(ctx, phases.grace));
        let run = async {
            let exit = child.run(ctx).await;
            // What the child has started stops before what it needs is given up.
            if let Some(stop) = ctx.incarnation.helpers().and_then(|helpers| helpers.stop_own()) {
                stop.await;
            }
            exit
        };
        tokio::select! {
            biased;
            exit = run => exit,
            () = overdue => Err(ExitError::from_reason(ExitReason::Killed)),
        }
    };
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

/// Resolves when three quarters of the grace have passed, which leaves the last one to `deactivate`.
async fn overdue(ctx: &Context, grace: Option<Duration>) {
    ctx.cancelled().await;
    match grace {
        Some(grace) => tokio::time::sleep(grace / 4 * 3).await,
        None => std::future::pending().await,
    }
}
