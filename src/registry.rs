//! Which supervisors of a tree run, by path.
//!
//! Only supervisors are here: a child's name is known to its supervisor, so that a million dynamic
//! children cost the registry nothing. A guard into the map never leaves this file.

use std::sync::Arc;

use dashmap::DashMap;

use crate::path::Path;

#[derive(Debug)]
pub(crate) struct Registry<T> {
    running: DashMap<Path, Arc<T>>,
}

impl<T> Registry<T> {
    pub(crate) fn new() -> Self {
        // A tree has few supervisors, and most trees one: shards cost more than they give.
        Self { running: DashMap::with_shard_amount(4) }
    }

    pub(crate) fn insert(&self, path: Path, entry: Arc<T>) {
        self.running.insert(path, entry);
    }

    /// Removes `entry`, unless the next incarnation is there already.
    pub(crate) fn remove(&self, path: &Path, entry: &Arc<T>) {
        self.running.remove_if(path, |_, there| Arc::ptr_eq(there, entry));
    }

    pub(crate) fn get(&self, path: &Path) -> Option<Arc<T>> {
        self.running.get(path).map(|entry| Arc::clone(&entry))
    }

    /// The nearest supervisor above `path` that runs.
    pub(crate) fn nearest(&self, path: &Path) -> Option<(Path, Arc<T>)> {
        let mut above = path.parent();
        while let Some(path) = above {
            if let Some(entry) = self.get(&path) {
                return Some((path, entry));
            }
            above = path.parent();
        }
        None
    }
}
