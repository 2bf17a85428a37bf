//! The messages of one mailbox, and who waits for room.
//!
//! Knows the order of messages and how many there may be. It doesn't know the child, the time, or
//! what becomes of a message that it gives out.
//!
//! # Invariants
//!
//! 1. Messages are in the order of their numbers, which is the order in which they came. One that
//!    was lent and comes back takes its place again.
//! 2. Messages here and messages lent are together no more than the capacity.
//! 3. Senders wait only while there is no room, so that nobody gets ahead of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::ask::Refuse;
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

/// A sender that waits for room.
struct Parked<M> {
    /// The sender's number among those who have waited.
    ticket: u64,
    envelope: Envelope<M>,
    waker: Waker,
}

/// Senders who found no room, in the order in which they came.
struct Senders<M> {
    waiting: VecDeque<Parked<M>>,
    /// Nobody will let them in, and they don't know it yet.
    refused: VecDeque<Parked<M>>,
}

impl<M> Default for Senders<M> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), refused: VecDeque::new() }
    }
}

/// See the [module](self).
pub(super) struct Queue<M> {
    capacity: usize,
    waiting: VecDeque<Envelope<M>>,
    /// How many are lent.
    lent: usize,
    /// Boxed, since few mailboxes are ever full.
    senders: Option<Box<Senders<M>>>,
    /// How many, here or lent, have failed before.
    suspects: usize,
    next_id: u64,
    /// Never used again: a sender may still ask by the one that it had.
    next_ticket: u64,
}

impl<M> Envelope<M> {
    /// A message that is not in the queue yet.
    pub(super) fn new(message: M, origin: Origin, asker: Option<Arc<dyn Refuse>>) -> Self {
        Self { id: 0, message, attempts: 0, failed: 0, origin, asker }
    }
}

impl<M> Queue<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            waiting: VecDeque::new(),
            lent: 0,
            senders: None,
            suspects: 0,
            next_id: 0,
            next_ticket: 0,
        }
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
        self.len() >= self.capacity
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

    /// The next message from number `from` on, for good; and the sender who has got its room.
    pub(super) fn take(&mut self, from: u64) -> Option<(Envelope<M>, Option<Waker>)> {
        let envelope = self.pick(from)?;
        self.forget(&envelope);
        Some((envelope, self.admit()))
    }

    /// The next message from number `from` on, until it is settled or comes back.
    pub(super) fn lend(&mut self, from: u64) -> Option<Envelope<M>> {
        let mut envelope = self.pick(from)?;
        self.lent += 1;
        envelope.attempts += 1;
        Some(envelope)
    }

    fn pick(&mut self, from: u64) -> Option<Envelope<M>> {
        if self.waiting.front()?.id >= from {
            return self.waiting.pop_front();
        }
        let at = self.waiting.partition_point(|it| it.id < from);
        self.waiting.remove(at)
    }

    /// A lent message is gone; returns the sender who has got its room.
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
            envelope.failed += 1;
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

    /// Lets the sender in who has waited longest, if there is room now.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        if self.is_full() {
            return None;
        }
        let Parked { envelope, waker, .. } = self.senders.as_mut()?.waiting.pop_front()?;
        self.push(envelope);
        Some(waker)
    }

    /// Lets a sender wait for room. Returns its number.
    pub(super) fn park(&mut self, envelope: Envelope<M>, waker: Waker) -> u64 {
        debug_assert!(self.is_full());
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let senders = self.senders.get_or_insert_default();
        senders.waiting.push_back(Parked { ticket, envelope, waker });
        ticket
    }

    /// What has become of a sender that had to wait; as long as it waits, it is woken by `waker`.
    pub(super) fn poll_parked(&mut self, ticket: u64, waker: &Waker) -> Poll<Result<(), M>> {
        if let Some(senders) = &mut self.senders
            && let Some(at) = find(&senders.waiting, ticket)
            && let Some(parked) = senders.waiting.get_mut(at)
        {
            parked.waker.clone_from(waker);
            return Poll::Pending;
        }
        let refused = self.withdraw(ticket);
        Poll::Ready(refused.map_or(Ok(()), |envelope| Err(envelope.message)))
    }

    /// The sender waits no longer. None if its message was let in.
    pub(super) fn withdraw(&mut self, ticket: u64) -> Option<Envelope<M>> {
        let Senders { waiting, refused } = &mut **self.senders.as_mut()?;
        let withdrawn = match (find(waiting, ticket), find(refused, ticket)) {
            (Some(at), _) => waiting.remove(at)?,
            (None, at) => refused.remove(at?)?,
        };
        if waiting.is_empty() && refused.is_empty() {
            self.senders = None;
        }
        Some(withdrawn.envelope)
    }

    /// Refuses the senders who wait for room: each finds its message when it looks. They are to be
    /// woken.
    pub(super) fn refuse(&mut self) -> Vec<Waker> {
        let Some(senders) = &mut self.senders else { return Vec::new() };
        let wakers = senders.waiting.iter().map(|it| it.waker.clone()).collect();
        senders.refused.append(&mut senders.waiting);
        wakers
    }

    /// Empties the queue of all that was never lent, as if there were always room for those who
    /// wait. They are to be woken.
    pub(super) fn flush(&mut self) -> (VecDeque<Envelope<M>>, Vec<Waker>) {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (tried, mut all): (VecDeque<_>, VecDeque<_>) = waiting.partition(|it| it.attempts > 0);
        self.waiting = tried;
        let mut wakers = Vec::new();
        let parked = self.senders.as_mut().map(|senders| std::mem::take(&mut senders.waiting));
        for Parked { envelope, waker, .. } in parked.into_iter().flatten() {
            all.push_back(envelope);
            wakers.push(waker);
        }
        (all, wakers)
    }

    /// Empties the queue of all that came in.
    pub(super) fn drain(&mut self) -> VecDeque<Envelope<M>> {
        let all = std::mem::take(&mut self.waiting);
        self.suspects -= all.iter().filter(|it| it.failed > 0).count();
        all
    }
}

/// Where the sender with this number is in a list.
fn find<M>(list: &VecDeque<Parked<M>>, ticket: u64) -> Option<usize> {
    list.binary_search_by_key(&ticket, |it| it.ticket).ok()
}
