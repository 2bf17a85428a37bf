//! Limits that can't be exceeded, because the backoff is too slow.
//!
//! The limit on restarts and the backoff are set independently, and a slow backoff can make the limit
//! ineffective. This module detects it from the values alone.

use std::time::Duration;

use super::{Backoff, Intensity};

/// The number of delays after which a curve is treated as flat.
const FOLLOWED: usize = 1024;

/// A limit, and the highest value that the restarts can reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unreachable {
    Restarts { max: u32, period: Duration, most: u64 },
    Score { max: f64, half_life: Duration, most: f64 },
}

/// Returns the limit if children with these backoffs can never exceed it.
///
/// It assumes the worst case: all children fail together, and each fails as soon as it is started or
/// as soon as its backoff has reset.
pub(crate) fn unreachable<'a>(
    intensity: Intensity,
    backoffs: impl Iterator<Item = &'a Backoff>,
) -> Option<Unreachable> {
    if let Some((max, half_life)) = intensity.decay() {
        let most = backoffs.map(|backoff| peak(backoff, half_life)).sum();
        return (most <= max).then_some(Unreachable::Score { max, half_life, most });
    }
    // A tumbling period begins with a restart, and delays never get shorter. So its first period has
    // the most restarts, as many as any sliding one.
    let (max, period) = (intensity.max(), intensity.period());
    let mut most = 0_u64;
    for backoff in backoffs {
        most = most.saturating_add(restarts(backoff, period, u64::from(max) + 1));
        if most > u64::from(max) {
            return None;
        }
    }
    (most <= u64::from(max)).then_some(Unreachable::Restarts { max, period, most })
}

/// Returns how many restarts of one child fit into a period; exact if fewer than `enough`.
fn restarts(backoff: &Backoff, period: Duration, enough: u64) -> u64 {
    let at_once = backoff.restarts_within(period);
    let healthy = backoff.resets_after().filter(|life| !life.is_zero() && *life <= period);
    let (Some(healthy), Some(waits)) = (healthy, backoff.shortest_waits()) else { return at_once };
    if at_once >= enough {
        return at_once;
    }
    // The sums of the first delays.
    let most = enough.min(FOLLOWED as u64);
    let mut sum = Duration::ZERO;
    let mut sums = vec![sum];
    for wait in waits.take(most as usize) {
        sum = sum.saturating_add(wait);
        sums.push(sum);
    }
    let fits = |count: u64| (1..=count).any(|runs| takes(count, runs, &sums, healthy) <= period);
    if fits(most) {
        // There may be more than were counted.
        return if most < enough { u64::MAX } else { most };
    }
    let (mut fit, mut too_many) = (at_once.max(1), most);
    while fit + 1 < too_many {
        let middle = u64::midpoint(fit, too_many);
        if fits(middle) { fit = middle } else { too_many = middle }
    }
    fit
}

/// Returns the shortest time for `count` failures in `runs` runs, with a reset between two runs.
///
/// Delays never decrease along a curve, so runs of equal length are the shortest.
fn takes(count: u64, runs: u64, sums: &[Duration], healthy: Duration) -> Duration {
    let waits = count - 1;
    let (each, longer) = ((waits / runs) as usize, waits % runs);
    let times =
        |wait: Duration, times: u64| wait.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX));
    let short = times(sums[each], runs - longer);
    let long = sums.get(each + 1).map_or(Duration::ZERO, |&sum| times(sum, longer));
    short.saturating_add(long).saturating_add(times(healthy, runs - 1))
}

/// Returns the highest score of one child, or its upper bound.
fn peak(backoff: &Backoff, half_life: Duration) -> f64 {
    if half_life == Duration::MAX {
        return f64::INFINITY;
    }
    let Some(waits) = backoff.shortest_waits() else { return f64::INFINITY };
    let (mut score, mut peak) = (1.0_f64, 1.0_f64);
    let healthy = backoff.resets_after();
    let (mut last, mut run) = (Duration::ZERO, Duration::ZERO);
    for wait in waits.take(FOLLOWED) {
        last = wait;
        // The score if runs of this length repeat, with a healthy time between two of them.
        run = run.saturating_add(last);
        if let Some(healthy) = healthy {
            let again = run.saturating_add(healthy);
            peak = peak.max(score / (1.0 - kept(again, half_life)));
        }
        score = score.mul_add(kept(last, half_life), 1.0);
        peak = peak.max(score);
    }
    // From here on the delay is constant, and the score converges to this value.
    peak.max(1.0 / (1.0 - kept(last, half_life)))
}

/// Returns what remains of a score after `wait`.
fn kept(wait: Duration, half_life: Duration) -> f64 {
    super::window::decayed(wait, half_life)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::super::{Reset, RestartWindow};
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
    fn a_limit_is_unreachable_if_the_delays_are_too_long() {
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
    fn a_backoff_that_resets_at_each_start_keeps_its_first_delay() {
        let backoff = Backoff::exponential(secs(1), secs(64)).reset_after(Duration::ZERO);
        assert_eq!(alone(Intensity::decaying(1.999, secs(1)), &backoff), None);
    }

    #[test]
    fn a_score_is_highest_in_runs_of_failures_with_a_healthy_time_between_them() {
        let backoff = Backoff::exponential(secs(1), secs(64)).reset_after(secs(2));
        // Two failures within a second make 1.5, and five seconds later a 32nd of that is left.
        assert_eq!(peak(&backoff, secs(1)), 1.5 * 32.0 / 31.0);
        assert_eq!(alone(Intensity::decaying(1.54, secs(1)), &backoff), None);
        assert!(alone(Intensity::decaying(1.55, secs(1)), &backoff).is_some());

        // Four failures at once come to 3.28, and again after ten healthy seconds to 3.32.
        let backoff = Backoff::exponential(ms(137), ms(1_352));
        let limit = Intensity::decaying(3.3, ms(1_944));
        assert_eq!(alone(limit, &backoff), None);
        assert!(!is_exceeded(limit, &backoff));
        assert!(alone(limit, &backoff.reset(Reset::Never)).is_some());
    }

    /// Simulates a child that fails as soon as it is started. Returns whether it exceeds the limit.
    fn is_exceeded(intensity: Intensity, backoff: &Backoff) -> bool {
        let mut window = RestartWindow::new(intensity);
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

    /// Returns the largest number of failures in a period, found by trying.
    ///
    /// Before each failure, the child is either healthy or not. For each index of the backoff,
    /// `earliest` has the earliest time at which the child can get there.
    fn tried_out(backoff: &Backoff, period: Duration, enough: usize) -> usize {
        let mut earliest = vec![Duration::ZERO];
        for count in 1..enough {
            let mut next = vec![Duration::MAX; count + 1];
            for (index, at) in earliest.into_iter().enumerate() {
                let up = at.saturating_add(
                    backoff.delay(index as u32, &mut || 0.0).expect("there is one"),
                );
                next[index + 1] = up;
                next[0] =
                    next[0].min(up.saturating_add(backoff.resets_after().expect("there is one")));
            }
            if next.iter().all(|&at| at > period) {
                return count;
            }
            earliest = next;
        }
        enough
    }

    #[test]
    fn a_child_that_is_healthy_in_between_may_fail_more_often() {
        // Short runs with 30 s of health in between are quicker than waits of 30 s each.
        let backoff = Backoff::exponential(ms(200), secs(30));
        let hour = secs(3_600);
        assert_eq!(backoff.restarts_within(hour), 127);
        assert_eq!(alone(Intensity::sliding(300, hour), &backoff), None);
        let (max, most) = (999, 511);
        assert_eq!(tried_out(&backoff, hour, 1_000), 511);
        let found = Unreachable::Restarts { max, period: hour, most };
        assert_eq!(alone(Intensity::sliding(max, hour), &backoff), Some(found));
        // Without resets, 3,340 restarts fit, which is within the limit.
        let (limit, period) = (5_000, secs(100_000));
        assert_eq!(backoff.restarts_within(period), 3_340);
        assert_eq!(alone(Intensity::sliding(limit, period), &backoff), None, "not counted");
    }

    #[test]
    fn a_healthy_time_that_does_not_fit_changes_nothing_however_many_restarts_there_are() {
        let (max, period, most) = (5_000, secs(2), 2_001);
        for healthy in [Duration::ZERO, secs(3)] {
            let backoff = Backoff::constant(ms(1)).reset_after(healthy);
            let found = Unreachable::Restarts { max, period, most };
            assert_eq!(
                alone(Intensity::sliding(max, period), &backoff),
                Some(found),
                "{healthy:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn as_many_restarts_fit_as_are_found_by_trying(
            backoff in backoffs(),
            period in 1..2_000_u64,
            healthy in 1..300_u64,
        ) {
            let (backoff, period) = (backoff.reset_after(ms(healthy)), ms(period));
            let found = restarts(&backoff, period, 60).min(60);
            prop_assert_eq!(found, tried_out(&backoff, period, 60) as u64);
        }

        #[test]
        fn a_limit_is_exceeded_exactly_if_it_is_not_unreachable(
            backoff in backoffs(),
            max in 0..20_u32,
            period in 1..2_000_u64,
            kind in 0..3_u32,
        ) {
            // A healthy time can raise a score, and the simulation has none.
            let (backoff, period) = (backoff.reset(Reset::Never), ms(period));
            let intensity = match kind {
                0 => Intensity::sliding(max, period),
                1 => Intensity::tumbling(max, period),
                _ => Intensity::decaying(f64::from(max) + 0.3, period),
            };
            if let Some((limit, half_life)) = intensity.decay() {
                // Four hundred restarts don't come any closer to the limit.
                prop_assume!((peak(&backoff, half_life) - limit).abs() > 1e-6);
            }
            prop_assert_eq!(alone(intensity, &backoff).is_none(), is_exceeded(intensity, &backoff));
        }
    }
}
