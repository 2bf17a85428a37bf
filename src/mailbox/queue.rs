//! The messages of one mailbox, and who waits for room.
//!
//! Knows the order of messages and how many there may be. It doesn't know the child, the time, or
//! what becomes of a message that it gives out.
//!
//! # Invariants
//!
//! 1. Messages are in the order of their numbers, which is the order in which they came. One that
//!    was lent and comes back takes its place again.
//! 2. Messages here, messages lent and room that is kept for senders are together no more than the
//!    capacity.
//! 3. Senders wait only while there is no room, so that nobody gets ahead of them.
//! 4. What was [handed over](Queue::hand_over) is older than all that waits, has never failed, and
//!    counts as here until it is read. While senders wait, there is none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::ask::Refuse;
use super::batch::Batch;
use super::senders::Senders;
use super::slip::Slip;
use crate::dead_letter::EntryId;

/// A message and what is known of it.
pub(super) struct Envelope<M> {
    /// Its number, which no other message of the mailbox has, from when it came into the queue.
    pub(super) id: u64,
    pub(super) message: M,
    /// How often it was lent.
    pub(super) attempts: u32,
    /// How often it came back although nobody had asked for that.
    pub(super) failed: u32,
    /// Where it came from before it was sent here.
    pub(super) origin: Origin,
    /// Who waits for an answer.
    pub(super) asker: Option<Arc<dyn Refuse>>,
}

/// How a message came to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Sent,
    /// By another mailbox, whose child was down.
    Forwarded,
    /// From a dead letter.
    Replayed(EntryId),
}

/// See the [module](self).
pub(super) struct Queue<M> {
    capacity: usize,
    /// Boxed with the first message, since many mailboxes are idle, and this is most of one.
    contents: Option<Box<Contents<M>>>,
}

struct Contents<M> {
    next_id: u64,
    waiting: VecDeque<Slip<M>>,
    /// Where the reader has those that are before all that wait.
    batch: Option<Arc<Batch<M>>>,
    /// How many it had when it got them, and has at most. Zero: it has none.
    ahead: usize,
    /// How many are lent.
    lent: usize,
    /// How many, here or lent, have failed before.
    suspects: usize,
    /// Boxed, since few mailboxes are ever full.
    senders: Option<Box<Senders>>,
}

impl<M> Envelope<M> {
    /// A message that is not in the queue yet.
    pub(super) fn new(message: M, origin: Origin, asker: Option<Arc<dyn Refuse>>) -> Self {
        Self { id: 0, message, attempts: 0, failed: 0, origin, asker }
    }

    /// The message, and all else that is known of it.
    pub(super) fn open(self) -> (M, Envelope<()>) {
        let Self { id, message, attempts, failed, origin, asker } = self;
        (message, Envelope { id, message: (), attempts, failed, origin, asker })
    }

    /// The same about another message.
    pub(super) fn with<T>(self, message: T) -> Envelope<T> {
        let Self { id, message: _, attempts, failed, origin, asker } = self;
        Envelope { id, message, attempts, failed, origin, asker }
    }
}

impl<M> Contents<M> {
    fn new() -> Box<Self> {
        Box::new(Self {
            next_id: 0,
            waiting: VecDeque::new(),
            batch: None,
            ahead: 0,
            lent: 0,
            suspects: 0,
            senders: None,
        })
    }

    /// Messages that are here or lent, if the reader has read none of those that it took over.
    fn most(&self) -> usize {
        self.waiting.len() + self.ahead + self.lent
    }

    fn kept(&self) -> usize {
        self.senders.as_ref().map_or(0, |senders| senders.admitted())
    }

    /// What the reader has taken over and not read.
    fn ahead(&self) -> usize {
        match &self.batch {
            Some(batch) if self.ahead > 0 => batch.len(),
            _ => 0,
        }
    }

    /// Has what the reader took over back, so that all that is here waits.
    fn recall(&mut self) {
        if self.ahead > 0
            && let Some(batch) = &self.batch
        {
            self.ahead = 0;
            batch.empty_into(&mut self.waiting);
        }
    }

    fn pick(&mut self, from: u64) -> Option<Envelope<M>> {
        self.recall();
        let at = if self.waiting.front()?.id >= from {
            0
        } else {
            self.waiting.partition_point(|it| it.id < from)
        };
        self.waiting.remove(at).map(Slip::open)
    }

    /// Whether no message is to be looked at before it is read: because somebody waits for its room,
    /// or because some have failed.
    fn is_plain(&self) -> bool {
        self.suspects == 0 && self.senders.as_ref().is_none_or(|senders| senders.is_empty())
    }

    fn forget(&mut self, envelope: &Envelope<M>) {
        self.suspects -= usize::from(envelope.failed > 0);
    }
}

impl<M> Queue<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, contents: None }
    }

    fn contents_mut(&mut self) -> &mut Contents<M> {
        self.contents.get_or_insert_with(Contents::new)
    }

    /// Messages that are here or lent.
    pub(super) fn len(&self) -> usize {
        self.contents.as_ref().map_or(0, |it| it.waiting.len() + it.ahead() + it.lent)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether nothing is here to be given out.
    pub(super) fn is_empty(&self) -> bool {
        self.contents.as_ref().is_none_or(|it| it.waiting.is_empty() && it.ahead() == 0)
    }

    pub(super) fn is_full(&mut self) -> bool {
        let Some(contents) = &mut self.contents else { return false };
        if contents.most() + contents.kept() < self.capacity {
            return false;
        }
        if contents.ahead == 0 {
            return true;
        }
        contents.recall();
        contents.most() + contents.kept() >= self.capacity
    }

    /// The number of the next message.
    pub(super) fn end(&self) -> u64 {
        self.contents.as_ref().map_or(0, |it| it.next_id)
    }

    /// Puts a message behind all others. There must be room.
    pub(super) fn push(&mut self, mut envelope: Envelope<M>) {
        debug_assert!(!self.is_full());
        let contents = self.contents_mut();
        envelope.id = contents.next_id;
        contents.next_id += 1;
        contents.waiting.push_back(Slip::of(envelope));
    }

    /// The same with a message that was only sent. It is made where it will lie: of the 36 ns of a
    /// message that is sent and read, to copy it there took 3.
    #[inline]
    pub(super) fn push_sent(&mut self, message: M, asker: Option<Arc<dyn Refuse>>) {
        debug_assert!(!self.is_full());
        let contents = self.contents_mut();
        let id = contents.next_id;
        contents.next_id += 1;
        contents.waiting.push_back(Slip::new(id, message, asker));
    }

    /// Takes the oldest message out, to make room for a newer one. None if all are lent.
    pub(super) fn evict(&mut self) -> Option<Envelope<M>> {
        let contents = self.contents.as_mut()?;
        contents.recall();
        let evicted = contents.waiting.pop_front()?.open();
        contents.forget(&evicted);
        Some(evicted)
    }

    /// The next message from number `from` on, for good; and the sender who gets its room.
    pub(super) fn take(&mut self, from: u64) -> Option<(Envelope<M>, Option<Waker>)> {
        let contents = self.contents.as_mut()?;
        let envelope = contents.pick(from)?;
        contents.forget(&envelope);
        Some((envelope, self.admit()))
    }

    /// The next message for good, and in `batch` what is [handed over](Self::hand_over) with it.
    /// Nothing if a message is to be looked at first, or if there is none.
    pub(super) fn take_over(&mut self, batch: &mut Option<Arc<Batch<M>>>) -> Option<Slip<M>> {
        let contents = self.contents.as_deref_mut()?;
        if !contents.is_plain() {
            return None;
        }
        contents.recall();
        let first = contents.waiting.pop_front()?;
        *batch = self.hand_over();
        Some(first)
    }

    /// Lets the reader take over all that waits, to be read for good and without this queue. Nothing
    /// if a message is to be looked at first.
    pub(super) fn hand_over(&mut self) -> Option<Arc<Batch<M>>> {
        let contents = self.contents.as_deref_mut()?;
        if contents.waiting.is_empty() || !contents.is_plain() {
            return None;
        }
        contents.recall();
        contents.ahead = contents.waiting.len();
        let batch = contents.batch.get_or_insert_with(Batch::new);
        batch.fill(&mut contents.waiting);
        Some(Arc::clone(batch))
    }

    /// Has back what was handed over.
    pub(super) fn recall(&mut self) {
        if let Some(contents) = &mut self.contents {
            contents.recall();
        }
    }

    /// The same, and the reader gets no more: the next one is another.
    pub(super) fn part(&mut self) {
        if let Some(contents) = &mut self.contents {
            contents.recall();
            contents.batch = None;
        }
    }

    /// The next message from number `from` on, until it is settled or comes back.
    pub(super) fn lend(&mut self, from: u64) -> Option<Envelope<M>> {
        let contents = self.contents.as_mut()?;
        let mut envelope = contents.pick(from)?;
        contents.lent += 1;
        envelope.attempts = envelope.attempts.saturating_add(1);
        Some(envelope)
    }

    /// A lent message is gone; returns the sender who gets its room.
    pub(super) fn settle(&mut self, envelope: &Envelope<M>) -> Option<Waker> {
        let contents = self.contents_mut();
        contents.lent -= 1;
        contents.forget(envelope);
        self.admit()
    }

    /// A lent message comes back; `failed` if that counts as an attempt.
    pub(super) fn give_back(&mut self, mut envelope: Envelope<M>, failed: bool) {
        let contents = self.contents_mut();
        contents.recall();
        contents.lent -= 1;
        if failed {
            contents.suspects += usize::from(envelope.failed == 0);
            envelope.failed = envelope.failed.saturating_add(1);
        }
        let at = contents.waiting.partition_point(|it| it.id < envelope.id);
        contents.waiting.insert(at, Slip::of(envelope));
    }

    /// Whether some message, here or lent, has failed before.
    pub(super) fn has_suspects(&self) -> bool {
        self.contents.as_ref().is_some_and(|it| it.suspects > 0)
    }

    fn senders(&mut self) -> Option<&mut Senders> {
        self.contents.as_mut()?.senders.as_deref_mut()
    }

    /// Keeps room for the sender who has waited longest, if there is any.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        self.senders()?;
        if self.is_full() {
            return None;
        }
        self.senders()?.admit()
    }

    /// Lets a sender wait for room. Returns its number.
    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        debug_assert!(self.is_full());
        self.contents_mut().senders.get_or_insert_default().wait(waker)
    }

    /// Ready when a sender that waits may try again. Then it has to do so at once, or the room that
    /// was kept for it is anybody's. Returns a waker besides that is of no use any more.
    pub(super) fn poll_wait(&mut self, number: u64, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        let ready = (Poll::Ready(()), None);
        self.senders().map_or(ready, |senders| senders.poll(number, waker))
    }

    /// A sender waits no longer. Returns its waker, and that of whoever gets the room that was kept
    /// for it.
    pub(super) fn leave(&mut self, number: u64) -> (Option<Waker>, Option<Waker>) {
        let Some(senders) = self.senders() else { return (None, None) };
        let (kept, waker) = senders.leave(number);
        (waker, if kept { self.admit() } else { None })
    }

    /// Lets all senders try again that wait. They are to be woken.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        self.senders().map(Senders::release).unwrap_or_default()
    }

    /// Empties the queue of all that was never lent.
    pub(super) fn flush(&mut self) -> VecDeque<Envelope<M>> {
        let Some(contents) = &mut self.contents else { return VecDeque::new() };
        contents.recall();
        let waiting = std::mem::take(&mut contents.waiting).into_iter();
        let (tried, rest): (VecDeque<_>, VecDeque<_>) = waiting.partition(Slip::was_lent);
        contents.waiting = tried;
        rest.into_iter().map(Slip::open).collect()
    }

    /// Empties the queue of all that came in.
    pub(super) fn drain(&mut self) -> VecDeque<Envelope<M>> {
        let Some(contents) = &mut self.contents else { return VecDeque::new() };
        contents.recall();
        let all = std::mem::take(&mut contents.waiting);
        contents.suspects -= all.iter().filter(|it| it.has_failed()).count();
        all.into_iter().map(Slip::open).collect()
    }
}
