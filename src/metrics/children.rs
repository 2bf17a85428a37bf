//! The metrics of the children of one supervisor, with a handle for each, so that an event builds no text.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Counter, Histogram, Label, Recorder, SharedString};

use super::list::{EXITS, RESTART_DELAY, RESTARTS, STARTS, STOP};
use super::recorder::{self, counter, histogram};
use super::scope::Scope;
use crate::policy::StartCause;

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
