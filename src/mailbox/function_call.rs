//! The mailboxes whose functions run on this thread.
//!
//! A mailbox calls [`final_message`](super::Mailbox::final_message) and the handler of
//! [`WhileDown::reply`](super::WhileDown::reply) in the task that sends. A function that sends to its own
//! mailbox would be called for that message too, within its own call, until the stack overflows. The same
//! goes for two functions that send to the mailbox of the other.
//!
//! # Invariants
//!
//! 1. While a function of a mailbox runs, no function of that mailbox is called on the same thread.

use std::cell::RefCell;
use std::ptr;

thread_local! {
    /// The addresses of the mailboxes, the innermost call last.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A running call of a function of a mailbox. The call ends when this is dropped.
#[must_use]
pub(super) struct FunctionCall(());

impl FunctionCall {
    /// Returns `None` if a function of this mailbox runs on this thread already.
    pub(super) fn enter<T>(mailbox: &T) -> Option<Self> {
        let address = ptr::from_ref(mailbox).addr();
        // The list may be gone while its thread ends. Calls are not counted then.
        let runs = RUNNING.try_with(|running| running.borrow().contains(&address));
        if runs.unwrap_or(false) {
            return None;
        }
        let _ = RUNNING.try_with(|running| running.borrow_mut().push(address));
        Some(Self(()))
    }
}

impl Drop for FunctionCall {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
    }
}
