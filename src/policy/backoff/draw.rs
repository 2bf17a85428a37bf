//! Delays of a backoff: the curve, then jitter and bounds; and the rules for resets.

use std::time::Duration;

use super::curve::Shape;
use super::position::RunningIterator;
use super::{Backoff, CurvePosition, Delays, Jitter, Reset};
use crate::policy::random::Random;

/// The shortest default time for which a child must be active until its backoff resets.
const MIN_RESET: Duration = Duration::from_secs(10);

impl Backoff {
    /// Returns the delay before a restart, where `index` is 0 for the first restart in a row.
    ///
    /// `None` means that there are no more delays and the child is given up. At most one number is drawn
    /// from `random`, or from the backoff's [own source](Self::random), and only if the delay is random.
    /// For a [`compounding`](Self::compounding) backoff, the previous delay is taken to be the one without
    /// jitter.
    ///
    /// # Panics
    ///
    /// If a value is invalid. [`check`](Self::check) returns the problem as an error instead.
    #[track_caller]
    pub fn delay(&self, index: u32, random: &mut dyn Random) -> Option<Duration> {
        self.assert_valid();
        self.delay_at(index, random)
    }

    /// Returns what [`delay`](Self::delay) returns, whether the values are valid or not.
    pub(super) fn delay_at(&self, index: u32, random: &mut dyn Random) -> Option<Duration> {
        let previous = index.checked_sub(1).and_then(|before| self.base(before));
        self.draw_from(random, |random| self.drawn(index, previous, random))
    }

    /// Returns an iterator over all delays, for a retry loop outside of a tree.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    /// use verger::policy::Jitter;
    ///
    /// let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(1));
    /// let exact = backoff.jitter(Jitter::None);
    /// let waits: Vec<_> = exact.delays().take(4).map(|wait| wait.as_millis()).collect();
    /// assert_eq!(waits, [200, 400, 800, 1_000]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a value is invalid, such as a `max` below `min`. [`check`](Self::check) returns the problem as
    /// an error instead; call it first if the values come from outside of the program.
    #[track_caller]
    pub fn delays(&self) -> Delays {
        self.assert_valid();
        Delays::new(self.clone())
    }

    /// Returns the delay at a position, which stays. `iterator`: what is left of this backoff's iterator, if it
    /// has one.
    pub(crate) fn wait_at(
        &self,
        position: CurvePosition,
        iterator: &mut RunningIterator,
        random: &mut dyn Random,
    ) -> Option<Duration> {
        self.draw_from(random, |random| match &self.shape {
            Shape::Iterator(factory) => self.bounded(iterator.at(position.index, factory)?, random),
            _ => self.drawn(position.index, position.previous, random),
        })
    }

    /// Returns the first delay, without jitter.
    pub(crate) fn first_wait(&self) -> Duration {
        self.base(0).unwrap_or_default()
    }

    /// Adds jitter to a delay that isn't on the curve, without shortening it.
    pub(crate) fn spread(&self, wait: Duration, random: &mut dyn Random) -> Duration {
        self.draw_from(random, |random| self.jitter.apply(wait, random).max(wait))
    }

    /// Panics if a value is invalid, so that no caller computes delays with values other than it wrote.
    #[track_caller]
    fn assert_valid(&self) {
        if let Err(problem) = self.check() {
            panic!("{problem}");
        }
    }

    /// Calls `draw` with the backoff's own source, or with the given one.
    fn draw_from<R>(&self, given: &mut dyn Random, draw: impl FnOnce(&mut dyn Random) -> R) -> R {
        match &self.random {
            Some(own) => draw(&mut &*own),
            None => draw(given),
        }
    }

    fn drawn(
        &self,
        index: u32,
        previous: Option<Duration>,
        random: &mut dyn Random,
    ) -> Option<Duration> {
        self.bounded(self.shape.at(index, previous, random)?, random)
    }

    fn bounded(&self, base: Duration, random: &mut dyn Random) -> Option<Duration> {
        // Neither jitter nor bounds change a delay of zero.
        if base.is_zero() && !matches!(self.jitter, Jitter::AdditiveAbs(_)) && !self.hard_floor {
            return Some(base);
        }
        let cap = self.longest_wait().unwrap_or(Duration::MAX);
        let base = if self.jitter_first { base } else { base.min(cap) };
        let mut wait = self.jitter.apply(base, random);
        if self.hard_floor {
            wait = wait.max(self.shape.min().unwrap_or_default());
        }
        Some(if self.soft_cap { wait } else { wait.min(cap) })
    }

    /// Returns the delay without jitter, as if none had been drawn before.
    pub(super) fn base(&self, index: u32) -> Option<Duration> {
        let cap = self.longest_wait().unwrap_or(Duration::MAX);
        let wait = match &self.shape {
            Shape::Exponential { min, factor, max, .. } => {
                let (min, factor, max) = (*min, *factor, *max);
                let plain = Shape::Exponential { min, factor, max, compounding: false };
                plain.at(index, None, &mut || 0.0)
            }
            shape => shape.at(index, None, &mut || 0.0),
        };
        wait.map(|wait| wait.min(cap))
    }

    /// Returns the upper bound of all delays, unless the cap is soft.
    pub(in crate::policy) fn longest_wait(&self) -> Option<Duration> {
        shorter(self.shape.max(), self.cap)
    }

    /// Returns the delay that the curve ends at, without jitter, if it is known.
    pub(super) fn last(&self) -> Option<Duration> {
        shorter(self.shape.last(), self.cap)
    }

    /// Whether the first restart in a row has no delay; `after_reset`: whether the child had been
    /// healthy before.
    pub(crate) const fn is_at_once(&self, after_reset: bool) -> bool {
        if after_reset { self.at_once_after_reset } else { self.first_at_once }
    }

    /// Returns for how long a child must be active until its backoff resets; `None`: time doesn't reset
    /// it.
    pub(crate) fn resets_after(&self) -> Option<Duration> {
        if self.resets.is_empty() {
            return Some(self.last().unwrap_or_default().max(MIN_RESET));
        }
        let lives = self.resets.iter().filter_map(|rule| match rule {
            Reset::ActiveFor(life) => Some(*life),
            _ => None,
        });
        lives.min()
    }

    /// Whether this rule is set.
    pub(crate) fn resets_on(&self, rule: Reset) -> bool {
        self.resets.contains(&rule)
    }

    /// Returns the time after which half of the failures are forgotten.
    pub(crate) fn half_life(&self) -> Option<Duration> {
        let half_lives = self.resets.iter().filter_map(|rule| match rule {
            Reset::Decay { half_life } => Some(*half_life),
            _ => None,
        });
        half_lives.min()
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
