//! Which places of a table are taken, as a set of bits.
//!
//! After a peak of many children, few of them may be left, far from each other. The table itself takes
//! long to search then.

const BITS: usize = u64::BITS as usize;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct OccupiedPlaces {
    words: Vec<u64>,
    count: usize,
}

impl OccupiedPlaces {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds a place that is not in the set.
    pub(super) fn insert(&mut self, place: usize) {
        let word = place / BITS;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (place % BITS);
        self.count += 1;
    }

    /// Removes a place that is in the set.
    pub(super) fn remove(&mut self, place: usize) {
        self.words[place / BITS] &= !(1 << (place % BITS));
        self.count -= 1;
    }

    /// Returns the first place in the set from `place` on.
    pub(super) fn first_from(&self, place: usize) -> Option<usize> {
        let first = place / BITS;
        let mut bits = self.words.get(first)? & (u64::MAX << (place % BITS));
        let mut word = first;
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word * BITS + bits.trailing_zeros() as usize)
    }

    /// Returns the last place in the set before `place`.
    pub(super) fn last_before(&self, place: usize) -> Option<usize> {
        let below = |word: &u64| word & !(u64::MAX << (place % BITS));
        let (mut word, mut bits) = match self.words.get(place / BITS) {
            Some(last) => (place / BITS, below(last)),
            None => (self.words.len(), 0),
        };
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.words[word];
        }
        Some(word * BITS + bits.ilog2() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn it_holds_what_a_set_of_numbers_does(steps in prop::collection::vec(0..200_usize, 0..300)) {
            let (mut places, mut model) = (OccupiedPlaces::default(), BTreeSet::new());
            for place in steps {
                if model.insert(place) {
                    places.insert(place);
                } else {
                    model.remove(&place);
                    places.remove(place);
                }
                prop_assert_eq!(places.count(), model.len());
                for from in 0..260 {
                    prop_assert_eq!(places.first_from(from), model.range(from..).next().copied());
                    prop_assert_eq!(places.last_before(from), model.range(..from).last().copied());
                }
            }
        }
    }
}
