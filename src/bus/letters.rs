//! The users of a bus, and the dead letters of what they emit.

use std::any::{Any, TypeId, type_name};
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::handling::MessageSpan;
use crate::child::mailbox::message_span;
use crate::child::{Incarnation, MailboxOwner};
use crate::clock::now;
use crate::dead_letter::{DeadLetterReason, EntryId, Redeliver, Refused, Undelivered};
use crate::exit::ExitReason;
use crate::panic::{Foreign, catch_panic};
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::subscriber;

/// A child, or a supervisor whose handle is used.
#[derive(Clone)]
pub(super) struct Member {
    supervisor: Arc<SupervisorShared>,
    incarnation: Option<Arc<Incarnation>>,
}

impl Member {
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

    /// The number of the incarnation. 0 for a supervisor.
    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation.as_ref().map_or(0, |incarnation| incarnation.number)
    }

    /// Returns the span in which this member handles an event, if it is a child.
    pub(super) fn message_span<E>(&self) -> Option<MessageSpan> {
        let incarnation = self.incarnation.as_ref()?;
        let span = message_span(|| incarnation.path(), incarnation.number, type_name::<E>());
        Some(MessageSpan::new(span))
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
            return;
        }
        let undelivered = Undelivered {
            reason,
            target: target.path(),
            incarnation: target.incarnation(),
            event_type: type_name::<E>(),
            type_id: TypeId::of::<E>(),
            payload: Some(Box::new(Arc::clone(event.shared()))),
            error,
            quiet: false,
            entry: None,
            origin: Weak::<NoMailbox>::new(),
        };
        // A panic in the `Drop` of the event must not reach the caller: the event is no longer the caller's.
        catch_panic(|| self.supervisor.dead_letter(undelivered, now()));
    }
}

/// Where an event was queued, which can't be replayed to it. Never created.
enum NoMailbox {}

impl Redeliver for NoMailbox {
    fn redeliver(
        self: Arc<Self>,
        _payload: Box<dyn Any + Send>,
        _entry: EntryId,
        _now: Instant,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)> {
        match *self {}
    }
}

impl fmt::Debug for Member {
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
pub(super) fn while_handling_letter<T>(poll: impl FnOnce() -> T) -> T {
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            HANDLING_LETTER.set(self.0);
        }
    }

    let _restore = Restore(HANDLING_LETTER.replace(true));
    poll()
}
