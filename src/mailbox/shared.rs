//! What the addresses of a mailbox, its inbox and its slot share: its [`State`] under a lock, and
//! what follows from each step.
//!
//! Nothing of others is called while the lock is held: letters, wakers, handlers and the supervisor
//! all come afterwards.

use std::any::TypeId;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Instant;

use super::ask::Refuse;
use super::batch::Batch;
use super::options::{Options, WhileDown};
use super::queue::{Envelope, Origin};
use super::slot::{Borrower, Loan, Place, Spot};
use super::state::{CameBack, Next, Patience, Received, Rest, Sent, State, Wakes};
use super::{Delay, SendError};
use crate::core::{ChildRequest, Key, MachineEvent, Ticket};
use crate::dead_letter::{DeadLetterReason, Owner, Undelivered};
use crate::panic::catch_panic;
use crate::path::Path;
use crate::sync::Mutex;

/// A ticket that nobody waits with.
const NOBODY: Ticket = Ticket::MAX;

/// See the [module](self).
pub(super) struct Shared<M> {
    state: Mutex<State<M>>,
}

impl<M> Shared<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { state: Mutex::new(State::new(capacity)) }
    }

    /// Says more of the mailbox. What was said before is returned by `change`, since it may be a
    /// function of somebody else's.
    pub(super) fn edit<T>(&self, change: impl FnOnce(&mut Options<M>) -> T) {
        let before = change(self.state.lock().options_mut());
        drop(before);
    }

    pub(super) fn path(&self) -> Option<Path> {
        self.state.lock().path()
    }

    /// How many messages there are, and how many there may be.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queue().len(), state.queue().capacity())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed()
    }

    pub(super) fn delay(&self) -> Delay {
        self.state.lock().option(|it| it.delay)
    }
}

impl<M: Send + 'static> Shared<M> {
    // --- Sending ----------------------------------------------------------------------------------

    pub(super) fn send(
        self: &Arc<Self>,
        message: M,
        origin: Origin,
        asker: Option<Arc<dyn Refuse>>,
        patience: Patience<'_>,
    ) -> Result<(), SendError<M>> {
        let sent = {
            let mut state = self.state.lock();
            let taken = match origin {
                Origin::Sent => state.take_in(message, asker),
                Origin::Forwarded | Origin::Replayed(_) => Err((message, asker)),
            };
            match taken {
                Ok(waker) => {
                    drop(state);
                    wake(waker);
                    return Ok(());
                }
                Err((message, asker)) => state.sent(message, origin, asker, &patience, false),
            }
        };
        self.follow(sent, origin, &patience).map(drop)
    }

    /// Sends a message when there is room. A sender that has waited says under which number; if it
    /// has to wait, it has its message back with one.
    pub(super) fn poll_send(
        self: &Arc<Self>,
        message: M,
        number: Option<u64>,
        waker: &Waker,
    ) -> Result<Option<(M, u64)>, SendError<M>> {
        let patience = Patience::Waits(waker);
        let sent = {
            let mut state = self.state.lock();
            if let Some(number) = number
                && let (Poll::Pending, stale) = state.queue_mut().poll_wait(number, waker)
            {
                drop(state);
                drop(stale);
                return Ok(Some((message, number)));
            }
            state.sent(message, Origin::Sent, None, &patience, false)
        };
        self.follow(sent, Origin::Sent, &patience)
    }

    /// A sender waits no longer.
    pub(super) fn leave(&self, number: u64) {
        let (own, next) = self.state.lock().queue_mut().leave(number);
        drop(own);
        wake(next);
    }

    fn follow(
        self: &Arc<Self>,
        mut sent: Sent<M>,
        origin: Origin,
        patience: &Patience<'_>,
    ) -> Result<Option<(M, u64)>, SendError<M>> {
        if let Sent::Judge(message, asker, is_final) = sent {
            if is_final(&message) {
                // A child that is down need not be started for it.
                let request = ChildRequest::Terminate;
                self.tell_supervisor(|key| MachineEvent::Request { ticket: NOBODY, key, request });
            }
            sent = self.state.lock().sent(message, origin, asker, patience, true);
        }
        match sent {
            Sent::In(wakes) => self.tell(wakes),
            Sent::Evicted(oldest, reason, wakes) => {
                self.tell(wakes);
                self.bury(oldest, reason, false);
            }
            Sent::Diverted(envelope, to) => self.divert(envelope, to),
            Sent::Dropped(envelope, reason) => self.bury(envelope, reason, false),
            Sent::Full(message) => {
                let (child, capacity) = (self.path(), self.load().1);
                return Err(SendError::Full { message, child, capacity });
            }
            Sent::Closed(message) | Sent::Judge(message, ..) => return Err(self.closed(message)),
            Sent::Waits(message, number) => return Ok(Some((message, number))),
        }
        Ok(None)
    }

    fn closed(&self, message: M) -> SendError<M> {
        SendError::Closed { message, child: self.path() }
    }

    fn tell(&self, wakes: Wakes) {
        wake(wakes.receiver);
        self.tell_wanted(wakes.wanted);
    }

    fn tell_wanted(&self, wanted: bool) {
        if wanted {
            self.tell_supervisor(|key| MachineEvent::MessagePending { key });
        }
    }

    fn tell_supervisor(&self, event: impl FnOnce(Key) -> MachineEvent) {
        let owner = match self.state.lock().place() {
            Place::At(at) => Some((Arc::clone(&at.owner), at.key)),
            Place::Nowhere | Place::Adopted { .. } | Place::Was(_) => None,
        };
        if let Some((owner, key)) = owner {
            owner.tell(event(key));
        }
    }

    // --- What is not delivered --------------------------------------------------------------------

    fn divert(self: &Arc<Self>, envelope: Envelope<M>, to: WhileDown<M>) {
        let reason = DeadLetterReason::DroppedWhileDown;
        match to {
            WhileDown::Drop => self.bury(envelope, reason, true),
            // Stash can't be: such a message is in the queue.
            WhileDown::Stash | WhileDown::DeadLetter => self.bury(envelope, reason, false),
            WhileDown::Reply(handler) => {
                let (message, empty) = envelope.open();
                if catch_panic(|| (handler.0)(message)).is_none() {
                    self.bury(empty, DeadLetterReason::HandlerError, false);
                }
            }
            WhileDown::Forward(_) if envelope.origin == Origin::Forwarded => {
                self.bury(envelope, reason, false);
            }
            WhileDown::Forward(address) => {
                let (message, empty) = envelope.open();
                let (to, asker) = (address.shared(), empty.asker.clone());
                let sent = to.send(message, Origin::Forwarded, asker, Patience::None);
                if let Err(error) = sent {
                    let reason = match &error {
                        SendError::Full { .. } => DeadLetterReason::MailboxFull,
                        SendError::Closed { .. } => DeadLetterReason::MailboxClosed,
                    };
                    self.bury(empty.with(error.into_message()), reason, false);
                }
            }
        }
    }

    /// Makes a dead letter of a message, or of what is left of it.
    fn bury<T: Send + 'static>(
        self: &Arc<Self>,
        envelope: Envelope<T>,
        reason: DeadLetterReason,
        quiet: bool,
    ) {
        if let Some(asker) = &envelope.asker {
            asker.refuse(reason);
        }
        let (place, incarnation) = {
            let state = self.state.lock();
            (state.place().owner_and_path(), state.incarnation())
        };
        let Some((owner, target)) = place else {
            // Of a delivery that has outlived its tree.
            let message = std::any::type_name::<M>();
            tracing::warn!(
                target: "verger::dead_letter",
                message,
                reason = %reason,
                "a message was lost whose child's tree has ended"
            );
            catch_panic(|| drop(envelope));
            return;
        };
        let origin = Arc::downgrade(self);
        let undelivered = Undelivered {
            reason,
            target,
            incarnation,
            event_type: std::any::type_name::<M>(),
            type_id: TypeId::of::<M>(),
            payload: Box::new(envelope.message),
            error: None,
            quiet,
            entry: match envelope.origin {
                Origin::Replayed(entry) => Some(entry),
                Origin::Sent | Origin::Forwarded => None,
            },
            origin,
        };
        // The supervisor may do this itself, for many messages.
        catch_panic(|| owner.bury(undelivered));
    }

    // --- Lending ----------------------------------------------------------------------------------

    /// Lends the mailbox to an incarnation, which takes it from whoever has it.
    pub(super) fn lend(&self, loan: Loan) -> Result<u64, Option<Path>> {
        let (number, waker, over) = {
            let mut state = self.state.lock();
            if !state.place().is(loan.at) {
                let whose = state.path();
                drop(state);
                return Err(whose);
            }
            state.lend(loan)
        };
        drop(over);
        wake(waker);
        Ok(number)
    }

    /// The next message for a loan, for good and if all is as usual. In `batch`, what it has taken
    /// over.
    pub(super) fn receive(
        &self,
        loan: u64,
        batch: &mut Option<Arc<Batch<M>>>,
        cx: &mut TaskContext<'_>,
    ) -> Received<M> {
        self.state.lock().receive(loan, batch, cx)
    }

    /// The next message for a loan.
    pub(super) fn poll_next(
        self: &Arc<Self>,
        loan: u64,
        lends: bool,
        cx: &mut TaskContext<'_>,
    ) -> (Next<M>, Option<Arc<dyn Borrower>>) {
        let (next, admitted, borrower, is_final) = {
            let mut state = self.state.lock();
            let (next, admitted) = state.next(loan, lends, cx);
            let is_final = state.option(|it| it.final_message.clone());
            let borrower = state.borrower().filter(|_| lends || is_final.is_some());
            (next, admitted, borrower.map(Arc::clone), is_final)
        };
        wake(admitted);
        let (Next::Message(envelope), Some(is_final), Some(reader)) = (&next, is_final, &borrower)
        else {
            return (next, borrower);
        };
        match catch_unwind(AssertUnwindSafe(|| is_final(&envelope.message))) {
            Ok(true) => reader.is_to_end(),
            Ok(false) => {}
            Err(panic) => {
                // It is the child that fails; nobody has the message yet.
                if let Next::Message(envelope) = next {
                    if lends {
                        self.came_back(envelope, loan, &**reader);
                    } else {
                        self.bury(envelope, DeadLetterReason::HandlerError, false);
                    }
                }
                resume_unwind(panic);
            }
        }
        (next, borrower)
    }

    /// The child takes nothing more in.
    pub(super) fn close(&self, loan: u64) {
        let wakers = self.state.lock().close(loan);
        wake(wakers);
    }

    /// The inbox is gone.
    pub(super) fn returned(self: &Arc<Self>, loan: u64) {
        let returned = self.state.lock().returned(loan);
        if let Some((rest, to)) = returned {
            self.lay_down(rest, |letter| self.divert(letter, to.clone()));
        }
    }

    /// Does what there is to do about a mailbox that nobody reads just now.
    fn lay_down(&self, rest: Rest<M>, each: impl FnMut(Envelope<M>)) {
        let Rest { letters, wakers, wanted, over } = rest;
        drop(over);
        wake(wakers);
        letters.into_iter().for_each(each);
        self.tell_wanted(wanted);
    }

    // --- What is lent -----------------------------------------------------------------------------

    pub(super) fn acked(&self, envelope: &Envelope<M>, borrower: &dyn Borrower) {
        let (admitted, is_well) = self.state.lock().acked(envelope);
        wake(admitted);
        if is_well {
            borrower.acked();
        }
    }

    /// A message that was lent was not acknowledged.
    pub(super) fn came_back(
        self: &Arc<Self>,
        envelope: Envelope<M>,
        loan: u64,
        borrower: &dyn Borrower,
    ) {
        let failed = !borrower.is_innocent();
        let came_back = self.state.lock().came_back(envelope, loan, failed);
        match came_back {
            CameBack::In(wakes) => self.tell(wakes),
            CameBack::Dead(envelope, reason, admitted) => {
                wake(admitted);
                self.bury(envelope, reason, false);
            }
        }
    }

    // --- What the supervisor says -----------------------------------------------------------------

    pub(super) fn bind(&self, place: Place) {
        let wanted = self.state.lock().bind(place);
        self.tell_wanted(wanted);
    }

    pub(super) fn bound_to(&self) -> Option<Path> {
        let state = self.state.lock();
        state.place().is_taken().then(|| state.path()).flatten()
    }

    pub(super) fn adopted_by(&self, owner: Arc<dyn Owner>) {
        let place = self.state.lock().adopted_by(owner);
        drop(place);
    }

    pub(super) fn is_adopted(&self) -> bool {
        self.state.lock().place().is_adopted()
    }

    pub(super) fn is_nowhere(&self) -> bool {
        self.state.lock().place().is_nowhere()
    }

    pub(super) fn is_at(&self, spot: Spot) -> bool {
        self.state.lock().place().is(spot)
    }

    pub(super) fn ready(&self, spot: Spot, incarnation: u32) {
        let waker = self.state.lock().ready(spot, incarnation);
        wake(waker);
    }

    pub(super) fn keep_back(&self, until: Instant) {
        self.state.lock().keep_back(until);
    }

    pub(super) fn reopen(&self) {
        self.state.lock().reopen();
    }

    pub(super) fn stopping(&self, for_good: bool) {
        let wakers = self.state.lock().stopping(for_good);
        wake(wakers);
    }

    pub(super) fn away(self: &Arc<Self>, reason: DeadLetterReason) {
        let rest = self.state.lock().away(reason);
        self.lay_down(rest, |letter| self.bury(letter, reason, false));
    }

    pub(super) fn rest(self: &Arc<Self>) {
        let rest = self.state.lock().rest();
        self.lay_down(rest, |letter| self.bury(letter, DeadLetterReason::HandlerError, false));
    }

    /// There is no child any more that could have it, and there will be none.
    pub(super) fn abandon(self: &Arc<Self>) {
        let reason = DeadLetterReason::MailboxClosed;
        let rest = self.state.lock().away(reason);
        let left = rest.letters.len();
        self.lay_down(rest, |letter| {
            if let Some(asker) = &letter.asker {
                asker.refuse(reason);
            }
            catch_panic(|| drop(letter));
        });
        if left > 0 {
            let message = std::any::type_name::<M>();
            tracing::warn!(
                target: "verger::dead_letter",
                message,
                left,
                "messages were lost that were sent to a child whose tree does not run"
            );
        }
    }

    pub(super) fn unbind(&self) {
        let place = self.state.lock().unbind();
        drop(place);
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
