//! A tree that runs until it ends by itself, or until a future asks for a stop.
//!
//! # Invariants
//!
//! 1. The futures that may ask for a stop are kept until the end. So a signal that comes during a stop
//!    is the first one that its future receives, and only the next one ends the process.
//! 2. Hooks that follow the stop run however the tree ends.
//! 3. A future that panics asks for a stop as well: what it watched for would go unnoticed.

use std::any::TypeId;
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::hooks::{self, HookStep};
use super::root::Root;
use super::stages::StopStages;
use super::stop_cause::StopCause;
use super::termination::{Observer, terminate};
use crate::error::RunError;
use crate::panic::CatchPanic;

/// A future that asks for a stop, and resolves to the cause.
type StopFuture = Pin<Box<dyn Future<Output = Arc<str>> + Send>>;

/// What stops a tree, and how; see the [module](self).
#[derive(Default)]
pub(super) struct Program {
    pub(super) stages: StopStages,
    /// The futures that ask for a stop, each with its own type. A future is gone once it has resolved.
    pub(super) on: Vec<(TypeId, StopFuture)>,
    pub(super) before: Vec<HookStep>,
    pub(super) after: Vec<HookStep>,
}

/// How a tree has ended.
pub(super) struct ProgramEnd {
    pub(super) result: Result<(), RunError>,
    /// How many children missed their grace in the termination.
    missed_graces: usize,
}

impl Program {
    /// Also stops the tree when this future resolves.
    pub(super) fn on<F>(&mut self, stop: F)
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        let cause = CatchPanic(Box::pin(async { stop.await.cause().into() }));
        let cause =
            async { cause.await.unwrap_or_else(|panic| format!("panicked: {panic}").into()) };
        self.on.push((TypeId::of::<F>(), Box::pin(cause)));
    }

    /// Runs the tree to its end.
    pub(super) async fn run(self, root: &Root, observe: Observer<'_>) -> ProgramEnd {
        let Self { stages, mut on, before, after } = self;
        let handle = root.handle();
        let mut ended = pin!(handle.wait());
        let first = poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Err(result)),
            Poll::Pending => poll_first(&mut on, cx).map(Ok),
        });
        let (cause, result, missed_graces) = match first.await {
            Err(result) => {
                observe("its end", "hooks");
                ("ended".into(), result, 0)
            }
            Ok(cause) => {
                let (result, missed) =
                    terminate(root, &stages, before, &cause, ended, observe).await;
                (cause, result, missed)
            }
        };
        hooks::run(after, &cause).await;
        ProgramEnd { result, missed_graces }
    }
}

impl ProgramEnd {
    /// The program was checked, and not run.
    pub(super) fn checked() -> Self {
        Self { result: Ok(()), missed_graces: 0 }
    }

    /// Returns the exit code, and prints the error if there is one.
    pub(super) fn exit_code(&self) -> u8 {
        match &self.result {
            Ok(()) if self.missed_graces > 0 => 3,
            Ok(()) => 0,
            Err(error) => print(error),
        }
    }
}

/// Prints an error to stderr, as `main` would if it returned it. Returns the exit code.
pub(super) fn print(error: &RunError) -> u8 {
    // Not `eprintln!`, which panics where stderr can't be written.
    let _ = writeln!(std::io::stderr(), "Error: {error}");
    error.exit_code()
}

/// Returns the cause of the first future that resolves.
fn poll_first(futures: &mut Vec<(TypeId, StopFuture)>, cx: &mut Context<'_>) -> Poll<Arc<str>> {
    let ready = futures.iter_mut().enumerate().find_map(|(index, (_, future))| {
        let Poll::Ready(cause) = future.as_mut().poll(cx) else { return None };
        Some((index, cause))
    });
    ready.map_or(Poll::Pending, |(index, cause)| {
        drop(futures.swap_remove(index));
        Poll::Ready(cause)
    })
}
