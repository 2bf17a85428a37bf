//! Positions on the curve of a backoff.

use std::fmt;
use std::time::Duration;

use super::curve::Waits;
use crate::panic::catch_panic;

/// The position of one child on the curve of its backoff.
#[derive(Default)]
pub(crate) struct CurvePosition {
    /// The index of the next delay.
    pub(super) index: u32,
    /// The delay that was drawn last.
    pub(super) previous: Option<Duration>,
    /// The rest of an iterator, after `index` delays.
    ///
    /// Without it, the iterator is created again and skips to `index`.
    pub(super) left: Option<Box<Waits>>,
}

impl CurvePosition {
    /// Resets to the first delay.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Halves the index `times` times.
    pub(crate) fn halve(&mut self, times: u32) {
        self.index = self.index.checked_shr(times).unwrap_or(0);
        self.previous = None;
        self.left = None;
    }

    /// Returns the next delay of an iterator; `None` if it has ended or panicked.
    pub(super) fn advance(&mut self, fresh: impl FnOnce() -> Box<Waits>) -> Option<Duration> {
        let index = usize::try_from(self.index).unwrap_or(usize::MAX);
        let left = self.left.take();
        let next = || match left {
            Some(mut left) => left.next().map(|wait| (wait, left)),
            None => {
                let mut left = fresh();
                left.nth(index).map(|wait| (wait, left))
            }
        };
        let (wait, left) = catch_panic(next)??;
        self.left = Some(left);
        Some(wait)
    }
}

/// A clone has no iterator, because iterators can't be cloned.
impl Clone for CurvePosition {
    fn clone(&self) -> Self {
        Self { index: self.index, previous: self.previous, left: None }
    }
}

impl fmt::Debug for CurvePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurvePosition").field("index", &self.index).finish_non_exhaustive()
    }
}
