//! The future that resolves when a child is asked to stop.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio_util::sync::WaitForCancellationFutureOwned;

use super::run::{Run, StopLevel};

/// Resolves when the child is asked to stop; see [`Context::cancelled`](crate::Context::cancelled).
///
/// Owns what it needs, so it can be given away, for example to
/// `axum::serve(..).with_graceful_shutdown(ctx.cancelled())`.
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    run: Arc<Run>,
    /// Used when the one place for a waker in the run is taken.
    token: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Cancelled {
    pub(super) fn new(run: Arc<Run>) -> Self {
        Self { run, token: None }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Some(token) = &mut self.token {
            return token.as_mut().poll(cx);
        }
        if let Some(poll) = self.run.poll_level(StopLevel::None, cx) {
            return poll.map(|_| ());
        }
        let token = Box::pin(self.run.token().cancelled_owned());
        self.token.insert(token).as_mut().poll(cx)
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("run", &self.run).finish_non_exhaustive()
    }
}
