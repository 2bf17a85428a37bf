//! Why a backoff makes no sense.

/// Why a [`Backoff`](crate::Backoff) makes no sense.
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
