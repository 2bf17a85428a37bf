//! The built-in restart limit, which each child has unless a limit is written.
//!
//! It knows how many restarts a child gets, and how long these may take. Whether a limit is written is for
//! [`ChildRules`](super::ChildRules) to say.
//!
//! # Invariants
//!
//! 1. The period is at least [`PERIOD`], and long enough for a child to exceed the limit that keeps failing, each
//!    restart with its longest delay, graces and timeouts. Parts without a bound are left out.
//! 2. The period is the same at each failure. Only a change of options or rules changes it.

use std::time::Duration;

use super::{Backoff, Intensity};

/// The shortest period. A worker that fails immediately with the default backoff needs 171 to 205 s for its
/// restarts, and up to 72 s for graces and leak timeouts.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// The number of restarts that each child of a supervisor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DefaultLimit {
    pub(crate) of_workers: u32,
    /// A supervisor has used up the restarts of a child before it fails itself.
    pub(crate) of_supervisors: u32,
    /// The shortest period.
    pub(crate) period: Duration,
}

impl DefaultLimit {
    pub(crate) const BUILT_IN: Self = Self { of_workers: 12, of_supervisors: 3, period: PERIOD };

    /// Returns the limit of a child with this backoff. `cycle`: the longest time from a start of the child to the
    /// next, without its delay.
    pub(crate) fn of(self, is_supervisor: bool, backoff: &Backoff, cycle: Duration) -> Intensity {
        let max = if is_supervisor { self.of_supervisors } else { self.of_workers };
        let needed = cycle.saturating_mul(max).saturating_add(backoff.longest_waits(max));
        Intensity::sliding(max, whole_minutes(needed).max(self.period))
    }
}

/// Rounds up to whole minutes, which are easier to read.
fn whole_minutes(time: Duration) -> Duration {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    let minutes = seconds.div_ceil(60);
    minutes.checked_mul(60).map_or(Duration::MAX, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of(is_supervisor: bool, backoff: &Backoff, cycle: Duration) -> Intensity {
        DefaultLimit::BUILT_IN.of(is_supervisor, backoff, cycle)
    }

    #[test]
    fn a_worker_with_defaults_has_twelve_restarts_in_five_minutes() {
        let default = Backoff::default();
        assert_eq!(of(false, &default, secs(5 + 1)), Intensity::sliding(12, secs(300)));
        assert_eq!(of(false, &Backoff::none(), Duration::ZERO), Intensity::sliding(12, secs(300)));
    }

    #[test]
    fn the_period_contains_twelve_of_the_longest_cycles_in_whole_minutes() {
        // 12 * 25 s is five minutes exactly, and a nanosecond more is another minute.
        let (none, minutes) =
            (Backoff::none(), |minutes: u64| Intensity::sliding(12, secs(minutes * 60)));
        assert_eq!(of(false, &none, secs(25)), minutes(5));
        assert_eq!(of(false, &none, secs(25) + Duration::from_nanos(1)), minutes(6));
        assert_eq!(of(false, &Backoff::constant(secs(60)), secs(5)), minutes(13));
        let jittery = Backoff::constant(secs(60)).jitter(0.5).soft_cap();
        assert_eq!(of(false, &jittery, Duration::ZERO), minutes(18));
    }

    #[test]
    fn a_supervisor_has_three_restarts_in_the_time_that_it_takes_to_fail_three_times() {
        let backoff = Backoff::default();
        assert_eq!(of(true, &backoff, secs(1)), Intensity::sliding(3, secs(300)));
        assert_eq!(of(true, &backoff, secs(333)), Intensity::sliding(3, secs(17 * 60)));
        assert_eq!(of(true, &backoff, Duration::MAX), Intensity::sliding(3, Duration::MAX));
    }
}
