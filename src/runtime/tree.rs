//! What all supervisors of a tree share: its settings and registry, its counters, and its leaked children.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::log_bounds::LogBounds;
use super::registry::Registry;
use super::settings::Settings;
use super::watch::WatchState;
use crate::child::BusySwitch;
use crate::clock::Clocks;
use crate::core::{IncarnationNumber, Key};
use crate::path::Path;
use crate::sync::Mutex;

/// See the [module](self). `T` is what is shared of one supervisor.
#[derive(Debug)]
pub(crate) struct Tree<T> {
    /// The name of the root.
    root: Arc<str>,
    pub(super) registry: Registry<T>,
    pub(super) leaks: Leaks,
    pub(crate) settings: Arc<Settings>,
    /// The handlers of the event bus, created by its first use.
    #[cfg(feature = "bus")]
    pub(crate) bus: std::sync::OnceLock<Arc<crate::bus::BusShared>>,
    #[cfg(feature = "service")]
    pub(crate) service: crate::service::ServiceTables,
    pub(crate) log_bounds: LogBounds,
    /// The sequence number of the last event.
    seq: AtomicU64,
    /// How many event subscriptions exist.
    pub(super) listeners: Arc<AtomicUsize>,
    /// Takes the requests to stop the root, if that runs as a program.
    pub(crate) stops: Option<Arc<StopRequests>>,
    pub(crate) counters: Counters,
    pub(crate) watch: WatchState,
    pub(crate) busy: BusySwitch,
    /// Wraps the factory of each child, in a tree under test. Set before the root runs.
    #[cfg(feature = "testing")]
    pub(crate) wrapper: OnceLock<Box<dyn crate::child::WrapFactory>>,
    /// Read when the tree was started.
    clocks: Clocks,
    /// The runtime of all its tasks. `None` in tests without one.
    runtime: Option<Handle>,
}

impl<T> Tree<T> {
    pub(super) fn new(
        root: Arc<str>,
        settings: Arc<Settings>,
        listeners: Arc<AtomicUsize>,
        clocks: Clocks,
        stops: Option<Arc<StopRequests>>,
        busy: BusySwitch,
    ) -> Self {
        Self {
            root,
            registry: Registry::new(),
            leaks: Leaks::default(),
            settings,
            #[cfg(feature = "bus")]
            bus: std::sync::OnceLock::new(),
            #[cfg(feature = "service")]
            service: crate::service::ServiceTables::default(),
            log_bounds: LogBounds::default(),
            seq: AtomicU64::new(0),
            listeners,
            stops,
            counters: Counters::default(),
            watch: WatchState::default(),
            busy,
            #[cfg(feature = "testing")]
            wrapper: OnceLock::new(),
            clocks,
            runtime: Handle::try_current().ok(),
        }
    }

    /// Returns the runtime that the tree was started on. A child may be called on a different one.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if the tree wasn't started on one.
    pub(crate) fn runtime(&self) -> Handle {
        self.runtime.clone().unwrap_or_else(Handle::current)
    }

    /// Returns the wall clock time of `at`.
    pub(crate) fn wall_clock(&self, at: Instant) -> SystemTime {
        self.clocks.wall_clock(at)
    }

    /// Returns whether an event subscription exists anywhere in the tree.
    pub(crate) fn has_listeners(&self) -> bool {
        // Relaxed: a subscriber takes its snapshot through the supervisors' inboxes afterwards, which
        // orders it after the events that it missed.
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Returns when the tree was started.
    pub(crate) fn began(&self) -> Instant {
        self.clocks.read_at()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq.load(Ordering::Relaxed)
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether these names are a full path: the first is the name of the root, and more follow.
    pub(crate) fn is_full_path(&self, names: &str) -> bool {
        names.as_bytes().get(self.root.len()) == Some(&b'/') && names.starts_with(&*self.root)
    }

    /// Returns the supervisor that runs at `path`.
    pub(crate) fn supervisor(&self, path: &Path) -> Option<Arc<T>> {
        self.registry.get(path)
    }

    /// Returns all supervisors that run.
    pub(crate) fn supervisors(&self) -> Vec<Arc<T>> {
        self.registry.all()
    }

    /// Returns some supervisors that run, in any order.
    pub(crate) fn some_supervisors(&self, max: usize) -> Vec<Arc<T>> {
        self.registry.some(max)
    }

    /// Returns the nearest running supervisor above `path`, and its path.
    pub(crate) fn nearest(&self, path: &Path) -> Option<(Path, Arc<T>)> {
        self.registry.nearest(path)
    }
}

/// Requests to stop a root that runs as a program, which stops it in stages.
#[derive(Debug, Default)]
pub(crate) struct StopRequests {
    /// The cause of the first request.
    first: OnceLock<Arc<str>>,
    requested: Notify,
}

impl StopRequests {
    pub(crate) fn request(&self, cause: Arc<str>) {
        if self.first.set(cause).is_ok() {
            self.requested.notify_one();
        }
    }

    /// Waits for the first request, and returns its cause. Only one caller may wait.
    pub(crate) async fn requested(&self) -> Arc<str> {
        loop {
            if let Some(cause) = self.first.get() {
                return Arc::clone(cause);
            }
            self.requested.notified().await;
        }
    }
}

/// The counts of one tree.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) starts: Counter,
    /// The starts that were not the first of their child.
    pub(crate) restarts: Counter,
    pub(crate) failures: Counter,
}

/// A number that only grows, in steps of one.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An incarnation of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeakId {
    /// The address of the supervisor's shared state, which the incarnation keeps alive.
    pub(super) supervisor: usize,
    pub(super) key: Key,
    pub(super) incarnation: IncarnationNumber,
}

/// The leaked children of a tree.
#[derive(Debug, Default)]
pub(super) struct Leaks(Mutex<LeakTable>);

#[derive(Debug, Default)]
struct LeakTable {
    /// The leaked children.
    leaked: HashMap<LeakId, Leak>,
    next: u64,
}

#[derive(Debug)]
struct Leak {
    /// Increases with each leak.
    number: u64,
    path: Path,
    /// It only waits for a thread that another child blocks.
    waits: bool,
}

impl Leaks {
    pub(super) fn insert(&self, id: LeakId, path: Path, waits: bool) {
        let mut table = self.0.lock();
        let number = table.next;
        table.next += 1;
        table.leaked.insert(id, Leak { number, path, waits });
    }

    pub(super) fn remove(&self, id: LeakId) -> Option<Path> {
        self.0.lock().leaked.remove(&id).map(|leak| leak.path)
    }

    /// Returns the paths of the leaked children below `path`, in the order in which they leaked, except those that only
    /// wait for a thread.
    pub(super) fn below(&self, path: &Path) -> Vec<Path> {
        let mut below: Vec<_> = {
            let table = self.0.lock();
            if table.leaked.is_empty() {
                return Vec::new();
            }
            let prefix = format!("{path}/");
            let below = |leak: &&Leak| !leak.waits && leak.path.as_str().starts_with(&prefix);
            let leaked = table.leaked.values().filter(below);
            leaked.map(|leak| (leak.number, leak.path.clone())).collect()
        };
        below.sort_unstable_by_key(|&(number, _)| number);
        below.into_iter().map(|(_, path)| path).collect()
    }
}
