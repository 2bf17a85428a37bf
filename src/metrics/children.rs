//! The metrics of the children of one supervisor, and under which path a child is counted.
//!
//! There is a handle for each child, so that an event builds no text. A child that the code declares has its own
//! path. The number of these is bounded, in contrast to children that are added while the tree runs. Those
//! children are counted under the path of their supervisor.
//!
//! # Invariants
//!
//! 1. A label is the path of a child such that it and all supervisors above it are declared. So no label has a
//!    serial number, and there are as many as declared paths.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Counter, Histogram, Label, Recorder, SharedString};

use super::list::{
    BUSY, DEAD_LETTERS, EXITS, FAILED_RUNS, LONG_POLLS, Metric, RESTART_DELAY, RESTARTS, STARTS,
    STOP,
};
use super::recorder::{self, counter, histogram, shared};
use crate::core::Key;
use crate::dead_letter::DeadLetterReason;
use crate::path::Path;
use crate::policy::StartCause;
use crate::sync::Mutex;

/// See the [module](self).
pub(crate) struct ChildMetrics {
    scope: Scope,
    /// The handles of the children with labels of their own, by name.
    declared: HashMap<Arc<str>, Handles>,
    /// The handles for all other children.
    others: Option<Handles>,
}

/// The handles of one label. They are made when the label is first used.
struct Handles {
    path: SharedString,
    starts: Counter,
    /// Registered with the first start, so that the first restart is a growth from 0.
    restarts: Counter,
    delay: Option<Histogram>,
    stop: Option<Histogram>,
    exits: Vec<(&'static str, Counter)>,
}

impl ChildMetrics {
    pub(crate) fn new(scope: &Scope) -> Self {
        Self { scope: scope.clone(), declared: HashMap::new(), others: None }
    }

    /// Counts the start of an incarnation.
    pub(crate) fn started(&mut self, child: &Arc<str>, cause: StartCause) {
        self.record(child, |handles, _| {
            handles.starts.increment(1);
            if matches!(cause, StartCause::Restart | StartCause::Group) {
                handles.restarts.increment(1);
            }
        });
    }

    /// Counts the end of an incarnation. `kind`: that of its exit.
    pub(crate) fn exited(&mut self, child: &Arc<str>, kind: &'static str) {
        self.record(child, |handles, recorder| handles.exits(kind, recorder).increment(1));
    }

    /// Records how long a child took to stop.
    pub(crate) fn stopped(&mut self, child: &Arc<str>, took: Duration) {
        self.record(child, |handles, recorder| handles.stop(recorder).record(took));
    }

    /// Records the delay before a restart.
    pub(crate) fn restarting(&mut self, child: &Arc<str>, delay: Duration) {
        self.record(child, |handles, recorder| handles.delay(recorder).record(delay));
    }

    /// Records how long the supervisor, which is a root, took to stop.
    pub(crate) fn root_stopped(&self, took: Duration) {
        recorder::with(|recorder| {
            let path = self.scope.label_of(None);
            histogram(recorder, STOP, vec![Label::new("path", path)]).record(took);
        });
    }

    fn record(&mut self, child: &Arc<str>, record: impl FnOnce(&mut Handles, &dyn Recorder)) {
        recorder::with(|recorder| record(self.handles(child, recorder), recorder));
    }

    fn handles(&mut self, child: &Arc<str>, recorder: &dyn Recorder) -> &mut Handles {
        let scope = &self.scope;
        if !scope.declares(child) {
            let make = || Handles::new(scope.label_of(None), recorder);
            return self.others.get_or_insert_with(make);
        }
        let entry = self.declared.entry(Arc::clone(child));
        entry.or_insert_with(|| Handles::new(scope.label_of(Some(child)), recorder))
    }
}

impl Drop for ChildMetrics {
    fn drop(&mut self) {
        recorder::discard((std::mem::take(&mut self.declared), self.others.take()));
    }
}

impl Handles {
    fn new(path: SharedString, recorder: &dyn Recorder) -> Self {
        let labels = || vec![Label::new("path", path.clone())];
        Self {
            starts: counter(recorder, STARTS, labels()),
            restarts: counter(recorder, RESTARTS, labels()),
            delay: None,
            stop: None,
            exits: Vec::new(),
            path,
        }
    }

    fn delay(&mut self, recorder: &dyn Recorder) -> &Histogram {
        let labels = || vec![Label::new("path", self.path.clone())];
        self.delay.get_or_insert_with(|| histogram(recorder, RESTART_DELAY, labels()))
    }

    fn stop(&mut self, recorder: &dyn Recorder) -> &Histogram {
        let labels = || vec![Label::new("path", self.path.clone())];
        self.stop.get_or_insert_with(|| histogram(recorder, STOP, labels()))
    }

    fn exits(&mut self, kind: &'static str, recorder: &dyn Recorder) -> &Counter {
        let known = self.exits.iter().position(|&(of, _)| of == kind);
        let at = known.unwrap_or_else(|| {
            let path = Label::new("path", self.path.clone());
            let labels = vec![path, Label::from_static_parts("reason", kind)];
            self.exits.push((kind, counter(recorder, EXITS, labels)));
            self.exits.len() - 1
        });
        &self.exits[at].1
    }
}

/// The names of declared children. Their keys are not used.
type Names = Arc<HashMap<Arc<str>, Key>>;

/// Under which path the children of a supervisor are counted.
#[derive(Clone)]
pub(crate) struct Scope(Arc<Shared>);

struct Shared {
    /// The supervisor, or the nearest one above that has a label.
    label: Path,
    /// Whether the supervisor has a label of its own.
    declared: bool,
    /// The names of the children with labels of their own.
    names: Mutex<Option<Names>>,
    /// The counters by the name of the child. Children without a label of their own have none.
    counters: Mutex<HashMap<Box<str>, Counters>>,
    /// The parts of seconds for which polls were busy that no counter has yet, by the same names.
    busy_rests: Mutex<HashMap<Box<str>, Duration>>,
}

/// Counters by the name of their metric and their label `reason`, if they have one.
type Counters = Vec<((&'static str, Option<&'static str>), Arc<Counter>)>;

impl Scope {
    /// `names`: those of the declared children; `None` for a dynamic supervisor.
    pub(crate) fn new(path: &Path, above: Option<&Self>, names: Option<&Names>) -> Self {
        let undeclared = above.filter(|above| !above.declares(path.name()));
        let label = undeclared.map_or(path, |above| &above.0.label).clone();
        let declared = undeclared.is_none();
        let names = Mutex::new(names.filter(|_| declared).cloned());
        let (counters, busy_rests) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { label, declared, names, counters, busy_rests }))
    }

    /// Replaces the names of the declared children, since the code was replaced.
    pub(crate) fn declare(&self, names: Option<&Names>) {
        *self.0.names.lock() = names.filter(|_| self.0.declared).cloned();
    }

    /// Whether the child with this name has a label of its own.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.0.names.lock().as_ref().is_some_and(|names| names.contains_key(name))
    }

    /// Returns the path of a child with a label of its own, or of all others.
    fn label_of(&self, child: Option<&str>) -> SharedString {
        match child {
            Some(child) => shared(self.0.label.join(child).as_str()),
            None => shared(self.0.label.as_str()),
        }
    }

    /// Counts a dead letter of this supervisor.
    pub(crate) fn dead_letter(&self, target: &Path, reason: DeadLetterReason) {
        self.add(target, DEAD_LETTERS, Some(reason.word()), 1);
    }

    /// Adds to a counter of a child. Zero registers it, so that its first growth is one from 0.
    pub(super) fn add(
        &self,
        child: &Path,
        metric: Metric,
        reason: Option<&'static str>,
        count: u64,
    ) {
        recorder::with(|recorder| {
            let child = self.child_with_label(child);
            self.counter(child, metric, reason, recorder).increment(count);
        });
    }

    /// Returns the name of the target, if it is a child with a label of its own.
    fn child_with_label<'a>(&self, target: &'a Path) -> Option<&'a str> {
        let child = target.as_str().strip_prefix(self.0.label.as_str())?.strip_prefix('/')?;
        self.declares(child).then_some(child)
    }

    /// Returns a counter, which is registered once. No lock is held while the recorder is called.
    fn counter(
        &self,
        child: Option<&str>,
        metric: Metric,
        reason: Option<&'static str>,
        recorder: &dyn Recorder,
    ) -> Arc<Counter> {
        let (name, what) = (child.unwrap_or_default(), (metric.name, reason));
        let find = |counters: &Counters| {
            let found = counters.iter().find(|&&(of, _)| of == what);
            found.map(|(_, counter)| Arc::clone(counter))
        };
        if let Some(known) = self.0.counters.lock().get(name).and_then(find) {
            return known;
        }
        let reason = reason.map(|reason| Label::from_static_parts("reason", reason));
        let labels = [Label::new("path", self.label_of(child))].into_iter().chain(reason);
        let made = Arc::new(counter(recorder, metric, labels.collect()));
        let kept = Arc::clone(&made);
        self.0.counters.lock().entry(name.into()).or_default().push((what, kept));
        made
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        recorder::discard(std::mem::take(&mut *self.counters.lock()));
    }
}

impl Scope {
    /// Counts a poll of a child that has lasted long.
    pub(crate) fn long_poll(&self, child: &Path) {
        self.add(child, LONG_POLLS, None, 1);
    }

    /// Adds to the time for which polls of a child kept threads busy. The part of a second that is left over is counted with
    /// a later call.
    pub(crate) fn busy(&self, child: &Path, time: Duration) {
        recorder::with(|recorder| {
            let child = self.child_with_label(child);
            let seconds = {
                let mut rests = self.0.busy_rests.lock();
                let rest = rests.entry(child.unwrap_or_default().into()).or_default();
                *rest = rest.saturating_add(time);
                let seconds = rest.as_secs();
                *rest -= Duration::from_secs(seconds);
                seconds
            };
            self.counter(child, BUSY, None, recorder).increment(seconds);
        });
    }

    /// Adds to the number of failed runs of a child. Zero registers the metric.
    pub(crate) fn failed_runs(&self, child: &Path, count: u64) {
        self.add(child, FAILED_RUNS, None, count);
    }
}
