//! Truncated binary exponential backoff: random numbers of slots, as in the original Ethernet.
//!
//! Raymond Roestenburg described it for actors ("Exponential backoff with Akka actors", 2012).

use std::time::Duration;

use crate::policy::random::{Random, draw};

/// The exponent of the largest number of slots.
const HIGHEST: u32 = 63;

/// A backoff of random numbers of slots, with its state.
///
/// In slot `n`, a whole number `k` from 0 to `n` is drawn, and the delay is 2<sup>k</sup> − 1 slots. So
/// the first delay is at most one slot, the second at most three, the third at most seven. Each can be
/// zero. At the ceiling, the backoff starts again, or stays there.
///
/// The value is immutable: [`next`](Self::next) and [`reset`](Self::reset) return a new one. To
/// restart children in this way, use [`Backoff::binary_slots`](crate::Backoff::binary_slots).
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::BinarySlots;
///
/// let slot = Duration::from_millis(10);
/// let first = BinarySlots::new(slot).next(&mut || 0.9);
/// assert_eq!(first.wait(), slot);
/// let second = first.next(&mut || 0.9);
/// assert_eq!(second.wait(), 3 * slot);
/// assert_eq!(first.wait(), slot, "the first value is unchanged");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinarySlots {
    pub(in crate::policy) slot_time: Duration,
    pub(in crate::policy) ceiling: u32,
    pub(in crate::policy) stays: bool,
    slot: u32,
    wait: Duration,
    retries: u32,
    resets: u32,
    total_retries: u64,
}

impl BinarySlots {
    /// Creates a backoff with slots of this length and a ceiling of 10.
    #[must_use]
    pub const fn new(slot_time: Duration) -> Self {
        Self {
            slot_time,
            ceiling: 10,
            stays: false,
            slot: 1,
            wait: Duration::ZERO,
            retries: 0,
            resets: 0,
            total_retries: 0,
        }
    }

    /// Sets the last slot, counted from 1. Default: 10.
    #[must_use]
    pub const fn ceiling(mut self, ceiling: u32) -> Self {
        self.ceiling = if ceiling == 0 { 1 } else { ceiling };
        self
    }

    /// Stays in the last slot, instead of starting again.
    #[must_use]
    pub const fn stay_at_ceiling(mut self) -> Self {
        self.stays = true;
        self
    }

    /// Sets the slot of the next draw, counted from 1 and at most the ceiling. Default: 1.
    ///
    /// The setting is for the [next](Self::next) draw; a [`reset`](Self::reset) returns to slot 1. In a
    /// [`Backoff`](crate::Backoff::binary_slots), it has no effect.
    #[must_use]
    pub const fn at_slot(mut self, slot: u32) -> Self {
        self.slot = if slot == 0 { 1 } else { slot };
        self
    }

    /// Returns the state after one more failure: a delay is drawn, and the slot grows.
    ///
    /// At the ceiling, unless it stays there, this is a [`reset`](Self::reset): no delay and no retry.
    #[must_use]
    pub fn next(&self, random: &mut dyn Random) -> Self {
        if self.slot >= self.ceiling && !self.stays {
            return self.reset();
        }
        Self {
            slot: self.slot.saturating_add(1).min(self.ceiling),
            wait: self.slot_time.saturating_mul(slots(self.slot.min(self.ceiling), random)),
            retries: self.retries.saturating_add(1),
            total_retries: self.total_retries.saturating_add(1),
            ..*self
        }
    }

    /// Returns the state after a success: the first slot, and no retries.
    ///
    /// It is counted in [`resets`](Self::resets) only if the backoff [is started](Self::is_started). Raymond
    /// Roestenburg's code counts every call.
    #[must_use]
    pub fn reset(&self) -> Self {
        let resets = self.resets.saturating_add(u32::from(self.is_started()));
        Self { slot: 1, wait: Duration::ZERO, retries: 0, resets, ..*self }
    }

    /// Returns `true` if there was a failure since the last reset.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.retries > 0
    }

    /// Returns the current delay.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns the slot of the next draw, counted from 1.
    #[must_use]
    pub const fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the number of failures since the last reset.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns the number of resets that followed a failure.
    #[must_use]
    pub const fn resets(&self) -> u32 {
        self.resets
    }

    /// Returns the total number of failures.
    #[must_use]
    pub const fn total_retries(&self) -> u64 {
        self.total_retries
    }

    /// Returns the state after `index` failures in a row.
    pub(super) fn at(self, index: u32) -> Self {
        let slot = match (self.stays, self.ceiling) {
            (true, ceiling) => index.saturating_add(1).min(ceiling),
            (false, ceiling) => index % ceiling + 1,
        };
        Self { slot, ..self }
    }

    /// Returns the longest possible delay.
    pub(super) fn longest(self) -> Duration {
        let slot = if self.stays { self.ceiling } else { self.ceiling - 1 };
        self.slot_time.saturating_mul(count(slot))
    }
}

/// Draws the number of slots.
fn slots(slot: u32, random: &mut dyn Random) -> u32 {
    // From 0 to `slot`, inclusive.
    count((draw(random) * (f64::from(slot) + 1.0)) as u32)
}

fn count(exponent: u32) -> u32 {
    let slots = (1_u64 << exponent.min(HIGHEST)) - 1;
    u32::try_from(slots).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SLOT: Duration = Duration::from_millis(10);

    /// All possible next delays, in slots.
    fn draws(slots: BinarySlots) -> BTreeSet<u128> {
        let waits = (0..1_000).map(|n| slots.next(&mut || f64::from(n) / 1_000.0).wait());
        waits.map(|wait| wait.as_nanos() / SLOT.as_nanos()).collect()
    }

    fn after(failures: u32, slots: BinarySlots) -> BinarySlots {
        (0..failures).fold(slots, |slots, _| slots.next(&mut || 0.5))
    }

    #[test]
    fn seed2_02_next_and_reset_return_a_new_value() {
        let first = BinarySlots::new(SLOT);
        let second = first.next(&mut || 0.9);
        let third = second.reset();
        assert_eq!(first, BinarySlots::new(SLOT));
        assert_eq!((second.retries(), third.retries()), (1, 0));
    }

    #[test]
    fn seed2_03_the_initial_state_is_the_first_of_ten_slots() {
        let fresh = BinarySlots::new(SLOT);
        assert_eq!(fresh.ceiling, 10);
        assert!(!fresh.stays);
        assert_eq!((fresh.slot(), fresh.wait()), (1, Duration::ZERO));
        assert_eq!((fresh.retries(), fresh.resets(), fresh.total_retries()), (0, 0, 0));
    }

    #[test]
    fn seed2_04_is_started_while_there_are_retries() {
        let fresh = BinarySlots::new(SLOT);
        assert!(!fresh.is_started());
        assert!(fresh.next(&mut || 0.0).is_started());
        assert!(!fresh.next(&mut || 0.0).reset().is_started());
    }

    #[test]
    fn seed2_05_a_delay_is_a_power_of_two_less_one_slots() {
        let sets: [&[u128]; 3] = [&[0, 1], &[0, 1, 3], &[0, 1, 3, 7]];
        for (failures, expected) in (0..).zip(sets) {
            let drawn = draws(after(failures, BinarySlots::new(SLOT)));
            assert_eq!(drawn, expected.iter().copied().collect(), "after {failures}");
        }
    }

    #[test]
    fn kin_12_the_first_delay_is_zero_or_one_slot() {
        assert_eq!(draws(BinarySlots::new(SLOT)), [0, 1].into());
        assert_eq!(BinarySlots::new(SLOT).resets(), 0);
    }

    #[test]
    fn kin_13_the_sets_of_the_second_and_the_third_delay() {
        assert_eq!(draws(after(1, BinarySlots::new(SLOT))), [0, 1, 3].into());
        assert_eq!(draws(after(2, BinarySlots::new(SLOT))), [0, 1, 3, 7].into());
    }

    #[test]
    fn seed2_06_each_failure_advances_the_slot_and_is_counted() {
        let ninth = after(9, BinarySlots::new(SLOT));
        assert_eq!((ninth.slot(), ninth.retries(), ninth.total_retries()), (10, 9, 9));
    }

    #[test]
    fn seed2_07_the_ceiling_resets_without_a_retry() {
        let ninth = after(9, BinarySlots::new(SLOT));
        let tenth = ninth.next(&mut || 0.99);
        assert_eq!((tenth.slot(), tenth.wait()), (1, Duration::ZERO));
        assert_eq!((tenth.retries(), tenth.resets(), tenth.total_retries()), (0, 1, 9));
        assert_eq!(BinarySlots::new(SLOT).longest(), 511 * SLOT);
        let longest = after(8, BinarySlots::new(SLOT)).next(&mut || 0.999);
        assert_eq!(longest.wait(), 511 * SLOT);
    }

    #[test]
    fn kin_14_the_delay_after_a_reset_at_the_ceiling_is_zero_or_one_slot() {
        let tenth = after(10, BinarySlots::new(SLOT));
        assert_eq!(tenth.resets(), 1);
        assert_eq!(draws(tenth), [0, 1].into());
    }

    #[test]
    fn seed2_08_stay_at_ceiling_keeps_the_last_slot() {
        let fiftieth = after(50, BinarySlots::new(SLOT).stay_at_ceiling());
        assert_eq!((fiftieth.slot(), fiftieth.resets()), (10, 0));
        assert_eq!(fiftieth.next(&mut || 0.999).wait(), 1_023 * SLOT);
        assert_eq!(fiftieth.longest(), 1_023 * SLOT);
    }

    #[test]
    fn seed2_09_a_reset_keeps_the_total_and_counts_if_it_changes_anything() {
        let third = after(3, BinarySlots::new(SLOT));
        let reset = third.reset();
        assert_eq!((reset.retries(), reset.total_retries(), reset.resets()), (0, 3, 1));
        assert_eq!(reset.reset(), reset);
    }

    #[test]
    fn seed2_03_the_slot_can_be_set() {
        let fourth = BinarySlots::new(SLOT).at_slot(4);
        assert_eq!((fourth.slot(), fourth.retries(), fourth.is_started()), (4, 0, false));
        assert_eq!(draws(fourth), [0, 1, 3, 7, 15].into());
        assert_eq!(fourth.next(&mut || 0.5).slot(), 5);
        assert_eq!(fourth.next(&mut || 0.5).reset().slot(), 1);
        assert_eq!(BinarySlots::new(SLOT).at_slot(0).slot(), 1);
        // Beyond the ceiling, the next draw is the one at the ceiling.
        let beyond = BinarySlots::new(SLOT).at_slot(99);
        assert_eq!(beyond.next(&mut || 0.9).resets(), 0, "nothing was started");
        assert_eq!(beyond.next(&mut || 0.9).slot(), 1);
        assert_eq!(beyond.stay_at_ceiling().next(&mut || 0.999).wait(), 1_023 * SLOT);
    }

    #[test]
    fn seed2_06_the_total_has_64_bits() {
        let many = BinarySlots { total_retries: u64::from(u32::MAX), ..BinarySlots::new(SLOT) };
        assert_eq!(many.next(&mut || 0.5).total_retries(), u64::from(u32::MAX) + 1);
    }

    #[test]
    fn any_ceiling_is_accepted() {
        let high = BinarySlots::new(Duration::from_secs(1)).ceiling(u32::MAX).stay_at_ceiling();
        assert_eq!(high.at(u32::MAX).next(&mut || 1.0).wait(), high.slot_time * u32::MAX);
        let low = BinarySlots::new(SLOT).ceiling(0);
        assert_eq!(low.next(&mut || 1.0).wait(), Duration::ZERO);
    }

    proptest::proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn at_is_the_state_after_that_many_failures(
            failures in 0..64_u32,
            ceiling in 1..12_u32,
            stays: bool,
        ) {
            let fresh = BinarySlots::new(SLOT).ceiling(ceiling);
            let fresh = if stays { fresh.stay_at_ceiling() } else { fresh };
            proptest::prop_assert_eq!(after(failures, fresh).slot(), fresh.at(failures).slot());
        }
    }
}
