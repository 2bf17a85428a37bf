//! Under which path the children of a supervisor are counted.
//!
//! A child that the code declares has its own path. The number of these is bounded, in contrast to that of
//! children that are added while the tree runs. Those are counted under the path of their supervisor.
//!
//! # Invariants
//!
//! 1. A label is the path of a child such that it and all supervisors above it are declared. So no label has a
//!    serial number, and there are as many as declared paths.

use std::collections::HashMap;
use std::sync::Arc;

use ::metrics::{Counter, Label, Recorder, SharedString};

use super::list::{DEAD_LETTERS, Metric};
use super::recorder::{self, counter, shared};
use crate::core::Key;
use crate::dead_letter::DeadLetterReason;
use crate::path::Path;
use crate::sync::Mutex;

/// The names of declared children. Their keys are not used.
type Names = Arc<HashMap<Arc<str>, Key>>;

/// See the [module](self).
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
        Self(Arc::new(Shared { label, declared, names, counters: Mutex::default() }))
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
    pub(super) fn label_of(&self, child: Option<&str>) -> SharedString {
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
