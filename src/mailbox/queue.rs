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
    /// Its number, which no other message of the mailbox has.
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
    envelope: Envelope<M>,
    waker: Waker,
}

/// Senders who found no room, in the order of their messages.
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
        self.len() >= self.capacity
    }

    /// The number of the next message.
    pub(super) fn end(&self) -> u64 {
        self.next_id
    }

    pub(super) fn seal(
        &mut self,
        message: M,
        origin: Origin,
        asker: Option<Arc<dyn Refuse>>,
    ) -> Envelope<M> {
        let id = self.next_id;
        self.next_id += 1;
        Envelope { id, message, attempts: 0, failed: 0, origin, asker }
    }

    /// Puts a message behind all others. There must be room.
    pub(super) fn push(&mut self, envelope: Envelope<M>) {
        debug_assert!(!self.is_full() && self.waiting.back().is_none_or(|it| it.id < envelope.id));
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
    fn admit(&mut self) -> Option<Waker> {
        if self.is_full() {
            return None;
        }
        let Parked { envelope, waker } = self.senders.as_mut()?.waiting.pop_front()?;
        self.push(envelope);
        Some(waker)
    }

    /// Lets a sender wait for room.
    pub(super) fn park(&mut self, envelope: Envelope<M>, waker: Waker) {
        debug_assert!(self.is_full());
        self.senders.get_or_insert_default().waiting.push_back(Parked { envelope, waker });
    }

    /// What has become of a sender that had to wait; as long as it waits, it is woken by `waker`.
    pub(super) fn poll_parked(&mut self, id: u64, waker: &Waker) -> Poll<Result<(), M>> {
        if let Some(senders) = &mut self.senders
            && let Some(at) = find(&senders.waiting, id)
            && let Some(parked) = senders.waiting.get_mut(at)
        {
            parked.waker.clone_from(waker);
            return Poll::Pending;
        }
        let refused = self.withdraw(id);
        Poll::Ready(refused.map_or(Ok(()), |envelope| Err(envelope.message)))
    }

    /// The sender of this message waits no longer. None if the message was let in.
    pub(super) fn withdraw(&mut self, id: u64) -> Option<Envelope<M>> {
        let Senders { waiting, refused } = &mut **self.senders.as_mut()?;
        let withdrawn = match (find(waiting, id), find(refused, id)) {
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
        for Parked { envelope, waker } in parked.into_iter().flatten() {
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

/// Where the sender of this message is in a list, which is in the order of numbers.
fn find<M>(list: &VecDeque<Parked<M>>, id: u64) -> Option<usize> {
    list.binary_search_by_key(&id, |it| it.envelope.id).ok()
}
