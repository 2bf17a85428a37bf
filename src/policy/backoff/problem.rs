//! The error for an invalid backoff.

/// The reason why a [`Backoff`](crate::Backoff) is invalid, with what to write instead.
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
