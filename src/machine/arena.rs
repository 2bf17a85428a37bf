//! Where a machine keeps its children: a vector with holes that are used again.
//!
//! A [`Key`] names a child for good: the place may be used again, the generation is not, so that a
//! key which outlived its child finds nothing.

/// Names a child of one supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The child's place, for tables beside the arena.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Children by key, all operations O(1).
#[derive(Debug)]
pub(crate) struct Arena<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// What one place takes, in bytes.
    #[cfg(test)]
    pub(crate) const PLACE: usize = size_of::<Place<T>>();

    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.generation = place.generation.wrapping_add(1);
            place.value = Some(value);
            return Key { index, generation: place.generation };
        }
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 children at a time");
        self.places.push(Place { generation: 0, value: Some(value) });
        Key { index, generation: 0 }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        self.free.push(key.index);
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
}
