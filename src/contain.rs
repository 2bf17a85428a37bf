//! Calls of code that isn't ours, where a panic is to end nothing but the call.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What it returns; `None` if it panics, which the hook was told.
///
/// What it leaves behind then is only looked at by itself. The value that it panicked with may panic
/// when it is dropped, and ends nothing either.
pub(crate) fn contained<T>(foreign: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(foreign));
    done.map_err(|panic| drop(catch_unwind(AssertUnwindSafe(|| drop(panic))))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("when it is dropped");
        }
    }

    #[test]
    fn a_panic_ends_nothing_but_the_call_nor_does_what_it_was_made_with() {
        assert_eq!(contained(|| 1), Some(1));
        assert_eq!(contained(|| -> u8 { panic!("no") }), None);
        assert_eq!(contained(|| -> u8 { std::panic::panic_any(Bomb) }), None);
    }
}
