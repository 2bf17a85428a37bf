//! Asking an error and its causes, in somebody else's code.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first answer that is given, from the error itself down to its last cause. A question that
/// panics has none.
pub(super) fn first_answer<T>(
    error: &(dyn Error + 'static),
    ask: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    // What a stranger's code leaves behind when it panics is only looked at by itself.
    let asked = AssertUnwindSafe(|| {
        std::iter::successors(Some(error), |&error| error.source()).find_map(ask)
    });
    catch_unwind(asked).ok().flatten()
}
