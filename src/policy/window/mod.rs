//! Restart limits over time, and the windows that count restarts for them.
//!
//! An [`Intensity`] is a limit. A [`RestartWindow`] counts the restarts, over instants that the caller passes in. It never
//! reads a clock, so a test can place restarts exactly at an edge.
//!
//! # Invariants
//!
//! 1. A restart is recorded only if it was allowed. A sliding window keeps at most `max` instants,
//!    oldest first, or as many as it had when `max` was lowered. All other kinds keep one number.
//! 2. No call looks at more than three instants, except [`count`](RestartWindow::count), which
//!    is a binary search. Instants are copied only when the buffer grows or shrinks.
//! 3. The capacity is never larger than `max`, and it shrinks again after a burst.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crate::human_duration::HumanDuration;

/// A restart limit: how many restarts are allowed in which time.
///
/// It limits all children of a supervisor together
/// ([`SupervisorBuilder::intensity`](crate::SupervisorBuilder::intensity)), or one child
/// ([`ChildSpec::intensity`](crate::ChildSpec::intensity)). Exactly that many restarts are allowed.
/// The next one is refused, and a refused restart doesn't count. A maximum of 0 allows none.
///
/// With a period of [`Duration::MAX`], a restart counts forever. To allow any number of restarts,
/// set no limit.
///
/// ```
/// use std::time::Duration;
/// use verger::policy::Intensity;
/// use verger::{Supervisor, worker};
///
/// let minute = Duration::from_secs(60);
/// let db = worker("db", async |ctx| ctx.cancelled().await);
/// let app = Supervisor::builder("app")
///     .intensity(Intensity::decaying(5.0, Duration::from_secs(30)))
///     .child(db.intensity(Intensity::tumbling(3, minute)))
///     .build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
///
/// In a file it is a table: `{ max = 5, period = "60s" }`, the same with `window = "tumbling"`, or
/// `{ max = 5.0, half_life = "30s" }`. `period = "infinity"` is `Duration::MAX`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intensity(pub(super) WindowKind);

/// The way in which restarts expire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WindowKind {
    /// Each restart expires when it is older than the period.
    Sliding { max: u32, period: Duration },
    /// All restarts expire together, at the end of a period that began with the first of them.
    Tumbling { max: u32, period: Duration },
    /// A score decays exponentially.
    Decaying { max: f64, half_life: Duration },
}

impl Intensity {
    /// Allows `max` restarts within any `period`. The default kind, and OTP's.
    ///
    /// A restart that is exactly `period` old still counts.
    #[must_use]
    pub const fn sliding(max: u32, period: Duration) -> Self {
        Self(WindowKind::Sliding { max, period })
    }

    /// Allows `max` restarts within a `period` that begins with the first of them.
    ///
    /// The first restart after the period begins the next one. Up to twice `max` restarts can occur
    /// around the end of a period. This is the window of Akka and Pekko.
    #[must_use]
    pub const fn tumbling(max: u32, period: Duration) -> Self {
        Self(WindowKind::Tumbling { max, period })
    }

    /// Allows a restart as long as a score stays at or below `max`.
    ///
    /// Each restart adds 1 to the score, which halves every `half_life`. A burst counts for a long
    /// time, but a steady trickle never adds up: one restart every `half_life` leads to a score of 2.
    /// This is suture's rule. `max` can be a fraction.
    #[must_use]
    pub const fn decaying(max: f64, half_life: Duration) -> Self {
        Self(WindowKind::Decaying { max, half_life })
    }

    /// The number of restarts that are allowed at one instant.
    pub(crate) fn max(self) -> u32 {
        match self.0 {
            WindowKind::Sliding { max, .. } | WindowKind::Tumbling { max, .. } => max,
            // The cast saturates, and NaN becomes 0.
            WindowKind::Decaying { max, .. } => max as u32,
        }
    }

    /// The period, or the half-life of a score.
    pub(crate) fn period(self) -> Duration {
        match self.0 {
            WindowKind::Sliding { period, .. } | WindowKind::Tumbling { period, .. } => period,
            WindowKind::Decaying { half_life, .. } => half_life,
        }
    }

    /// The maximum and the half-life of a score.
    pub(crate) fn decay(self) -> Option<(f64, Duration)> {
        match self.0 {
            WindowKind::Decaying { max, half_life } => Some((max, half_life)),
            WindowKind::Sliding { .. } | WindowKind::Tumbling { .. } => None,
        }
    }

    /// Whether the window is a sliding one.
    pub(crate) fn slides(self) -> bool {
        matches!(self.0, WindowKind::Sliding { .. })
    }

    /// Whether the window is a tumbling one.
    #[cfg(test)]
    pub(crate) fn tumbles(self) -> bool {
        matches!(self.0, WindowKind::Tumbling { .. })
    }

    /// The limit in the words of a log line: `5 in 1m`.
    pub(crate) fn in_words(self) -> String {
        match self.0 {
            WindowKind::Sliding { max, period } | WindowKind::Tumbling { max, period } => {
                format!("{max} in {}", time(period))
            }
            WindowKind::Decaying { max, half_life } => {
                format!("score {max}, half-life {}", time(half_life))
            }
        }
    }

    /// The maximum of a score, if it is negative, infinite or NaN.
    pub(crate) fn invalid_max(self) -> Option<f64> {
        self.decay().map(|(max, _)| max).filter(|max| !(max.is_finite() && *max >= 0.0))
    }
}

/// Writes the call that creates the value: `restarts(5, 1m)`, `tumbling(5, 1m)`, `decaying(3.5, 30s)`.
impl fmt::Display for Intensity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WindowKind::Sliding { max, period } => write!(f, "restarts({max}, {})", time(period)),
            WindowKind::Tumbling { max, period } => write!(f, "tumbling({max}, {})", time(period)),
            WindowKind::Decaying { max, half_life } => {
                write!(f, "decaying({max}, {})", time(half_life))
            }
        }
    }
}

fn time(duration: Duration) -> String {
    match duration {
        Duration::MAX => "Duration::MAX".to_owned(),
        _ => HumanDuration(duration).to_string(),
    }
}

/// A buffer of up to this capacity is never shrunk.
const SMALL: usize = 8;

/// The restarts that were allowed and haven't expired.
///
/// OTP counts in whole seconds, so a restart can count there for up to a second longer. This window
/// is exact.
#[derive(Clone, Debug)]
pub(crate) struct RestartWindow {
    intensity: Intensity,
    /// The restarts in a sliding window, oldest first.
    granted: VecDeque<Instant>,
    /// For all other kinds: the start of the count (or its last update), and the count.
    counted: Option<(Instant, f64)>,
}

impl RestartWindow {
    /// Creates an empty window.
    pub(crate) fn new(intensity: Intensity) -> Self {
        Self { intensity, granted: VecDeque::new(), counted: None }
    }

    /// Changes the intensity at `now`. The restarts so far still count, as far as the new one counts
    /// restarts of that age.
    pub(crate) fn set_intensity(&mut self, intensity: Intensity, now: Instant) {
        if self.intensity == intensity {
            return;
        }
        let used = self.count(now);
        let is_sliding =
            |kind| matches!(kind, WindowKind::Sliding { period, .. } if period != Duration::MAX);
        let keeps_instants = is_sliding(self.intensity.0) && is_sliding(intensity.0);
        self.intensity = intensity;
        // A sliding window keeps all, so that a limit that is raised again still counts them.
        if is_sliding(intensity.0) && !keeps_instants {
            let used = used.min(places(intensity.max()));
            (self.granted, self.counted) = (std::iter::repeat_n(now, used).collect(), None);
        } else if !keeps_instants {
            let counted = (used > 0).then_some((now, used as f64));
            (self.granted, self.counted) = (VecDeque::new(), counted);
        }
    }

    pub(crate) fn intensity(&self) -> Intensity {
        self.intensity
    }

    /// Decides whether a restart is allowed at `now`, and records it if so.
    ///
    /// `max` restarts are allowed and the next one is refused. A restart that is exactly `period` old
    /// still counts, as in OTP. A refusal isn't recorded. An instant before the latest restart is
    /// treated as that instant.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let admitted = self.admits(now);
        if admitted {
            self.record(now);
        }
        admitted
    }

    /// Returns whether a restart is allowed at `now`, without recording it.
    #[must_use]
    pub(crate) fn admits(&self, now: Instant) -> bool {
        match self.intensity.0 {
            WindowKind::Sliding { max, period } if period != Duration::MAX => {
                let now = self.granted.back().map_or(now, |&last| now.max(last));
                // A full queue has room if its oldest restart has expired.
                let expired = |&at: &Instant| self.has_expired(at, now);
                match self.granted.len().cmp(&places(max)) {
                    Less => true,
                    Equal => self.granted.front().is_some_and(expired),
                    // The limit was lowered.
                    Greater => self.count(now) < places(max),
                }
            }
            WindowKind::Sliding { max, .. } | WindowKind::Tumbling { max, .. } => {
                self.score(now) < f64::from(max)
            }
            WindowKind::Decaying { max, .. } => max - self.score(now) >= 1.0,
        }
    }

    /// Records a restart at `now`.
    #[inline]
    pub(crate) fn record(&mut self, now: Instant) {
        match self.intensity.0 {
            WindowKind::Sliding { max, period } if period != Duration::MAX => {
                self.slide(now, places(max), period);
            }
            WindowKind::Sliding { .. } | WindowKind::Tumbling { .. } => {
                let score = self.score(now);
                let began = self.counted.filter(|_| score > 0.0).map_or(now, |(began, _)| began);
                self.counted = Some((began, score + 1.0));
            }
            WindowKind::Decaying { .. } => {
                let score = self.score(now);
                let at = self.counted.map_or(now, |(at, _)| at.max(now));
                self.counted = Some((at, score + 1.0));
            }
        }
    }

    /// Returns how many of the allowed restarts are used up at `now`.
    ///
    /// All of them are used up exactly if the next restart would be refused.
    pub(crate) fn count(&self, now: Instant) -> usize {
        match self.intensity.0 {
            WindowKind::Sliding { period, .. } if period != Duration::MAX => {
                let expired = self.granted.partition_point(|&at| self.has_expired(at, now));
                self.granted.len() - expired
            }
            WindowKind::Sliding { .. } | WindowKind::Tumbling { .. } => self.score(now) as usize,
            WindowKind::Decaying { max, .. } => {
                let left = (max - self.score(now)).max(0.0) as usize;
                places(self.intensity.max()).saturating_sub(left)
            }
        }
    }

    /// Returns whether this is a window for `intensity`.
    pub(crate) fn counts(&self, intensity: Intensity) -> bool {
        self.intensity == intensity
    }

    /// Returns the time for which a restart counts, or the half-life of a score.
    pub(crate) fn period(&self) -> Duration {
        self.intensity.period()
    }

    /// Lists the restarts in a sliding window that count at `now`, the oldest first.
    pub(crate) fn granted(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.granted.iter().copied().filter(move |&at| !self.has_expired(at, now))
    }

    /// Returns the age and the value of the count at `now`, for all other kinds.
    #[cfg(test)]
    pub(crate) fn counted(&self, now: Instant) -> Option<(Duration, f64)> {
        let (began, _) = self.counted?;
        let score = self.score(now);
        let age = match self.intensity.0 {
            WindowKind::Tumbling { period, .. } if period != Duration::MAX => {
                now.saturating_duration_since(began)
            }
            WindowKind::Sliding { .. }
            | WindowKind::Tumbling { .. }
            | WindowKind::Decaying { .. } => Duration::ZERO,
        };
        (score > 0.0).then_some((age, score))
    }

    /// Returns the count at `now`.
    fn score(&self, now: Instant) -> f64 {
        let Some((at, score)) = self.counted else { return 0.0 };
        match self.intensity.0 {
            WindowKind::Sliding { .. } => score,
            WindowKind::Tumbling { .. } if self.has_expired(at, now) => 0.0,
            WindowKind::Tumbling { .. } => score,
            WindowKind::Decaying { half_life, .. } => score * remains(at, now, half_life),
        }
    }

    fn has_expired(&self, at: Instant, now: Instant) -> bool {
        is_past(at, self.period(), now)
    }

    fn slide(&mut self, now: Instant, max: usize, period: Duration) {
        let now = self.granted.back().map_or(now, |&last| now.max(last));
        // Each call adds at most one instant, so removing two shrinks the queue. An expired instant
        // that is left has no effect, because only a full queue refuses.
        for _ in 0..2 {
            if !self.granted.front().is_some_and(|&at| is_past(at, period, now)) {
                break;
            }
            self.granted.pop_front();
        }
        self.give_back_room();
        self.make_room(max);
        self.granted.push_back(now);
    }

    /// Doubles a full buffer, up to `max`.
    fn make_room(&mut self, max: usize) {
        let len = self.granted.len();
        if len == self.granted.capacity() {
            self.granted.reserve_exact(len.max(SMALL / 2).min(max.saturating_sub(len)));
        }
    }

    /// Halves a buffer that is at most a quarter full.
    fn give_back_room(&mut self) {
        let room = self.granted.capacity();
        if room > SMALL && self.granted.len() <= room / 4 {
            self.granted.shrink_to(room / 2);
        }
    }
}

/// Whether `at` is more than `period` before `now`.
fn is_past(at: Instant, period: Duration, now: Instant) -> bool {
    at.checked_add(period).is_some_and(|end| end < now)
}

fn places(max: u32) -> usize {
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// Returns what remains at `now` of a restart at `at`.
pub(super) fn remains(at: Instant, now: Instant, half_life: Duration) -> f64 {
    decayed(now.saturating_duration_since(at), half_life)
}

/// Returns what remains of a restart after `age`.
pub(super) fn decayed(age: Duration, half_life: Duration) -> f64 {
    if half_life == Duration::MAX || age.is_zero() {
        return 1.0;
    }
    (-age.div_duration_f64(half_life)).exp2()
}

#[cfg(test)]
mod tests;
