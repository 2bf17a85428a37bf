//! Restarts, mailboxes and busy time of the last five minutes, so that a page shows what was before it was opened.
//!
//! Knows snapshots. It doesn't know who reads them.
//!
//! # Invariants
//!
//! 1. Samples are [`EVERY`] apart, or more if a snapshot takes long: taking them costs at most a hundredth of a thread.
//! 2. There are at most [`KEPT`] samples of at most [`CHILDREN`] children, none of them dynamic. A sample of a supervisor sums what
//!    is below it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;

use crate::clock::now;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::path::Path;
use crate::serde::Millis;
use crate::status::{Node, Status};
use crate::sync::Mutex;

/// The time between two samples.
const EVERY: Duration = Duration::from_secs(2);
/// The samples of five minutes.
const KEPT: usize = 150;
/// The most children that have samples.
const CHILDREN: usize = 1_500;

#[derive(Default)]
pub(super) struct Samples {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// When each sample was taken, the oldest first.
    taken: VecDeque<u64>,
    children: HashMap<Path, ChildSamples>,
}

/// The last samples of one child. The last one is as old as the last one of the tree.
struct ChildSamples {
    samples: VecDeque<Sample>,
    /// In how many snapshots the child was missing since: it is gone, or its supervisor is down.
    missing: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Sample {
    restarts: u32,
    mailbox: u32,
    busy_ms: u32,
}

impl Sample {
    fn of(node: &Node) -> Self {
        let child = &node.child;
        let mailbox = child.mailbox.map_or(0, |it| u32::try_from(it.len).unwrap_or(u32::MAX));
        let busy = child.busy.as_ref().map_or(0, |it| it.total.millis());
        let busy_ms = u32::try_from(busy).unwrap_or(u32::MAX);
        Self { restarts: child.restarts, mailbox, busy_ms }
    }

    fn add(&mut self, below: Self) {
        self.restarts = self.restarts.saturating_add(below.restarts);
        self.mailbox = self.mailbox.saturating_add(below.mailbox);
        self.busy_ms = self.busy_ms.saturating_add(below.busy_ms);
    }
}

/// The samples of one child, the oldest first.
#[derive(Serialize)]
pub(super) struct SampleList {
    every_ms: u64,
    samples: Vec<TimedSample>,
}

#[derive(Serialize)]
struct TimedSample {
    at_ms: u64,
    restarts: u32,
    mailbox: u32,
    busy_ms: u32,
}

impl Samples {
    /// Takes samples until the task is dropped.
    pub(super) fn take_regularly(self: &Arc<Self>, tree: &SupervisorHandle) -> OwnedTask<()> {
        let state = (Arc::clone(self), tree.clone());
        OwnedTask::restarted("verger console samples", state, |(samples, tree)| {
            Box::pin(async move {
                loop {
                    let began = now();
                    if let Ok(status) = tree.status().await {
                        samples.add(&status);
                    }
                    let took = now().saturating_duration_since(began);
                    sleep(EVERY.max(100 * took)).await;
                }
            })
        })
    }

    fn add(&self, status: &Status) {
        let mut sums = sums(status);
        let mut inner = self.inner.lock();
        let Inner { taken, children } = &mut *inner;
        taken.push_back(status.captured_at.millis());
        if taken.len() > KEPT {
            taken.pop_front();
        }
        children.retain(|path, child| {
            let sample = match sums.remove(path) {
                Some(sample) => {
                    child.missing = 0;
                    sample
                }
                None => {
                    child.missing += 1;
                    child.samples.back().copied().unwrap_or_default()
                }
            };
            child.samples.push_back(sample);
            if child.samples.len() > KEPT {
                child.samples.pop_front();
            }
            child.missing < KEPT
        });
        let new = sums.into_iter().filter(|(_, sample)| *sample != Sample::default());
        for (path, sample) in new.take(CHILDREN - children.len()) {
            let samples = VecDeque::from([sample]);
            children.insert(path.clone(), ChildSamples { samples, missing: 0 });
        }
    }

    pub(super) fn of(&self, path: &Path) -> SampleList {
        let inner = self.inner.lock();
        let samples = inner.children.get(path).into_iter().flat_map(|child| &child.samples);
        let behind = inner.taken.len().saturating_sub(samples.clone().count());
        // A child of which nothing was to be told before has had zeros.
        let before = std::iter::repeat_n(&Sample { restarts: 0, mailbox: 0, busy_ms: 0 }, behind);
        let samples = inner.taken.iter().zip(before.chain(samples)).map(|(&at_ms, sample)| {
            let Sample { restarts, mailbox, busy_ms } = *sample;
            TimedSample { at_ms, restarts, mailbox, busy_ms }
        });
        SampleList { every_ms: EVERY.millis(), samples: samples.collect() }
    }
}

/// Returns for each child that isn't dynamic the sum of its sample and those below it.
fn sums(status: &Status) -> HashMap<&Path, Sample> {
    let nodes: Vec<_> = status.nodes().collect();
    let mut sums = HashMap::new();
    // A supervisor stands before its children: from the end, all sums below a child are complete and open.
    let mut open: Vec<(usize, Sample)> = Vec::new();
    for node in nodes.iter().rev() {
        let (path, mut sum) = (&node.child.path, Sample::of(node));
        let depth = path.depth();
        while let Some((_, below)) = open.pop_if(|(of, _)| *of > depth) {
            sum.add(below);
        }
        open.push((depth, sum));
        if !path.as_str().contains('#') {
            sums.insert(path, sum);
        }
    }
    // The counter of the tree includes children that are gone.
    if let Some(root) = sums.get_mut(&status.root.child.path) {
        root.restarts = u32::try_from(status.totals.restarts).unwrap_or(u32::MAX);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::status::{ChildInfo, ChildKind, MailboxInfo};

    fn node(path: &Path, restarts: u32, children: Vec<Node>) -> Node {
        let mut child = ChildInfo::sample(path.clone(), ChildKind::Worker);
        child.restarts = restarts;
        child.mailbox = Some(MailboxInfo { len: 2, capacity: 8, full_since: None });
        Node { child, supervisor: None, children }
    }

    fn tree(second: u64, children: Vec<Node>) -> Status {
        let mut status = Status::sample(node(&Path::root("app"), 0, children));
        status.captured_at = UNIX_EPOCH + Duration::from_secs(second);
        status.totals.restarts = 40;
        status
    }

    fn values(samples: &Samples, path: &str) -> Vec<(u64, u32, u32)> {
        let list = samples.of(&Path::from_text(path.to_owned()));
        list.samples.iter().map(|it| (it.at_ms / 1_000, it.restarts, it.mailbox)).collect()
    }

    #[test]
    fn a_supervisor_sums_what_is_below_it_and_the_root_counts_those_that_are_gone() {
        let (samples, app) = (Samples::default(), Path::root("app"));
        let web = app.join("web");
        let conns = (7..10).map(|number| node(&web.join(&format!("conn#{number}")), 1, vec![]));
        let web = node(&web, 3, conns.collect());
        let db = node(&app.join("db"), 5, vec![]);
        samples.add(&tree(1, vec![web, db]));
        assert_eq!(values(&samples, "app"), [(1, 40, 12)]);
        assert_eq!(values(&samples, "app/web"), [(1, 6, 8)]);
        assert_eq!(values(&samples, "app/db"), [(1, 5, 2)]);
        assert_eq!(samples.inner.lock().children.len(), 3, "dynamic children have none");
    }

    #[test]
    fn a_child_that_is_missing_for_a_while_keeps_its_last_values_and_one_that_is_new_had_none() {
        let (samples, db) = (Samples::default(), Path::root("app").join("db"));
        samples.add(&tree(1, vec![]));
        samples.add(&tree(3, vec![node(&db, 5, vec![])]));
        samples.add(&tree(5, vec![]));
        samples.add(&tree(7, vec![node(&db, 6, vec![])]));
        assert_eq!(values(&samples, "app/db"), [(1, 0, 0), (3, 5, 2), (5, 5, 2), (7, 6, 2)]);
        for second in 0..KEPT as u64 {
            assert_eq!(samples.inner.lock().children.len(), 2);
            samples.add(&tree(9 + 2 * second, vec![]));
        }
        assert_eq!(samples.inner.lock().children.len(), 1);
        assert_eq!(values(&samples, "app").len(), KEPT);
    }
}
