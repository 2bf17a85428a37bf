//! The senders that wait for room in a mailbox.
//!
//! Each sender has a number, in order of arrival, and keeps its place until it has sent, or is dropped.
//! A sender may send when there is room for it and for all senders before it. It is woken then, but no
//! room is reserved for it: its task may never poll it again. If a message that didn't wait takes the
//! room, the sender waits on, in its old place.

use std::collections::VecDeque;
use std::task::Waker;

/// See the [module](self).
#[derive(Default)]
pub(super) struct WaitingSenders {
    /// In order of arrival. A sender that was woken has no waker until it polls again.
    queue: VecDeque<(u64, Option<Waker>)>,
    /// The number of the next sender. Numbers are never reused, since a sender may poll with an old one.
    next: u64,
}

impl WaitingSenders {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many senders are before this one.
    pub(super) fn before(&self, number: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    /// Adds a sender and returns its number.
    pub(super) fn add(&mut self, waker: Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        self.queue.push_back((number, Some(waker)));
        number
    }

    /// Registers a sender that waits on. Returns the waker that is replaced, or `None` if there is no such
    /// sender.
    pub(super) fn wait_on(&mut self, number: u64, waker: &Waker) -> Option<Option<Waker>> {
        let before = self.before(number)?;
        let kept = &mut self.queue[before].1;
        match kept {
            Some(kept) if kept.will_wake(waker) => Some(None),
            _ => Some(kept.replace(waker.clone())),
        }
    }

    /// Returns the waker of the sender that has so many before it, unless that sender was woken already.
    pub(super) fn wake(&mut self, before: usize) -> Option<Waker> {
        self.queue.get_mut(before)?.1.take()
    }

    /// Removes a sender. Returns how many were before it, and its waker.
    pub(super) fn remove(&mut self, number: u64) -> Option<(usize, Option<Waker>)> {
        let before = self.before(number)?;
        let (_, waker) = self.queue.remove(before)?;
        Some((before, waker))
    }

    /// Removes all senders, so that each may try again. Returns the wakers of those that were not woken.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.queue).into_iter().filter_map(|(_, waker)| waker).collect()
    }
}
