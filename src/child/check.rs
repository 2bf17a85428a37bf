//! Checks of policies and limits.
//!
//! The path of a child is a closure, because it is needed only for an error.

use std::time::Duration;

use crate::error::BuildError;
use crate::path::Path;
use crate::policy::{Backoff, Intensity, OnExhausted, RestartPolicy, SetTwice};

/// Checks a policy: of a spec, a file or a call, or one that a running child sets for itself.
pub(crate) fn check_policy(
    policy: &RestartPolicy,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if let Some(Err(problem)) = policy.backoff.as_ref().map(Backoff::check) {
        return Err(BuildError::BadBackoff { path: path(), problem });
    }
    check_limits(policy, path)
}

/// Checks the limits of a policy, and what follows when one is exceeded.
pub(crate) fn check_limits(
    policy: &RestartPolicy,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    check_twice(policy.limits.twice.as_ref(), path)?;
    let limits = policy.limits.get();
    if let Some(intensity) = limits.intensity {
        check_intensity(intensity, path)?;
    }
    if limits.failing_for.is_some_and(|max| max.is_zero()) {
        let (path, example) = (path(), Duration::from_secs(60));
        return Err(BuildError::ZeroDuration { path, option: "`failing_for`", example });
    }
    match policy.on_exhausted {
        Some(on_exhausted) => check_on_exhausted(on_exhausted, path),
        None => Ok(()),
    }
}

pub(crate) fn check_twice(
    twice: Option<&SetTwice>,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    let Some(SetTwice { first, second }) = twice.cloned() else { return Ok(()) };
    Err(BuildError::SetTwice { path: path(), first, second })
}

pub(crate) fn check_intensity(
    intensity: Intensity,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if let Some(max) = intensity.invalid_max() {
        return Err(BuildError::BadScore { path: path(), max });
    }
    if intensity.period().is_zero() {
        return Err(BuildError::ZeroPeriod { path: path(), max: intensity.max() });
    }
    Ok(())
}

pub(crate) fn check_on_exhausted(
    what: OnExhausted,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if what == OnExhausted::Pause(Duration::ZERO) {
        let (path, example) = (path(), Duration::from_secs(15));
        return Err(BuildError::ZeroDuration { path, option: "pause", example });
    }
    Ok(())
}
