//! Gauges, which are set from a snapshot.
//!
//! A limit that restarts have used up becomes free as time passes, without any event. So gauges are sampled
//! rather than set at events.

use std::collections::BTreeMap;

use ::metrics::{Label, Recorder};

use super::list::{LIMIT_USED, MAILBOX_DEPTH, Metric};
use super::recorder::{self, gauge, shared};
use crate::path::Path;
use crate::status::{ChildInfo, ChildKind, Node, Status};

/// Sets the gauges `verger_limit_used` and `verger_mailbox_depth` from a snapshot.
///
/// Call it at an interval, such as that at which the metrics are scraped, with a snapshot of the root: see the
/// [example](crate::metrics#example). Between two calls the gauges keep their values.
///
/// `verger_limit_used` is set for each child that has its own restart limit, and for each supervisor with a limit
/// of all its children together, to the restarts within the period divided by those that the limit grants. It is 0
/// while a supervisor isn't running. Limits that are counted under one path share a gauge, which has the highest
/// value. `verger_mailbox_depth` is the sum over all children that are counted under one path.
///
/// Without a recorder, it returns at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tree = verger::Supervisor::builder("app").build()?.start().await?;
/// verger::metrics::record(&tree.status().await?);
/// # tree.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
pub fn record(status: &Status) {
    recorder::with(|recorder| {
        let gauges = Gauges::of(status);
        set(recorder, LIMIT_USED, gauges.limits);
        set(recorder, MAILBOX_DEPTH, gauges.depths);
    });
}

fn set(recorder: &dyn Recorder, metric: Metric, values: BTreeMap<Path, f64>) {
    for (path, value) in values {
        gauge(recorder, metric, vec![Label::new("path", shared(path.as_str()))]).set(value);
    }
}

/// The values by the path that they are counted under.
#[derive(Default)]
struct Gauges {
    limits: BTreeMap<Path, f64>,
    depths: BTreeMap<Path, f64>,
}

impl Gauges {
    fn of(status: &Status) -> Self {
        let mut gauges = Self::default();
        let (label, is_own) = label_of_root(&status.root.child);
        // Without recursion, since a tree can be thousands of levels deep.
        let mut left = vec![(&status.root, label, is_own)];
        while let Some((node, label, is_own)) = left.pop() {
            gauges.add(node, &label);
            left.extend(node.children.iter().map(|below| match &below.child {
                child if is_own && child.declared => (below, child.path.clone(), true),
                _ => (below, label.clone(), false),
            }));
        }
        gauges
    }

    fn add(&mut self, node: &Node, label: &Path) {
        if let Some(used) = limit_used(node) {
            let highest = self.limits.entry(label.clone()).or_default();
            *highest = highest.max(used);
        }
        if let Some(mailbox) = node.child.mailbox {
            *self.depths.entry(label.clone()).or_default() += mailbox.len as f64;
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
