//! Curves: how the delay grows with each restart in a row, before jitter.
//!
//! A [`Shape`] maps an index (0 for the first restart in a row) to a delay. Only a shape that is
//! random by nature draws a number.
//!
//! # Invariants
//!
//! 1. [`Shape::at`] is total: for any index and any values it returns a delay or the end.
//! 2. No delay of a curve with a first delay is below it.
//! 3. A panic of a custom curve ends the delays, and nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{BackoffProblem, BinarySlots, Jitter};
use crate::human_duration::HumanDuration;
use crate::panic::{Foreign, catch_panic};
use crate::policy::random::Random;

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
#[derive(Clone)]
pub(in crate::policy) enum Shape {
    Constant(Duration),
    Linear {
        min: Duration,
        step: Duration,
        max: Duration,
    },
    Exponential {
        min: Duration,
        factor: f64,
        max: Duration,
        /// Whether the delay is computed from the previous one, and not from the first.
        compounding: bool,
    },
    Geometric {
        min: Duration,
        steps: u32,
        max: Duration,
    },
    Fibonacci {
        min: Duration,
        max: Duration,
    },
    Slots(BinarySlots),
    Custom(Foreign<dyn Curve>),
    Iterator(Foreign<Factory>),
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
            Self::Linear { min, step, .. } => min.saturating_add(step.saturating_mul(index)),
            Self::Exponential { min, factor, compounding: false, .. } => {
                scaled(*min, *factor, index)
            }
            Self::Exponential { min, factor, max, .. } => match previous {
                Some(previous) => scaled(previous.min(*max), *factor, 1).max(*min),
                None => *min,
            },
            Self::Geometric { min, steps, max } => geometric(*min, *max, *steps, index),
            Self::Fibonacci { min, max } => fibonacci(*min, *max, index),
            Self::Slots(slots) => slots.at(index).next(random).wait(),
            Self::Custom(curve) => catch_panic(|| curve.delay(index))?,
            Self::Iterator(factory) => {
                let nth = || factory().nth(usize::try_from(index).unwrap_or(usize::MAX));
                catch_panic(nth)??
            }
        })
    }

    /// Returns the first delay, for the hard floor.
    pub(super) fn min(&self) -> Option<Duration> {
        match self {
            Self::Constant(min)
            | Self::Linear { min, .. }
            | Self::Exponential { min, .. }
            | Self::Geometric { min, .. }
            | Self::Fibonacci { min, .. } => Some(*min),
            Self::Slots(_) | Self::Custom(_) | Self::Iterator(_) => None,
        }
    }

    /// Returns the longest delay, if it is a parameter of the curve.
    pub(super) fn max(&self) -> Option<Duration> {
        match self {
            Self::Linear { max, .. }
            | Self::Exponential { max, .. }
            | Self::Geometric { max, .. }
            | Self::Fibonacci { max, .. } => Some(*max),
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

    /// Returns the jitter unless one is written.
    pub(in crate::policy) const fn default_jitter(&self) -> Jitter {
        match self {
            Self::Linear { .. }
            | Self::Exponential { .. }
            | Self::Geometric { .. }
            | Self::Fibonacci { .. } => Jitter::OF_GROWING,
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
            Self::Linear { .. } => "linear",
            Self::Exponential { .. } => "exponential",
            Self::Geometric { .. } => "geometric",
            Self::Fibonacci { .. } => "fibonacci",
            Self::Slots(_) => "binary_slots",
            Self::Custom(_) => "custom",
            Self::Iterator(_) => "iterator",
        }
    }

    pub(super) fn check(&self) -> Result<(), BackoffProblem> {
        if let Self::Slots(slots) = self
            && slots.longest().is_zero()
        {
            let advice = "write a ceiling of at least 2 and a slot longer than zero";
            return Err(BackoffProblem::new("ceiling", "zero delays only".to_owned(), advice));
        }
        let (Some(min), Some(max)) = (self.min(), self.max()) else { return Ok(()) };
        if min.is_zero() {
            return Err(BackoffProblem::new(
                "min",
                HumanDuration(min).to_string(),
                "write a first delay above zero, or `Backoff::none()` for no delay",
            ));
        }
        if max < min {
            return Err(BackoffProblem::new(
                "max",
                HumanDuration(max).to_string(),
                &format!("write at least `min`, which is {}", HumanDuration(min)),
            ));
        }
        match self {
            Self::Exponential { factor, .. } if !(factor.is_finite() && *factor >= 1.0) => {
                Err(BackoffProblem::new(
                    "factor",
                    factor.to_string(),
                    "write a finite number of at least 1, such as 2",
                ))
            }
            Self::Geometric { steps: 0, .. } => Err(BackoffProblem::new(
                "steps",
                "0".to_owned(),
                "write the number of steps to `max`, such as 5",
            )),
            _ => Ok(()),
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

/// Custom curves and iterators are equal if they are the same object.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b)) => a == b,
            (
                Self::Linear { min, step, max },
                Self::Linear { min: other_min, step: other_step, max: other_max },
            ) => (min, step, max) == (other_min, other_step, other_max),
            (
                Self::Exponential { min, factor, max, compounding },
                Self::Exponential { min: a, factor: b, max: c, compounding: d },
            ) => (min, factor, max, compounding) == (a, b, c, d),
            (Self::Geometric { min, steps, max }, Self::Geometric { min: a, steps: b, max: c }) => {
                (min, steps, max) == (a, b, c)
            }
            (Self::Fibonacci { min, max }, Self::Fibonacci { min: a, max: b }) => {
                (min, max) == (a, b)
            }
            (Self::Slots(a), Self::Slots(b)) => a == b,
            (Self::Custom(a), Self::Custom(b)) => Arc::ptr_eq(a.shared(), b.shared()),
            (Self::Iterator(a), Self::Iterator(b)) => Arc::ptr_eq(a.shared(), b.shared()),
            _ => false,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.name());
        match self {
            Self::Constant(delay) => shown.field("delay", delay),
            Self::Linear { min, step, max } => {
                shown.field("min", min).field("step", step).field("max", max)
            }
            Self::Exponential { min, factor, max, compounding } => shown
                .field("min", min)
                .field("factor", factor)
                .field("max", max)
                .field("compounding", compounding),
            Self::Geometric { min, steps, max } => {
                shown.field("min", min).field("steps", steps).field("max", max)
            }
            Self::Fibonacci { min, max } => shown.field("min", min).field("max", max),
            Self::Slots(slots) => shown.field("slots", slots),
            Self::Custom(_) | Self::Iterator(_) => &mut shown,
        };
        shown.finish()
    }
}
