//! Curves and jitter: how the delay grows with each restart in a row, and its random part.
//!
//! A [`Shape`] maps an index (0 for the first restart in a row) to a delay. Only a shape that is
//! random by nature draws a number.
//!
//! # Invariants
//!
//! 1. [`Shape::at`] is total: for any index and any values it returns a delay or the end.
//! 2. No delay of a curve with a first delay is below it.
//! 3. A panic of a custom curve ends the delays, and nothing else.

use std::time::Duration;

use super::{BackoffProblem, BinarySlots};
use crate::human_duration::HumanDuration;
use crate::panic::{Foreign, catch_panic};
use crate::policy::random::{Random, draw};

/// A custom curve, for [`Backoff::custom`](crate::Backoff::custom).
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::Curve;
/// use verger::Backoff;
///
/// /// One second three times, then a minute.
/// #[derive(Debug)]
/// struct Steps;
///
/// impl Curve for Steps {
///     fn delay(&self, index: u32) -> Duration {
///         Duration::from_secs(if index < 3 { 1 } else { 60 })
///     }
/// }
///
/// let waits: Vec<_> = Backoff::custom(Steps).delays().take(4).map(|wait| wait.as_secs()).collect();
/// assert_eq!(waits, [1, 1, 1, 60]);
/// ```
pub trait Curve: Send + Sync + 'static {
    /// Returns the delay before a restart, where `index` is 0 for the first restart in a row.
    ///
    /// It is called in the task of the supervisor, so it must not block. If it panics, the child is
    /// given up.
    fn delay(&self, index: u32) -> Duration;
}

/// Creates the iterator of delays for one row of restarts.
pub(in crate::policy) type Factory = dyn Fn() -> Box<Waits> + Send + Sync;

/// The remaining delays.
pub(in crate::policy) type Waits = dyn Iterator<Item = Duration> + Send;

/// The curve of a backoff.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::policy) enum Shape {
    Constant(Duration),
    Growing { min: Duration, max: Duration, growth: Growth },
    Slots(BinarySlots),
    Custom(Foreign<dyn Curve>),
    Iterator(Foreign<Factory>),
}

/// How a curve grows from its first delay to its last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::policy) enum Growth {
    Linear {
        step: Duration,
    },
    Exponential {
        factor: f64,
        /// Whether the delay is computed from the previous one, and not from the first.
        compounding: bool,
    },
    Geometric {
        steps: u32,
    },
    Fibonacci,
}

impl Shape {
    /// Returns the delay at `index`, without an upper bound, because jitter may be applied before it.
    ///
    /// `None` means that there are no more delays.
    pub(super) fn at(
        &self,
        index: u32,
        previous: Option<Duration>,
        random: &mut dyn Random,
    ) -> Option<Duration> {
        Some(match self {
            Self::Constant(delay) => *delay,
            Self::Growing { min, max, growth } => growth.at(*min, *max, index, previous),
            Self::Slots(slots) => slots.at(index).next(random).wait(),
            Self::Custom(curve) => catch_panic(|| curve.delay(index))?,
            Self::Iterator(factory) => {
                let nth = || factory().nth(usize::try_from(index).unwrap_or(usize::MAX));
                catch_panic(nth)??
            }
        })
    }

    /// Returns the delay at `index`, as if none had been drawn before.
    pub(super) fn base(&self, index: u32) -> Option<Duration> {
        match self {
            Self::Growing { min, growth: Growth::Exponential { factor, .. }, .. } => {
                Some(scaled(*min, *factor, index))
            }
            _ => self.at(index, None, &mut || 0.0),
        }
    }

    /// Returns the first delay, for the hard floor.
    pub(super) fn min(&self) -> Option<Duration> {
        match self {
            Self::Constant(min) | Self::Growing { min, .. } => Some(*min),
            Self::Slots(_) | Self::Custom(_) | Self::Iterator(_) => None,
        }
    }

    /// Returns the longest delay, if it is a parameter of the curve.
    pub(super) fn max(&self) -> Option<Duration> {
        match self {
            Self::Growing { max, .. } => Some(*max),
            Self::Constant(_) | Self::Slots(_) | Self::Custom(_) | Self::Iterator(_) => None,
        }
    }

    /// Returns the delay that the curve ends at, if it is known.
    pub(super) fn last(&self) -> Option<Duration> {
        match self {
            Self::Constant(delay) => Some(*delay),
            Self::Slots(slots) => Some(slots.longest()),
            _ => self.max(),
        }
    }

    /// Whether a delay depends on the delays that were drawn before.
    pub(super) fn is_compounding(&self) -> bool {
        let Self::Growing { growth, .. } = self else { return false };
        matches!(growth, Growth::Exponential { compounding: true, .. })
    }

    /// Whether no delay is shorter than the previous one.
    pub(super) fn never_falls(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Growing { .. })
    }

    /// Returns the jitter unless one is written.
    pub(in crate::policy) const fn default_jitter(&self) -> Jitter {
        match self {
            Self::Growing { .. } => Jitter::OF_GROWING,
            Self::Constant(_) | Self::Slots(_) | Self::Custom(_) | Self::Iterator(_) => {
                Jitter::None
            }
        }
    }

    /// Returns the name of the curve.
    pub(in crate::policy) fn name(&self) -> &'static str {
        match self {
            Self::Constant(delay) if delay.is_zero() => "none",
            Self::Constant(_) => "constant",
            Self::Growing { growth, .. } => match growth {
                Growth::Linear { .. } => "linear",
                Growth::Exponential { .. } => "exponential",
                Growth::Geometric { .. } => "geometric",
                Growth::Fibonacci => "fibonacci",
            },
            Self::Slots(_) => "binary_slots",
            Self::Custom(_) => "custom",
            Self::Iterator(_) => "iterator",
        }
    }

    pub(super) fn check(&self) -> Result<(), BackoffProblem> {
        let (field, value, advice) = match self {
            Self::Slots(slots) if slots.longest().is_zero() => (
                "ceiling",
                "zero delays only".to_owned(),
                "write a ceiling of at least 2 and a slot longer than zero",
            ),
            Self::Growing { min: Duration::ZERO, .. } => (
                "min",
                "0s".to_owned(),
                "write a first delay above zero, or `Backoff::none()` for no delay",
            ),
            Self::Growing { min, max, .. } if max < min => {
                let advice = format!("write at least `min`, which is {}", HumanDuration(*min));
                return Err(BackoffProblem::new("max", HumanDuration(*max).to_string(), &advice));
            }
            Self::Growing { growth: Growth::Exponential { factor, .. }, .. }
                if !(factor.is_finite() && *factor >= 1.0) =>
            {
                ("factor", factor.to_string(), "write a finite number of at least 1, such as 2")
            }
            Self::Growing { growth: Growth::Geometric { steps: 0 }, .. } => {
                ("steps", "0".to_owned(), "write the number of steps to `max`, such as 5")
            }
            _ => return Ok(()),
        };
        Err(BackoffProblem::new(field, value, advice))
    }
}

impl Growth {
    fn at(self, min: Duration, max: Duration, index: u32, previous: Option<Duration>) -> Duration {
        match self {
            Self::Linear { step } => min.saturating_add(step.saturating_mul(index)),
            Self::Exponential { factor, compounding: false } => scaled(min, factor, index),
            Self::Exponential { factor, .. } => match previous {
                Some(previous) => scaled(previous.min(max), factor, 1).max(min),
                None => min,
            },
            Self::Geometric { steps } => geometric(min, max, steps, index),
            Self::Fibonacci => fibonacci(min, max, index),
        }
    }
}

/// Returns `min * factor^index`, saturating, and at least `min`.
///
/// Whole factors use integer arithmetic, so 200, 400, 800 are exact.
fn scaled(min: Duration, factor: f64, index: u32) -> Duration {
    // This also replaces NaN.
    let factor = factor.max(1.0);
    if factor.fract() == 0.0 && factor <= f64::from(u32::MAX) {
        let product = (factor as u128).checked_pow(index);
        let nanos = product.and_then(|product| min.as_nanos().checked_mul(product));
        return match nanos.map(|nanos| (u64::try_from(nanos / NANOS_PER_SEC), nanos)) {
            Some((Ok(seconds), nanos)) => Duration::new(seconds, (nanos % NANOS_PER_SEC) as u32),
            None | Some((Err(_), _)) if min.is_zero() => Duration::ZERO,
            None | Some((Err(_), _)) => Duration::MAX,
        };
    }
    let seconds = min.as_secs_f64() * factor.powf(f64::from(index));
    // Zero times infinity.
    if seconds.is_nan() { Duration::ZERO } else { longest(seconds).max(min) }
}

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// Converts seconds into a duration, saturating.
fn longest(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Grows from `min` to `max` in `steps` steps, each by the same factor.
fn geometric(min: Duration, max: Duration, steps: u32, index: u32) -> Duration {
    if index >= steps {
        return max;
    }
    if index == 0 || min.is_zero() {
        return min;
    }
    let part = f64::from(index) / f64::from(steps);
    let grown = (max.as_secs_f64() / min.as_secs_f64()).powf(part);
    // Rounded to microseconds, so that 2, 4 and 8 seconds are exact.
    let micros = (min.as_secs_f64() * grown * 1e6).round();
    longest(micros / 1e6).max(min).min(max.max(min))
}

/// Returns a Fibonacci multiple of `min`: 1, 1, 2, 3, 5, 8.
fn fibonacci(min: Duration, max: Duration, index: u32) -> Duration {
    let (mut wait, mut next) = (min, min);
    for _ in 0..index {
        if wait >= max || wait.is_zero() {
            break;
        }
        (wait, next) = (next, wait.saturating_add(next));
    }
    wait
}

/// The random part of a delay.
///
/// A number converts into [`Additive`](Self::Additive), which never shortens a delay:
/// `backoff.jitter(0.2)`.
///
/// The example of [`Backoff`](crate::Backoff) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// No jitter. The default of curves that don't grow.
    #[default]
    None,
    /// Adds or subtracts up to this fraction (0 to 1) of the delay, as in actor-ts.
    Symmetric(f64),
    /// Adds up to this fraction (0 to 1) of the delay, as in Akka and Pekko.
    Additive(f64),
    /// Adds up to this time, as systemd's `RestartRandomizedDelaySec`.
    AdditiveAbs(Duration),
    /// Draws the whole delay, from zero to the delay of the curve.
    ///
    /// The widest spread. It is described in "Exponential Backoff And Jitter" (AWS, 2015), as is
    /// `Equal`.
    Full,
    /// Keeps half of the delay, and draws from zero to the other half.
    Equal,
}

impl Jitter {
    /// The jitter of growing curves unless one is written.
    pub(super) const OF_GROWING: Self = Self::Additive(0.2);

    /// Applies the jitter to `base`. Draws once, and only if the result is random.
    pub(crate) fn apply(self, base: Duration, random: &mut dyn Random) -> Duration {
        let (least, most) = self.bounds(base);
        if least == most { least } else { least + part_of(most - least, draw(random)) }
    }

    /// Returns the shortest and the longest result for `base`.
    pub(crate) fn bounds(self, base: Duration) -> (Duration, Duration) {
        match self {
            Self::None => (base, base),
            Self::Symmetric(fraction) => {
                let part = part_of(base, clamped(fraction));
                (base - part, base.saturating_add(part))
            }
            Self::Additive(fraction) => {
                (base, base.saturating_add(part_of(base, clamped(fraction))))
            }
            Self::AdditiveAbs(most) => (base, base.saturating_add(most)),
            Self::Full => (Duration::ZERO, base),
            Self::Equal => (base - part_of(base, 0.5), base),
        }
    }

    pub(super) fn check(self) -> Result<(), BackoffProblem> {
        match self {
            Self::Symmetric(fraction) | Self::Additive(fraction)
                if !(0.0..=1.0).contains(&fraction) =>
            {
                Err(BackoffProblem::new(
                    "jitter",
                    fraction.to_string(),
                    "write a fraction from 0 to 1, such as 0.2",
                ))
            }
            _ => Ok(()),
        }
    }
}

impl From<f64> for Jitter {
    fn from(fraction: f64) -> Self {
        if fraction == 0.0 { Self::None } else { Self::Additive(fraction) }
    }
}

/// Clamps a fraction to 0 to 1, and replaces NaN by 0.
fn clamped(fraction: f64) -> f64 {
    if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) }
}

/// Returns a part of `whole`, where `fraction` is from 0 to 1.
fn part_of(whole: Duration, fraction: f64) -> Duration {
    let part = Duration::try_from_secs_f64(whole.as_secs_f64() * fraction).unwrap_or(whole);
    part.min(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_results_for_a_delay_of_one_second() {
        let table = [
            // jitter, at 0, at a half, at almost one
            (Jitter::None, 1_000, 1_000, 1_000),
            (Jitter::Symmetric(0.2), 800, 1_000, 1_199),
            (Jitter::Symmetric(1.0), 0, 1_000, 1_999),
            (Jitter::Additive(0.2), 1_000, 1_100, 1_199),
            (Jitter::AdditiveAbs(ms(300)), 1_000, 1_150, 1_299),
            (Jitter::Full, 0, 500, 999),
            (Jitter::Equal, 500, 750, 999),
        ];
        for (jitter, zero, half, one) in table {
            for (drawn, expected) in [(0.0, zero), (0.5, half), (0.999_999, one)] {
                let wait = jitter.apply(ms(1_000), &mut || drawn);
                assert_eq!(wait.as_millis(), expected, "{jitter:?} at {drawn}");
            }
        }
    }

    #[test]
    fn only_an_absolute_jitter_changes_a_delay_of_zero() {
        let mut never = || panic!("no draw is needed");
        for jitter in [0.0.into(), Jitter::Symmetric(1.0), 1.0.into(), Jitter::Full, Jitter::Equal]
        {
            assert_eq!(jitter.apply(Duration::ZERO, &mut never), Duration::ZERO, "{jitter:?}");
        }
        let wait = Jitter::AdditiveAbs(ms(100)).apply(Duration::ZERO, &mut || 0.5);
        assert_eq!(wait, ms(50));
    }

    #[test]
    fn an_invalid_fraction_is_refused_and_clamped() {
        let table = [(-0.5, 1_000), (f64::NAN, 1_000), (1.5, 1_500), (f64::INFINITY, 1_500)];
        for (fraction, expected) in table {
            let jitter = Jitter::Additive(fraction);
            assert_eq!(jitter.apply(ms(1_000), &mut || 0.5), ms(expected), "{fraction}");
            assert!(jitter.check().is_err(), "{fraction}");
        }
    }

    #[test]
    fn kin_04_a_symmetric_jitter_reaches_its_bounds() {
        let jitter = Jitter::Symmetric(0.5);
        assert_eq!(jitter.apply(ms(1_000), &mut || 0.0), ms(500));
        assert_eq!(jitter.apply(ms(1_000), &mut || 1.0).as_millis(), 1_500);
        assert_eq!(jitter.bounds(ms(1_000)), (ms(500), ms(1_500)));
    }

    proptest::proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn every_result_is_within_the_bounds(base: Duration, fraction: f64, add: Duration, drawn: f64) {
            let kinds = [
                Jitter::None,
                Jitter::Symmetric(fraction),
                Jitter::Additive(fraction),
                Jitter::AdditiveAbs(add),
                Jitter::Full,
                Jitter::Equal,
            ];
            for jitter in kinds {
                let (least, most) = jitter.bounds(base);
                let wait = jitter.apply(base, &mut || drawn);
                proptest::prop_assert!((least..=most).contains(&wait), "{:?}: {:?}", jitter, wait);
            }
        }
    }
}
