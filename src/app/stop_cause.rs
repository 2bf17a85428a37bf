//! The cause of a graceful shutdown.

use std::borrow::Cow;

/// The output of a future that triggers a graceful shutdown, which names the cause.
///
/// The cause is logged when the stop begins: `shutting down supervisor=app cause="SIGTERM"`. A future
/// that resolves to `()` has the cause `graceful shutdown`. A future that resolves to a string, or
/// to an [`OsSignal`](crate::OsSignal) as [`signals`](crate::signals) does, names its own. Implement
/// this trait for a type that should do the same.
///
/// ```
/// use std::future::Future;
///
/// use verger::{OsSignal, signals};
///
/// /// Resolves at a signal, or when the disk is full.
/// async fn shutdown(disk_full: impl Future<Output = ()>) -> String {
///     tokio::select! {
///         signal = signals() => signal.to_string(),
///         () = disk_full => "the disk is full".to_owned(),
///     }
/// }
///
/// # async fn f(tree: verger::Supervisor) -> Result<(), verger::RunError> {
/// # let disk_full = std::future::pending();
/// tree.with_graceful_shutdown(shutdown(disk_full)).await
/// # }
/// ```
pub trait StopCause {
    /// Returns the text that is logged as the cause, such as `SIGTERM`.
    fn cause(&self) -> Cow<'_, str>;
}

impl StopCause for () {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed("graceful shutdown")
    }
}

impl StopCause for &str {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl StopCause for String {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_own_cause_and_the_empty_tuple_has_a_default() {
        assert_eq!(().cause(), "graceful shutdown");
        assert_eq!("the disk is full".cause(), "the disk is full");
        assert_eq!("the disk is full".to_owned().cause(), "the disk is full");
    }
}
