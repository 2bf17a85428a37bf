//! The order of the children of one supervisor: who is at a place, and who is next to it.
//!
//! Places are numbered as children are added and never used again, so the taken ones lie close
//! together. They are kept in blocks of 16, each with a bit for every place that is taken, and as
//! long as no block has gone, its number says where it is. A block goes when its last child does.
//!
//! Kept one by one in a tree, looking for the next child was a ninth of an ordered stop; in a hash
//! map, one of a million children was started in 40 ms, because all were hashed anew.
//!
//! Most supervisors have a few children, and keep them. As long as that is so, there are no blocks:
//! how many have been added says who is where. That saves 200 bytes, two allocations, and a
//! fourteenth of what it takes to start a supervisor and to stop it.
//!
//! # Invariants
//!
//! 1. Blocks are in order of their numbers, and none is empty.
//! 2. There are no blocks while `plain` is above 0.

use super::Key;
use super::state::Pos;

const BLOCK: usize = 16;

/// So many children are put into blocks when one of them goes.
const FEW: u32 = 64;

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Order {
    /// So many children are at the first places, and none has ever gone.
    plain: u32,
    blocks: Vec<(u64, Box<Block>)>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Block {
    /// A bit for each place that is taken. At the others is whatever was put there before.
    taken: u16,
    keys: [Key; BLOCK],
}

impl Order {
    pub(crate) fn insert(&mut self, pos: Pos, key: Key) {
        let next = self.plain;
        let plain = pos == u64::from(next) && next < FEW && key == Key::of_number(next);
        if plain && self.blocks.is_empty() {
            self.plain += 1;
            return;
        }
        self.unfold();
        self.put(pos, key);
    }

    fn put(&mut self, pos: Pos, key: Key) {
        let (number, place) = split(pos);
        let index = self.find(number).unwrap_or_else(|index| {
            let empty = Box::new(Block { taken: 0, keys: [key; BLOCK] });
            self.blocks.insert(index, (number, empty));
            index
        });
        let block = &mut self.blocks[index].1;
        block.taken |= 1 << place;
        block.keys[place as usize] = key;
    }

    /// Puts those into blocks of whom so far only the number was known.
    fn unfold(&mut self) {
        for number in 0..std::mem::take(&mut self.plain) {
            self.put(u64::from(number), Key::of_number(number));
        }
    }

    pub(crate) fn remove(&mut self, pos: Pos) {
        self.unfold();
        let (number, place) = split(pos);
        let Ok(index) = self.find(number) else { return };
        let block = &mut self.blocks[index].1;
        block.taken &= !(1 << place);
        if block.taken == 0 {
            self.blocks.remove(index);
        }
    }

    /// The child at a place.
    pub(crate) fn get(&self, pos: Pos) -> Option<Key> {
        if self.plain > 0 {
            return self.plain_at(pos).map(|(_, key)| key);
        }
        let (number, place) = split(pos);
        let (_, block) = &self.blocks[self.find(number).ok()?];
        (block.taken >> place & 1 == 1).then_some(block.keys[place as usize])
    }

    /// The first child at `from` or behind it.
    pub(super) fn first_from(&self, from: Pos) -> Option<(Pos, Key)> {
        if self.plain > 0 {
            return self.plain_at(from);
        }
        let (number, place) = split(from);
        let behind = match self.find(number) {
            Ok(index) => {
                let left = self.blocks[index].1.taken >> place;
                if left != 0 {
                    return Some(self.at(index, place + left.trailing_zeros()));
                }
                index + 1
            }
            Err(index) => index,
        };
        let (_, block) = self.blocks.get(behind)?;
        Some(self.at(behind, block.taken.trailing_zeros()))
    }

    /// The last child before `to`.
    pub(super) fn last_before(&self, to: Pos) -> Option<(Pos, Key)> {
        let last = to.checked_sub(1)?;
        if self.plain > 0 {
            return self.plain_at(last.min(u64::from(self.plain) - 1));
        }
        let (number, place) = split(last);
        let end = match self.find(number) {
            Ok(index) => {
                let left = self.blocks[index].1.taken << (BLOCK as u32 - 1 - place);
                if left != 0 {
                    return Some(self.at(index, place - left.leading_zeros()));
                }
                index
            }
            Err(index) => index,
        };
        let before = end.checked_sub(1)?;
        Some(self.at(before, BLOCK as u32 - 1 - self.blocks[before].1.taken.leading_zeros()))
    }

    fn plain_at(&self, pos: Pos) -> Option<(Pos, Key)> {
        let number = u32::try_from(pos).ok().filter(|&number| number < self.plain)?;
        Some((pos, Key::of_number(number)))
    }

    /// Where the block of this number is, or would be.
    fn find(&self, number: u64) -> Result<usize, usize> {
        let (first, _) = self.blocks.first().ok_or(0_usize)?;
        let guess = usize::try_from(number.wrapping_sub(*first)).unwrap_or(usize::MAX);
        match self.blocks.get(guess) {
            Some(&(there, _)) if there == number => Ok(guess),
            _ => self.blocks.binary_search_by_key(&number, |&(there, _)| there),
        }
    }

    fn at(&self, index: usize, place: u32) -> (Pos, Key) {
        let (number, block) = &self.blocks[index];
        (number * BLOCK as u64 + u64::from(place), block.keys[place as usize])
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> impl Iterator<Item = Pos> {
        let next = |&(pos, _): &(Pos, Key)| self.first_from(pos + 1);
        std::iter::successors(self.first_from(0), next).map(|(pos, _)| pos)
    }
}

fn split(pos: Pos) -> (u64, u32) {
    (pos / BLOCK as u64, (pos % BLOCK as u64) as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::arena::Arena;
    use super::*;

    proptest! {
        /// A plain ordered map knows the same, around the edges of blocks above all.
        #[test]
        fn it_is_as_an_ordered_map(
            gaps in prop_oneof![
                proptest::collection::vec(Just(0_u64), 1..100),
                proptest::collection::vec(prop_oneof![0..3_u64, 12..40_u64], 1..200),
            ],
            removed in prop_oneof![
                1 => Just(Vec::new()),
                4 => proptest::collection::vec(any::<proptest::sample::Index>(), 0..200),
            ],
            asked in proptest::collection::vec(0..9_000_u64, 20),
        ) {
            let mut arena = Arena::default();
            let (mut order, mut map) = (Order::default(), BTreeMap::new());
            let mut pos = 0;
            for gap in gaps {
                pos += gap;
                let key = arena.insert(());
                order.insert(pos, key);
                map.insert(pos, key);
                pos += 1;
            }
            let places: Vec<_> = map.keys().copied().collect();
            for index in removed {
                let pos = *index.get(&places);
                order.remove(pos);
                map.remove(&pos);
            }
            for pos in asked.into_iter().chain(places.iter().flat_map(|&pos| [pos, pos + 1])) {
                prop_assert_eq!(order.get(pos), map.get(&pos).copied());
                let from = map.range(pos..).next().map(|(&pos, &key)| (pos, key));
                prop_assert_eq!(order.first_from(pos), from);
                let before = map.range(..pos).next_back().map(|(&pos, &key)| (pos, key));
                prop_assert_eq!(order.last_before(pos), before);
            }
            prop_assert!(order.places().eq(map.keys().copied()));
            prop_assert!(order.blocks.len() <= map.len());
        }
    }

    #[test]
    fn one_whose_key_is_another_than_its_place_says_is_found_as_well() {
        let mut arena = Arena::default();
        let gone = arena.insert(());
        arena.remove(gone);
        let (mut order, key) = (Order::default(), arena.insert(()));
        order.insert(0, key);
        assert_ne!(key, Key::of_number(0));
        assert_eq!(order.get(0), Some(key));
    }

    #[test]
    fn it_ends_at_the_last_place_there_could_be() {
        let order = Order::default();
        assert_eq!((order.first_from(Pos::MAX), order.last_before(0)), (None, None));
    }
}
