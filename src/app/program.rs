//! A tree that runs until it ends by itself, or until a future asks for a stop, which happens in stages.
//!
//! Knows the tree as a [`Root`] with a stop level, and not its rules.
//!
//! # Invariants
//!
//! 1. The futures that may ask for a stop are kept until the end. So a signal that comes during a stop
//!    is the first one that its future receives, and only the next one ends the process.
//! 2. Hooks that follow the stop run however the tree ends.
//! 3. A future that panics asks for a stop as well: what it watched for would go unnoticed.
//! 4. Each step of the stop is due at an instant that was fixed when the drain was over. Nothing that is done
//!    between two steps moves the next one.

use std::any::TypeId;
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use super::run::{Root, StopCause};
use super::stop::{self, HookStep, Stage, StopStages};
use crate::child::StopLevel;
use crate::clock::{later, now};
use crate::error::RunError;
use crate::lifecycle::Lifecycle;
use crate::panic::CatchPanic;
use crate::status::{ChildInfo, ChildKind};
use crate::subscriber;

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
        stop::run_hooks(after, &cause).await;
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

/// How long it may take to list the children that still run, of the time of a stage.
const LISTING: Duration = Duration::from_millis(100);
/// How many children are named.
const NAMED: usize = 20;

/// The end of the tree.
pub(super) type TreeEnd<'a> = Pin<&'a mut (dyn Future<Output = Result<(), RunError>> + Send + 'a)>;

/// Is called with the cause and the stage when a stage begins.
type Observer<'a> = &'a mut (dyn FnMut(&str, &str) + Send);

/// Stops the tree in stages. Returns how it ended, and how many children missed their grace.
pub(super) async fn terminate(
    root: &Root,
    stages: &StopStages,
    before: Vec<HookStep>,
    cause: &Arc<str>,
    mut ended: TreeEnd<'_>,
    observe: Observer<'_>,
) -> (Result<(), RunError>, usize) {
    let reason = &**cause;
    // From now on the tree isn't ready any more.
    root.shared.note_stop(cause);
    observe(reason, "drain");
    let drained = later(now(), stages.drain);
    if !stages.drain.is_zero() {
        let length = stages.drain;
        subscriber::info!(target: "verger::shutdown", cause = reason, stage = "drain", ?length, "stage begins");
    }
    let drain = async {
        tokio::select! {
            biased;
            result = ended.as_mut() => Some(result),
            () = sleep_until(drained.into()) => None,
        }
    };
    if let ((), Some(result)) = tokio::join!(stop::run_hooks(before, cause), drain) {
        return (result, 0);
    }
    let (began, missed) = (now(), root.missed_graces());
    let mut current: Option<Stage> = None;
    for step in stages.plan() {
        let due = later(began, step.after);
        tokio::select! {
            biased;
            result = ended.as_mut() => return (result, root.missed_graces() - missed),
            () = sleep_until(due.into()) => {}
        }
        if let Some(stage) =
            current.take_if(|_| step.stage.is_some() || step.level == StopLevel::Abort)
        {
            report_expired(root, stage).await;
        }
        if let Some(stage) = step.stage {
            let (stage, length) = (stage.name(), stage.length());
            observe(reason, stage);
            subscriber::info!(target: "verger::shutdown", cause = reason, stage, ?length, "stage begins");
        }
        current = step.stage.or(current);
        root.stop(reason, step.level);
    }
    let result = ended.await;
    (result, root.missed_graces() - missed)
}

/// Logs that a stage has expired, with the children that it has found running.
async fn report_expired(root: &Root, stage: Stage) {
    let status = timeout(LISTING, root.handle().status()).await;
    let Ok(Ok(status)) = status else {
        let stage = stage.name();
        subscriber::warn!(target: "verger::shutdown", stage, "stage expired, and the tree doesn't answer which children run");
        return;
    };
    let runs = |child: &&ChildInfo| {
        use Lifecycle::{Activating, Active, Deactivating};
        child.kind == ChildKind::Worker
            && matches!(child.lifecycle, Activating | Active | Deactivating)
    };
    let running = status.nodes().map(|node| &node.child).filter(runs);
    let count = running.clone().count();
    let mut children: Vec<_> = running.map(|child| child.path.as_str()).take(NAMED).collect();
    children.extend((count > NAMED).then_some("…"));
    let (stage, children) = (stage.name(), children.join(", "));
    subscriber::warn!(target: "verger::shutdown", stage, count, children, "stage expired");
}
