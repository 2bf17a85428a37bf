//! Deadlines: at most one for each key, the nearest found in O(1), the next in O(log n).
//!
//! Kept apart from the children, so that a child without a deadline pays nothing for having none.
//! The nearest one is kept outside the trees: a supervisor that stops its children in order has one
//! deadline at a time and sets it anew for each, which is the price of two comparisons there, and a
//! fifth of the whole stop in a tree. Most supervisors never have a second one, and no trees.
//!
//! # Invariants
//!
//! 1. `nearest` is none only if there are no deadlines, and none in the trees is before it.
//! 2. `due` and `at` hold the same deadlines, and not the nearest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Timers<K> {
    nearest: Option<(Instant, K)>,
    others: Option<Box<Others<K>>>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Others<K> {
    due: BTreeSet<(Instant, K)>,
    at: BTreeMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { nearest: None, others: None }
    }
}

impl<K> Default for Others<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), at: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets the deadline of `key`, in place of the one it had.
    pub(crate) fn arm(&mut self, key: K, at: Instant) {
        self.disarm(key);
        let later = match self.nearest.replace((at, key)) {
            None => return,
            Some(nearest) if nearest > (at, key) => nearest,
            Some(nearest) => {
                self.nearest = Some(nearest);
                (at, key)
            }
        };
        let others = self.others.get_or_insert_default();
        others.due.insert(later);
        others.at.insert(later.1, later.0);
    }

    #[inline]
    pub(crate) fn disarm(&mut self, key: K) {
        // The rule, and each start and end of a child disarms.
        if self.nearest.is_some() {
            self.take_out(key);
        }
    }

    fn take_out(&mut self, key: K) {
        if self.nearest.is_some_and(|(_, nearest)| nearest == key) {
            self.advance();
        } else if let Some(others) = self.others.as_mut().filter(|others| !others.at.is_empty())
            && let Some(at) = others.at.remove(&key)
        {
            others.due.remove(&(at, key));
        }
    }

    /// The nearest deadline is over.
    fn advance(&mut self) {
        self.nearest = None;
        if let Some(others) = self.others.as_mut().filter(|others| !others.due.is_empty())
            && let Some((at, key)) = others.due.pop_first()
        {
            others.at.remove(&key);
            self.nearest = Some((at, key));
        }
    }

    /// The deadline of `key`.
    pub(crate) fn at(&self, key: K) -> Option<Instant> {
        match self.nearest {
            Some((at, nearest)) if nearest == key => Some(at),
            _ => self.others.as_ref()?.at.get(&key).copied(),
        }
    }

    /// All deadlines, the nearest first.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Instant, K)> {
        let others = self.others.iter().flat_map(|others| &others.due);
        self.nearest.into_iter().chain(others.copied())
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all().count()
    }

    /// The nearest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.nearest.map(|(at, _)| at)
    }

    /// Takes out the first key whose deadline has come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        let (_, key) = self.nearest.filter(|&(at, _)| at <= now)?;
        self.advance();
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_has_one_deadline_and_it_comes_once() {
        let t0 = Instant::now();
        let (t1, t2) = (t0 + Duration::from_secs(1), t0 + Duration::from_secs(2));
        let mut timers = Timers::default();

        timers.arm('a', t2);
        timers.arm('b', t2);
        timers.arm('a', t1);

        assert_eq!((timers.next(), timers.at('a')), (Some(t1), Some(t1)));
        assert_eq!(timers.pop(t0), None, "not yet");
        assert_eq!(timers.pop(t2), Some('a'));
        timers.disarm('b');
        assert_eq!((timers.pop(t2), timers.next()), (None, None));
    }

    proptest! {
        /// A list of all deadlines, sorted when it is looked at, knows the same.
        #[test]
        fn they_are_as_a_sorted_list(
            steps in proptest::collection::vec((0..4_u8, 0..6_u8, 0..6_u64), 0..60),
        ) {
            let began = Instant::now();
            let mut timers = Timers::default();
            let mut list: Vec<(Instant, u8)> = Vec::new();
            for (what, key, secs) in steps {
                let at = began + Duration::from_secs(secs);
                match what {
                    0 | 1 => {
                        timers.arm(key, at);
                        list.retain(|&(_, other)| other != key);
                        list.push((at, key));
                        list.sort();
                    }
                    2 => {
                        timers.disarm(key);
                        list.retain(|&(_, other)| other != key);
                    }
                    _ => {
                        let due = list.first().is_some_and(|&(first, _)| first <= at);
                        prop_assert_eq!(timers.pop(at), due.then(|| list.remove(0).1));
                    }
                }
                prop_assert_eq!(timers.all().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(timers.next(), list.first().map(|&(at, _)| at));
                let expected = list.iter().find(|&&(_, other)| other == key).map(|&(at, _)| at);
                prop_assert_eq!(timers.at(key), expected);
            }
        }
    }
}
