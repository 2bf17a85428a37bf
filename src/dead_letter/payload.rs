//! The message of a letter, which all copies of the letter share.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fmt;

use crate::sync::Mutex;

type Message = Box<dyn Any + Send>;

pub(crate) struct Payload {
    type_id: TypeId,
    message: Mutex<Option<Message>>,
}

impl Payload {
    pub(super) fn new(type_id: TypeId, message: Message) -> Self {
        Self { type_id, message: Mutex::new(Some(message)) }
    }

    /// Whether it is or was an `M`.
    pub(super) fn is<M: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<M>()
    }

    /// The message, if it is an `M` and still there.
    pub(super) fn take<M: 'static>(&self) -> Option<M> {
        if !self.is::<M>() {
            return None;
        }
        let message = self.remove()?.downcast().ok()?;
        Some(*message)
    }

    pub(super) fn remove(&self) -> Option<Message> {
        self.message.lock().take()
    }

    /// Puts a message back that was [removed](Self::remove).
    pub(super) fn put_back(&self, message: Message) {
        *self.message.lock() = Some(message);
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").finish_non_exhaustive()
    }
}

thread_local! {
    /// Messages that are to be dropped once no lock is held, while there may be one.
    static LEFT: RefCell<Option<Vec<Message>>> = const { RefCell::new(None) };
}

/// Does something under a lock that may drop letters. The messages of those are dropped afterwards.
///
/// Foreign code runs when a message is dropped, and it may send messages that become letters; those
/// would wait for the lock that their own thread holds.
pub(crate) fn drop_afterwards<R>(f: impl FnOnce() -> R) -> R {
    let _afterwards = Afterwards::begin();
    f()
}

/// Drops what is left, also if something has panicked.
struct Afterwards;

impl Afterwards {
    /// None if it has begun already, further outside.
    fn begin() -> Option<Self> {
        let outermost = LEFT.with_borrow_mut(|left| {
            let outermost = left.is_none();
            left.get_or_insert_default();
            outermost
        });
        // Lazily: one that isn't needed would do its work at once.
        outermost.then(|| Self)
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        drop(LEFT.take());
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let Some(message) = self.remove() else { return };
        // A thread that ends has no such place any more, and holds no lock.
        let mut message = Some(message);
        let _ = LEFT.try_with(|left| {
            if let Some(left) = left.borrow_mut().as_mut() {
                left.extend(message.take());
            }
        });
    }
}
