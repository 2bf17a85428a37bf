//! Senders that wait for room in a mailbox.
//!
//! Each has a number, in the order in which they came. When there is room, the first is *admitted*:
//! the room is kept for it until it has looked, which is when its message is sent. So a sender that
//! gives up has sent nothing, and nobody gets ahead of those who have waited longer.

use std::collections::{BTreeSet, VecDeque};
use std::task::{Poll, Waker};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Senders {
    waiting: VecDeque<(u64, Waker)>,
    /// Those for whom room is kept.
    admitted: BTreeSet<u64>,
    /// Never used again: a sender may still ask by the one that it had.
    next: u64,
}

impl Senders {
    /// How much room is kept.
    pub(super) fn admitted(&self) -> usize {
        self.admitted.len()
    }

    /// Whether nobody waits, and no room is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.admitted.is_empty()
    }

    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back((number, waker));
        number
    }

    /// Keeps room for the first.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        let (number, waker) = self.waiting.pop_front()?;
        self.admitted.insert(number);
        Some(waker)
    }

    /// Ready when the sender may try again. What was kept for it is its own then. Returns a waker
    /// besides that is of no use any more, to be dropped outside of the lock.
    pub(super) fn poll(&mut self, number: u64, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        match self.find(number) {
            Some(at) => {
                let kept = &mut self.waiting[at].1;
                let stale =
                    (!kept.will_wake(waker)).then(|| std::mem::replace(kept, waker.clone()));
                (Poll::Pending, stale)
            }
            None => {
                self.admitted.remove(&number);
                (Poll::Ready(()), None)
            }
        }
    }

    /// The sender gives up. Returns whether room was kept for it, and its waker if it waited.
    pub(super) fn leave(&mut self, number: u64) -> (bool, Option<Waker>) {
        let waiting = self.find(number).and_then(|at| self.waiting.remove(at));
        (self.admitted.remove(&number), waiting.map(|(_, waker)| waker))
    }

    /// All of them may try again.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        self.admitted.clear();
        std::mem::take(&mut self.waiting).into_iter().map(|(_, waker)| waker).collect()
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&number, |(number, _)| *number).ok()
    }
}
