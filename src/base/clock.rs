//! The clocks.
//!
//! Time is tokio's, so that tests can pause it, except where a thread outside of a runtime checks the
//! runtime itself.

use std::time::{Duration, Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time that no test can pause.
#[expect(clippy::disallowed_methods, reason = "a paused clock says nothing about the threads")]
pub(crate) fn real() -> Instant {
    Instant::now()
}

/// Whether a test has paused tokio's clock. Called inside a runtime.
///
/// tokio doesn't tell: a clock that isn't paused moves with the real one.
pub(crate) fn is_paused() -> bool {
    let (began, first) = (real(), now());
    let tick = real();
    while real() == tick {
        std::hint::spin_loop();
    }
    let passed = now().saturating_duration_since(first);
    passed.is_zero() || passed > real().saturating_duration_since(began)
}

/// The wall clock, which no test can pause.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// One reading of both clocks, so that tests can pause the wall clock, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    read: Instant,
    wall_clock: SystemTime,
}

impl Clocks {
    pub(crate) fn read() -> Self {
        Self { read: now(), wall_clock: wall_clock() }
    }

    /// Returns when the clocks were read.
    pub(crate) fn read_at(self) -> Instant {
        self.read
    }

    /// Returns the wall clock time of `at`: the one that was read plus what passed since.
    pub(crate) fn wall_clock(self, at: Instant) -> SystemTime {
        self.wall_clock + at.saturating_duration_since(self.read)
    }
}

/// Returns `now + wait`, where a wait is limited to a century.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_added_but_at_most_a_century() {
        let now = Instant::now();
        let century = Duration::from_secs(3_153_600_000);
        for (wait, expected) in [
            (Duration::ZERO, Duration::ZERO),
            (Duration::from_nanos(1), Duration::from_nanos(1)),
            (century - Duration::from_nanos(1), century - Duration::from_nanos(1)),
            (century + Duration::from_nanos(1), century),
            (Duration::MAX, century),
        ] {
            assert_eq!(later(now, wait) - now, expected, "{wait:?}");
        }
    }
}
