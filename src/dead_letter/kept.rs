//! The messages of the last letters, which subscribers can still take.
//!
//! A subscriber that doesn't read holds a thousand letters. Their messages may be large, so only those of the
//! last letters are kept. Letters in a store keep their messages: the store has a capacity of its own.
//!
//! # Invariants
//!
//! 1. Of the letters that were passed to [`KeptMessages::keep`], at most [`KEPT`] hold their message.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::letter::DeadLetter;
use super::payload::Payload;
use crate::sync::Mutex;

/// How many letters keep their message.
const KEPT: usize = 128;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct KeptMessages(Mutex<VecDeque<Weak<Payload>>>);

impl KeptMessages {
    /// Keeps the message of a letter, and drops that of the oldest one if there are too many.
    pub(crate) fn keep(&self, letter: &DeadLetter) {
        let Some(payload) = letter.payload().map(Arc::downgrade) else { return };
        let oldest = {
            let mut kept = self.0.lock();
            kept.push_back(payload);
            if kept.len() > KEPT { kept.pop_front() } else { None }
        };
        if let Some(oldest) = oldest.and_then(|payload| payload.upgrade()) {
            oldest.forget();
        }
    }
}
