//! What one thread has worked.
//!
//! In a file of its own, because what is in `load` others use as well, without the crate that this takes.

use std::time::Duration;

/// What this thread has worked: whoever else had its processor meanwhile isn't counted.
#[cfg(target_os = "linux")]
pub(crate) fn worked_here() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below 10⁹"))
}

/// Nobody tells it here, so that this is the time of day, and on a busy machine too much.
#[cfg(not(target_os = "linux"))]
pub(crate) fn worked_here() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
