//! The timer for the next deadline of a supervisor.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::Sleep;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct DeadlineTimer {
    /// Created for the first deadline.
    sleep: Option<Pin<Box<Sleep>>>,
    /// For how many iterations the deadline that is due was postponed.
    pub(super) postponed: u32,
}

impl DeadlineTimer {
    pub(super) fn poll(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let at = tokio::time::Instant::from_std(at);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}
