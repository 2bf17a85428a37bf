//! Storage of a supervisor's children: a vector whose empty places are used again.
//!
//! # Invariants
//!
//! 1. The first empty place is used first, and empty places at the end are given up, so that the
//!    memory shrinks when children are removed.
//! 2. A [`Key`] identifies one child for good. A place is used again, a generation is not, so a key
//!    finds nothing once its child is removed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Identifies a child of one supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key of the child that was added with this number, from 0, if none was removed before.
    pub(crate) fn of_number(number: u32) -> Self {
        Self { index: number, generation: number }
    }

    /// The child's place, for tables beside the arena.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct ArenaEntry<T> {
    generation: u32,
    value: Option<T>,
}

/// Children by key. Finding one is O(1), adding and removing O(log n).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Arena<T> {
    places: Vec<ArenaEntry<T>>,
    /// Empty places, and places that were given up.
    free: BinaryHeap<Reverse<u32>>,
    /// The generation of the next child.
    next: u32,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: BinaryHeap::new(), next: 0 }
    }
}

impl<T> Arena<T> {
    /// Reserves memory for exactly this many more children.
    pub(crate) fn reserve(&mut self, children: usize) {
        self.places.reserve_exact(children);
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        self.next = self.next.wrapping_add(1);
        let place = ArenaEntry { generation: key.generation, value: Some(value) };
        if let Some(empty) = self.places.get_mut(key.index()) {
            self.free.pop();
            *empty = place;
        } else {
            self.free.clear();
            self.places.push(place);
        }
        key
    }

    /// Returns the key that the next child gets.
    pub(crate) fn next_key(&self) -> Key {
        let places = self.places.len();
        let empty = self.free.peek().map(|&Reverse(index)| index);
        // If the smallest was given up, all were.
        let empty = empty.filter(|&index| (index as usize) < places);
        let index = empty.or_else(|| u32::try_from(places).ok());
        let index = index.expect("fewer than 2^32 children at a time");
        Key { index, generation: self.next }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        self.free.push(Reverse(key.index));
        trim(&mut self.places, |place| place.value.is_none());
        Some(value)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        if place.generation == key.generation { place.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    /// Returns the number of places, empty or not: the bound of [`at`](Self::at).
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns the child at a place, if there is one.
    pub(crate) fn at(&self, index: usize) -> Option<Key> {
        let place = self.places.get(index)?;
        let index = u32::try_from(index).ok()?;
        place.value.as_ref().map(|_| Key { index, generation: place.generation })
    }
}

/// Removes the empty places at the end of a table, and shrinks it once most of its memory is unused.
pub(crate) fn trim<T>(places: &mut Vec<T>, is_empty: impl Fn(&T) -> bool) {
    while places.last().is_some_and(&is_empty) {
        places.pop();
    }
    if places.len() < places.capacity() / 4 {
        places.shrink_to(places.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_nothing_once_its_child_is_removed() {
        let mut arena = Arena::default();
        let old = arena.insert('a');
        assert_eq!(arena.remove(old), Some('a'));
        let next = arena.next_key();
        let new = arena.insert('b');
        assert_eq!(new, next);

        assert_eq!(new.index(), old.index(), "the place is used again");
        assert_eq!(arena.get(old), None);
        assert_eq!(arena.remove(old), None);
        assert_eq!(arena.get(new), Some(&'b'));
        assert_eq!((arena.at(0), arena.at(1)), (Some(new), None));
    }

    #[test]
    fn memory_is_reserved_for_the_announced_children_only() {
        let mut arena = Arena::<char>::default();
        arena.reserve(3);
        assert_eq!(arena.places.capacity(), 3);
    }

    #[test]
    fn a_key_follows_from_its_number_while_no_child_was_removed() {
        let mut arena = Arena::default();
        let keys: Vec<_> = (0..100).map(|number| (number, arena.insert(number))).collect();
        assert!(keys.into_iter().all(|(number, key)| key == Key::of_number(number)));
    }

    #[test]
    fn a_table_drops_its_empty_end_and_halves_its_memory_below_a_quarter() {
        let table = |used: usize| {
            let mut places = Vec::with_capacity(100);
            places.extend((0..100).map(|place| place < used));
            trim(&mut places, |used| !used);
            assert_eq!(places.len(), used);
            places.capacity()
        };
        assert_eq!([100, 26, 25].map(table), [100; 3]);
        assert_eq!([24, 1, 0].map(table), [48, 2, 0]);
    }

    #[test]
    fn an_arena_shrinks_when_children_are_removed_and_fills_gaps_from_the_front() {
        let mut arena = Arena::default();
        let keys: Vec<_> = (0..1000).map(|child| arena.insert(child)).collect();
        for &key in &keys[1..999] {
            arena.remove(key);
        }
        assert_eq!(arena.places(), 1000, "the last one is still there");
        assert_eq!(arena.insert(0).index(), 1);

        arena.remove(keys[999]);
        assert_eq!(arena.places(), 2);
        assert_eq!(arena.insert(0).index(), 2);
        assert_eq!(arena.insert(0).index(), 3);
        assert_eq!(arena.get(keys[3]), None, "the place was given up in between");
    }
}
