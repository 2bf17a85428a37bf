//! Gathering what a tree looks like, one supervisor and one slice at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::HashMap;
use tokio::task::yield_now;

use super::SupervisorHandle;
use crate::clock::now;
use crate::error::ControlError;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::RestartType;
use crate::runtime::Subscription;
use crate::runtime::hub::Hub;
use crate::runtime::phase::Phase;
use crate::runtime::request::{Page, Request};
use crate::status::{ChildInfo, ChildKind, Node, Status, SupervisorInfo};
use crate::status::{Event, EventKind};

/// Supervisors that are put in their places before others get a turn.
const TURN: usize = 256;

impl SupervisorHandle {
    /// A snapshot of this supervisor and all below it.
    ///
    /// Each supervisor is asked for itself, a few dozen children at a time, so that no loop is
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
        let mut seq = u64::MAX;
        let mut gathered = Vec::new();
        // A list and not a recursion, because a tree may be a thousand levels deep.
        let mut ahead = VecDeque::from([(Place::default(), itself.path.clone())]);
        while let Some((place, path)) = ahead.pop_front() {
            let Some(below) = self.gather(place, &path).await else {
                match gathered.len() {
                    0 => return Err(self.not_running(&path).await),
                    _ => continue,
                }
            };
            seq = seq.min(below.seq);
            let supervisor = gathered.len();
            let further = below.supervisors.iter().map(|&index| {
                (Place { supervisor, index }, below.children[index].child.path.clone())
            });
            ahead.extend(further);
            gathered.push(below);
        }
        let root = assemble(itself, gathered).await;
        Ok(Status { seq, captured_at: self.hub.tree.wall(now()), root })
    }

    /// All children of one supervisor; `None` if it doesn't run, or ends meanwhile.
    async fn gather(&self, place: Place, path: &Path) -> Option<Gathered> {
        let hub = self.hub.tree.registry.get(path)?;
        let mut gathered: Option<Gathered> = None;
        let each = |page: Page| {
            let Page { seq, supervisor, children, .. } = page;
            let gathered = gathered.get_or_insert_with(|| {
                // All at once: to move what there is each time that there are twice as many would
                // hold the thread for some ten milliseconds.
                let children = Vec::with_capacity(supervisor.counts.specs as usize);
                Gathered { place, seq, supervisor, children, supervisors: Vec::new() }
            });
            for child in children {
                if child.kind == ChildKind::Supervisor {
                    gathered.supervisors.push(gathered.children.len());
                }
                gathered.children.push(Node { child, supervisor: None, children: Vec::new() });
            }
        };
        self.pages(&hub, each).await.ok()?;
        gathered
    }

    /// All children of one supervisor, a page at a time.
    pub(super) async fn pages(
        &self,
        hub: &Arc<Hub>,
        mut each: impl FnMut(Page),
    ) -> Result<(), ControlError> {
        let mut next = Some(0);
        while let Some(place) = next {
            let page = self.call(hub, |answer| Request::Page { place, answer }).await?;
            next = page.next;
            each(page);
        }
        Ok(())
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
        let mut reflected = HashMap::default();
        let mut supervisors = vec![root];
        while let Some(hub) = supervisors.pop() {
            let mut pages = Vec::new();
            if self.pages(&hub, |page| pages.push(page)).await.is_err() {
                continue;
            }
            let all = pages.first().map_or(0, |page| page.supervisor.counts.specs);
            reflected.reserve(all as usize);
            for page in pages {
                for child in page.children {
                    reflected.insert(child.path.clone(), page.seq);
                    if child.kind == ChildKind::Supervisor {
                        supervisors.extend(self.hub.tree.registry.get(&child.path));
                    }
                    let ChildInfo { path, lifecycle, incarnation, .. } = child;
                    replay.push(StatusChange { path, incarnation, lifecycle: Some(lifecycle) });
                }
                yield_now().await;
            }
        }
        replay.reverse();
        Ok(StatusStream { replay, reflected, events })
    }
}

/// A child among those that were gathered: of which supervisor, and which of its children.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    supervisor: usize,
    index: usize,
}

/// A supervisor and its children, without what is below those.
struct Gathered {
    /// Where the supervisor itself is. The root is in no place.
    place: Place,
    /// The last event that is contained in the first page.
    seq: u64,
    supervisor: SupervisorInfo,
    children: Vec<Node>,
    /// Which of the children are supervisors.
    supervisors: Vec<usize>,
}

/// Puts together what was gathered, each supervisor behind the one that it is below.
///
/// Only lists are moved, never what is in them, so it doesn't matter how many children there are;
/// there may be many supervisors, so now and then others get a turn.
async fn assemble(itself: ChildInfo, mut gathered: Vec<Gathered>) -> Node {
    let mut root = Node { child: itself, supervisor: None, children: Vec::new() };
    while let Some(Gathered { place, supervisor, children, .. }) = gathered.pop() {
        let above = gathered.get_mut(place.supervisor);
        let node = above.map_or(&mut root, |above| &mut above.children[place.index]);
        node.supervisor = Some(Box::new(supervisor));
        node.children = children;
        if !gathered.is_empty() && gathered.len().is_multiple_of(TURN) {
            yield_now().await;
        }
    }
    root
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
