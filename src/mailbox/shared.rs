//! What the addresses of a mailbox, its inbox and its slot share: the queue, who has it, and where
//! it is in the tree.
//!
//! A mailbox is *lent* to one incarnation after the other. Between them it follows
//! [`WhileDown`](super::WhileDown); when nobody will have it any more it is sent *away*, and takes
//! nothing in until it is lent again. Nothing of others is called while the lock is held: letters,
//! wakers, handlers and the supervisor all come afterwards.
//!
//! # Invariants
//!
//! 1. A message that was taken in is given out for good, or becomes a dead letter, or is here or
//!    lent.
//! 2. One loan is in force at most. Who has an earlier one finds the end of the stream.
//! 3. Who was told `Pending` is woken when there is a message for it, or the end.

use std::any::TypeId;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Instant;

use super::SendError;
use super::ask::Refuse;
use super::options::{Closing, Drain, Options, Overflow, WhileDown};
use super::queue::{Envelope, Origin, Queue};
use super::slot::{Borrower, Loan, Place};
use crate::clock::now;
use crate::dead_letter::{DeadLetterReason, Undelivered};
use crate::machine::{Event, Request, Ticket};
use crate::path::Path;
use crate::sync::Mutex;

/// A ticket that nobody waits with.
const NOBODY: Ticket = Ticket::MAX;

/// See the [module](self).
pub(super) struct Shared<M> {
    state: Mutex<State<M>>,
}

struct State<M> {
    queue: Queue<M>,
    options: Arc<Options<M>>,
    phase: Phase,
    /// How many loans there were.
    loans: u64,
    /// The run that had the mailbox last.
    incarnation: u32,
    receiver: Option<Waker>,
    place: Place,
    /// The supervisor was told that a message waits, since the last loan.
    told: bool,
    /// Nothing is given out before this, whoever has the mailbox.
    traffic: Option<Instant>,
}

enum Phase {
    /// It was never lent.
    New,
    Lent(Lent),
    /// The one who had it is gone.
    Down {
        /// Nothing comes in any more.
        closed: bool,
    },
    /// Nobody will have it, unless somebody starts the child.
    Away(DeadLetterReason),
}

struct Lent {
    borrower: Arc<dyn Borrower>,
    hold: Option<Hold>,
    ending: Ending,
}

/// Messages that are kept back from an incarnation that has just begun.
#[derive(Clone, Copy)]
struct Hold {
    until: Until,
    /// Those with smaller numbers are kept back.
    below: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Ready,
    At(Instant),
}

/// How far the end of a loan is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    /// Nothing comes in, and what there is is still read.
    Closing,
    /// What there is is for the next incarnation.
    Leaving,
}

/// What an inbox gets.
pub(super) enum Next<M> {
    Message(Envelope<M>),
    End,
    /// There is nothing. If a time is given, there may be something then.
    Nothing(Option<Instant>),
}

/// What becomes of a message that is sent.
enum Sent<M> {
    In(Wakes),
    /// It is in, and another is out.
    Evicted(Envelope<M>, DeadLetterReason, Wakes),
    /// It goes where messages go while the child is down.
    Diverted(Envelope<M>, WhileDown<M>),
    Dropped(Envelope<M>, DeadLetterReason),
    Full(M),
    Closed(M),
    /// Its sender waits, under this number.
    Parked(u64),
    /// It may be the final one, which is the last that the child gets.
    Judge(M, Option<Arc<dyn Refuse>>, Arc<dyn Fn(&M) -> bool + Send + Sync>),
}

/// Whom to tell that a message has come.
#[derive(Default)]
struct Wakes {
    receiver: Option<Waker>,
    wanted: bool,
}

/// What a sender does about a mailbox that is full.
pub(super) enum Patience<'a> {
    /// What the mailbox says.
    None,
    /// It wants the message back, whatever the mailbox says.
    Never,
    /// It waits, and is woken by this.
    Waits(&'a Waker),
}

impl<M> State<M> {
    fn path(&self) -> Option<Path> {
        self.place.path()
    }

    fn sent(
        &mut self,
        message: M,
        origin: Origin,
        asker: Option<Arc<dyn Refuse>>,
        patience: &Patience<'_>,
        judged: bool,
    ) -> Sent<M> {
        match &self.phase {
            Phase::Down { closed: false } if !judged && self.options.final_message.is_some() => {
                if let Some(is_final) = self.options.final_message.clone() {
                    return Sent::Judge(message, asker, is_final);
                }
            }
            Phase::Away(_) | Phase::Down { closed: true } => return Sent::Closed(message),
            Phase::Lent(lent) if lent.ending == Ending::Closing => return Sent::Closed(message),
            Phase::Down { closed: false } if self.diverts() => {
                let envelope = self.queue.seal(message, origin, asker);
                return Sent::Diverted(envelope, self.options.while_down.clone());
            }
            Phase::New | Phase::Lent(_) | Phase::Down { .. } => {}
        }
        let mut evicted = None;
        if self.queue.is_full() {
            // Before the tree runs there is nobody to bury a letter.
            let overflow =
                if self.place.is_bound() { self.options.overflow } else { Overflow::Reject };
            match (patience, overflow) {
                (Patience::Waits(waker), _) => {
                    let envelope = self.queue.seal(message, origin, asker);
                    let id = envelope.id;
                    self.queue.park(envelope, Waker::clone(waker));
                    return Sent::Parked(id);
                }
                (Patience::Never, _) | (Patience::None, Overflow::Reject) => {
                    return Sent::Full(message);
                }
                (Patience::None, Overflow::DropOldest) => match self.queue.evict() {
                    Some(oldest) => evicted = Some((self.eviction(&oldest), oldest)),
                    None => return Sent::Full(message),
                },
                (Patience::None, Overflow::DropNewest) => {
                    let envelope = self.queue.seal(message, origin, asker);
                    let reason = self.overflow();
                    return Sent::Dropped(envelope, reason);
                }
            }
        }
        let envelope = self.queue.seal(message, origin, asker);
        self.queue.push(envelope);
        let wakes = Wakes { receiver: self.receiver.take(), wanted: self.wants() };
        match evicted {
            None => Sent::In(wakes),
            Some((reason, oldest)) => Sent::Evicted(oldest, reason, wakes),
        }
    }

    /// Why a message is lost that has no room.
    fn overflow(&self) -> DeadLetterReason {
        match self.phase {
            Phase::Lent(_) => DeadLetterReason::MailboxFull,
            Phase::New | Phase::Down { .. } | Phase::Away(_) => DeadLetterReason::StashOverflow,
        }
    }

    /// Why a message is lost that has to make room.
    fn eviction(&self, oldest: &Envelope<M>) -> DeadLetterReason {
        if oldest.attempts > 0 { DeadLetterReason::Evicted } else { self.overflow() }
    }

    /// Whether messages go elsewhere while the child is down. One that is started by messages gets
    /// them all.
    fn diverts(&self) -> bool {
        !matches!(self.options.while_down, WhileDown::Stash) && !self.place.starts_on_message()
    }

    /// Whether the supervisor has to be told that a message waits; it is told once.
    fn wants(&mut self) -> bool {
        let down = matches!(self.phase, Phase::New | Phase::Down { .. });
        let wants = down && self.place.starts_on_message() && !self.queue.is_empty();
        wants && !std::mem::replace(&mut self.told, true)
    }

    /// What the loan with this number may have next.
    fn next(
        &mut self,
        loan: u64,
        lends: bool,
        cx: &mut TaskContext<'_>,
    ) -> (Next<M>, Option<Waker>) {
        if loan != self.loans {
            return (Next::End, None);
        }
        let Phase::Lent(lent) = &mut self.phase else { return (Next::End, None) };
        if lent.ending == Ending::Leaving {
            return (Next::End, None);
        }
        let mut at = None;
        if let Some(Hold { until: Until::At(until), .. }) = lent.hold {
            if until <= now() {
                lent.hold = None;
            } else {
                at = Some(until);
            }
        }
        let from = lent.hold.map_or(0, |hold| hold.below);
        let found = if lends {
            self.queue.lend(from).map(|envelope| (envelope, None))
        } else {
            self.queue.take(from)
        };
        if let Some((envelope, admitted)) = found {
            return (Next::Message(envelope), admitted);
        }
        if lent.ending == Ending::Closing && self.queue.is_empty() {
            return (Next::End, None);
        }
        match &mut self.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.receiver = Some(cx.waker().clone()),
        }
        (Next::Nothing(at), None)
    }

    fn hold(&mut self) -> Option<Hold> {
        if let Some(at) = self.traffic.take() {
            return Some(Hold { until: Until::At(at), below: u64::MAX });
        }
        let until = match self.options.drain.unwrap_or(self.place.drain()) {
            Drain::AtStart => return None,
            Drain::AtReady => Until::Ready,
            Drain::After(grace) => Until::At(now() + grace),
        };
        if self.queue.is_empty() && !self.options.holds_all {
            return None;
        }
        let below = if self.options.overtakes { self.queue.end() } else { u64::MAX };
        Some(Hold { until, below })
    }
}

impl<M> Shared<M> {
    pub(super) fn path(&self) -> Option<Path> {
        self.state.lock().path()
    }

    /// How many messages there are, and how many there may be.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queue.len(), state.queue.capacity())
    }
}

impl<M: Send + 'static> Shared<M> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State {
            queue: Queue::new(capacity),
            options: Arc::default(),
            phase: Phase::New,
            loans: 0,
            incarnation: 0,
            receiver: None,
            place: Place::Nowhere,
            told: false,
            traffic: None,
        };
        Self { state: Mutex::new(state) }
    }

    pub(super) fn edit(&self, change: impl FnOnce(&mut Options<M>)) {
        change(Arc::make_mut(&mut self.state.lock().options));
    }

    pub(super) fn is_closed(&self) -> bool {
        let state = self.state.lock();
        match &state.phase {
            Phase::Away(_) => true,
            Phase::Down { closed } => *closed,
            Phase::Lent(lent) => lent.ending == Ending::Closing,
            Phase::New => false,
        }
    }

    // --- Sending ----------------------------------------------------------------------------------

    /// Sends a message. `Some`: its sender waits under this number.
    pub(super) fn send(
        self: &Arc<Self>,
        message: M,
        origin: Origin,
        asker: Option<Arc<dyn Refuse>>,
        patience: Patience<'_>,
    ) -> Result<Option<u64>, SendError<M>> {
        let mut sent = self.state.lock().sent(message, origin, asker, &patience, false);
        if let Sent::Judge(message, asker, is_final) = sent {
            if is_final(&message) {
                // A child that is down need not be started for it.
                let request = Request::Terminate;
                self.tell_supervisor(|key| Event::Request { ticket: NOBODY, key, request });
            }
            sent = self.state.lock().sent(message, origin, asker, &patience, true);
        }
        match sent {
            Sent::Judge(message, ..) => return Err(self.closed(message)),
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
            Sent::Closed(message) => return Err(self.closed(message)),
            Sent::Parked(id) => return Ok(Some(id)),
        }
        Ok(None)
    }

    fn closed(&self, message: M) -> SendError<M> {
        SendError::Closed { message, child: self.path() }
    }

    pub(super) fn poll_parked(&self, id: u64, waker: &Waker) -> Poll<Result<(), SendError<M>>> {
        let poll = self.state.lock().queue.poll_parked(id, waker);
        poll.map_err(|message| self.closed(message))
    }

    pub(super) fn withdraw(&self, id: u64) {
        let withdrawn = self.state.lock().queue.withdraw(id);
        drop(withdrawn);
    }

    fn tell(&self, wakes: Wakes) {
        if let Some(waker) = wakes.receiver {
            waker.wake();
        }
        if wakes.wanted {
            self.tell_supervisor(|key| Event::Wanted { key });
        }
    }

    fn tell_supervisor(&self, event: impl FnOnce(crate::machine::Key) -> Event) {
        let owner = match &self.state.lock().place {
            Place::At(at) => Some((Arc::clone(&at.owner), at.key)),
            Place::Nowhere | Place::Was(_) => None,
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
                let Envelope { id, message, attempts, failed, origin, asker } = envelope;
                let handled = catch_unwind(AssertUnwindSafe(|| (handler.0)(message)));
                if let Err(panic) = handled {
                    drop(catch_unwind(AssertUnwindSafe(|| drop(panic))));
                    let rest = Envelope { id, message: (), attempts, failed, origin, asker };
                    self.bury(rest, DeadLetterReason::HandlerError, false);
                }
            }
            WhileDown::Forward(_) if envelope.origin == Origin::Forwarded => {
                self.bury(envelope, reason, false);
            }
            WhileDown::Forward(address) => {
                let Envelope { id, message, attempts, failed, origin, asker } = envelope;
                let to = address.shared();
                let sent = to.send(message, Origin::Forwarded, asker.clone(), Patience::None);
                if let Err(error) = sent {
                    let reason = match &error {
                        SendError::Full { .. } => DeadLetterReason::MailboxFull,
                        SendError::Closed { .. } => DeadLetterReason::MailboxClosed,
                    };
                    let message = error.into_message();
                    let rest = Envelope { id, message, attempts, failed, origin, asker };
                    self.bury(rest, reason, false);
                }
            }
        }
    }

    fn bury_all(self: &Arc<Self>, letters: VecDeque<Envelope<M>>, reason: DeadLetterReason) {
        for letter in letters {
            self.bury(letter, reason, false);
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
            (state.place.owner_and_path(), state.incarnation)
        };
        let Some((owner, target)) = place else {
            let message = std::any::type_name::<M>();
            tracing::warn!(
                target: "verger::dead_letter",
                message,
                reason = %reason,
                "a message was lost that was sent to a child whose tree does not run"
            );
            return;
        };
        let origin = Arc::downgrade(self);
        owner.bury(Undelivered {
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
        });
    }

    // --- Lending ----------------------------------------------------------------------------------

    /// Lends the mailbox to an incarnation, which takes it from whoever has it.
    pub(super) fn lend(&self, loan: Loan) -> Result<u64, Option<Path>> {
        let (number, receiver) = {
            let mut state = self.state.lock();
            if !state.place.is(&loan) {
                return Err(state.path());
            }
            let hold = state.hold();
            let lent = Lent { borrower: loan.borrower, hold, ending: Ending::No };
            state.phase = Phase::Lent(lent);
            state.loans += 1;
            state.incarnation = loan.incarnation;
            state.told = false;
            (state.loans, state.receiver.take())
        };
        if let Some(waker) = receiver {
            waker.wake();
        }
        Ok(number)
    }

    pub(super) fn poll_next(
        &self,
        loan: u64,
        lends: bool,
        cx: &mut TaskContext<'_>,
    ) -> (Next<M>, Option<Arc<dyn Borrower>>) {
        let (next, admitted, borrower, is_last) = {
            let mut state = self.state.lock();
            let (next, admitted) = state.next(loan, lends, cx);
            let is_last = state.options.final_message.clone();
            let borrower = match &state.phase {
                Phase::Lent(lent) if lends || is_last.is_some() => Some(Arc::clone(&lent.borrower)),
                _ => None,
            };
            (next, admitted, borrower, is_last)
        };
        if let Some(waker) = admitted {
            waker.wake();
        }
        if let (Next::Message(envelope), Some(is_last)) = (&next, is_last)
            && is_last(&envelope.message)
            && let Some(borrower) = &borrower
        {
            borrower.is_to_end();
        }
        (next, borrower)
    }

    /// The child takes nothing more in.
    pub(super) fn close(&self, loan: u64) {
        let (wakers, receiver) = {
            let mut state = self.state.lock();
            if state.loans != loan {
                return;
            }
            let Phase::Lent(lent) = &mut state.phase else { return };
            if lent.ending == Ending::No {
                lent.ending = Ending::Closing;
                lent.hold = None;
            }
            (state.queue.refuse(), state.receiver.take())
        };
        wakers.into_iter().chain(receiver).for_each(Waker::wake);
    }

    /// The inbox is gone.
    pub(super) fn returned(self: &Arc<Self>, loan: u64) {
        let (letters, wakers, to, wakes) = {
            let mut state = self.state.lock();
            if state.loans != loan {
                return;
            }
            let Phase::Lent(lent) = &state.phase else { return };
            let closed = lent.ending == Ending::Closing;
            state.phase = Phase::Down { closed };
            let receiver = state.receiver.take();
            let (letters, mut wakers) =
                if state.diverts() && !closed { state.queue.flush() } else { Default::default() };
            wakers.extend(receiver);
            let wakes = Wakes { receiver: None, wanted: state.wants() };
            (letters, wakers, state.options.while_down.clone(), wakes)
        };
        wakers.into_iter().for_each(Waker::wake);
        for letter in letters {
            self.divert(letter, to.clone());
        }
        self.tell(wakes);
    }

    // --- What is lent -----------------------------------------------------------------------------

    pub(super) fn acked(&self, envelope: &Envelope<M>, borrower: &dyn Borrower) {
        let (admitted, recovers) = {
            let mut state = self.state.lock();
            let admitted = state.queue.settle(envelope);
            // As long as one waits that has failed, it may fail again.
            (admitted, !state.queue.has_suspects())
        };
        if let Some(waker) = admitted {
            waker.wake();
        }
        if recovers {
            borrower.acked();
        }
    }

    /// A message that was lent was not acknowledged.
    pub(super) fn came_back(self: &Arc<Self>, envelope: Envelope<M>, borrower: &dyn Borrower) {
        let failed = !borrower.is_asked_to_stop();
        let (letter, admitted, wakes) = {
            let mut state = self.state.lock();
            let most = state.options.max_attempts;
            let poison = failed && most.is_some_and(|most| envelope.failed + 1 >= most.get());
            let dead = match state.phase {
                _ if poison => Some(DeadLetterReason::Poison),
                Phase::Away(reason) => Some(reason),
                Phase::New | Phase::Lent(_) | Phase::Down { .. } => None,
            };
            if let Some(reason) = dead {
                let admitted = state.queue.settle(&envelope);
                (Some((envelope, reason)), admitted, Wakes::default())
            } else {
                state.queue.give_back(envelope, failed);
                let receiver = state.receiver.take();
                (None, None, Wakes { receiver, wanted: state.wants() })
            }
        };
        if let Some(waker) = admitted {
            waker.wake();
        }
        self.tell(wakes);
        if let Some((envelope, reason)) = letter {
            self.bury(envelope, reason, false);
        }
    }

    // --- What the supervisor says -----------------------------------------------------------------

    pub(super) fn bind(&self, place: Place) {
        let wanted = {
            let mut state = self.state.lock();
            if state.place.is_bound() {
                return;
            }
            state.place = place;
            state.told = false;
            if let Phase::Away(_) = state.phase {
                state.phase = Phase::New;
            }
            state.wants()
        };
        self.tell(Wakes { receiver: None, wanted });
    }

    pub(super) fn bound_to(&self) -> Option<Path> {
        let state = self.state.lock();
        state.place.is_bound().then(|| state.path()).flatten()
    }

    pub(super) fn ready(&self, incarnation: u32) {
        let receiver = {
            let mut state = self.state.lock();
            if state.incarnation != incarnation {
                return;
            }
            let Phase::Lent(lent) = &mut state.phase else { return };
            if !lent.hold.is_some_and(|hold| hold.until == Until::Ready) {
                return;
            }
            lent.hold = None;
            state.receiver.take()
        };
        if let Some(waker) = receiver {
            waker.wake();
        }
    }

    pub(super) fn keep_back(&self, until: Instant) {
        self.state.lock().traffic = Some(until);
    }

    pub(super) fn delay(&self) -> super::Delay {
        self.state.lock().options.delay
    }

    pub(super) fn stopping(&self, for_good: bool) {
        let (wakers, receiver) = {
            let mut state = self.state.lock();
            let manually = state.options.closing == Closing::Manually;
            let Phase::Lent(lent) = &mut state.phase else { return };
            if manually || lent.ending == Ending::Closing {
                return;
            }
            lent.hold = None;
            lent.ending = if for_good { Ending::Closing } else { Ending::Leaving };
            let wakers = if for_good { state.queue.refuse() } else { Vec::new() };
            (wakers, state.receiver.take())
        };
        wakers.into_iter().chain(receiver).for_each(Waker::wake);
    }

    pub(super) fn away(self: &Arc<Self>, reason: DeadLetterReason) {
        let (letters, wakers, receiver) = {
            let mut state = self.state.lock();
            state.phase = Phase::Away(reason);
            state.loans += 1;
            state.told = false;
            state.traffic = None;
            let wakers = state.queue.refuse();
            (state.queue.drain(), wakers, state.receiver.take())
        };
        wakers.into_iter().chain(receiver).for_each(Waker::wake);
        self.bury_all(letters, reason);
    }

    /// The child is gone, and the mailbox is free for another.
    pub(super) fn unbind(&self) {
        let place = {
            let mut state = self.state.lock();
            let path = state.path();
            std::mem::replace(&mut state.place, path.map_or(Place::Nowhere, Place::Was))
        };
        drop(place);
    }
}

impl<M> Drop for Shared<M> {
    fn drop(&mut self) {
        // Only of a tree that never ran: others send their mailboxes away.
        let left = self.state.lock().queue.len();
        if left > 0 {
            let message = std::any::type_name::<M>();
            tracing::warn!(
                target: "verger::dead_letter",
                message,
                left,
                "messages were lost that were sent to a child whose tree never ran"
            );
        }
    }
}
