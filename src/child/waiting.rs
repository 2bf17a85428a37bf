//! The guard of a child that waits on purpose.

use std::fmt;
use std::sync::Arc;

use super::incarnation::Incarnation;
use crate::clock::now;

/// Suspends the watchdog of a child; see [`Context::waiting`](crate::Context::waiting).
///
/// The example of [`Context::waiting`](crate::Context::waiting) holds one.
#[must_use = "the child counts as waiting only until the guard is dropped"]
pub struct Waiting {
    /// `None` if the child has no watchdog.
    watched: Option<Arc<Incarnation>>,
}

impl Waiting {
    pub(super) fn new(incarnation: Arc<Incarnation>) -> Self {
        let watched = Some(incarnation).filter(|incarnation| incarnation.is_watched());
        if let Some(incarnation) = &watched {
            incarnation.cell.begin_waiting();
        }
        Self { watched }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(incarnation) = &self.watched {
            incarnation.cell.end_waiting(now());
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}
