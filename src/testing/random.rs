//! A source of reproducible random numbers.

use crate::policy::Random;

/// A linear congruential generator, for tests that need reproducible random numbers.
///
/// A seed gives the same numbers on every machine. The constants are those of Knuth's MMIX.
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
}

impl Lcg {
    /// Returns a generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Random for Lcg {
    fn unit(&mut self) -> f64 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        const INCREMENT: u64 = 1_442_695_040_888_963_407;
        self.state = self.state.wrapping_mul(FACTOR).wrapping_add(INCREMENT);
        // The upper half, because the lower bits have short periods.
        let upper = u32::try_from(self.state >> 32).unwrap_or(u32::MAX);
        f64::from(upper) / (f64::from(u32::MAX) + 1.0)
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
}
