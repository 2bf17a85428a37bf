//! The error for an invalid backoff.

/// The reason why a [`Backoff`](crate::Backoff) is invalid, with what to write instead.
///
/// [`Backoff::check`](crate::Backoff::check) returns it, and so do the errors of trees and retries:
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, BuildError, Supervisor};
///
/// let backoff = Backoff::constant(Duration::from_secs(1)).jitter(-0.5);
/// let db = verger::worker("db", async |_| {}).backoff(backoff);
/// let error = Supervisor::builder("app").child(db).build().unwrap_err();
///
/// let BuildError::BadBackoff { path, problem } = error else { panic!("{error}") };
/// println!("{path}: {problem}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of the backoff is {value}; {advice}")]
pub struct BackoffProblem {
    field: &'static str,
    value: String,
    advice: String,
}

impl BackoffProblem {
    pub(super) fn new(field: &'static str, value: String, advice: &str) -> Self {
        Self { field, value, advice: advice.to_owned() }
    }
}
