//! What the console needs of a tree in addition to the public calls.

use std::time::SystemTime;

use super::route::{SupervisorHandle, check};
use super::snapshot::as_root;
use crate::clock::now;
use crate::error::ControlError;
use crate::path::Path;
use crate::runtime::request::Request;
use crate::status::Node;

impl SupervisorHandle {
    /// Returns a handle to the root of the tree.
    pub(crate) fn of_root(&self) -> Self {
        let root = self.supervisor.tree.supervisor(&self.root_path());
        root.map_or_else(|| self.clone(), Self::new)
    }

    /// Returns the full path of a path that a request has given. The name of the root is the root.
    pub(crate) fn path_of(&self, path: &str) -> Result<Path, ControlError> {
        check(path)?;
        let root = self.root_path();
        if path == root.as_str() { Ok(root) } else { Ok(self.full_path(path)) }
    }

    /// Returns the time by the clock of the tree, like those of its snapshots and events.
    pub(crate) fn wall_clock(&self) -> SystemTime {
        self.supervisor.tree.wall_clock(now())
    }

    /// Waits until the supervisor has begun to end.
    pub(crate) async fn until_stopping(&self) {
        self.current().progress.until_stopping().await;
    }

    /// Returns one child, or the root, without the children below it. The handle is that of the root.
    pub(crate) async fn node(&self, path: &Path) -> Result<Node, ControlError> {
        let child = match *path == self.path() {
            true => as_root(&*self.here().await?),
            false => self.which_child(path.as_str()).await?,
        };
        let mut node = Node { child, supervisor: None, children: Vec::new() };
        if let Some(supervisor) = self.supervisor.tree.supervisor(path) {
            let page = self.call(&supervisor, |answer| Request::Page { place: 0, answer }).await;
            node.supervisor = page.ok().and_then(|page| page.supervisor);
        }
        Ok(node)
    }
}
