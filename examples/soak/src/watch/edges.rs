//! A second, independent table of the lifecycle's edges.
//!
//! It does not use [`Lifecycle::can_become`], which is under test.

use verger::Lifecycle::{self, *};

const EDGES: [(Lifecycle, &[Lifecycle]); 8] = [
    (Discovered, &[Resolved, Stopped]),
    (Resolved, &[Activating, Discovered, Stopped]),
    (Activating, &[Active, Errored, Deactivating, Stopped]),
    (Active, &[Errored, Deactivating]),
    (Deactivating, &[Stopped]),
    (Errored, &[Restarting, Resolved, Stopped]),
    (Restarting, &[Resolved, Stopped]),
    (Stopped, &[Restarting, Resolved]),
];

pub(super) fn is_legal(from: Lifecycle, to: Lifecycle) -> bool {
    EDGES.into_iter().any(|(state, next)| state == from && next.contains(&to))
}

/// Whether a child in this state has a task.
pub(super) fn is_up(state: Lifecycle) -> bool {
    matches!(state, Activating | Active | Deactivating)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_equals_the_librarys() {
        for from in Lifecycle::ALL {
            for to in Lifecycle::ALL {
                assert_eq!(is_legal(from, to), from.can_become(to), "{from} → {to}");
            }
        }
    }
}
