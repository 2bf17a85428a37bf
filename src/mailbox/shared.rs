//! What the addresses of a mailbox, its inbox and its supervisor share.
//!
//! Each operation runs one step of the [`MailboxState`] under the lock and applies its
//! [`MailboxEffects`] afterwards.
//!
//! # Invariants
//!
//! 1. No waker, no handler and no `Drop` of a message runs while the lock is held.
//! 2. The time is an argument.

use std::any::{Any, type_name};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::address::SendError;
use super::ask::{AskedMailbox, OpenQuestion};
use super::losses::{FunctionCall, Loss};
use super::options::{Delay, IsFinal, MailboxOptions, WhileDown};
use super::queue::{Envelope, MessageOrigin};
use super::state::{
    Binding, MailboxEffects, MailboxState, NextMessage, Sent, Take, Undeliverable, Unsent, WhenFull,
};
use crate::child::{
    ChildBinding, ChildId, LeftMessages, LoanHolder, MailboxControl, MailboxLoad, MailboxLoan,
    MailboxOwner,
};
use crate::dead_letter::{DeadLetterReason, EntryId, Redeliver, Refused};
use crate::exit::ExitReason;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::sync::{Mutex, MutexGuard};

/// See the [module](self).
pub(super) struct MailboxShared<M> {
    state: Mutex<MailboxState<M>>,
    /// The capacity of the code.
    coded: usize,
}

impl<M> MailboxShared<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { state: Mutex::new(MailboxState::new(capacity)), coded: capacity }
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
        let result = {
            let mut state = self.state.lock();
            let result = step(&mut state, &mut effects);
            let queue = &mut state.queue;
            // perf: budgets row "message". It is noted by a look, and no message reads the clock.
            if queue.full_since.is_some() && !queue.is_nearly_full() {
                queue.full_since = None;
            }
            result
        };
        effects.apply();
        result
    }

    pub(super) fn path(&self) -> Option<Path> {
        self.state.lock().binding.path()
    }

    /// Returns the number of messages, and the capacity.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queue.len(), state.queue.capacity)
    }
}

impl<M: Send + 'static> AskedMailbox for MailboxShared<M> {
    fn path(&self) -> Option<Path> {
        MailboxShared::path(self)
    }
}

impl<M: Send + 'static> MailboxShared<M> {
    /// Sets an option. `change` returns the value before, which may be a function of the user's.
    pub(super) fn set_option<T>(&self, change: impl FnOnce(&mut MailboxOptions<M>) -> T) {
        let before = change(self.state.lock().options_mut());
        drop(before);
    }

    // --- Sending ----------------------------------------------------------------------------------

    pub(super) fn send(
        &self,
        envelope: Envelope<M>,
        when_full: WhenFull<'_>,
    ) -> Result<Sent<M>, SendError<M>> {
        let mut sent = self.step(|state, fx| state.send(envelope, when_full, false, fx));
        if let Err(Unsent::MayBeFinal(envelope, is_final)) = sent {
            // A panic is the child's when it receives the message, and never the sender's.
            if catch_panic(|| self.is_final(&envelope.message, &is_final)).unwrap_or(false) {
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

    /// Sends a message without waiting, and disposes of one that can't be delivered.
    pub(super) fn accept(
        self: &Arc<Self>,
        envelope: Envelope<M>,
        when_full: WhenFull<'_>,
        now: Instant,
    ) -> Result<(), SendError<M>> {
        if let Sent::Undeliverable(it) = self.send(envelope, when_full)? {
            self.dispose(it, now);
        }
        Ok(())
    }

    /// Sends a message here that was sent to a mailbox whose child is down.
    ///
    /// # Errors
    ///
    /// Returns the message if it is refused, with the reason for its dead letter.
    pub(super) fn forward(
        self: &Arc<Self>,
        message: M,
        asker: Option<OpenQuestion>,
        now: Instant,
    ) -> Result<(), (M, DeadLetterReason)> {
        let origin = Some(Box::new(MessageOrigin::Forwarded));
        let envelope = Envelope { origin, asker, ..Envelope::new(message) };
        self.accept(envelope, WhenFull::Overflow, now).map_err(|error| {
            let reason = match error {
                SendError::Full { .. } => DeadLetterReason::MailboxFull,
                SendError::Closed { .. } => DeadLetterReason::MailboxClosed,
            };
            (error.into_message(), reason)
        })
    }

    /// Whether the message is the child's final one. A message that a function of the mailbox sends to it
    /// isn't, as it would be checked within its own check.
    pub(super) fn is_final(&self, message: &M, is_final: &IsFinal<M>) -> bool {
        FunctionCall::enter(self).is_some_and(|_running| is_final(message))
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

    /// Returns the next message. If `awaits_stop`, a cancellation of the loan's holder comes before it.
    pub(super) fn next(
        &self,
        loan: u64,
        take: Take,
        awaits_stop: bool,
        waker: &Waker,
    ) -> NextMessage<M> {
        self.step(|state, fx| state.next(loan, take, awaits_stop, waker, fx))
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
}

impl<M: Send + 'static> Redeliver for MailboxShared<M> {
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
        now: Instant,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)> {
        let message = payload.downcast::<M>().map_err(|payload| (payload, Refused::OtherType))?;
        let origin = Some(Box::new(MessageOrigin::Replayed(entry)));
        let envelope = Envelope { origin, ..Envelope::new(*message) };
        self.accept(envelope, WhenFull::Reject, now).map_err(|error| {
            let refused = match error {
                SendError::Full { .. } => Refused::Full,
                SendError::Closed { .. } => Refused::Closed,
            };
            (Box::new(error.into_message()) as _, refused)
        })
    }
}

impl<M: Send + 'static> MailboxControl for MailboxShared<M> {
    fn message_type(&self) -> &'static str {
        type_name::<M>()
    }

    fn bind(&self, child: ChildBinding) {
        self.step(|state, fx| state.bind(child, fx));
    }

    fn unbind(&self) {
        self.step(|state, fx| state.unbind(fx));
    }

    fn orphan(&self, owner: Arc<dyn MailboxOwner>) {
        self.step(|state, fx| state.orphan(owner, fx));
    }

    fn is_orphaned(&self) -> bool {
        matches!(self.state().binding, Binding::Orphaned { .. })
    }

    fn is_unbound(&self) -> bool {
        matches!(self.state().binding, Binding::Unbound)
    }

    fn bound_to(&self) -> Option<Path> {
        let state = self.state();
        state.binding.is_child().then(|| state.binding.path()).flatten()
    }

    fn belongs_to(&self, child: ChildId) -> bool {
        self.state().binding.belongs_to(child)
    }

    fn mark_ready(&self, child: ChildId, incarnation: u32) {
        self.step(|state, fx| state.mark_ready(child, incarnation, fx));
    }

    fn delay_delivery(&self, until: Instant) {
        self.state().delay_delivery(until);
    }

    fn delays_delivery(&self) -> bool {
        self.state().options().delay == Delay::Delivery
    }

    fn diverts(&self) -> bool {
        !matches!(self.state().options().while_down, WhileDown::Stash)
    }

    fn reopen(&self) {
        self.step(|state, fx| state.reopen(fx));
    }

    fn begin_stop(&self, for_good: bool) {
        self.step(|state, fx| state.begin_stop(for_good, fx));
    }

    fn force_close(&self) {
        self.step(|state, fx| state.force_close(fx));
    }

    fn lose(self: Arc<Self>, incarnation: u32, error: &Arc<ExitReason>, now: Instant) {
        let Some(lost) = self.step(|state, _| state.lose(incarnation)) else { return };
        // The question is not refused: a task of the child may still answer it.
        if lost.question.is_none_or(|question| !question.is_answered()) {
            let loss = Loss { error: Some(error), ..DeadLetterReason::LostInFailure.into() };
            self.publish(Envelope::new(None), loss, now);
        }
    }

    fn close(self: Arc<Self>, reason: DeadLetterReason) -> Option<Box<dyn LeftMessages>> {
        let messages = self.step(|state, fx| state.close(reason, fx));
        self.left(messages, reason)
    }

    fn mark_idle(self: Arc<Self>) -> Option<Box<dyn LeftMessages>> {
        let messages = self.step(|state, fx| state.mark_idle(fx));
        self.left(messages, DeadLetterReason::HandlerError)
    }

    fn load(&self, now: Instant) -> MailboxLoad {
        let queue = &mut self.state.lock().queue;
        if queue.is_nearly_full() {
            queue.full_since.get_or_insert(now);
        }
        let (len, capacity) = (queue.len(), queue.capacity);
        MailboxLoad { len, capacity, full_since: queue.full_since }
    }

    fn set_capacity(&self, child: ChildId, written: Option<NonZeroUsize>) {
        let capacity = written.map_or(self.coded, NonZeroUsize::get);
        self.step(|state, fx| state.set_capacity(child, capacity, fx));
    }
}
