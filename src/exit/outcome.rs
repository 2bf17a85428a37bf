//! Return types of worker functions.

use super::reason::{Exit, ExitError};

/// The return types of worker functions: `()`, or a `Result<(), E>` with an error that converts
/// into [`ExitError`].
///
/// This trait is sealed and can't be implemented outside of this crate.
#[diagnostic::on_unimplemented(
    message = "a worker can't return `{Self}`",
    label = "expected `()` or `Result<(), E>`: a supervisor doesn't use the value",
    note = "return `()`, `Exit`, or `Result<(), E>` where `E` is an error type, `&str`, `String`, \
            or the error of anyhow or eyre",
    note = "an async closure that uses `?` has to name its type: `async |ctx| -> Exit {{ .. }}`",
    note = "a function that never returns can declare the return type `()`"
)]
pub trait Outcome: sealed::Sealed {
    /// Converts the returned value into an [`Exit`].
    fn into_exit(self) -> Exit;
}

impl Outcome for () {
    fn into_exit(self) -> Exit {
        Ok(())
    }
}

impl<E: Into<ExitError>> Outcome for Result<(), E> {
    fn into_exit(self) -> Exit {
        self.map_err(Into::into)
    }
}

mod sealed {
    /// Keeps [`Outcome`](super::Outcome) to this crate.
    pub trait Sealed {}

    impl Sealed for () {}

    impl<E: Into<super::ExitError>> Sealed for Result<(), E> {}
}
