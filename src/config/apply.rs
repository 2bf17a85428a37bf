//! Applies a plan to a running tree.
//!
//! First every new value is checked. Then come the stops, then the values, then the starts. A supervisor
//! that was asked for something goes on with everything else meanwhile.
//!
//! # Invariants
//!
//! 1. One plan is applied at a time. Each is made again of the tree as it is then.
//! 2. Until all values are checked, nothing has changed.
//! 3. If a child doesn't become active, all values of the plan are taken back, and the children that it has
//!    stopped run with the old ones.
//! 4. A plan that has begun is applied to its end, even if its caller doesn't wait.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use super::aside::aside;
use super::child_config::Reader;
use super::code::NewCode;
use super::draft::{ConfigChange, Draft, Record, Toggled};
use super::facts::start_order;
use super::plan::{ApplyError, Refusal};
use crate::clock::now;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::panic::CatchPanic;
use crate::path::Path;
use crate::runtime::settings::{Settings, ValueChanges};
use crate::runtime::{Blueprint, SupervisorShared};
use crate::subscriber;

/// How often a slow check is logged.
const SLOW: Duration = Duration::from_secs(5);
/// How long a child may take to become active before the plan is taken back.
const ACTIVE_WITHIN: Duration = Duration::from_secs(30);

/// Checks the new configuration of each child, all at once.
pub(super) async fn check(configs: &[ConfigChange]) -> Result<(), Vec<Refusal>> {
    let mut checks = tokio::task::JoinSet::new();
    for (number, change) in configs.iter().enumerate() {
        let reader = Reader::of(&change.spec);
        let Some(check) = change.state.value.as_ref().and_then(|value| reader.check(value)) else {
            continue;
        };
        let (path, within) = (change.path.clone(), reader.within);
        checks.spawn(async move { (number, check_one(path, within, check).await) });
    }
    let mut refusals = Vec::new();
    while let Some(checked) = checks.join_next().await {
        if let Ok((number, Some(refusal))) = checked {
            refusals.push((number, refusal));
        }
    }
    refusals.sort_by_key(|&(number, _)| number);
    if refusals.is_empty() {
        return Ok(());
    }
    Err(refusals.into_iter().map(|(_, refusal)| refusal).collect())
}

async fn check_one(
    path: Path,
    within: Duration,
    check: impl Future<Output = crate::exit::Exit> + Send,
) -> Option<Refusal> {
    let began = now();
    let slow = async {
        let mut waited = SLOW;
        loop {
            sleep_until((began + waited).into()).await;
            subscriber::warn!(target: "verger::config", child = %path, ?waited, "waiting for the check of a new configuration");
            waited += SLOW;
        }
    };
    let checked = timeout(within, CatchPanic(Box::pin(check)));
    let reason = tokio::select! {
        biased;
        checked = checked => match checked {
            Ok(Ok(Ok(()))) => return None,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(panic)) => format!("panicked: {panic}"),
            Err(_) => format!("no answer within {within:?}"),
        },
        () = slow => return None,
    };
    Some(Refusal { path: path.to_string(), reason })
}

/// Applies a draft whose values are checked.
pub(super) async fn apply(handle: &SupervisorHandle, draft: &mut Draft) -> Result<(), ApplyError> {
    let settings = handle.settings();
    let running = handle.running_at(&handle.root_path());
    if let Some(root) = running.as_ref().filter(|root| root.progress.stopping_since().is_some()) {
        return Err(ControlError::ShuttingDown { path: root.path().clone() }.into());
    }
    let root = running.map(|root| root.blueprint());
    let place = |path: &Path| root.as_ref().map(|root| start_order(root, path));
    let mut restarted = restarted(draft);
    let (mut stopped, mut started): (Vec<_>, Vec<_>) =
        draft.toggled.iter().cloned().partition(|toggled| !toggled.runs);
    for toggled in [&mut restarted, &mut stopped, &mut started] {
        toggled.sort_by_cached_key(|toggled| place(&toggled.path));
    }
    // Those that start are held as well until their turn comes.
    settings.change(|values| {
        values.held.extend(restarted.iter().chain(&draft.toggled).map(|it| it.path.clone()));
    });
    for toggled in stopped.iter().chain(&restarted).rev() {
        configure(handle, toggled).await;
    }
    for code in draft.code.iter().rev() {
        remove(handle, code, &code.stopped).await;
    }
    // In start order, so that what others need has its value first.
    draft.configs.sort_by_cached_key(|change| place(&change.path));
    exchange(handle, draft).await?;
    settings.change(|values| stopped.iter().for_each(|it| _ = values.held.remove(&it.path)));
    recode(handle, draft, |code| (&code.new, &code.started)).await?;
    refresh(handle, draft).await?;
    let mut failed = start_added(handle, draft, |code| &code.started).await;
    let mut up = Vec::new();
    for toggled in restarted.iter().chain(&started).filter(|_| failed.is_empty()) {
        settings.change(|values| values.held.remove(&toggled.path));
        up.push(toggled.clone());
        if let Some(reason) = start(handle, toggled).await {
            failed.push(Refusal { path: toggled.path.to_string(), reason });
            break;
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    roll_back(handle, draft, &up, &restarted, &mut failed).await?;
    Err(ApplyError::RolledBack(failed))
}

/// Takes everything back: stops first, then the values, then the starts.
async fn roll_back(
    handle: &SupervisorHandle,
    draft: &mut Draft,
    up: &[Toggled],
    restarted: &[Toggled],
    failed: &mut Vec<Refusal>,
) -> Result<(), ApplyError> {
    let settings = handle.settings();
    settings.change(|values| values.held.extend(up.iter().map(|it| it.path.clone())));
    for toggled in up.iter().rev() {
        configure(handle, toggled).await;
    }
    for code in draft.code.iter().rev() {
        remove(handle, code, &code.started).await;
    }
    exchange(handle, draft).await?;
    settings.change(|values| {
        values.held = restarted.iter().map(|it| it.path.clone()).collect();
    });
    recode(handle, draft, |code| (&code.old, &code.stopped)).await?;
    refresh(handle, draft).await?;
    failed.extend(start_added(handle, draft, |code| &code.stopped).await.into_iter().map(|it| {
        let reason = format!("also with its old code: {}", it.reason);
        Refusal { reason, ..it }
    }));
    let back = restarted.iter().chain(draft.toggled.iter().filter(|toggled| !toggled.runs));
    for toggled in back {
        settings.change(|values| values.held.remove(&toggled.path));
        if let Some(reason) = start(handle, toggled).await {
            let reason = format!("also with its old configuration: {reason}");
            failed.push(Refusal { path: toggled.path.to_string(), reason });
        }
    }
    Ok(())
}

/// The children that restart because their configuration has changed.
fn restarted(draft: &Draft) -> Vec<Toggled> {
    let toggled: HashSet<_> = draft.toggled.iter().map(|toggled| &toggled.path).collect();
    let restarts = draft.configs.iter();
    let restarts =
        restarts.filter(|change| change.spec.restarts && !toggled.contains(&change.path));
    restarts.map(|change| change.toggled(true)).collect()
}

/// Replaces the code of each supervisor.
async fn recode(
    handle: &SupervisorHandle,
    draft: &Draft,
    which: fn(&NewCode) -> (&Arc<Blueprint>, &Vec<String>),
) -> Result<(), ApplyError> {
    for code in &draft.code {
        let (blueprint, added) = which(code);
        if let Some(supervisor) = handle.running_at(&code.full) {
            stopping(handle.recode(&supervisor, Arc::clone(blueprint), added.clone()).await)?;
        }
    }
    Ok(())
}

/// Stops and removes children, the last one first.
async fn remove(handle: &SupervisorHandle, code: &NewCode, names: &[String]) {
    let Some(supervisor) = handle.running_at(&code.full) else { return };
    for name in names.iter().rev() {
        handle.remove_child(&supervisor, name).await;
    }
}

/// Starts the children that new code has added, up to the first that doesn't become active.
async fn start_added(
    handle: &SupervisorHandle,
    draft: &Draft,
    which: fn(&NewCode) -> &Vec<String>,
) -> Vec<Refusal> {
    for code in &draft.code {
        let Some(supervisor) = handle.running_at(&code.full) else { continue };
        for name in which(code) {
            let started = handle.start_added(&supervisor, name.clone());
            let started = timeout(ACTIVE_WITHIN, started).await;
            if let Some(reason) = started.map_or_else(|_| Some(too_late()), failure) {
                return vec![Refusal { path: code.full.join(name).to_string(), reason }];
            }
        }
    }
    Vec::new()
}

fn too_late() -> String {
    format!("not active within {ACTIVE_WITHIN:?}")
}

/// Returns why a child didn't become active.
fn failure<T>(result: Result<T, ControlError>) -> Option<String> {
    match result {
        Err(ControlError::ActivationFailed { reason, .. }) => Some(reason.to_string()),
        Err(ControlError::Stopped { .. }) => Some("stopped before it was active".to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// Exchanges the values of a draft for those of the tree. A second exchange takes the first one back.
async fn exchange(handle: &SupervisorHandle, draft: &mut Draft) -> Result<(), ControlError> {
    let (settings, mut values) = (Arc::clone(handle.settings()), std::mem::take(&mut draft.values));
    draft.values = aside(handle, move || {
        settings.exchange(&mut values);
        values
    })
    .await?;
    let settings = handle.settings();
    if let Some(record) = &mut draft.record {
        // What is read later is read from this record.
        let old = recorded(settings);
        set_record(settings, std::mem::replace(record, old));
        settings.forget_unwatched();
    }
    for ConfigChange { path, state, .. } in &mut draft.configs {
        *state = settings.config(path).send_replace(std::mem::take(state));
    }
    Ok(())
}

/// Makes the supervisors and children whose values have changed look them up.
async fn refresh(handle: &SupervisorHandle, draft: &mut Draft) -> Result<(), ApplyError> {
    let values = &draft.values;
    if values.common.is_some() {
        for supervisor in handle.all_running() {
            stopping(handle.refresh_rules(&supervisor).await)?;
            stopping(handle.refresh_all(&supervisor).await)?;
        }
        return Ok(());
    }
    for path in values.supervisors.iter().map(|(path, _)| path) {
        for supervisor in handle.all_at(path) {
            stopping(handle.refresh_rules(&supervisor).await)?;
        }
    }
    for (path, _) in &values.below {
        for supervisor in handle.all_at(path) {
            stopping(handle.refresh_all(&supervisor).await)?;
        }
        for below in handle.all_running() {
            if below.path().without_serials().parent().as_ref() == Some(path) {
                stopping(handle.refresh_rules(&below).await)?;
            }
        }
    }
    let values = std::mem::take(&mut draft.values);
    let (values, named) = aside(handle, move || by_supervisor(values)).await?;
    draft.values = values;
    for (path, names) in named {
        for supervisor in handle.all_at(&path) {
            stopping(handle.refresh_named(&supervisor, &names).await)?;
        }
    }
    Ok(())
}

/// Returns the names of the children whose own values have changed, by their supervisors.
fn by_supervisor(values: ValueChanges) -> (ValueChanges, BTreeMap<Path, Vec<String>>) {
    let mut named: BTreeMap<Path, Vec<String>> = BTreeMap::new();
    for (path, _) in values.files.iter().chain(&values.calls) {
        if let Some(above) = path.parent() {
            named.entry(above).or_default().push(path.name().to_owned());
        }
    }
    (values, named)
}

/// A supervisor that ends meanwhile, while the tree goes on, finds its values at its next start.
fn stopping(result: Result<(), ControlError>) -> Result<(), ControlError> {
    match result {
        Err(error @ ControlError::Ended { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Lets the children of a path stop or start by their values. They may be gone, or their supervisors.
async fn configure(handle: &SupervisorHandle, toggled: &Toggled) {
    for supervisor in supervisors(handle, toggled) {
        for segment in &toggled.segments {
            let _ = handle.configure_child(&supervisor, segment.clone()).await;
        }
    }
}

/// Starts the children of a path again. Returns why one of them didn't become active.
async fn start(handle: &SupervisorHandle, toggled: &Toggled) -> Option<String> {
    for supervisor in supervisors(handle, toggled) {
        let mut failed = None;
        for segment in &toggled.segments {
            let started = handle.configure_child(&supervisor, segment.clone());
            let started = timeout(ACTIVE_WITHIN, started).await;
            failed = started.map_or_else(|_| Some(too_late()), failure);
            if failed.is_some() {
                break;
            }
        }
        // Also those that were added meanwhile, or that come after one that failed.
        let _ = handle.refresh_named(&supervisor, &[toggled.path.name().to_owned()]).await;
        if failed.is_some() {
            return failed;
        }
    }
    None
}

/// Returns the supervisors of the children of a path.
fn supervisors(handle: &SupervisorHandle, toggled: &Toggled) -> Vec<Arc<SupervisorShared>> {
    toggled.path.parent().map(|above| handle.all_at(&above)).unwrap_or_default()
}

/// Applies a draft to a tree that isn't started yet.
pub(super) fn apply_to_new(settings: &Settings, mut draft: Draft) {
    settings.exchange(&mut draft.values);
    for ConfigChange { path, state, .. } in draft.configs {
        settings.config(&path).send_replace(state);
    }
    set_record(settings, draft.record.unwrap_or_default());
}

/// Keeps what was applied, to compare the next configuration with.
fn set_record(settings: &Settings, record: Arc<Record>) {
    *settings.applied.lock() = Some(record);
}

/// Returns what was applied last.
pub(super) fn recorded(settings: &Settings) -> Arc<Record> {
    let applied = settings.applied.lock().clone();
    applied.and_then(|applied| applied.downcast::<Record>().ok()).unwrap_or_default()
}
