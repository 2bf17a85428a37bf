//! Points in time that are always there.

use std::time::{Duration, Instant};

/// `now + wait`, where a wait too long for the clock is one of a century.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}
