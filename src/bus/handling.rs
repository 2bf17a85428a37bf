//! Calls of handlers.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};

use tracing::Span;

use crate::exit::{ExitError, ExitReason};
use crate::panic::{CatchPanic, PanicMessage, catch_panic, catch_panic_message};
use crate::subscriber;

/// Calls a handler and runs its future to completion. Drops the future and returns `None` if `cancelled` resolves
/// first.
///
/// The error is that of the handler, or a panic in the call, in the future, or while the future is dropped.
///
/// All of it happens in `span`.
pub(super) async fn run<F, T>(
    span: Option<MessageSpan>,
    call: impl FnOnce() -> F,
    cancelled: impl Future<Output = ()>,
) -> Option<Result<T, ExitError>>
where
    F: Future<Output = Result<T, ExitError>>,
{
    let in_span = InSpan(span);
    let future = match in_span.enter(|| catch_panic_message(call)) {
        Ok(future) => future,
        Err(panic) => return Some(Err(panicked(panic))),
    };
    let mut slot = pin!(Some(future));
    let output = match slot.as_mut().as_pin_mut() {
        Some(future) => tokio::select! {
            biased;
            () = cancelled => None,
            output = in_span.run(CatchPanic(future)) => Some(output.unwrap_or_else(|panic| Err(panicked(panic)))),
        },
        None => unreachable!("the slot was just filled"),
    };
    let dropped = in_span.enter(|| catch_panic_message(|| slot.set(None)));
    match (output?, dropped) {
        (Ok(output), Err(panic)) => {
            catch_panic(|| drop(output));
            Some(Err(panicked(panic)))
        }
        (output, _) => Some(output),
    }
}

/// A span that this crate enters, and closes when it is dropped.
pub(super) struct MessageSpan(Span);

impl MessageSpan {
    pub(super) fn new(span: Span) -> Self {
        Self(span)
    }

    pub(super) fn in_scope<T>(&self, inside: impl FnOnce() -> T) -> T {
        subscriber::in_span(&self.0, inside)
    }
}

impl Drop for MessageSpan {
    fn drop(&mut self) {
        subscriber::close(std::mem::replace(&mut self.0, Span::none()));
    }
}

/// The span of a member that is a child.
struct InSpan(Option<MessageSpan>);

impl InSpan {
    fn enter<T>(&self, inside: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(span) => span.in_scope(inside),
            None => inside(),
        }
    }

    async fn run<F: Future + Unpin>(&self, mut future: F) -> F::Output {
        poll_fn(|cx| self.enter(|| Pin::new(&mut future).poll(cx))).await
    }
}

fn panicked(panic: PanicMessage) -> ExitError {
    ExitError::from_reason(ExitReason::Panicked(panic))
}
