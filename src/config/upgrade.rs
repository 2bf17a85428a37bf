//! Replaces the code of running supervisors, as a part of a plan, and what the answers of supervisors mean for one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::code::NewCode;
use super::draft::Draft;
use super::plan::{ApplyError, Refusal};
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::runtime::Blueprint;

/// How long new code waits for the end of a restart of several children.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// How long a child may take to become active before the plan is taken back.
pub(super) const ACTIVE_WITHIN: Duration = Duration::from_secs(30);

/// Waits until no supervisor whose code is replaced restarts several children, and nothing has changed yet.
pub(super) async fn settle(handle: &SupervisorHandle, draft: &Draft) -> Result<(), ApplyError> {
    for code in &draft.code {
        if let Some(refusal) = recode_one(handle, code, Some(SETTLED_WITHIN), None).await? {
            return Err(ApplyError::Refused(vec![refusal]));
        }
    }
    Ok(())
}

/// Replaces the code of each supervisor. Returns those that have begun to restart several children, and are
/// still doing it.
pub(super) async fn recode(
    handle: &SupervisorHandle,
    draft: &Draft,
    within: Option<Duration>,
    which: fn(&NewCode) -> (&Arc<Blueprint>, &Vec<String>),
) -> Result<Vec<Refusal>, ApplyError> {
    let mut failed = Vec::new();
    for code in &draft.code {
        failed.extend(recode_one(handle, code, within, Some(which(code))).await?);
    }
    Ok(failed)
}

async fn recode_one(
    handle: &SupervisorHandle,
    code: &NewCode,
    within: Option<Duration>,
    new: Option<(&Arc<Blueprint>, &Vec<String>)>,
) -> Result<Option<Refusal>, ApplyError> {
    let Some(supervisor) = handle.running_at(&code.full) else { return Ok(None) };
    let (blueprint, added) = new.unzip();
    let added = added.cloned().unwrap_or_default();
    let recoded = handle.recode(&supervisor, blueprint.cloned(), added);
    let Ok(recoded) = timeout(within.unwrap_or(Duration::MAX), recoded).await else {
        let reason =
            format!("it restarts its children, and hasn't finished within {SETTLED_WITHIN:?}");
        return Ok(Some(Refusal::new(&code.full, reason)));
    };
    stopping(recoded)?;
    Ok(None)
}

/// Stops and removes children, the last one first.
pub(super) async fn remove(handle: &SupervisorHandle, code: &NewCode, names: &[String]) {
    let Some(supervisor) = handle.running_at(&code.full) else { return };
    for name in names.iter().rev() {
        handle.remove_child(&supervisor, name).await;
    }
}

/// Starts the children that new code has added, up to the first that doesn't become active.
pub(super) async fn start_added(
    handle: &SupervisorHandle,
    draft: &Draft,
    idle: &HashSet<Path>,
    which: fn(&NewCode) -> &Vec<String>,
) -> Vec<Refusal> {
    for code in &draft.code {
        let Some(supervisor) = handle.running_at(&code.full) else { continue };
        for name in which(code).iter().filter(|name| !idle.contains(&code.full.join(name))) {
            let started = handle.start_added(&supervisor, name.clone());
            let started = timeout(ACTIVE_WITHIN, started).await;
            if let Some(reason) = started.map_or_else(|_| Some(too_late()), failure) {
                return vec![Refusal::new(&code.full.join(name), reason)];
            }
        }
    }
    Vec::new()
}

/// The children without new code that are stopped already.
pub(super) async fn idle(handle: &SupervisorHandle, draft: &Draft) -> HashSet<Path> {
    let mut idle = HashSet::new();
    for code in &draft.code {
        let Some(supervisor) = handle.running_at(&code.full) else { continue };
        let supervisor = SupervisorHandle::new(supervisor);
        for name in &code.stopped {
            let info = supervisor.which_child(name).await;
            if info.is_ok_and(|info| info.lifecycle == Lifecycle::Stopped) {
                idle.insert(code.full.join(name));
            }
        }
    }
    idle
}

pub(super) fn too_late() -> String {
    format!("not active within {ACTIVE_WITHIN:?}")
}

/// Returns why a child didn't become active.
pub(super) fn failure<T>(result: Result<T, ControlError>) -> Option<String> {
    match result {
        Err(ControlError::ActivationFailed { reason, .. }) => Some(reason.to_string()),
        Err(ControlError::Stopped { .. }) => Some("stopped before it was active".to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// A supervisor that ends meanwhile, while the tree goes on, finds its values at its next start.
pub(super) fn stopping(result: Result<(), ControlError>) -> Result<(), ControlError> {
    match result {
        Err(error @ ControlError::Ended { .. }) => Err(error),
        _ => Ok(()),
    }
}
