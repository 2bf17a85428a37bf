//! Backoff: how long a child waits before it is started again.
//!
//! A [`Backoff`] is a curve, then a jitter, and a rule when to begin again at the curve's start. It
//! turns an index (0 for the first restart in a row) into a delay. It counts nothing, remembers
//! nothing and has no clock and no random numbers of its own: the index and the [`Random`] are
//! arguments, so that a delay is drawn once and then kept by whoever asked.
//!
//! # Invariants
//!
//! 1. [`delay`](Backoff::delay) is total: any index and any values give a delay, also those that
//!    [`check`](Backoff::check) refuses.
//! 2. A curve never falls and never leaves `min..=max`; jitter never leaves it either.
//! 3. The curves are told apart in [`Curve`] only, the kinds of jitter in [`Jitter`] only.

use std::time::Duration;

use humantime_serde::re::humantime::format_duration;

/// The shortest time for which a child has to be active for its backoff to begin again, by default.
const MIN_RESET: Duration = Duration::from_secs(10);

/// How far [`Backoff::restarts_within`] follows a curve before it takes it to be flat.
const FOLLOWED: u32 = 1024;

/// A source of random numbers, so that a test can say what is drawn.
pub(crate) trait Random {
    /// A number in `0.0..1.0`.
    fn unit(&mut self) -> f64;
}

impl Random for fastrand::Rng {
    fn unit(&mut self) -> f64 {
        self.f64()
    }
}

/// How long a child waits before each restart.
///
/// The wait grows with every restart in a row, and begins again when the child has been active for
/// long enough. By default it is 200 ms, doubled each time up to 30 s, with up to 20 % on top (but
/// never more than 30 s), and begins again after 30 s of being active. OTP knows no backoff;
/// [`none`](Self::none) behaves like it.
///
/// A value that makes no sense, such as a `max` below `min`, is reported when the tree is built.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    curve: Curve,
    jitter: Jitter,
    reset_after: Option<Duration>,
    /// A factor that was given to a curve without one, kept so that `check` can say so.
    stray_factor: Option<f64>,
}

impl Backoff {
    /// Waits `min` before the first restart and twice as long before each further one, up to `max`.
    ///
    /// No jitter unless asked for. [`factor`](Self::factor) replaces the 2.
    #[must_use]
    pub const fn exponential(min: Duration, max: Duration) -> Self {
        Self::with(Curve::Exponential { min, factor: 2.0, max })
    }

    /// Waits `min` before the first restart and `step` longer before each further one, up to `max`.
    ///
    /// No jitter unless asked for.
    #[must_use]
    pub const fn linear(min: Duration, step: Duration, max: Duration) -> Self {
        Self::with(Curve::Linear { min, step, max })
    }

    /// Waits `delay` before each restart.
    ///
    /// No jitter unless asked for. With jitter, `delay` is the shortest wait.
    #[must_use]
    pub const fn constant(delay: Duration) -> Self {
        Self::with(Curve::Constant(delay))
    }

    /// Restarts at once, as OTP does.
    ///
    /// Then only the restart intensity stands between a persistent failure and a busy loop, and a
    /// child that can't be started uses it up within microseconds.
    #[must_use]
    pub const fn none() -> Self {
        Self::constant(Duration::ZERO)
    }

    const fn with(curve: Curve) -> Self {
        Self { curve, jitter: Jitter::Additive(0.0), reset_after: None, stray_factor: None }
    }

    /// Multiplies each wait of an [`exponential`](Self::exponential) backoff by `factor` to get the
    /// next. 2 by default; at least 1.
    ///
    /// The waits are exact if `factor` is a whole number, otherwise within the precision of `f64`.
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Self {
        match &mut self.curve {
            Curve::Exponential { factor: current, .. } => *current = factor,
            Curve::Constant(_) | Curve::Linear { .. } => self.stray_factor = Some(factor),
        }
        self
    }

    /// Makes each wait longer by a random part of itself, from nothing up to `fraction` of it, so
    /// that children which failed together don't come back together.
    ///
    /// From 0 (none) to 1 (up to twice as long). `max` stays the longest wait: what would go beyond
    /// it is cut off. A [`constant`](Self::constant) backoff has no `max`, so its longest wait is
    /// `delay * (1 + fraction)`.
    #[must_use]
    pub const fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = Jitter::Additive(fraction);
        self
    }

    /// Begins again at the first wait once a child has been active for at least `active`.
    ///
    /// By default the longest wait without jitter, but not less than 10 s: a child that runs for
    /// shorter than it was waited for hasn't recovered. With zero, becoming active is enough.
    #[must_use]
    pub const fn reset_after(mut self, active: Duration) -> Self {
        self.reset_after = Some(active);
        self
    }

    /// The wait before a restart, where `index` is 0 for the first restart in a row.
    ///
    /// Draws from `random` once, and only if there is something to draw.
    pub(crate) fn delay(&self, index: u32, random: &mut dyn Random) -> Duration {
        self.jitter.apply(self.curve.at(index), self.curve.max(), random)
    }

    /// The longest wait, without jitter.
    #[cfg(test)]
    pub(crate) fn longest(&self) -> Duration {
        self.curve.last()
    }

    /// The first index from which on the wait is the last one. For curves that get there soon.
    #[cfg(test)]
    pub(crate) fn flat_from(&self) -> u32 {
        (0..)
            .find(|&index| self.curve.at(index) == self.curve.last())
            .expect("the curve gets there")
    }

    /// For how long a child has to be active for its next failure to begin at index 0 again.
    pub(crate) fn resets_after(&self) -> Duration {
        self.reset_after.unwrap_or_else(|| self.curve.last().max(MIN_RESET))
    }

    /// At most how many restarts one child is charged within a closed window of `period`.
    ///
    /// It fails as soon as it is started, each time, and a restart is charged at the failure: the
    /// first one at time 0, the next one a wait later. Jitter only makes it fewer. `u64::MAX` if
    /// there is no wait.
    ///
    /// Exact if the curve gets to its last value, or past `period`, within 1024 restarts; otherwise
    /// it is taken to rise no further, and the answer may be too high, but not too low.
    pub(crate) fn restarts_within(&self, period: Duration) -> u64 {
        if self.resets_after().is_zero() {
            return 1_u64.saturating_add(fits(period, self.curve.at(0)));
        }
        let mut left = period;
        let mut restarts = 1;
        for index in 0..FOLLOWED {
            let delay = self.curve.at(index);
            if delay == self.curve.last() {
                return fits(left, delay).saturating_add(restarts);
            }
            let Some(rest) = left.checked_sub(delay) else { return restarts };
            left = rest;
            restarts += 1;
        }
        fits(left, self.curve.at(FOLLOWED)).saturating_add(restarts)
    }

    /// Refuses values without a meaning.
    ///
    /// # Errors
    ///
    /// Names the first field that makes no sense, its value, and what to write instead.
    pub(crate) fn check(&self) -> Result<(), BackoffProblem> {
        self.curve.check()?;
        if let Some(factor) = self.stray_factor {
            return Err(BackoffProblem::new(
                "factor",
                factor.to_string(),
                "leave it out, or use `Backoff::exponential`, the only one that has a factor",
            ));
        }
        self.jitter.check()
    }
}

/// 200 ms, doubled up to 30 s, with a jitter of 0.2.
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(200), Duration::from_secs(30)).jitter(0.2)
    }
}

/// How the wait grows, before jitter. A further curve is a further variant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Curve {
    Constant(Duration),
    Linear { min: Duration, step: Duration, max: Duration },
    Exponential { min: Duration, factor: f64, max: Duration },
}

impl Curve {
    /// The value at `index`, total and never falling.
    fn at(self, index: u32) -> Duration {
        match self {
            Self::Constant(delay) => delay,
            Self::Linear { min, step, max } => {
                min.saturating_add(step.saturating_mul(index)).min(max)
            }
            Self::Exponential { min, factor, max } => {
                scaled(min, factor, index).map_or(max, |delay| delay.max(min).min(max))
            }
        }
    }

    /// The value that the curve ends at.
    fn last(self) -> Duration {
        match self {
            Self::Constant(delay) => delay,
            Self::Linear { max, .. } | Self::Exponential { max, .. } => max,
        }
    }

    /// The bound that jitter keeps to, if there is one.
    fn max(self) -> Option<Duration> {
        match self {
            Self::Constant(_) => None,
            Self::Linear { max, .. } | Self::Exponential { max, .. } => Some(max),
        }
    }

    fn check(self) -> Result<(), BackoffProblem> {
        let (min, max) = match self {
            Self::Constant(_) => return Ok(()),
            Self::Linear { min, max, .. } | Self::Exponential { min, max, .. } => (min, max),
        };
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
            Self::Exponential { factor, .. } if !(factor.is_finite() && factor >= 1.0) => {
                Err(BackoffProblem::new(
                    "factor",
                    factor.to_string(),
                    "write a finite number of at least 1, such as 2",
                ))
            }
            Self::Constant(_) | Self::Linear { .. } | Self::Exponential { .. } => Ok(()),
        }
    }
}

/// How a wait is spread. A further kind of jitter is a further variant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Jitter {
    /// Up to this part of the wait on top of it.
    Additive(f64),
}

impl Jitter {
    /// Spreads `base`, to no more than `max` if there is one.
    fn apply(self, base: Duration, max: Option<Duration>, random: &mut dyn Random) -> Duration {
        let Self::Additive(fraction) = self;
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        if base.is_zero() || fraction == 0.0 {
            return base;
        }
        let extra = base.as_secs_f64() * fraction * random.unit();
        // It is no more than `base`, so it fits.
        let extra = Duration::try_from_secs_f64(extra).unwrap_or(base);
        base.saturating_add(extra).min(max.unwrap_or(Duration::MAX))
    }

    fn check(self) -> Result<(), BackoffProblem> {
        let Self::Additive(fraction) = self;
        if (0.0..=1.0).contains(&fraction) {
            return Ok(());
        }
        Err(BackoffProblem::new(
            "jitter",
            fraction.to_string(),
            "write a fraction from 0 to 1, such as 0.2",
        ))
    }
}

/// `min * factor^index`, or `None` if that is too long to be a wait, or not a number.
fn scaled(min: Duration, factor: f64, index: u32) -> Option<Duration> {
    // Whole factors are multiplied as integers, so that 200, 400, 800 are exactly that.
    if factor.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&factor) {
        let nanos = min.as_nanos().checked_mul((factor as u128).checked_pow(index)?)?;
        let seconds = u64::try_from(nanos / NANOS_PER_SEC).ok()?;
        return Some(Duration::new(seconds, (nanos % NANOS_PER_SEC) as u32));
    }
    Duration::try_from_secs_f64(min.as_secs_f64() * factor.powf(f64::from(index))).ok()
}

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// How often `delay` fits into `period`.
fn fits(period: Duration, delay: Duration) -> u64 {
    let times = period.as_nanos().checked_div(delay.as_nanos()).unwrap_or(u128::MAX);
    u64::try_from(times).unwrap_or(u64::MAX)
}

/// Why a [`Backoff`] makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of the backoff is {value}; {advice}")]
pub struct BackoffProblem {
    field: &'static str,
    value: String,
    advice: String,
}

impl BackoffProblem {
    fn new(field: &'static str, value: String, advice: &str) -> Self {
        Self { field, value, advice: advice.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Draws the same number each time.
    struct Always(f64);

    impl Random for Always {
        fn unit(&mut self) -> f64 {
            self.0
        }
    }

    /// Must not be asked.
    struct Never;

    impl Random for Never {
        fn unit(&mut self) -> f64 {
            panic!("there is nothing to draw")
        }
    }

    /// The largest number below 1.
    const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// The first eight waits, in milliseconds, without jitter.
    fn waits(backoff: &Backoff) -> [u128; 8] {
        [0, 1, 2, 3, 4, 5, 6, 7].map(|index| backoff.delay(index, &mut Never).as_millis())
    }

    #[test]
    fn a_curve_gives_these_waits() {
        let exponential = Backoff::exponential(ms(200), secs(30));
        let linear = Backoff::linear(ms(500), ms(250), ms(1_400));
        let table = [
            (exponential.clone(), [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600]),
            (
                exponential.clone().factor(3.0),
                [200, 600, 1_800, 5_400, 16_200, 30_000, 30_000, 30_000],
            ),
            (exponential.clone().factor(1.0), [200; 8]),
            (exponential.factor(1.5), [200, 300, 450, 675, 1_012, 1_518, 2_278, 3_417]),
            (linear, [500, 750, 1_000, 1_250, 1_400, 1_400, 1_400, 1_400]),
            (Backoff::linear(ms(500), ms(0), secs(9)), [500; 8]),
            (Backoff::constant(ms(700)), [700; 8]),
            (Backoff::none(), [0; 8]),
        ];
        for (backoff, expected) in table {
            assert_eq!(waits(&backoff), expected, "{backoff:?}");
        }
    }

    #[test]
    fn by_default_it_is_200_ms_doubled_to_30_s_with_a_fifth_on_top() {
        let backoff = Backoff::default();

        assert_eq!(backoff, Backoff::exponential(ms(200), secs(30)).factor(2.0).jitter(0.2));
        assert_eq!(
            waits(&backoff.clone().jitter(0.0)),
            [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600]
        );
        assert_eq!(backoff.delay(0, &mut Always(0.5)), ms(220));
        assert_eq!(backoff.resets_after(), secs(30));
        assert_eq!(backoff.check(), Ok(()));
    }

    #[test]
    fn whole_factors_are_exact_as_far_as_a_duration_goes() {
        let backoff = Backoff::exponential(Duration::from_nanos(1), Duration::MAX);
        for index in 0..64 {
            let expected = Duration::from_nanos(1 << index);
            assert_eq!(backoff.delay(index, &mut Never), expected, "2^{index}");
        }

        let backoff = Backoff::exponential(Duration::from_nanos(7), Duration::MAX).factor(10.0);
        let expected = Duration::new(7_000_000_000_000_000_000, 0);
        assert_eq!(backoff.delay(27, &mut Never), expected, "more digits than an f64 has");
    }

    #[test]
    fn jitter_makes_a_wait_longer_by_a_part_of_itself_but_not_beyond_max() {
        let exponential = Backoff::exponential(ms(200), secs(30)).jitter(0.5);
        let linear = Backoff::linear(ms(500), ms(250), ms(1_000)).jitter(1.0);
        let constant = Backoff::constant(ms(1_000)).jitter(0.2);
        let table = [
            (&exponential, 0, 0.0, ms(200)),
            (&exponential, 0, 0.5, ms(250)),
            (&exponential, 1, 0.5, ms(500)),
            (&exponential, 7, 0.25, ms(28_800)),
            (&exponential, 7, 0.75, secs(30)),
            (&exponential, 8, 0.0, secs(30)),
            (&exponential, 8, 0.5, secs(30)),
            (&linear, 0, 0.5, ms(750)),
            (&linear, 0, ALMOST_ONE, ms(1_000)),
            (&linear, 1, 0.5, ms(1_000)),
            (&constant, 0, 0.0, ms(1_000)),
            (&constant, 3, 0.5, ms(1_100)),
            (&constant, 9, ALMOST_ONE, ms(1_200)),
        ];
        for (backoff, index, drawn, expected) in table {
            assert_eq!(
                backoff.delay(index, &mut Always(drawn)),
                expected,
                "{backoff:?} at {index}"
            );
        }
    }

    #[test]
    fn a_jitter_without_a_meaning_is_taken_to_be_the_nearest_with_one() {
        for (fraction, expected) in [
            (-0.5, 1_000),
            (f64::NEG_INFINITY, 1_000),
            (f64::NAN, 1_000),
            (1.5, 1_500),
            (f64::INFINITY, 1_500),
        ] {
            let delay = Backoff::constant(secs(1)).jitter(fraction).delay(0, &mut Always(0.5));
            assert_eq!(delay, ms(expected), "{fraction}");
        }
    }

    #[test]
    fn nothing_is_drawn_where_there_is_nothing_to_spread() {
        assert_eq!(Backoff::none().jitter(1.0).delay(0, &mut Never), Duration::ZERO);
        assert_eq!(Backoff::constant(ms(5)).jitter(0.0).delay(0, &mut Never), ms(5));
    }

    #[test]
    fn a_backoff_begins_again_after_its_longest_wait_but_not_before_ten_seconds() {
        let table = [
            (Backoff::none(), secs(10)),
            (Backoff::constant(secs(3)), secs(10)),
            (Backoff::constant(secs(12)).jitter(0.5), secs(12)),
            (Backoff::exponential(ms(200), secs(9)), secs(10)),
            (Backoff::exponential(ms(200), secs(30)), secs(30)),
            (Backoff::linear(ms(200), ms(1), secs(60)), secs(60)),
            (Backoff::linear(ms(200), ms(1), secs(60)).reset_after(ms(1)), ms(1)),
            (Backoff::none().reset_after(Duration::ZERO), Duration::ZERO),
        ];
        for (backoff, expected) in table {
            assert_eq!(backoff.resets_after(), expected, "{backoff:?}");
        }
    }

    #[test]
    fn values_without_a_meaning_are_refused_with_what_to_write() {
        let exponential = || Backoff::exponential(ms(200), secs(30));
        let table = [
            (
                Backoff::exponential(Duration::ZERO, secs(1)),
                "`min` of the backoff is 0s; write a first wait above zero, or `Backoff::none()` \
                 for no wait at all",
            ),
            (
                Backoff::linear(Duration::ZERO, ms(1), secs(1)),
                "`min` of the backoff is 0s; write a first wait above zero, or `Backoff::none()` \
                 for no wait at all",
            ),
            (
                Backoff::exponential(secs(2), secs(1)),
                "`max` of the backoff is 1s; write at least `min`, which is 2s",
            ),
            (
                Backoff::linear(secs(2), ms(1), ms(1_999)),
                "`max` of the backoff is 1s 999ms; write at least `min`, which is 2s",
            ),
            (
                exponential().factor(0.5),
                "`factor` of the backoff is 0.5; write a finite number of at least 1, such as 2",
            ),
            (
                exponential().factor(f64::NAN),
                "`factor` of the backoff is NaN; write a finite number of at least 1, such as 2",
            ),
            (
                exponential().factor(f64::INFINITY),
                "`factor` of the backoff is inf; write a finite number of at least 1, such as 2",
            ),
            (
                Backoff::constant(secs(1)).factor(2.0),
                "`factor` of the backoff is 2; leave it out, or use `Backoff::exponential`, the \
                 only one that has a factor",
            ),
            (
                exponential().jitter(1.5),
                "`jitter` of the backoff is 1.5; write a fraction from 0 to 1, such as 0.2",
            ),
            (
                exponential().jitter(-0.1),
                "`jitter` of the backoff is -0.1; write a fraction from 0 to 1, such as 0.2",
            ),
            (
                Backoff::constant(secs(1)).jitter(f64::NAN),
                "`jitter` of the backoff is NaN; write a fraction from 0 to 1, such as 0.2",
            ),
        ];
        for (backoff, expected) in table {
            assert_eq!(backoff.check().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn values_on_the_edge_of_their_meaning_are_accepted() {
        let accepted = [
            Backoff::none(),
            Backoff::constant(Duration::MAX),
            Backoff::exponential(secs(1), secs(1)).factor(1.0).jitter(0.0),
            Backoff::exponential(Duration::from_nanos(1), Duration::MAX)
                .factor(f64::MAX)
                .jitter(1.0),
            Backoff::linear(secs(1), Duration::ZERO, secs(1)).reset_after(Duration::ZERO),
        ];
        for backoff in accepted {
            assert_eq!(backoff.check(), Ok(()), "{backoff:?}");
        }
    }

    #[test]
    fn this_many_restarts_fit_into_a_period() {
        let doubled = Backoff::exponential(ms(200), secs(30));
        let second = Backoff::constant(secs(1));
        let table = [
            // Failures at 0, 0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4, 51 s; the next one at 81 s.
            (doubled.clone(), secs(60), 9),
            (doubled.clone(), secs(81), 10),
            (doubled.clone(), secs(111) - Duration::from_nanos(1), 10),
            (doubled.clone(), secs(111), 11),
            (doubled.clone(), ms(600) - Duration::from_nanos(1), 2),
            (doubled.clone(), ms(600), 3),
            (doubled.clone(), Duration::ZERO, 1),
            (doubled.jitter(1.0), secs(60), 9),
            (second.clone(), secs(5), 6),
            (second, secs(5) - Duration::from_nanos(1), 5),
            (Backoff::linear(secs(1), secs(1), secs(3)), secs(6), 4),
            (Backoff::linear(secs(1), secs(1), secs(3)), secs(12), 6),
            (Backoff::exponential(ms(1), secs(1)).factor(1.0), secs(60), 60_001),
            (Backoff::exponential(ms(200), secs(30)).reset_after(Duration::ZERO), secs(60), 301),
            (Backoff::none(), secs(60), u64::MAX),
            (Backoff::none(), Duration::ZERO, u64::MAX),
            (Backoff::constant(Duration::from_nanos(1)), Duration::MAX, u64::MAX),
        ];
        for (backoff, period, expected) in table {
            assert_eq!(backoff.restarts_within(period), expected, "{backoff:?} in {period:?}");
        }
    }

    /// Values that make sense, of every kind of curve.
    fn sensible() -> impl Strategy<Value = Backoff> {
        let millis = 1_u64..100_000;
        let curve = prop_oneof![
            (0..100_000_u64).prop_map(|delay| Curve::Constant(ms(delay))),
            (millis.clone(), 0..10_000_u64, 0..100_000_u64).prop_map(|(min, step, more)| {
                Curve::Linear { min: ms(min), step: ms(step), max: ms(min + more) }
            }),
            (millis, 1.0..5.0_f64, 0..100_000_u64, any::<bool>()).prop_map(
                |(min, factor, more, whole)| Curve::Exponential {
                    min: ms(min),
                    factor: if whole { factor.floor() } else { factor },
                    max: ms(min + more),
                }
            ),
        ];
        (curve, 0.0..=1.0).prop_map(|(curve, jitter)| Backoff::with(curve).jitter(jitter))
    }

    /// Any values, sensible or not.
    fn arbitrary() -> impl Strategy<Value = Backoff> {
        let curve =
            prop_oneof![
                any::<Duration>().prop_map(Curve::Constant),
                any::<(Duration, Duration, Duration)>()
                    .prop_map(|(min, step, max)| Curve::Linear { min, step, max }),
                (any::<(Duration, Duration)>(), proptest::num::f64::ANY)
                    .prop_map(|((min, max), factor)| Curve::Exponential { min, factor, max }),
            ];
        (curve, proptest::num::f64::ANY)
            .prop_map(|(curve, jitter)| Backoff::with(curve).jitter(jitter))
    }

    proptest! {
        #[test]
        fn any_values_give_a_delay(backoff in arbitrary(), index: u32, unit in 0.0..1.0_f64) {
            let delay = backoff.delay(index, &mut Always(unit));
            match backoff.curve {
                Curve::Constant(constant) => prop_assert!(delay >= constant, "{:?}", delay),
                Curve::Linear { min, max, .. } | Curve::Exponential { min, max, .. } => {
                    prop_assert!((min.min(max)..=max).contains(&delay), "{:?}", delay);
                }
            }
            let _ = backoff.check();
            prop_assert!(backoff.restarts_within(secs(60)) >= 1);
        }

        #[test]
        fn a_wait_stays_between_min_and_max(
            backoff in sensible(),
            index: u32,
            unit in 0.0..1.0_f64,
        ) {
            let Jitter::Additive(fraction) = backoff.jitter;
            let (min, max) = match backoff.curve {
                Curve::Constant(delay) => (delay, delay + delay.mul_f64(fraction)),
                Curve::Linear { min, max, .. } | Curve::Exponential { min, max, .. } => (min, max),
            };
            prop_assert_eq!(backoff.check(), Ok(()));
            for index in [index, index % 64] {
                let delay = backoff.delay(index, &mut Always(unit));
                prop_assert!((min..=max).contains(&delay), "{:?} at {}", delay, index);
            }
        }

        #[test]
        fn a_curve_never_falls(backoff in sensible(), index in 0..200_u32, further in 0..200_u32) {
            let backoff = backoff.jitter(0.0);
            let later = backoff.delay(index + further, &mut Never);
            prop_assert!(backoff.delay(index, &mut Never) <= later);
        }

        #[test]
        fn the_random_numbers_of_fastrand_are_below_one(seed: u64) {
            let unit = fastrand::Rng::with_seed(seed).unit();
            prop_assert!((0.0..1.0).contains(&unit), "{}", unit);
        }

        #[test]
        fn as_many_restarts_fit_as_can_be_counted(backoff in sensible(), period in 0..10_000_u64) {
            prop_assume!(!backoff.curve.at(u32::MAX).is_zero());
            let period = ms(period);
            let backoff = backoff.jitter(0.0);
            let mut at = Duration::ZERO;
            let mut counted = 0;
            // Long enough for every wait of a millisecond or more.
            while at <= period && counted < 1_000 {
                at += backoff.delay(counted, &mut Never);
                counted += 1;
            }
            prop_assume!(at > period);
            prop_assert_eq!(backoff.restarts_within(period), u64::from(counted));
        }
    }
}
