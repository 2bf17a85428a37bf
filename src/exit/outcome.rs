//! Return types of worker functions.

use super::reason::{Exit, ExitError};

/// The return types of worker functions: `()`, or a `Result<(), E>` with an error that converts
/// into [`ExitError`].
///
/// This trait is sealed and can't be implemented outside of this crate.
///
/// ```
/// use verger::{Context, Exit, worker};
///
/// async fn endless(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// async fn fallible(_ctx: Context) -> Exit {
///     Err("connection refused".into())
/// }
///
/// async fn with_own_error(_ctx: Context) -> Result<(), std::io::Error> {
///     std::fs::create_dir_all("/tmp/spool")
/// }
///
/// let specs = [worker("a", endless), worker("b", fallible), worker("c", with_own_error)];
/// # drop(specs);
/// ```
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
