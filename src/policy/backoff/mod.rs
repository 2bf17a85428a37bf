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

mod check;
mod curve;
mod delays;
mod draw;
mod jitter;
mod position;
mod problem;
mod reach;
mod reset;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use self::curve::Curve;
pub(super) use self::curve::Shape;
pub use self::delays::Delays;
pub use self::jitter::Jitter;
pub(crate) use self::position::{CurvePosition, RunningIterator};
pub use self::problem::BackoffProblem;
pub use self::reset::Reset;
pub use self::slots::BinarySlots;
use super::random::{Random, SharedRandom};
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
        Self::with(Shape::Exponential { min, factor: 2.0, max, compounding: false })
    }

    /// Waits `min` before the first restart and `step` longer before each further one, up to `max`.
    ///
    /// The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn linear(min: Duration, step: Duration, max: Duration) -> Self {
        Self::with(Shape::Linear { min, step, max })
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
        Self::with(Shape::Geometric { min, steps, max })
    }

    /// Waits `min` before the first two restarts, and then the sum of the last two delays, up to `max`.
    ///
    /// The default [jitter](Self::jitter) adds up to 20 %.
    #[must_use]
    pub const fn fibonacci(min: Duration, max: Duration) -> Self {
        Self::with(Shape::Fibonacci { min, max })
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
            Shape::Exponential { factor: current, .. } => *current = factor,
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
            Shape::Exponential { compounding, .. } => *compounding = true,
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
}

/// 200 ms, doubling to 30 s, plus up to 20 % jitter.
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(200), Duration::from_secs(30))
    }
}
