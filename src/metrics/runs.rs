//! Runs of periodic children that have failed.

use super::list::FAILED_RUNS;
use super::scope::Scope;
use crate::path::Path;

impl Scope {
    /// Adds to the number of failed runs of a child. Zero registers the metric.
    pub(crate) fn failed_runs(&self, child: &Path, count: u64) {
        self.add(child, FAILED_RUNS, None, count);
    }
}
