//! Senders that wait for room in a mailbox.
//!
//! Each has a number, in the order in which they came. When there is room, the first is *admitted*:
//! the room is kept for it until it has looked, which is when its message is sent. So a sender that
//! gives up has sent nothing, and nobody gets ahead of those who have waited longer.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Senders {
    /// In the order in which they came: first those for whom room is kept, and then those who wait,
    /// who alone have a waker.
    queue: VecDeque<(u64, Option<Waker>)>,
    /// For how many room is kept.
    admitted: usize,
    /// Never used again: a sender may still ask by the one that it had.
    next: u64,
}

impl Senders {
    /// How much room is kept.
    pub(super) fn admitted(&self) -> usize {
        self.admitted
    }

    /// Whether nobody waits, and no room is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        self.queue.push_back((number, Some(waker)));
        number
    }

    /// Keeps room for the first who waits.
    pub(super) fn admit(&mut self) -> Option<Waker> {
        let (_, waker) = self.queue.get_mut(self.admitted)?;
        self.admitted += 1;
        waker.take()
    }

    /// Ready when the sender may try again. What was kept for it is its own then. Returns a waker
    /// besides that is of no use any more, to be dropped outside of the lock.
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

    /// The sender gives up. Returns whether room was kept for it, and its waker if it waited.
    pub(super) fn leave(&mut self, number: u64) -> (bool, Option<Waker>) {
        let Some(at) = self.find(number) else { return (false, None) };
        let was_admitted = at < self.admitted;
        self.admitted -= usize::from(was_admitted);
        (was_admitted, self.queue.remove(at).and_then(|(_, waker)| waker))
    }

    /// All of them may try again.
    pub(super) fn release(&mut self) -> Vec<Waker> {
        self.admitted = 0;
        std::mem::take(&mut self.queue).into_iter().filter_map(|(_, waker)| waker).collect()
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&number, |(number, _)| *number).ok()
    }
}
