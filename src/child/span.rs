//! The span of a child, which is entered for each poll of its future and for its drop.
//!
//! A subscriber may panic. `tracing`'s `Instrumented` would then leak the child instead of dropping it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Span;

use super::task::{ExitFuture, drop_after};
use crate::exit::Exit;
use crate::subscriber;

/// See the [module](self).
pub(super) struct InSpan {
    /// `None` once the child has ended.
    future: Option<ExitFuture>,
    span: Span,
}

impl InSpan {
    pub(super) fn new(future: ExitFuture, span: Span) -> Self {
        Self { future: Some(future), span }
    }
}

impl Future for InSpan {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Exit> {
        let Self { future, span } = &mut *self;
        subscriber::in_span(span, || {
            let Some(running) = future else { return Poll::Pending };
            let polled = running.as_mut().poll(cx);
            polled.map(|exit| drop_after(exit, || *future = None))
        })
    }
}

impl Drop for InSpan {
    fn drop(&mut self) {
        let Self { future, span } = self;
        if future.is_some() {
            subscriber::in_span(span, || *future = None);
        }
        subscriber::close(std::mem::replace(span, Span::none()));
    }
}
