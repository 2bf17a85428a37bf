//! A source of reproducible random numbers.

use std::num::NonZeroU64;

use crate::policy::Random;

/// A linear congruential generator, for tests that need reproducible random numbers.
///
/// Each number is `(state * multiplier + increment) % modulus`, divided by the modulus. A seed gives
/// the same numbers on every machine.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Backoff;
/// use verger::testing::Lcg;
///
/// let backoff = Backoff::constant(Duration::from_secs(1)).jitter(0.5);
/// let waits = |seed| backoff.delays().random(Lcg::new(seed)).take(9).collect::<Vec<_>>();
/// assert_eq!(waits(7), waits(7));
/// assert_ne!(waits(7), waits(8));
/// ```
#[derive(Clone, Debug)]
pub struct Lcg {
    state: u64,
    multiplier: u64,
    increment: u64,
    /// `None`: 2 to the power of 64.
    modulus: Option<NonZeroU64>,
}

impl Lcg {
    /// Returns a generator with this seed and the constants of Knuth's MMIX.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            state: seed,
            multiplier: 6_364_136_223_846_793_005,
            increment: 1_442_695_040_888_963_407,
            modulus: None,
        }
    }

    /// Returns a generator with this seed and the constants 9301, 49297 and 233280.
    ///
    /// They are those of *Numerical Recipes*, which small generators in many languages use. The
    /// numbers repeat after 233,280 draws.
    ///
    /// ```
    /// use verger::policy::Random;
    /// use verger::testing::Lcg;
    ///
    /// let mut random = Lcg::numerical_recipes(0);
    /// assert_eq!(random.unit(), 49_297.0 / 233_280.0);
    /// ```
    #[must_use]
    pub const fn numerical_recipes(seed: u64) -> Self {
        Self::with_constants(9_301, 49_297, NonZeroU64::new(233_280).unwrap(), seed)
    }

    /// Returns a generator with this seed and these constants.
    #[must_use]
    pub const fn with_constants(
        multiplier: u64,
        increment: u64,
        modulus: NonZeroU64,
        seed: u64,
    ) -> Self {
        Self { state: seed, multiplier, increment, modulus: Some(modulus) }
    }
}

impl Random for Lcg {
    fn unit(&mut self) -> f64 {
        let Self { state, multiplier, increment, modulus } = *self;
        let Some(modulus) = modulus else {
            self.state = state.wrapping_mul(multiplier).wrapping_add(increment);
            // The upper half, because the lower bits have short periods.
            let upper = u32::try_from(self.state >> 32).unwrap_or(u32::MAX);
            return f64::from(upper) / (f64::from(u32::MAX) + 1.0);
        };
        let next = u128::from(state) * u128::from(multiplier) + u128::from(increment);
        self.state = u64::try_from(next % u128::from(modulus.get())).unwrap_or_default();
        self.state as f64 / modulus.get() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed1_15_its_numbers_are_of_the_unit_interval_and_spread_evenly() {
        let mut random = Lcg::new(1);
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let unit = random.unit();
            assert!((0.0..1.0).contains(&unit), "{unit}");
            tenths[(unit * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (900..=1_100).contains(count)), "{tenths:?}");
    }

    #[test]
    fn seed1_15_its_constants_can_be_set() {
        // As a script with these constants computes them.
        let mut script = 0_u64;
        let mut random = Lcg::numerical_recipes(0);
        let constants = (9_301, 49_297, NonZeroU64::new(233_280).unwrap());
        let mut same = Lcg::with_constants(constants.0, constants.1, constants.2, 0);
        for _ in 0..1_000 {
            script = (script * 9_301 + 49_297) % 233_280;
            let expected = script as f64 / 233_280.0;
            assert_eq!((random.unit(), same.unit()), (expected, expected));
        }
        let mut large = Lcg::with_constants(u64::MAX, u64::MAX, NonZeroU64::MAX, u64::MAX - 1);
        assert!((0.0..=1.0).contains(&large.unit()));
    }
}
