//! A termination: the stages of a stop, in order, until the tree has ended.
//!
//! Knows the tree as a [`Root`] with a stop level, and not its rules.
//!
//! # Invariants
//!
//! 1. Each step is due at an instant that was fixed when the drain was over. Nothing that is done between
//!    two steps moves the next one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use super::hooks::{self, HookStep};
use super::root::Root;
use super::stages::{Stage, StopStages};
use crate::child::StopLevel;
use crate::clock::now;
use crate::error::RunError;
use crate::lifecycle::Lifecycle;
use crate::policy::later;
use crate::status::{ChildKind, Node};
use crate::subscriber;

/// How long it may take to list the children that still run, of the time of a stage.
const LISTING: Duration = Duration::from_millis(100);
/// How many children are named.
const NAMED: usize = 20;

/// The end of the tree.
pub(super) type Ended<'a> = Pin<&'a mut (dyn Future<Output = Result<(), RunError>> + Send + 'a)>;

/// Is called with the cause and the stage when a stage begins.
pub(super) type Observer<'a> = &'a mut (dyn FnMut(&str, &str) + Send);

/// Stops the tree in stages. Returns how it ended, and how many children missed their grace.
pub(super) async fn terminate(
    root: &Root,
    stages: &StopStages,
    before: Vec<HookStep>,
    cause: &Arc<str>,
    mut ended: Ended<'_>,
    observe: Observer<'_>,
) -> (Result<(), RunError>, usize) {
    let reason = &**cause;
    root.announce_stop(cause);
    observe(reason, "drain");
    let drained = later(now(), stages.drain_length());
    if !stages.drain_length().is_zero() {
        let length = stages.drain_length();
        subscriber::info!(target: "verger::shutdown", cause = reason, stage = "drain", ?length, "stage begins");
    }
    let drain = async {
        tokio::select! {
            biased;
            result = ended.as_mut() => Some(result),
            () = sleep_until(drained.into()) => None,
        }
    };
    if let ((), Some(result)) = tokio::join!(hooks::run(before, cause), drain) {
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
    let mut running = Vec::new();
    collect_running(&status.root, &mut running);
    let count = running.len();
    let mut children: Vec<_> = running.into_iter().take(NAMED).collect();
    children.extend((count > NAMED).then_some("…"));
    let (stage, children) = (stage.name(), children.join(", "));
    subscriber::warn!(target: "verger::shutdown", stage, count, children, "stage expired");
}

/// Collects the workers with a task, in start order.
fn collect_running<'a>(root: &'a Node, running: &mut Vec<&'a str>) {
    let mut below = vec![root];
    while let Some(node) = below.pop() {
        let child = &node.child;
        let runs = matches!(
            child.lifecycle,
            Lifecycle::Activating | Lifecycle::Active | Lifecycle::Deactivating
        );
        if runs && child.kind == ChildKind::Worker {
            running.push(child.path.as_str());
        }
        below.extend(node.children.iter().rev());
    }
}
