//! Parts of errors, and the warnings of a build.
//!
//! A [`BuildError`] can contain a [`NameProblem`], and a [`ControlError`] a [`NextStep`].
//! [`Supervisor::warnings`](crate::Supervisor::warnings) returns each [`BuildWarning`]. The errors themselves are at the
//! root of the crate, one type for each moment: [`BuildError`], [`StartError`], [`RunError`] and [`ControlError`].

// Each variant names the path that it is about. Texts are lower case without a full stop, and an
// error that the author of the tree can fix says what to write instead.

pub(crate) mod build;
pub(crate) mod control;
pub(crate) mod run;
mod warning;

pub(crate) use self::build::{BuildError, known};
pub(crate) use self::control::ControlError;
pub use self::control::NextStep;
pub(crate) use self::run::{Forced, RunError, StartError};
pub use self::warning::BuildWarning;
pub use crate::path::NameProblem;

/// Implements `Debug` with the text of `Display`, for `unwrap` and `fn main() -> Result`.
macro_rules! debug_as_display {
    ($($error:ty),*) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

debug_as_display!(BuildError, StartError, RunError, ControlError);
