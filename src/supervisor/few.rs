//! What only few children have, such as a fallback, by child.
//!
//! Most supervisors have no such child, and look for it with each child that ends; that is one
//! comparison then. A hash map rather than a tree: the code of each kind of tree is more than a per
//! cent of all that is compiled of this crate, and five times that of a hash map.

use std::fmt;

use foldhash::HashMap;

use crate::machine::Key;

/// See the [module](self).
pub(super) struct Few<V>(HashMap<Key, V>);

impl<V> Few<V> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, key: Key, value: V) {
        self.0.insert(key, value);
    }

    pub(super) fn get(&self, key: Key) -> Option<&V> {
        self.0.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut V> {
        self.0.get_mut(&key)
    }

    pub(super) fn or_default(&mut self, key: Key) -> &mut V
    where
        V: Default,
    {
        self.0.entry(key).or_default()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<V> {
        if self.0.is_empty() { None } else { self.0.remove(&key) }
    }
}

impl<V> Default for Few<V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<V: fmt::Debug> fmt::Debug for Few<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}
