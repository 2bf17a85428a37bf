//! Which supervisors of a tree run, by path.
//!
//! Only supervisors are here: a child's name is known to its supervisor, so that a million dynamic
//! children cost the registry nothing. A guard into the map never leaves this file.
//!
//! No path is kept as text: those of a chain of a thousand supervisors come to half a million
//! names. An entry is found by a hash, made of that of the one above and its own name; whether it
//! is at the path, too, is seen by going up the names. So to enter costs the same at any depth, and
//! to look a text up is one search in the map.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, RandomState};

use crate::path::Path;

/// What a registry is of: something with a name, that may be below another.
pub(crate) trait Located {
    fn above(&self) -> Option<&Self>;

    fn name(&self) -> &[u8];

    /// Of its own place.
    fn place_hash(&self) -> PlaceHash;
}

/// The names of a path, as a hash. Its seed is another in each process: who chooses names doesn't
/// choose hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceHash(u64);

impl PlaceHash {
    /// Above the root.
    pub(crate) const TOP: Self = Self(0);

    #[must_use]
    pub(crate) fn join(self, name: &[u8]) -> Self {
        let mut hasher = FoldHasher::with_seed(self.0, SharedSeed::global_random());
        hasher.write(name);
        Self(hasher.finish())
    }

    /// With where the last name begins. By bytes: to split a text at a character is made for long
    /// ones, and took a lookup longer than all else.
    fn join_all(self, path: &[u8]) -> (Self, usize) {
        let (mut hash, mut name) = (self, 0);
        for (at, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
            hash = hash.join(&path[name..at]);
            name = at + 1;
        }
        (hash.join(&path[name..]), name)
    }
}

/// Somewhere in a tree: where `at` is, or at the path `below` from there.
struct Place<'a, T> {
    hash: PlaceHash,
    at: Option<&'a T>,
    below: &'a [u8],
    /// Where the last name of `below` begins.
    last: usize,
}

impl<'a, T: Located> Place<'a, T> {
    fn of(at: &'a T) -> Self {
        Self { hash: at.place_hash(), at: Some(at), below: &[], last: 0 }
    }

    fn below(at: &'a T, path: &'a str) -> Self {
        let below = path.as_bytes();
        let (hash, last) = at.place_hash().join_all(below);
        Self { hash, at: Some(at), below, last }
    }

    fn by_path(path: &'a Path) -> Self {
        let below = path.as_str().as_bytes();
        let (hash, last) = PlaceHash::TOP.join_all(below);
        Self { hash, at: None, below, last }
    }

    /// Whether both are the same place. That takes all the way up only if something between has
    /// been started again, or one of them is a path.
    fn is(mut self, mut other: Self) -> bool {
        loop {
            if self.below.is_empty() && other.below.is_empty() && is_same(self.at, other.at) {
                return true;
            }
            match (self.up(), other.up()) {
                (Some(one), Some(two)) if one == two => {}
                _ => return false,
            }
        }
    }

    /// Takes the last name away, unless there is none.
    fn up(&mut self) -> Option<&'a [u8]> {
        if self.below.is_empty() {
            let last = self.at?;
            self.at = last.above();
            return Some(last.name());
        }
        let last = &self.below[self.last..];
        self.below = &self.below[..self.last.saturating_sub(1)];
        self.last = self.below.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        Some(last)
    }
}

fn is_same<T>(one: Option<&T>, two: Option<&T>) -> bool {
    one.map(std::ptr::from_ref) == two.map(std::ptr::from_ref)
}

/// What the map can be searched by: an entry, or a place that nobody has to make one for.
trait Key<T> {
    fn place(&self) -> Place<'_, T>;
}

impl<T: Located> Hash for dyn Key<T> + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash.hash(state);
    }
}

impl<T: Located> PartialEq for dyn Key<T> + '_ {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (self.place(), other.place());
        one.hash == two.hash && one.is(two)
    }
}

impl<T: Located> Eq for dyn Key<T> + '_ {}

impl<T: Located> Key<T> for Place<'_, T> {
    fn place(&self) -> Place<'_, T> {
        Place { ..*self }
    }
}

/// The hash is kept beside it: a map that grows asks everything in it for its hash.
#[derive(Debug)]
struct Running<T> {
    hash: PlaceHash,
    it: Arc<T>,
}

impl<T: Located> Key<T> for Running<T> {
    fn place(&self) -> Place<'_, T> {
        Place { hash: self.hash, ..Place::of(&self.it) }
    }
}

impl<'a, T: Located + 'a> Borrow<dyn Key<T> + 'a> for Running<T> {
    fn borrow(&self) -> &(dyn Key<T> + 'a) {
        self
    }
}

impl<T: Located> Hash for Running<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn Key<T>).hash(state);
    }
}

impl<T: Located> PartialEq for Running<T> {
    fn eq(&self, other: &Self) -> bool {
        self as &dyn Key<T> == other as &dyn Key<T>
    }
}

impl<T: Located> Eq for Running<T> {}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Registry<T: Located> {
    running: DashMap<Running<T>, (), RandomState>,
}

impl<T: Located> Registry<T> {
    pub(crate) fn new() -> Self {
        // A tree has few supervisors, and most trees one: shards cost more than they give.
        let running = DashMap::with_hasher_and_shard_amount(RandomState::default(), 4);
        Self { running }
    }

    /// Enters the one that runs now, in place of an earlier incarnation.
    pub(crate) fn insert(&self, it: Arc<T>) {
        match self.running.entry(Running { hash: it.place_hash(), it }) {
            // With its key, which would keep the earlier one.
            Entry::Occupied(entry) => drop(entry.replace_entry(())),
            Entry::Vacant(entry) => drop(entry.insert(())),
        }
    }

    /// Removes it, unless the next incarnation is there already.
    pub(crate) fn remove(&self, it: &Arc<T>) {
        let place = Place::of(&**it);
        self.running.remove_if(&place as &dyn Key<T>, |there, ()| Arc::ptr_eq(&there.it, it));
    }

    pub(crate) fn get(&self, path: &Path) -> Option<Arc<T>> {
        self.at(&Place::by_path(path))
    }

    /// What runs where `it` is or was.
    pub(crate) fn in_place_of(&self, it: &T) -> Option<Arc<T>> {
        self.at(&Place::of(it))
    }

    /// What runs at `path` below the place of `it`.
    pub(crate) fn below(&self, it: &T, path: &str) -> Option<Arc<T>> {
        self.at(&Place::below(it, path))
    }

    fn at(&self, place: &Place<'_, T>) -> Option<Arc<T>> {
        self.running.get(place as &dyn Key<T>).map(|there| Arc::clone(&there.key().it))
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Node {
        name: &'static str,
        above: Option<Arc<Node>>,
        hash: PlaceHash,
    }

    impl Located for Node {
        fn above(&self) -> Option<&Self> {
            self.above.as_deref()
        }

        fn name(&self) -> &[u8] {
            self.name.as_bytes()
        }

        fn place_hash(&self) -> PlaceHash {
            self.hash
        }
    }

    fn under(above: Option<&Arc<Node>>, name: &'static str) -> Arc<Node> {
        let hash = above.map_or(PlaceHash::TOP, |above| above.hash).join(name.as_bytes());
        Arc::new(Node { name, above: above.cloned(), hash })
    }

    /// Has the hash of everything else of the kind.
    fn colliding(above: Option<&Arc<Node>>, name: &'static str) -> Arc<Node> {
        Arc::new(Node { name, above: above.cloned(), hash: PlaceHash(7) })
    }

    fn path(text: &str) -> Path {
        Path::of(&text.split('/').collect::<Vec<_>>())
    }

    fn is(found: Option<Arc<Node>>, expected: &Arc<Node>) -> bool {
        found.is_some_and(|found| Arc::ptr_eq(&found, expected))
    }

    #[test]
    fn what_runs_is_found_by_its_path_and_from_wherever_is_above() {
        let app = under(None, "app");
        let a = under(Some(&app), "a");
        let b = under(Some(&a), "b");
        let registry = Registry::new();
        [&app, &a, &b].into_iter().for_each(|it| registry.insert(Arc::clone(it)));

        assert!(is(registry.get(&path("app")), &app));
        assert!(is(registry.get(&path("app/a/b")), &b));
        assert!(is(registry.below(&app, "a"), &a));
        assert!(is(registry.below(&app, "a/b"), &b));
        assert!(is(registry.below(&a, "b"), &b));
        assert!(registry.below(&app, "b").is_none());
        assert!(registry.get(&path("app/b/a")).is_none());
        assert!(registry.get(&path("a/b")).is_none(), "the end of a path is not the path");
        assert!(registry.get(&path("app/a/b/b")).is_none());
    }

    #[test]
    fn what_was_started_again_between_is_the_same_place() {
        let app = under(None, "app");
        let (old, new) = (under(Some(&app), "a"), under(Some(&app), "a"));
        let b = under(Some(&new), "b");
        let registry = Registry::new();
        registry.insert(Arc::clone(&b));

        assert!(is(registry.below(&old, "b"), &b));
        assert!(is(registry.in_place_of(&under(Some(&old), "b")), &b));
    }

    #[test]
    fn the_next_incarnation_takes_the_place_and_keeps_nothing_of_the_one_before() {
        let (one, two) = (under(None, "app"), under(None, "app"));
        let registry = Registry::new();
        registry.insert(Arc::clone(&one));
        registry.insert(Arc::clone(&two));

        assert!(is(registry.in_place_of(&one), &two));
        assert_eq!(Arc::strong_count(&one), 1);
        registry.remove(&one);
        assert!(is(registry.in_place_of(&one), &two), "it is not the one that was removed");
        registry.remove(&two);
        assert!(registry.in_place_of(&one).is_none());
    }

    #[test]
    fn of_two_with_one_hash_each_is_found_by_its_names() {
        let app = colliding(None, "app");
        let (a, b) = (colliding(Some(&app), "a"), colliding(Some(&app), "b"));
        let below_a = colliding(Some(&a), "b");
        let registry = Registry::new();
        [&app, &a, &b, &below_a].into_iter().for_each(|it| registry.insert(Arc::clone(it)));

        for it in [&app, &a, &b, &below_a] {
            assert!(is(registry.in_place_of(it), it), "{}", it.name);
        }
        registry.remove(&b);
        assert!(registry.in_place_of(&b).is_none());
        assert!(is(registry.in_place_of(&below_a), &below_a));
    }
}
