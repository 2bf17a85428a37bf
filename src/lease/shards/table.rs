//! The home of each shard: the slot that it belongs to, for any number of slots.
//!
//! The table is a function of the number of shards and of slots, and of nothing else. So members that see the same slots
//! agree about all homes without a message to each other.
//!
//! # Invariants
//!
//! 1. With `n` slots, slot `k` is the home of `ceil((shards - k) / n)` shards. So two slots differ by at most one.
//! 2. One slot more takes shards from the others, and no shard moves between two others.
//! 3. Homes never change between versions of this crate, because members of different versions have to agree.

use std::fmt;

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Table {
    shards: usize,
    /// The shards of each slot when it was the last one. With more slots, it has the first of these.
    slots: Vec<Vec<usize>>,
    /// The slots that have been the home of each shard, in ascending order.
    homes: Vec<Vec<usize>>,
}

impl Table {
    pub(super) fn new(shards: usize) -> Self {
        let mut table = Self { shards, slots: Vec::new(), homes: vec![Vec::new(); shards] };
        table.grow(1);
        table
    }

    pub(super) fn shards(&self) -> usize {
        self.shards
    }

    /// Returns how many slots the table knows.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Adds slots until there are this many.
    pub(super) fn grow(&mut self, slots: usize) {
        for added in self.slots.len()..slots {
            let mut taken = Vec::new();
            for slot in 0..added {
                let before = share(self.shards, slot, added);
                let left = share(self.shards, slot, added + 1);
                taken.extend(self.slots[slot][left..before].iter().rev());
            }
            if added == 0 {
                taken.extend(0..self.shards);
            }
            for &shard in &taken {
                self.homes[shard].push(added);
            }
            self.slots.push(taken);
        }
    }

    /// Returns the shards whose home the slot is, if there are this many slots.
    pub(super) fn shards_of(&self, slot: usize, slots: usize) -> &[usize] {
        let all = self.slots.get(slot).map_or(&[][..], Vec::as_slice);
        &all[..share(self.shards, slot, slots).min(all.len())]
    }

    /// Returns the home of the shard, if there are this many slots.
    pub(super) fn home(&self, shard: usize, slots: usize) -> usize {
        let homes = self.homes.get(shard).map_or(&[][..], Vec::as_slice);
        let known = homes.partition_point(|slot| *slot < slots);
        known.checked_sub(1).map_or(0, |last| homes[last])
    }
}

/// Prints only the sizes, because the content follows from them.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("shards", &self.shards)
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}

/// Returns the share of one of `among`: `number` counts from 0, and the first ones get the remainder.
pub(super) fn share(shards: usize, number: usize, among: usize) -> usize {
    shards.saturating_sub(number).div_ceil(among.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_one_home_and_homes_are_balanced() {
        for shards in [0, 1, 7, 100, 1_000] {
            let mut table = Table::new(shards);
            table.grow(40);
            for slots in 1..=40 {
                let mut seen = vec![0; shards];
                for slot in 0..slots {
                    let own = table.shards_of(slot, slots);
                    assert_eq!(own.len(), share(shards, slot, slots));
                    for &shard in own {
                        assert_eq!(table.home(shard, slots), slot);
                        seen[shard] += 1;
                    }
                }
                assert!(seen.iter().all(|seen| *seen == 1), "{shards} shards, {slots} slots");
            }
        }
    }

    #[test]
    fn one_slot_more_takes_its_share_and_moves_nothing_else() {
        let mut table = Table::new(1_000);
        table.grow(60);
        for slots in 1..60 {
            let moved: Vec<_> = (0..1_000)
                .filter(|shard| table.home(*shard, slots) != table.home(*shard, slots + 1))
                .collect();
            assert_eq!(moved.len(), 1_000 / (slots + 1));
            assert!(moved.iter().all(|shard| table.home(*shard, slots + 1) == slots));
        }
    }

    #[test]
    fn homes_never_change_between_versions() {
        let mut table = Table::new(10);
        table.grow(4);
        let homes = |slots| (0..10).map(|shard| table.home(shard, slots)).collect::<Vec<_>>();
        assert_eq!(homes(1), [0; 10]);
        assert_eq!(homes(2), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(homes(3), [0, 0, 0, 0, 2, 2, 2, 1, 1, 1]);
    }
}
