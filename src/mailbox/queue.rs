//! The messages of one mailbox, in order, and the senders that wait for room.
//!
//! A message is *queued* here or *lent* to the child as a delivery. The queue knows neither the child
//! nor the time, and doesn't decide what happens to a message that it returns.
//!
//! # Invariants
//!
//! 1. Queued messages are in the order of their numbers, which is the order in which they were sent. A
//!    lent message that comes back takes its old place.
//! 2. A message is queued only if there is room, or in the place of one that was evicted. A capacity that becomes smaller
//!    removes none.
//! 3. A sender that waits for room was woken since its last poll if there is room for it and for all
//!    senders before it.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use super::ask::OpenQuestion;
use crate::dead_letter::EntryId;

/// See the [module](self).
pub(super) struct MessageQueue<M> {
    pub(super) capacity: usize,
    /// The number of the next message.
    pub(super) next_id: u64,
    queued: VecDeque<Envelope<M>>,
    /// The first look that has found the queue [nearly full](Self::is_nearly_full), if it has been so since.
    pub(super) full_since: Option<Instant>,
    lent: usize,
    /// How many messages, queued or lent, have failed before.
    failed_before: usize,
    /// Boxed, since few mailboxes are ever full.
    senders: Option<Box<WaitingSenders>>,
}

impl<M> MessageQueue<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            next_id: 0,
            queued: VecDeque::new(),
            full_since: None,
            lent: 0,
            failed_before: 0,
            senders: None,
        }
    }

    /// Returns the number of messages, queued or lent.
    pub(super) fn len(&self) -> usize {
        self.queued.len() + self.lent
    }

    /// Returns `true` if no message is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Whether at least 90 % of the room is taken.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.len() >= self.capacity - self.capacity / 10
    }

    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// Returns `true` if some message, queued or lent, has failed before.
    pub(super) fn has_failed_before(&self) -> bool {
        self.failed_before > 0
    }

    // --- Messages ---------------------------------------------------------------------------------

    /// Queues a message behind all others. There must be room, or another one was evicted for it.
    pub(super) fn push(&mut self, mut envelope: Envelope<M>) {
        envelope.id = self.next_id;
        self.next_id += 1;
        self.queued.push_back(envelope);
    }

    /// Removes the oldest queued message, so that a new one can be pushed.
    pub(super) fn evict(&mut self) -> Option<Envelope<M>> {
        let evicted = self.queued.pop_front()?;
        self.forget(&evicted);
        Some(evicted)
    }

    /// Removes the first message whose number is at least `from`. Also returns the waker of the sender
    /// that has room now.
    pub(super) fn take(&mut self, from: u64) -> Option<(Envelope<M>, Option<Waker>)> {
        let envelope = self.pick(from)?;
        self.forget(&envelope);
        Some((envelope, self.wake_next()))
    }

    /// Lends the first message whose number is at least `from`, until it is [settled](Self::settle) or
    /// [comes back](Self::give_back).
    pub(super) fn lend(&mut self, from: u64) -> Option<Envelope<M>> {
        let mut envelope = self.pick(from)?;
        self.lent += 1;
        envelope.attempts = envelope.attempts.saturating_add(1);
        Some(envelope)
    }

    /// Ends the loan of a message that doesn't come back. Returns the waker of the sender that has room
    /// now.
    pub(super) fn settle(&mut self, envelope: &Envelope<M>) -> Option<Waker> {
        self.lent -= 1;
        self.forget(envelope);
        self.wake_next()
    }

    /// Queues a lent message again, in its old place. `failed`: the attempt counts as failed.
    pub(super) fn give_back(&mut self, mut envelope: Envelope<M>, failed: bool) {
        self.lent -= 1;
        if failed {
            self.failed_before += usize::from(envelope.failed == 0);
            envelope.failed = envelope.failed.saturating_add(1);
        }
        let at = self.queued.partition_point(|it| it.id < envelope.id);
        self.queued.insert(at, envelope);
    }

    /// Removes all messages that were never lent.
    pub(super) fn drain_undelivered(&mut self) -> VecDeque<Envelope<M>> {
        let queued = std::mem::take(&mut self.queued).into_iter();
        let (delivered, undelivered) = queued.partition(|it| it.attempts > 0);
        self.queued = delivered;
        undelivered
    }

    /// Removes all queued messages.
    pub(super) fn drain(&mut self) -> VecDeque<Envelope<M>> {
        let drained = std::mem::take(&mut self.queued);
        self.failed_before -= drained.iter().filter(|it| it.failed > 0).count();
        drained
    }

    fn pick(&mut self, from: u64) -> Option<Envelope<M>> {
        let at = if self.queued.front()?.id >= from {
            0
        } else {
            self.queued.partition_point(|it| it.id < from)
        };
        self.queued.remove(at)
    }

    fn forget(&mut self, envelope: &Envelope<M>) {
        self.failed_before -= usize::from(envelope.failed > 0);
    }

    // --- Senders ----------------------------------------------------------------------------------

    /// Whether a sender may send: one that waits under this number, or a new one.
    pub(super) fn has_room_for(&self, number: Option<u64>) -> bool {
        let before = self.senders.as_ref().map_or(0, |senders| {
            let before = number.and_then(|number| senders.before(number));
            before.unwrap_or(senders.queue.len())
        });
        before < self.room()
    }

    /// Lets a sender wait for room: in its place if it has waited under this number, or behind all others.
    ///
    /// Returns its number, and the waker that was replaced, which must be dropped outside of the lock.
    pub(super) fn wait(&mut self, number: Option<u64>, waker: &Waker) -> (u64, Option<Waker>) {
        debug_assert!(!self.has_room_for(number));
        let senders = self.senders.get_or_insert_default();
        if let Some(number) = number
            && let Some(before) = senders.before(number)
        {
            let kept = &mut senders.queue[before].1;
            let is_same = kept.as_ref().is_some_and(|kept| kept.will_wake(waker));
            return (number, if is_same { None } else { kept.replace(waker.clone()) });
        }
        let number = senders.next;
        senders.next += 1;
        senders.queue.push_back((number, Some(waker.clone())));
        (number, None)
    }

    /// Removes a sender that sends now, and returns its waker. There must be room for it.
    pub(super) fn end_wait(&mut self, number: u64) -> Option<Waker> {
        debug_assert!(self.has_room_for(Some(number)));
        self.senders.as_mut()?.remove(number)?.1
    }

    /// Removes a sender that doesn't send. Returns its waker, and the waker of the sender that has room
    /// now.
    pub(super) fn leave(&mut self, number: u64) -> (Option<Waker>, Option<Waker>) {
        let removed = self.senders.as_mut().and_then(|senders| senders.remove(number));
        let Some((before, waker)) = removed else { return (None, None) };
        (waker, if before < self.room() { self.wake_next() } else { None })
    }

    /// Returns the wakers of all senders that have room now, after messages were [drained](Self::drain).
    pub(super) fn wake_all(&mut self) -> Vec<Waker> {
        let room = self.room();
        let Some(senders) = &mut self.senders else { return Vec::new() };
        senders.queue.iter_mut().take(room).filter_map(|(_, waker)| waker.take()).collect()
    }

    /// Removes all waiting senders, so that each may try again. Returns the wakers of those that were not woken.
    pub(super) fn release_senders(&mut self) -> Vec<Waker> {
        let Some(senders) = &mut self.senders else { return Vec::new() };
        std::mem::take(&mut senders.queue).into_iter().filter_map(|(_, waker)| waker).collect()
    }

    /// Returns the waker of the last sender that has room, after one message or sender has gone.
    fn wake_next(&mut self) -> Option<Waker> {
        let last = self.room().checked_sub(1)?;
        self.senders.as_mut()?.queue.get_mut(last)?.1.take()
    }
}

/// A message and what the mailbox knows about it.
pub(super) struct Envelope<M> {
    /// The number of the message in its mailbox, assigned when it is queued.
    pub(super) id: u64,
    pub(super) message: M,
    /// How often the message was delivered.
    pub(super) attempts: u32,
    /// How many of these attempts failed.
    pub(super) failed: u32,
    /// `None`: sent through an address. Boxed, since all else is rare.
    pub(super) origin: Option<Box<MessageOrigin>>,
    /// Refuses the question, if the message is one.
    pub(super) asker: Option<OpenQuestion>,
}

/// How a message came to its mailbox.
pub(super) enum MessageOrigin {
    /// By the mailbox of a child that was down.
    Forwarded,
    /// From a dead letter store.
    Replayed(EntryId),
}

impl<M> Envelope<M> {
    /// Wraps a message that is not queued yet.
    pub(super) fn new(message: M) -> Self {
        Self { id: 0, message, attempts: 0, failed: 0, origin: None, asker: None }
    }

    /// Replaces the message.
    pub(super) fn map<T>(self, change: impl FnOnce(M) -> T) -> Envelope<T> {
        let Self { id, message, attempts, failed, origin, asker } = self;
        Envelope { id, message: change(message), attempts, failed, origin, asker }
    }
}

/// The senders that wait for room in a mailbox.
///
/// Each sender has a number, in order of arrival, and keeps its place until it has sent, or is dropped.
/// A sender may send when there is room for it and for all senders before it. It is woken then, but no
/// room is reserved for it: its task may never poll it again. If a message that didn't wait takes the
/// room, the sender waits on, in its old place.
#[derive(Default)]
struct WaitingSenders {
    /// In order of arrival. A sender that was woken has no waker until it polls again.
    queue: VecDeque<(u64, Option<Waker>)>,
    /// The number of the next sender. Numbers are never reused, since a sender may poll with an old one.
    next: u64,
}

impl WaitingSenders {
    /// Returns how many senders are before this one.
    fn before(&self, number: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    /// Removes a sender. Returns how many were before it, and its waker.
    fn remove(&mut self, number: u64) -> Option<(usize, Option<Waker>)> {
        let before = self.before(number)?;
        let (_, waker) = self.queue.remove(before)?;
        Some((before, waker))
    }
}
