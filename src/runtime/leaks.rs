//! Children that were aborted and still run.

use std::collections::HashMap;

use crate::core::{IncarnationNumber, Key};
use crate::path::Path;
use crate::sync::Mutex;

/// An incarnation of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeakId {
    /// The address of the supervisor's shared state, which the incarnation keeps alive.
    pub(super) supervisor: usize,
    pub(super) key: Key,
    pub(super) incarnation: IncarnationNumber,
}

/// The leaked children of a tree.
#[derive(Debug, Default)]
pub(super) struct Leaks(Mutex<LeakTable>);

#[derive(Debug, Default)]
struct LeakTable {
    /// The path of each leaked child, and a number that increases with each leak.
    leaked: HashMap<LeakId, (u64, Path)>,
    next: u64,
}

impl Leaks {
    pub(super) fn insert(&self, id: LeakId, path: Path) {
        let mut table = self.0.lock();
        let number = table.next;
        table.next += 1;
        table.leaked.insert(id, (number, path));
    }

    pub(super) fn remove(&self, id: LeakId) -> Option<Path> {
        self.0.lock().leaked.remove(&id).map(|(_, path)| path)
    }

    /// Returns the paths of the leaked children below `path`, in the order in which they leaked.
    pub(super) fn below(&self, path: &Path) -> Vec<Path> {
        let mut below: Vec<_> = {
            let table = self.0.lock();
            if table.leaked.is_empty() {
                return Vec::new();
            }
            let prefix = format!("{path}/");
            let leaked = table.leaked.values();
            leaked.filter(|(_, path)| path.as_str().starts_with(&prefix)).cloned().collect()
        };
        below.sort_unstable_by_key(|&(number, _)| number);
        below.into_iter().map(|(_, path)| path).collect()
    }
}
