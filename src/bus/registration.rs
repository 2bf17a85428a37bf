//! The registration of a handler, the queue from which the handler's task takes, and the call of the handler.

use std::fmt;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::letters::LetterOwner;
use super::topics::{BusShared, HandlerId, TopicKey};
use crate::exit::{ExitError, ExitReason};
use crate::panic::{CatchPanic, PanicMessage, catch_panic, catch_panic_message};
use crate::subscriber;

/// A registered handler; returned by [`Bus::on`](crate::bus::Bus::on) and its siblings.
///
/// Dropping it has no effect: a handler stays registered until its child ends, or until
/// [`unregister`](Self::unregister) is called.
///
/// ```
/// use std::sync::Arc;
///
/// use verger::{Context, Exit};
///
/// struct Tick;
///
/// async fn clock(ctx: Context) -> Exit {
///     let ticks = ctx.bus().on(|_: Arc<Tick>| async { println!("tick") });
///     // …
///     ticks.unregister();
///     assert!(!ticks.is_active());
///     Ok(())
/// }
/// # drop(clock);
/// ```
#[derive(Clone)]
pub struct Registration(Option<Arc<RegisteredHandler>>);

impl Registration {
    /// Ends the registration. The handler receives no more events.
    ///
    /// An event that is being handled is handled to its end. Those that wait in the queue become
    /// [dead letters](crate::dead_letter) with the reason `undelivered_at_stop`, and requests that wait
    /// fail. Has no effect if the registration has ended.
    pub fn unregister(&self) {
        if let Some(entry) = &self.0 {
            entry.end();
        }
    }

    /// Returns whether the handler is registered.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.as_ref().is_some_and(|entry| !entry.has_ended())
    }

    pub(super) fn new(entry: &Arc<RegisteredHandler>) -> Self {
        Self(Some(Arc::clone(entry)))
    }

    /// The registration of a child that is cancelled or has ended.
    pub(super) const fn ended() -> Self {
        Self(None)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("is_active", &self.is_active()).finish()
    }
}

/// A handler that is registered.
pub(super) struct RegisteredHandler {
    place: Place,
    ended: AtomicBool,
}

/// What ends with the registration.
enum Place {
    /// A handler in a topic, with the only sender of its queue that is kept.
    Topic { shared: Arc<BusShared>, key: TopicKey, id: HandlerId },
    /// A handler of dead letters, whose task waits for this token.
    DeadLetters(CancellationToken),
}

impl RegisteredHandler {
    pub(super) fn new(shared: &Arc<BusShared>, key: &TopicKey, id: HandlerId) -> Arc<Self> {
        let place = Place::Topic { shared: Arc::clone(shared), key: key.clone(), id };
        Arc::new(Self { place, ended: AtomicBool::new(false) })
    }

    /// Returns the entry of a handler of dead letters, which ends when the token is cancelled.
    pub(super) fn of_dead_letters(token: &CancellationToken) -> Arc<Self> {
        let place = Place::DeadLetters(token.clone());
        Arc::new(Self { place, ended: AtomicBool::new(false) })
    }

    /// Ends the registration. A task that waits for its queue is woken.
    pub(super) fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        match &self.place {
            Place::Topic { shared, key, id } => shared.remove(key, *id),
            Place::DeadLetters(token) => token.cancel(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// Ends the registration when the task of the handler ends.
pub(super) struct EndOnDrop(pub(super) Arc<RegisteredHandler>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The end of a queue in the handler's task. Dropping it ends the registration, and then drops what is queued.
pub(super) struct Inlet<T> {
    owner: Arc<LetterOwner>,
    entry: EndOnDrop,
    queue: mpsc::Receiver<T>,
}

impl<T> Inlet<T> {
    pub(super) fn new(
        owner: &Arc<LetterOwner>,
        entry: Arc<RegisteredHandler>,
        queue: mpsc::Receiver<T>,
    ) -> Self {
        Self { owner: Arc::clone(owner), entry: EndOnDrop(entry), queue }
    }

    /// Waits for the next item, or returns `None` if the registration has ended and nothing is queued.
    pub(super) async fn next(&mut self) -> Option<T> {
        // The topic has the only sender that is kept, so `end` wakes a task that waits here.
        self.queue.recv().await
    }

    /// Whether the registration or its child has ended: what is still queued is not to be handled. A handler that
    /// blocks its thread can outlive its child.
    pub(super) fn has_ended(&self) -> bool {
        self.entry.0.has_ended() || self.owner.has_ended()
    }

    /// Ends the registration, and closes and returns the queue.
    pub(super) fn close(self) -> mpsc::Receiver<T> {
        let Self { entry, mut queue, owner: _ } = self;
        drop(entry);
        queue.close();
        queue
    }
}

/// Creates a queue with this capacity, as far as tokio can.
pub(super) fn queue<T>(capacity: NonZeroUsize) -> (mpsc::Sender<T>, mpsc::Receiver<T>) {
    mpsc::channel(capacity.get().min(Semaphore::MAX_PERMITS))
}

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
pub(super) struct MessageSpan(pub(super) Span);

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
            Some(span) => subscriber::in_span(&span.0, inside),
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
