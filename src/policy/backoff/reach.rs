//! Upper bounds for the restarts of one child, for limits that can't be exceeded.

use std::time::Duration;

use super::curve::Shape;
use super::{Backoff, Reset};

/// The number of delays after which a curve is treated as flat.
const FOLLOWED: u32 = 1024;

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
        let followed = count.min(FOLLOWED);
        let first = (0..followed)
            .map(|index| self.longest_at(index))
            .fold(Duration::ZERO, Duration::saturating_add);
        first.saturating_add(self.longest_possible().saturating_mul(count - followed))
    }

    /// Returns an upper bound of every delay, as far as the curve has one.
    pub(crate) fn longest_possible(&self) -> Duration {
        self.longest_of(self.last().unwrap_or_default())
    }

    /// Returns an upper bound of the delay at `index`.
    fn longest_at(&self, index: u32) -> Duration {
        // Here the delay also depends on what was drawn.
        let drawn =
            matches!(self.shape, Shape::Slots(_) | Shape::Exponential { compounding: true, .. });
        self.longest_of(if drawn { self.last() } else { self.base(index) }.unwrap_or_default())
    }

    /// Returns the longest delay that the jitter makes of a delay of the curve.
    fn longest_of(&self, base: Duration) -> Duration {
        let (_, most) = self.jitter.bounds(base);
        if self.soft_cap { most } else { most.min(self.longest_wait().unwrap_or(Duration::MAX)) }
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
        if least < base && matches!(self.shape, Shape::Exponential { compounding: true, .. }) {
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
