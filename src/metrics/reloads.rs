//! Configurations that were applied or not.

use ::metrics::Label;

use super::list::RELOADS;
use super::recorder::{self, counter, shared};
use crate::path::Path;

/// Counts a configuration that was applied, or wasn't.
pub(crate) fn reloaded(root: &Path, result: &'static str) {
    recorder::with(|recorder| {
        let path = Label::new("path", shared(root.as_str()));
        let labels = vec![path, Label::from_static_parts("result", result)];
        counter(recorder, RELOADS, labels).increment(1);
    });
}
