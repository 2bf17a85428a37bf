//! Panics in code that doesn't belong to this crate: caught, and turned into text.

mod collect;
mod installed;
mod message;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

pub(crate) use self::collect::{RecordedPanic, collect, install};
pub(crate) use self::installed::Installed;
pub use self::message::PanicMessage;

/// Calls `foreign` and returns its result, or `None` if it panics.
///
/// The panic hook has run by then. The panic's payload is dropped here; a panic in that is discarded
/// as well.
pub(crate) fn catch_panic<T>(foreign: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(foreign));
    done.map_err(discard).ok()
}

/// Calls `foreign` and returns its result, or the message of its panic.
pub(crate) fn catch_panic_message<T>(foreign: impl FnOnce() -> T) -> Result<T, PanicMessage> {
    catch_unwind(AssertUnwindSafe(foreign)).map_err(panic_message)
}

/// Returns the message of a panic, with its location if that is known, and drops its payload.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> PanicMessage {
    let message = message::message_of(&*payload).to_owned();
    discard(payload);
    collect::located(message)
}

/// Wakes a task. A waker of the user's may panic.
pub(crate) fn wake(waker: Waker) {
    catch_panic(|| waker.wake());
}

fn discard(payload: Box<dyn Any + Send>) {
    // A payload whose drop panics has a payload of its own, and so on: forget that one.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// A shared value of the user's: a function, an error, a property.
///
/// It is dropped wherever its last clone is, also in the task of a supervisor. A panic of its `Drop` is
/// caught there.
pub(crate) struct Foreign<T: ?Sized>(Option<Arc<T>>);

impl<T: ?Sized> Foreign<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(Some(value))
    }

    pub(crate) fn shared(&self) -> &Arc<T> {
        self.0.as_ref().expect("only `drop` takes it")
    }
}

impl<T: ?Sized> Clone for Foreign<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Equal if they are the same object.
impl<T: ?Sized> PartialEq for Foreign<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}

impl<T: ?Sized> fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").finish_non_exhaustive()
    }
}

impl<T: ?Sized> Deref for Foreign<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.shared()
    }
}

impl<T: ?Sized> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            catch_panic(|| drop(value));
        }
    }
}

/// A waker of the user's. A panic while it is woken or dropped is caught.
struct ForeignWaker(Option<Waker>);

impl Wake for ForeignWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(waker) = &self.0 {
            catch_panic(|| waker.wake_by_ref());
        }
    }
}

impl Drop for ForeignWaker {
    fn drop(&mut self) {
        let waker = self.0.take();
        catch_panic(|| drop(waker));
    }
}

/// A future that catches the panics of the wakers with which it is polled.
///
/// It is for futures of tokio's that several tasks wait for at once: tokio wakes the tasks one after
/// another, and if a waker panics, it doesn't wake the rest.
pub(crate) struct CatchWakerPanic<F> {
    future: F,
    /// The waker of the last poll.
    waker: Option<Arc<ForeignWaker>>,
}

impl<F> CatchWakerPanic<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future, waker: None }
    }
}

impl<F: Future + Unpin> Future for CatchWakerPanic<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let is_same = |kept: &Arc<ForeignWaker>| {
            kept.0.as_ref().is_some_and(|kept| kept.will_wake(cx.waker()))
        };
        let kept = this.waker.take().filter(is_same);
        let kept = kept.unwrap_or_else(|| Arc::new(ForeignWaker(Some(cx.waker().clone()))));
        let waker = Waker::from(Arc::clone(this.waker.insert(kept)));
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&waker))
    }
}

/// A future that resolves to the message of a panic if the inner future panics.
pub(crate) struct CatchPanic<F>(pub(crate) F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, PanicMessage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = Pin::new(&mut self.0);
        match catch_panic_message(|| future.poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }

    #[test]
    fn a_panic_is_caught_and_so_is_a_panic_of_its_payload() {
        assert_eq!(catch_panic(|| 1), Some(1));
        assert_eq!(catch_panic(|| -> u8 { panic!("no") }), None);
        assert_eq!(catch_panic(|| -> u8 { std::panic::panic_any(Bomb) }), None);
    }

    #[test]
    fn the_message_of_a_panic_is_its_text() {
        let message = |payload: Box<dyn Any + Send>| panic_message(payload);
        assert_eq!(message(Box::new("literal")), "literal");
        assert_eq!(message(Box::new("formatted".to_owned())), "formatted");
        assert_eq!(message(Box::new(Bomb)), "a value that is not a string");
    }
}
