//! When a backoff resets, over a sequence of incarnations.

use std::time::{Duration, Instant};

use crate::core::history::FailureHistory;
use crate::policy::{Backoff, Jitter, Limits, Reset, RunningIterator};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const NONE: Duration = Duration::ZERO;
const TICK: Duration = Duration::from_nanos(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The delays of a child that fails after each of these lifetimes.
fn waits(backoff: &Backoff, lives: &[Duration]) -> Vec<Duration> {
    let mut history = FailureHistory::default();
    lives.iter().map(|&life| after(&mut history, backoff, life)).collect()
}

fn after(history: &mut FailureHistory, backoff: &Backoff, life: Duration) -> Duration {
    history.decay(backoff, life);
    fail(history, backoff, 0.0).expect("a backoff without an end")
}

/// Fails once. The jitter is drawn from this number.
fn fail(history: &mut FailureHistory, backoff: &Backoff, unit: f64) -> Option<Duration> {
    let mut iterator = RunningIterator::default();
    history.fail(backoff, |position| backoff.wait_at(position, &mut iterator, &mut || unit))
}

fn doubled(min: u64, max: u64) -> Backoff {
    Backoff::exponential(secs(min), secs(max)).jitter(Jitter::None)
}

#[test]
fn a_backoff_begins_again_after_its_reset_time_and_not_a_tick_before() {
    let backoff = doubled(1, 60);
    let lives = [NONE, NONE, secs(60) - TICK, secs(60), NONE];
    assert_eq!(waits(&backoff, &lives), [1, 2, 4, 1, 2].map(secs));
}

#[test]
fn any_of_several_rules_is_enough() {
    let backoff = doubled(1, 60).reset(Reset::OnAck).reset_after(secs(20)).reset_after(secs(9));
    assert_eq!(waits(&backoff, &[NONE, NONE, secs(9), NONE]), [1, 2, 1, 2].map(secs));
}

#[test]
fn seed0_39_a_child_that_lived_as_long_as_the_first_delay_begins_again() {
    let backoff = Backoff::exponential(ms(200), secs(9)).jitter(Jitter::None).reset_after(ms(200));
    let lives = [NONE, NONE, ms(200) - TICK, ms(200)];
    assert_eq!(waits(&backoff, &lives), [200, 400, 800, 200].map(ms));
}

#[test]
fn seed0_40_without_a_reset_the_waits_grow_for_life() {
    let backoff = doubled(1, 60).reset(Reset::Never);
    assert_eq!(waits(&backoff, &[YEAR; 3]), [1, 2, 4].map(secs));
}

/// A threshold can't be negative: its type is unsigned.
#[test]
fn seed0_41_the_threshold_is_ones_own() {
    let backoff = doubled(1, 60).reset_after(secs(60));
    let lives = [NONE, secs(60) - ms(100), secs(60)];
    assert_eq!(waits(&backoff, &lives), [1, 2, 1].map(secs));
}

#[test]
fn seed0_42_a_reset_means_the_first_wait_and_not_none() {
    assert_eq!(waits(&doubled(3, 60), &[NONE, secs(60)]), [3, 3].map(secs));
}

#[test]
fn by_half_lives_what_was_counted_fades() {
    let backoff = doubled(1, 1_000).reset(Reset::Decay { half_life: secs(10) });
    let mut lives = vec![NONE; 8];
    lives.extend([secs(10) - TICK, secs(10), secs(20), YEAR]);
    let expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 16, 2, 1].map(secs);
    assert_eq!(waits(&backoff, &lives), expected);
}

#[test]
fn a_status_shows_the_count_that_the_next_failure_would_find() {
    let table = [
        (doubled(1, 60), secs(60) - TICK, 8),
        (doubled(1, 60), secs(60), 0),
        (doubled(1, 60).reset(Reset::Never), YEAR, 8),
        (doubled(1, 60).reset(Reset::Decay { half_life: secs(10) }), secs(20), 2),
    ];
    for (backoff, life, expected) in table {
        let mut history = FailureHistory::default();
        for _ in 0..8 {
            after(&mut history, &backoff, NONE);
        }
        assert_eq!(history.summary(&backoff, None).attempt, 8, "while it is down");
        assert_eq!(history.summary(&backoff, Some(life)).attempt, expected, "{backoff:?}");
    }
}

/// A compounding backoff multiplies the last delay that was drawn, so the history keeps that delay.
#[test]
fn a_life_too_short_to_forgive_anything_leaves_the_backoff_where_it_is() {
    let backoff = doubled(1, 1_000).compounding().jitter(0.5);
    let backoff = backoff.reset(Reset::Decay { half_life: secs(10) });
    let mut history = FailureHistory::default();
    let mut fail = |life| {
        history.decay(&backoff, life);
        fail(&mut history, &backoff, 0.5).expect("a backoff without an end")
    };
    assert_eq!(fail(NONE), ms(1_250));
    assert_eq!(fail(secs(10) - TICK), ms(3_125), "2 × 1.25 s, and a quarter");
    assert_eq!(fail(secs(10)), ms(1_250), "one of two failures has decayed, and half of the delay");
}

/// elfo: a child that was healthy is restarted at once, and a child that never was is not.
fn elfo(min: u64, max: u64) -> Backoff {
    doubled(min, max).reset_after(secs(min)).at_once_after_reset()
}

#[test]
fn seed4_35_after_a_reset_comes_a_restart_at_once_and_then_the_curve() {
    let lives = [NONE, NONE, NONE, secs(5), NONE, NONE];
    assert_eq!(waits(&elfo(5, 30), &lives), [5, 10, 20, 0, 5, 10].map(secs));
    let mut history = FailureHistory::default();
    after(&mut history, &elfo(5, 30), secs(5));
    assert_eq!(history.consecutive_failures, 1, "a restart without a delay is counted");
}

#[test]
fn seed4_36_a_first_life_that_was_too_short_waits_for_the_first_wait() {
    assert_eq!(waits(&elfo(5, 30), &[secs(5) - TICK]), [secs(5)]);
    assert_eq!(waits(&elfo(5, 30), &[secs(5)]), [NONE]);
}

#[test]
fn seed4_39_new_bounds_apply_from_where_the_child_is() {
    let mut history = FailureHistory::default();
    for expected in [4, 8, 16] {
        assert_eq!(after(&mut history, &doubled(4, 36), NONE), secs(expected));
    }
    assert_eq!(after(&mut history, &doubled(4, 10), NONE), secs(10), "a lower max shortens it");
    assert_eq!(after(&mut history, &doubled(8, 1_000), NONE), secs(128), "a longer min lengthens");
}

/// Returns the delays of a child with this limit of consecutive restarts; `None` is a refusal.
fn granted(
    history: &mut FailureHistory,
    max: u32,
    attempts: &[(Backoff, Duration)],
) -> Vec<Option<Duration>> {
    let limits = Limits { consecutive: Some(max), ..Limits::default() };
    let now = Instant::now();
    let attempts = attempts.iter().map(|(backoff, life)| {
        let wait = after(history, backoff, *life);
        history.tracker.exceeded(&limits, now, now).is_none().then(|| {
            history.tracker.record_restart(&limits, now, now);
            wait
        })
    });
    attempts.collect()
}

#[test]
fn kin_10_elfos_backoff_works() {
    let lives = [0, 1, 4, 5, 0, 0, 0, 4].map(|life| (elfo(5, 30), secs(life)));
    let expected = [Some(5), Some(10), Some(20), Some(0), Some(5), Some(10), None, None];
    let mut history = FailureHistory::default();
    assert_eq!(granted(&mut history, 3, &lives), expected.map(|wait| wait.map(secs)));
    // Without the healthy run, the fourth restart is refused.
    let expected = [Some(5), Some(10), Some(20), None];
    let mut history = FailureHistory::default();
    let lives = [0, 1, 4, 4].map(|life| (elfo(5, 30), secs(life)));
    assert_eq!(granted(&mut history, 3, &lives), expected.map(|wait| wait.map(secs)));
}

#[test]
fn kin_11_elfos_backoff_goes_on_under_other_settings() {
    let mut history = FailureHistory::default();
    for _ in 0..3 {
        assert_eq!(after(&mut history, &elfo(0, 0), NONE), NONE, "and no step of the curve");
    }
    for expected in [2, 4, 8] {
        assert_eq!(after(&mut history, &elfo(2, 16), NONE), secs(expected));
    }
    assert_eq!(after(&mut history, &elfo(3, 5), NONE), secs(5));
    assert_eq!(after(&mut history, &elfo(20, 30), NONE), secs(30));

    let expected = [Some(secs(20)), Some(secs(30)), None];
    let mut history = FailureHistory::default();
    assert_eq!(granted(&mut history, 2, &[(); 3].map(|()| (elfo(20, 30), NONE))), expected);
}

#[test]
fn kin_18_delays_double_from_one_second_to_fifty_after_a_first_without_delay() {
    let backoff = doubled(1, 50).first_at_once().at_once_after_reset().reset(Reset::Manual);
    let mut history = FailureHistory::default();
    for expected in [0, 1, 2, 4, 8, 16, 32, 50, 50, 50] {
        assert_eq!(after(&mut history, &backoff, YEAR), secs(expected));
    }
    history.recover();
    for expected in [0, 1, 2] {
        assert_eq!(after(&mut history, &backoff, NONE), secs(expected), "after the reset");
    }
}

/// client-go: a penalty resets after more than twice the longest delay without a failure.
fn client_go(max: u64) -> Backoff {
    doubled(1, max).reset_after(secs(2 * max) + TICK)
}

#[test]
fn kin_19_what_was_well_for_more_than_twice_the_cap_begins_again() {
    let lives = [NONE, NONE, NONE, NONE, secs(11)];
    assert_eq!(waits(&client_go(5), &lives), [1, 2, 4, 5, 1].map(secs));
}

#[test]
fn kin_20_what_fails_sooner_stays_at_the_cap() {
    let lives = [NONE, NONE, NONE, NONE, secs(6), secs(10)];
    assert_eq!(waits(&client_go(5), &lives), [1, 2, 4, 5, 5, 5].map(secs));
}

/// A penalty is a few numbers in the child's history, which is removed with the child. It decays when
/// it is read.
#[test]
fn kin_21_a_penalty_lasts_until_it_has_decayed() {
    let backoff = client_go(5);
    let mut history = FailureHistory::default();
    for _ in 0..6 {
        after(&mut history, &backoff, NONE);
    }
    assert_eq!(history.summary(&backoff, Some(secs(6))).attempt, 6);
    assert_eq!(history.summary(&backoff, Some(secs(12))).attempt, 0);
}

#[test]
fn kin_25_kubelet_forgives_only_more_than_ten_minutes() {
    let kubelet = doubled(10, 300).first_at_once().at_once_after_reset();
    let kubelet = kubelet.reset_after(secs(600) + TICK);
    let mut lives = vec![NONE; 8];
    lives.extend([secs(600), secs(601)]);
    let expected = [0, 10, 20, 40, 80, 160, 300, 300, 300, 0].map(secs);
    assert_eq!(waits(&kubelet, &lives), expected);
}

#[test]
fn kin_79_a_restart_number_reads_zero_once_the_child_has_lived_for_long_enough() {
    let pebble =
        Backoff::exponential(ms(1), ms(500)).jitter(Jitter::None).factor(10.0).reset_after(ms(500));
    let mut history = FailureHistory::default();
    for expected in [1, 2] {
        after(&mut history, &pebble, NONE);
        assert_eq!(history.consecutive_failures, expected);
    }
    assert_eq!(history.summary(&pebble, Some(ms(499))).attempt, 2);
    assert_eq!(history.summary(&pebble, Some(ms(550))).attempt, 0);
    after(&mut history, &pebble, ms(550));
    assert_eq!(history.consecutive_failures, 1);
}
