//! Gathering what a tree looks like, one supervisor and one slice at a time.

use std::collections::HashMap;
use std::sync::Arc;

use super::SupervisorHandle;
use crate::clock::now;
use crate::error::ControlError;
use crate::event::{Event, EventKind};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::RestartType;
use crate::status::{ChildInfo, ChildKind, Node, Status, SupervisorInfo};
use crate::supervisor::hub::Hub;
use crate::supervisor::phase::Phase;
use crate::supervisor::request::Request;
use crate::supervisor::subscription::Subscription;

impl SupervisorHandle {
    /// A snapshot of this supervisor and all below it.
    ///
    /// Each supervisor is asked for itself, a few hundred children at a time, so that no loop is
    /// held up. One that ends meanwhile is shown without what was below it.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn status(&self) -> Result<Status, ControlError> {
        let hub = self.here().await?;
        let above = hub.path().parent();
        let itself = match above.and_then(|above| self.hub.tree.registry.get(&above)) {
            Some(parent) => {
                let segment = hub.path().name().to_owned();
                self.call(&parent, |answer| Request::Which { segment, answer }).await?
            }
            None => hub.as_root(),
        };
        let mut nodes = vec![(0, Node { child: itself, supervisor: None, children: Vec::new() })];
        let mut seq = u64::MAX;
        // A list and not a recursion, because a tree may be a thousand levels deep.
        let mut next = 0;
        while let Some((_, node)) = nodes.get(next) {
            let path = node.child.path.clone();
            if node.child.kind == ChildKind::Supervisor
                && let Some(hub) = self.hub.tree.registry.get(&path)
                && let Some((first, supervisor, children)) = self.pages(&hub).await
            {
                seq = seq.min(first);
                nodes[next].1.supervisor = Some(supervisor);
                let node = |child| Node { child, supervisor: None, children: Vec::new() };
                nodes.extend(children.into_iter().map(|(_, child)| (next, node(child))));
            } else if next == 0 {
                return Err(self.not_running(&path).await);
            }
            next += 1;
        }
        while nodes.len() > 1
            && let Some((parent, mut node)) = nodes.pop()
        {
            node.children.reverse();
            nodes[parent].1.children.push(node);
        }
        let (_, mut root) = nodes.remove(0);
        root.children.reverse();
        Ok(Status { seq, captured_at: self.hub.tree.wall(now()), root })
    }

    /// All children of one supervisor, each with the number of the last event it reflects. `None`
    /// if the supervisor ends meanwhile.
    async fn pages(&self, hub: &Arc<Hub>) -> Option<(u64, SupervisorInfo, Vec<(u64, ChildInfo)>)> {
        let mut first: Option<(u64, SupervisorInfo)> = None;
        let mut children = Vec::new();
        let mut next = Some(0);
        while let Some(place) = next {
            let page = self.call(hub, |answer| Request::Page { place, answer }).await.ok()?;
            children.extend(page.children.into_iter().map(|child| (page.seq, child)));
            first.get_or_insert((page.seq, page.supervisor));
            next = page.next;
        }
        first.map(|(seq, supervisor)| (seq, supervisor, children))
    }

    /// Where every child below this supervisor is now, and then each change of that.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn subscribe_status(&self) -> Result<StatusStream, ControlError> {
        let events = self.events();
        let root = self.here().await?;
        let mut replay = Vec::new();
        let mut reflected = HashMap::new();
        let mut supervisors = vec![root];
        while let Some(hub) = supervisors.pop() {
            let Some((_, _, children)) = self.pages(&hub).await else { continue };
            for (seq, child) in children {
                reflected.insert(child.path.clone(), seq);
                if child.kind == ChildKind::Supervisor {
                    supervisors.extend(self.hub.tree.registry.get(&child.path));
                }
                let ChildInfo { path, lifecycle, incarnation, .. } = child;
                replay.push(StatusChange { path, incarnation, lifecycle: Some(lifecycle) });
            }
        }
        replay.reverse();
        Ok(StatusStream { replay, reflected, events })
    }
}

impl Hub {
    /// What the root would be as a child, if it were one.
    fn as_root(&self) -> ChildInfo {
        let lifecycle = match self.progress.phase() {
            Phase::Starting => Lifecycle::Activating,
            Phase::Up => Lifecycle::Active,
            Phase::Ended { .. } => Lifecycle::Stopped,
        };
        let now = now();
        ChildInfo {
            path: self.path().clone(),
            kind: ChildKind::Supervisor,
            restart: RestartType::Temporary,
            policy: None,
            significant: false,
            lifecycle,
            why: None,
            incarnation: 1,
            restarts: 0,
            failures: 0,
            since: self.tree.wall(self.began),
            age: now.saturating_duration_since(self.began),
            last_exit: None,
            next: None,
            status: None,
            healthy: None,
            mailbox: None,
        }
    }
}

/// Where a child is in its lifecycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusChange {
    /// The child.
    pub path: Path,
    /// The number of its run.
    pub incarnation: u32,
    /// Where it is; `None`: it was forgotten.
    pub lifecycle: Option<Lifecycle>,
}

/// Where every child is, and then each change of that; see
/// [`SupervisorHandle::subscribe_status`].
#[derive(Debug)]
pub struct StatusStream {
    /// In reverse.
    replay: Vec<StatusChange>,
    /// The last event that is contained in what is replayed of a child.
    reflected: HashMap<Path, u64>,
    events: Subscription<Event>,
}

impl StatusStream {
    /// Waits for the next one. `None`: the supervisor has ended.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<StatusChange> {
        if let Some(change) = self.replay.pop() {
            return Some(change);
        }
        loop {
            let event = self.events.next().await?;
            let lifecycle = match event.kind {
                _ if self.reflected.get(&event.path).is_some_and(|&seq| event.seq <= seq) => {
                    continue;
                }
                EventKind::Moved { to, .. } => Some(to),
                EventKind::Removed => None,
                _ => continue,
            };
            let Event { path, incarnation, .. } = event;
            // From here on all of the child's is news; it may even be gone for good.
            self.reflected.remove(&path);
            return Some(StatusChange { path, incarnation, lifecycle });
        }
    }

    /// How many changes were missed, because the listener was too far behind.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.events.missed()
    }
}
