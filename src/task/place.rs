//! Where the supervisor of a value runs: learned from the tree, at each start of the supervisor.
//!
//! # Invariants
//!
//! 1. A place keeps no supervisor alive, so that a description and its supervisor don't keep each other.

use std::sync::{Arc, Weak};

use tokio::task::coop::consume_budget;

use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::tree::Tree;
use crate::runtime::{RegistrationListener, SupervisorPhase, SupervisorShared};
use crate::subscriber;
use crate::sync::Mutex;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    last: Mutex<Option<LastStart>>,
}

/// The last incarnation of the supervisor.
#[derive(Clone, Debug)]
struct LastStart {
    supervisor: Weak<SupervisorShared>,
    tree: Arc<Tree<SupervisorShared>>,
    path: Path,
    /// How many incarnations there were.
    number: u64,
}

impl Place {
    pub(super) fn new(name: String) -> Arc<Self> {
        Arc::new(Self { name, last: Mutex::new(None) })
    }

    /// Returns the place of a supervisor that was started before.
    pub(super) fn of(handle: &SupervisorHandle) -> Arc<Self> {
        let place = Self::new(handle.path().name().to_owned());
        place.set(&handle.supervisor);
        place
    }

    /// Returns the path of the supervisor, or only its name before it has run.
    pub(super) fn path(&self) -> Path {
        let last = self.last.lock();
        last.as_ref().map_or_else(|| Path::root(&self.name), |last| last.path.clone())
    }

    fn set(&self, supervisor: &Arc<SupervisorShared>) {
        let path = supervisor.path().clone();
        let next = |number| LastStart {
            supervisor: Arc::downgrade(supervisor),
            tree: Arc::clone(&supervisor.tree),
            path: path.clone(),
            number,
        };
        let before = {
            let mut last = self.last.lock();
            let number = last.as_ref().map_or(1, |last| last.number + 1);
            last.replace(next(number))
        };
        if let Some(before) = before.as_ref().and_then(LastStart::running)
            && !Arc::ptr_eq(&before, supervisor)
        {
            let (before, path) = (before.path(), &path);
            subscriber::warn!(
                target: "verger::lifecycle",
                "`{before}` and `{path}` were made by the same value, which now reaches `{path}` only; make \
                 one for each"
            );
        }
    }

    /// Returns how many incarnations of the supervisor there were.
    pub(super) fn starts(&self) -> u64 {
        self.last.lock().as_ref().map_or(0, |last| last.number)
    }

    /// Returns the supervisor that runs.
    pub(super) fn running(&self) -> Option<Arc<SupervisorShared>> {
        let last = self.last.lock().clone()?;
        last.running()
    }

    /// Returns the path of the supervisor, and its tree.
    pub(super) fn address(&self) -> Result<(Arc<Tree<SupervisorShared>>, Path), ControlError> {
        match &*self.last.lock() {
            Some(last) => Ok((Arc::clone(&last.tree), last.path.clone())),
            None => Err(ControlError::NotStarted { name: self.name.clone() }),
        }
    }

    /// Returns a handle to the supervisor.
    pub(super) async fn handle(&self) -> Result<SupervisorHandle, ControlError> {
        consume_budget().await;
        match self.running() {
            Some(supervisor) => Ok(SupervisorHandle::new(supervisor)),
            None => Err(self.not_running(None).await),
        }
    }

    /// Returns why the supervisor doesn't answer a call about a child of it, or about itself.
    pub(super) async fn not_running(&self, child: Option<&str>) -> ControlError {
        let (tree, path) = match self.address() {
            Ok(address) => address,
            Err(error) => return error,
        };
        let Some((_, above)) = tree.nearest(&path) else { return ControlError::Ended { path } };
        // Asked about the supervisor, because its next incarnation, which may run by now, lacks the child.
        match (SupervisorHandle::new(above).not_running(&path).await, child) {
            (ControlError::NotRunning { path, nearest }, Some(child)) => {
                ControlError::NotRunning { path: path.join(child), nearest }
            }
            (error, _) => error,
        }
    }
}

/// Returns a handle to the root of the tree that `path` is in.
fn root(tree: &Tree<SupervisorShared>, path: &Path) -> Option<SupervisorHandle> {
    let mut root = path.clone();
    while let Some(above) = root.parent() {
        root = above;
    }
    tree.supervisor(&root).map(SupervisorHandle::new)
}

impl LastStart {
    fn running(&self) -> Option<Arc<SupervisorShared>> {
        let kept = self.supervisor.upgrade().filter(|kept| !kept.inbox.is_closed());
        kept.or_else(|| self.tree.supervisor(&self.path))
    }
}

impl RegistrationListener for Place {
    fn registered(&self, supervisor: &Arc<SupervisorShared>) {
        self.set(supervisor);
    }
}

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
