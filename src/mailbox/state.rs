//! What is known of a mailbox: the messages, who has it, and what is said of it.
//!
//! A mailbox is *lent* to one incarnation after the other. Between them it follows
//! [`WhileDown`]; when nobody will have it any more it is sent *away*, and takes nothing in until its
//! child is started again. Nothing of others is called here: each step returns what is to be done
//! about it.
//!
//! # Invariants
//!
//! 1. A message that was taken in is given out for good, or becomes a dead letter, or is here or
//!    lent.
//! 2. One loan is in force at most. Who has an earlier one finds the end of the stream.
//! 3. Who was told `Nothing` is woken when there is a message for it, or the end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};
use std::time::Instant;

use super::ask::Refuse;
use super::batch::Batch;
use super::options::{ATTEMPTS, Closing, Drain, IsFinal, Options, Overflow, WhileDown};
use super::queue::{Envelope, Origin, Queue};
use super::slip::Slip;
use super::slot::{Borrower, Loan, Place, Spot};
use crate::clock::now;
use crate::dead_letter::{DeadLetterReason, Owner};
use crate::path::Path;
use crate::policy::later;

/// See the [module](self).
pub(super) struct State<M> {
    queue: Queue<M>,
    /// `None`: the default ones, as most mailboxes have.
    options: Option<Box<Options<M>>>,
    phase: Phase,
    /// How many loans there were.
    loans: u64,
    /// The run that had the mailbox last.
    incarnation: u32,
    receiver: Option<Waker>,
    place: Place,
    /// The supervisor was told that a message waits, since the last loan.
    told: bool,
    /// The last loan has brought the messages nearer to their end.
    progress: bool,
}

enum Phase {
    /// It was never lent, or its child has just been started again: what comes in is for the next
    /// loan.
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
    /// Boxed, since it is over soon.
    hold: Option<Box<Hold>>,
    ending: Ending,
    /// It was asked to stop, and has put back what it was given: it gets no more.
    done: bool,
}

/// Messages that are kept back from an incarnation that has just begun, until both have come.
struct Hold {
    at: Option<Instant>,
    /// It is ready, or nobody waits for that.
    ready: bool,
    /// Those with smaller numbers are kept back.
    below: u64,
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
    /// There is nothing. If a time is given, there may be something then. The waker is one that is of
    /// no use any more.
    Nothing(Option<Instant>, Option<Waker>),
}

/// What an inbox gets if all is as usual.
pub(super) enum Received<M> {
    Message(Slip<M>),
    /// There is nothing. The waker is one that is of no use any more.
    Nothing(Option<Waker>),
    /// [`next`](State::next) says what it gets.
    Unusual,
}

/// What becomes of a message that is sent.
pub(super) enum Sent<M> {
    In(Wakes),
    /// It is in, and another is out.
    Evicted(Envelope<M>, DeadLetterReason, Wakes),
    /// It goes where messages go while the child is down.
    Diverted(Envelope<M>, WhileDown<M>),
    Dropped(Envelope<M>, DeadLetterReason),
    Full(M),
    Closed(M),
    /// Its sender waits, under this number.
    Waits(M, u64),
    /// It may be the final one, which is the last that the child gets.
    Judge(M, Option<Arc<dyn Refuse>>, IsFinal<M>),
}

/// A message that is not simply taken in, and who waits for the answer.
pub(super) type Unusual<M> = (M, Option<Arc<dyn Refuse>>);

/// Whom to tell that a message has come.
#[derive(Default)]
pub(super) struct Wakes {
    pub(super) receiver: Option<Waker>,
    pub(super) wanted: bool,
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
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            queue: Queue::new(capacity),
            options: None,
            phase: Phase::New,
            loans: 0,
            incarnation: 0,
            receiver: None,
            place: Place::Nowhere,
            told: false,
            progress: false,
        }
    }

    /// What is said of the mailbox, to say more.
    pub(super) fn options_mut(&mut self) -> &mut Options<M> {
        self.options.get_or_insert_default()
    }

    /// One of the things that are said of the mailbox.
    pub(super) fn option<T: Default>(&self, which: impl FnOnce(&Options<M>) -> T) -> T {
        self.options.as_deref().map(which).unwrap_or_default()
    }

    fn has_final(&self) -> bool {
        self.options.as_ref().is_some_and(|it| it.final_message.is_some())
    }

    pub(super) fn path(&self) -> Option<Path> {
        self.place.path()
    }

    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(super) fn queue(&self) -> &Queue<M> {
        &self.queue
    }

    pub(super) fn queue_mut(&mut self) -> &mut Queue<M> {
        &mut self.queue
    }

    /// Whether nothing comes in.
    pub(super) fn is_closed(&self) -> bool {
        match &self.phase {
            Phase::Away(_) => true,
            Phase::Down { closed } => *closed,
            Phase::Lent(lent) => lent.ending == Ending::Closing,
            Phase::New => false,
        }
    }

    // --- Sending ----------------------------------------------------------------------------------

    /// Takes a message in if it is as usual: there is somebody who reads, and room. Returns whom to
    /// wake, or the message, of which [`sent`](Self::sent) says what becomes.
    pub(super) fn take_in(
        &mut self,
        message: M,
        asker: Option<Arc<dyn Refuse>>,
    ) -> Result<Option<Waker>, Unusual<M>> {
        match &self.phase {
            Phase::Lent(lent) if lent.ending != Ending::Closing && !self.queue.is_full() => {
                self.queue.push_sent(message, asker);
                Ok(self.receiver.take())
            }
            _ => Err((message, asker)),
        }
    }

    pub(super) fn sent(
        &mut self,
        message: M,
        origin: Origin,
        asker: Option<Arc<dyn Refuse>>,
        patience: &Patience<'_>,
        judged: bool,
    ) -> Sent<M> {
        if let Phase::Down { .. } = self.phase
            && !judged
            && let Some(is_final) = self.option(|it| it.final_message.clone())
        {
            return Sent::Judge(message, asker, is_final);
        }
        if self.is_closed() {
            return Sent::Closed(message);
        }
        if matches!(self.phase, Phase::Down { .. }) && self.diverts() {
            let envelope = Envelope::new(message, origin, asker);
            return Sent::Diverted(envelope, self.option(|it| it.while_down.clone()));
        }
        let mut evicted = None;
        if self.queue.is_full() {
            // Before the tree runs there is nobody to bury a letter.
            let overflow = if self.place.has_owner() {
                self.option(|it| it.overflow)
            } else {
                Overflow::Reject
            };
            match (patience, overflow) {
                (Patience::Waits(waker), _) => {
                    return Sent::Waits(message, self.queue.wait(Waker::clone(waker)));
                }
                (Patience::Never, _) | (Patience::None, Overflow::Reject) => {
                    return Sent::Full(message);
                }
                (Patience::None, Overflow::DropOldest) => match self.queue.evict() {
                    Some(oldest) => evicted = Some((self.eviction(&oldest), oldest)),
                    None => return Sent::Full(message),
                },
                (Patience::None, Overflow::DropNewest) => {
                    let envelope = Envelope::new(message, origin, asker);
                    let reason = self.overflow();
                    return Sent::Dropped(envelope, reason);
                }
            }
        }
        self.queue.push(Envelope::new(message, origin, asker));
        let wakes = Wakes { receiver: self.receiver.take(), wanted: self.wants(true) };
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
        self.option(|it| !matches!(it.while_down, WhileDown::Stash))
            && !self.place.starts_on_message()
    }

    /// Whether the supervisor has to be told that a message waits, which it is once. It is not told
    /// of what an incarnation has left that did nothing about it, or the next would be started to do
    /// the same, and so on without a wait.
    fn wants(&mut self, anew: bool) -> bool {
        if !anew && !self.progress {
            return false;
        }
        let down = matches!(self.phase, Phase::New | Phase::Down { .. });
        let wants = down && self.place.starts_on_message() && !self.queue.is_empty();
        wants && !std::mem::replace(&mut self.told, true)
    }

    // --- Lending ----------------------------------------------------------------------------------

    /// What the loan with this number may have for good if all is as usual: it has the mailbox, and
    /// nothing is kept back from it. In `batch`, what it may have besides without asking.
    ///
    /// Apart from [`next`](Self::next), which may give out anything: to move that from place to place
    /// took 60 of the 180 ns of a question and its answer.
    pub(super) fn receive(
        &mut self,
        loan: u64,
        batch: &mut Option<Arc<Batch<M>>>,
        cx: &mut TaskContext<'_>,
    ) -> Received<M> {
        let ending = match &self.phase {
            // Whoever says which message is the last has to see each of them.
            Phase::Lent(Lent { hold: None, ending, done: false, borrower: _ })
                if loan == self.loans && !self.has_final() =>
            {
                *ending
            }
            _ => return Received::Unusual,
        };
        if ending == Ending::Leaving {
            return Received::Unusual;
        }
        if let Some(slip) = self.queue.take_over(batch) {
            self.progress = true;
            return Received::Message(slip);
        }
        if ending == Ending::No && self.queue.is_empty() {
            return Received::Nothing(self.wait(cx));
        }
        Received::Unusual
    }

    /// What the loan with this number may have next.
    pub(super) fn next(
        &mut self,
        loan: u64,
        lends: bool,
        cx: &mut TaskContext<'_>,
    ) -> (Next<M>, Option<Waker>) {
        if loan != self.loans {
            return (Next::End, None);
        }
        let Phase::Lent(lent) = &mut self.phase else { return (Next::End, None) };
        if lent.ending == Ending::Leaving || lent.done {
            return (Next::End, None);
        }
        let mut at = None;
        if let Some(hold) = &mut lent.hold {
            hold.at.take_if(|until| *until <= now());
            at = hold.at;
            if hold.ready && at.is_none() {
                lent.hold = None;
            }
        }
        let from = lent.hold.as_ref().map_or(0, |hold| hold.below);
        let found = if lends {
            self.queue.lend(from).map(|envelope| (envelope, None))
        } else {
            self.queue.take(from)
        };
        self.progress |= !lends && found.is_some();
        if let Some((envelope, admitted)) = found {
            return (Next::Message(envelope), admitted);
        }
        if lent.ending == Ending::Closing && self.queue.is_empty() {
            return (Next::End, None);
        }
        (Next::Nothing(at, self.wait(cx)), None)
    }

    /// Who reads is to be woken. Returns the waker that it had before.
    fn wait(&mut self, cx: &TaskContext<'_>) -> Option<Waker> {
        match &self.receiver {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => self.receiver.replace(cx.waker().clone()),
        }
    }

    /// What is kept back from the next incarnation: everything for as long as its backoff lasts, and
    /// what has come before it for as long as it may not survive its start.
    fn hold(&mut self) -> Option<Hold> {
        let traffic = self.traffic().filter(|at| *at > now());
        let (at, ready) = match self.option(|it| it.drain).unwrap_or(self.place.drain()) {
            Drain::AtStart => (None, true),
            Drain::AtReady => (None, false),
            Drain::After(grace) => (Some(later(now(), grace)), true),
        };
        if let Some(traffic) = traffic {
            return Some(Hold { at: at.max(Some(traffic)), ready, below: u64::MAX });
        }
        let nothing = self.queue.is_empty() && !self.option(|it| it.holds_all);
        if nothing || (at.is_none() && ready) {
            return None;
        }
        let below = if self.option(|it| it.overtakes) { self.queue.end() } else { u64::MAX };
        Some(Hold { at, ready, below })
    }

    /// Gives the mailbox to an incarnation, whoever has it. The loan's number, whom to wake, and what
    /// is over.
    pub(super) fn lend(
        &mut self,
        Loan { borrower, at: _, incarnation }: Loan,
    ) -> (u64, Option<Waker>, Over) {
        self.queue.part();
        let hold = self.hold().map(Box::new);
        let lent = Lent { borrower, hold, ending: Ending::No, done: false };
        let over = self.enter(Phase::Lent(lent));
        self.loans += 1;
        self.incarnation = incarnation;
        (self.told, self.progress) = (false, false);
        (self.loans, self.receiver.take(), over)
    }

    fn enter(&mut self, phase: Phase) -> Over {
        self.queue.recall();
        Over { phase: std::mem::replace(&mut self.phase, phase) }
    }

    pub(super) fn borrower(&self) -> Option<&Arc<dyn Borrower>> {
        match &self.phase {
            Phase::Lent(lent) => Some(&lent.borrower),
            Phase::New | Phase::Down { .. } | Phase::Away(_) => None,
        }
    }

    /// What the borrower of this loan has taken for itself.
    fn lent(&mut self, loan: u64) -> Option<&mut Lent> {
        match &mut self.phase {
            Phase::Lent(lent) if loan == self.loans => Some(lent),
            _ => None,
        }
    }

    /// The borrower takes nothing more in. Returns whom to wake.
    pub(super) fn close(&mut self, loan: u64) -> Vec<Waker> {
        match self.lent(loan) {
            Some(lent) if lent.ending == Ending::No => self.end(Ending::Closing),
            _ => Vec::new(),
        }
    }

    /// The one who has it was asked to stop. Returns whom to wake.
    pub(super) fn stopping(&mut self, for_good: bool) -> Vec<Waker> {
        let manually = self.option(|it| it.closing) == Closing::Manually;
        match &self.phase {
            Phase::Lent(lent) if lent.ending != Ending::Closing && !manually => {
                self.end(if for_good { Ending::Closing } else { Ending::Leaving })
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, ending: Ending) -> Vec<Waker> {
        self.queue.recall();
        if let Phase::Lent(lent) = &mut self.phase {
            (lent.ending, lent.hold) = (ending, None);
        }
        let mut wakers = if ending == Ending::Closing { self.queue.release() } else { Vec::new() };
        wakers.extend(self.receiver.take());
        wakers
    }

    /// The borrower has given the mailbox back. Returns besides where messages go meanwhile.
    pub(super) fn returned(&mut self, loan: u64) -> Option<(Rest<M>, WhileDown<M>)> {
        let closed = self.lent(loan)?.ending == Ending::Closing;
        let over = self.enter(Phase::Down { closed });
        let (letters, mut wakers) = if self.diverts() && !closed {
            (self.queue.flush(), self.queue.release())
        } else {
            Default::default()
        };
        wakers.extend(self.receiver.take());
        let wanted = self.wants(false);
        let to = self.option(|it| it.while_down.clone());
        Some((Rest { letters, wakers, wanted, over }, to))
    }

    // --- What is lent -----------------------------------------------------------------------------

    /// A message is dealt with. Returns whom to wake, and whether the borrower is well again: as long
    /// as a message is left that has failed, it may fail again.
    pub(super) fn acked(&mut self, envelope: &Envelope<M>) -> (Option<Waker>, bool) {
        self.progress = true;
        let admitted = self.queue.settle(envelope);
        (admitted, !self.queue.has_suspects())
    }

    /// A message of this loan was not acknowledged; `failed` if nobody had asked for the end.
    pub(super) fn came_back(
        &mut self,
        envelope: Envelope<M>,
        loan: u64,
        failed: bool,
    ) -> CameBack<M> {
        let most = self.option(|it| Some(it.max_attempts)).unwrap_or(Some(ATTEMPTS));
        let poison =
            failed && most.is_some_and(|most| envelope.failed.saturating_add(1) >= most.get());
        let dead = match self.phase {
            _ if poison => Some(DeadLetterReason::Poison),
            Phase::Away(reason) => Some(reason),
            Phase::New | Phase::Lent(_) | Phase::Down { .. } => None,
        };
        // After so many attempts it is poison.
        self.progress |= dead.is_some() || (failed && most.is_some());
        if let Some(reason) = dead {
            let admitted = self.queue.settle(&envelope);
            return CameBack::Dead(envelope, reason, admitted);
        }
        if let (false, Some(lent)) = (failed, self.lent(loan)) {
            // Or it would be given the same again, at once, and no attempt would count.
            lent.done = true;
        }
        self.queue.give_back(envelope, failed);
        CameBack::In(Wakes { receiver: self.receiver.take(), wanted: self.wants(false) })
    }

    // --- What the supervisor says -----------------------------------------------------------------

    /// Gives the mailbox its place, unless it has one. Returns whether a message waits for a child
    /// that is started by messages.
    pub(super) fn bind(&mut self, place: Place) -> bool {
        if self.place.is_taken() {
            return false;
        }
        self.place = place;
        self.told = false;
        if let Phase::Away(_) = self.phase {
            self.phase = Phase::New;
        }
        self.wants(true)
    }

    /// Takes the mailbox its place.
    pub(super) fn unbind(&mut self) -> Place {
        let place = self.path().map_or(Place::Nowhere, Place::Was);
        std::mem::replace(&mut self.place, place)
    }

    /// The supervisor of its child has ended. Returns the place that it had.
    pub(super) fn adopted_by(&mut self, owner: Arc<dyn Owner>) -> Option<Place> {
        let path = self.path()?;
        let starts_on_message = self.place.starts_on_message();
        let place = Place::Adopted { owner, path, starts_on_message };
        Some(std::mem::replace(&mut self.place, place))
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn ready(&mut self, spot: Spot, incarnation: u32) -> Option<Waker> {
        let Phase::Lent(lent) = &mut self.phase else { return None };
        let hold = lent.hold.as_mut().filter(|hold| !hold.ready)?;
        // Incarnations are counted from one again if the supervisor was restarted, too.
        if self.incarnation != incarnation || !self.place.is(spot) {
            return None;
        }
        hold.ready = true;
        self.receiver.take()
    }

    /// Until when nothing is given out, which nobody is told again.
    fn traffic(&mut self) -> Option<Instant> {
        self.options.as_mut()?.traffic.take()
    }

    pub(super) fn keep_back(&mut self, until: Instant) {
        self.options_mut().traffic = Some(until);
    }

    /// The child has been started, and comes for the mailbox with its first step. Who knows of the start
    /// may write at once.
    pub(super) fn reopen(&mut self) {
        if let Phase::Down { .. } | Phase::Away(_) = self.phase {
            self.phase = Phase::New;
        }
    }

    /// The child is down until a message comes. What it has left, without doing anything about it,
    /// has had its chance. Returns that, whom to wake, and whether a message has come.
    pub(super) fn rest(&mut self) -> Rest<M> {
        // Also if somebody has the inbox still, or has closed it: whoever comes next is to be woken.
        let over = self.enter(Phase::Down { closed: false });
        let mut wakers = Vec::new();
        if over.was_lent() {
            self.loans += 1;
            wakers.extend(self.receiver.take());
        }
        let mut wanted = self.wants(false);
        let mut letters = VecDeque::new();
        if !self.told {
            letters = self.queue.drain();
            while let Some(waker) = self.queue.admit() {
                wakers.push(waker);
            }
            wanted = self.wants(true);
        }
        Rest { letters, wakers, wanted, over }
    }

    /// Nobody will come for what is there. Returns that, and whom to wake.
    pub(super) fn away(&mut self, reason: DeadLetterReason) -> Rest<M> {
        let over = self.enter(Phase::Away(reason));
        self.loans += 1;
        self.told = false;
        self.traffic();
        let mut wakers = self.queue.release();
        wakers.extend(self.receiver.take());
        Rest { letters: self.queue.drain(), wakers, wanted: false, over }
    }
}

/// A phase that is over: it is dropped when the lock is free, as what the borrower has said of itself
/// may be dropped with it.
#[must_use = "to be dropped outside of the lock"]
pub(super) struct Over {
    phase: Phase,
}

impl Over {
    fn was_lent(&self) -> bool {
        matches!(self.phase, Phase::Lent(_))
    }
}

/// What is to be done about a mailbox that nobody reads just now.
pub(super) struct Rest<M> {
    pub(super) letters: VecDeque<Envelope<M>>,
    pub(super) wakers: Vec<Waker>,
    pub(super) wanted: bool,
    pub(super) over: Over,
}

/// What becomes of a message that was not acknowledged.
pub(super) enum CameBack<M> {
    In(Wakes),
    Dead(Envelope<M>, DeadLetterReason, Option<Waker>),
}
