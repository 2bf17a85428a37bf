//! Curves: how the wait grows with each restart in a row, before jitter.
//!
//! A [`Shape`] turns an index (0 for the first restart in a row) into a wait. It counts nothing and
//! knows no jitter; only a shape that is random by nature draws.
//!
//! # Invariants
//!
//! 1. [`Shape::at`] is total: any index and any values give a wait, or the end of the waits.
//! 2. What its author said is the last wait is never exceeded, and the first never undercut.
//! 3. A panic of somebody's own curve ends the waits, and nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;

use super::{BackoffProblem, BinarySlots};
use crate::panic::catch_panic;
use crate::policy::random::Random;

/// A curve of one's own, for [`Backoff::custom`](crate::Backoff::custom).
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, Curve};
///
/// /// Patient at first, and then for a minute.
/// #[derive(Debug)]
/// struct Patient;
///
/// impl Curve for Patient {
///     fn delay(&self, index: u32) -> Duration {
///         Duration::from_secs(if index < 3 { 1 } else { 60 })
///     }
/// }
///
/// let waits: Vec<_> = Backoff::custom(Patient).delays().take(4).map(|wait| wait.as_secs()).collect();
/// assert_eq!(waits, [1, 1, 1, 60]);
/// ```
pub trait Curve: Send + Sync + 'static {
    /// The wait before a restart, where `index` is 0 for the first restart in a row.
    ///
    /// Called by the supervisor, so it must not block. If it panics, the child is given up.
    fn delay(&self, index: u32) -> Duration;
}

/// Makes the waits of one row of restarts.
pub(super) type Factory = dyn Fn() -> Box<Waits> + Send + Sync;

/// The waits that are left.
pub(super) type Waits = dyn Iterator<Item = Duration> + Send;

/// How the wait grows. A further curve is a further variant.
#[derive(Clone)]
pub(super) enum Shape {
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
        /// From the wait that was drawn last, and not from the first.
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
    Custom(Arc<dyn Curve>),
    Iterator(Arc<Factory>),
}

impl Shape {
    /// The wait at `index`; not bounded from above, because jitter may come before that. `None` if
    /// there are no more.
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

    /// The first wait, which a hard floor keeps to.
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

    /// The last wait, if its author has said which.
    pub(super) fn max(&self) -> Option<Duration> {
        match self {
            Self::Linear { max, .. }
            | Self::Exponential { max, .. }
            | Self::Geometric { max, .. }
            | Self::Fibonacci { max, .. } => Some(*max),
            Self::Constant(_) | Self::Slots(_) | Self::Custom(_) | Self::Iterator(_) => None,
        }
    }

    /// The wait that the curve ends at, if it can be known.
    pub(super) fn last(&self) -> Option<Duration> {
        match self {
            Self::Constant(delay) => Some(*delay),
            Self::Slots(slots) => Some(slots.longest()),
            _ => self.max(),
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
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
            let advice = "write a ceiling of at least 2 and slots of more than no time";
            return Err(BackoffProblem::new("ceiling", "no wait at all".to_owned(), advice));
        }
        let (Some(min), Some(max)) = (self.min(), self.max()) else { return Ok(()) };
        if min.is_zero() {
            return Err(BackoffProblem::new(
                "min",
                format_duration(min).to_string(),
                "write a first wait above zero, or `Backoff::none()` for no wait at all",
            ));
        }
        if max < min {
            return Err(BackoffProblem::new(
                "max",
                format_duration(max).to_string(),
                &format!("write at least `min`, which is {}", format_duration(min)),
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
                "write in how many steps it gets to `max`, such as 5",
            )),
            _ => Ok(()),
        }
    }
}

/// `min * factor^index`, as long as a wait can be at most, and no shorter than `min`.
///
/// Whole factors are multiplied as integers, so that 200, 400, 800 are exactly that.
fn scaled(min: Duration, factor: f64, index: u32) -> Duration {
    // Also if it is not a number.
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
    // Nothing, however often, is nothing.
    if seconds.is_nan() { Duration::ZERO } else { longest(seconds).max(min) }
}

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// As long as a wait can be at most.
fn longest(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// From `min` to `max` in so many steps, each the same multiple of the one before. systemd's
/// `RestartSteps`.
fn geometric(min: Duration, max: Duration, steps: u32, index: u32) -> Duration {
    if index >= steps {
        return max;
    }
    if index == 0 || min.is_zero() {
        return min;
    }
    let part = f64::from(index) / f64::from(steps);
    let grown = (max.as_secs_f64() / min.as_secs_f64()).powf(part);
    // To the microsecond: 2, 4 and 8 seconds are not to be a nanosecond less.
    let micros = (min.as_secs_f64() * grown * 1e6).round();
    longest(micros / 1e6).max(min).min(max.max(min))
}

/// Each the sum of the two before it: 1, 1, 2, 3, 5, 8.
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

/// Own curves are equal if they are the same.
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
            (Self::Custom(a), Self::Custom(b)) => Arc::ptr_eq(a, b),
            (Self::Iterator(a), Self::Iterator(b)) => Arc::ptr_eq(a, b),
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
