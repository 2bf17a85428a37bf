//! Backoff: how long a child waits before it is started again.
//!
//! A [`Backoff`] is a curve, then a jitter, bounds, and rules when to begin again at the curve's
//! start. It turns an index (0 for the first restart in a row) into a wait. It counts nothing,
//! remembers nothing and has no clock and no random numbers of its own: where somebody is on the
//! curve is a [`Place`], and the [`Random`] is an argument, so that a wait is drawn once and then
//! kept by whoever asked.
//!
//! # Invariants
//!
//! 1. [`delay`](Backoff::delay) is total: any index and any values give a wait, or say that there
//!    are no more, also those that [`check`](Backoff::check) refuses.
//! 2. Unless the cap is soft, no wait is longer than the last one; with a hard floor none is
//!    shorter than the first.
//! 3. The curves are told apart in [`Shape`] only, the kinds of jitter in [`Jitter`] only.

mod curve;
mod delays;
mod jitter;
mod place;
mod problem;
mod reach;
mod reset;
mod slots;
mod written;

use std::sync::Arc;
use std::time::Duration;

pub use self::curve::Curve;
use self::curve::Shape;
pub use self::delays::Delays;
pub use self::jitter::Jitter;
pub(crate) use self::place::Place;
pub use self::problem::BackoffProblem;
pub use self::reset::Reset;
pub use self::slots::BinarySlots;
use super::random::Random;

/// The shortest time for which a child has to be active for its backoff to begin again, by default.
const MIN_RESET: Duration = Duration::from_secs(10);

/// How long a child waits before each restart.
///
/// The wait grows with every restart in a row, and begins again when the child has been active for
/// long enough. By default it is 200 ms, doubled each time up to 30 s, with up to 20 % on top (but
/// never more than 30 s), and begins again after 30 s of being active. OTP knows no backoff;
/// [`none`](Self::none) behaves like it.
///
/// A value that makes no sense, such as a `max` below `min`, is reported when the tree is built.
/// Without a tree, [`delays`](Self::delays) gives the waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    shape: Shape,
    jitter: Jitter,
    jitter_first: bool,
    cap: Option<Duration>,
    soft_cap: bool,
    hard_floor: bool,
    first_at_once: bool,
    at_once_after_reset: bool,
    /// Any of them is enough. None: the default.
    resets: Vec<Reset>,
    /// What was said of a curve that has no such thing, kept so that `check` can say so.
    stray: Option<(&'static str, f64)>,
}

impl Backoff {
    /// Waits `min` before the first restart and twice as long before each further one, up to `max`.
    ///
    /// No jitter unless asked for. [`factor`](Self::factor) replaces the 2.
    #[must_use]
    pub const fn exponential(min: Duration, max: Duration) -> Self {
        Self::with(Shape::Exponential { min, factor: 2.0, max, compounding: false })
    }

    /// Waits `min` before the first restart and `step` longer before each further one, up to `max`.
    ///
    /// No jitter unless asked for.
    #[must_use]
    pub const fn linear(min: Duration, step: Duration, max: Duration) -> Self {
        Self::with(Shape::Linear { min, step, max })
    }

    /// Waits `delay` before each restart.
    ///
    /// No jitter unless asked for. With jitter, `delay` is the shortest wait.
    #[must_use]
    pub const fn constant(delay: Duration) -> Self {
        Self::with(Shape::Constant(delay))
    }

    /// Restarts at once, as OTP does.
    ///
    /// Then only the restart intensity stands between a persistent failure and a busy loop, and a
    /// child that can't be started uses it up within microseconds.
    #[must_use]
    pub const fn none() -> Self {
        Self::constant(Duration::ZERO)
    }

    /// Waits `min` before the first restart, `max` from restart `steps` on (counted from 0), and in
    /// between the same multiple of the one before each time. systemd's `RestartSteps`.
    #[must_use]
    pub const fn geometric(min: Duration, max: Duration, steps: u32) -> Self {
        Self::with(Shape::Geometric { min, steps, max })
    }

    /// Waits `min` before the first two restarts, and before each further one as long as before the
    /// last two together, up to `max`.
    #[must_use]
    pub const fn fibonacci(min: Duration, max: Duration) -> Self {
        Self::with(Shape::Fibonacci { min, max })
    }

    /// Waits a random number of slots, out of twice as many each time.
    ///
    /// Where `slots` is by itself makes no difference: a child begins in the first slot.
    #[must_use]
    pub const fn binary_slots(slots: BinarySlots) -> Self {
        Self::with(Shape::Slots(slots))
    }

    /// Waits for what a curve of your own says. There is no longest wait unless
    /// [`cap`](Self::cap) sets one.
    #[must_use]
    pub fn custom(curve: impl Curve) -> Self {
        Self::with(Shape::Custom(Arc::new(curve)))
    }

    /// Waits for what an iterator gives, which is made anew for each row of restarts. When it has
    /// no more, the child is given up.
    ///
    /// For the backoffs of other crates, such as the builders of backon.
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
        Self::with(Shape::Iterator(Arc::new(move || Box::new(factory().into_iter()))))
    }

    const fn with(shape: Shape) -> Self {
        Self {
            shape,
            jitter: Jitter::None,
            jitter_first: false,
            cap: None,
            soft_cap: false,
            hard_floor: false,
            first_at_once: false,
            at_once_after_reset: false,
            resets: Vec::new(),
            stray: None,
        }
    }

    /// Multiplies each wait of an [`exponential`](Self::exponential) backoff by `factor` to get the
    /// next. 2 by default; at least 1.
    ///
    /// The waits are exact if `factor` is a whole number, otherwise within the precision of `f64`.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        match &mut self.shape {
            Shape::Exponential { factor: current, .. } => *current = factor,
            _ => self.stray = Some(("factor", factor)),
        }
        self
    }

    /// Computes each wait of an [`exponential`](Self::exponential) backoff from the one that was
    /// drawn last, jitter included, and not from the first. client-go.
    ///
    /// A change of the settings then goes on from the last wait.
    #[must_use]
    pub fn compounding(mut self) -> Self {
        match &mut self.shape {
            Shape::Exponential { compounding, .. } => *compounding = true,
            _ => self.stray = Some(("compounding", 1.0)),
        }
        self
    }

    /// Spreads each wait by chance, so that children which failed together don't come back
    /// together. A number is a [`Jitter::Additive`]: from nothing to this fraction of the wait, on
    /// top of it.
    ///
    /// Whatever the jitter, no wait is longer than `max`: what would go beyond it is cut off,
    /// unless there is a [`soft_cap`](Self::soft_cap). A [`constant`](Self::constant) backoff has
    /// no `max`.
    #[must_use]
    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.jitter = jitter.into();
        self
    }

    /// Spreads the wait first and limits it to `max` then. By default it is limited first, so that
    /// long waits are spread, too.
    ///
    /// It makes a difference for a jitter that makes waits shorter, or with
    /// [`soft_cap`](Self::soft_cap).
    #[must_use]
    pub const fn jitter_before_cap(mut self) -> Self {
        self.jitter_first = true;
        self
    }

    /// Sets the longest wait, for a curve that has none, or a shorter one.
    #[must_use]
    pub const fn cap(mut self, max: Duration) -> Self {
        self.cap = Some(max);
        self
    }

    /// Lets the jitter go beyond the longest wait. actor-ts and Pekko.
    #[must_use]
    pub const fn soft_cap(mut self) -> Self {
        self.soft_cap = true;
        self
    }

    /// Keeps the jitter from making a wait shorter than the first one of the curve.
    #[must_use]
    pub const fn hard_floor(mut self) -> Self {
        self.hard_floor = true;
        self
    }

    /// Begins again at the first wait once a child has been active for at least `active`; short for
    /// [`reset`](Self::reset) with [`Reset::ActiveFor`].
    ///
    /// By default the longest wait without jitter, but not less than 10 s: a child that runs for
    /// shorter than it was waited for hasn't recovered. With zero, becoming active is enough.
    #[must_use]
    pub fn reset_after(self, active: Duration) -> Self {
        self.reset(Reset::ActiveFor(active))
    }

    /// Says when the backoff begins again. Called several times, any of the rules is enough.
    #[must_use]
    pub fn reset(mut self, rule: Reset) -> Self {
        self.resets.push(rule);
        self
    }

    /// Restarts at once when a child fails for the first time, and begins the curve after that.
    /// kubelet.
    ///
    /// It doubles the first blow to whatever is broken. The restart counts like any other.
    #[must_use]
    pub const fn first_at_once(mut self) -> Self {
        self.first_at_once = true;
        self
    }

    /// Restarts at once after each reset, that is when a child fails that was well before, and
    /// begins the curve after that. kubelet and elfo.
    #[must_use]
    pub const fn at_once_after_reset(mut self) -> Self {
        self.at_once_after_reset = true;
        self
    }

    /// The wait before a restart, where `index` is 0 for the first restart in a row. `None` if
    /// there are no more waits, and the child is to be given up.
    ///
    /// Draws from `random` at most once, and only if there is something to draw. A
    /// [`compounding`](Self::compounding) backoff takes the wait before to be the one without
    /// jitter.
    pub fn delay(&self, index: u32, random: &mut dyn Random) -> Option<Duration> {
        let previous = index.checked_sub(1).and_then(|before| self.base(before));
        self.bounded(self.shape.at(index, previous, random)?, random)
    }

    /// All waits in order, for a loop of your own.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::Backoff;
    ///
    /// let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(1));
    /// let waits: Vec<_> = backoff.delays().take(4).map(|wait| wait.as_millis()).collect();
    /// assert_eq!(waits, [200, 400, 800, 1_000]);
    /// ```
    pub fn delays(&self) -> Delays {
        Delays::new(self.clone())
    }

    /// The next wait of somebody who is at `place`, and goes on.
    pub(crate) fn next_wait(&self, place: &mut Place, random: &mut dyn Random) -> Option<Duration> {
        let base = match &self.shape {
            Shape::Iterator(factory) => place.advance(|| factory())?,
            shape => shape.at(place.index, place.previous, random)?,
        };
        let wait = self.bounded(base, random)?;
        place.previous = Some(wait);
        place.index = place.index.saturating_add(1);
        Some(wait)
    }

    /// The first wait, without jitter.
    pub(crate) fn first_wait(&self) -> Duration {
        self.base(0).unwrap_or_default()
    }

    /// Makes a wait longer that isn't on the curve, by the jitter.
    pub(crate) fn spread(&self, wait: Duration, random: &mut dyn Random) -> Duration {
        self.jitter.apply(wait, random).max(wait)
    }

    fn bounded(&self, base: Duration, random: &mut dyn Random) -> Option<Duration> {
        // Nothing makes it longer, nor can anything make it shorter.
        if base.is_zero() && !matches!(self.jitter, Jitter::AdditiveAbs(_)) && !self.hard_floor {
            return Some(base);
        }
        let cap = self.longest_wait().unwrap_or(Duration::MAX);
        let base = if self.jitter_first { base } else { base.min(cap) };
        let mut wait = self.jitter.apply(base, random);
        if self.hard_floor {
            wait = wait.max(self.shape.min().unwrap_or_default());
        }
        Some(if self.soft_cap { wait } else { wait.min(cap) })
    }

    /// The wait without jitter, as if nothing had been drawn before.
    fn base(&self, index: u32) -> Option<Duration> {
        let cap = self.longest_wait().unwrap_or(Duration::MAX);
        let wait = match &self.shape {
            Shape::Exponential { min, factor, max, .. } => {
                let (min, factor, max) = (*min, *factor, *max);
                let plain = Shape::Exponential { min, factor, max, compounding: false };
                plain.at(index, None, &mut || 0.0)
            }
            shape => shape.at(index, None, &mut || 0.0),
        };
        wait.map(|wait| wait.min(cap))
    }

    /// The bound of all waits, unless the cap is soft.
    fn longest_wait(&self) -> Option<Duration> {
        shorter(self.shape.max(), self.cap)
    }

    /// The wait that the curve ends at, without jitter, if that can be known.
    fn last(&self) -> Option<Duration> {
        shorter(self.shape.last(), self.cap)
    }

    /// Whether a child that fails for the first time is restarted at once; `well` if it was active
    /// for long enough before.
    pub(crate) const fn is_at_once(&self, well: bool) -> bool {
        if well { self.at_once_after_reset } else { self.first_at_once }
    }

    /// For how long a child has to be active for its next failure to begin at index 0 again;
    /// `None`: however long, it doesn't.
    #[inline]
    pub(crate) fn resets_after(&self) -> Option<Duration> {
        if self.resets.is_empty() {
            return Some(self.last().unwrap_or_default().max(MIN_RESET));
        }
        let lives = self.resets.iter().filter_map(|rule| match rule {
            Reset::ActiveFor(life) => Some(*life),
            _ => None,
        });
        lives.min()
    }

    /// Whether this rule is one of those that were set.
    pub(crate) fn resets_on(&self, rule: Reset) -> bool {
        self.resets.contains(&rule)
    }

    /// After how long of being active half of what was counted is left.
    pub(crate) fn half_life(&self) -> Option<Duration> {
        let half_lives = self.resets.iter().filter_map(|rule| match rule {
            Reset::Decay { half_life } => Some(*half_life),
            _ => None,
        });
        half_lives.min()
    }

    /// Refuses values without a meaning.
    ///
    /// # Errors
    ///
    /// Names the first field that makes no sense, its value, and what to write instead.
    pub(crate) fn check(&self) -> Result<(), BackoffProblem> {
        self.shape.check()?;
        if let Some((field, value)) = self.stray {
            let advice =
                format!("leave it out, or use `Backoff::exponential`, the only one that has {}", {
                    if field == "factor" { "a factor" } else { "waits to compound" }
                });
            return Err(BackoffProblem::new(field, value.to_string(), &advice));
        }
        if self.cap.is_some_and(|cap| self.shape.min().is_some_and(|min| cap < min)) {
            let advice = "write at least the first wait";
            let cap = self.cap.unwrap_or_default();
            let cap = humantime_serde::re::humantime::format_duration(cap).to_string();
            return Err(BackoffProblem::new("cap", cap, advice));
        }
        if self.half_life().is_some_and(|half_life| half_life.is_zero()) {
            let advice = "write how long it takes until half is forgotten, such as 30 s";
            return Err(BackoffProblem::new("half_life", "0s".to_owned(), advice));
        }
        if self.resets_on(Reset::Never) && self.resets.len() > 1 {
            let advice = "remove it, or the other rules";
            return Err(BackoffProblem::new(
                "reset",
                "never, and something else".to_owned(),
                advice,
            ));
        }
        self.jitter.check()
    }
}

/// The shorter of what there is of two. Asked with each end of a child, where two iterators put
/// together were 60 instructions.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// 200 ms, doubled up to 30 s, with a jitter of 0.2.
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(200), Duration::from_secs(30)).jitter(0.2)
    }
}

#[cfg(test)]
mod tests;
