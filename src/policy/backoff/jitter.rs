//! Jitter: the random part of a delay.

use std::time::Duration;

use super::BackoffProblem;
use crate::policy::random::{Random, draw};

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
        if least == most { least } else { least + scaled(most - least, draw(random)) }
    }

    /// Returns the shortest and the longest result for `base`.
    pub(crate) fn bounds(self, base: Duration) -> (Duration, Duration) {
        match self {
            Self::None => (base, base),
            Self::Symmetric(fraction) => {
                let part = scaled(base, clamped(fraction));
                (base - part, base.saturating_add(part))
            }
            Self::Additive(fraction) => {
                (base, base.saturating_add(scaled(base, clamped(fraction))))
            }
            Self::AdditiveAbs(most) => (base, base.saturating_add(most)),
            Self::Full => (Duration::ZERO, base),
            Self::Equal => (base - scaled(base, 0.5), base),
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
fn scaled(whole: Duration, fraction: f64) -> Duration {
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
