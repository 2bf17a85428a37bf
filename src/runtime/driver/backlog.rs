//! Answers and dead letters that one iteration leaves for the next.
//!
//! One event can end the wait of any number of callers, and close a mailbox with any number of messages.
//! An iteration sends a bounded number of answers and letters, so that calls and exits need not wait for
//! the rest.
//!
//! # Invariants
//!
//! 1. Answers are sent in the order of the machine's replies, and letters in the order in which mailboxes
//!    were closed.
//! 2. The supervisor ends after its last answer and its last letter, unless it is dropped.

use std::collections::VecDeque;
use std::time::Instant;

use crate::core::{ChildAnswer, Ticket};
use crate::mailbox::LeftMessages;

/// How many answers one iteration sends.
const ANSWERS: usize = 1024;
/// How many dead letters of closed mailboxes one iteration publishes.
const LETTERS: usize = 256;

/// See the [module](self).
pub(super) struct Backlog {
    answers: VecDeque<(Ticket, ChildAnswer)>,
    /// How many answers this iteration may still send.
    answers_left: usize,
    /// Dropping these publishes them.
    letters: VecDeque<Box<dyn LeftMessages>>,
    letters_left: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            answers: VecDeque::new(),
            answers_left: ANSWERS,
            letters: VecDeque::new(),
            letters_left: LETTERS,
        }
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.letters.is_empty()
    }

    /// Begins an iteration.
    pub(super) fn begin(&mut self) {
        (self.answers_left, self.letters_left) = (ANSWERS, LETTERS);
    }

    pub(super) fn push_answer(&mut self, ticket: Ticket, answer: ChildAnswer) {
        self.answers.push_back((ticket, answer));
    }

    /// Removes the oldest answer, if this iteration may send it.
    pub(super) fn next_answer(&mut self) -> Option<(Ticket, ChildAnswer)> {
        if self.answers_left == 0 {
            return None;
        }
        let next = self.answers.pop_front()?;
        self.answers_left -= 1;
        Some(next)
    }

    pub(super) fn push_letters(
        &mut self,
        messages: impl IntoIterator<Item = Box<dyn LeftMessages>>,
    ) {
        // perf: budgets row "stop"; `extend` takes longer where there are none
        for messages in messages {
            self.letters.push_back(messages);
        }
    }

    /// Publishes the oldest letters, as many as this iteration may.
    pub(super) fn publish(&mut self, now: Instant) {
        while self.letters_left > 0
            && let Some(messages) = self.letters.front_mut()
        {
            self.letters_left -= messages.publish(self.letters_left, now);
            if messages.is_empty() {
                self.letters.pop_front();
            }
        }
    }
}
