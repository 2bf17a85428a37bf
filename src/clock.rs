//! The clocks.
//!
//! Time is tokio's, so that tests can pause it.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[expect(clippy::disallowed_methods, reason = "read once for each tree")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}
