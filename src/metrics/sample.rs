//! Gauges, which are set from a snapshot.
//!
//! A limit that restarts have used up becomes free as time passes, without any event. So gauges are sampled
//! rather than set at events.

use std::collections::{BTreeMap, BTreeSet};

use ::metrics::{Label, SharedString};

use super::list::{
    CHILD_STATE, CHILDREN, INFO, LIMIT_USED, MAILBOX_CAPACITY, MAILBOX_DEPTH, Metric, PROBLEMS,
};
use super::recorder::{self, gauge, shared};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{ChildInfo, ChildKind, Node, ProblemKind, Status};

/// Sets the gauges from snapshots of a tree.
///
/// Call [`record`](Self::record) at an interval, such as that at which the metrics are scraped, with a snapshot of the
/// root: see the [example](crate::metrics#example). Between two calls the gauges keep their values. Keep the value
/// between the calls: it sets the gauges of children that are gone to 0.
///
/// * `verger_child_state` is 1 for the state that a declared child is in, and 0 for the other states. All eight are 0
///   while the supervisor of the child doesn't run.
/// * `verger_children` counts the children that are added while the tree runs, by state, under the path of their
///   supervisor, with everything below them.
/// * `verger_limit_used_ratio` is set for each child that has its own restart limit, and for each supervisor with a limit
///   of all its children together, to the restarts within the period divided by those that the limit grants. It is 0
///   while a supervisor isn't running. Limits that are counted under one path share a gauge, which has the highest
///   value.
/// * `verger_mailbox_depth` and `verger_mailbox_capacity` are sums over all children that are counted under one path.
/// * `verger_problems` counts the [problems](Status::problems) of the snapshot by kind.
/// * `verger_info` is always 1.
///
/// ```
/// use verger::metrics::Gauges;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tree = verger::Supervisor::builder("app").build()?.start().await?;
/// let mut gauges = Gauges::new();
/// gauges.record(&tree.status().await?);
/// # tree.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Gauges {
    /// The gauges that the last call has set.
    set: BTreeSet<Series>,
}

impl Gauges {
    /// Creates a value that has set no gauge yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets all gauges. Without a recorder, it returns immediately.
    pub fn record(&mut self, status: &Status) {
        recorder::with(|recorder| {
            let sample = Sample::of(status);
            let gone = self.set.iter().filter(|series| !sample.values.contains_key(*series));
            let gone = gone.map(|series| (series, 0.0));
            for (series, value) in sample.values.iter().map(|(it, value)| (it, *value)).chain(gone)
            {
                gauge(recorder, series.name, series.labels()).set(value);
            }
            self.set = sample.values.into_keys().collect();
        });
    }
}

/// One gauge: the metric by its name, with its labels' keys, and their values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: &'static str,
    keys: &'static [&'static str],
    values: [SharedString; 2],
}

impl Series {
    fn labels(&self) -> Vec<Label> {
        let named = self.keys.iter().zip(&self.values);
        named.map(|(key, value)| Label::new(*key, value.clone())).collect()
    }
}

/// The values of all gauges at one moment.
#[derive(Default)]
struct Sample {
    values: BTreeMap<Series, f64>,
}

impl Sample {
    fn of(status: &Status) -> Self {
        let mut sample = Self::default();
        sample.add(INFO, status.program.verger.into(), "", 1.0);
        let problems = status.problems();
        for kind in ProblemKind::ALL {
            let count = problems.iter().filter(|problem| problem.kind == *kind).count();
            sample.add(PROBLEMS, kind.word().into(), "", count as f64);
        }
        for (path, counted) in counted(status) {
            let path = shared(path.as_str());
            for state in Lifecycle::ALL {
                if let Some(own) = counted.state {
                    let value = if own == state { 1.0 } else { 0.0 };
                    sample.add(CHILD_STATE, path.clone(), state.word(), value);
                }
                if let Some(added) = &counted.added {
                    let count = added.get(&state).copied().unwrap_or_default();
                    sample.add(CHILDREN, path.clone(), state.word(), count.into());
                }
            }
            if let Some(used) = counted.limit {
                sample.add(LIMIT_USED, path.clone(), "", used);
            }
            if let Some((depth, capacity)) = counted.mailboxes {
                sample.add(MAILBOX_DEPTH, path.clone(), "", depth as f64);
                sample.add(MAILBOX_CAPACITY, path, "", capacity as f64);
            }
        }
        sample
    }

    fn add(&mut self, metric: Metric, first: SharedString, second: &'static str, value: f64) {
        let values = [first, SharedString::const_str(second)];
        let Metric { name, labels: keys, .. } = metric;
        self.values.insert(Series { name, keys, values }, value);
    }
}

/// What is counted under one path: the child that has it as its label, and all children below it that have none.
#[derive(Default)]
struct Counted {
    /// The state of the child with this path.
    state: Option<Lifecycle>,
    /// How many of the others are in each state, if there are any.
    added: Option<BTreeMap<Lifecycle, u32>>,
    /// The highest share of a limit that is used.
    limit: Option<f64>,
    /// How many messages the mailboxes hold, and how many they can hold.
    mailboxes: Option<(usize, usize)>,
}

fn counted(status: &Status) -> BTreeMap<Path, Counted> {
    let mut counted = BTreeMap::<Path, Counted>::new();
    let (label, is_own) = label_of_root(&status.root.child);
    // Without recursion, since a tree can be thousands of levels deep.
    let mut left = vec![(&status.root, label, is_own)];
    while let Some((node, label, is_own)) = left.pop() {
        left.extend(node.children.iter().map(|below| match &below.child {
            child if is_own && child.declared => (below, child.path.clone(), true),
            _ => (below, label.clone(), false),
        }));
        counted.entry(label).or_default().add(node, is_own);
    }
    counted
}

impl Counted {
    fn add(&mut self, node: &Node, is_own: bool) {
        let child = &node.child;
        match is_own {
            true => self.state = Some(child.lifecycle),
            false => {
                let added = self.added.get_or_insert_default();
                *added.entry(child.lifecycle).or_default() += 1;
            }
        }
        self.limit = self.limit.into_iter().chain(limit_used(node)).reduce(f64::max);
        if let Some(mailbox) = child.mailbox {
            let (depth, capacity) = self.mailboxes.unwrap_or_default();
            self.mailboxes = Some((depth + mailbox.len, capacity + mailbox.capacity));
        }
    }
}

/// Returns the label of a snapshot's root, and whether it is the root's own. The supervisors above it aren't in
/// the snapshot: only their serial numbers say that they aren't declared.
fn label_of_root(root: &ChildInfo) -> (Path, bool) {
    let path = root.path.as_str();
    let above = match path.split_once('#') {
        Some((before, _)) => before.rsplit_once('/'),
        None if root.declared => None,
        None => path.rsplit_once('/'),
    };
    match above {
        Some((above, _)) => (Path::from_text(above.to_owned()), false),
        None => (root.path.clone(), true),
    }
}

/// Returns the used share of the limit of which more is used: the child's own, or that of its children together.
fn limit_used(node: &Node) -> Option<f64> {
    let own = node.child.limit.map(|limit| share(limit.restarts, limit.max_restarts));
    let together = match &node.supervisor {
        None => (node.child.kind == ChildKind::Supervisor).then_some(0.0),
        Some(it) => it.max_restarts.map(|max| share(it.restarts_in_period, max)),
    };
    own.into_iter().chain(together).reduce(f64::max)
}

fn share(used: usize, max: u32) -> f64 {
    // Nothing of a limit of 0 is used before the failure that exceeds it.
    if used == 0 { 0.0 } else { (used as f64 / f64::from(max)).min(1.0) }
}
