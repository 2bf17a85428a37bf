//! The future that resolves when a child is cancelled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::cell::StopLevel;
use super::incarnation::Incarnation;
use crate::panic::CatchWakerPanic;

/// Resolves when the child is cancelled; see [`Context::cancelled`](crate::Context::cancelled).
///
/// The future is `'static`, so you can pass it on, for example to
/// `axum::serve(..).with_graceful_shutdown(ctx.cancelled())`.
///
/// ```
/// use verger::Context;
///
/// /// A server that takes a future to stop it.
/// async fn serve(stop: impl Future<Output = ()> + Send + 'static) {
///     stop.await;
/// }
///
/// async fn http(ctx: Context) {
///     serve(ctx.cancelled()).await;
/// }
/// # drop(http);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    incarnation: Arc<Incarnation>,
    /// Used if the waker of a different task is registered already.
    token: Option<CatchWakerPanic<Pin<Box<WaitForCancellationFutureOwned>>>>,
}

impl Cancelled {
    pub(super) fn new(incarnation: Arc<Incarnation>) -> Self {
        Self { incarnation, token: None }
    }

    /// Resolves when the token is cancelled, which happens with the child at the latest.
    pub(crate) fn with_token(incarnation: Arc<Incarnation>, token: CancellationToken) -> Self {
        let token = CatchWakerPanic::new(Box::pin(token.cancelled_owned()));
        Self { incarnation, token: Some(token) }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            if let Some(token) = &mut self.token {
                return Pin::new(token).poll(cx);
            }
            if let Some(poll) = self.incarnation.cell.poll_above(StopLevel::None, cx) {
                return poll.map(|_| ());
            }
            let token = self.incarnation.cell.token();
            *self = Self::with_token(Arc::clone(&self.incarnation), token);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}
