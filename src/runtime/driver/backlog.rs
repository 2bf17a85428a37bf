//! Answers that one iteration leaves for the next.
//!
//! One event can end the wait of any number of callers. An iteration sends a bounded number of answers, so that calls and
//! exits need not wait for the rest.
//!
//! # Invariants
//!
//! 1. Answers are sent in the order of the machine's replies.
//! 2. The supervisor ends after its last answer, unless it is dropped.

use std::collections::VecDeque;

use crate::core::{ChildAnswer, Ticket};

/// How many answers one iteration sends.
const ANSWERS: usize = 1024;

/// See the [module](self).
pub(super) struct Backlog {
    answers: VecDeque<(Ticket, ChildAnswer)>,
    /// How many answers this iteration may still send.
    answers_left: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { answers: VecDeque::new(), answers_left: ANSWERS }
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Begins an iteration.
    pub(super) fn begin(&mut self) {
        self.answers_left = ANSWERS;
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
}
