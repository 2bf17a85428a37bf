//! Where somebody is on a backoff's curve.

use std::fmt;
use std::time::Duration;

use super::curve::Waits;
use crate::panic::catch_panic;

/// The place of one child: what [`Backoff`](super::Backoff) knows nothing of.
#[derive(Default)]
pub(crate) struct Place {
    /// The next index.
    pub(super) index: u32,
    /// The wait that was drawn last.
    pub(super) previous: Option<Duration>,
    /// What is left of an iterator that was asked for all waits before `index`. Without it the
    /// waits before are made once more, so it is no more than a short cut.
    pub(super) left: Option<Box<Waits>>,
}

impl Place {
    /// Back to the first wait.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// So many indexes have been forgotten.
    pub(crate) fn halve(&mut self, times: u32) {
        self.index = self.index.checked_shr(times).unwrap_or(0);
        self.previous = None;
        self.left = None;
    }

    /// The next wait of an iterator; `None` if there are no more, or if it panicked.
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

/// Without the short cut.
impl Clone for Place {
    fn clone(&self) -> Self {
        Self { index: self.index, previous: self.previous, left: None }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("index", &self.index).finish_non_exhaustive()
    }
}
