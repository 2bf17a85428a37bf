//! Errors of a tree, one type for each moment: building, starting and running, and control.
//!
//! Each variant names the path that it is about. Texts are lower case without a full stop, and an
//! error that the author of the tree can fix says what to write instead.

mod build;
mod control;
mod run;
mod warning;

pub use self::build::BuildError;
pub(crate) use self::build::known;
pub use self::control::{ControlError, NextStep};
pub(crate) use self::run::Forced;
pub use self::run::{RunError, StartError};
pub use self::warning::BuildWarning;

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
