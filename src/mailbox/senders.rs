//! The senders that wait for room in a mailbox.
//!
//! Each sender has a number, in order of arrival. When there is room, the first sender is *admitted*:
//! the room is reserved until that sender polls again, which is when its message is queued. A sender
//! that is dropped before that has sent nothing.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

/// See the [module](self).
#[derive(Default)]
pub(super) struct WaitingSenders {
    /// In order of arrival: first the admitted senders, then the waiting ones. Only the latter have a
    /// waker.
    queue: VecDeque<(u64, Option<Waker>)>,
    admitted: usize,
    /// The number of the next sender. Numbers are never reused, since a sender may poll with an old one.
    next: u64,
}

impl WaitingSenders {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns for how many senders room is reserved.
    pub(super) fn admitted(&self) -> usize {
        self.admitted
    }

    /// Adds a sender and returns its number.
    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        self.queue.push_back((number, Some(waker)));
        number
    }

    /// Reserves room for the sender that has waited longest. Returns its waker.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        let (_, waker) = self.queue.get_mut(self.admitted)?;
        self.admitted += 1;
        waker.take()
    }

    /// Returns `Ready` if the sender may send; its reservation then ends.
    ///
    /// Also returns the waker that was replaced, which must be dropped outside of the lock.
    pub(super) fn poll(&mut self, number: u64, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        if let Some(at) = self.find(number)
            && let Some(kept) = &mut self.queue[at].1
        {
            let stale = (!kept.will_wake(waker)).then(|| std::mem::replace(kept, waker.clone()));
            return (Poll::Pending, stale);
        }
        self.leave(number);
        (Poll::Ready(()), None)
    }

    /// Removes a sender. Returns whether room was reserved for it, and its waker if it was waiting.
    pub(super) fn leave(&mut self, number: u64) -> (bool, Option<Waker>) {
        let Some(at) = self.find(number) else { return (false, None) };
        let was_admitted = at < self.admitted;
        self.admitted -= usize::from(was_admitted);
        (was_admitted, self.queue.remove(at).and_then(|(_, waker)| waker))
    }

    /// Removes all senders, so that each may try again. Returns the wakers of those that were waiting.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        self.admitted = 0;
        std::mem::take(&mut self.queue).into_iter().filter_map(|(_, waker)| waker).collect()
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&number, |(number, _)| *number).ok()
    }
}
