//! What the addresses of a mailbox, its inbox and its supervisor share.
//!
//! Each operation runs one step of the [`MailboxState`] under the lock and applies its
//! [`MailboxEffects`] afterwards.
//!
//! # Invariants
//!
//! 1. No waker, no handler and no `Drop` of a message runs while the lock is held.
//! 2. The time is an argument.

use std::any::{Any, TypeId, type_name};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::ask::Refuse;
use super::binding::{LoanHolder, MailboxLoan};
use super::effects::MailboxEffects;
use super::error::SendError;
use super::message::{Envelope, MessageOrigin};
use super::options::{Diversion, ForwardTarget, MailboxOptions};
use super::outcome::{NextMessage, Sent, Take, Undeliverable, Unsent, WhenFull};
use super::state::MailboxState;
use crate::dead_letter::{DeadLetterReason, EntryId, Redeliver, Refused, Undelivered};
use crate::exit::ExitReason;
use crate::panic::{catch_panic, wake};
use crate::path::Path;
use crate::subscriber;
use crate::sync::{Mutex, MutexGuard};

/// See the [module](self).
pub(super) struct MailboxShared<M> {
    state: Mutex<MailboxState<M>>,
}

/// How a message was lost.
struct Loss<'a> {
    reason: DeadLetterReason,
    /// How the child exited, if that is the cause.
    error: Option<&'a Arc<ExitReason>>,
    /// The loss is configured.
    quiet: bool,
}

impl From<DeadLetterReason> for Loss<'_> {
    fn from(reason: DeadLetterReason) -> Self {
        Self { reason, error: None, quiet: false }
    }
}

impl<M> MailboxShared<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { state: Mutex::new(MailboxState::new(capacity)) }
    }

    /// Locks the state, to look at it.
    pub(super) fn state(&self) -> MutexGuard<'_, MailboxState<M>> {
        self.state.lock()
    }

    /// Runs a step of the state, and then its effects.
    pub(super) fn step<T>(
        &self,
        step: impl FnOnce(&mut MailboxState<M>, &mut MailboxEffects) -> T,
    ) -> T {
        let mut effects = MailboxEffects::default();
        let result = step(&mut self.state.lock(), &mut effects);
        effects.apply();
        result
    }

    /// Sets an option. `change` returns the value before, which may be a function of the user's.
    pub(super) fn set_option<T>(&self, change: impl FnOnce(&mut MailboxOptions<M>) -> T) {
        let before = change(self.state.lock().options_mut());
        drop(before);
    }

    pub(super) fn path(&self) -> Option<Path> {
        self.state.lock().binding.path()
    }

    /// Returns the number of messages, and the capacity.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queue.len(), state.queue.capacity())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed()
    }
}

impl<M: Send + 'static> MailboxShared<M> {
    // --- Sending ----------------------------------------------------------------------------------

    pub(super) fn send(
        &self,
        envelope: Envelope<M>,
        when_full: WhenFull<'_>,
    ) -> Result<Sent<M>, SendError<M>> {
        let Err(envelope) = self.push(envelope) else { return Ok(Sent::Queued) };
        let sent = self.step(|state, fx| state.send(envelope, when_full, false, fx));
        self.finish_send(sent, when_full)
    }

    /// Queues a message that the state [accepts plainly](MailboxState::accepts_plainly), or returns it.
    fn push(&self, envelope: Envelope<M>) -> Result<(), Envelope<M>> {
        let mut state = self.state.lock();
        if !state.accepts_plainly() {
            return Err(envelope);
        }
        let receiver = state.push(envelope);
        drop(state);
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        Ok(())
    }

    /// Sends a message when there is room. `number`: the sender has waited under it.
    pub(super) fn poll_send(
        &self,
        message: M,
        number: Option<u64>,
        waker: &Waker,
    ) -> Result<Sent<M>, SendError<M>> {
        let (envelope, when_full) = (Envelope::new(message), WhenFull::Wait(waker));
        let Some(number) = number else { return self.send(envelope, when_full) };
        let sent = self.step(|state, fx| match state.poll_room(number, waker, fx) {
            Poll::Pending => Ok(Sent::Waiting(envelope.message, number)),
            Poll::Ready(()) => state.send(envelope, when_full, false, fx),
        });
        self.finish_send(sent, when_full)
    }

    fn finish_send(
        &self,
        mut sent: Result<Sent<M>, Unsent<M>>,
        when_full: WhenFull<'_>,
    ) -> Result<Sent<M>, SendError<M>> {
        if let Err(Unsent::MayBeFinal(envelope, is_final)) = sent {
            // A panic is the child's when it receives the message, and never the sender's.
            if catch_panic(|| is_final(&envelope.message)).unwrap_or(false) {
                self.step(|state, fx| state.terminate(fx));
            }
            sent = self.step(|state, fx| state.send(envelope, when_full, true, fx));
        }
        sent.map_err(|unsent| match unsent {
            Unsent::Full(message) => {
                let (child, capacity) = (self.path(), self.load().1);
                SendError::Full { message, child, capacity }
            }
            Unsent::Closed(message) | Unsent::MayBeFinal(Envelope { message, .. }, _) => {
                SendError::Closed { message, child: self.path() }
            }
        })
    }

    // --- Receiving --------------------------------------------------------------------------------

    /// Lends the mailbox to an incarnation and ends the loan before. Returns the number of the loan and
    /// the deadline of its hold.
    ///
    /// # Errors
    ///
    /// Returns the path of the child that the mailbox belongs to, if that is another one.
    pub(super) fn lend(
        &self,
        loan: &MailboxLoan,
        now: Instant,
    ) -> Result<(u64, Option<Instant>), Option<Path>> {
        self.step(|state, fx| {
            if !state.binding.belongs_to(loan.child) {
                return Err(state.binding.path());
            }
            Ok(state.lend(loan.incarnation, now, fx))
        })
    }

    /// Removes a message that the state [yields plainly](MailboxState::yields_plainly), if there is one.
    pub(super) fn pop(&self, loan: u64) -> Option<M> {
        let mut state = self.state.lock();
        if !state.yields_plainly(loan) {
            return None;
        }
        let envelope = state.pop()?;
        drop(state);
        Some(envelope.message)
    }

    pub(super) fn next(&self, loan: u64, take: Take, waker: &Waker) -> NextMessage<M> {
        self.step(|state, fx| state.next(loan, take, waker, fx))
    }

    /// The inbox of the loan was dropped.
    pub(super) fn end(self: &Arc<Self>, loan: u64, now: Instant) {
        let (diverted, to) = self.step(|state, fx| state.end(loan, fx));
        for envelope in diverted {
            self.dispose(Undeliverable::Diverted(envelope, to.clone()), now);
        }
    }

    /// A delivery was acknowledged.
    pub(super) fn ack(&self, envelope: &Envelope<M>, holder: &dyn LoanHolder) {
        if self.step(|state, fx| state.ack(envelope, fx)) {
            holder.on_ack();
        }
    }

    /// A delivery was dropped without an acknowledgement.
    pub(super) fn put_back(
        self: &Arc<Self>,
        envelope: Envelope<M>,
        loan: u64,
        holder: &dyn LoanHolder,
        now: Instant,
    ) {
        let failed = !holder.is_cancelled_without_failure();
        let dead = self.step(|state, fx| state.put_back(envelope, loan, failed, fx));
        if let Some((envelope, reason)) = dead {
            self.dead_letter(envelope, reason, now);
        }
    }

    // --- Dead letters -----------------------------------------------------------------------------

    /// The incarnation has failed: reports the message that it had in hand.
    pub(super) fn lose(self: &Arc<Self>, incarnation: u32, error: &Arc<ExitReason>, now: Instant) {
        let Some(lost) = self.step(|state, _| state.lose(incarnation)) else { return };
        // The question is not refused: a task of the child may still answer it.
        if lost.question.is_none_or(|question| !question.is_answered()) {
            let reason = DeadLetterReason::LostInFailure;
            self.publish(
                None,
                Envelope::new(()),
                Loss { error: Some(error), ..reason.into() },
                now,
            );
        }
    }

    /// Does what remains to be done with a message that can't be delivered.
    pub(super) fn dispose(self: &Arc<Self>, undeliverable: Undeliverable<M>, now: Instant) {
        let (envelope, to) = match undeliverable {
            Undeliverable::DeadLetter(envelope, reason) => {
                return self.dead_letter(envelope, reason, now);
            }
            Undeliverable::Diverted(envelope, to) => (envelope, to),
        };
        let reason = DeadLetterReason::DroppedWhileDown;
        match to {
            Diversion::Drop => {
                let (message, rest) = envelope.open();
                self.publish(Some(message), rest, Loss { quiet: true, ..reason.into() }, now);
            }
            Diversion::Stash | Diversion::DeadLetter => self.dead_letter(envelope, reason, now),
            Diversion::Handler(handler) => {
                let (message, rest) = envelope.open();
                if catch_panic(|| handler.call(message)).is_none() {
                    self.publish(None, rest, DeadLetterReason::HandlerError.into(), now);
                }
            }
            Diversion::Forward(_) if envelope.is_forwarded() => {
                self.dead_letter(envelope, reason, now);
            }
            Diversion::Forward(target) => {
                let (message, rest) = envelope.open();
                let refused = target.forward(message, rest.asker.clone(), now);
                if let Err((message, reason)) = refused {
                    self.dead_letter(rest.with(message), reason, now);
                }
            }
        }
    }

    /// Publishes a message as a dead letter.
    pub(super) fn dead_letter(
        self: &Arc<Self>,
        envelope: Envelope<M>,
        reason: DeadLetterReason,
        now: Instant,
    ) {
        let (message, rest) = envelope.open();
        self.publish(Some(message), rest, reason.into(), now);
    }

    /// Publishes a dead letter. `message` is `None` if the message itself is gone.
    fn publish(
        self: &Arc<Self>,
        message: Option<M>,
        rest: Envelope<()>,
        loss: Loss<'_>,
        now: Instant,
    ) {
        let Loss { reason, error, quiet } = loss;
        if let Some(asker) = &rest.asker {
            asker.refuse(reason);
        }
        let (owner, incarnation) = {
            let state = self.state.lock();
            (state.binding.owner_and_path(), state.incarnation)
        };
        let Some((owner, target)) = owner else {
            // A delivery has outlived its tree.
            subscriber::warn!(
                target: "verger::dead_letter",
                message = type_name::<M>(),
                reason = %reason,
                "message lost: its tree has ended"
            );
            catch_panic(|| drop(message));
            return;
        };
        let origin = Arc::downgrade(self) as Weak<dyn Redeliver>;
        let undelivered = Undelivered {
            reason,
            target,
            incarnation,
            event_type: type_name::<M>(),
            type_id: TypeId::of::<M>(),
            payload: message.map(|message| Box::new(message) as _),
            error: error.map(Arc::clone),
            quiet,
            entry: match rest.origin.as_deref() {
                Some(MessageOrigin::Replayed(entry)) => Some(*entry),
                Some(MessageOrigin::Forwarded) | None => None,
            },
            origin,
        };
        // A panic in the `Drop` of a message must not reach the supervisor, which may be the caller.
        catch_panic(|| owner.dead_letter(undelivered, now));
    }

    /// Closes the mailbox of a child that no longer exists.
    pub(super) fn abandon(self: &Arc<Self>) {
        let reason = DeadLetterReason::MailboxClosed;
        let left = self.step(|state, fx| state.close(reason, fx));
        if left.is_empty() {
            return;
        }
        let (message, messages) = (type_name::<M>(), left.len());
        for envelope in left {
            if let Some(asker) = &envelope.asker {
                asker.refuse(reason);
            }
            catch_panic(|| drop(envelope));
        }
        subscriber::warn!(
            target: "verger::dead_letter",
            message,
            messages,
            "messages lost: their tree does not run"
        );
    }
}

impl<M: Send + 'static> ForwardTarget<M> for MailboxShared<M> {
    fn forward(
        self: Arc<Self>,
        message: M,
        asker: Option<Arc<dyn Refuse>>,
        now: Instant,
    ) -> Result<(), (M, DeadLetterReason)> {
        let envelope = Envelope::new(message).with_origin(MessageOrigin::Forwarded);
        let envelope = Envelope { asker, ..envelope };
        match self.send(envelope, WhenFull::Overflow) {
            Ok(Sent::Undeliverable(undeliverable)) => self.dispose(undeliverable, now),
            Ok(Sent::Queued | Sent::Waiting(..)) => {}
            Err(SendError::Full { message, .. }) => {
                return Err((message, DeadLetterReason::MailboxFull));
            }
            Err(SendError::Closed { message, .. }) => {
                return Err((message, DeadLetterReason::MailboxClosed));
            }
        }
        Ok(())
    }
}

impl<M: Send + 'static> Redeliver for MailboxShared<M> {
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
        now: Instant,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)> {
        let message = payload.downcast::<M>().map_err(|payload| (payload, Refused::OtherType))?;
        let envelope = Envelope::new(*message).with_origin(MessageOrigin::Replayed(entry));
        match self.send(envelope, WhenFull::Reject) {
            Ok(Sent::Undeliverable(undeliverable)) => self.dispose(undeliverable, now),
            Ok(Sent::Queued | Sent::Waiting(..)) => {}
            Err(SendError::Full { message, .. }) => return Err((Box::new(message), Refused::Full)),
            Err(SendError::Closed { message, .. }) => {
                return Err((Box::new(message), Refused::Closed));
            }
        }
        Ok(())
    }
}
