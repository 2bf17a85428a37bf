//! Deadlines: at most one for each key, the nearest found in O(log n).
//!
//! Kept apart from the children, so that a child without a deadline pays nothing for having none.
//! Both sides are ordered: where there are few deadlines, which is the rule, looking for one that a
//! child hasn't got takes a comparison or two, and hashing its key ten times that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Timers<K> {
    due: BTreeSet<(Instant, K)>,
    at: BTreeMap<K, Instant>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), at: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets the deadline of `key`, in place of the one it had.
    pub(crate) fn arm(&mut self, key: K, at: Instant) {
        self.disarm(key);
        self.due.insert((at, key));
        self.at.insert(key, at);
    }

    pub(crate) fn disarm(&mut self, key: K) {
        if let Some(at) = self.at.remove(&key) {
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

    /// Takes out the first key whose deadline has come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        let &(at, key) = self.due.first().filter(|&&(at, _)| at <= now)?;
        self.due.remove(&(at, key));
        self.at.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
}
