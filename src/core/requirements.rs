//! What children require: siblings, by name rather than by child, and their leases.
//!
//! A name outlives the child behind it: a child that requires `db` waits for the next `db` after the
//! first was deleted, and starts after a temporary `migrate` has ended cleanly and was removed.
//! The driver numbers the names.
//!
//! # Invariants
//!
//! 1. A waiting child is kept with the first name that it lacks, and with no other name.
//! 2. When a name is met, its waiting children are released. Each may lack a further name.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::Key;

/// What a child requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RequirementId {
    /// A sibling, by the number of its name.
    Name(u32),
    /// The lease of this child.
    Lease(Key),
}

/// What a child provides for its siblings and requires of them.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Links {
    /// The number of its name, if siblings require it.
    pub(crate) provides: Option<RequirementId>,
    /// The required names, each with the child behind it.
    pub(crate) requires: Vec<(RequirementId, Key)>,
}

impl Links {
    /// Whether the child provides nothing and requires nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.provides.is_none() && self.requires.is_empty()
    }
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Requirement {
    pub(super) met: bool,
    pub(super) provider: Option<Key>,
    pub(super) waiters: BTreeSet<Key>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct ChildLinks {
    provides: Option<RequirementId>,
    requires: Box<[RequirementId]>,
}

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Requirements {
    pub(super) names: FxHashMap<RequirementId, Requirement>,
    links: FxHashMap<Key, ChildLinks>,
    pub(super) released: VecDeque<Key>,
}

impl Requirements {
    /// Sets what a child provides and requires, besides its lease. `is_met`: whether a sibling is met.
    pub(super) fn link(
        &mut self,
        key: Key,
        Links { provides, requires }: Links,
        is_met: impl Fn(Key) -> bool,
    ) {
        if let Some(id) = provides {
            let name = self.names.entry(id).or_default();
            (name.provider, name.met) = (Some(key), false);
        }
        for &(id, provider) in &requires {
            // The first child that requires a name makes it one.
            self.names.entry(id).or_insert_with(|| {
                self.links.entry(provider).or_default().provides = Some(id);
                let (provider, met) = (Some(provider), is_met(provider));
                Requirement { met, provider, waiters: BTreeSet::new() }
            });
        }
        if self.links.contains_key(&key) || provides.is_some() || !requires.is_empty() {
            let links = self.links.entry(key).or_default();
            links.provides = provides.or(links.provides);
            let lease =
                links.requires.iter().copied().filter(|&id| id == RequirementId::Lease(key));
            links.requires = requires.into_iter().map(|(id, _)| id).chain(lease).collect();
        }
    }

    /// Returns a chain from one of `keys` to a child that requires `id`, where each child requires the
    /// next. A child that provides `id` and requires the first of the chain would close a circle.
    pub(super) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        let mut from: FxHashMap<Key, Option<Key>> = FxHashMap::default();
        for &key in keys {
            from.insert(key, None);
        }
        let mut open = keys.to_vec();
        while let Some(key) = open.pop() {
            let Some(links) = self.links.get(&key) else { continue };
            if links.requires.contains(&id) {
                let mut chain = vec![key];
                while let Some(&Some(key)) = chain.last().and_then(|last| from.get(last)) {
                    chain.push(key);
                }
                chain.reverse();
                return Some(chain);
            }
            let required = links.requires.iter().filter_map(|id| self.names.get(id)?.provider);
            for provider in required {
                if let Entry::Vacant(entry) = from.entry(provider) {
                    entry.insert(Some(key));
                    open.push(provider);
                }
            }
        }
        None
    }

    pub(super) fn unlink(&mut self, key: Key) {
        self.stop_waiting(key);
        if self.links.remove(&key).is_some() {
            self.names.remove(&RequirementId::Lease(key));
        }
    }

    /// Sets whether the child meets its name, and releases the children that wait for it.
    pub(super) fn provide(&mut self, key: Key, met: bool) {
        if let Some(id) = self.links.get(&key).and_then(|links| links.provides) {
            self.set_met(id, met);
        }
    }

    /// Makes the child require its lease, after everything else.
    pub(super) fn require_lease(&mut self, key: Key) {
        let id = RequirementId::Lease(key);
        self.names.insert(id, Requirement::default());
        let links = self.links.entry(key).or_default();
        links.requires = links.requires.iter().copied().chain([id]).collect();
    }

    /// Makes the child require no lease any more.
    pub(super) fn require_no_lease(&mut self, key: Key) {
        let id = RequirementId::Lease(key);
        self.names.remove(&id);
        if let Some(links) = self.links.get_mut(&key) {
            links.requires = links.requires.iter().copied().filter(|&it| it != id).collect();
        }
    }

    /// Sets whether a requirement is met, and releases the children that wait for it.
    pub(super) fn set_met(&mut self, id: RequirementId, met: bool) {
        let Some(name) = self.names.get_mut(&id) else { return };
        name.met = met;
        if met {
            self.released.extend(std::mem::take(&mut name.waiters));
        }
    }

    /// Whether children may require this one.
    pub(super) fn is_required(&self, key: Key) -> bool {
        self.links.get(&key).is_some_and(|links| links.provides.is_some())
    }

    /// Returns the first name that the child lacks, and the child behind it.
    pub(super) fn lacks(&self, key: Key) -> Option<(RequirementId, Option<Key>)> {
        let requires = &self.links.get(&key)?.requires;
        let mut names = requires.iter().filter_map(|&id| Some((id, self.names.get(&id)?)));
        names.find(|(_, name)| !name.met).map(|(id, name)| (id, name.provider))
    }

    pub(super) fn wait(&mut self, key: Key, id: RequirementId) {
        if let Some(name) = self.names.get_mut(&id) {
            name.waiters.insert(key);
        }
    }

    pub(super) fn stop_waiting(&mut self, key: Key) {
        let Some(links) = self.links.get(&key) else { return };
        for id in &links.requires {
            if let Some(name) = self.names.get_mut(id) {
                name.waiters.remove(&key);
            }
        }
    }

    /// Releases a child that waited for something else.
    pub(super) fn release(&mut self, key: Key) {
        self.released.push_back(key);
    }

    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.names.values().map(|name| name.waiters.len()).sum()
    }

    /// Takes a child whose requirement was met while it waited. It may lack a further name.
    pub(super) fn released(&mut self) -> Option<Key> {
        self.released.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::Arena;
    use super::*;

    #[test]
    fn a_chain_leads_to_a_child_that_requires_the_name() {
        let mut arena = Arena::default();
        let [db, pool, api, web] = ["db", "pool", "api", "web"].map(|name| arena.insert(name));
        let mut requirements = Requirements::default();
        let ids = [0, 1, 2].map(RequirementId::Name);
        for (key, required) in [(pool, (ids[0], db)), (api, (ids[1], pool)), (web, (ids[2], api))] {
            let links = Links { provides: None, requires: vec![required] };
            requirements.link(key, links, |_| true);
        }

        assert_eq!(requirements.chain_to(ids[0], &[web]), Some(vec![web, api, pool]));
        assert_eq!(requirements.chain_to(ids[0], &[pool]), Some(vec![pool]));
        assert_eq!(requirements.chain_to(ids[2], &[db, pool]), None);
    }

    #[test]
    fn a_waiting_child_is_kept_once_and_until_it_is_removed() {
        let mut arena = Arena::default();
        let [db, api] = ["db", "api"].map(|name| arena.insert(name));
        let mut requirements = Requirements::default();
        let id = RequirementId::Name(0);
        let links = Links { provides: None, requires: vec![(id, db)] };
        requirements.link(api, links, |_| false);

        for _ in 0..3 {
            requirements.wait(api, id);
        }
        assert_eq!(requirements.waiting(), 1);
        requirements.unlink(api);
        assert_eq!(requirements.waiting(), 0);
        requirements.provide(db, true);
        assert_eq!(requirements.released(), None);
    }
}
