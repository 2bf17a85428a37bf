//! What the builders collect. Nothing of it is checked yet.

use std::panic::Location;
use std::sync::Arc;
use std::{fmt, mem};

use crate::child::{ChildDefaults, ChildSpec};
use crate::dead_letter::DeadLetterOptions;
use crate::policy::{
    self, FailureCallback, FirstStart, Intensity, Preset, RandomFactory, SetTwice, SupervisorLayer,
};
use crate::runtime::RegistrationListener;

/// A supervisor of either kind, as its builder describes it.
#[derive(Clone)]
pub struct Description {
    pub(super) name: String,
    pub(super) dynamic: bool,
    pub(super) defined_at: &'static Location<'static>,
    pub(crate) options: Options,
    /// Empty if the supervisor is dynamic.
    pub(super) children: Vec<ChildSpec>,
}

impl Description {
    #[track_caller]
    pub(super) fn new(name: String, dynamic: bool) -> Self {
        let (options, defined_at) = (Options::default(), Location::caller());
        Self { name, dynamic, defined_at, options, children: Vec::new() }
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
pub(crate) struct Options {
    /// Those that a file can have, too.
    pub(super) values: SupervisorLayer,
    pub(super) first_start: Option<FirstStart>,
    pub(super) twice: Option<SetTwice>,
    pub(super) preset: Option<Preset>,
    pub(super) defaults: ChildDefaults,
    pub(super) random: Option<RandomFactory>,
    pub(super) on_child_failure: Option<FailureCallback>,
    pub(super) dead_letters: DeadLetterOptions,
    pub(crate) registration: Option<Arc<dyn RegistrationListener>>,
    pub(super) version: Option<Arc<str>>,
    /// Whether no thread watches the tree for blocked threads.
    pub(super) unwatched: bool,
    /// Whether the polls of the tree are timed, if that is set.
    pub(super) busy_time: Option<bool>,
}

impl Options {
    /// Sets the limit of all children together. `None`: there is none.
    pub(super) fn restarts(&mut self, restarts: Option<Intensity>) {
        let text = |restarts: &Option<Intensity>| match restarts {
            None => "unlimited_restarts()".to_owned(),
            Some(intensity) => intensity.to_string(),
        };
        policy::set(&mut self.values.intensity, restarts, &mut self.twice, text);
    }
}
