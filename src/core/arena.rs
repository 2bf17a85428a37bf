//! Where a machine keeps its children: a vector with holes that are used again, the first one first,
//! so that it shrinks when children go.
//!
//! A [`Key`] names a child for good: the place may be used again, the generation is not, so that a
//! key which outlived its child finds nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Names a child of one supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key that an arena gives to its child with this number, counted from 0, if none has gone.
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
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Children by key. Finding one is O(1), adding and removing O(log n).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Arena<T> {
    places: Vec<Place<T>>,
    /// Empty places, and some that are no more.
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
    /// Makes room for so many children, and no more.
    pub(crate) fn reserve(&mut self, children: usize) {
        self.places.reserve_exact(children);
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let generation = self.next;
        self.next = self.next.wrapping_add(1);
        let place = Place { generation, value: Some(value) };
        if let Some(Reverse(index)) = self.free.pop()
            && let Some(empty) = self.places.get_mut(index as usize)
        {
            *empty = place;
            return Key { index, generation };
        }
        // The smallest is no more, and so are all the others.
        self.free.clear();
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 children at a time");
        self.places.push(place);
        Key { index, generation }
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
        let place = self.places.get(key.index())?;
        place.value.as_ref().filter(|_| place.generation == key.generation)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index())?;
        place.value.as_mut().filter(|_| place.generation == key.generation)
    }

    /// The number of places, taken or not: the bound of [`at`](Self::at).
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// The child at a place, if there is one.
    pub(crate) fn at(&self, index: usize) -> Option<Key> {
        let place = self.places.get(index)?;
        let index = u32::try_from(index).ok()?;
        place.value.as_ref().map(|_| Key { index, generation: place.generation })
    }
}

/// Gives up the empty places at the end of a table, and its room once most of that is unused.
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
    fn a_key_that_outlived_its_child_finds_nothing() {
        let mut arena = Arena::default();
        let old = arena.insert('a');
        assert_eq!(arena.remove(old), Some('a'));
        let new = arena.insert('b');

        assert_eq!(new.index(), old.index(), "the place is used again");
        assert_eq!(arena.get(old), None);
        assert_eq!(arena.remove(old), None);
        assert_eq!(arena.get(new), Some(&'b'));
        assert_eq!((arena.at(0), arena.at(1)), (Some(new), None));
    }

    #[test]
    fn room_is_made_for_those_who_were_announced_and_for_no_others() {
        let mut arena = Arena::<char>::default();
        arena.reserve(3);
        assert_eq!(arena.places.capacity(), 3);
    }

    #[test]
    fn as_long_as_none_has_gone_a_key_is_known_by_its_number() {
        let mut arena = Arena::default();
        let keys: Vec<_> = (0..100).map(|number| (number, arena.insert(number))).collect();
        assert!(keys.into_iter().all(|(number, key)| key == Key::of_number(number)));
    }

    #[test]
    fn a_table_gives_up_its_empty_end_and_half_of_its_room_once_a_quarter_is_used() {
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
    fn it_shrinks_when_children_go_and_fills_holes_from_the_front() {
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
