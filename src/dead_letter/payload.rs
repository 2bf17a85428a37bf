//! The message of a letter, which all clones of the letter share.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use super::letter::DeadLetter;
use crate::deferred_drop::drop_flat;
use crate::sync::Mutex;

/// A message of any type.
pub(super) type AnyMessage = Box<dyn Any + Send>;

/// See the [module](self).
pub(super) struct Payload {
    type_id: TypeId,
    message: Mutex<Option<AnyMessage>>,
}

impl Payload {
    /// `lost` is the type of a message that is gone.
    pub(super) fn new(message: Option<AnyMessage>, lost: TypeId) -> Self {
        let type_id = message.as_ref().map_or(lost, |message| (**message).type_id());
        Self { type_id, message: Mutex::new(message) }
    }

    /// Returns `true` if the message is an `M`, whether or not it was taken.
    pub(super) fn is<M: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<M>()
    }

    /// Takes the message if it is an `M`.
    pub(super) fn take<M: 'static>(&self) -> Option<M> {
        if !self.is::<M>() {
            return None;
        }
        let message = self.remove()?.downcast().ok()?;
        Some(*message)
    }

    /// Whether the message was neither taken nor lost.
    pub(super) fn is_present(&self) -> bool {
        self.message.lock().is_some()
    }

    pub(super) fn remove(&self) -> Option<AnyMessage> {
        self.message.lock().take()
    }

    /// Drops the message, once no lock is held.
    pub(super) fn forget(&self) {
        drop(Self::new(self.remove(), self.type_id));
    }

    /// Restores a message that was [removed](Self::remove).
    pub(super) fn put_back(&self, message: AnyMessage) {
        *self.message.lock() = Some(message);
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").finish_non_exhaustive()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(message) = self.remove() {
            drop_flat(message);
        }
    }
}

/// How many letters keep their message.
const KEPT: usize = 128;

/// The messages of the last letters, which subscribers can still take.
///
/// A subscriber that doesn't read holds a thousand letters. Their messages may be large, so at most [`KEPT`] of the letters
/// that were passed to [`keep`](Self::keep) hold their message. Letters in a store keep theirs: the store has a capacity.
#[derive(Debug, Default)]
pub(crate) struct KeptMessages(Mutex<VecDeque<Weak<Payload>>>);

impl KeptMessages {
    /// Keeps the message of a letter, and drops that of the oldest one if there are too many.
    pub(crate) fn keep(&self, letter: &DeadLetter) {
        let Some(payload) = letter.payload.as_ref().map(Arc::downgrade) else { return };
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
