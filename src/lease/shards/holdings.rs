//! The shards that a member waits for or has, sorted by what is to become of them.
//!
//! # Invariants
//!
//! 1. A shard is in one of the sets at most: `missing` and `resting` hold shards that the member neither waits for nor
//!    has, and `foreign` and `common` hold shards that it does.
//! 2. A report about a shard costs `O(log n)`. A change of the view costs `O(n log n)`, for `n` shards of this member.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::table::Table;
use super::view::ShardsView;

/// What is known of a shard that the member waits for or has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// It starts as soon as its lease is granted.
    Claimed,
    /// Its lease is granted.
    Granted,
    /// It is being stopped, and its lease released.
    Ending,
}

/// What a shard is to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Its home is the slot of the member.
    Home,
    /// Its home is a free slot.
    Common,
    /// Its home is the slot of another member.
    Foreign,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Holdings {
    all: BTreeMap<usize, Holding>,
    /// Shards to claim: their home is the member's slot.
    missing: BTreeSet<usize>,
    /// Shards that have ended without a decision of this member's, and when they may be claimed again.
    resting: BTreeMap<usize, Instant>,
    foreign: BTreeSet<usize>,
    common: BTreeSet<usize>,
    /// All shards whose home is the member's slot.
    homes: BTreeSet<usize>,
}

impl Holdings {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, shard: usize) -> Option<Holding> {
        self.all.get(&shard).copied()
    }

    /// Sorts the shards anew after a change of the view. `None`: the member has no slot.
    pub(super) fn sort(&mut self, table: &Table, view: Option<&ShardsView>) {
        self.missing.clear();
        self.foreign.clear();
        self.common.clear();
        self.homes.clear();
        let Some(view) = view else { return };
        for &shard in self.all.keys() {
            match class(shard, table, view) {
                Class::Home => continue,
                Class::Common => self.common.insert(shard),
                Class::Foreign => self.foreign.insert(shard),
            };
        }
        self.homes.extend(table.shards_of(view.own(), view.slots()));
        self.missing = self.homes.iter().copied().filter(|shard| self.may_claim(*shard)).collect();
    }

    /// Returns a shard to claim whose home is the member's slot.
    pub(super) fn missing(&self) -> Option<usize> {
        self.missing.first().copied()
    }

    /// Returns whether the member may take a common shard, if its share is this number.
    pub(super) fn lacks_common(&self, share: usize) -> bool {
        self.missing.is_empty()
            && self.all.len() < share
            && self.common.len() + self.homes.len() < share
    }

    /// Returns whether the member is to have a shard that it may not claim yet, because its share is used up.
    pub(super) fn needs_room(&self, share: usize) -> bool {
        let lacks = !self.missing.is_empty() || self.common.len() + self.homes.len() < share;
        lacks && self.all.len() >= share
    }

    /// Returns whether the shard is common, and neither waited for nor resting.
    pub(super) fn may_claim_common(&self, shard: usize, at: (&Table, &ShardsView)) -> bool {
        class(shard, at.0, at.1) == Class::Common && self.may_claim(shard)
    }

    fn may_claim(&self, shard: usize) -> bool {
        !self.all.contains_key(&shard) && !self.resting.contains_key(&shard)
    }

    /// Returns the claims that the member has to take back after a change of the view.
    pub(super) fn foreign_claims(&self) -> Vec<usize> {
        let claimed = |shard: &usize| self.get(*shard) == Some(Holding::Claimed);
        self.foreign.iter().copied().filter(claimed).collect()
    }

    /// Returns whether a claim is of no use while another member has the shard.
    ///
    /// No other member hands over a common shard to this one in particular.
    pub(super) fn is_useless(&self, shard: usize) -> bool {
        !self.homes.contains(&shard)
    }

    /// Returns a shard to hand over, if the share of the member is this number.
    pub(super) fn surplus(&self, share: usize) -> Option<usize> {
        let granted = |shard: &&usize| self.get(**shard) == Some(Holding::Granted);
        let common = (self.common.len() + self.homes.len() > share)
            .then(|| self.common.iter().rev().find(granted))
            .flatten();
        self.foreign.iter().find(granted).or(common).copied()
    }

    /// Notes what is known of a shard that the member waits for or has.
    pub(super) fn set(
        &mut self,
        shard: usize,
        holding: Holding,
        at: Option<(&Table, &ShardsView)>,
    ) {
        if self.all.insert(shard, holding).is_some() {
            return;
        }
        self.missing.remove(&shard);
        match at.map(|(table, view)| class(shard, table, view)) {
            Some(Class::Common) => self.common.insert(shard),
            Some(Class::Foreign) => self.foreign.insert(shard),
            Some(Class::Home) | None => return,
        };
    }

    /// Removes a shard. `rest`: it isn't claimed again before then.
    pub(super) fn remove(
        &mut self,
        shard: usize,
        rest: Option<Instant>,
        at: Option<(&Table, &ShardsView)>,
    ) {
        self.all.remove(&shard);
        self.foreign.remove(&shard);
        self.common.remove(&shard);
        self.missing.remove(&shard);
        if let Some(until) = rest {
            self.resting.insert(shard, until);
        } else if at.is_some_and(|(table, view)| class(shard, table, view) == Class::Home) {
            self.missing.insert(shard);
        }
    }

    /// Lets shards be claimed again that have rested. Returns when the next one has.
    pub(super) fn wake(
        &mut self,
        at: Option<(&Table, &ShardsView)>,
        now: Instant,
    ) -> Option<Instant> {
        let over = self.resting.iter().filter(|(_, until)| **until <= now);
        let over: Vec<_> = over.map(|(shard, _)| *shard).collect();
        for shard in over {
            self.resting.remove(&shard);
            if at.is_some_and(|(table, view)| class(shard, table, view) == Class::Home) {
                self.missing.insert(shard);
            }
        }
        self.resting.values().min().copied()
    }
}

fn class(shard: usize, table: &Table, view: &ShardsView) -> Class {
    let home = table.home(shard, view.slots());
    if home == view.own() {
        Class::Home
    } else if view.is_taken(home) {
        Class::Foreign
    } else {
        Class::Common
    }
}
