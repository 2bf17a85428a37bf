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

use super::state::Driver;
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
}

impl Driver {
    /// Begins an iteration, with what the ones before have left.
    pub(super) fn work_off(&mut self, now: Instant) {
        (self.backlog.answers_left, self.backlog.letters_left) = (ANSWERS, LETTERS);
        while self.backlog.answers_left > 0
            && let Some((ticket, answer)) = self.backlog.answers.pop_front()
        {
            self.backlog.answers_left -= 1;
            self.reply(ticket, answer, now);
        }
        while self.backlog.letters_left > 0
            && let Some(messages) = self.backlog.letters.front_mut()
        {
            self.backlog.letters_left -= messages.publish(self.backlog.letters_left, now);
            if messages.is_empty() {
                self.backlog.letters.pop_front();
            }
        }
    }

    /// Answers a call, now or in a later iteration.
    pub(super) fn reply_in_turn(&mut self, ticket: Ticket, answer: ChildAnswer, now: Instant) {
        if self.backlog.answers_left == 0 {
            self.backlog.answers.push_back((ticket, answer));
        } else {
            self.backlog.answers_left -= 1;
            self.reply(ticket, answer, now);
        }
    }

    /// Publishes the dead letters of messages that a mailbox had, now or in later iterations.
    pub(super) fn publish_in_turn(
        &mut self,
        messages: impl IntoIterator<Item = Box<dyn LeftMessages>>,
        now: Instant,
    ) {
        for mut messages in messages {
            if self.backlog.letters.is_empty() {
                self.backlog.letters_left -= messages.publish(self.backlog.letters_left, now);
            }
            if !messages.is_empty() {
                self.backlog.letters.push_back(messages);
            }
        }
    }
}
