//! Properties of every backoff.

use proptest::prelude::*;

use super::*;

/// Valid values of every kind of curve that isn't random.
pub(super) fn sensible() -> impl Strategy<Value = Shape> {
    let growth = prop_oneof![
        (0..10_000_u64).prop_map(|step| Growth::Linear { step: ms(step) }),
        (1.0..5.0_f64, any::<bool>(), any::<bool>()).prop_map(|(factor, whole, compounding)| {
            let factor = if whole { factor.floor() } else { factor };
            Growth::Exponential { factor, compounding }
        }),
        (1..100_u32).prop_map(|steps| Growth::Geometric { steps }),
        Just(Growth::Fibonacci),
    ];
    prop_oneof![
        1 => (0..100_000_u64).prop_map(|delay| Shape::Constant(ms(delay))),
        4 => (1_u64..100_000, 0..100_000_u64, growth).prop_map(|(min, more, growth)| {
            Shape::Growing { min: ms(min), max: ms(min + more), growth }
        }),
    ]
}

/// Any values, valid or not.
fn arbitrary() -> impl Strategy<Value = Shape> {
    let growth = prop_oneof![
        any::<Duration>().prop_map(|step| Growth::Linear { step }),
        (proptest::num::f64::ANY, any::<bool>())
            .prop_map(|(factor, compounding)| Growth::Exponential { factor, compounding }),
        any::<u32>().prop_map(|steps| Growth::Geometric { steps }),
        Just(Growth::Fibonacci),
    ];
    prop_oneof![
        1 => any::<Duration>().prop_map(Shape::Constant),
        4 => (any::<(Duration, Duration)>(), growth)
            .prop_map(|((min, max), growth)| Shape::Growing { min, max, growth }),
        1 => (any::<Duration>(), any::<u32>(), any::<bool>()).prop_map(|(slot, ceiling, stays)| {
            let slots = BinarySlots::new(slot).ceiling(ceiling);
            Shape::Slots(if stays { slots.stay_at_ceiling() } else { slots })
        }),
    ]
}

pub(super) fn jitters(
    fraction: impl Strategy<Value = f64> + Clone,
) -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        fraction.clone().prop_map(Jitter::Symmetric),
        fraction.prop_map(Jitter::Additive),
        any::<Duration>().prop_map(Jitter::AdditiveAbs),
        Just(Jitter::Full),
        Just(Jitter::Equal),
    ]
}

/// Creates a backoff with these bounds.
fn bounded(shape: Shape, jitter: Jitter, [first, soft, floor]: [bool; 3]) -> Backoff {
    let mut backoff = Backoff::with(shape).jitter(jitter);
    (backoff.jitter_first, backoff.soft_cap, backoff.hard_floor) = (first, soft, floor);
    backoff
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn any_values_have_a_delay(
        shape in arbitrary(),
        jitter in jitters(proptest::num::f64::ANY),
        bounds: [bool; 3],
        index: u32,
        unit: f64,
    ) {
        let backoff = bounded(shape, jitter, bounds);
        prop_assert!(backoff.delay_at(index, &mut Always(unit)).is_some());
        let _ = backoff.check();
        prop_assert!(backoff.restarts_within(secs(60), Duration::ZERO) >= 1);
    }

    #[test]
    fn a_delay_stays_within_its_bounds(
        shape in sensible(),
        jitter in jitters(0.0..=1.0),
        bounds: [bool; 3],
        index: u32,
        unit in 0.0..1.0_f64,
    ) {
        let backoff = bounded(shape, jitter, bounds);
        prop_assert_eq!(backoff.check(), Ok(()));
        let (min, max) = (backoff.shape.min().unwrap(), backoff.shape.max());
        let (mut position, mut none) = (CurvePosition::default(), RunningIterator::default());
        for index in [index, index % 64] {
            let stepped = backoff.wait_at(position, &mut none, &mut Always(unit)).unwrap();
            position.advance(stepped);
            for delay in [wait(&backoff, index, &mut Always(unit)), stepped] {
                if let Some(max) = max.filter(|_| !backoff.soft_cap) {
                    prop_assert!(delay <= max, "{:?} at {}", delay, index);
                }
                let shortens = matches!(jitter, Jitter::Symmetric(_) | Jitter::Full | Jitter::Equal);
                if backoff.hard_floor || !shortens {
                    prop_assert!(delay >= min, "{:?} at {}", delay, index);
                }
            }
        }
    }

    #[test]
    fn without_jitter_delays_never_get_shorter(
        shape in sensible(),
        index in 0..200_u32,
        further in 0..200_u32,
    ) {
        let backoff = Backoff::with(shape).jitter(Jitter::None);
        let later = wait(&backoff, index + further, &mut NoDraw);
        prop_assert!(wait(&backoff, index, &mut NoDraw) <= later);
    }

    #[test]
    fn the_iterator_agrees_with_the_delay_at_each_index(shape in sensible()) {
        // A fractional factor is rounded at each step.
        let is_fractional = |growth| match growth {
            Growth::Exponential { factor, compounding } => compounding && factor.fract() > 0.0,
            _ => false,
        };
        prop_assume!(!matches!(shape, Shape::Growing { growth, .. } if is_fractional(growth)));
        let backoff = Backoff::with(shape).jitter(Jitter::None);
        let stepped: Vec<_> = backoff.delays().random(NoDraw).take(20).collect();
        let asked: Vec<_> = (0..20).map(|index| wait(&backoff, index, &mut NoDraw)).collect();
        prop_assert_eq!(stepped, asked);
    }

    #[test]
    fn restarts_within_a_period_agree_with_a_count(shape in sensible(), period in 0..10_000_u64) {
        let backoff = Backoff::with(shape).jitter(Jitter::None);
        prop_assume!(!wait(&backoff, 0, &mut NoDraw).is_zero());
        let period = ms(period);
        let mut at = Duration::ZERO;
        let mut counted = 0;
        // Enough for delays of a millisecond or more.
        while at <= period && counted < 1_000 {
            at += wait(&backoff, counted, &mut NoDraw);
            counted += 1;
        }
        prop_assume!(at > period);
        prop_assert_eq!(backoff.restarts_within(period, Duration::ZERO), u64::from(counted));
    }

    #[test]
    fn restarts_within_a_period_are_an_upper_bound_with_jitter(
        shape in sensible(),
        jitter in jitters(0.0..=1.0),
        bounds: [bool; 3],
        period in 0..10_000_u64,
        seed: u64,
    ) {
        let backoff = bounded(shape, jitter, bounds);
        let period = ms(period);
        let most = backoff.restarts_within(period, Duration::ZERO);
        let mut at = Duration::ZERO;
        let mut counted = 0_u64;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut position, mut none) = (CurvePosition::default(), RunningIterator::default());
        while at <= period && counted <= most.min(2_000) {
            let wait = backoff.wait_at(position, &mut none, &mut random).unwrap();
            position.advance(wait);
            at += wait;
            counted += 1;
        }
        prop_assert!(counted <= most, "{} of {}", counted, most);
    }
}
