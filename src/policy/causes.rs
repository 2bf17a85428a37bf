//! Asking an error and its causes, in somebody else's code.

use std::error::Error;

use crate::panic::catch_panic;

/// The first answer that is given, from the error itself down to its last cause. A question that
/// panics has none.
pub(super) fn first_answer<T>(
    error: &(dyn Error + 'static),
    ask: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    catch_panic(|| std::iter::successors(Some(error), |&error| error.source()).find_map(ask))
        .flatten()
}
