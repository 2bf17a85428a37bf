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

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use super::child_config::Reader;
use super::code::NewCode;
use super::draft::{ConfigChange, Draft, Record, Toggled};
use super::facts::start_order;
use super::plan::{Applied, ApplyError, Refusal};
use crate::clock::now;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::panic::CatchPanic;
use crate::path::Path;
use crate::runtime::Blueprint;
use crate::runtime::settings::{ConfigState, ConfigValue, SettingValues, Settings};
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
        let Some(check) = reader.check(&change.value) else { continue };
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
pub(super) async fn apply(handle: &SupervisorHandle, draft: &Draft) -> Result<Applied, ApplyError> {
    let settings = handle.settings();
    let before = settings.snapshot();
    let calls: Vec<_> = before.calls.keys().cloned().collect();
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
    let old_record = settings.applied.lock().clone();
    let old_values = set_values(handle, draft, place);
    settings.change(|values| stopped.iter().for_each(|it| _ = values.held.remove(&it.path)));
    recode(handle, draft, |code| (&code.new, &code.started)).await?;
    refresh(handle, draft, &calls).await?;
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
        return Ok(Applied { changes: draft.changes.clone(), unchanged: draft.unchanged });
    }
    roll_back(handle, draft, before, (old_record, old_values), &up, &restarted, &mut failed)
        .await?;
    Err(ApplyError::RolledBack(failed))
}

/// Takes everything back: stops first, then the values, then the starts.
async fn roll_back(
    handle: &SupervisorHandle,
    draft: &Draft,
    before: SettingValues,
    (old_record, old_values): (Option<Arc<dyn Any + Send + Sync>>, HashMap<Path, ConfigState>),
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
    let held: Vec<_> = restarted.iter().map(|it| it.path.clone()).collect();
    let calls: Vec<_> = before.calls.keys().cloned().collect();
    settings.change(|values| {
        *values = before;
        values.held.extend(held);
    });
    *settings.applied.lock() = old_record;
    for (path, state) in old_values {
        settings.config(&path).send_replace(state);
    }
    recode(handle, draft, |code| (&code.old, &code.stopped)).await?;
    refresh(handle, draft, &calls).await?;
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

/// Sets all values. Returns the configurations that were replaced.
fn set_values(
    handle: &SupervisorHandle,
    draft: &Draft,
    place: impl Fn(&Path) -> Option<Vec<usize>>,
) -> HashMap<Path, ConfigState> {
    let settings = handle.settings();
    settings.change(|values| write(values, draft));
    if !draft.is_call {
        // What is read later is read from this record.
        record(settings, &draft.record);
        settings.forget_unwatched();
    }
    let mut old = HashMap::new();
    // In start order, so that what others need has its value first.
    let mut configs: Vec<_> = draft.configs.iter().collect();
    configs.sort_by_cached_key(|change| place(&change.path));
    for ConfigChange { path, value, .. } in configs {
        let state =
            ConfigState { value: Some(ConfigValue::clone(value)), is_of_call: draft.is_call };
        old.insert(path.clone(), settings.config(path).send_replace(state));
    }
    old
}

/// Writes the layers of a draft.
fn write(values: &mut SettingValues, draft: &Draft) {
    for (path, layer) in &draft.children {
        set(&mut values.files, path, layer);
    }
    for (path, layer) in &draft.supervisors {
        set(&mut values.supervisors, path, layer);
    }
    for (path, layer) in &draft.below {
        set(&mut values.below, path, layer);
    }
    if let Some(common) = &draft.common {
        values.common.clone_from(common);
    }
    for path in &draft.unconfigured.0 {
        values.configured.remove(path);
    }
    for path in &draft.unconfigured.1 {
        values.configured_below.remove(path);
    }
    values.configured.extend(draft.configured.0.iter().cloned());
    values.configured_below.extend(draft.configured.1.iter().cloned());
    if draft.clears_calls {
        values.calls.clear();
    }
}

fn set<T: Clone>(layers: &mut HashMap<Path, T>, path: &Path, layer: &Option<T>) {
    match layer {
        Some(layer) => layers.insert(path.clone(), layer.clone()),
        None => layers.remove(path),
    };
}

/// Makes the supervisors and children whose values have changed look them up.
///
/// `calls`: the children for which calls had set a policy.
async fn refresh(
    handle: &SupervisorHandle,
    draft: &Draft,
    calls: &[Path],
) -> Result<(), ApplyError> {
    if draft.common.is_some() {
        for supervisor in handle.all_running() {
            stopping(handle.refresh_rules(&supervisor).await)?;
            stopping(handle.refresh_all(&supervisor).await)?;
        }
        return Ok(());
    }
    for path in draft.supervisors.iter().map(|(path, _)| path) {
        if let Some(supervisor) = handle.running_at(path) {
            stopping(handle.refresh_rules(&supervisor).await)?;
        }
    }
    for (path, _) in &draft.below {
        let Some(supervisor) = handle.running_at(path) else { continue };
        stopping(handle.refresh_all(&supervisor).await)?;
        for below in handle.all_running() {
            if below.path().parent().as_ref() == Some(path) {
                stopping(handle.refresh_rules(&below).await)?;
            }
        }
    }
    let mut named: Vec<(Path, Vec<String>)> = Vec::new();
    let cleared = calls.iter().filter(|_| draft.clears_calls);
    for path in draft.children.iter().map(|(path, _)| path).chain(cleared) {
        let Some(above) = path.parent() else { continue };
        match named.last_mut() {
            Some((last, names)) if *last == above => names.push(path.name().to_owned()),
            _ => named.push((above, vec![path.name().to_owned()])),
        }
    }
    for (path, names) in named {
        if let Some(supervisor) = handle.running_at(&path) {
            stopping(handle.refresh_named(&supervisor, &names).await)?;
        }
    }
    Ok(())
}

/// A supervisor that ends meanwhile, while the tree goes on, finds its values at its next start.
fn stopping(result: Result<(), ControlError>) -> Result<(), ControlError> {
    match result {
        Err(error @ ControlError::Ended { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Lets the children of a path stop or start by their values. They may be gone, or their supervisor.
async fn configure(handle: &SupervisorHandle, toggled: &Toggled) {
    let supervisor = toggled.path.parent().and_then(|above| handle.running_at(&above));
    let Some(supervisor) = supervisor else { return };
    for segment in &toggled.segments {
        let _ = handle.configure_child(&supervisor, segment.clone()).await;
    }
}

/// Starts the children of a path again. Returns why one of them didn't become active.
async fn start(handle: &SupervisorHandle, toggled: &Toggled) -> Option<String> {
    let above = toggled.path.parent()?;
    let supervisor = handle.running_at(&above)?;
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
    failed
}

/// Applies a draft to a tree that isn't started yet.
pub(super) fn apply_to_new(settings: &Settings, draft: &Draft) {
    settings.change(|values| write(values, draft));
    for ConfigChange { path, value, .. } in &draft.configs {
        let state = ConfigState { value: Some(Arc::clone(value)), is_of_call: false };
        settings.config(path).send_replace(state);
    }
    record(settings, &draft.record);
}

/// Keeps what was applied, to compare the next configuration with.
fn record(settings: &Settings, record: &Record) {
    *settings.applied.lock() = Some(Arc::new(record.clone()));
}

/// Returns what was applied last.
pub(super) fn recorded(settings: &Settings) -> Record {
    let applied = settings.applied.lock().clone();
    let record = applied.and_then(|applied| applied.downcast::<Record>().ok());
    record.map(Arc::unwrap_or_clone).unwrap_or_default()
}
