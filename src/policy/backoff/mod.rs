//! Backoff: the delay before each restart of a child.
//!
//! A [`Backoff`] is a curve, then a jitter, bounds, and rules for when it resets to the first delay.
//! It maps an index (0 for the first restart in a row) to a delay. It has no state, no clock and no
//! random numbers: the [`CurvePosition`] of a child and the [`Random`](super::Random) source are
//! arguments.
//!
//! # Invariants
//!
//! 1. The delays are total: for any index and any values, even those that [`check`](Backoff::check)
//!    refuses, there is a delay or the end of the delays. Public methods panic for the refused values.
//! 2. Unless the cap is soft, no delay is longer than the last one of the curve. With a hard floor,
//!    none is shorter than the first.
//! 3. Only [`Shape`] distinguishes the curves, and only [`Jitter`] the kinds of jitter.

mod curve;
mod draw;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use self::curve::{Curve, Jitter};
pub(super) use self::curve::{Growth, Shape};
pub use self::draw::Delays;
pub(crate) use self::draw::{CurvePosition, RunningIterator};
pub use self::slots::BinarySlots;
use super::random::{Random, SharedRandom};
use crate::human_duration::HumanDuration;
use crate::panic::Foreign;

/// The delay before each restart of a child.
///
/// The delay grows with every restart in a row, and resets when the child was active for long
/// enough. By default it is 200 ms, doubling to 30 s, plus up to 20 % jitter (but never more than
/// 30 s), and resets after 30 s of being active. OTP has no backoff; [`none`](Self::none) behaves
/// like it.
///
/// Outside of a tree, [`delays`](Self::delays) iterates over the delays.
///
/// An invalid value, such as a `max` below `min`, is an error when the tree is built. Outside of a tree,
/// [`check`](Self::check) returns that error, and `delays` panics.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Backoff;
/// use verger::policy::Jitter;
///
/// let (min, max) = (Duration::from_millis(100), Duration::from_secs(1));
/// let backoff = Backoff::exponential(min, max).jitter(Jitter::None);
///
/// let waits: Vec<_> = backoff.delays().take(5).map(|wait| wait.as_millis()).collect();
/// assert_eq!(waits, [100, 200, 400, 800, 1000]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    pub(super) shape: Shape,
    pub(super) jitter: Jitter,
    pub(super) jitter_first: bool,
    pub(super) cap: Option<Duration>,
    pub(super) soft_cap: bool,
    pub(super) hard_floor: bool,
    pub(super) first_at_once: bool,
    pub(super) at_once_after_reset: bool,
    /// Any of these rules resets the backoff. Empty: the default rule.
    pub(super) resets: Vec<Reset>,
    /// `None`: the source of the supervisor, or of the call.
    random: Option<SharedRandom>,
    /// A parameter that the curve doesn't have, kept for the error of `check`.
    stray: Option<(&'static str, f64)>,
}

impl Backoff {
    /// Waits `min` before the first restart and twice as long before each further one, up to `max`.
    ///
    /// [`factor`](Self::factor) replaces the 2. The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn exponential(min: Duration, max: Duration) -> Self {
        Self::with(Shape::Growing {
            min,
            max,
            growth: Growth::Exponential { factor: 2.0, compounding: false },
        })
    }

    /// Waits `min` before the first restart and `step` longer before each further one, up to `max`.
    ///
    /// The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn linear(min: Duration, step: Duration, max: Duration) -> Self {
        Self::with(Shape::Growing { min, max, growth: Growth::Linear { step } })
    }

    /// Waits `delay` before each restart.
    ///
    /// There is no jitter unless [`jitter`](Self::jitter) sets one. With additive jitter, `delay` is the
    /// shortest delay.
    #[must_use]
    pub const fn constant(delay: Duration) -> Self {
        Self::with(Shape::Constant(delay))
    }

    /// Restarts without a delay, as OTP does.
    ///
    /// Then only the restart limit stops a child that fails persistently. A child that can't start
    /// exceeds it almost at once.
    #[must_use]
    pub const fn none() -> Self {
        Self::constant(Duration::ZERO)
    }

    /// Grows from `min` to `max` in `steps` steps, each by the same factor.
    ///
    /// The first delay is `min`, and the delay is `max` from restart `steps` on (counted from 0). This
    /// is systemd's `RestartSteps`. The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn geometric(min: Duration, max: Duration, steps: u32) -> Self {
        Self::with(Shape::Growing { min, max, growth: Growth::Geometric { steps } })
    }

    /// Waits `min` before the first two restarts, and then the sum of the last two delays, up to `max`.
    ///
    /// The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn fibonacci(min: Duration, max: Duration) -> Self {
        Self::with(Shape::Growing { min, max, growth: Growth::Fibonacci })
    }

    /// Waits a random number of slots; the range doubles with each restart.
    ///
    /// The state of `slots` has no effect: a child starts in the first slot.
    #[must_use]
    pub const fn binary_slots(slots: BinarySlots) -> Self {
        Self::with(Shape::Slots(slots))
    }

    /// Waits as long as a custom curve returns.
    ///
    /// The delays have no upper bound unless [`cap`](Self::cap) sets one.
    #[must_use]
    pub fn custom(curve: impl Curve) -> Self {
        Self::with(Shape::Custom(Foreign::new(Arc::new(curve))))
    }

    /// Waits as long as an iterator returns. The child is given up when the iterator ends.
    ///
    /// `factory` creates a new iterator after each reset. Use it for the backoffs of other crates, such
    /// as the builders of backon.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    ///
    /// let thrice = Backoff::iter(|| (1..=3).map(Duration::from_secs));
    /// let waits: Vec<_> = thrice.delays().map(|wait| wait.as_secs()).collect();
    /// assert_eq!(waits, [1, 2, 3]);
    /// ```
    #[must_use]
    pub fn iter<I>(factory: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = Duration>,
        I::IntoIter: Send + 'static,
    {
        Self::with(Shape::Iterator(Foreign::new(Arc::new(move || Box::new(factory().into_iter())))))
    }

    /// Creates a backoff with this curve, its default jitter, and nothing else.
    pub(super) const fn with(shape: Shape) -> Self {
        Self {
            jitter: shape.default_jitter(),
            shape,
            jitter_first: false,
            cap: None,
            soft_cap: false,
            hard_floor: false,
            first_at_once: false,
            at_once_after_reset: false,
            resets: Vec::new(),
            random: None,
            stray: None,
        }
    }

    /// Sets the factor of an [`exponential`](Self::exponential) backoff. Default: 2. At least 1.
    ///
    /// Delays are exact if `factor` is a whole number, and otherwise within the precision of `f64`.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        match &mut self.shape {
            Shape::Growing { growth: Growth::Exponential { factor: current, .. }, .. } => {
                *current = factor
            }
            _ => self.stray = Some(("factor", factor)),
        }
        self
    }

    /// Computes each delay of an [`exponential`](Self::exponential) backoff from the previous one,
    /// jitter included.
    ///
    /// By default it is computed from the first delay. This is the rule of client-go. If the settings
    /// change, the delays continue from the previous one.
    #[must_use]
    pub fn compounding(mut self) -> Self {
        match &mut self.shape {
            Shape::Growing { growth: Growth::Exponential { compounding, .. }, .. } => {
                *compounding = true
            }
            _ => self.stray = Some(("compounding", 1.0)),
        }
        self
    }

    /// Sets the jitter, which keeps children that failed together from restarting together.
    ///
    /// Curves that grow ([`exponential`](Self::exponential), [`linear`](Self::linear),
    /// [`geometric`](Self::geometric), [`fibonacci`](Self::fibonacci)) have `0.2` by default. All other
    /// curves have none. [`Jitter::None`] and `0.0` remove the jitter.
    ///
    /// A number is [`Jitter::Additive`]: it adds up to this fraction of the delay. No delay exceeds
    /// `max` unless there is a [`soft_cap`](Self::soft_cap). A [`constant`](Self::constant) backoff has
    /// no `max`.
    #[must_use]
    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.jitter = jitter.into();
        self
    }

    /// Applies the jitter before the delay is limited to `max`.
    ///
    /// By default the delay is limited first, so that long delays have jitter as well. The order matters
    /// for a jitter that shortens delays, and with [`soft_cap`](Self::soft_cap).
    #[must_use]
    pub const fn jitter_before_cap(mut self) -> Self {
        self.jitter_first = true;
        self
    }

    /// Sets the longest delay, for a curve without one, or below that of the curve.
    #[must_use]
    pub const fn cap(mut self, max: Duration) -> Self {
        self.cap = Some(max);
        self
    }

    /// Allows the jitter to exceed the longest delay, as in actor-ts and Pekko.
    #[must_use]
    pub const fn soft_cap(mut self) -> Self {
        self.soft_cap = true;
        self
    }

    /// Keeps the jitter from making a delay shorter than the first one of the curve.
    #[must_use]
    pub const fn hard_floor(mut self) -> Self {
        self.hard_floor = true;
        self
    }

    /// Sets the source of the random numbers for jitter and for [binary slots](Self::binary_slots).
    /// Default: the source of the supervisor, or a generator with a fresh seed.
    ///
    /// Clones of the backoff share the source. It takes precedence over
    /// [`SupervisorBuilder::random`](crate::SupervisorBuilder::random). The serialised form does not
    /// have it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    ///
    /// let mut drawn = [0.0, 0.5].into_iter().cycle();
    /// let backoff = Backoff::constant(Duration::from_secs(1))
    ///     .jitter(0.2)
    ///     .random(move || drawn.next().unwrap_or_default());
    /// let waits: Vec<_> = backoff.delays().take(3).map(|wait| wait.as_millis()).collect();
    /// assert_eq!(waits, [1_000, 1_100, 1_000]);
    /// ```
    #[must_use]
    pub fn random(mut self, source: impl Random + 'static) -> Self {
        self.random = Some(SharedRandom::new(source));
        self
    }

    /// Resets the backoff when the child was active for at least `active`.
    ///
    /// Short for [`reset`](Self::reset) with [`Reset::ActiveFor`]. Default: the longest delay without
    /// jitter, but at least 10 s. With zero, becoming active is enough.
    #[must_use]
    pub fn reset_after(self, active: Duration) -> Self {
        self.reset(Reset::ActiveFor(active))
    }

    /// Adds a rule for when the backoff resets.
    ///
    /// If it is called several times, any of the rules resets the backoff.
    #[must_use]
    pub fn reset(mut self, rule: Reset) -> Self {
        self.resets.push(rule);
        self
    }

    /// Restarts a child without a delay when it fails for the first time, and then follows the curve.
    ///
    /// This is the kubelet's rule. It doubles the initial load on a failed dependency. The restart is
    /// charged like any other.
    #[must_use]
    pub const fn first_at_once(mut self) -> Self {
        self.first_at_once = true;
        self
    }

    /// Restarts a child without a delay after each reset, and then follows the curve.
    ///
    /// This is the rule of the kubelet and of elfo.
    #[must_use]
    pub const fn at_once_after_reset(mut self) -> Self {
        self.at_once_after_reset = true;
        self
    }

    /// Checks the values: `min` is above zero, `max` isn't below it, a jitter is from 0 to 1, and so on.
    ///
    /// A tree checks its backoffs when it is built, a file is checked when it is read, and
    /// `resilience::retry` checks its backoff before the first call. Outside of these,
    /// [`delays`](Self::delays) and [`delay`](Self::delay) panic if a value is invalid. Call this first if
    /// the values come from outside of the program.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    ///
    /// let backoff = Backoff::exponential(Duration::from_secs(9), Duration::from_secs(1));
    /// let problem = backoff.check().unwrap_err();
    /// assert_eq!(
    ///     problem.to_string(),
    ///     "`max` of the backoff is 1s; write at least `min`, which is 9s",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`BackoffProblem`] that names the first invalid value and what to write instead.
    pub fn check(&self) -> Result<(), BackoffProblem> {
        self.shape.check()?;
        if let Some((field, value)) = self.stray {
            let advice = "leave it out, or use `Backoff::exponential`, the only curve that has it";
            return Err(BackoffProblem::new(field, value.to_string(), advice));
        }
        if let (Some(cap), Some(min)) = (self.cap, self.shape.min())
            && cap < min
        {
            let cap = HumanDuration(cap).to_string();
            return Err(BackoffProblem::new("cap", cap, "write at least the first delay"));
        }
        if self.half_life().is_some_and(|half_life| half_life.is_zero()) {
            let advice =
                "write the time after which half of the failures are forgotten, such as 30s";
            return Err(BackoffProblem::new("half_life", "0s".to_owned(), advice));
        }
        if self.resets_on(Reset::Never) && self.resets.len() > 1 {
            let (value, advice) =
                ("`never` with other rules", "remove `never`, or the other rules");
            return Err(BackoffProblem::new("reset", value.to_owned(), advice));
        }
        self.jitter.check()
    }
}

/// 200 ms, doubling to 30 s, plus up to 20 % jitter.
/// [`constant`](Backoff::constant).
impl From<Duration> for Backoff {
    fn from(delay: Duration) -> Self {
        Self::constant(delay)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(200), Duration::from_secs(30))
    }
}

/// A rule for when the backoff of a child resets to its first delay.
///
/// A reset also starts the count of consecutive failures again. The time for which a child was active
/// is measured from its readiness to its exit. It is evaluated when the child fails, and for the
/// status.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Backoff;
/// use verger::policy::Reset;
///
/// let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(30));
/// // The first delay again, after a failure that follows 10 minutes of work.
/// let backoff = backoff.reset(Reset::ActiveFor(Duration::from_secs(600)));
/// # drop(backoff);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Never resets, not even by [`report_healthy`](crate::Context::report_healthy).
    ///
    /// It can't be combined with other rules.
    Never,
    /// Resets only by [`report_healthy`](crate::Context::report_healthy), as Pekko's manual reset.
    ///
    /// With every other rule except `Never`, this call resets the backoff as well.
    Manual,
    /// Resets when the child was active for at least this time.
    ActiveFor(Duration),
    /// Resets when the child becomes ready.
    ///
    /// Use it for children that signal readiness. A child that is ready when it is spawned would reset
    /// at each start.
    OnReady,
    /// Resets when the child acknowledges a message, and its mailbox has no
    /// message left that failed before.
    OnAck,
    /// Halves the number of counted failures with each `half_life` for which the child was active.
    Decay {
        /// The time after which half of the failures are forgotten.
        half_life: Duration,
    },
}

/// The reason why a [`Backoff`](crate::Backoff) is invalid, with what to write instead.
///
/// [`Backoff::check`](crate::Backoff::check) returns it, and so do the errors of trees and retries:
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, BuildError, Supervisor};
///
/// let backoff = Backoff::constant(Duration::from_secs(1)).jitter(-0.5);
/// let db = verger::worker("db", async |_| {}).backoff(backoff);
/// let error = Supervisor::builder("app").child(db).build().unwrap_err();
///
/// let BuildError::BadBackoff { path, problem } = error else { panic!("{error}") };
/// println!("{path}: {problem}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of the backoff is {value}; {advice}")]
pub struct BackoffProblem {
    field: &'static str,
    value: String,
    advice: String,
}

impl BackoffProblem {
    pub(super) fn new(field: &'static str, value: String, advice: &str) -> Self {
        Self { field, value, advice: advice.to_owned() }
    }
}
