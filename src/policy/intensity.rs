//! Intensities: how often is too often, as a value.
//!
//! An [`Intensity`] says what is counted and for how long. The counting is done by a
//! [`RestartWindow`](super::RestartWindow).

use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;

/// How many restarts are granted within a time, and how that time is measured.
///
/// It limits the children of a supervisor together
/// ([`SupervisorBuilder::intensity`](crate::SupervisorBuilder::intensity)) or one child
/// ([`ChildSpec::intensity`](crate::ChildSpec::intensity)). Exactly as many restarts are granted as
/// it says, the next one is refused, and a refused one doesn't count. A limit of 0 grants none.
///
/// A period of [`Duration::MAX`] is for ever: so many restarts, and never one more.
///
/// There is no way to write *no limit, within a period*: what has no limit has no period either.
/// (Classic Akka and Pekko take such a pair, and then allow a single restart.)
///
/// ```
/// use std::time::Duration;
/// use verger::{Intensity, Supervisor, worker};
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
/// `{ max = 5.0, half_life = "30s" }`. For ever is `period = "infinity"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intensity(pub(super) Kind);

/// How restarts are forgotten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Each when it is older than the period.
    Sliding { max: u32, period: Duration },
    /// All at once, when the period is over that began with the first of them.
    Tumbling { max: u32, period: Duration },
    /// Bit by bit.
    Decaying { max: f64, half_life: Duration },
}

impl Intensity {
    /// Grants `max` restarts within any `period`. OTP's window, and the default.
    ///
    /// A restart that is exactly `period` old still counts.
    #[must_use]
    pub const fn sliding(max: u32, period: Duration) -> Self {
        Self(Kind::Sliding { max, period })
    }

    /// Grants `max` restarts within a `period` that begins with the first of them. The first
    /// restart after it begins the next one. Akka's and Pekko's window.
    ///
    /// It forgets all at once, so up to twice `max` restarts may come close together, at the end of
    /// one period and the beginning of the next.
    #[must_use]
    pub const fn tumbling(max: u32, period: Duration) -> Self {
        Self(Kind::Tumbling { max, period })
    }

    /// Grants a restart as long as a score doesn't exceed `max` with it. Each restart adds 1 to the
    /// score, which is halved every `half_life`. The way of suture.
    ///
    /// A burst counts for long, and a slow trickle never adds up: with a half-life of 30 s, one
    /// restart every 30 s comes to a score of 2. `max` need not be a whole number.
    #[must_use]
    pub const fn decaying(max: f64, half_life: Duration) -> Self {
        Self(Kind::Decaying { max, half_life })
    }

    /// How many restarts are granted one right after the other.
    pub(crate) fn max(self) -> u32 {
        match self.0 {
            Kind::Sliding { max, .. } | Kind::Tumbling { max, .. } => max,
            // It ends at the bounds of its type, and a number that is none is 0.
            Kind::Decaying { max, .. } => max as u32,
        }
    }

    /// For how long a restart counts, or by half.
    pub(crate) fn period(self) -> Duration {
        match self.0 {
            Kind::Sliding { period, .. } | Kind::Tumbling { period, .. } => period,
            Kind::Decaying { half_life, .. } => half_life,
        }
    }

    /// The limit of the score and its half-life, if it is one.
    pub(crate) fn decay(self) -> Option<(f64, Duration)> {
        match self.0 {
            Kind::Decaying { max, half_life } => Some((max, half_life)),
            Kind::Sliding { .. } | Kind::Tumbling { .. } => None,
        }
    }

    /// Whether it forgets all at once.
    #[cfg(test)]
    pub(crate) fn tumbles(self) -> bool {
        matches!(self.0, Kind::Tumbling { .. })
    }

    /// The limit of a score that is none: negative, infinite or not a number.
    pub(crate) fn senseless_max(self) -> Option<f64> {
        self.decay().map(|(max, _)| max).filter(|max| !(max.is_finite() && *max >= 0.0))
    }
}

/// As it was written: `restarts(5, 1m)`, `tumbling(5, 1m)`, `decaying(3.5, 30s)`.
impl fmt::Display for Intensity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Sliding { max, period } => write!(f, "restarts({max}, {})", time(period)),
            Kind::Tumbling { max, period } => write!(f, "tumbling({max}, {})", time(period)),
            Kind::Decaying { max, half_life } => write!(f, "decaying({max}, {})", time(half_life)),
        }
    }
}

fn time(duration: Duration) -> String {
    match duration {
        Duration::MAX => "Duration::MAX".to_owned(),
        _ => format_duration(duration).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_intensity_says_how_many_come_one_after_the_other_and_how_it_was_written() {
        let table = [
            (Intensity::sliding(5, MINUTE), 5, "restarts(5, 1m)"),
            (Intensity::tumbling(0, MINUTE), 0, "tumbling(0, 1m)"),
            (Intensity::decaying(3.5, MINUTE / 2), 3, "decaying(3.5, 30s)"),
            (Intensity::decaying(0.9, MINUTE), 0, "decaying(0.9, 1m)"),
            (Intensity::decaying(1e300, MINUTE), u32::MAX, &format!("decaying({}, 1m)", 1e300)),
            (Intensity::sliding(2, Duration::MAX), 2, "restarts(2, Duration::MAX)"),
        ];
        for (intensity, max, text) in table {
            assert_eq!((intensity.max(), intensity.to_string().as_str()), (max, text));
            assert_eq!(intensity.senseless_max(), None, "{intensity}");
        }
    }

    #[test]
    fn a_score_has_a_limit_that_is_a_number() {
        for max in [-0.5, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Intensity::decaying(max, MINUTE).senseless_max(), Some(max));
        }
        assert!(Intensity::decaying(f64::NAN, MINUTE).senseless_max().is_some());
        assert_eq!(Intensity::decaying(f64::NAN, MINUTE).max(), 0);
    }
}
