//! The leases that children need in order to run.
//!
//! A lease is a requirement that no sibling provides: it is met while the lease is granted. So a child waits for its
//! lease as it waits for a sibling, and its start is passed as that of any child whose requirement may never be met.
//!
//! Knows which leases are sought and which are granted. Doesn't know their engines, tokens or times.

use std::collections::BTreeMap;

use super::arena::Key;
use super::requirements::RequirementId;

/// The leases of one supervisor's children.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Leases {
    needed: BTreeMap<Key, LeaseState>,
    /// Children whose state has changed since it was checked whether they keep their lease.
    unchecked: Vec<Key>,
}

/// What is known of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaseState {
    /// It isn't asked for.
    Idle,
    /// It is asked for.
    Sought,
    Granted,
}

impl Leases {
    /// Whether no child needs a lease.
    pub(super) fn is_empty(&self) -> bool {
        self.needed.is_empty()
    }

    pub(super) fn state(&self, key: Key) -> Option<LeaseState> {
        self.needed.get(&key).copied()
    }

    /// Returns the requirement that is met while the child's lease is granted.
    pub(super) fn requirement(&self, key: Key) -> Option<RequirementId> {
        self.needed.contains_key(&key).then_some(RequirementId::Lease(key))
    }

    /// Adds the lease of a child.
    pub(super) fn insert(&mut self, key: Key) {
        self.needed.insert(key, LeaseState::Idle);
    }

    /// Removes the lease of a child.
    pub(super) fn remove(&mut self, key: Key) {
        self.needed.remove(&key);
    }

    /// Changes what is known of the child's lease. Returns its requirement.
    pub(super) fn set(&mut self, key: Key, state: LeaseState) -> Option<RequirementId> {
        *self.needed.get_mut(&key)? = state;
        Some(RequirementId::Lease(key))
    }

    /// Takes the children that may keep their lease no longer.
    pub(super) fn take_unchecked(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.unchecked)
    }

    /// Notes that the child may keep its lease no longer.
    pub(super) fn note(&mut self, key: Key) {
        if self.needed.contains_key(&key) {
            self.unchecked.push(key);
        }
    }
}
