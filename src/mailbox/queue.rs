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

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::ask::Refuse;
use super::senders::Senders;
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
    waiting: VecDeque<Envelope<M>>,
    /// How many are lent.
    lent: usize,
    /// Boxed, since few mailboxes are ever full.
    senders: Option<Box<Senders>>,
    /// How many, here or lent, have failed before.
    suspects: usize,
    next_id: u64,
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

impl<M> Queue<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, waiting: VecDeque::new(), lent: 0, senders: None, suspects: 0, next_id: 0 }
    }

    /// Messages that are here or lent.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.lent
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether nothing is here to be given out.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        let kept = self.senders.as_ref().map_or(0, |senders| senders.admitted());
        self.len() + kept >= self.capacity
    }

    /// The number of the next message.
    pub(super) fn end(&self) -> u64 {
        self.next_id
    }

    /// Puts a message behind all others. There must be room.
    pub(super) fn push(&mut self, mut envelope: Envelope<M>) {
        debug_assert!(!self.is_full());
        envelope.id = self.next_id;
        self.next_id += 1;
        self.waiting.push_back(envelope);
    }

    /// Takes the oldest message out, to make room for a newer one. None if all are lent.
    pub(super) fn evict(&mut self) -> Option<Envelope<M>> {
        let evicted = self.waiting.pop_front()?;
        self.forget(&evicted);
        Some(evicted)
    }

    /// The next message from number `from` on, for good; and the sender who gets its room.
    pub(super) fn take(&mut self, from: u64) -> Option<(Envelope<M>, Option<Waker>)> {
        let envelope = self.pick(from)?;
        self.forget(&envelope);
        Some((envelope, self.admit()))
    }

    /// The next message from number `from` on, until it is settled or comes back.
    pub(super) fn lend(&mut self, from: u64) -> Option<Envelope<M>> {
        let mut envelope = self.pick(from)?;
        self.lent += 1;
        envelope.attempts = envelope.attempts.saturating_add(1);
        Some(envelope)
    }

    fn pick(&mut self, from: u64) -> Option<Envelope<M>> {
        if self.waiting.front()?.id >= from {
            return self.waiting.pop_front();
        }
        let at = self.waiting.partition_point(|it| it.id < from);
        self.waiting.remove(at)
    }

    /// A lent message is gone; returns the sender who gets its room.
    pub(super) fn settle(&mut self, envelope: &Envelope<M>) -> Option<Waker> {
        self.lent -= 1;
        self.forget(envelope);
        self.admit()
    }

    /// A lent message comes back; `failed` if that counts as an attempt.
    pub(super) fn give_back(&mut self, mut envelope: Envelope<M>, failed: bool) {
        self.lent -= 1;
        if failed {
            self.suspects += usize::from(envelope.failed == 0);
            envelope.failed = envelope.failed.saturating_add(1);
        }
        let at = self.waiting.partition_point(|it| it.id < envelope.id);
        self.waiting.insert(at, envelope);
    }

    /// Whether some message, here or lent, has failed before.
    pub(super) fn has_suspects(&self) -> bool {
        self.suspects > 0
    }

    fn forget(&mut self, envelope: &Envelope<M>) {
        self.suspects -= usize::from(envelope.failed > 0);
    }

    /// Keeps room for the sender who has waited longest, if there is any.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        if self.is_full() {
            return None;
        }
        self.senders.as_mut()?.admit()
    }

    /// Lets a sender wait for room. Returns its number.
    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        debug_assert!(self.is_full());
        self.senders.get_or_insert_default().wait(waker)
    }

    /// Ready when a sender that waits may try again. Then it has to do so at once, or the room that
    /// was kept for it is anybody's. Returns a waker besides that is of no use any more.
    pub(super) fn poll_wait(&mut self, number: u64, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        let ready = (Poll::Ready(()), None);
        self.senders.as_mut().map_or(ready, |senders| senders.poll(number, waker))
    }

    /// A sender waits no longer. Returns its waker, and that of whoever gets the room that was kept
    /// for it.
    pub(super) fn leave(&mut self, number: u64) -> (Option<Waker>, Option<Waker>) {
        let Some(senders) = &mut self.senders else { return (None, None) };
        let (kept, waker) = senders.leave(number);
        (waker, if kept { self.admit() } else { None })
    }

    /// Lets all senders try again that wait. They are to be woken.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        self.senders.as_mut().map(|senders| senders.release()).unwrap_or_default()
    }

    /// Empties the queue of all that was never lent.
    pub(super) fn flush(&mut self) -> VecDeque<Envelope<M>> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (tried, rest) = waiting.partition(|it| it.attempts > 0);
        self.waiting = tried;
        rest
    }

    /// Empties the queue of all that came in.
    pub(super) fn drain(&mut self) -> VecDeque<Envelope<M>> {
        let all = std::mem::take(&mut self.waiting);
        self.suspects -= all.iter().filter(|it| it.failed > 0).count();
        all
    }
}
