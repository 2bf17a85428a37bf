//! Waiting until a supervisor that restarts is up again.

use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::runtime::phase::SupervisorPhase;
use crate::runtime::{SupervisorShared, Tree};
use crate::status::{ChildInfo, ChildKind};

/// Returns the supervisor that is up at `path`, if there is one now.
pub(super) fn up(tree: &Tree<SupervisorShared>, path: &Path) -> Option<SupervisorHandle> {
    let supervisor = tree.supervisor(path)?;
    let is_up = matches!(supervisor.progress.phase(), SupervisorPhase::Up)
        && supervisor.progress.stopping_since().is_none();
    is_up.then(|| SupervisorHandle::new(supervisor))
}

/// Returns why no supervisor is up at `path`: [`ControlError::Restarting`] if one is about to be.
pub(super) async fn not_up(tree: &Tree<SupervisorShared>, path: &Path) -> ControlError {
    let Some((nearest, above)) = tree.nearest(path) else {
        return ControlError::Ended { path: path.clone() };
    };
    match next_below(&SupervisorHandle::new(above), &nearest, path).await {
        Ok(info) if comes_back(&info) => ControlError::Restarting { path: path.clone() },
        Ok(_) => ControlError::NotRunning { path: path.clone(), nearest },
        Err(error) => error,
    }
}

/// Waits until a supervisor is up at `path`.
///
/// # Errors
///
/// Why none will be.
pub(super) async fn until_up(
    tree: &Tree<SupervisorShared>,
    path: &Path,
) -> Result<SupervisorHandle, ControlError> {
    loop {
        if let Some(supervisor) = up(tree, path) {
            return Ok(supervisor);
        }
        let Some((nearest, above)) = tree.nearest(path) else {
            return Err(ControlError::Ended { path: path.clone() });
        };
        let above = SupervisorHandle::new(above);
        // Before it is looked at, so that no change is missed in between.
        let mut events = above.events();
        if let Some(supervisor) = up(tree, path) {
            return Ok(supervisor);
        }
        match next_below(&above, &nearest, path).await {
            Ok(info) if !comes_back(&info) => {
                return Err(ControlError::NotRunning { path: path.clone(), nearest });
            }
            Ok(info) => {
                // Changes of other children are of no interest. One of this child may be among those missed.
                while let Some(event) = events.next().await
                    && event.path != info.path
                    && events.missed() == 0
                {}
            }
            // It has ended meanwhile: look from further above.
            Err(ControlError::NotRunning { .. } | ControlError::Ended { .. }) => {
                tokio::task::yield_now().await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the child of the supervisor at `nearest` that is at `path` or above it.
async fn next_below(
    above: &SupervisorHandle,
    nearest: &Path,
    path: &Path,
) -> Result<ChildInfo, ControlError> {
    let below = path.as_str().get(nearest.as_str().len() + 1..).unwrap_or_default();
    let child = above.which_child(below.split('/').next().unwrap_or_default()).await?;
    match child.kind {
        ChildKind::Supervisor => Ok(child),
        ChildKind::Worker => Err(ControlError::NotASupervisor { path: child.path }),
    }
}

/// Whether the child runs, or will without a call.
fn comes_back(child: &ChildInfo) -> bool {
    match (child.lifecycle, child.why) {
        // Its group may still be about to restart.
        (Lifecycle::Stopped, Some("stopped with its group") | None) => true,
        (Lifecycle::Stopped, _) => false,
        (Lifecycle::Errored, why) => !matches!(why, Some("given up" | "not restarted" | "leaked")),
        _ => true,
    }
}
