//! Which supervisors of a tree run, by path.
//!
//! Only supervisors are registered. Each supervisor finds its own children by name, so a million
//! dynamic children cost the registry nothing. A guard into the map never leaves this file.

use std::borrow::Borrow;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use dashmap::DashMap;

use crate::path::{LazyPath, Path};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Registry<T> {
    running: DashMap<PathKey, Arc<T>, BuildHasherDefault<KeyHash>>,
}

/// The path of a supervisor, with its hash.
///
/// The hash is made of the hash of the supervisor above and the last name. So a supervisor far down in
/// a deep tree is registered as quickly as one at the top. perf: budgets row "deep-build"
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathKey {
    hash: u64,
    path: LazyPath,
}

impl PathKey {
    pub(super) fn root(name: &str) -> Self {
        Self { hash: hash_below(ABOVE_ROOT, name), path: LazyPath::root(name) }
    }

    /// Returns the key of the supervisor with this name directly below this one.
    pub(super) fn child(&self, name: &Arc<str>) -> Self {
        Self { hash: hash_below(self.hash, name), path: self.path.child(name) }
    }

    pub(super) fn path(&self) -> &Path {
        self.path.path()
    }

    pub(super) fn lazy_path(&self) -> &LazyPath {
        &self.path
    }
}

/// The hash above a root.
const ABOVE_ROOT: u64 = 0;

fn hash_below(above: u64, name: &str) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one((above, name))
}

impl Hash for PathKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The hash of a key, which is random already.
#[derive(Default)]
struct KeyHash(u64);

impl Hasher for KeyHash {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("a key is hashed as a number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What finds a supervisor: its key, its full path, or names below another key.
trait Lookup {
    fn hash(&self) -> u64;

    /// Returns the path, if this is a key.
    fn path(&self) -> Option<&LazyPath>;

    fn is_path(&self, path: &LazyPath) -> bool;
}

impl Lookup for PathKey {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn path(&self) -> Option<&LazyPath> {
        Some(&self.path)
    }

    fn is_path(&self, path: &LazyPath) -> bool {
        self.path == *path
    }
}

/// Names below a path.
struct Below<'a> {
    above: &'a PathKey,
    names: &'a str,
}

impl Lookup for Below<'_> {
    fn hash(&self) -> u64 {
        self.names.split('/').fold(self.above.hash, hash_below)
    }

    fn path(&self) -> Option<&LazyPath> {
        None
    }

    fn is_path(&self, path: &LazyPath) -> bool {
        let below = path.path().as_str().strip_prefix(self.above.path().as_str());
        below.and_then(|below| below.strip_prefix('/')) == Some(self.names)
    }
}

/// All names of a path, from the root down.
struct FullPath<'a>(&'a str);

impl Lookup for FullPath<'_> {
    fn hash(&self) -> u64 {
        self.0.split('/').fold(ABOVE_ROOT, hash_below)
    }

    fn path(&self) -> Option<&LazyPath> {
        None
    }

    fn is_path(&self, path: &LazyPath) -> bool {
        path.path().as_str() == self.0
    }
}

impl<'a> Borrow<dyn Lookup + 'a> for PathKey {
    fn borrow(&self) -> &(dyn Lookup + 'a) {
        self
    }
}

impl Hash for dyn Lookup + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Lookup::hash(self));
    }
}

impl PartialEq for dyn Lookup + '_ {
    fn eq(&self, other: &Self) -> bool {
        // One of the two is a key in the map.
        match (self.path(), other.path()) {
            (Some(path), _) => other.is_path(path),
            (None, Some(path)) => self.is_path(path),
            (None, None) => false,
        }
    }
}

impl Eq for dyn Lookup + '_ {}

impl<T> Registry<T> {
    pub(super) fn new() -> Self {
        // Most trees have few supervisors, and each shard takes memory.
        Self { running: DashMap::with_hasher_and_shard_amount(BuildHasherDefault::default(), 4) }
    }

    /// Registers the supervisor in place of an earlier incarnation.
    pub(super) fn insert(&self, key: PathKey, supervisor: Arc<T>) {
        self.running.insert(key, supervisor);
    }

    /// Removes the supervisor, unless its next incarnation is registered already.
    pub(super) fn remove(&self, key: &PathKey, supervisor: &Arc<T>) {
        self.running.remove_if(key, |_, registered| Arc::ptr_eq(registered, supervisor));
    }

    pub(super) fn get(&self, path: &Path) -> Option<Arc<T>> {
        self.full_path(path.as_str())
    }

    /// Returns the supervisor with these names, from the root down.
    pub(super) fn full_path(&self, names: &str) -> Option<Arc<T>> {
        self.find(&FullPath(names))
    }

    /// Returns the supervisor with these names below a path.
    pub(super) fn below(&self, above: &PathKey, names: &str) -> Option<Arc<T>> {
        self.find(&Below { above, names })
    }

    fn find(&self, lookup: &dyn Lookup) -> Option<Arc<T>> {
        self.running.get(lookup).map(|supervisor| Arc::clone(&supervisor))
    }

    /// Returns all supervisors of the tree, in any order.
    #[cfg(any(feature = "config", feature = "health", feature = "signal"))]
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
        let (registry, key) = (Registry::new(), PathKey::root("app"));
        registry.insert(key.clone(), Arc::clone(&first));
        registry.insert(key.clone(), Arc::clone(&second));
        assert_eq!(Arc::strong_count(&first), 1);

        registry.remove(&key, &first);
        assert_eq!(registry.get(&path), Some(Arc::clone(&second)));
        registry.remove(&key, &second);
        assert_eq!(registry.get(&path), None);
    }

    #[test]
    fn the_nearest_supervisor_above_a_path_is_the_lowest_that_runs() {
        let registry = Registry::new();
        let app = Path::root("app");
        let key = PathKey::root("app");
        registry.insert(key.child(&"a".into()), Arc::new(2));
        registry.insert(key, Arc::new(1));

        let nearest = |path: &Path| registry.nearest(path).map(|(path, _)| path.to_string());
        assert_eq!(nearest(&app.join("a").join("b").join("c")).as_deref(), Some("app/a"));
        assert_eq!(nearest(&app.join("b")).as_deref(), Some("app"));
        assert_eq!(nearest(&app), None);
    }
}
