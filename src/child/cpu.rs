//! The CPU time of a thread.
//!
//! `rustix` reads it, which only features depend on that are used with busy times.

use std::time::Duration;

/// Returns the CPU time that this thread has used. `None` where it can't be read.
#[cfg(all(unix, any(feature = "console", feature = "metrics")))]
#[expect(clippy::disallowed_methods, reason = "it reads a thread's own time, and not the clock")]
pub(super) fn thread_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};

    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()
}

/// Returns `None`: it can't be read here.
#[cfg(not(all(unix, any(feature = "console", feature = "metrics"))))]
pub(super) fn thread_time() -> Option<Duration> {
    None
}
