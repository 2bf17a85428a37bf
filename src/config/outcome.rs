//! What the answers of supervisors mean for a plan.

use std::time::Duration;

use crate::error::ControlError;

/// How long a child may take to become active before the plan is taken back.
pub(super) const ACTIVE_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn too_late() -> String {
    format!("not active within {ACTIVE_WITHIN:?}")
}

/// Returns why a child didn't become active.
pub(super) fn failure<T>(result: Result<T, ControlError>) -> Option<String> {
    match result {
        Err(ControlError::ActivationFailed { reason, .. }) => Some(reason.to_string()),
        Err(ControlError::Stopped { .. }) => Some("stopped before it was active".to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// A supervisor that ends meanwhile, while the tree goes on, finds its values at its next start.
pub(super) fn stopping(result: Result<(), ControlError>) -> Result<(), ControlError> {
    match result {
        Err(error @ ControlError::Ended { .. }) => Err(error),
        _ => Ok(()),
    }
}
