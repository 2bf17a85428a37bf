//! What children require of each other, by name rather than by child.
//!
//! A name outlives the child behind it: a child that requires `db` waits for the next `db` after the
//! first was deleted, and starts after a temporary `migrate` has ended cleanly and was removed.
//!
//! # Invariants
//!
//! 1. A waiting child is kept with the first name that it lacks, and with no other name.
//! 2. When a name is met, its waiting children are released. Each may lack a further name.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::arena::Key;

/// A name that children require.
pub(crate) type RequirementId = u32;

#[derive(Debug)]
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
    pub(super) names: Vec<Requirement>,
    links: BTreeMap<Key, ChildLinks>,
    pub(super) released: VecDeque<Key>,
}

impl Requirements {
    /// Returns the name behind which this child is. Creates the name if no child required it so far.
    pub(super) fn provided_by(&mut self, key: Key, met: bool) -> RequirementId {
        let links = self.links.entry(key).or_default();
        if let Some(id) = links.provides {
            return id;
        }
        let id = self.add();
        (self.names[id as usize].met, self.names[id as usize].provider) = (met, Some(key));
        self.links.entry(key).or_default().provides = Some(id);
        id
    }

    pub(super) fn link(
        &mut self,
        key: Key,
        provides: Option<RequirementId>,
        requires: Vec<RequirementId>,
    ) {
        if let Some(id) = provides {
            let name = &mut self.names[id as usize];
            name.provider = Some(key);
            name.met = false;
        }
        if self.links.contains_key(&key) || provides.is_some() || !requires.is_empty() {
            let links = self.links.entry(key).or_default();
            links.provides = provides.or(links.provides);
            links.requires = requires.into();
        }
    }

    /// Returns a chain from one of `keys` to a child that requires `id`, where each child requires the
    /// next. A child that provides `id` and requires the first of the chain would close a circle.
    pub(super) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        let mut from: HashMap<Key, Option<Key>> = HashMap::default();
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
            let required = links.requires.iter().map(|&id| self.names[id as usize].provider);
            for provider in required.flatten() {
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
        self.links.remove(&key);
    }

    /// Sets whether the child meets its name, and releases the children that wait for it.
    pub(super) fn provide(&mut self, key: Key, met: bool) {
        if let Some(id) = self.links.get(&key).and_then(|links| links.provides) {
            self.set_met(id, met);
        }
    }

    /// Returns a new name that no child is behind.
    pub(super) fn add(&mut self) -> RequirementId {
        self.names.push(Requirement { met: false, provider: None, waiters: BTreeSet::new() });
        RequirementId::try_from(self.names.len() - 1).expect("fewer than 2^32 names")
    }

    /// Makes the child require this name, too, if it lacks no other.
    pub(super) fn require_last(&mut self, key: Key, id: RequirementId) {
        let links = self.links.entry(key).or_default();
        links.requires = links.requires.iter().copied().chain([id]).collect();
    }

    /// Makes the child require this name no more.
    pub(super) fn require_no_more(&mut self, key: Key, id: RequirementId) {
        self.names[id as usize].waiters.remove(&key);
        if let Some(links) = self.links.get_mut(&key) {
            links.requires = links.requires.iter().copied().filter(|&it| it != id).collect();
        }
    }

    /// Sets whether a name is met, and releases the children that wait for it.
    pub(super) fn set_met(&mut self, id: RequirementId, met: bool) {
        let name = &mut self.names[id as usize];
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
        let id = requires.iter().copied().find(|&id| !self.names[id as usize].met)?;
        Some((id, self.names[id as usize].provider))
    }

    pub(super) fn wait(&mut self, key: Key, id: RequirementId) {
        self.names[id as usize].waiters.insert(key);
    }

    pub(super) fn stop_waiting(&mut self, key: Key) {
        let Some(links) = self.links.get(&key) else { return };
        for &id in &links.requires {
            self.names[id as usize].waiters.remove(&key);
        }
    }

    /// Releases a child that waited for something else.
    pub(super) fn release(&mut self, key: Key) {
        self.released.push_back(key);
    }

    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.names.iter().map(|name| name.waiters.len()).sum()
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
        let ids = [db, pool, api].map(|key| requirements.provided_by(key, true));
        for (key, id) in [(pool, ids[0]), (api, ids[1]), (web, ids[2])] {
            requirements.link(key, None, vec![id]);
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
        let id = requirements.provided_by(db, false);
        requirements.link(api, None, vec![id]);

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
