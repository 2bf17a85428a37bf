//! From a path to the supervisor that can answer, or to why there is none.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::SupervisorHandle;
use crate::error::ControlError;
use crate::path::Path;
use crate::runtime::hub::Hub;
use crate::runtime::request::{Answer, Request, Segment};
use crate::status::ChildKind;

impl SupervisorHandle {
    pub(super) async fn call<T>(
        &self,
        hub: &Arc<Hub>,
        request: impl FnOnce(Answer<T>) -> Request,
    ) -> Result<T, ControlError> {
        let (answer, answered) = oneshot::channel();
        // A request that is given back is dropped here, and its answer with it.
        let asked = hub.ask(request(answer)).await;
        if asked && let Ok(result) = answered.await {
            return result;
        }
        Err(self.not_running(hub.path()).await)
    }

    /// The incarnation of this supervisor that runs now, or the one that this handle was made for.
    pub(super) fn current(&self) -> Arc<Hub> {
        self.running().unwrap_or_else(|| Arc::clone(&self.hub))
    }

    pub(super) async fn here(&self) -> Result<Arc<Hub>, ControlError> {
        match self.running() {
            Some(hub) => Ok(hub),
            None => Err(self.not_running(self.hub.path()).await),
        }
    }

    /// There is no other as long as the one that this handle was made for has not ended.
    pub(super) fn running(&self) -> Option<Arc<Hub>> {
        if self.hub.inbox.is_closed() {
            self.hub.tree.registry.in_place_of(&self.hub)
        } else {
            Some(Arc::clone(&self.hub))
        }
    }

    /// The path of what is at `path` below this supervisor.
    pub(super) fn below(&self, path: &str) -> Path {
        path.split('/').fold(self.hub.path().clone(), |path, name| path.join(name))
    }

    /// The supervisor that runs at `path` below this one.
    pub(super) fn registered(&self, path: &str) -> Result<Option<Arc<Hub>>, ControlError> {
        match self.hub.tree.registry.below(&self.hub, path) {
            None => check(path).map(|()| None),
            // There is nothing at what can't be a path.
            found => Ok(found),
        }
    }

    /// The supervisor of the child at `path`, and the child's own part of it.
    pub(super) async fn find(&self, path: &str) -> Result<(Arc<Hub>, Segment), ControlError> {
        check(path)?;
        let (parent, name) = match path.rsplit_once('/') {
            Some((above, name)) => (self.hub.tree.registry.below(&self.hub, above), name),
            None => (self.running(), path),
        };
        match parent {
            Some(hub) => Ok((hub, name.to_owned())),
            None => Err(self.not_running(&self.below(path)).await),
        }
    }

    /// Why there is nobody at `path` who could answer.
    pub(super) async fn not_running(&self, path: &Path) -> ControlError {
        let path = path.clone();
        let Some((nearest, hub)) = self.hub.tree.registry.nearest(&path) else {
            return ControlError::Ended { path: self.path() };
        };
        // The first part of the path below the nearest: is there such a child?
        let rest = path.as_str().get(nearest.as_str().len() + 1..).unwrap_or_default();
        let (segment, deeper) = rest.split_once('/').unwrap_or((rest, ""));
        let (answer, answered) = oneshot::channel();
        let request = Request::Which { segment: segment.to_owned(), answer };
        let asked = hub.ask(request).await;
        match if asked { answered.await.ok() } else { None } {
            Some(Ok(child)) if child.kind == ChildKind::Worker && !deeper.is_empty() => {
                ControlError::NotFound { path }
            }
            Some(Err(_)) => ControlError::NotFound { path },
            Some(Ok(_)) | None => ControlError::NotRunning { path, nearest },
        }
    }
}

/// Whether it can be a path below something.
fn check(path: &str) -> Result<(), ControlError> {
    // Byte by byte: to split it takes ten times as long, for each call about a child.
    let mut before = b'/';
    for byte in path.bytes().chain([b'/']) {
        if byte == b'/' && before == b'/' {
            return Err(ControlError::NotAChild { path: path.to_owned() });
        }
        before = byte;
    }
    Ok(())
}
