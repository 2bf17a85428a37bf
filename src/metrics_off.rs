//! The module `metrics` without its feature: nothing is counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::core::Key;
use crate::dead_letter::DeadLetterReason;
use crate::path::Path;
use crate::policy::StartCause;

type Names = Arc<HashMap<Arc<str>, Key>>;

/// Under which path the children of a supervisor are counted.
#[derive(Clone)]
pub(crate) struct Scope;

impl Scope {
    pub(crate) fn new(_path: &Path, _above: Option<&Self>, _names: Option<&Names>) -> Self {
        Self
    }

    pub(crate) fn declare(&self, _names: Option<&Names>) {}

    pub(crate) fn dead_letter(&self, _target: &Path, _reason: DeadLetterReason) {}

    pub(crate) fn failed_runs(&self, _child: &Path, _count: u64) {}
}

/// The metrics of one supervisor's children.
pub(crate) struct ChildMetrics;

impl ChildMetrics {
    pub(crate) fn new(_scope: &Scope) -> Self {
        Self
    }

    pub(crate) fn started(&mut self, _child: &Arc<str>, _cause: StartCause) {}

    pub(crate) fn exited(&mut self, _child: &Arc<str>, _kind: &'static str) {}

    pub(crate) fn stopped(&mut self, _child: &Arc<str>, _took: Duration) {}

    pub(crate) fn restarting(&mut self, _child: &Arc<str>, _delay: Duration) {}

    pub(crate) fn root_stopped(&self, _took: Duration) {}
}

pub(crate) fn is_installed() -> bool {
    false
}

#[cfg(feature = "config")]
pub(crate) fn reloaded(_root: &Path, _result: &'static str) {}
