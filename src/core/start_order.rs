//! The children of an ordered supervisor, in their start order.
//!
//! Knows which child is at which position, and not what happens to it. A sorted vector instead of a
//! map, because a walk asks for the neighbour of each child. perf: budgets row "stop"
//!
//! # Invariants
//!
//! 1. Positions are in ascending order, and are never used again.
//! 2. Beyond [`SMALL`] places, at most half of them are empty. So a walk passes fewer empty places than
//!    children, and removing a child takes O(log n), amortised.

use super::arena::Key;
use super::child::Position;

/// Up to this many places, empty ones are kept.
const SMALL: usize = 32;

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct StartOrder {
    /// A child that was removed leaves its place empty.
    places: Vec<(Position, Option<Key>)>,
    children: usize,
}

impl StartOrder {
    pub(super) fn reserve(&mut self, children: usize) {
        self.places.reserve_exact(children);
    }

    /// Adds a child behind all others.
    pub(super) fn push(&mut self, pos: Position, key: Key) {
        debug_assert!(self.places.last().is_none_or(|&(last, _)| last < pos));
        self.places.push((pos, Some(key)));
        self.children += 1;
    }

    pub(super) fn remove(&mut self, pos: Position) {
        let Ok(place) = self.places.binary_search_by_key(&pos, |&(pos, _)| pos) else { return };
        self.children -= usize::from(self.places[place].1.take().is_some());
        if self.places.len() > SMALL && self.places.len() > 2 * self.children {
            self.places.retain(|(_, key)| key.is_some());
            self.places.shrink_to(2 * self.children);
        }
    }

    /// Returns the first child at or behind `pos`.
    pub(super) fn first_from(&self, pos: Position) -> Option<(Position, Key)> {
        let place = self.place(pos);
        self.places[place..].iter().find_map(child)
    }

    /// Returns the last child before `pos`.
    pub(super) fn last_before(&self, pos: Position) -> Option<(Position, Key)> {
        let place = self.place(pos);
        self.places[..place].iter().rev().find_map(child)
    }

    /// Returns the number of places before `pos`.
    fn place(&self, pos: Position) -> usize {
        self.places.partition_point(|&(other, _)| other < pos)
    }

    #[cfg(test)]
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        self.places.iter().filter_map(child).map(|(pos, _)| pos)
    }
}

fn child(&(pos, key): &(Position, Option<Key>)) -> Option<(Position, Key)> {
    Some((pos, key?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn a_start_order_behaves_like_a_sorted_map(
            steps in proptest::collection::vec((any::<bool>(), 0..200_u64), 0..300),
        ) {
            let (mut order, mut map) = (StartOrder::default(), BTreeMap::new());
            for (next, (adds, at)) in (0..).zip(steps) {
                if adds {
                    let key = Key::of_number(next);
                    order.push(next.into(), key);
                    map.insert(Position::from(next), key);
                } else {
                    order.remove(at);
                    map.remove(&at);
                }
                let pair = |(&pos, &key): (&Position, &Key)| (pos, key);
                prop_assert_eq!(order.first_from(at), map.range(at..).next().map(pair));
                prop_assert_eq!(order.last_before(at), map.range(..at).next_back().map(pair));
                prop_assert!(order.positions().eq(map.keys().copied()));
                prop_assert!(order.places.len() <= SMALL.max(2 * map.len()));
            }
        }
    }

    #[test]
    fn an_order_shrinks_when_its_children_are_removed() {
        let mut order = StartOrder::default();
        (0..1000).for_each(|number| order.push(number.into(), Key::of_number(number)));
        (0..990).for_each(|pos| order.remove(pos));
        assert_eq!(order.first_from(0), Some((990, Key::of_number(990))));
        assert!(order.places.capacity() <= 2 * SMALL, "{}", order.places.capacity());
    }
}
