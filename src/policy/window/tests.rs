use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const PERIOD: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_nanos(1);

fn window(max: u32) -> (RestartWindow, Instant) {
    (RestartWindow::new(Intensity::sliding(max, PERIOD)), Instant::now())
}

#[test]
fn max_restarts_are_granted_and_the_next_is_refused() {
    for max in [1, 2, 3, 100] {
        let (mut window, t0) = window(max);

        let granted = (0..2 * max).map(|_| window.admit(t0)).take_while(|&admitted| admitted);
        assert_eq!(granted.count(), max as usize);
        assert_eq!(window.count(t0), max as usize);
    }
}

#[test]
fn a_restart_exactly_one_period_old_still_counts() {
    let (mut window, t0) = window(1);
    assert!(window.admit(t0));

    assert_eq!(window.count(t0 + PERIOD), 1, "on the edge: counted");
    assert!(!window.clone().admit(t0 + PERIOD), "on the edge: refused");

    assert_eq!(window.count(t0 + PERIOD + TICK), 0, "one tick later: expired");
    assert!(window.admit(t0 + PERIOD + TICK), "one tick later: granted");
}

#[test]
fn only_the_oldest_of_the_last_max_decides() {
    let (mut window, t0) = window(2);
    assert!(window.admit(t0));
    assert!(window.admit(t0 + PERIOD));

    let t1 = t0 + PERIOD + TICK;
    assert!(window.admit(t1), "the first has expired, the second counts");
    assert!(!window.admit(t1), "the second and the third count");
}

#[test]
fn a_refusal_is_not_recorded() {
    let (mut window, t0) = window(1);
    assert!(window.admit(t0));

    assert!(!window.admit(t0 + PERIOD));
    assert!(window.admit(t0 + PERIOD + TICK), "the refused one doesn't count");
}

#[test]
fn a_max_of_zero_never_grants() {
    let (mut window, t0) = window(0);
    assert!(!window.admit(t0));
    assert!(!window.admit(t0 + 10 * PERIOD));
    assert_eq!(window.count(t0), 0);
}

#[test]
fn an_earlier_instant_is_treated_as_the_latest() {
    let (mut window, t0) = window(2);
    assert!(window.admit(t0 + PERIOD));
    assert!(window.admit(t0), "treated as `PERIOD`");

    assert!(!window.admit(t0));
    assert_eq!(window.count(t0), 2);
    assert_eq!(window.count(t0 + PERIOD + PERIOD), 2, "both are one period old");
}

#[test]
fn the_buffer_grows_on_demand_and_shrinks_again() {
    let (mut window, t0) = window(100_000);
    assert_eq!(window.granted.capacity(), 0, "none up front");

    assert!((0..100_000).all(|_| window.admit(t0)));
    assert_eq!(window.granted.capacity(), 100_000, "never for more than `max`");

    let t1 = t0 + PERIOD + TICK;
    assert!((0..100_000).all(|n| window.admit(t1 + n * PERIOD)));
    assert!(window.granted.len() <= 2, "{}", window.granted.len());
    assert!(window.granted.capacity() <= SMALL, "{}", window.granted.capacity());
}

#[test]
fn a_buffer_is_halved_at_a_quarter_but_not_below_the_smallest_size() {
    let (mut window, t0) = window(1_000);
    assert!((0..64).all(|_| window.admit(t0)));
    let mut halved = Vec::new();
    for asked in 1..100 {
        let room = window.granted.capacity();
        // Two restarts are dropped and one is added, so the length falls by one each time.
        assert!(window.admit(t0 + asked * (PERIOD + TICK)));
        if window.granted.capacity() != room {
            halved.push((room, window.granted.capacity(), window.granted.len()));
        }
    }
    // The buffer is halved at a quarter, and then the new restart is added.
    assert_eq!(halved, [(64, 32, 17), (32, 16, 9), (16, SMALL, 5)]);
}

#[test]
fn a_huge_max_costs_nothing_until_it_is_used() {
    let (mut window, t0) = window(u32::MAX);
    assert!(window.admit(t0));
    assert!(window.granted.capacity() <= SMALL);
}

fn of(intensity: Intensity) -> (RestartWindow, Instant) {
    (RestartWindow::new(intensity), Instant::now())
}

/// Requests a restart at each of these milliseconds. Returns which were granted.
fn ask<const N: usize>(intensity: Intensity, at: [u64; N]) -> [bool; N] {
    let (mut window, t0) = of(intensity);
    at.map(|at| window.admit(t0 + Duration::from_millis(at)))
}

#[test]
fn kin_27_exactly_max_restarts_are_granted() {
    let answers = [true, true, true, false, false];
    for of in [Intensity::sliding, Intensity::tumbling] {
        assert_eq!(ask(of(3, PERIOD), [0; 5]), answers);
    }
    assert_eq!(ask(Intensity::decaying(3.0, PERIOD), [0; 5]), answers);
}

#[test]
fn kin_28_a_limit_of_zero_refuses_the_first_and_records_nothing() {
    let none = [
        Intensity::sliding(0, PERIOD),
        Intensity::tumbling(0, PERIOD),
        Intensity::decaying(0.0, PERIOD),
        Intensity::decaying(0.99, PERIOD),
        Intensity::sliding(0, Duration::MAX),
    ];
    for intensity in none {
        let (mut window, t0) = of(intensity);
        assert!(!window.admit(t0), "{intensity}");
        assert_eq!((window.count(t0), window.counted(t0)), (0, None), "{intensity}");
        assert_eq!(window.granted.capacity(), 0, "{intensity}");
    }
}

#[test]
fn kin_30_the_window_slides() {
    let two = Intensity::sliding(2, Duration::from_secs(1));
    assert_eq!(ask(two, [0, 10, 500, 1_011, 1_011]), [true, true, false, true, true]);
}

#[test]
fn kin_31_expired_restarts_free_exactly_their_places() {
    let two = Intensity::sliding(2, Duration::from_secs(1));
    assert_eq!(ask(two, [0, 600, 1_001, 1_001]), [true, true, true, false]);
}

/// The original writes an endless period as 0.
#[test]
fn kin_32_an_endless_limit_counts_every_restart_without_memory() {
    const YEAR: u64 = 365 * 24 * 3_600_000;
    for of in [Intensity::sliding, Intensity::tumbling] {
        let two = of(2, Duration::MAX);
        assert_eq!(ask(two, [0, YEAR, 2 * YEAR, 100 * YEAR]), [true, true, false, false]);
    }
    let two = Intensity::decaying(2.0, Duration::MAX);
    assert_eq!(ask(two, [0, YEAR, 2 * YEAR, 100 * YEAR]), [true, true, false, false]);

    let (mut window, t0) = of(Intensity::sliding(u32::MAX, Duration::MAX));
    assert!((0..10_000).all(|_| window.admit(t0)));
    assert_eq!((window.count(t0), window.granted.capacity()), (10_000, 0));
}

/// Each child has a window of its own, too.
#[test]
fn kin_33_two_windows_of_one_intensity_count_separately() {
    let one = Intensity::sliding(1, PERIOD);
    let ((mut first, t0), (mut second, _)) = (of(one), of(one));
    assert!(first.admit(t0));
    assert!(!first.admit(t0));
    assert!(second.admit(t0));
}

#[test]
fn kin_36_an_endless_tumbling_window_grants_max_once() {
    let three = Intensity::tumbling(3, Duration::MAX);
    assert_eq!(ask(three, [0, 1, 2, 3]), [true, true, true, false]);
}

#[test]
fn kin_37_a_window_of_thirty_days_does_not_overflow() {
    const DAY: u64 = 24 * 3_600_000;
    let month = Duration::from_secs(30 * 24 * 3600);
    for of in [Intensity::sliding, Intensity::tumbling] {
        assert_eq!(ask(of(2, month), [0, DAY, 30 * DAY]), [true, true, false]);
        assert_eq!(ask(of(2, month), [0, DAY, 30 * DAY + 1]), [true; 3]);
    }
    assert_eq!(ask(Intensity::decaying(2.0, month), [0, 0, 29 * DAY]), [true, true, false]);
    assert_eq!(ask(Intensity::decaying(2.0, month), [0, 0, 30 * DAY]), [true; 3]);
}

#[test]
fn kin_39_a_tumbling_window_drops_all_restarts_at_once() {
    let two = Intensity::tumbling(2, Duration::from_secs(2));
    assert_eq!(
        ask(two, [0, 1_900, 2_000, 2_100, 2_100, 2_100, 4_100, 4_101]),
        [true, true, false, true, true, false, false, true],
        "a restart that is exactly a period old still counts"
    );
}

#[test]
fn kin_41_one_in_five_seconds_is_not_exceeded_by_the_first() {
    assert_eq!(ask(Intensity::sliding(1, PERIOD), [1_000, 2_000]), [true, false]);
}

#[test]
fn kin_42_a_score_is_halved_each_half_life_and_grows_by_one() {
    let half_life = Duration::from_secs(30);
    let (mut window, t0) = of(Intensity::decaying(3.5, half_life));
    assert!(window.admit(t0) && window.admit(t0));
    assert_eq!(window.counted(t0), Some((Duration::ZERO, 2.0)));

    assert!(window.admit(t0 + half_life));
    assert_eq!(window.counted(t0 + half_life), Some((Duration::ZERO, 2.0)), "halved, plus one");

    assert!(window.admit(t0 + half_life));
    assert!(!window.admit(t0 + half_life), "4 is more than 3.5");
    assert_eq!(window.count(t0 + half_life), 3, "all are used up");
    assert_eq!(window.count(t0 + half_life * 2), 1, "1.5 leaves two");
}

#[test]
fn kin_43_events_count_for_exactly_the_length_of_the_window() {
    let at = |secs: u64| Duration::from_secs(secs - 100);
    let seen = |period, now| {
        let (mut window, t0) = of(Intensity::sliding(10, Duration::from_secs(period)));
        assert!([100, 110, 150].into_iter().all(|event| window.admit(t0 + at(event))));
        window.count(t0 + at(now))
    };
    assert_eq!((seen(60, 150), seen(60, 165), seen(10, 155)), (3, 2, 1));
}

#[test]
fn counts_is_true_only_for_the_windows_own_intensity() {
    let (window, _) = window(3);
    assert!(window.counts(Intensity::sliding(3, PERIOD)));
    for other in [
        Intensity::sliding(2, PERIOD),
        Intensity::sliding(3, PERIOD + TICK),
        Intensity::tumbling(3, PERIOD),
        Intensity::decaying(3.0, PERIOD),
    ] {
        assert!(!window.counts(other), "{other}");
    }
}

#[test]
fn nothing_decays_with_an_endless_half_life_or_at_age_zero() {
    let year = Duration::from_secs(365 * 24 * 3600);
    assert_eq!(decayed(year, Duration::MAX), 1.0);
    for half_life in [Duration::ZERO, TICK, Duration::MAX] {
        assert_eq!(decayed(Duration::ZERO, half_life), 1.0);
    }
    assert_eq!(decayed(year, year), 0.5);
}

#[test]
fn a_score_decays_over_a_year_of_tiny_half_lives() {
    let (mut window, t0) = of(Intensity::decaying(1.0, Duration::from_nanos(1)));
    assert!(window.admit(t0));
    assert!(window.admit(t0 + Duration::from_secs(365 * 24 * 3600)));
}

/// A naive window: keeps all granted restarts and counts them each time.
struct WindowModel {
    intensity: Intensity,
    granted: Vec<Instant>,
}

impl WindowModel {
    fn admit(&mut self, now: Instant) -> bool {
        let fits = match self.intensity.0 {
            WindowKind::Sliding { max, period } => {
                let recent = self.granted.iter().filter(|&&at| now - at <= period);
                recent.count() < max as usize
            }
            WindowKind::Tumbling { max, period } => {
                // The windows in order. Each begins with a restart.
                let mut windows: Vec<Vec<Instant>> = Vec::new();
                for &at in &self.granted {
                    match windows.last_mut().filter(|window| at - window[0] <= period) {
                        Some(window) => window.push(at),
                        None => windows.push(vec![at]),
                    }
                }
                let open = windows.last().filter(|window| now - window[0] <= period);
                open.map_or(0, Vec::len) < max as usize
            }
            WindowKind::Decaying { max, half_life } => {
                let of = |&at: &Instant| {
                    0.5_f64.powf((now - at).as_secs_f64() / half_life.as_secs_f64())
                };
                self.granted.iter().map(of).sum::<f64>() + 1.0 <= max
            }
        };
        if fits {
            self.granted.push(now);
        }
        fits
    }
}

fn intensities() -> impl Strategy<Value = Intensity> {
    prop_oneof![
        (0_u32..8).prop_map(|max| Intensity::sliding(max, PERIOD)),
        (0_u32..8).prop_map(|max| Intensity::tumbling(max, PERIOD)),
        // Both sides round, so no score of these steps is near the limit.
        (0_u32..8).prop_map(|max| Intensity::decaying(f64::from(max) + 0.234_567, PERIOD)),
    ]
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn a_window_agrees_with_the_naive_model(
        intensity in intensities(),
        // Steps that often end exactly at the end of a period.
        steps in vec((0_u32..6, -1_i64..=1), 0..200),
    ) {
        let (mut window, mut now) = of(intensity);
        let mut naive = WindowModel { intensity, granted: Vec::new() };
        for (fifths, ticks) in steps {
            let step = PERIOD * fifths / 5;
            now += match ticks {
                -1 => step.saturating_sub(TICK),
                0 => step,
                _ => step + TICK,
            };
            let before = (window.granted.clone(), window.counted);
            let admits = window.admits(now);
            prop_assert_eq!(&before, &(window.granted.clone(), window.counted), "`admits` changes nothing");
            prop_assert_eq!(window.count(now) < intensity.max() as usize, admits);
            prop_assert_eq!(window.admit(now), admits);
            prop_assert_eq!(naive.admit(now), admits, "{} at {:?}", intensity, now);
            if !admits {
                prop_assert_eq!(&before, &(window.granted.clone(), window.counted), "invariant 1");
            }
            prop_assert!(window.granted.iter().is_sorted(), "invariant 1");
            prop_assert!(window.granted.capacity() <= intensity.max() as usize, "invariant 3");
        }
    }
}

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
