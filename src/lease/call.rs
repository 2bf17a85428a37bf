//! Calls of the user's code: requests to an engine, and the preparation of a standby.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::engine::{Claim, LeaseEngine};
use super::guard::{Answer, Request};
use super::record::LeaseRecord;
use crate::exit::ExitError;
use crate::panic::{CatchPanic, Foreign, PanicMessage, catch_panic};

/// A call that is polled. A panic of its future is the output, and a panic of its drop is caught.
///
/// Cancel safe: nothing is lost if a borrow of it is dropped.
pub(super) struct Call<T>(Option<CatchPanic<Pin<Box<dyn Future<Output = T> + Send>>>>);

impl<T> Call<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(CatchPanic(Box::pin(future))))
    }
}

/// No call. It is pending forever.
impl<T> Default for Call<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T, PanicMessage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else { return Poll::Pending };
        let poll = Pin::new(call).poll(cx);
        if poll.is_ready() {
            *self = Self::default();
        }
        poll
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        let call = self.0.take();
        catch_panic(|| drop(call));
    }
}

/// Sends a request.
pub(super) fn request(
    engine: &Foreign<dyn LeaseEngine>,
    claim: &Claim,
    request: Request,
) -> Call<Answer> {
    let (engine, claim) = (engine.clone(), claim.clone());
    Call::new(async move {
        let answer = match request {
            Request::Acquire => engine.acquire(&claim).await.map(Answer::Acquired),
            Request::Renew(token) => engine.renew(&claim, token).await.map(Answer::Renewed),
            Request::Release(token) => engine.release(&claim, token).await.map(Answer::Released),
        };
        answer.unwrap_or_else(|error| unknown(ExitError::from(error)))
    })
}

/// Asks who has the lease with this name. The error is the reason why that is unknown.
pub(super) fn look_up(
    engine: &Foreign<dyn LeaseEngine>,
    name: &Arc<str>,
) -> Call<Result<LeaseRecord, Arc<str>>> {
    let (engine, name) = (engine.clone(), Arc::clone(name));
    Call::new(async move {
        let record = engine.holder(&name).await;
        record.map_err(|error| Arc::from(ExitError::from(error).to_string()))
    })
}

/// Returns the answer of a request whose engine has panicked.
pub(super) fn panicked(panic: &PanicMessage) -> Answer {
    unknown(format_args!("the engine panicked: {panic}"))
}

fn unknown(problem: impl ToString) -> Answer {
    Answer::Unknown(Arc::from(problem.to_string()))
}
