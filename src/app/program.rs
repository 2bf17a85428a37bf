//! A tree that runs until it ends, or until a future requests a stop, which happens in stages.
//!
//! Knows the tree as a [`Root`] with a stop level, and not its rules.
//!
//! # Invariants
//!
//! 1. The futures that may ask for a stop are kept until the end. So a signal that comes during a stop
//!    is the first one that its future receives, and only the next one ends the process.
//! 2. Hooks that follow the stop run however the tree ends.
//! 3. A future that panics requests a stop, too, with exit code 1: what it watched for would go unnoticed.
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
use crate::error::{Forced, RunError};
use crate::lifecycle::Lifecycle;
use crate::panic::CatchPanic;
use crate::path::Path;
use crate::status::{ChildInfo, ChildKind};
use crate::subscriber;

/// A future that requests a stop, and resolves to the cause.
type StopFuture = Pin<Box<dyn Future<Output = ProgramCause> + Send>>;

/// Why a tree stops, and the exit code of that.
pub(super) struct ProgramCause {
    pub(super) text: Arc<str>,
    code: u8,
}

/// What stops a tree, and how; see the [module](self).
#[derive(Default)]
pub(super) struct Program {
    pub(super) stages: StopStages,
    /// The futures that request a stop, each with its own type. A future is gone once it has resolved.
    pub(super) on: Vec<(TypeId, StopFuture)>,
    pub(super) before: Vec<HookStep>,
    pub(super) after: Vec<HookStep>,
}

impl Program {
    /// Also stops the tree when this future resolves.
    pub(super) fn on<F>(&mut self, stop: F)
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        let cause = CatchPanic(Box::pin(async {
            let stop = stop.await;
            ProgramCause { text: stop.cause().into(), code: stop.exit_code() }
        }));
        let cause = async {
            cause.await.unwrap_or_else(|panic| ProgramCause {
                text: format!("panicked: {panic}").into(),
                code: 1,
            })
        };
        self.on.push((TypeId::of::<F>(), Box::pin(cause)));
    }

    /// Polls the futures that request a stop.
    pub(super) fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<ProgramCause> {
        poll_first(&mut self.on, cx)
    }

    /// Runs the tree to its end, and returns why it has ended.
    pub(super) async fn run(self, root: &Root, observe: Observer<'_>) -> ProgramCause {
        let Self { stages, mut on, before, after } = self;
        let handle = root.handle();
        let mut ended = pin!(handle.wait());
        let first = poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => poll_first(&mut on, cx).map(Some),
        });
        let cause = match first.await {
            None => {
                observe("its end", "hooks");
                ProgramCause { text: "ended".into(), code: 0 }
            }
            Some(cause) => {
                terminate(root, &stages, before, &cause.text, ended, observe).await;
                cause
            }
        };
        stop::run_hooks(after, &cause.text).await;
        cause
    }
}

impl ProgramCause {
    /// Returns the result of a tree that was stopped for this cause, or has exited before. The tree's is `result`.
    pub(super) fn over(self, root: Path, result: Result<(), RunError>) -> Result<(), RunError> {
        let Self { text, code } = self;
        let (killed, leaked) = match result {
            Ok(()) => (Vec::new(), Vec::new()),
            Err(RunError::Forced { killed, leaked }) => (killed, leaked),
            Err(first) => return Err(first),
        };
        match code {
            0 => Forced { killed, leaked }.result(),
            code => Err(RunError::StoppedFor {
                path: root,
                cause: text.to_string(),
                code,
                killed,
                leaked,
            }),
        }
    }
}

/// Returns the exit code of a program, and prints its error if there is one.
pub(super) fn exit_code(result: &Result<(), RunError>) -> u8 {
    result.as_ref().map_or_else(print, |()| 0)
}

/// Prints an error to stderr, as `main` would if it returned it. Returns the exit code.
pub(super) fn print(error: &RunError) -> u8 {
    // Not `eprintln!`, which panics where stderr can't be written.
    let _ = writeln!(std::io::stderr(), "Error: {error}");
    error.exit_code()
}

/// Returns the cause of the first future that resolves.
fn poll_first(futures: &mut Vec<(TypeId, StopFuture)>, cx: &mut Context<'_>) -> Poll<ProgramCause> {
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

/// Stops the tree in stages, until it has ended.
pub(super) async fn terminate(
    root: &Root,
    stages: &StopStages,
    before: Vec<HookStep>,
    cause: &Arc<str>,
    mut ended: TreeEnd<'_>,
    observe: Observer<'_>,
) {
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
            _ = ended.as_mut() => true,
            () = sleep_until(drained.into()) => false,
        }
    };
    if let ((), true) = tokio::join!(stop::run_hooks(before, cause), drain) {
        return;
    }
    let began = now();
    let mut current: Option<Stage> = None;
    for step in stages.plan() {
        let due = later(began, step.after);
        tokio::select! {
            biased;
            _ = ended.as_mut() => return,
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
    let _ = ended.await;
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
