//! Addition of instants and durations that can't overflow.

use std::time::{Duration, Instant};

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
