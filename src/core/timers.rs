//! Deadlines: at most one for each key. The nearest is found in O(log n).
//!
//! # Invariants
//!
//! 1. `due` and `at` hold the same deadlines.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Instant;

use rustc_hash::FxHashMap;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Timers<K> {
    due: BTreeSet<(Instant, K)>,
    at: FxHashMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), at: FxHashMap::default() }
    }
}

impl<K: Copy + Hash + Ord> Timers<K> {
    /// Sets the deadline of `key`, in place of the one it had.
    pub(crate) fn arm(&mut self, key: K, at: Instant) {
        self.disarm(key);
        self.due.insert((at, key));
        self.at.insert(key, at);
    }

    pub(crate) fn disarm(&mut self, key: K) {
        // Most supervisors have no timer when a child starts.
        if !self.at.is_empty()
            && let Some(at) = self.at.remove(&key)
        {
            self.due.remove(&(at, key));
        }
    }

    /// The deadline of `key`.
    pub(crate) fn at(&self, key: K) -> Option<Instant> {
        self.at.get(&key).copied()
    }

    /// All deadlines, the nearest first.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Instant, K)> {
        self.due.iter().copied()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    /// The nearest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Removes the first deadline that is due, and returns it with its key.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, K)> {
        let &(at, key) = self.due.first().filter(|&&(at, _)| at <= now)?;
        self.due.remove(&(at, key));
        self.at.remove(&key);
        Some((at, key))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_has_one_deadline_which_is_due_once() {
        let t0 = Instant::now();
        let (t1, t2) = (t0 + Duration::from_secs(1), t0 + Duration::from_secs(2));
        let mut timers = Timers::default();

        timers.arm('a', t2);
        timers.arm('b', t2);
        timers.arm('a', t1);

        assert_eq!((timers.next(), timers.at('a')), (Some(t1), Some(t1)));
        assert_eq!(timers.pop(t0), None, "not yet");
        assert_eq!(timers.pop(t2), Some((t1, 'a')));
        timers.disarm('b');
        assert_eq!((timers.pop(t2), timers.next()), (None, None));
    }

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        /// Compares with a sorted list of all deadlines.
        #[test]
        fn timers_behave_like_a_sorted_list(
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
                        prop_assert_eq!(timers.pop(at), due.then(|| list.remove(0)));
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
