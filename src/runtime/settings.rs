//! The values that replace those of the code in one tree, by path.
//!
//! They live at the root, so that a supervisor that restarts finds them. A supervisor looks them up when a
//! child is added, and when a request says that they have changed. Callers set them, and have checked that
//! they are valid.
//!
//! # Invariants
//!
//! 1. While nothing was ever set, a lookup costs one load, and no path is made for it.
//! 2. A path has no serial number: all children of a dynamic supervisor with one name share their values, and
//!    so do those below them.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::exit::Exit;
use crate::panic::Foreign;
use crate::path::Path;
use crate::policy::{ChildLayer, Layers, SupervisorLayer, Withheld};
use crate::sync::Mutex;

/// The configuration of a child, of the type that its spec names.
///
/// A panic of its `Drop` is caught, wherever a plan or a supervisor drops it.
pub(crate) type ConfigValue = Foreign<dyn Any + Send + Sync>;

/// Checks a new configuration of a child.
pub(crate) type ConfigCheck =
    Foreign<dyn Fn(ConfigValue) -> Pin<Box<dyn Future<Output = Exit> + Send>> + Send + Sync>;

/// The current configuration of a child, which its incarnations watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigState {
    /// `None`: it is read when a child asks for it.
    pub(crate) value: Option<ConfigValue>,
    /// Whether a call has set the value, so that no file has it.
    pub(crate) is_of_call: bool,
    /// Where the value comes from: a place such as `feed.toml:12`, or `call`. `None`: no file has it.
    pub(crate) place: Option<Arc<str>>,
}

pub(crate) type ConfigCell = watch::Sender<ConfigState>;

/// How many values change while the lock is held.
const AT_ONCE: usize = 256;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Settings {
    is_used: AtomicBool,
    values: Mutex<SettingValues>,
    configs: Mutex<HashMap<Path, Arc<ConfigCell>>>,
    /// The checks of incarnations that run, by a number that orders them.
    checks: Mutex<HashMap<Path, BTreeMap<u64, ConfigCheck>>>,
    /// The children that read their configuration while a plan is applied.
    reads: Mutex<Option<HashSet<Path>>>,
    /// Held while a plan is applied.
    pub(crate) applying: tokio::sync::Mutex<()>,
    /// What was applied last: a type of the module `config`.
    pub(crate) applied: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

/// The values by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingValues {
    /// For all children.
    pub(crate) common: Option<GeneralLayer>,
    /// For all children of one supervisor.
    pub(crate) below: HashMap<Path, GeneralLayer>,
    /// For one child, from a file.
    pub(crate) files: HashMap<Path, Arc<ChildLayer>>,
    /// For one child, from a call.
    pub(crate) calls: HashMap<Path, Arc<ChildLayer>>,
    pub(crate) supervisors: HashMap<Path, Arc<SupervisorLayer>>,
    /// The children that have a configuration of their own.
    pub(crate) configured: HashSet<Path>,
    /// The supervisors whose children all have one.
    pub(crate) configured_below: HashSet<Path>,
    /// The children that a plan has stopped, and starts again.
    pub(crate) held: HashSet<Path>,
}

/// Values that change, by path, each path once. `None`: the path has none any more.
#[derive(Debug, Default)]
pub(crate) struct ValueChanges {
    /// If it changes.
    pub(crate) common: Option<Option<GeneralLayer>>,
    pub(crate) below: Vec<(Path, Option<GeneralLayer>)>,
    pub(crate) files: Vec<(Path, Option<Arc<ChildLayer>>)>,
    pub(crate) calls: Vec<(Path, Option<Arc<ChildLayer>>)>,
    pub(crate) supervisors: Vec<(Path, Option<Arc<SupervisorLayer>>)>,
    pub(crate) configured: Vec<(Path, bool)>,
    pub(crate) configured_below: Vec<(Path, bool)>,
}

/// The values of several children.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneralLayer {
    pub(crate) child: Arc<ChildLayer>,
    /// For those that are supervisors.
    pub(crate) supervisor: Arc<SupervisorLayer>,
}

impl SettingValues {
    fn file(&self, supervisor: &Path, path: &Path) -> Option<&Arc<ChildLayer>> {
        let general = self.below.get(supervisor).or(self.common.as_ref());
        self.files.get(path).or(general.map(|general| &general.child))
    }

    fn supervisor(&self, path: &Path) -> Option<&Arc<SupervisorLayer>> {
        let above = path.parent();
        let general = above.and_then(|above| self.below.get(&above).or(self.common.as_ref()));
        self.supervisors.get(path).or(general.map(|general| &general.supervisor))
    }

    fn is_configured(&self, supervisor: &Path, path: &Path) -> bool {
        self.configured.contains(path) || self.configured_below.contains(supervisor)
    }
}

impl Settings {
    /// Returns a copy for a new tree.
    pub(crate) fn fork(&self) -> Self {
        let configs = self.configs.lock();
        let fork = |cell: &ConfigCell| Arc::new(ConfigCell::new(cell.borrow().clone()));
        let configs = configs.iter().map(|(path, cell)| (path.clone(), fork(cell))).collect();
        Self {
            is_used: AtomicBool::new(self.is_used()),
            values: Mutex::new(self.values.lock().clone()),
            configs: Mutex::new(configs),
            checks: Mutex::default(),
            reads: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
            applied: Mutex::new(self.applied.lock().clone()),
        }
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Changes the values.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut SettingValues) -> R) -> R {
        self.is_used.store(true, Ordering::Release);
        change(&mut self.values.lock())
    }

    /// Returns what is written over the code of a child. `awaits_config`: whether it starts only with a configuration.
    pub(super) fn layers(
        &self,
        supervisor: impl FnOnce() -> Path,
        name: &str,
        awaits_config: bool,
    ) -> Layers {
        if !self.is_used() && !awaits_config {
            return Layers::default();
        }
        let supervisor = &supervisor().without_serials();
        let path = supervisor.join(name);
        let values = self.values.lock();
        let (file, call) = (values.file(supervisor, &path), values.calls.get(&path));
        let withheld = if values.held.contains(&path) {
            Some(Withheld::Reconfigured)
        } else if awaits_config && !values.is_configured(supervisor, &path) {
            Some(Withheld::Unconfigured)
        } else {
            None
        };
        Layers { file: file.cloned(), call: call.cloned(), withheld }
    }

    /// Returns the values of the supervisor at `path`.
    pub(super) fn supervisor(&self, path: impl FnOnce() -> Path) -> Option<Arc<SupervisorLayer>> {
        if !self.is_used() {
            return None;
        }
        self.values.lock().supervisor(&path().without_serials()).cloned()
    }

    /// Exchanges values, and leaves those that were there before. A second exchange takes the first one back.
    pub(crate) fn exchange(&self, changes: &mut ValueChanges) {
        self.change(|values| {
            if let Some(common) = &mut changes.common {
                std::mem::swap(&mut values.common, common);
            }
        });
        self.in_parts(&mut changes.below, |values, part| exchange(&mut values.below, part));
        self.in_parts(&mut changes.files, |values, part| exchange(&mut values.files, part));
        self.in_parts(&mut changes.calls, |values, part| exchange(&mut values.calls, part));
        self.in_parts(&mut changes.supervisors, |values, part| {
            exchange(&mut values.supervisors, part);
        });
        self.in_parts(&mut changes.configured, |values, part| {
            exchange_paths(&mut values.configured, part);
        });
        self.in_parts(&mut changes.configured_below, |values, part| {
            exchange_paths(&mut values.configured_below, part);
        });
    }

    /// Holds the lock for some changes at a time.
    fn in_parts<T>(&self, changes: &mut [T], exchange: impl Fn(&mut SettingValues, &mut [T])) {
        for part in changes.chunks_mut(AT_ONCE) {
            self.change(|values| exchange(values, part));
        }
    }

    /// Returns the paths for which a call has set a policy.
    pub(crate) fn called(&self) -> Vec<Path> {
        self.values.lock().calls.keys().cloned().collect()
    }

    /// Forgets the configurations that no incarnation watches. They are read again when one asks for them.
    pub(crate) fn forget_unwatched(&self) {
        let is_kept = |cell: &Arc<ConfigCell>| {
            cell.receiver_count() > 0 || cell.borrow().is_of_call || Arc::strong_count(cell) > 1
        };
        let mut configs = self.configs.lock();
        let forgotten: Vec<_> = configs.extract_if(|_, cell| !is_kept(cell)).collect();
        drop(configs);
        // Not under the lock: the `Drop` of a value may read a configuration.
        drop(forgotten);
    }

    /// Returns where the configuration of the child at `path` comes from.
    pub(super) fn config_place(&self, path: &Path) -> Option<Arc<str>> {
        let cell = self.configs.lock().get(&path.without_serials()).cloned()?;
        cell.borrow().place.clone()
    }

    /// Notes which children read their configuration, until the guard is dropped: what they read may have
    /// changed by then.
    pub(crate) fn note_reads(&self) -> NotedReads<'_> {
        *self.reads.lock() = Some(HashSet::new());
        NotedReads(self)
    }

    /// Notes that the child at `path` is about to read its configuration.
    pub(crate) fn reads(&self, path: &Path) {
        if let Some(reads) = &mut *self.reads.lock() {
            reads.insert(path.without_serials());
        }
    }

    /// Adds a check of new configurations of the child at `path`, until the guard is dropped.
    pub(crate) fn add_check(self: &Arc<Self>, path: &Path, check: ConfigCheck) -> CheckGuard {
        let path = path.without_serials();
        let mut checks = self.checks.lock();
        let of_child = checks.entry(path.clone()).or_default();
        let number = of_child.last_key_value().map_or(0, |(last, _)| last + 1);
        of_child.insert(number, check);
        drop(checks);
        CheckGuard { settings: Arc::clone(self), path, number }
    }

    /// Returns the checks of incarnations of the child at `path` that run.
    pub(crate) fn checks_of(&self, path: &Path) -> Vec<ConfigCheck> {
        let checks = self.checks.lock();
        let of_child = checks.get(&path.without_serials());
        of_child.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Returns the configuration of the child at `path`, which is empty at first.
    pub(crate) fn config(&self, path: &Path) -> Arc<ConfigCell> {
        Arc::clone(self.configs.lock().entry(path.without_serials()).or_default())
    }
}

/// Removes a check when it is dropped.
pub(crate) struct CheckGuard {
    settings: Arc<Settings>,
    path: Path,
    number: u64,
}

impl Drop for CheckGuard {
    fn drop(&mut self) {
        let mut checks = self.settings.checks.lock();
        let Some(of_child) = checks.get_mut(&self.path) else { return };
        let check = of_child.remove(&self.number);
        if of_child.is_empty() {
            checks.remove(&self.path);
        }
        drop(checks);
        // Not under the lock: it is the child's closure.
        drop(check);
    }
}

/// See [`Settings::note_reads`].
pub(crate) struct NotedReads<'a>(&'a Settings);

impl NotedReads<'_> {
    /// Returns the children that have read their configuration since the last call.
    pub(crate) fn take(&self) -> HashSet<Path> {
        self.0.reads.lock().replace(HashSet::new()).unwrap_or_default()
    }
}

impl Drop for NotedReads<'_> {
    fn drop(&mut self) {
        *self.0.reads.lock() = None;
    }
}

fn exchange<T>(values: &mut HashMap<Path, T>, changes: &mut [(Path, Option<T>)]) {
    for (path, value) in changes {
        *value = match value.take() {
            Some(value) => values.insert(path.clone(), value),
            None => values.remove(path),
        };
    }
}

fn exchange_paths(paths: &mut HashSet<Path>, changes: &mut [(Path, bool)]) {
    for (path, is_in) in changes {
        *is_in = if *is_in { !paths.insert(path.clone()) } else { paths.remove(path) };
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;
    use crate::policy::OnLeak;

    #[test]
    fn the_nearest_section_counts() {
        let own =
            |on_leak| Arc::new(ChildLayer { on_leak: Some(on_leak), ..ChildLayer::default() });
        let general = |on_leak| GeneralLayer { child: own(on_leak), ..GeneralLayer::default() };
        let app = Path::root("app");
        let settings = Settings::default();
        let on_leak = |name| {
            let Layers { file, call, .. } = settings.layers(|| app.clone(), name, false);
            call.or(file).and_then(|layer| layer.on_leak)
        };
        assert_eq!(on_leak("a"), None);
        settings.change(|values| values.common = Some(general(OnLeak::Restart)));
        assert_eq!(on_leak("a"), Some(OnLeak::Restart));
        settings.change(|values| values.below.insert(app.clone(), general(OnLeak::Park)));
        assert_eq!(on_leak("a"), Some(OnLeak::Park));
        settings.change(|values| values.files.insert(app.join("a"), own(OnLeak::Restart)));
        assert_eq!((on_leak("a"), on_leak("b")), (Some(OnLeak::Restart), Some(OnLeak::Park)));
        settings.change(|values| values.calls.insert(app.join("a"), own(OnLeak::Park)));
        assert_eq!(on_leak("a"), Some(OnLeak::Park));
    }

    #[test]
    fn a_second_exchange_takes_the_first_one_back() {
        let own =
            |on_leak| Arc::new(ChildLayer { on_leak: Some(on_leak), ..ChildLayer::default() });
        let general = |on_leak| GeneralLayer { child: own(on_leak), ..GeneralLayer::default() };
        let path = |name: &str| Path::root("app").join(name);
        let settings = Settings::default();
        settings.change(|values| {
            values.files = HashMap::from([("old", OnLeak::Park), ("both", OnLeak::Park)])
                .into_iter()
                .map(|(name, on_leak)| (path(name), own(on_leak)))
                .collect();
            values.calls.insert(path("called"), own(OnLeak::Park));
            values.configured = HashSet::from([path("old"), path("both")]);
        });
        let mut changes = ValueChanges {
            common: Some(Some(general(OnLeak::Restart))),
            below: vec![(path("below"), Some(general(OnLeak::Restart)))],
            files: vec![
                (path("old"), None),
                (path("both"), Some(own(OnLeak::Restart))),
                (path("new"), Some(own(OnLeak::Restart))),
                (path("none"), None),
            ],
            calls: vec![(path("called"), None)],
            supervisors: vec![(path("below"), Some(Arc::default()))],
            configured: vec![(path("old"), false), (path("both"), true), (path("new"), true)],
            configured_below: vec![(path("below"), true)],
        };
        let shown = |settings: &Settings| {
            let values = settings.values.lock();
            let layers = |layers: &HashMap<Path, Arc<ChildLayer>>| {
                let mut shown: Vec<_> =
                    layers.iter().map(|(path, layer)| (path.to_string(), layer.on_leak)).collect();
                shown.sort_by(|a, b| a.0.cmp(&b.0));
                shown
            };
            let mut configured: Vec<_> = values.configured.iter().map(Path::to_string).collect();
            configured.sort();
            (
                values.common.is_some(),
                values.below.len() + values.supervisors.len() + values.configured_below.len(),
                layers(&values.files),
                layers(&values.calls),
                configured,
            )
        };
        let before = shown(&settings);
        settings.exchange(&mut changes);
        let (restart, new) = (Some(OnLeak::Restart), "app/new".to_owned());
        let files = vec![("app/both".to_owned(), restart), (new.clone(), restart)];
        assert_eq!(shown(&settings), (true, 3, files, vec![], vec!["app/both".to_owned(), new]));
        settings.exchange(&mut changes);
        assert_eq!(shown(&settings), before);
    }
}
