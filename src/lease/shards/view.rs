//! What a member knows of the others: which slots are taken, and whether that is calm.
//!
//! A member looks at one slot after another: a *sweep*. The first one goes through all slots. A new member takes the
//! lowest slot that is free, so the others end with the slot after the last one that is taken. In case that a slot was
//! passed over, each of them also looks at one slot beyond, a different one each time.
//!
//! # Invariants
//!
//! 1. A view is confirmed by a sweep that began after its last change, and in which each answer was known.
//! 2. Between two looks at most one slot changes, so an answer costs `O(log n)` for `n` members.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::table;

/// How many slots that have been freed lately are remembered.
const FREED: usize = 64;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ShardsView {
    taken: BTreeSet<usize>,
    /// The slot of the member itself, which it doesn't look at.
    own: usize,
    /// How many of the taken slots are below the own one.
    below: usize,
    /// The free slots between taken ones that were freed last, the last one first.
    freed: VecDeque<usize>,
    changed: Instant,
    /// How many slots there are at most.
    limit: usize,
    /// The slot to look at next.
    next: usize,
    /// The slot beyond the last one that is taken that was looked at last. `None`: in the first sweep.
    beyond: Option<usize>,
    /// Whether the sweep has found no change so far, and each answer was known.
    is_clean: bool,
    /// How many sweeps in a row have found no change.
    confirmed: u32,
}

impl ShardsView {
    /// Creates the view of a member that has looked at all slots below its own.
    pub(super) fn new(mut taken: BTreeSet<usize>, own: usize, limit: usize, now: Instant) -> Self {
        let below = taken.range(..own).count();
        taken.insert(own);
        let mut view = Self {
            taken,
            own,
            below,
            freed: VecDeque::new(),
            changed: now,
            limit,
            next: own,
            beyond: None,
            is_clean: true,
            confirmed: 0,
        };
        view.advance();
        view
    }

    pub(super) fn own(&self) -> usize {
        self.own
    }

    pub(super) fn members(&self) -> usize {
        self.taken.len()
    }

    /// Returns how many slots there are, up to the last one that is taken.
    pub(super) fn slots(&self) -> usize {
        self.taken.last().map_or(1, |last| last + 1)
    }

    pub(super) fn is_taken(&self, slot: usize) -> bool {
        self.taken.contains(&slot)
    }

    /// Returns the free slots, those first that were freed last.
    pub(super) fn free(&self) -> impl Iterator<Item = usize> {
        let (lately, slots) = (self.freed.iter().copied(), self.slots());
        let others = (0..slots).filter(|slot| !self.is_taken(*slot) && !self.freed.contains(slot));
        lately.filter(move |slot| *slot < slots).chain(others)
    }

    /// Returns how many shards the member is to have: its share.
    pub(super) fn share(&self, shards: usize) -> usize {
        table::share(shards, self.below, self.members())
    }

    /// Returns whether the view was confirmed, and hasn't changed for this time.
    pub(super) fn is_calm(&self, calm: Duration, now: Instant) -> bool {
        self.confirmed > 0 && self.unchanged(now) >= calm
    }

    /// Returns how many times all slots were looked at since the last change.
    pub(super) fn confirmed(&self) -> u32 {
        self.confirmed
    }

    /// Returns for how long the view hasn't changed.
    pub(super) fn unchanged(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.changed)
    }

    /// Returns the slot to look at next.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Notes the answer about the next slot. `None`: it is unknown. Returns whether the view has changed.
    pub(super) fn on_seen(&mut self, is_taken: Option<bool>, now: Instant) -> bool {
        let slot = self.next;
        let changed = match is_taken {
            Some(true) if self.taken.insert(slot) => {
                self.freed.retain(|freed| *freed != slot);
                self.below += usize::from(slot < self.own);
                true
            }
            Some(false) if self.taken.remove(&slot) => {
                self.freed.push_front(slot);
                self.freed.truncate(FREED);
                self.below -= usize::from(slot < self.own);
                true
            }
            _ => false,
        };
        if changed {
            (self.changed, self.confirmed) = (now, 0);
        }
        self.is_clean &= !changed && is_taken.is_some();
        self.advance();
        changed
    }

    /// Goes on to the next slot.
    fn advance(&mut self) {
        self.next += 1;
        self.next += usize::from(self.next == self.own);
        let (slots, limit) = (self.slots(), self.limit);
        let Some(beyond) = self.beyond else {
            if self.next >= limit {
                self.beyond = Some(slots);
                self.begin();
            }
            return;
        };
        if self.next <= slots && self.next < limit {
            return;
        }
        if self.next == slots + 1 && self.next < limit {
            let further = if beyond + 1 < limit { beyond + 1 } else { 0 };
            self.next = further.max(slots + 1);
            self.beyond = Some(self.next);
        } else {
            self.begin();
        }
    }

    /// Ends a sweep, and begins the next one.
    fn begin(&mut self) {
        self.confirmed = self.confirmed.saturating_add(u32::from(self.is_clean));
        self.is_clean = true;
        self.next = usize::from(self.own == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8;

    /// Looks at the next slots, of which these are taken. Returns the slots that were looked at.
    fn look(view: &mut ShardsView, count: usize, taken: &[usize]) -> Vec<usize> {
        let now = Instant::now();
        let mut looked = Vec::new();
        for _ in 0..count {
            looked.push(view.next());
            view.on_seen(Some(taken.contains(&view.next())), now);
        }
        looked
    }

    #[test]
    fn the_first_sweep_sees_all_slots_and_the_others_end_after_the_last_member() {
        let mut view = ShardsView::new(BTreeSet::from([0]), 1, LIMIT, Instant::now());
        let taken = [0, 1, 3];
        assert_eq!(look(&mut view, 6, &taken), [2, 3, 4, 5, 6, 7]);
        assert_eq!((view.members(), view.slots(), view.confirmed()), (3, 4, 0));
        // One slot beyond the end, a different one each time.
        assert_eq!(look(&mut view, 5, &taken), [0, 2, 3, 4, 5]);
        assert_eq!(look(&mut view, 5, &taken), [0, 2, 3, 4, 6]);
        assert_eq!(look(&mut view, 5, &taken), [0, 2, 3, 4, 7]);
        assert_eq!(look(&mut view, 5, &taken), [0, 2, 3, 4, 5]);
        assert_eq!(view.confirmed(), 4);
    }

    #[test]
    fn a_view_is_confirmed_by_a_sweep_without_a_change_and_without_an_unknown_answer() {
        let mut view = ShardsView::new(BTreeSet::new(), 0, 3, Instant::now());
        look(&mut view, 2, &[]);
        assert_eq!(view.confirmed(), 1);
        assert_eq!(look(&mut view, 1, &[1]), [1]);
        assert_eq!(view.confirmed(), 0);
        look(&mut view, 1, &[1]);
        assert_eq!(view.confirmed(), 0, "the sweep has found the change");
        view.on_seen(None, Instant::now());
        look(&mut view, 1, &[1]);
        assert_eq!(view.confirmed(), 0, "an answer was unknown");
        look(&mut view, 2, &[1]);
        assert_eq!(view.confirmed(), 1);
    }

    #[test]
    fn the_share_follows_from_the_rank_among_the_members() {
        let now = Instant::now();
        let mut view = ShardsView::new(BTreeSet::from([0, 1]), 3, LIMIT, now);
        assert_eq!(view.share(10), 3, "the last of three");
        while view.next() != 0 {
            view.on_seen(Some(false), now);
        }
        view.on_seen(Some(false), now);
        assert_eq!(view.share(10), 5, "the last of two");
        assert_eq!(view.free().collect::<Vec<_>>(), [0, 2]);
    }
}
