//! An iterator over the delays of a backoff, for use outside of a tree.

use std::fmt;
use std::iter::FusedIterator;
use std::time::Duration;

use super::position::RunningIterator;
use super::{Backoff, CurvePosition};
use crate::policy::random::Random;

/// An iterator over the delays of a [`Backoff`], created by [`Backoff::delays`].
///
/// It never ends, except for the backoff of an iterator that ends. Settings that depend on a
/// supervisor have no effect: [`first_at_once`](Backoff::first_at_once),
/// [`at_once_after_reset`](Backoff::at_once_after_reset), and the rules for resets.
///
/// The example of [`Backoff::delays`] reads the first four.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Delays {
    backoff: Backoff,
    position: CurvePosition,
    iterator: RunningIterator,
    random: Box<dyn Random>,
    over: bool,
}

impl Delays {
    pub(super) fn new(backoff: Backoff) -> Self {
        let random = Box::new(fastrand::Rng::new());
        let (position, iterator) = (CurvePosition::default(), RunningIterator::default());
        Self { backoff, position, iterator, random, over: false }
    }

    /// Sets the random source of the jitter, for example a seeded one, in place of the backoff's
    /// [own](Backoff::random).
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.backoff.random = None;
        self.random = Box::new(random);
        self
    }

    /// Resets to the first delay.
    pub fn reset(&mut self) {
        self.position.reset();
        self.iterator = RunningIterator::default();
        self.over = false;
    }
}

impl Iterator for Delays {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.over {
            return None;
        }
        let wait = self.backoff.wait_at(self.position, &mut self.iterator, &mut *self.random);
        match wait {
            Some(wait) => self.position.advance(wait),
            None => self.over = true,
        }
        wait
    }
}

impl FusedIterator for Delays {}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays")
            .field("backoff", &self.backoff)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
