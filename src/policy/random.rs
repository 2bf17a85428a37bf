//! Sources of random numbers. They are arguments, so that tests can choose the numbers.

use std::fmt;
use std::sync::Arc;

use crate::panic::{Foreign, catch_panic};
use crate::sync::Mutex;

/// A source of random numbers.
///
/// Jitter is drawn from it, once for each delay. The default is a generator of [`fastrand`]. Set a
/// different source for one policy with [`Backoff::random`](crate::Backoff::random), or for a
/// supervisor with [`SupervisorBuilder::random`](crate::SupervisorBuilder::random). Every closure
/// that returns an `f64` is a source. A panic and NaN count as zero.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).jitter(0.2);
/// let always_half = || 0.5;
/// let wait = backoff.delays().random(always_half).next();
/// assert_eq!(wait, Some(Duration::from_millis(1_100)));
/// ```
///
/// [`fastrand`]: https://docs.rs/fastrand
pub trait Random: Send {
    /// Returns a number of at least 0 and below 1. Other numbers are clamped to this range.
    fn unit(&mut self) -> f64;
}

impl Random for fastrand::Rng {
    fn unit(&mut self) -> f64 {
        self.f64()
    }
}

impl<F: FnMut() -> f64 + Send> Random for F {
    fn unit(&mut self) -> f64 {
        self()
    }
}

/// Creates a source for each start of a supervisor.
#[derive(Clone)]
pub(crate) struct RandomFactory(Foreign<dyn Fn() -> Box<dyn Random> + Send + Sync>);

impl RandomFactory {
    pub(crate) fn new<R: Random + 'static>(make: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self(Foreign::new(Arc::new(move || Box::new(make()))))
    }
}

impl fmt::Debug for RandomFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomFactory")
    }
}

/// The random source of one policy, which the clones of the policy share. Two policies are equal if they share one source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedRandom(Foreign<Mutex<Box<dyn Random>>>);

impl SharedRandom {
    pub(super) fn new(source: impl Random + 'static) -> Self {
        Self(Foreign::new(Arc::new(Mutex::new(Box::new(source)))))
    }
}

impl Random for &SharedRandom {
    fn unit(&mut self) -> f64 {
        // The lock is released before a panic of the source reaches `draw`.
        let unit = catch_panic(|| self.0.lock().unit());
        unit.unwrap_or_default()
    }
}

/// The random source of one supervisor.
pub(crate) enum RandomSource {
    Seeded(fastrand::Rng),
    Given(Box<dyn Random>),
}

impl RandomSource {
    pub(crate) fn new(factory: Option<&RandomFactory>, seed: u64) -> Self {
        // A factory that panics is as good as none.
        match factory.and_then(|RandomFactory(make)| catch_panic(&**make)) {
            Some(given) => Self::Given(given),
            None => Self::Seeded(fastrand::Rng::with_seed(seed)),
        }
    }
}

impl Random for RandomSource {
    fn unit(&mut self) -> f64 {
        match self {
            Self::Seeded(random) => random.f64(),
            Self::Given(random) => random.unit(),
        }
    }
}

/// Used by the exploration, whose sources are seeded.
#[cfg(test)]
impl Clone for RandomSource {
    fn clone(&self) -> Self {
        match self {
            Self::Seeded(random) => Self::Seeded(random.clone()),
            Self::Given(_) => unreachable!("a custom source can't be cloned"),
        }
    }
}

impl fmt::Debug for RandomSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomSource")
    }
}

/// The largest number below 1.
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// Draws a number in `0.0..1.0`: clamped, or zero if the source panics.
pub(super) fn draw(random: &mut dyn Random) -> f64 {
    let unit = catch_panic(|| random.unit()).unwrap_or_default();
    if unit.is_nan() { 0.0 } else { unit.clamp(0.0, ALMOST_ONE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_number_is_at_least_zero_and_below_one() {
        let table = [
            (0.0, 0.0),
            (0.5, 0.5),
            (-1.0, 0.0),
            (1.0, ALMOST_ONE),
            (f64::INFINITY, ALMOST_ONE),
            (f64::NAN, 0.0),
        ];
        for (given, expected) in table {
            assert_eq!(draw(&mut || given), expected, "{given}");
        }
    }

    #[test]
    fn almost_one_is_the_largest_number_below_one() {
        assert_eq!(f64::from_bits(ALMOST_ONE.to_bits() + 1), 1.0);
    }

    #[test]
    fn a_custom_source_replaces_the_seeded_one() {
        let drawn = |mut source: RandomSource| [source.unit(), source.unit(), source.unit()];
        let mut seeded = fastrand::Rng::with_seed(7);
        let expected = [seeded.f64(), seeded.f64(), seeded.f64()];
        assert_eq!(drawn(RandomSource::new(None, 7)), expected);
        assert_ne!(drawn(RandomSource::new(None, 8)), expected);

        let factory = RandomFactory::new(|| {
            let mut drawn = 0.0;
            move || {
                drawn += 0.125;
                drawn
            }
        });
        for _ in 0..2 {
            assert_eq!(
                drawn(RandomSource::new(Some(&factory), 7)),
                [0.125, 0.25, 0.375],
                "its own"
            );
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn the_numbers_of_fastrand_are_below_one(seed: u64) {
            let unit = fastrand::Rng::with_seed(seed).unit();
            proptest::prop_assert!((0.0..1.0).contains(&unit), "{}", unit);
        }
    }
}
