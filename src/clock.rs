//! The clocks.
//!
//! Time is tokio's, so that tests can pause it, except where a thread outside of a runtime checks the
//! runtime itself.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time that no test can pause.
#[expect(clippy::disallowed_methods, reason = "a paused clock says nothing about the threads")]
pub(crate) fn real() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "read once for each tree")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}
