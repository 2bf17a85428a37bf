//! Which part of the time each child is busy, from the counters that the server sends.
//!
//! # Invariants
//!
//! 1. A share compares two counters of one incarnation that are at least [`APART_MS`] apart.

use std::collections::HashMap;

use crate::model::Node;
use crate::text::Text;

/// The shortest time between two samples: a share of less jumps.
const APART_MS: u64 = 900;

/// A counter of a child.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ms: u64,
    incarnation: u32,
    total_ms: u64,
    /// Per mille, once there was a sample before this one.
    share: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Shares {
    by_path: HashMap<Text, Sample>,
}

impl Shares {
    /// Takes the counters of a whole tree, and forgets the children that aren't in it.
    pub(crate) fn replace<'a>(&mut self, nodes: impl Iterator<Item = &'a Node>, at_ms: u64) {
        let before = std::mem::take(&mut self.by_path);
        for node in nodes {
            if let Some(&sample) = before.get(&*node.path) {
                self.by_path.insert(node.path.clone(), sample);
            }
            self.record(node, at_ms);
        }
    }

    /// Takes the counter of a child.
    pub(crate) fn record(&mut self, node: &Node, at_ms: u64) {
        let Some(busy) = &node.busy else { return };
        let fresh =
            Sample { at_ms, incarnation: node.incarnation, total_ms: busy.total_ms, share: None };
        let Some(last) = self.by_path.get_mut(&*node.path) else {
            _ = self.by_path.insert(node.path.clone(), fresh);
            return;
        };
        let is_same = last.incarnation == fresh.incarnation && last.total_ms <= fresh.total_ms;
        let passed = at_ms.saturating_sub(last.at_ms);
        if !is_same {
            *last = fresh;
        } else if passed >= APART_MS {
            // A poll that has not returned isn't in the counter, and has taken all of the time.
            let spent = (fresh.total_ms - last.total_ms).max(busy.polling_ms.unwrap_or(0));
            let share = (spent.saturating_mul(1_000) / passed).min(1_000);
            *last = Sample { share: Some(share), ..fresh };
        }
    }

    /// The share per mille: most children need less than a percent.
    pub(crate) fn share(&self, path: &str) -> Option<u64> {
        self.by_path.get(path)?.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Busy;
    use crate::tree::tests::node;

    fn busy(total_ms: u64, incarnation: u32, polling_ms: Option<u64>) -> Node {
        let busy = Some(Busy { total_ms, polling_ms, ..Busy::default() });
        Node { busy, incarnation, ..node("app/db", "active") }
    }

    #[test]
    fn a_share_is_what_was_spent_between_two_samples() {
        let mut shares = Shares::default();
        let mut after = |at_ms, node: Node| {
            shares.replace([node].iter(), at_ms);
            shares.share("app/db")
        };
        assert_eq!(after(0, busy(5_000, 1, None)), None);
        assert_eq!(after(1_000, busy(5_250, 1, None)), Some(250));
        // Too early for another one.
        assert_eq!(after(1_100, busy(5_350, 1, None)), Some(250));
        assert_eq!(after(2_000, busy(5_350, 1, None)), Some(100));
        // A poll that lasts.
        assert_eq!(after(3_000, busy(5_350, 1, Some(60_000))), Some(1_000));
        // Another incarnation starts at zero.
        assert_eq!(after(4_000, busy(10, 2, None)), None);
    }

    #[test]
    fn a_child_that_is_gone_is_forgotten() {
        let mut shares = Shares::default();
        shares.replace([busy(0, 1, None)].iter(), 0);
        shares.replace(std::iter::empty(), 1_000);
        assert!(shares.by_path.is_empty());
    }
}
