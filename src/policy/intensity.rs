//! Restart limits over time, as values.
//!
//! An [`Intensity`] is a limit. A [`RestartWindow`](super::RestartWindow) counts the restarts.

use std::fmt;
use std::time::Duration;

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
pub struct Intensity(pub(super) Kind);

/// The way in which restarts expire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
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
        Self(Kind::Sliding { max, period })
    }

    /// Allows `max` restarts within a `period` that begins with the first of them.
    ///
    /// The first restart after the period begins the next one. Up to twice `max` restarts can occur
    /// around the end of a period. This is the window of Akka and Pekko.
    #[must_use]
    pub const fn tumbling(max: u32, period: Duration) -> Self {
        Self(Kind::Tumbling { max, period })
    }

    /// Allows a restart as long as a score stays at or below `max`.
    ///
    /// Each restart adds 1 to the score, which halves every `half_life`. A burst counts for a long
    /// time, but a steady trickle never adds up: one restart every `half_life` leads to a score of 2.
    /// This is suture's rule. `max` can be a fraction.
    #[must_use]
    pub const fn decaying(max: f64, half_life: Duration) -> Self {
        Self(Kind::Decaying { max, half_life })
    }

    /// The number of restarts that are allowed at one instant.
    pub(crate) fn max(self) -> u32 {
        match self.0 {
            Kind::Sliding { max, .. } | Kind::Tumbling { max, .. } => max,
            // The cast saturates, and NaN becomes 0.
            Kind::Decaying { max, .. } => max as u32,
        }
    }

    /// The period, or the half-life of a score.
    pub(crate) fn period(self) -> Duration {
        match self.0 {
            Kind::Sliding { period, .. } | Kind::Tumbling { period, .. } => period,
            Kind::Decaying { half_life, .. } => half_life,
        }
    }

    /// The maximum and the half-life of a score.
    pub(crate) fn decay(self) -> Option<(f64, Duration)> {
        match self.0 {
            Kind::Decaying { max, half_life } => Some((max, half_life)),
            Kind::Sliding { .. } | Kind::Tumbling { .. } => None,
        }
    }

    /// Whether the window is a sliding one.
    pub(crate) fn slides(self) -> bool {
        matches!(self.0, Kind::Sliding { .. })
    }

    /// Whether the window is a tumbling one.
    #[cfg(test)]
    pub(crate) fn tumbles(self) -> bool {
        matches!(self.0, Kind::Tumbling { .. })
    }

    /// The limit in the words of a log line: `5 in 1m`.
    pub(crate) fn in_words(self) -> String {
        match self.0 {
            Kind::Sliding { max, period } | Kind::Tumbling { max, period } => {
                format!("{max} in {}", time(period))
            }
            Kind::Decaying { max, half_life } => {
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
            Kind::Sliding { max, period } => write!(f, "restarts({max}, {})", time(period)),
            Kind::Tumbling { max, period } => write!(f, "tumbling({max}, {})", time(period)),
            Kind::Decaying { max, half_life } => write!(f, "decaying({max}, {})", time(half_life)),
        }
    }
}

fn time(duration: Duration) -> String {
    match duration {
        Duration::MAX => "Duration::MAX".to_owned(),
        _ => HumanDuration(duration).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn max_and_display_of_each_kind() {
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
            assert_eq!(intensity.invalid_max(), None, "{intensity}");
        }
    }

    #[test]
    fn an_invalid_max_is_negative_infinite_or_nan() {
        for max in [-0.5, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Intensity::decaying(max, MINUTE).invalid_max(), Some(max));
        }
        assert!(Intensity::decaying(f64::NAN, MINUTE).invalid_max().is_some());
        assert_eq!(Intensity::decaying(f64::NAN, MINUTE).max(), 0);
    }
}
