//! Known delays of other systems, and the tests of those systems.

use super::*;
use crate::policy::Preset;

/// The delays before the first restarts in a row, in this unit.
fn first(backoff: &Backoff, count: usize, unit: Duration) -> Vec<f64> {
    let waits = backoff.delays().random(|| 0.0).take(count);
    waits.map(|wait| wait.as_secs_f64() / unit.as_secs_f64()).collect()
}

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

#[test]
fn seed1_01_a_delay_depends_only_on_the_index_and_the_drawn_number() {
    fn shareable<T: Send + Sync + Clone>(_: &T) {}
    let backoff = Backoff::default();
    shareable(&backoff);
    for index in 0..9 {
        let waits = [(); 2].map(|()| backoff.delay(index, &mut Always(0.3)));
        assert_eq!(waits[0], waits[1]);
    }
}

#[test]
fn seed1_02_the_first_delay_has_index_zero_and_is_min() {
    let backoff = Backoff::exponential(ms(70), secs(1)).jitter(Jitter::None);
    assert_eq!(wait(&backoff, 0, &mut NoDraw), ms(70));
    assert_eq!(backoff.jitter(Jitter::Full).first_wait(), ms(70), "without jitter");
}

#[test]
fn seed1_03_a_delay_can_be_shorter_than_a_millisecond() {
    let backoff = Backoff::exponential(Duration::from_nanos(300), secs(1)).jitter(Jitter::None);
    assert_eq!(wait(&backoff, 3, &mut NoDraw), Duration::from_nanos(2_400));
}

#[test]
fn seed1_04_the_iterator_needs_no_supervisor_and_no_runtime() {
    let backoff = Backoff::linear(ms(5), ms(5), ms(12)).jitter(Jitter::None);
    let waits: Vec<_> = backoff.delays().take(4).collect();
    assert_eq!(waits, [ms(5), ms(10), ms(12), ms(12)]);
}

#[test]
fn seed1_05_an_exponential_backoff_doubles_from_min_to_max() {
    let backoff = Backoff::exponential(ms(200), ms(10_000)).jitter(Jitter::Symmetric(0.2));
    let expected = [200, 400, 800, 1_600, 3_200, 6_400, 10_000];
    for (index, millis) in (0..).zip(expected) {
        assert_eq!(wait(&backoff, index, &mut Always(0.5)), ms(millis), "{index}");
    }
    assert_eq!(wait(&backoff, 30, &mut Always(0.5)), ms(10_000));
}

#[test]
fn seed1_06_a_hard_floor_keeps_jitter_above_min() {
    let below = Backoff::exponential(ms(1_000), secs(9)).jitter(Jitter::Symmetric(0.2));
    assert_eq!(wait(&below, 0, &mut Always(0.0)), ms(800));
    assert_eq!(wait(&below.hard_floor(), 0, &mut Always(0.0)), ms(1_000));
}

#[test]
fn a_delay_of_zero_has_absolute_jitter_and_a_hard_floor() {
    let spread = Backoff::none().jitter(Jitter::AdditiveAbs(ms(300))).soft_cap();
    assert_eq!(wait(&spread, 0, &mut Always(0.5)), ms(150));
    // `build` refuses this backoff, but its delays can be computed.
    let down = Backoff::geometric(secs(1), Duration::ZERO, 3).jitter(Jitter::None).soft_cap();
    assert_eq!(wait(&down, 9, &mut NoDraw), Duration::ZERO);
    assert_eq!(wait(&down.hard_floor(), 9, &mut NoDraw), secs(1));
}

#[test]
fn seed1_07_a_soft_cap_lets_jitter_exceed_max() {
    let hard = Backoff::exponential(ms(1_000), ms(1_000)).jitter(Jitter::Symmetric(0.5));
    assert_eq!(wait(&hard, 9, &mut Always(ALMOST_ONE)), ms(1_000));
    let soft = wait(&hard.soft_cap(), 9, &mut Always(ALMOST_ONE));
    assert_eq!(soft, ms(1_500), "half as much more");

    // As in actor-ts, whose longest delay is 10 s.
    let longest = wait(Preset::actor_ts().backoff(), 9, &mut Always(ALMOST_ONE));
    assert_eq!(longest, secs(12));
}

#[test]
fn seed1_08_jitter_is_a_fifth_by_default_and_none_if_it_is_zero() {
    let backoff = Backoff::constant(ms(1_000)).jitter(Jitter::Symmetric(0.2));
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let drawn = wait(&backoff, 0, &mut random);
        assert!((ms(800)..=ms(1_200)).contains(&drawn), "{drawn:?}");
    }
    assert_eq!(Backoff::default().jitter, Jitter::Additive(0.2));
    assert_eq!(wait(&Backoff::constant(ms(7)).jitter(0.0), 0, &mut NoDraw), ms(7));
}

#[test]
fn seed1_09_the_delay_at_the_greatest_index_is_max() {
    let backoff = Backoff::exponential(ms(200), secs(10)).jitter(Jitter::None);
    assert_eq!(wait(&backoff, u32::MAX, &mut NoDraw), secs(10));
}

#[test]
fn seed1_10_a_linear_backoff_grows_by_its_step() {
    let backoff = Backoff::linear(ms(500), ms(500), ms(5_000)).jitter(Jitter::None);
    let table = [(0, 500), (1, 1_000), (2, 1_500), (3, 2_000), (8, 4_500), (9, 5_000), (20, 5_000)];
    for (index, millis) in table {
        assert_eq!(wait(&backoff, index, &mut NoDraw), ms(millis), "{index}");
    }
}

/// A step can't be negative, because it is a `Duration`.
#[test]
fn seed1_11_a_step_of_zero_is_a_constant_delay() {
    let backoff = Backoff::linear(ms(500), Duration::ZERO, ms(5_000)).jitter(Jitter::None);
    assert_eq!(backoff.check(), Ok(()));
    assert_eq!(waits(&backoff), [500; 8]);
}

/// `min` and `max` can't be negative or infinite, because they are `Duration`s.
#[test]
fn seed1_12_a_problem_names_the_field() {
    let table = [
        (Backoff::exponential(Duration::ZERO, secs(1)), "min"),
        (Backoff::exponential(secs(2), secs(1)), "max"),
        (Backoff::constant(secs(1)).jitter(1.5), "jitter"),
        (Backoff::constant(secs(1)).jitter(Jitter::Symmetric(f64::NAN)), "jitter"),
    ];
    for (backoff, field) in table {
        let text = backoff.check().unwrap_err().to_string();
        assert!(text.starts_with(&format!("`{field}` of the backoff is ")), "{text}");
    }
}

#[test]
fn seed1_13_a_delay_is_never_negative() {
    let backoff = Backoff::constant(secs(1)).jitter(Jitter::Symmetric(1.0));
    assert_eq!(wait(&backoff, 0, &mut Always(0.0)), Duration::ZERO);
}

fn first_waits_without_jitter(count: usize) -> Vec<Duration> {
    Backoff::default().jitter(Jitter::None).delays().take(count).collect()
}

#[test]
fn seed1_14_the_same_seed_leads_to_the_same_delays() {
    let seeded = |seed| Backoff::default().random(fastrand::Rng::with_seed(seed));
    let waits = |seed| seeded(seed).delays().take(9).collect::<Vec<_>>();
    assert_eq!(waits(9), waits(9));
    assert_ne!(waits(9), waits(8));

    // Also where the source of a supervisor is given, and on both curves with jitter.
    for backoff in [
        Backoff::exponential(ms(200), secs(10)).jitter(0.2),
        Backoff::linear(ms(500), ms(500), secs(5)).jitter(0.2),
    ] {
        let drawn = |source: fn() -> fastrand::Rng| {
            let backoff = backoff.clone().random(source());
            (0..9).map(|index| wait(&backoff, index, &mut NoDraw)).collect::<Vec<_>>()
        };
        let first = drawn(|| fastrand::Rng::with_seed(9));
        assert_eq!(first, drawn(|| fastrand::Rng::with_seed(9)));
        assert_ne!(first, drawn(|| fastrand::Rng::with_seed(8)));
    }

    // A source that is given to the iterator replaces the policy's own.
    let always = seeded(9).delays().random(|| 0.0).take(9);
    assert_eq!(always.collect::<Vec<_>>(), first_waits_without_jitter(9));
}

#[test]
fn seed1_14_by_default_the_numbers_differ_from_draw_to_draw_and_from_loop_to_loop() {
    let backoff = Backoff::constant(secs(1)).jitter(1.0);
    let waits = || backoff.delays().take(9).collect::<Vec<_>>();
    let (one, other) = (waits(), waits());
    assert_ne!(one, other, "each loop has its own numbers");
    for waits in [one, other] {
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}

struct Fib;

impl Curve for Fib {
    fn delay(&self, index: u32) -> Duration {
        let (mut a, mut b) = (100, 100);
        for _ in 0..index.min(40) {
            (a, b) = (b, a + b);
        }
        ms(a)
    }
}

#[test]
fn seed1_18_a_custom_curve_is_one_method() {
    let own = Backoff::custom(Fib).cap(ms(500));
    assert_eq!(first(&own, 7, MILLI), [100.0, 100.0, 200.0, 300.0, 500.0, 500.0, 500.0]);
    let ours = Backoff::fibonacci(ms(100), ms(500)).jitter(Jitter::None);
    assert_eq!(first(&ours, 7, MILLI), first(&own, 7, MILLI));
    assert_eq!(wait(&ours, u32::MAX, &mut NoDraw), ms(500));
}

#[test]
fn a_curve_that_panics_has_no_more_delays() {
    struct Bad;
    impl Curve for Bad {
        fn delay(&self, index: u32) -> Duration {
            assert!(index < 2, "no more");
            ms(5)
        }
    }
    assert_eq!(Backoff::custom(Bad).delays().count(), 2);
    let bad = Backoff::iter(|| std::iter::from_fn(|| panic!("never any")));
    assert_eq!(bad.delays().next(), None);
}

#[test]
fn an_iterator_advances_once_for_each_delay_and_is_created_again_after_a_reset() {
    let backoff = Backoff::iter(|| [ms(1), ms(2), ms(3)]);
    let mut delays = backoff.delays();
    assert_eq!(delays.by_ref().collect::<Vec<_>>(), [ms(1), ms(2), ms(3)]);
    assert_eq!(delays.next(), None);
    delays.reset();
    assert_eq!(delays.next(), Some(ms(1)));

    let (mut position, mut kept) = (CurvePosition::default(), RunningIterator::default());
    assert_eq!(backoff.wait_at(position, &mut kept, &mut NoDraw), Some(ms(1)));
    position.advance(ms(1));
    for mut iterator in [kept, RunningIterator::default()] {
        let wait = backoff.wait_at(position, &mut iterator, &mut NoDraw);
        assert_eq!(wait, Some(ms(2)), "even without the kept iterator");
    }
    assert_eq!(backoff.delay(2, &mut NoDraw), Some(ms(3)));
    assert_eq!(backoff.delay(3, &mut NoDraw), None);
}

#[test]
fn seed3_23_constant_linear_and_doubling_delays_from_two_seconds() {
    let base = secs(2);
    let table = [
        (Backoff::constant(base), vec![2.0, 2.0, 2.0]),
        (Backoff::linear(base, base, secs(60)).jitter(Jitter::None), vec![2.0, 4.0, 6.0]),
        (Backoff::exponential(base, secs(60)).jitter(Jitter::None), vec![2.0, 4.0, 8.0, 16.0]),
    ];
    for (backoff, expected) in table {
        assert_eq!(first(&backoff, expected.len(), SECOND), expected, "{backoff:?}");
    }
}

#[test]
fn seed3_24_a_delay_is_limited_to_max() {
    let backoff = Backoff::exponential(secs(2), secs(60)).jitter(Jitter::None);
    assert_eq!(wait(&backoff, 9, &mut NoDraw), secs(60));

    // SignalPy has this maximum. Its last delay below it is 32 s.
    let preset = Preset::signalpy();
    let waits = [5, 6, 7, 30].map(|index| wait(preset.backoff(), index, &mut NoDraw));
    assert_eq!(waits, [32, 60, 60, 60].map(secs));
}

#[test]
fn seed4_31_four_to_thirty_six_seconds_in_five_steps() {
    let backoff = Backoff::exponential(secs(4), secs(36)).jitter(Jitter::None);
    assert_eq!(first(&backoff, 5, SECOND), [4.0, 8.0, 16.0, 32.0, 36.0]);
}

/// A `max` below `min` and a factor below 1 are refused wherever a backoff is used. The delays would still
/// stay within their bounds.
#[test]
fn seed4_32_invalid_values_are_refused_and_harmless() {
    let backoff = Backoff::exponential(secs(4), secs(2)).jitter(Jitter::None);
    assert!(backoff.check().is_err());
    assert_eq!(wait(&backoff, 0, &mut NoDraw), secs(2));
    for factor in [0.5, f64::NAN, f64::NEG_INFINITY, -3.0] {
        let backoff = Backoff::exponential(secs(4), secs(36)).jitter(Jitter::None).factor(factor);
        assert!(backoff.check().is_err(), "{factor}");
        let waits = [0, 1, 2].map(|index| wait(&backoff, index, &mut NoDraw));
        assert_eq!(waits, [secs(4); 3], "{factor}");
    }
}

#[test]
fn seed4_33_the_factor_is_two_by_default() {
    let (min, max) = (secs(3), secs(100));
    assert_eq!(Backoff::exponential(min, max), Backoff::exponential(min, max).factor(2.0));
}

#[test]
fn seed4_38_a_delay_that_overflows_a_float_is_max() {
    let backoff = Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None).factor(1.5);
    assert_eq!(wait(&backoff, 5_000, &mut NoDraw), secs(60));
}

#[test]
fn kin_01_delays_double_per_restart_up_to_max() {
    let backoff = Backoff::exponential(ms(100), ms(800)).jitter(Jitter::None);
    for (index, millis) in [(0, 100), (1, 200), (2, 400), (3, 800), (4, 800), (20, 800)] {
        assert_eq!(wait(&backoff, index, &mut NoDraw), ms(millis), "{index}");
    }
}

#[test]
fn kin_02_jitter_is_bounded_and_varies() {
    let backoff = Backoff::constant(ms(1_000)).jitter(Jitter::Symmetric(0.2));
    let mut random = fastrand::Rng::with_seed(2);
    let drawn: Vec<_> = (0..200).map(|_| wait(&backoff, 0, &mut random)).collect();
    assert!(drawn.iter().all(|wait| (ms(800)..=ms(1_200)).contains(wait)));
    assert!(drawn.iter().any(|wait| *wait != drawn[0]));
}

#[test]
fn kin_03_without_jitter_each_index_has_one_delay() {
    let backoff = Backoff::exponential(ms(100), secs(8)).jitter(Jitter::Symmetric(0.0));
    for index in 0..12 {
        let twice = [(); 2].map(|()| wait(&backoff, index, &mut NoDraw));
        assert_eq!(twice[0], twice[1]);
    }
}

#[test]
fn kin_05_the_delay_at_a_huge_index_is_max() {
    let backoff = Backoff::exponential(ms(100), secs(60)).jitter(Jitter::None);
    for index in [1_000, u32::MAX] {
        assert_eq!(wait(&backoff, index, &mut NoDraw), secs(60), "{index}");
    }
}

/// An index can't be negative, because it is a `u32`.
#[test]
fn kin_06_the_delay_at_index_zero_is_min() {
    let min = ms(300);
    let backoffs = [
        Backoff::exponential(min, secs(9)).jitter(Jitter::None),
        Backoff::linear(min, secs(1), secs(9)).jitter(Jitter::None),
        Backoff::geometric(min, secs(9), 4).jitter(Jitter::None),
        Backoff::fibonacci(min, secs(9)).jitter(Jitter::None),
        Backoff::constant(min),
    ];
    for backoff in backoffs {
        assert_eq!(wait(&backoff, 0, &mut NoDraw), min, "{backoff:?}");
    }
}

#[test]
fn kin_07_invalid_values_are_refused_with_the_name_of_the_field() {
    let table = [
        (Backoff::exponential(ms(9), ms(8)), "`max` "),
        (Backoff::exponential(Duration::ZERO, ms(8)), "`min` "),
        (Backoff::exponential(ms(1), ms(8)).jitter(Jitter::Symmetric(1.5)), "`jitter` "),
        (Backoff::exponential(ms(1), ms(8)).jitter(-0.1), "`jitter` "),
        (Backoff::exponential(ms(1), ms(8)).jitter(f64::NAN), "`jitter` "),
        (Backoff::geometric(ms(1), ms(8), 0), "`steps` "),
        (Backoff::fibonacci(ms(1), Duration::ZERO), "`max` "),
        (Backoff::binary_slots(BinarySlots::new(ms(1)).ceiling(1)), "`ceiling` "),
        (Backoff::binary_slots(BinarySlots::new(Duration::ZERO)), "`ceiling` "),
        (Backoff::constant(ms(5)).cap(ms(4)), "`cap` "),
        (Backoff::none().reset(Reset::Decay { half_life: Duration::ZERO }), "`half_life` "),
        (Backoff::none().reset(Reset::Never).reset(Reset::OnReady), "`reset` "),
        (Backoff::constant(ms(5)).compounding(), "`compounding` "),
    ];
    for (backoff, field) in table {
        let text = backoff.check().unwrap_err().to_string();
        assert!(text.starts_with(field), "{text}");
    }
}

#[test]
fn kin_08_linear_delays_grow_by_the_step_to_max() {
    let backoff = Backoff::linear(ms(100), ms(100), ms(500)).jitter(Jitter::None);
    for (index, millis) in [(0, 100), (1, 200), (4, 500), (10, 500)] {
        assert_eq!(wait(&backoff, index, &mut NoDraw), ms(millis), "{index}");
    }
}

#[test]
fn kin_09_delays_of_every_size_are_right() {
    let (minute, day) = (secs(60), secs(24 * 3600));
    let table = [
        (0, Duration::ZERO, Duration::ZERO, Duration::ZERO),
        (0, 5 * minute, 7 * minute, 5 * minute),
        (2, secs(5), secs(7), secs(7)),
        (2, secs(5), 7 * day, secs(20)),
        (29, 5 * minute, 10 * minute, 10 * minute),
        (29, 10_000 * day, 10_000 * day, 10_000 * day),
        (i32::MAX as u32, 10_000 * day, 10_000 * day, 10_000 * day),
    ];
    for (index, min, max, expected) in table {
        let backoff = Backoff::exponential(min, max).jitter(Jitter::None);
        assert_eq!(wait(&backoff, index, &mut NoDraw), expected, "{index}");
    }
}

#[test]
fn kin_15_constant_linear_and_doubling_delays_from_a_second_to_a_minute() {
    let table = [
        (Backoff::constant(SECOND), [1.0, 1.0, 1.0, 1.0]),
        (Backoff::linear(SECOND, SECOND, secs(60)).jitter(Jitter::None), [1.0, 2.0, 3.0, 4.0]),
        (Backoff::exponential(SECOND, secs(60)).jitter(Jitter::None), [1.0, 2.0, 4.0, 8.0]),
    ];
    for (backoff, expected) in table {
        assert_eq!(first(&backoff, 4, SECOND), expected, "{backoff:?}");
        assert!(wait(&backoff, 99, &mut NoDraw) <= secs(60));
    }
}

/// The delay that follows `previous`.
fn after(backoff: &Backoff, previous: Duration) -> Duration {
    let position = CurvePosition { index: 1, previous: Some(previous) };
    let wait = backoff.wait_at(position, &mut RunningIterator::default(), &mut NoDraw);
    wait.expect("there is one")
}

#[test]
fn kin_16_a_compounding_backoff_continues_from_the_last_delay() {
    let doubled = Backoff::exponential(ms(500), secs(30)).jitter(Jitter::None).compounding();
    assert_eq!(wait(&doubled, 0, &mut NoDraw), ms(500));
    for (previous, next) in [(500, 1_000), (16_000, 30_000), (30_000, 30_000), (1_000_000, 30_000)]
    {
        assert_eq!(after(&doubled, ms(previous)), ms(next), "{previous}");
    }
    let half_more =
        Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None).factor(1.5).compounding();
    assert_eq!(wait(&half_more, 0, &mut NoDraw), secs(1));
    for (previous, next) in [(1_000, 1_500), (1_500, 2_250), (50_000, 60_000), (70_000, 60_000)] {
        assert_eq!(after(&half_more, ms(previous)), ms(next), "{previous}");
    }
}

#[test]
fn kin_17_additive_jitter_is_spread_evenly() {
    let backoff = Backoff::constant(secs(3)).jitter(0.1);
    let mut random = fastrand::Rng::with_seed(17);
    let mut thirds = [0; 3];
    for _ in 0..3_000 {
        let extra = (wait(&backoff, 0, &mut random) - secs(3)).as_millis();
        assert!(extra < 300, "{extra}");
        thirds[usize::try_from(extra / 100).unwrap()] += 1;
    }
    assert!(thirds.iter().all(|count| (800..=1_200).contains(count)), "{thirds:?}");
}

#[test]
fn kin_23_with_compounding_jitter_each_delay_is_at_least_doubled() {
    let cap = secs(60);
    let backoff = Backoff::exponential(ms(100), cap).jitter(0.05).jitter_before_cap().compounding();
    let waits: Vec<_> = backoff.delays().random(fastrand::Rng::with_seed(23)).take(20).collect();
    for pair in waits.windows(2) {
        let (previous, next) = (pair[0], pair[1]);
        let within = previous * 2 <= next && next <= previous * 2 + previous / 10;
        assert!(within || next == cap, "{previous:?}, {next:?}");
    }
    assert_eq!(waits[19], cap, "it gets there");
}

#[test]
fn kin_24_a_geometric_backoff_from_two_seconds_to_sixteen_in_three_steps() {
    let backoff = Backoff::geometric(secs(2), secs(16), 3).jitter(Jitter::None);
    assert_eq!(first(&backoff, 5, SECOND), [2.0, 4.0, 8.0, 16.0, 16.0]);
}
