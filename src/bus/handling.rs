//! Calls of handlers.

use std::future::Future;
use std::pin::pin;

use crate::exit::{ExitError, ExitReason};
use crate::panic::{CatchPanic, PanicMessage, catch_panic, catch_panic_message};

/// Calls a handler and runs its future to completion. Drops the future and returns `None` if `cancelled` resolves
/// first.
///
/// The error is that of the handler, or a panic in the call, in the future, or while the future is dropped.
pub(super) async fn run<F, T>(
    call: impl FnOnce() -> F,
    cancelled: impl Future<Output = ()>,
) -> Option<Result<T, ExitError>>
where
    F: Future<Output = Result<T, ExitError>>,
{
    let future = match catch_panic_message(call) {
        Ok(future) => future,
        Err(panic) => return Some(Err(panicked(panic))),
    };
    let mut slot = pin!(Some(future));
    let output = match slot.as_mut().as_pin_mut() {
        Some(future) => tokio::select! {
            biased;
            () = cancelled => None,
            output = CatchPanic(future) => Some(output.unwrap_or_else(|panic| Err(panicked(panic)))),
        },
        None => unreachable!("the slot was just filled"),
    };
    let dropped = catch_panic_message(|| slot.set(None));
    match (output?, dropped) {
        (Ok(output), Err(panic)) => {
            catch_panic(|| drop(output));
            Some(Err(panicked(panic)))
        }
        (output, _) => Some(output),
    }
}

fn panicked(panic: PanicMessage) -> ExitError {
    ExitError::from_reason(ExitReason::Panicked(panic))
}
