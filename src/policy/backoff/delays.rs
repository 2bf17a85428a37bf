//! The waits of a backoff in order, for whoever has no supervisor.

use std::fmt;
use std::iter::FusedIterator;
use std::time::Duration;

use super::{Backoff, Place};
use crate::policy::random::Random;

/// The waits of a [`Backoff`], from the first on; made by [`Backoff::delays`].
///
/// Never ends, unless the backoff is one of an iterator that does. What a supervisor decides by
/// itself (that a failure is the first, that a child was well) isn't known here.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Delays {
    backoff: Backoff,
    place: Place,
    random: Box<dyn Random>,
    over: bool,
}

impl Delays {
    pub(super) fn new(backoff: Backoff) -> Self {
        let random = Box::new(fastrand::Rng::new());
        Self { backoff, place: Place::default(), random, over: false }
    }

    /// Draws the jitter from another source, a seeded one for example.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Box::new(random);
        self
    }

    /// Begins again at the first wait.
    pub fn reset(&mut self) {
        self.place.reset();
        self.over = false;
    }
}

impl Iterator for Delays {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.over {
            return None;
        }
        let wait = self.backoff.next_wait(&mut self.place, &mut *self.random);
        self.over = wait.is_none();
        wait
    }
}

impl FusedIterator for Delays {}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays")
            .field("backoff", &self.backoff)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
