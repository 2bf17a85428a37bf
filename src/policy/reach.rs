//! Limits that can't be reached: what restarts come to if a child fails whenever it may.
//!
//! A limit on restarts and a backoff are set apart from each other, and a backoff that waits long
//! enough makes the limit void. This says so in advance. It knows values only, no child.

use std::time::Duration;

use super::{Backoff, Intensity};

/// How far a curve is followed before it is taken to be flat.
const FOLLOWED: usize = 1024;

/// What restarts come to at most, where that doesn't exceed the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unreachable {
    Restarts { max: u32, period: Duration, most: u64 },
    Score { max: f64, half_life: Duration, most: f64 },
}

/// Says if children with these backoffs can't exceed the limit, even if all fail together and each
/// as soon as it is started.
pub(crate) fn unreachable<'a>(
    intensity: Intensity,
    backoffs: impl Iterator<Item = &'a Backoff>,
) -> Option<Unreachable> {
    if let Some((max, half_life)) = intensity.decay() {
        let most = backoffs.map(|backoff| peak(backoff, half_life)).sum();
        return (most <= max).then_some(Unreachable::Score { max, half_life, most });
    }
    // What tumbles begins with a first restart and waits get no shorter, so its first period is the
    // fullest one, as full as any that slides.
    let (max, period) = (intensity.max(), intensity.period());
    let within = |backoff: &Backoff| backoff.restarts_within(period);
    let most = backoffs.map(within).fold(0, u64::saturating_add);
    (most <= u64::from(max)).then_some(Unreachable::Restarts { max, period, most })
}

/// What the score of one child comes to at most, or comes near to without end.
fn peak(backoff: &Backoff, half_life: Duration) -> f64 {
    if half_life == Duration::MAX {
        return f64::INFINITY;
    }
    let Some(waits) = backoff.shortest_waits() else { return f64::INFINITY };
    let (mut score, mut peak) = (1.0_f64, 1.0_f64);
    let mut last = Duration::ZERO;
    for wait in waits.take(FOLLOWED) {
        last = wait;
        score = score.mul_add(kept(last, half_life), 1.0);
        peak = peak.max(score);
    }
    // From here on, each restart adds to what is kept of those before it at the same rate.
    peak.max(1.0 / (1.0 - kept(last, half_life)))
}

/// What is kept of a score after so long.
fn kept(wait: Duration, half_life: Duration) -> f64 {
    super::window::decayed(wait, half_life)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::super::RestartWindow;
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn alone(intensity: Intensity, backoff: &Backoff) -> Option<Unreachable> {
        unreachable(intensity, std::iter::once(backoff))
    }

    #[test]
    fn a_limit_is_unreachable_if_the_waits_are_too_long_for_it() {
        let second = Backoff::constant(secs(1));
        for of in [Intensity::sliding, Intensity::tumbling] {
            let (max, period, most) = (6, secs(5), 6);
            let found = Unreachable::Restarts { max, period, most };
            assert_eq!(alone(of(6, secs(5)), &second), Some(found));
            assert_eq!(alone(of(5, secs(5)), &second), None);
            assert_eq!(alone(of(u32::MAX, Duration::MAX), &second), None);
        }
        // 1 + 1/2 + 1/4 + …
        let found = Unreachable::Score { max: 2.0, half_life: secs(1), most: 2.0 };
        assert_eq!(alone(Intensity::decaying(2.0, secs(1)), &second), Some(found));
        assert_eq!(alone(Intensity::decaying(1.999, secs(1)), &second), None);
        assert_eq!(alone(Intensity::decaying(1e9, Duration::MAX), &second), None);
        assert_eq!(alone(Intensity::decaying(1e9, secs(1)), &Backoff::none()), None);
    }

    #[test]
    fn children_add_up() {
        let both = [Backoff::constant(secs(1)), Backoff::constant(secs(1))];
        assert_eq!(unreachable(Intensity::sliding(6, secs(5)), both.iter()), None);
        assert!(unreachable(Intensity::sliding(12, secs(5)), both.iter()).is_some());
        assert_eq!(unreachable(Intensity::decaying(3.999, secs(1)), both.iter()), None);
        assert!(unreachable(Intensity::decaying(4.0, secs(1)), both.iter()).is_some());
    }

    #[test]
    fn a_backoff_that_begins_again_each_time_waits_its_first_wait() {
        let backoff = Backoff::exponential(secs(1), secs(64)).reset_after(Duration::ZERO);
        assert_eq!(alone(Intensity::decaying(1.999, secs(1)), &backoff), None);
    }

    /// Whether a child that fails as soon as it is started ever exceeds the limit, tried out.
    fn is_exceeded(intensity: Intensity, backoff: &Backoff) -> bool {
        let mut window = RestartWindow::new(Some(intensity));
        let mut now = Instant::now();
        for index in 0..400 {
            if !window.admits(now) {
                return true;
            }
            window.record(now);
            now += backoff.delay(index, &mut || 0.0).expect("a curve without an end");
        }
        false
    }

    fn backoffs() -> impl Strategy<Value = Backoff> {
        let times = (1..400_u64, 0..200_u64, 0..2_000_u64);
        prop_oneof![
            (1..400_u64).prop_map(|delay| Backoff::constant(ms(delay))),
            times.clone().prop_map(|(min, step, more)| {
                Backoff::linear(ms(min), ms(step), ms(min + more))
            }),
            times.prop_map(|(min, _, more)| Backoff::exponential(ms(min), ms(min + more))),
        ]
    }

    proptest! {
        #[test]
        fn whoever_is_warned_never_gives_up_and_whoever_is_not_does(
            backoff in backoffs(),
            max in 0..20_u32,
            period in 1..2_000_u64,
            kind in 0..3_u32,
        ) {
            let period = ms(period);
            let intensity = match kind {
                0 => Intensity::sliding(max, period),
                1 => Intensity::tumbling(max, period),
                _ => Intensity::decaying(f64::from(max) + 0.3, period),
            };
            if let Some((limit, half_life)) = intensity.decay() {
                // Nearer to it than four hundred restarts come.
                prop_assume!((peak(&backoff, half_life) - limit).abs() > 1e-6);
            }
            prop_assert_eq!(alone(intensity, &backoff).is_none(), is_exceeded(intensity, &backoff));
        }
    }
}
