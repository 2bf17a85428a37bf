//! What the builders collect. Nothing of it is checked yet.

use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::child::{ChildDefaults, ChildSpec};
use crate::dead_letter::DeadLetterOptions;
use crate::policy::{
    self, AutoShutdown, FailureCallback, FirstStart, Intensity, OnExhausted, Preset, RandomFactory,
    SetTwice, Start, Strategy,
};
use crate::runtime::Registration;

/// A supervisor of either kind, as its builder describes it.
#[derive(Clone)]
pub struct Description {
    pub(super) name: String,
    pub(super) dynamic: bool,
    pub(super) defined_at: &'static Location<'static>,
    pub(super) options: Options,
    /// Empty if the supervisor is dynamic.
    pub(super) children: Vec<ChildSpec>,
}

impl Description {
    #[track_caller]
    pub(super) fn new(name: String, dynamic: bool) -> Self {
        let (options, defined_at) = (Options::default(), Location::caller());
        Self { name, dynamic, defined_at, options, children: Vec::new() }
    }

    /// Replaces each child by the result of `change`.
    #[cfg(feature = "testing")]
    pub(super) fn map_children(mut self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Self {
        self.children = mem::take(&mut self.children).into_iter().map(change).collect();
        self
    }
}

/// Without the place, so that equal descriptions have equal texts.
impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dynamic, defined_at: _, options, children } = self;
        f.debug_struct("Description")
            .field("name", name)
            .field("dynamic", dynamic)
            .field("options", options)
            .field("children", children)
            .finish()
    }
}

/// Without recursion, since a description can be deeper than a tree that may be built.
impl Drop for Description {
    fn drop(&mut self) {
        let mut specs = mem::take(&mut self.children);
        while let Some(mut spec) = specs.pop() {
            spec.take_specs(&mut specs);
        }
    }
}

/// The options that both kinds of supervisors have.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) strategy: Strategy,
    pub(super) auto_shutdown: AutoShutdown,
    pub(super) start: Start,
    pub(super) first_start: Option<FirstStart>,
    pub(super) on_exhausted: Option<OnExhausted>,
    pub(super) restarts: Option<Restarts>,
    pub(super) count_failed_starts: Option<bool>,
    pub(super) twice: Option<SetTwice>,
    pub(super) leak_timeout: Option<Duration>,
    pub(super) stop_deadline: Option<Duration>,
    pub(super) max_children: Option<usize>,
    pub(super) preset: Option<Preset>,
    pub(super) defaults: ChildDefaults,
    pub(super) random: Option<RandomFactory>,
    pub(super) on_child_failure: Option<FailureCallback>,
    pub(super) dead_letters: DeadLetterOptions,
    pub(super) registration: Option<Arc<dyn Registration>>,
    pub(super) version: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Restarts {
    Unlimited,
    Within(Intensity),
}

impl Options {
    pub(super) fn restarts(&mut self, restarts: Restarts) {
        let text = |restarts: &Restarts| match restarts {
            Restarts::Unlimited => "unlimited_restarts()".to_owned(),
            Restarts::Within(intensity) => intensity.to_string(),
        };
        policy::set(&mut self.restarts, restarts, &mut self.twice, text);
    }
}
