//! Applies a plan to a running tree.
//!
//! Every new value is checked already. First come the stops, then the values, then the starts. A supervisor
//! that was asked for something goes on with everything else meanwhile.
//!
//! # Invariants
//!
//! 1. One plan is applied at a time. Each is made again of the tree as it is then.
//! 2. If a child doesn't become active, all values of the plan are taken back, and the children that it has
//!    stopped run with the old ones.
//! 3. A plan that has begun is applied to its end, even if its caller doesn't wait.

use std::collections::{BTreeMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::timeout;

use super::code::NewCode;
use super::draft::{AppliedRecord, ConfigChange, Draft, Toggled};
use super::facts::{ask, start_order};
use super::plan::{ApplyError, Refusal};
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::runtime::settings::{NotedReads, Settings, ValueChanges};
use crate::runtime::{Blueprint, SupervisorShared};
use crate::{named_task, subscriber};

/// Applies a draft whose values are checked.
///
/// `reads`: the children that have read their configuration since the draft was begun.
pub(super) async fn apply(
    handle: &SupervisorHandle,
    draft: &mut Draft,
    reads: &NotedReads<'_>,
) -> Result<(), ApplyError> {
    let settings = handle.settings();
    is_running(handle)?;
    let root = handle.running_at(&handle.root_path()).map(|root| root.blueprint());
    let place = |path: &Path| root.as_ref().map(|root| start_order(root, path));
    let mut restarted = restarted(draft);
    let (mut stopped, mut started): (Vec<_>, Vec<_>) =
        draft.toggled.iter().cloned().partition(|toggled| !toggled.runs);
    for toggled in [&mut restarted, &mut stopped, &mut started] {
        toggled.sort_by_cached_key(|toggled| place(&toggled.path));
    }
    settle(handle, draft).await?;
    // Those that start are held as well until their turn comes.
    settings.change(|values| {
        values.held.extend(restarted.iter().chain(&draft.toggled).map(|it| it.path.clone()));
    });
    for toggled in [&mut restarted, &mut stopped, &mut started] {
        find_added(handle, toggled).await;
    }
    for restarted in &restarted {
        let child = &restarted.path;
        subscriber::info!(target: "verger::config", %child, "restarting for its configuration");
    }
    for toggled in stopped.iter().chain(&restarted).rev() {
        configure(handle, toggled).await;
    }
    let idle = idle(handle, draft).await;
    for code in draft.code.iter().rev() {
        remove(handle, code, &code.stopped).await;
    }
    // In start order, so that what others need has its value first.
    draft.configs.sort_by_cached_key(|change| place(&change.path));
    exchange(handle, draft, reads).await?;
    settings.change(|values| stopped.iter().for_each(|it| _ = values.held.remove(&it.path)));
    let within = Some(SETTLED_WITHIN);
    let mut failed = recode(handle, draft, within, |code| (&code.new, &code.started)).await?;
    refresh(handle, draft).await?;
    if failed.is_empty() {
        failed = start_added(handle, draft, &HashSet::new(), |code| &code.started).await;
    }
    let mut up = Vec::new();
    for toggled in restarted.iter().chain(&started).filter(|_| failed.is_empty()) {
        settings.change(|values| values.held.remove(&toggled.path));
        up.push(toggled.clone());
        if let Some(reason) = start(handle, toggled, true).await {
            failed.push(Refusal::new(&toggled.path, reason));
            break;
        }
    }
    if failed.is_empty() {
        return is_running(handle).map_err(Into::into);
    }
    let mut down: Vec<_> = restarted.into_iter().chain(stopped).collect();
    down.sort_by_cached_key(|toggled| place(&toggled.path));
    roll_back(handle, draft, reads, &up, &down, &idle, &mut failed).await?;
    // A child may have failed with a text about its value.
    for refusal in &mut failed {
        let about = draft.configs.iter().filter(|change| change.path.as_str() == refusal.path);
        for change in about {
            refusal.reason = change.secrets.hide(&refusal.reason);
        }
    }
    Err(ApplyError::RolledBack(failed))
}

/// Finds the children of dynamic supervisors that came since the draft was made. Those that come later are held.
async fn find_added(handle: &SupervisorHandle, toggled: &mut [Toggled]) {
    let mut added: BTreeMap<Path, Vec<&mut Toggled>> = BTreeMap::new();
    for toggled in toggled {
        if let Some(above) = toggled.path.parent() {
            added.entry(above).or_default().push(toggled);
        }
    }
    for (above, toggled) in added {
        if !handle.all_at(&above).iter().any(|it| it.blueprint().is_dynamic()) {
            continue;
        }
        let names = toggled.iter().map(|toggled| toggled.path.name().to_owned()).collect();
        let Ok(Some(mut known)) = ask(handle, &above, Some(names)).await else { continue };
        for toggled in toggled {
            if let Some(child) = known.children.remove(toggled.path.name()) {
                toggled.segments = child.segments;
            }
        }
    }
}

/// Returns an error if the tree shuts down. What is restarted then doesn't come back.
fn is_running(handle: &SupervisorHandle) -> Result<(), ControlError> {
    let path = handle.root_path();
    match handle.running_at(&path) {
        None => Err(ControlError::Ended { path }),
        Some(root) if root.progress.stopping_since().is_some() => {
            Err(ControlError::ShuttingDown { path })
        }
        Some(_) => Ok(()),
    }
}

/// Takes everything back: stops first, then the values, then the starts.
async fn roll_back(
    handle: &SupervisorHandle,
    draft: &mut Draft,
    reads: &NotedReads<'_>,
    up: &[Toggled],
    down: &[Toggled],
    idle: &HashSet<Path>,
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
    exchange(handle, draft, reads).await?;
    settings.change(|values| {
        values.held = down.iter().map(|it| it.path.clone()).collect();
    });
    // However long it takes: without their old code, children would be missing.
    let mut with_old = recode(handle, draft, None, |code| (&code.old, &code.stopped)).await?;
    refresh(handle, draft).await?;
    with_old.extend(start_added(handle, draft, idle, |code| &code.stopped).await);
    failed.extend(with_old.into_iter().map(|it| {
        let reason = format!("also with its old code: {}", it.reason);
        Refusal { reason, ..it }
    }));
    for toggled in down {
        settings.change(|values| values.held.remove(&toggled.path));
        if let Some(reason) = start(handle, toggled, false).await {
            let reason = format!("also with its old configuration: {reason}");
            failed.push(Refusal::new(&toggled.path, reason));
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

/// Exchanges the values of a draft for those of the tree. A second exchange takes the first one back.
async fn exchange(
    handle: &SupervisorHandle,
    draft: &mut Draft,
    reads: &NotedReads<'_>,
) -> Result<(), ControlError> {
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
    let mut reads = reads.take();
    for ConfigChange { path, state, .. } in &mut draft.configs {
        reads.remove(path);
        *state = settings.config(path).send_replace(std::mem::take(state));
    }
    // Children that weren't known when the draft was made have read what was applied before.
    for path in reads {
        let cell = settings.config(&path);
        // Dropped once the cell is free: its `Drop` may read it.
        let mut forgotten = None;
        cell.send_if_modified(|state| {
            forgotten = if state.is_of_call { None } else { state.value.take() };
            forgotten.is_some()
        });
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

/// Lets the children of a path stop or start by their values. They may be gone, or their supervisors.
async fn configure(handle: &SupervisorHandle, toggled: &Toggled) {
    for supervisor in supervisors(handle, toggled) {
        for segment in &toggled.segments {
            let _ = handle.configure_child(&supervisor, segment.clone(), true).await;
        }
    }
}

/// Starts the children of a path again. Returns why one of them didn't become active. `trial`: it is then held
/// back, and its policy doesn't decide.
async fn start(handle: &SupervisorHandle, toggled: &Toggled, trial: bool) -> Option<String> {
    for supervisor in supervisors(handle, toggled) {
        let mut failed = None;
        for segment in &toggled.segments {
            failed = activated(handle.configure_child(&supervisor, segment.clone(), trial)).await;
            if failed.is_some() {
                break;
            }
        }
        // In a trial, the others are held until they are taken back.
        if !trial || failed.is_none() {
            // Also those that were added meanwhile, or that come after one that failed.
            let _ = handle.refresh_named(&supervisor, &[toggled.path.name().to_owned()]).await;
        }
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
fn set_record(settings: &Settings, record: Arc<AppliedRecord>) {
    *settings.applied.lock() = Some(record);
}

/// Returns what was applied last.
pub(super) fn recorded(settings: &Settings) -> Arc<AppliedRecord> {
    let mut applied = settings.applied.lock();
    let applied = Arc::clone(applied.get_or_insert_with(|| Arc::new(AppliedRecord::default())));
    applied.downcast().expect("only `set_record` sets it")
}

/// How long new code waits for the end of a restart of several children.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// How long a child may take to become active before the plan is taken back.
const ACTIVE_WITHIN: Duration = Duration::from_secs(30);

/// Waits until no supervisor whose code is replaced restarts several children, and nothing has changed yet.
async fn settle(handle: &SupervisorHandle, draft: &Draft) -> Result<(), ApplyError> {
    for code in &draft.code {
        if let Some(refusal) = recode_one(handle, code, Some(SETTLED_WITHIN), None).await? {
            return Err(ApplyError::Refused(vec![refusal]));
        }
    }
    Ok(())
}

/// Replaces the code of each supervisor. Returns those that have begun to restart several children, and are
/// still doing it.
async fn recode(
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
    idle: &HashSet<Path>,
    which: fn(&NewCode) -> &Vec<String>,
) -> Vec<Refusal> {
    for code in &draft.code {
        let Some(supervisor) = handle.running_at(&code.full) else { continue };
        for name in which(code).iter().filter(|name| !idle.contains(&code.full.join(name))) {
            let started = handle.start_added(&supervisor, name.clone());
            if let Some(reason) = activated(started).await {
                return vec![Refusal::new(&code.full.join(name), reason)];
            }
        }
    }
    Vec::new()
}

/// The children without new code that are stopped already.
async fn idle(handle: &SupervisorHandle, draft: &Draft) -> HashSet<Path> {
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

/// Waits until a child is active. Returns why it isn't.
async fn activated<T>(started: impl Future<Output = Result<T, ControlError>>) -> Option<String> {
    match timeout(ACTIVE_WITHIN, started).await {
        Err(_elapsed) => Some(format!("not active within {ACTIVE_WITHIN:?}")),
        Ok(Err(ControlError::ActivationFailed { reason, .. })) => Some(reason.to_string()),
        Ok(Err(ControlError::Stopped { .. })) => Some("stopped before it was active".to_owned()),
        Ok(_) => None,
    }
}

/// A supervisor that ends meanwhile, while the tree goes on, finds its values at its next start.
fn stopping(result: Result<(), ControlError>) -> Result<(), ControlError> {
    match result {
        Err(error @ ControlError::Ended { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Runs such work on a thread that may block, so that no task of the runtime waits for it.
///
/// # Errors
///
/// If the runtime ends.
///
/// # Panics
///
/// If the work panics.
pub(super) async fn aside<T: Send + 'static>(
    tree: &SupervisorHandle,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ControlError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ended(tree, error))
}

/// Drops what may be large, later. A value of the user's may panic in its `Drop`, which concerns no plan.
pub(super) fn discard<T: Send + 'static>(value: T) {
    drop(tokio::task::spawn_blocking(move || drop(value)));
}

/// Runs a future in a task of its own, so that it goes on if this one is dropped.
///
/// # Errors
///
/// Those of the future, and if the runtime ends.
///
/// # Panics
///
/// If the future panics.
pub(super) async fn to_end<T, E>(
    tree: &SupervisorHandle,
    future: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<ControlError> + Send + 'static,
{
    // Not on the caller's runtime, which may end in the middle. The task ends within the graces of children.
    let name = || format!("{} (configuration)", tree.path());
    let task = named_task::spawn_on(&tree.runtime(), name, future);
    task.await.map_err(|error| ended(tree, error))?
}

fn ended(tree: &SupervisorHandle, error: JoinError) -> ControlError {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => ControlError::Ended { path: tree.path() },
    }
}
