//! Snapshots of a tree, gathered one supervisor and one page at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::route::SupervisorHandle;
use crate::child::outside;
use crate::clock::{later, now};
use crate::error::ControlError;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::RestartType;
use crate::runtime::request::{HandleRequest, Page};
use crate::runtime::{SupervisorPhase, SupervisorShared};
use crate::status::{
    ChildInfo, ChildKind, Node, ProgramInfo, Status, StatusChange, StatusStream, SupervisorInfo,
    Totals,
};

/// How many supervisors are assembled before the task yields.
const SUPERVISORS: usize = 256;

impl SupervisorHandle {
    /// Takes a snapshot of this supervisor and everything below it.
    ///
    /// Each supervisor is queried separately, a few children at a time, so that no supervisor is
    /// blocked. A supervisor that ends meanwhile is shown without its children.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let status = app.status().await?;
    /// assert!(status.is_ready());
    /// println!("{status}");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn status(&self) -> Result<Status, ControlError> {
        let supervisor = self.here().await?;
        let above = supervisor.path().parent();
        let itself = match above.and_then(|above| self.supervisor.tree.supervisor(&above)) {
            Some(parent) => {
                let segment = supervisor.path().name().to_owned();
                self.call(&parent, |answer| HandleRequest::Which { segment, answer }).await?
            }
            None => as_root(&supervisor),
        };
        let mut seq = u64::MAX;
        let mut gathered = Vec::new();
        // A list instead of a recursion: a tree may be a thousand levels deep.
        let mut ahead = VecDeque::from([(NodeIndex::default(), itself.path.clone())]);
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
                (NodeIndex { supervisor, index }, below.children[index].child.path.clone())
            });
            ahead.extend(further);
            gathered.push(below);
        }
        let totals = self.totals(&gathered);
        let root = assemble(itself, gathered).await;
        let now = now();
        let (tree, format) = (&self.supervisor.tree, Status::FORMAT);
        let began = tree.began();
        let program = ProgramInfo {
            verger: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started_at: tree.wall_clock(began),
            uptime: now.saturating_duration_since(began),
        };
        Ok(Status { format, seq, captured_at: tree.wall_clock(now), program, totals, root })
    }

    /// Counts what was gathered, and adds the counters of the whole tree.
    fn totals(&self, gathered: &[Gathered]) -> Totals {
        let counters = &self.supervisor.tree.counters;
        let mut totals = Totals {
            starts: counters.starts.get(),
            restarts: counters.restarts.get(),
            failures: counters.failures.get(),
            dead_letters: self.supervisor.dead_letters.count(),
            ..Totals::default()
        };
        for gathered in gathered {
            for (lifecycle, count) in Lifecycle::ALL.into_iter().zip(gathered.by_lifecycle) {
                if count > 0 {
                    totals.children += count;
                    *totals.lifecycle.entry(lifecycle).or_default() += count;
                }
            }
        }
        totals
    }

    /// Waits until every supervisor of the tree has gone through its loop once.
    ///
    /// Returns the supervisors that have not within this time.
    pub(crate) async fn turn(&self, within: Duration) -> Vec<Path> {
        let asked = self.supervisor.tree.supervisors().into_iter().filter_map(|supervisor| {
            let (answer, turned) = oneshot::channel();
            supervisor.inbox.push_request(HandleRequest::Count { answer }).ok()?;
            Some((supervisor, turned))
        });
        // All of them first, so that they turn during the same time.
        let asked: Vec<_> = asked.collect();
        let deadline = tokio::time::Instant::from_std(later(now(), within));
        let mut stuck = Vec::new();
        for (supervisor, turned) in asked {
            // The sender is dropped if the supervisor has ended, which is a turn as well.
            if tokio::time::timeout_at(deadline, turned).await.is_err() {
                stuck.push(supervisor.path().clone());
            }
        }
        stuck
    }

    /// Returns all children of one supervisor, or `None` if it isn't running or ends meanwhile.
    async fn gather(&self, place: NodeIndex, path: &Path) -> Option<Gathered> {
        let supervisor = self.supervisor.tree.supervisor(path)?;
        let mut gathered = Gathered { place, ..Gathered::default() };
        let each = |page: Page| {
            if let Some(supervisor) = page.supervisor {
                // Allocated at once: growing a large vector would block the thread while it is moved.
                gathered.children.reserve_exact(supervisor.counts.specs as usize);
                gathered.seq = page.seq;
                gathered.supervisor = Some(supervisor);
            }
            for child in page.children {
                gathered.by_lifecycle[child.lifecycle as usize] += 1;
                if child.has_children {
                    gathered.supervisors.push(gathered.children.len());
                }
                gathered.children.push(Node { child, supervisor: None, children: Vec::new() });
            }
        };
        self.pages(&supervisor, each).await.ok()?;
        Some(gathered)
    }

    /// Passes all children of one supervisor to `each`, a page at a time.
    pub(super) async fn pages(
        &self,
        supervisor: &Arc<SupervisorShared>,
        mut each: impl FnMut(Page),
    ) -> Result<(), ControlError> {
        let mut next = Some(0);
        while let Some(place) = next {
            let page =
                self.call(supervisor, |answer| HandleRequest::Page { place, answer }).await?;
            next = page.next;
            each(page);
        }
        Ok(())
    }

    /// Subscribes to lifecycle changes below this supervisor, with a replay of the current states.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn subscribe_status(&self) -> Result<StatusStream, ControlError> {
        let events = self.events();
        let root = self.here().await?;
        let mut replay = Vec::new();
        let mut reflected = HashMap::new();
        let mut supervisors = vec![root];
        while let Some(supervisor) = supervisors.pop() {
            let mut pages = Vec::new();
            if self.pages(&supervisor, |page| pages.push(page)).await.is_err() {
                continue;
            }
            let first = pages.first().and_then(|page| page.supervisor.as_ref());
            reflected.reserve(first.map_or(0, |supervisor| supervisor.counts.specs as usize));
            for page in pages {
                for child in page.children {
                    reflected.insert(child.path.clone(), page.seq);
                    if child.has_children {
                        supervisors.extend(self.supervisor.tree.supervisor(&child.path));
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

/// The place of a child among the gathered supervisors.
#[derive(Clone, Copy, Debug, Default)]
struct NodeIndex {
    supervisor: usize,
    index: usize,
}

/// A supervisor and its children, without what is below them.
#[derive(Default)]
struct Gathered {
    /// The place of the supervisor itself, which is meaningless for the root.
    place: NodeIndex,
    /// The sequence number of the last event that the first page reflects.
    seq: u64,
    supervisor: Option<Box<SupervisorInfo>>,
    children: Vec<Node>,
    /// The indices of the children that are supervisors.
    supervisors: Vec<usize>,
    /// How many children are in each state.
    by_lifecycle: [u32; Lifecycle::ALL.len()],
}

/// Assembles the tree, from the last supervisor to the first.
///
/// Lists are moved as a whole, so the number of children doesn't matter. With many supervisors the
/// task yields now and then.
async fn assemble(itself: ChildInfo, mut gathered: Vec<Gathered>) -> Node {
    let mut root = Node { child: itself, supervisor: None, children: Vec::new() };
    while let Some(Gathered { place, supervisor, children, .. }) = gathered.pop() {
        let above = gathered.get_mut(place.supervisor);
        let node = above.map_or(&mut root, |above| &mut above.children[place.index]);
        node.supervisor = supervisor;
        node.children = children;
        if !gathered.is_empty() && gathered.len().is_multiple_of(SUPERVISORS) {
            yield_now().await;
        }
    }
    root
}

/// Describes the root as a child, although it is none.
pub(super) fn as_root(root: &SupervisorShared) -> ChildInfo {
    let lifecycle = match root.progress.phase() {
        SupervisorPhase::Ended { .. } => Lifecycle::Stopped,
        _ if root.progress.stopping_since().is_some() => Lifecycle::Deactivating,
        SupervisorPhase::Starting => Lifecycle::Activating,
        SupervisorPhase::Up => Lifecycle::Active,
    };
    let stops = lifecycle == Lifecycle::Active && root.stop_reason().is_some();
    let since = root.progress.stopping_since().unwrap_or(root.began);
    ChildInfo {
        defined_at: outside(root.blueprint().defined_at),
        restart: RestartType::Temporary,
        ready: lifecycle == Lifecycle::Active && !stops,
        lifecycle,
        why: stops.then_some("about to stop"),
        since: root.tree.wall_clock(since),
        age: now().saturating_duration_since(since),
        version: root.blueprint().version.clone(),
        has_children: true,
        ..ChildInfo::active(
            root.path().clone(),
            ChildKind::Supervisor,
            root.tree.wall_clock(root.began),
        )
    }
}
