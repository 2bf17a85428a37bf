//! How often a child with this backoff can fail: what a limit is held against.

use std::time::Duration;

use super::curve::Shape;
use super::{Backoff, Reset};

/// How far a curve is followed before it is taken to be flat.
const FOLLOWED: u32 = 1024;

impl Backoff {
    /// At most how many restarts one child is charged within a closed window of `period`.
    ///
    /// It fails as soon as it is started, each time, and a restart is charged at the failure: the
    /// first one at time 0, the next one a wait later. `u64::MAX` if there need be no wait, or if
    /// nobody knows.
    ///
    /// Exact without jitter if the curve gets to its last value, or past `period`, within 1024
    /// restarts; otherwise the answer may be too high, but not too low.
    pub(crate) fn restarts_within(&self, period: Duration) -> u64 {
        let (Some(last), false) = (self.last(), self.is_unforeseeable()) else { return u64::MAX };
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

    /// The waits of a child that fails as soon as it is started, each as short as it can be; `None`
    /// if nobody knows.
    pub(crate) fn shortest_waits(&self) -> Option<impl Iterator<Item = Duration>> {
        self.last().filter(|_| !self.is_unforeseeable())?;
        let again = self.begins_again_at_once();
        let at_once = self.is_ever_at_once();
        let curve = (0..u32::MAX).map(move |index| match (again, at_once) {
            (true, true) => Duration::ZERO,
            (true, false) => self.shortest(0),
            (false, _) => self.shortest(index),
        });
        Some(at_once.then_some(Duration::ZERO).into_iter().chain(curve))
    }

    /// Whether it begins again each time, however short a life was.
    pub(crate) fn begins_again_at_once(&self) -> bool {
        self.resets_after().is_some_and(|life| life.is_zero()) || self.resets_on(Reset::OnReady)
    }

    /// Whether it may begin again without having been active for some time.
    fn is_unforeseeable(&self) -> bool {
        self.resets_on(Reset::OnAck) || self.half_life().is_some()
    }

    fn is_ever_at_once(&self) -> bool {
        self.first_at_once || self.at_once_after_reset
    }

    /// The shortest wait that can be drawn at `index`.
    fn shortest(&self, index: u32) -> Duration {
        let base = self.base(index).unwrap_or_default();
        let (mut least, _) = self.jitter.bounds(base);
        // What made one wait shorter makes the next one shorter, too, but none goes below the first.
        if least < base && matches!(self.shape, Shape::Exponential { compounding: true, .. }) {
            (least, _) = self.jitter.bounds(self.base(0).unwrap_or_default());
        }
        if self.hard_floor { least.max(self.shape.min().unwrap_or_default()) } else { least }
    }

    /// The longest wait, without jitter.
    #[cfg(test)]
    pub(crate) fn longest(&self) -> Duration {
        self.last().expect("a curve with an end")
    }

    /// The first index from which on the wait is the last one. For curves that get there soon.
    #[cfg(test)]
    pub(crate) fn flat_from(&self) -> u32 {
        (0..).find(|&index| self.base(index) == self.last()).expect("the curve gets there")
    }
}

/// How often `delay` fits into `period`.
fn fits(period: Duration, delay: Duration) -> u64 {
    let times = period.as_nanos().checked_div(delay.as_nanos()).unwrap_or(u128::MAX);
    u64::try_from(times).unwrap_or(u64::MAX)
}
