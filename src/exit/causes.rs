//! The causes of an error.

use std::error::Error;

/// The most causes that are looked at. An error may be its own cause, by mistake.
const MAX_CAUSES: usize = 100;

/// Returns `error`, its cause, the cause of that, and so on.
pub(crate) fn with_causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source()).take(1 + MAX_CAUSES)
}
