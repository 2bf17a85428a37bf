//! The message of a letter, which all clones of the letter share.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use super::letter::DeadLetter;
use crate::panic::catch_panic;
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

thread_local! {
    /// Messages to be dropped once no lock is held. `None` outside of [`drop_afterwards`].
    static DEFERRED: RefCell<Option<Vec<AnyMessage>>> = const { RefCell::new(None) };
}

/// Calls `f`, which may drop letters under a lock, and drops their messages afterwards.
///
/// A panic of a message's `Drop` is ignored: it belongs to no caller, and a second one would end the process.
///
/// The `Drop` of a message may send messages that become letters; these would wait for the lock that
/// their own thread holds.
pub(crate) fn drop_afterwards<R>(f: impl FnOnce() -> R) -> R {
    let _deferred = Deferred::begin();
    f()
}

/// Drops the deferred messages, also after a panic. What their `Drop` defers is dropped after them, so that
/// a chain of messages that send messages needs no stack.
struct Deferred;

impl Deferred {
    /// Returns `None` if an outer call has begun already.
    fn begin() -> Option<Self> {
        let outermost = DEFERRED.with_borrow_mut(|deferred| {
            let outermost = deferred.is_none();
            deferred.get_or_insert_default();
            outermost
        });
        // Not `then_some`, which would create and drop a value in the inner call, too.
        outermost.then(|| Self)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        loop {
            let next = DEFERRED.with_borrow_mut(|deferred| {
                let next = deferred.as_mut().map(std::mem::take).filter(|next| !next.is_empty());
                if next.is_none() {
                    *deferred = None;
                }
                next
            });
            let Some(messages) = next else { return };
            for message in messages {
                catch_panic(|| drop(message));
            }
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let Some(message) = self.remove() else { return };
        // The list may be gone while its thread ends. No lock is held then, so `message` drops here.
        let mut message = Some(message);
        let _ = DEFERRED.try_with(|deferred| {
            if let Some(deferred) = deferred.borrow_mut().as_mut() {
                deferred.extend(message.take());
            }
        });
        catch_panic(|| drop(message));
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
