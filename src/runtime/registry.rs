//! Which supervisors of a tree run, by path.
//!
//! Only supervisors are registered. Each supervisor finds its own children by name, so a million
//! dynamic children cost the registry nothing. A guard into the map never leaves this file.

use std::sync::Arc;

use dashmap::DashMap;

use crate::path::Path;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Registry<T> {
    running: DashMap<Path, Arc<T>>,
}

impl<T> Registry<T> {
    pub(super) fn new() -> Self {
        // Most trees have few supervisors, and each shard takes memory.
        Self { running: DashMap::with_shard_amount(4) }
    }

    /// Registers the supervisor in place of an earlier incarnation.
    pub(super) fn insert(&self, path: Path, supervisor: Arc<T>) {
        self.running.insert(path, supervisor);
    }

    /// Removes the supervisor, unless its next incarnation is registered already.
    pub(super) fn remove(&self, path: &Path, supervisor: &Arc<T>) {
        self.running.remove_if(path, |_, registered| Arc::ptr_eq(registered, supervisor));
    }

    pub(super) fn get(&self, path: &Path) -> Option<Arc<T>> {
        self.running.get(path).map(|supervisor| Arc::clone(&supervisor))
    }

    /// Returns all supervisors of the tree, in any order.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.running.iter().map(|supervisor| Arc::clone(&supervisor)).collect()
    }

    /// Returns some supervisors of the tree, in any order.
    pub(super) fn some(&self, max: usize) -> Vec<Arc<T>> {
        self.running.iter().take(max).map(|supervisor| Arc::clone(&supervisor)).collect()
    }

    /// Returns the nearest running supervisor above `path`, and its path.
    pub(super) fn nearest(&self, path: &Path) -> Option<(Path, Arc<T>)> {
        let mut above = path.parent();
        while let Some(path) = above {
            if let Some(supervisor) = self.get(&path) {
                return Some((path, supervisor));
            }
            above = path.parent();
        }
        None
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_next_incarnation_replaces_the_earlier_one_and_isnt_removed_with_it() {
        let (path, first, second) = (Path::root("app"), Arc::new(1), Arc::new(2));
        let registry = Registry::new();
        registry.insert(path.clone(), Arc::clone(&first));
        registry.insert(path.clone(), Arc::clone(&second));
        assert_eq!(Arc::strong_count(&first), 1);

        registry.remove(&path, &first);
        assert_eq!(registry.get(&path), Some(Arc::clone(&second)));
        registry.remove(&path, &second);
        assert_eq!(registry.get(&path), None);
    }

    #[test]
    fn the_nearest_supervisor_above_a_path_is_the_lowest_that_runs() {
        let registry = Registry::new();
        let app = Path::root("app");
        registry.insert(app.join("a"), Arc::new(2));
        registry.insert(app.clone(), Arc::new(1));

        let nearest = |path: &Path| registry.nearest(path).map(|(path, _)| path.to_string());
        assert_eq!(nearest(&app.join("a").join("b").join("c")).as_deref(), Some("app/a"));
        assert_eq!(nearest(&app.join("b")).as_deref(), Some("app"));
        assert_eq!(nearest(&app), None);
    }
}
