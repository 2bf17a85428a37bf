//! How long supervisors take to give up, and limits that can't be exceeded.
//!
//! The limit on restarts and the backoff are set independently, and a slow backoff can make the limit
//! ineffective. So can a supervisor below, because it fails only when a limit of its children is exceeded. This
//! module detects it from the values alone.
//!
//! # Invariants
//!
//! 1. [`FailsAfter::soonest`] is a lower bound, also if all children fail together.
//! 2. [`FailsAfter::latest`] is an upper bound for a child that fails again and again, each time after the
//!    same time, whose restarts exceed the limit.

use std::time::Duration;

use super::{Backoff, HealthSettings, Intensity, Limits};

/// When a score with this many half-lives behind it counts as having reached its highest value.
const HALF_LIVES: u32 = 6;

/// How long a child runs until it fails: a supervisor with children that keep failing, or a child that stays
/// unhealthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailsAfter {
    pub(crate) soonest: Duration,
    pub(crate) latest: Duration,
}

impl FailsAfter {
    /// For a child that is restarted when it is unhealthy. It may also fail by itself.
    pub(crate) fn of_check(settings: HealthSettings) -> Self {
        let HealthSettings { every, timeout, failures, .. } = settings;
        let period = every.max(timeout);
        let first = settings.initial_delay.unwrap_or(period);
        let others = period.saturating_mul(failures.saturating_sub(1));
        let latest = first.saturating_add(others).saturating_add(timeout);
        Self { soonest: Duration::ZERO, latest }
    }

    /// For a supervisor with this limit whose children have these backoffs and run for at least so long.
    pub(crate) fn of<'a>(
        intensity: Intensity,
        children: impl Iterator<Item = (&'a Backoff, Duration)> + Clone,
    ) -> Self {
        Self { soonest: soonest(intensity, children), latest: latest(intensity) }
    }

    /// For a supervisor that fails with a child that has exceeded its own limits. The child runs for at least
    /// `life`, and its next start is at most `cycle` after each, without the delay.
    pub(crate) fn of_child(
        limits: &Limits,
        backoff: &Backoff,
        life: Duration,
        cycle: Duration,
    ) -> Self {
        let one = || std::iter::once((backoff, life));
        let window = limits.intensity.map(|intensity| Self::of(intensity, one()));
        let in_a_row = limits.consecutive.map(|max| {
            let soonest = soonest(Intensity::sliding(max, Duration::MAX), one());
            let lives = cycle.saturating_mul(max.saturating_add(1));
            Self { soonest, latest: lives.saturating_add(backoff.longest_waits(max)) }
        });
        let failing_for = limits.failing_for.map(|max| {
            let last = cycle.saturating_mul(2).saturating_add(backoff.longest_possible());
            Self { soonest: life.saturating_add(max), latest: max.saturating_add(last) }
        });
        let limits = [window, in_a_row, failing_for].into_iter().flatten();
        // The first limit that is exceeded ends it.
        let first = |a: Self, b: Self| Self {
            soonest: a.soonest.min(b.soonest),
            latest: a.latest.min(b.latest),
        };
        limits.reduce(first).unwrap_or(Self { soonest: Duration::MAX, latest: Duration::MAX })
    }

    /// For a supervisor that fails in either way.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { soonest: self.soonest.min(other.soonest), latest: self.latest.max(other.latest) }
    }
}

/// Returns the longest time until a limit is exceeded by a child that lives for the same time after each
/// start: the period of the limit, and the child's first life before it.
fn latest(intensity: Intensity) -> Duration {
    let period = intensity.period();
    match intensity.decay() {
        Some(_) => period.saturating_mul(HALF_LIVES),
        None => period.saturating_add(period / intensity.max().max(1)),
    }
}

/// Returns the shortest time until a limit is exceeded. One of the children fails at least as often as the
/// average.
fn soonest<'a>(
    intensity: Intensity,
    children: impl Iterator<Item = (&'a Backoff, Duration)> + Clone,
) -> Duration {
    let failures = u64::from(intensity.max()) + 1;
    let each = failures.div_ceil(children.clone().count().max(1) as u64);
    let times = children.map(|(backoff, life)| {
        let Some(waits) = backoff.shortest_waits().filter(|_| each > 1) else { return life };
        let sums = sums(waits, life, each - 1);
        let reset = resets_after(backoff, life).unwrap_or(Duration::MAX);
        let count = each.min(sums.len() as u64);
        let rest = (1..=count).map(|runs| takes(count, runs, &sums, reset)).min();
        life.saturating_add(rest.unwrap_or_default())
    });
    times.min().unwrap_or_default()
}

/// The number of delays after which a curve is treated as flat.
const FOLLOWED: usize = 1024;

/// A limit, and the highest value that the restarts can reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unreachable {
    Restarts { max: u32, period: Duration, most: u64 },
    Score { max: f64, half_life: Duration, most: f64 },
}

/// Returns the limit if children with these backoffs, which run for at least so long, can never exceed
/// it.
///
/// It assumes the worst case: all children fail together, and each fails as soon as it can or as soon as
/// its backoff has reset. A child that runs for [`Duration::MAX`] never fails.
pub(crate) fn unreachable<'a>(
    intensity: Intensity,
    children: impl Iterator<Item = (&'a Backoff, Duration)>,
) -> Option<Unreachable> {
    let children = children.filter(|&(_, life)| life != Duration::MAX);
    if let Some((max, half_life)) = intensity.decay() {
        let most = children.map(|(backoff, life)| peak(backoff, life, half_life)).sum();
        return (most <= max).then_some(Unreachable::Score { max, half_life, most });
    }
    // A tumbling period begins with a restart, and delays never get shorter. So its first period has
    // the most restarts, as many as any sliding one.
    let (max, period) = (intensity.max(), intensity.period());
    let mut most = 0_u64;
    for (backoff, life) in children {
        most = most.saturating_add(restarts(backoff, life, period, u64::from(max) + 1));
        if most > u64::from(max) {
            return None;
        }
    }
    (most <= u64::from(max)).then_some(Unreachable::Restarts { max, period, most })
}

/// Returns how much longer than `life` a child has to be active until its backoff resets.
fn resets_after(backoff: &Backoff, life: Duration) -> Option<Duration> {
    Some(backoff.resets_after()?.saturating_sub(life))
}

/// Returns the sums of the first `count` delays at most, each with the life that follows it.
fn sums(waits: impl Iterator<Item = Duration>, life: Duration, count: u64) -> Vec<Duration> {
    let mut sum = Duration::ZERO;
    let mut sums = vec![sum];
    for wait in waits.take(count.min(FOLLOWED as u64) as usize) {
        sum = sum.saturating_add(wait).saturating_add(life);
        sums.push(sum);
    }
    sums
}

/// Returns how many restarts of one child that runs for at least `life` fit into a period; exact if fewer
/// than `enough`.
fn restarts(backoff: &Backoff, life: Duration, period: Duration, enough: u64) -> u64 {
    let at_once = backoff.restarts_within(period, life);
    let healthy = resets_after(backoff, life).filter(|healthy| *healthy <= period);
    let healthy = healthy.filter(|healthy| !healthy.is_zero() || !life.is_zero());
    let (Some(healthy), Some(waits)) = (healthy, backoff.shortest_waits()) else { return at_once };
    if at_once >= enough {
        return at_once;
    }
    let most = enough.min(FOLLOWED as u64);
    let sums = sums(waits, life, most);
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

/// Returns the highest score of one child that runs for at least `life`, or its upper bound.
fn peak(backoff: &Backoff, life: Duration, half_life: Duration) -> f64 {
    if half_life == Duration::MAX {
        return f64::INFINITY;
    }
    let Some(waits) = backoff.shortest_waits() else {
        return 1.0 / (1.0 - kept(life, half_life));
    };
    let waits = waits.map(|wait| wait.saturating_add(life));
    let (mut score, mut peak) = (1.0_f64, 1.0_f64);
    let healthy = resets_after(backoff, life);
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

    #[test]
    fn a_check_finds_a_child_unhealthy_after_the_first_delay_and_the_periods_that_follow() {
        let settings = HealthSettings::default();
        let latest = |settings| FailsAfter::of_check(settings).latest;
        assert_eq!(latest(settings), secs(33));
        assert_eq!(latest(HealthSettings { failures: 1, ..settings }), secs(13));
        let late = HealthSettings { initial_delay: Some(secs(60)), ..settings };
        assert_eq!(latest(late), secs(83));
        assert_eq!(latest(HealthSettings { timeout: secs(15), ..late }), secs(105));
        let forever = HealthSettings { initial_delay: Some(Duration::MAX), ..settings };
        assert_eq!(latest(forever), Duration::MAX);
    }

    fn alone(intensity: Intensity, backoff: &Backoff) -> Option<Unreachable> {
        unreachable(intensity, std::iter::once((backoff, Duration::ZERO)))
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
        let both = both.each_ref().map(|backoff| (backoff, Duration::ZERO));
        assert_eq!(unreachable(Intensity::sliding(6, secs(5)), both.into_iter()), None);
        assert!(unreachable(Intensity::sliding(12, secs(5)), both.into_iter()).is_some());
        assert_eq!(unreachable(Intensity::decaying(3.999, secs(1)), both.into_iter()), None);
        assert!(unreachable(Intensity::decaying(4.0, secs(1)), both.into_iter()).is_some());
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
        assert_eq!(peak(&backoff, Duration::ZERO, secs(1)), 1.5 * 32.0 / 31.0);
        assert_eq!(alone(Intensity::decaying(1.54, secs(1)), &backoff), None);
        assert!(alone(Intensity::decaying(1.55, secs(1)), &backoff).is_some());

        // Four failures at once come to 3.28, and again after ten healthy seconds to 3.32.
        let backoff = Backoff::exponential(ms(137), ms(1_352));
        let limit = Intensity::decaying(3.3, ms(1_944));
        assert_eq!(alone(limit, &backoff), None);
        assert!(!is_exceeded(limit, &backoff));
        assert!(alone(limit, &backoff.reset(Reset::Never)).is_some());
    }

    #[test]
    fn children_that_run_for_some_time_fail_less_often() {
        let fails = |life, limit| {
            let backoff = Backoff::constant(ms(500));
            unreachable(limit, std::iter::once((&backoff, life)))
        };
        let (max, period) = (3, secs(5));
        let limit = Intensity::sliding(max, period);
        assert_eq!(fails(ms(1_100), limit), None, "at 0, 1.6, 3.2 and 4.8 s");
        let found = |most| Some(Unreachable::Restarts { max, period, most });
        assert_eq!(fails(ms(1_200), limit), found(3));
        assert_eq!(fails(secs(5), limit), found(1));
        assert_eq!(fails(Duration::MAX, limit), found(0), "it never fails");
        // 1 + 1/4 + 1/16 + …
        let score = |max| Intensity::decaying(max, secs(1));
        assert_eq!(fails(ms(1_500), score(1.33)), None);
        assert!(fails(ms(1_500), score(1.34)).is_some());
    }

    #[test]
    fn a_supervisor_gives_up_between_two_bounds() {
        let (backoff, none) = (Backoff::exponential(secs(1), secs(64)), Backoff::none());
        let limit = Intensity::sliding(3, secs(60));
        let soonest = |children: &[(&Backoff, Duration)]| {
            FailsAfter::of(limit, children.iter().copied()).soonest
        };
        assert_eq!(soonest(&[]), Duration::ZERO, "its children are unknown");
        assert_eq!(soonest(&[(&none, Duration::ZERO)]), Duration::ZERO);
        assert_eq!(soonest(&[(&backoff, Duration::ZERO)]), secs(1 + 2 + 4));
        assert_eq!(soonest(&[(&backoff, secs(10))]), secs(4 * 10 + 1 + 2 + 4));
        // Two children fail twice each.
        assert_eq!(soonest(&[(&backoff, Duration::ZERO); 2]), secs(1));
        assert_eq!(soonest(&[(&backoff, secs(7)); 4]), secs(7));
        // After 64 s of being active the delay is 1 s again.
        assert_eq!(soonest(&[(&backoff, secs(64))]), secs(4 * 64 + 3));

        assert_eq!(latest(limit), secs(60 + 20));
        assert_eq!(latest(Intensity::tumbling(0, secs(60))), secs(120));
        assert_eq!(latest(Intensity::sliding(3, Duration::MAX)), Duration::MAX);
        assert_eq!(latest(Intensity::decaying(3.0, secs(10))), secs(60));
    }

    #[test]
    fn a_supervisor_fails_with_the_first_limit_that_a_child_exceeds() {
        let backoff = Backoff::constant(secs(10));
        let of = |limits| {
            let FailsAfter { soonest, latest } =
                FailsAfter::of_child(&limits, &backoff, secs(1), secs(5));
            (soonest, latest)
        };
        let intensity = Some(Intensity::sliding(3, secs(60)));
        let window = Limits { intensity, ..Limits::default() };
        assert_eq!(of(window), (secs(4 + 30), secs(60 + 20)));
        let in_a_row = Limits { consecutive: Some(3), ..Limits::default() };
        assert_eq!(of(in_a_row), (secs(4 + 30), secs(20 + 30)));
        let failing_for = Limits { failing_for: Some(secs(40)), ..Limits::default() };
        assert_eq!(of(failing_for), (secs(41), secs(40 + 10 + 2 * 5)));
        let all = Limits { consecutive: Some(3), failing_for: Some(secs(40)), ..window };
        assert_eq!(of(all), (secs(34), secs(50)));
        assert_eq!(of(Limits::default()), (Duration::MAX, Duration::MAX), "it never does");
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
    /// Before each failure, the child is either healthy or not, and runs for at least `life`. For each
    /// index of the backoff, `earliest` has the earliest time at which the child can get there.
    fn tried_out(backoff: &Backoff, life: Duration, period: Duration, enough: usize) -> usize {
        let mut earliest = vec![Duration::ZERO];
        for count in 1..enough {
            let mut next = vec![Duration::MAX; count + 1];
            for (index, at) in earliest.into_iter().enumerate() {
                let up = at.saturating_add(
                    backoff.delay(index as u32, &mut || 0.0).expect("there is one"),
                );
                let healthy = backoff.resets_after().expect("there is one");
                next[index + 1] = up.saturating_add(life);
                next[0] = next[0].min(up.saturating_add(healthy.max(life)));
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
        assert_eq!(backoff.restarts_within(hour, Duration::ZERO), 127);
        assert_eq!(alone(Intensity::sliding(300, hour), &backoff), None);
        let (max, most) = (999, 511);
        assert_eq!(tried_out(&backoff, Duration::ZERO, hour, 1_000), 511);
        let found = Unreachable::Restarts { max, period: hour, most };
        assert_eq!(alone(Intensity::sliding(max, hour), &backoff), Some(found));
        // Without resets, 3,340 restarts fit, which is within the limit.
        let (limit, period) = (5_000, secs(100_000));
        assert_eq!(backoff.restarts_within(period, Duration::ZERO), 3_340);
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
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn as_many_restarts_fit_as_are_found_by_trying(
            backoff in backoffs(),
            period in 1..2_000_u64,
            healthy in 1..300_u64,
            life in prop_oneof![Just(0), 1..400_u64],
        ) {
            let (backoff, period) = (backoff.reset_after(ms(healthy)), ms(period));
            let life = ms(life);
            let found = restarts(&backoff, life, period, 60).min(60);
            prop_assert_eq!(found, tried_out(&backoff, life, period, 60) as u64);
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
                prop_assume!((peak(&backoff, Duration::ZERO, half_life) - limit).abs() > 1e-6);
            }
            prop_assert_eq!(alone(intensity, &backoff).is_none(), is_exceeded(intensity, &backoff));
        }
    }
}
