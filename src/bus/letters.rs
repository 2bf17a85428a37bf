//! The users of a bus, the dead letters of what they emit, and handlers of dead letters.

use std::any::{TypeId, type_name};
use std::cell::Cell;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::registration::{EndOnDrop, MessageSpan, run};
use super::topics::BusShared;
use crate::child::mailbox::message_span;
use crate::child::{Incarnation, MailboxOwner};
use crate::clock::now;
use crate::dead_letter::{DeadLetter, DeadLetterReason, Undelivered};
use crate::deferred_drop::drop_flat;
use crate::exit::{ExitError, ExitReason, Outcome};
use crate::panic::{Foreign, catch_panic};
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::status::Subscription;
use crate::subscriber;

/// A child, or a supervisor whose handle is used.
#[derive(Clone)]
pub(super) struct LetterOwner {
    supervisor: Arc<SupervisorShared>,
    incarnation: Option<Arc<Incarnation>>,
}

impl LetterOwner {
    pub(super) fn child(supervisor: Arc<SupervisorShared>, incarnation: Arc<Incarnation>) -> Self {
        Self { supervisor, incarnation: Some(incarnation) }
    }

    pub(super) fn supervisor(supervisor: Arc<SupervisorShared>) -> Self {
        Self { supervisor, incarnation: None }
    }

    pub(super) fn path(&self) -> Path {
        match &self.incarnation {
            Some(incarnation) => incarnation.path(),
            None => self.supervisor.path().clone(),
        }
    }

    /// Returns the incarnation, if it is a child.
    pub(super) fn child_incarnation(&self) -> Option<&Arc<Incarnation>> {
        self.incarnation.as_ref()
    }

    /// The number of the incarnation. 0 for a supervisor.
    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation.as_ref().map_or(0, |incarnation| incarnation.number)
    }

    /// Returns the span in which this member handles an event, if it is a child.
    pub(super) fn message_span<E>(&self) -> Option<MessageSpan> {
        let incarnation = self.incarnation.as_ref()?;
        let span = message_span(|| incarnation.path(), incarnation.number, type_name::<E>());
        Some(MessageSpan(span))
    }

    /// Whether the task of the child has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.incarnation.as_ref().is_some_and(|incarnation| incarnation.has_ended())
    }

    /// Publishes an event as a dead letter of this member's supervisor and of those above. The letter is about
    /// `target`.
    pub(super) fn publish<E: Send + Sync + 'static>(
        &self,
        reason: DeadLetterReason,
        target: &Self,
        event: Foreign<E>,
        error: Option<Arc<ExitReason>>,
    ) {
        if HANDLING_LETTER.get() {
            let (target, event) = (target.path(), type_name::<E>());
            subscriber::debug!(
                target: "verger::dead_letter",
                child = %target, %reason, event_type = event,
                "an event that a dead-letter handler has emitted was not delivered: dropped"
            );
            return drop_flat(Box::new(event));
        }
        let payload = Some(Box::new(Arc::clone(event.shared())) as _);
        // The letter drops it, so that an event whose `Drop` emits the next one needs no stack.
        drop(event);
        let undelivered = Undelivered {
            reason,
            target: target.path(),
            incarnation: target.incarnation(),
            event_type: type_name::<E>(),
            type_id: TypeId::of::<E>(),
            payload,
            error,
            quiet: false,
            entry: None,
            origin: None,
        };
        // A panic in the `Drop` of the event must not reach the caller: the event is no longer the caller's.
        catch_panic(|| self.supervisor.dead_letter(undelivered, now()));
    }
}

impl fmt::Debug for LetterOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.path(), f)
    }
}

thread_local! {
    /// Whether a handler of dead letters is being polled on this thread.
    static HANDLING_LETTER: Cell<bool> = const { Cell::new(false) };
}

/// Calls `poll`, which polls a handler of dead letters: what it emits makes no letters. Otherwise a handler that
/// emits an event without a handler would never come to rest.
fn while_handling_letter<T>(poll: impl FnOnce() -> T) -> T {
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            HANDLING_LETTER.set(self.0);
        }
    }

    let _restore = Restore(HANDLING_LETTER.replace(true));
    poll()
}

/// A subscription to the dead letters of a tree, and what counts the failures of its handler.
pub(super) struct LetterHandling {
    pub(super) letters: Subscription<DeadLetter>,
    /// Cancelled when the handler is unregistered.
    pub(super) stopped: CancellationToken,
    pub(super) _entry: EndOnDrop,
    pub(super) shared: Arc<BusShared>,
    pub(super) owner: LetterOwner,
}

impl LetterHandling {
    /// Calls the handler for one letter after another, until its registration or the tree ends.
    pub(super) async fn run<F, Fut>(mut self, mut handler: F)
    where
        F: FnMut(DeadLetter) -> Fut,
        Fut: Future<Output: Outcome>,
    {
        let mut missed = 0;
        while let Some(letter) = self.next().await {
            self.report_missed(&mut missed);
            let call = || {
                let future = handler(letter);
                async move { future.await.into_exit() }
            };
            let mut handling = pin!(run(self.owner.message_span::<DeadLetter>(), call, pending()));
            let poll = poll_fn(|cx| while_handling_letter(|| handling.as_mut().poll(cx)));
            if let Some(Err(error)) = poll.await {
                self.failed(error);
            }
        }
    }

    async fn next(&mut self) -> Option<DeadLetter> {
        tokio::select! {
            biased;
            () = self.stopped.cancelled() => None,
            letter = self.letters.next() => letter,
        }
    }

    fn failed(&self, error: ExitError) {
        if error.is_ignore() {
            return;
        }
        self.shared.failed_letter_handlers.fetch_add(1, Ordering::Relaxed);
        let (child, cause) = (self.owner.path(), error.into_reason().to_string());
        subscriber::debug!(
            target: "verger::dead_letter", %child, cause, "a dead-letter handler has failed"
        );
    }

    /// Logs letters that this handler has missed because it lags behind.
    fn report_missed(&self, reported: &mut u64) {
        let total = self.letters.missed();
        if total > *reported {
            let (child, missed) = (self.owner.path(), total - *reported);
            subscriber::warn!(
                target: "verger::dead_letter",
                %child, missed, "a dead-letter handler is too slow: letters missed"
            );
            *reported = total;
        }
    }
}
