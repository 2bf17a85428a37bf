//! What few children have, such as a fallback, or few supervisors, such as callers that wait.
//!
//! Most supervisors have nothing in such a table, and look into it with each child that ends: that is
//! one comparison then, and the table takes 8 bytes. It is made for the first that is put in, and
//! stays. A hash map rather than a tree: the code of each kind of tree is more than a per cent of all
//! that is compiled of this crate, and five times that of a hash map.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;

use foldhash::{HashMap, HashMapExt as _};

/// See the [module](self).
pub(super) struct Few<K, V>(Option<Box<HashMap<K, V>>>);

impl<K: Eq + Hash, V> Few<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|map| map.is_empty())
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.map().insert(key, value)
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.as_ref()?.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.as_mut()?.get_mut(key)
    }

    pub(super) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.map().entry(key).or_default()
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.0.as_mut().filter(|map| !map.is_empty())?.remove(key)
    }

    pub(super) fn clear(&mut self) {
        if let Some(map) = &mut self.0 {
            map.clear();
        }
    }

    fn map(&mut self) -> &mut HashMap<K, V> {
        self.0.get_or_insert_with(|| Box::new(HashMap::new()))
    }
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Few<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().flat_map(|map| &**map)).finish()
    }
}
