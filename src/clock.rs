//! The only reader of the clocks.
//!
//! Time is tokio's, so that tests can pause it.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[expect(clippy::disallowed_methods, reason = "read once for a tree, then it goes with `now`")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
