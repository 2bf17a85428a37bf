//! Drops of the user's values that wait: until no lock is held, and until the drop around them has returned.
//!
//! The `Drop` of a value may do what leads to the next drop: send a message that becomes a letter, emit an event
//! that nobody handles, spawn a helper of a child that has ended. Under a lock it would wait for its own thread, and
//! a chain of such values would use up the stack.
//!
//! # Invariants
//!
//! 1. No value is dropped inside of [`drop_afterwards`] or inside of another [`drop_flat`] on the same thread.
//! 2. A panic of a value's `Drop` is caught: it belongs to no caller, and a second one would end the process.
//! 3. It works while a thread exits, whose other thread-locals may be gone.

use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::panic::catch_panic;

/// A value of the user's.
type Value = Box<dyn Any + Send>;

thread_local! {
    /// Values to be dropped. `None` outside of [`drop_afterwards`].
    ///
    /// A local with a destructor is gone when another destructor of the thread needs it. This one has none, and is
    /// empty whenever no call is running.
    static DEFERRED: ManuallyDrop<RefCell<Option<Vec<Value>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Calls `change`, which must not call the user's code. `None` where a system has destroyed the local.
fn with_deferred<R>(change: impl FnOnce(&mut Option<Vec<Value>>) -> R) -> Option<R> {
    DEFERRED.try_with(|deferred| change(&mut deferred.borrow_mut())).ok()
}

/// Calls `f`, which may drop letters under a lock, and drops their messages afterwards.
pub(crate) fn drop_afterwards<R>(f: impl FnOnce() -> R) -> R {
    let _deferred = Deferred::begin();
    f()
}

/// Drops a value of the user's, after the drop that this thread is inside of.
pub(crate) fn drop_flat(value: Box<dyn Any + Send>) {
    let _deferred = Deferred::begin();
    let mut value = Some(value);
    with_deferred(|deferred| deferred.as_mut().map(|deferred| deferred.extend(value.take())));
    // Nothing is deferred where the local is gone.
    catch_panic(|| drop(value));
}

/// Drops the deferred values, also after a panic, and then those that their `Drop` has deferred.
struct Deferred;

impl Deferred {
    /// Returns `None` if an outer call has begun already.
    fn begin() -> Option<Self> {
        let outermost = with_deferred(|deferred| {
            let outermost = deferred.is_none();
            deferred.get_or_insert_default();
            outermost
        });
        // Not `then_some`, which would create and drop a value in the inner call, too.
        outermost.unwrap_or(false).then(|| Self)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        loop {
            let next = with_deferred(|deferred| {
                let next = deferred.as_mut().map(std::mem::take).filter(|next| !next.is_empty());
                if next.is_none() {
                    *deferred = None;
                }
                next
            });
            let Some(values) = next.flatten() else { return };
            for value in values {
                catch_panic(|| drop(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Drops the next value of a chain, and reports the last one.
    struct Link(u32, mpsc::Sender<()>);

    impl Drop for Link {
        fn drop(&mut self) {
            match self.0 {
                0 => self.1.send(()).unwrap(),
                left => drop_flat(Box::new(Self(left - 1, self.1.clone()))),
            }
        }
    }

    #[test]
    fn a_chain_of_drops_needs_no_stack() {
        let (sender, receiver) = mpsc::channel();
        drop_flat(Box::new(Link(1_000_000, sender)));
        receiver.recv().unwrap();
    }

    #[test]
    fn a_value_is_dropped_while_its_thread_exits() {
        thread_local! {
            static KEPT: RefCell<Option<Link>> = const { RefCell::new(None) };
        }
        let (sender, receiver) = mpsc::channel();
        let exiting = std::thread::spawn(move || {
            KEPT.set(Some(Link(3, sender.clone())));
            drop_afterwards(|| drop_flat(Box::new(Link(0, sender))));
        });
        exiting.join().unwrap();
        assert_eq!(receiver.iter().count(), 2);
    }
}
