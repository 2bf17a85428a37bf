//! Upper bounds for the restarts of one child, for limits that can't be exceeded.

use std::time::Duration;

use super::curve::Shape;
use super::{Backoff, Reset};

/// The number of delays after which a curve is treated as flat.
const FOLLOWED: u32 = 1024;

impl Backoff {
    /// Returns the largest number of restarts of one child within a closed window of `period`.
    ///
    /// The child fails as soon as it is started, and each restart is charged at the failure. Returns
    /// `u64::MAX` if there may be no delay, or if the delays are unknown. Without jitter, the result is
    /// exact if the curve reaches its last value or exceeds `period` within 1024 restarts. Otherwise it
    /// is an upper bound.
    pub(crate) fn restarts_within(&self, period: Duration) -> u64 {
        let (Some(last), false) = (self.last(), self.has_unknown_resets()) else { return u64::MAX };
        if self.begins_again_at_once() {
            let wait = if self.is_ever_at_once() { Duration::ZERO } else { self.shortest(0) };
            return 1_u64.saturating_add(fits(period, wait));
        }
        let mut left = period;
        let mut restarts = 1 + u64::from(self.is_ever_at_once());
        for index in 0..FOLLOWED {
            let delay = self.shortest(index);
            if self.base(index) == Some(last) {
                return fits(left, delay).saturating_add(restarts);
            }
            let Some(rest) = left.checked_sub(delay) else { return restarts };
            left = rest;
            restarts += 1;
        }
        fits(left, self.shortest(FOLLOWED)).saturating_add(restarts)
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
