//! Work beside the task that asks for it: what takes longer the larger a configuration is, and what must go on
//! if the task is dropped.

use std::panic::resume_unwind;

use tokio::task::JoinError;

use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::named_task;

/// Runs such work on a thread that may block, so that no task of the runtime waits for it.
///
/// # Errors
///
/// If the runtime ends.
///
/// # Panics
///
/// If the work panics.
pub(super) async fn aside<T: Send + 'static>(
    tree: &SupervisorHandle,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ControlError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ended(tree, error))
}

/// Drops what may be large, later. A value of the user's may panic in its `Drop`, which concerns no plan.
pub(super) fn discard<T: Send + 'static>(value: T) {
    drop(tokio::task::spawn_blocking(move || drop(value)));
}

/// Runs a future in a task of its own, so that it goes on if this one is dropped.
///
/// # Errors
///
/// Those of the future, and if the runtime ends.
///
/// # Panics
///
/// If the future panics.
pub(super) async fn to_end<T, E>(
    tree: &SupervisorHandle,
    future: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<ControlError> + Send + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "ends by itself, within the graces of children")]
    let task = named_task::spawn(|| format!("{} (configuration)", tree.path()), future);
    task.await.map_err(|error| ended(tree, error))?
}

fn ended(tree: &SupervisorHandle, error: JoinError) -> ControlError {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => ControlError::Ended { path: tree.path() },
    }
}
