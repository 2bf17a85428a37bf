//! A future that panics where it is awaited.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that panics with the text of its error.
///
/// The panic names the line of the test that awaits the future, not a line of this crate.
#[must_use = "nothing is asserted unless the future is awaited"]
pub(super) struct Assertion<'a, T> {
    future: Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>,
}

impl<'a, T> Assertion<'a, T> {
    pub(super) fn new(future: impl Future<Output = Result<T, String>> + Send + 'a) -> Self {
        Self { future: Box::pin(future) }
    }
}

impl<T> Future for Assertion<'_, T> {
    type Output = T;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.future.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(value)) => Poll::Ready(value),
            Poll::Ready(Err(text)) => panic!("{text}"),
        }
    }
}

impl<T> fmt::Debug for Assertion<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assertion").finish_non_exhaustive()
    }
}
