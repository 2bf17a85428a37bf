//! Drawing the delays of a backoff: the position on the curve, then jitter and bounds; and upper bounds of what may be
//! drawn, for limits that can't be exceeded.
//!
//! # Invariants
//!
//! 1. A position is two plain values, so a copy of it continues the curve as the original does. The iterator
//!    isn't part of it: a new one skips to the position.

use std::fmt;
use std::iter::FusedIterator;
use std::time::Duration;

use super::curve::{Factory, Shape, Waits};
use super::{Backoff, Jitter, Reset};
use crate::panic::{Foreign, catch_panic};
use crate::policy::random::Random;

/// The shortest default time for which a child must be active until its backoff resets.
const MIN_RESET: Duration = Duration::from_secs(10);

/// The number of delays after which a curve is treated as flat.
const FOLLOWED: u32 = 1024;

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
        let cap = self.upper_bound();
        let base = if self.jitter_first { base } else { base.min(cap) };
        let mut wait = self.jitter.apply(base, random);
        if self.hard_floor {
            wait = wait.max(self.shape.min().unwrap_or_default());
        }
        Some(if self.soft_cap { wait } else { wait.min(cap) })
    }

    /// Returns the delay without jitter, as if none had been drawn before.
    pub(super) fn base(&self, index: u32) -> Option<Duration> {
        self.shape.base(index).map(|wait| wait.min(self.upper_bound()))
    }

    /// Returns the upper bound of all delays, unless the cap is soft.
    fn upper_bound(&self) -> Duration {
        let of_curve = self.shape.max().unwrap_or(Duration::MAX);
        of_curve.min(self.cap.unwrap_or(Duration::MAX))
    }

    /// Returns the delay that the curve ends at, without jitter, if it is known.
    pub(super) fn last(&self) -> Option<Duration> {
        self.shape.last().or(self.cap).map(|last| last.min(self.upper_bound()))
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

impl Backoff {
    /// Returns the largest number of restarts of one child within a closed window of `period`.
    ///
    /// The child fails `life` after each start, and each restart is charged at the failure. Returns
    /// `u64::MAX` if there may be no delay and no life, or if the delays are unknown and there may be no
    /// life. Without jitter, the result is exact if the curve reaches its last value or exceeds `period`
    /// within 1024 restarts, and if the backoff doesn't reset. Otherwise it is an upper bound, unless the
    /// backoff resets.
    pub(crate) fn restarts_within(&self, period: Duration, life: Duration) -> u64 {
        let (Some(last), false) = (self.last(), self.has_unknown_resets()) else {
            return 1_u64.saturating_add(fits(period, life));
        };
        if self.begins_again_at_once() {
            let wait = if self.is_ever_at_once() { Duration::ZERO } else { self.shortest(0) };
            return 1_u64.saturating_add(fits(period, wait.saturating_add(life)));
        }
        let mut left = period;
        let mut restarts = 1;
        if self.is_ever_at_once() {
            let Some(rest) = left.checked_sub(life) else { return restarts };
            left = rest;
            restarts += 1;
        }
        for index in 0..FOLLOWED {
            let delay = self.shortest(index).saturating_add(life);
            if self.base(index) == Some(last) {
                return fits(left, delay).saturating_add(restarts);
            }
            let Some(rest) = left.checked_sub(delay) else { return restarts };
            left = rest;
            restarts += 1;
        }
        fits(left, self.shortest(FOLLOWED).saturating_add(life)).saturating_add(restarts)
    }

    /// Returns an upper bound of the sum of the first `count` delays.
    pub(crate) fn longest_waits(&self, count: u32) -> Duration {
        let longest = self.longest_possible();
        // Otherwise a delay also depends on what was drawn.
        let is_known = !matches!(self.shape, Shape::Slots(_)) && !self.shape.is_compounding();
        let followed = if is_known { count.min(FOLLOWED) } else { 0 };
        // A custom curve may fall again.
        let flat = self.last().filter(|_| self.shape.never_falls());
        let (mut sum, mut left) = (Duration::ZERO, count);
        for index in 0..followed {
            let base = self.base(index);
            if base.is_some() && base == flat {
                break;
            }
            sum = sum.saturating_add(self.longest_of(base.unwrap_or_default()));
            left -= 1;
        }
        sum.saturating_add(longest.saturating_mul(left))
    }

    /// Returns an upper bound of every delay, as far as the curve has one.
    pub(crate) fn longest_possible(&self) -> Duration {
        self.longest_of(self.last().unwrap_or_default())
    }

    /// Returns the longest delay that the jitter makes of a delay of the curve.
    fn longest_of(&self, base: Duration) -> Duration {
        let (_, most) = self.jitter.bounds(base);
        if self.soft_cap { most } else { most.min(self.upper_bound()) }
    }

    /// Returns the shortest delays of a child that fails as soon as it is started; `None` if they are
    /// unknown.
    pub(crate) fn shortest_waits(&self) -> Option<impl Iterator<Item = Duration>> {
        self.last().filter(|_| !self.has_unknown_resets())?;
        let again = self.begins_again_at_once();
        let at_once = self.is_ever_at_once();
        let curve = (0..u32::MAX).map(move |index| match (again, at_once) {
            (true, true) => Duration::ZERO,
            (true, false) => self.shortest(0),
            (false, _) => self.shortest(index),
        });
        Some(at_once.then_some(Duration::ZERO).into_iter().chain(curve))
    }

    /// Whether the delays may come to an end, which gives up the child.
    pub(crate) fn may_end(&self) -> bool {
        self.shape.last().is_none()
    }

    /// Whether there is never a delay.
    pub(crate) fn is_none(&self) -> bool {
        // A curve without an end isn't asked.
        self.last() == Some(Duration::ZERO) && self.longest_waits(1).is_zero()
    }

    /// Whether the backoff resets at each start, regardless of how long the child was active.
    pub(crate) fn begins_again_at_once(&self) -> bool {
        self.resets_after().is_some_and(|life| life.is_zero()) || self.resets_on(Reset::OnReady)
    }

    /// Whether the backoff can reset without the child having been active for some time.
    fn has_unknown_resets(&self) -> bool {
        self.resets_on(Reset::OnAck) || self.half_life().is_some()
    }

    fn is_ever_at_once(&self) -> bool {
        self.first_at_once || self.at_once_after_reset
    }

    /// Returns the shortest possible delay at `index`.
    fn shortest(&self, index: u32) -> Duration {
        let base = self.base(index).unwrap_or_default();
        let (mut least, _) = self.jitter.bounds(base);
        // The jitter of one delay also shortens the next, down to the first delay.
        if least < base && self.shape.is_compounding() {
            (least, _) = self.jitter.bounds(self.base(0).unwrap_or_default());
        }
        if self.hard_floor { least.max(self.shape.min().unwrap_or_default()) } else { least }
    }

    /// Returns the longest delay, without jitter.
    #[cfg(test)]
    pub(crate) fn longest(&self) -> Duration {
        self.last().expect("a curve with an end")
    }

    /// Returns the first index at which the last delay is reached, for short curves.
    #[cfg(test)]
    pub(crate) fn flat_from(&self) -> u32 {
        (0..).find(|&index| self.base(index) == self.last()).expect("the curve gets there")
    }
}

/// Returns how often `delay` fits into `period`.
fn fits(period: Duration, delay: Duration) -> u64 {
    let times = period.as_nanos().checked_div(delay.as_nanos()).unwrap_or(u128::MAX);
    u64::try_from(times).unwrap_or(u64::MAX)
}

/// The position of one child on the curve of its backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CurvePosition {
    /// The index of the next delay.
    pub(super) index: u32,
    /// The delay that was drawn last.
    pub(super) previous: Option<Duration>,
}

impl CurvePosition {
    /// Resets to the first delay.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Halves the index `times` times.
    pub(crate) fn halve(&mut self, times: u32) {
        self.index = self.index.checked_shr(times).unwrap_or(0);
        self.previous = None;
    }

    /// Moves behind this delay.
    pub(crate) fn advance(&mut self, drawn: Duration) {
        self.previous = Some(drawn);
        self.index = self.index.saturating_add(1);
    }
}

/// The rest of a backoff's iterator, after some delays.
#[derive(Default)]
pub(crate) struct RunningIterator(Option<IteratorRest>);

struct IteratorRest {
    factory: Foreign<Factory>,
    taken: u32,
    rest: Box<Waits>,
}

impl RunningIterator {
    /// Whether there is no iterator.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the delay of the iterator at `index`; `None` if it has ended or panicked.
    pub(super) fn at(&mut self, index: u32, factory: &Foreign<Factory>) -> Option<Duration> {
        // The child may have a different backoff by now, or may have moved back on the curve.
        let continues = |it: &IteratorRest| it.taken == index && it.factory == *factory;
        let left = self.0.take().filter(continues).map(|it| it.rest);
        let next = || match left {
            Some(mut rest) => rest.next().map(|wait| (wait, rest)),
            None => {
                let mut rest = factory();
                let skipped = usize::try_from(index).unwrap_or(usize::MAX);
                rest.nth(skipped).map(|wait| (wait, rest))
            }
        };
        let (wait, rest) = catch_panic(next)??;
        let factory = factory.clone();
        self.0 = Some(IteratorRest { factory, taken: index.saturating_add(1), rest });
        Some(wait)
    }
}

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
