//! Search for an answer in an error and its causes.

use std::error::Error;

use crate::exit::with_causes;
use crate::panic::catch_panic;

/// Calls `answer` for `error`, then for each of its causes, and returns the first answer.
///
/// A panic counts as no answer.
pub(super) fn find_in_causes<T>(
    error: &(dyn Error + 'static),
    answer: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    catch_panic(|| with_causes(error).find_map(answer)).flatten()
}
