//! Finding a supervisor that is up.

use super::place::root;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::SupervisorPhase;
use crate::runtime::SupervisorShared;
use crate::runtime::tree::Tree;

/// Returns the supervisor that is up at `path`. Waits while it is on its way up, if `wait` says so.
///
/// # Errors
///
/// Those of [`SupervisorHandle::child`], or of [`SupervisorHandle::try_child`].
pub(super) async fn find(
    tree: &Tree<SupervisorShared>,
    path: &Path,
    wait: bool,
) -> Result<SupervisorHandle, ControlError> {
    loop {
        if let Some(supervisor) = tree.supervisor(path) {
            if supervisor.progress.stopping_since().is_some() {
                if !wait {
                    return Err(ControlError::ShuttingDown { path: path.clone() });
                }
                // The supervisor above still counts it as active.
                supervisor.progress.until_ended().await;
            } else if matches!(supervisor.progress.phase(), SupervisorPhase::Up) {
                return Ok(SupervisorHandle::new(supervisor));
            }
        }
        // From the root, so that the restart of a supervisor in between is waited for.
        let root = root(tree, path).ok_or_else(|| ControlError::Ended { path: path.clone() })?;
        if wait {
            root.child(path.as_str()).await?;
        } else {
            root.try_child(path.as_str()).await?;
        }
        match root.supervisor(path.as_str()).await {
            // It has ended since.
            Ok(_) | Err(ControlError::NotRunning { .. }) => tokio::task::yield_now().await,
            Err(error) => return Err(error),
        }
    }
}
