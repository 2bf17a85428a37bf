mod known;
mod properties;
#[cfg(feature = "serde")]
mod serialised;

use super::*;
use crate::policy::Random;

/// Draws the same number each time.
struct Always(f64);

impl Random for Always {
    fn unit(&mut self) -> f64 {
        self.0
    }
}

/// Returns the delay at `index`, which must exist.
fn wait(backoff: &Backoff, index: u32, random: &mut dyn Random) -> Duration {
    backoff.delay_at(index, random).expect("there is one")
}

/// Panics when a number is drawn.
struct NoDraw;

impl Random for NoDraw {
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

/// The first eight delays in milliseconds, without jitter.
fn waits(backoff: &Backoff) -> [u128; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|index| wait(backoff, index, &mut NoDraw).as_millis())
}

#[test]
fn the_first_delays_of_each_curve() {
    let exponential = Backoff::exponential(ms(200), secs(30)).jitter(Jitter::None);
    let linear = Backoff::linear(ms(500), ms(250), ms(1_400)).jitter(Jitter::None);
    let table = [
        (exponential.clone(), [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600]),
        (exponential.clone().factor(3.0), [200, 600, 1_800, 5_400, 16_200, 30_000, 30_000, 30_000]),
        (exponential.clone().factor(1.0), [200; 8]),
        (exponential.factor(1.5), [200, 300, 450, 675, 1_012, 1_518, 2_278, 3_417]),
        (linear, [500, 750, 1_000, 1_250, 1_400, 1_400, 1_400, 1_400]),
        (Backoff::linear(ms(500), ms(0), secs(9)).jitter(Jitter::None), [500; 8]),
        (Backoff::constant(ms(700)), [700; 8]),
        (Backoff::none(), [0; 8]),
    ];
    for (backoff, expected) in table {
        assert_eq!(waits(&backoff), expected, "{backoff:?}");
    }
}

#[test]
fn the_default_is_200_ms_doubling_to_30_s_with_a_fifth_of_jitter() {
    let backoff = Backoff::default();

    assert_eq!(backoff, Backoff::exponential(ms(200), secs(30)).factor(2.0).jitter(0.2));
    assert_eq!(
        waits(&backoff.clone().jitter(0.0)),
        [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600]
    );
    assert_eq!(wait(&backoff, 0, &mut Always(0.5)), ms(220));
    assert_eq!(backoff.resets_after(), Some(secs(30)));
    assert_eq!(backoff.check(), Ok(()));
}

#[test]
fn a_curve_that_grows_has_the_default_jitter_unless_one_is_written() {
    let growing = [
        Backoff::exponential(ms(200), secs(30)),
        Backoff::linear(ms(200), ms(200), secs(30)),
        Backoff::geometric(ms(200), secs(30), 5),
        Backoff::fibonacci(ms(200), secs(30)),
    ];
    for backoff in growing {
        assert_eq!(wait(&backoff, 0, &mut Always(0.5)), ms(220), "{backoff:?}");
        for none in [backoff.clone().jitter(Jitter::None), backoff.clone().jitter(0.0)] {
            assert_eq!(wait(&none, 0, &mut Always(0.5)), ms(200), "{none:?}");
            assert_ne!(none, backoff);
        }
        assert_eq!(wait(&backoff.clone().jitter(0.5), 0, &mut Always(0.5)), ms(250));
        assert_eq!(backoff.clone().jitter(0.2), backoff, "written or not");
    }
}

#[test]
fn a_curve_that_does_not_grow_has_no_jitter_unless_one_is_written() {
    let others = [
        Backoff::constant(secs(1)),
        Backoff::none(),
        Backoff::binary_slots(BinarySlots::new(secs(1))),
        Backoff::iter(|| [secs(1)]),
    ];
    for backoff in others {
        assert_eq!(backoff.clone().jitter(Jitter::None), backoff);
    }
}

#[test]
fn changing_one_bound_keeps_the_jitter() {
    let longer = Backoff::exponential(ms(200), secs(60));
    let sooner = Backoff::exponential(ms(100), secs(30)).factor(3.0).cap(secs(20));
    assert_eq!(wait(&longer, 8, &mut Always(0.5)), ms(56_320));
    assert_eq!(wait(&sooner, 0, &mut Always(0.5)), ms(110));
}

/// A backoff that is invalid in each way, with the beginning of the message.
fn invalid() -> [(Backoff, &'static str); 6] {
    [
        (Backoff::constant(secs(1)).jitter(1.5), "`jitter` of the backoff is 1.5; write"),
        (Backoff::constant(secs(1)).jitter(f64::NAN), "`jitter` of the backoff is NaN; write"),
        (Backoff::exponential(Duration::ZERO, secs(1)), "`min` of the backoff is 0s; write"),
        (Backoff::exponential(secs(2), secs(1)), "`max` of the backoff is 1s; write"),
        (Backoff::none().factor(2.0), "`factor` of the backoff is 2; leave it out"),
        (Backoff::constant(secs(2)).cap(secs(1)), "`cap` of the backoff is 1s; write"),
    ]
}

fn panic_of<R>(call: impl FnOnce() -> R) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).map(drop);
    *panic.expect_err("a panic").downcast().expect("a formatted message")
}

#[test]
fn an_invalid_backoff_outside_of_a_tree_panics_where_its_delays_are_asked_for() {
    for (backoff, message) in invalid() {
        let panics =
            [panic_of(|| backoff.delays()), panic_of(|| backoff.delay(0, &mut Always(0.5)))];
        for panic in panics {
            assert!(panic.starts_with(message), "{panic}");
            assert_eq!(panic, backoff.check().unwrap_err().to_string());
        }
    }
}

#[test]
fn whole_factors_are_exact_as_far_as_a_duration_goes() {
    let backoff = Backoff::exponential(Duration::from_nanos(1), Duration::MAX).jitter(Jitter::None);
    for index in 0..64 {
        let expected = Duration::from_nanos(1 << index);
        assert_eq!(wait(&backoff, index, &mut NoDraw), expected, "2^{index}");
    }

    let backoff = Backoff::exponential(Duration::from_nanos(7), Duration::MAX)
        .jitter(Jitter::None)
        .factor(10.0);
    let expected = Duration::new(7_000_000_000_000_000_000, 0);
    assert_eq!(wait(&backoff, 27, &mut NoDraw), expected, "more digits than an f64 has");
}

#[test]
fn additive_jitter_lengthens_a_delay_up_to_max() {
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
        assert_eq!(wait(backoff, index, &mut Always(drawn)), expected, "{backoff:?} at {index}");
    }
}

#[test]
fn an_invalid_jitter_is_clamped() {
    for (fraction, expected) in [
        (-0.5, 1_000),
        (f64::NEG_INFINITY, 1_000),
        (f64::NAN, 1_000),
        (1.5, 1_500),
        (f64::INFINITY, 1_500),
    ] {
        let delay = Backoff::constant(secs(1)).jitter(fraction).delay_at(0, &mut Always(0.5));
        assert_eq!(delay, Some(ms(expected)), "{fraction}");
    }
}

#[test]
fn nothing_is_drawn_where_there_is_nothing_to_spread() {
    assert_eq!(wait(&Backoff::none().jitter(1.0), 0, &mut NoDraw), Duration::ZERO);
    assert_eq!(wait(&Backoff::constant(ms(5)).jitter(0.0), 0, &mut NoDraw), ms(5));
}

#[test]
fn by_default_a_backoff_resets_after_its_longest_delay_but_at_least_ten_seconds() {
    let table = [
        (Backoff::none(), secs(10)),
        (Backoff::constant(secs(3)), secs(10)),
        (Backoff::constant(secs(12)).jitter(0.5), secs(12)),
        (Backoff::exponential(ms(200), secs(9)), secs(10)),
        (Backoff::exponential(ms(200), secs(30)), secs(30)),
        (Backoff::linear(ms(200), ms(1), secs(60)), secs(60)),
        (Backoff::linear(ms(200), ms(1), secs(60)).reset_after(ms(1)), ms(1)),
        (Backoff::none().reset_after(Duration::ZERO), Duration::ZERO),
        (Backoff::binary_slots(BinarySlots::new(secs(1)).ceiling(5)), secs(15)),
        (Backoff::binary_slots(BinarySlots::new(secs(1)).ceiling(4).stay_at_ceiling()), secs(15)),
        (Backoff::binary_slots(BinarySlots::new(secs(1)).ceiling(4)), secs(10)),
    ];
    for (backoff, expected) in table {
        assert_eq!(backoff.resets_after(), Some(expected), "{backoff:?}");
    }
}

#[test]
fn invalid_values_are_refused_with_what_to_write() {
    let exponential = || Backoff::exponential(ms(200), secs(30));
    let table = [
        (
            Backoff::exponential(Duration::ZERO, secs(1)),
            "`min` of the backoff is 0s; write a first delay above zero, or `Backoff::none()` \
             for no delay",
        ),
        (
            Backoff::linear(Duration::ZERO, ms(1), secs(1)),
            "`min` of the backoff is 0s; write a first delay above zero, or `Backoff::none()` \
             for no delay",
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
             only curve that has it",
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
fn boundary_values_are_accepted() {
    let accepted = [
        Backoff::none(),
        Backoff::constant(Duration::MAX),
        Backoff::exponential(secs(1), secs(1)).factor(1.0).jitter(0.0),
        Backoff::exponential(Duration::from_nanos(1), Duration::MAX).factor(f64::MAX).jitter(1.0),
        Backoff::linear(secs(1), Duration::ZERO, secs(1)).reset_after(Duration::ZERO),
        Backoff::exponential(secs(1), secs(9)).cap(secs(1)),
    ];
    for backoff in accepted {
        assert_eq!(backoff.check(), Ok(()), "{backoff:?}");
    }
}

#[test]
fn backoffs_are_equal_by_value_and_custom_curves_by_identity() {
    struct Second;
    impl Curve for Second {
        fn delay(&self, _: u32) -> Duration {
            secs(1)
        }
    }
    let custom = || Backoff::custom(Second);
    let iter = || Backoff::iter(|| std::iter::repeat(secs(1)));
    let different = [
        Backoff::constant(secs(1)),
        Backoff::constant(secs(2)),
        Backoff::linear(secs(1), secs(1), secs(9)),
        Backoff::linear(secs(2), secs(1), secs(9)),
        Backoff::linear(secs(1), secs(2), secs(9)),
        Backoff::linear(secs(1), secs(1), secs(8)),
        Backoff::exponential(secs(1), secs(9)),
        Backoff::exponential(secs(2), secs(9)),
        Backoff::exponential(secs(1), secs(8)),
        Backoff::exponential(secs(1), secs(9)).factor(3.0),
        Backoff::exponential(secs(1), secs(9)).compounding(),
        Backoff::geometric(secs(1), secs(9), 3),
        Backoff::geometric(secs(2), secs(9), 3),
        Backoff::geometric(secs(1), secs(8), 3),
        Backoff::geometric(secs(1), secs(9), 4),
        Backoff::fibonacci(secs(1), secs(9)),
        Backoff::fibonacci(secs(2), secs(9)),
        Backoff::fibonacci(secs(1), secs(8)),
        Backoff::binary_slots(BinarySlots::new(secs(1))),
        Backoff::binary_slots(BinarySlots::new(secs(2))),
        custom(),
        custom(),
        iter(),
        iter(),
    ];
    for (number, backoff) in different.iter().enumerate() {
        for (other_number, other) in different.iter().enumerate() {
            let same = number == other_number;
            assert_eq!(*backoff == other.clone(), same, "{number} {other_number} {backoff:?}");
        }
    }
}

#[test]
fn a_first_delay_of_zero_stays_zero() {
    let nothing = Duration::ZERO;
    for backoff in [
        Backoff::exponential(nothing, secs(9)).jitter(Jitter::None),
        Backoff::exponential(nothing, secs(9)).jitter(Jitter::None).factor(1.5),
        Backoff::geometric(nothing, secs(9), 400).jitter(Jitter::None),
        Backoff::fibonacci(nothing, secs(9)).jitter(Jitter::None),
    ] {
        for index in [0, 1, 2, 127, 128, 300] {
            assert_eq!(wait(&backoff, index, &mut NoDraw), nothing, "{backoff:?} {index}");
        }
    }
}

#[test]
fn the_first_delay_of_a_geometric_backoff_is_not_rounded() {
    let min = Duration::from_nanos(1_600);
    assert_eq!(
        wait(&Backoff::geometric(min, secs(1), 5).jitter(Jitter::None), 0, &mut NoDraw),
        min
    );
}

#[test]
fn the_shortest_delays_grow_with_the_curve_unless_jitter_compounds() {
    let doubled = || Backoff::exponential(ms(800), secs(60)).jitter(Jitter::None);
    let symmetric = || doubled().jitter(Jitter::Symmetric(0.5));
    let table = [
        (doubled(), [800, 1_600, 3_200]),
        (doubled().compounding(), [800, 1_600, 3_200]),
        (doubled().jitter(0.5).compounding(), [800, 1_600, 3_200]),
        (symmetric(), [400, 800, 1_600]),
        (symmetric().compounding(), [400, 400, 400]),
    ];
    for (backoff, expected) in table {
        let waits = backoff.shortest_waits().expect("it is known");
        let waits: Vec<_> = waits.take(3).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, expected, "{backoff:?}");
    }
}

#[test]
fn the_number_of_restarts_within_a_period() {
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
        // The restart without a delay is counted in addition.
        (doubled.clone().first_at_once(), secs(60), 10),
        (doubled.clone().at_once_after_reset(), secs(60), 10),
        // The backoff may reset at any time.
        (doubled.clone().reset(Reset::OnAck), secs(60), u64::MAX),
        (doubled.clone().reset(Reset::Decay { half_life: secs(9) }), secs(60), u64::MAX),
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
        assert_eq!(
            backoff.restarts_within(period, Duration::ZERO),
            expected,
            "{backoff:?} in {period:?}"
        );
    }
}
