//! Random rules of a supervisor.

use proptest::prelude::*;
use proptest::sample::select;

use super::children::{an_intensity, exhausted};
use crate::core::verify::simulation::ms;
use crate::policy::{
    AutoShutdown, Backoff, DefaultLimit, FirstStart, Jitter, Reset, Revival, Rules, Start,
    Strategy as Range,
};

pub(super) fn some_rules() -> impl Strategy<Value = Rules> {
    let backoff = prop_oneof![
        Just(Backoff::none()),
        Just(Backoff::constant(ms(50))),
        Just(Backoff::exponential(ms(30), ms(200)).jitter(Jitter::None).reset(Reset::OnAck)),
        Just(Backoff::exponential(ms(30), ms(200)).jitter(Jitter::None).reset(Reset::OnReady)),
        Just(Backoff::exponential(ms(20), ms(300)).jitter(0.5)),
    ];
    let strategy = select(&[Range::OneForOne, Range::OneForAll, Range::RestForOne]);
    let auto = select(&[
        AutoShutdown::Never,
        AutoShutdown::Never,
        AutoShutdown::AnySignificant,
        AutoShutdown::AllSignificant,
    ]);
    let start = select(&[Start::Sequential, Start::Concurrent]);
    let first = select(&[FirstStart::Retry, FirstStart::Retry, FirstStart::Fail]);
    let limit = prop_oneof![3 => Just(None), 5 => an_intensity().prop_map(Some)];
    let of_each =
        (0..4_u32, 0..3_u32, 1..2_000_u64).prop_map(|(of_workers, of_supervisors, period)| {
            DefaultLimit { of_workers, of_supervisors, period: ms(period) }
        });
    let of_each = prop::option::weighted(0.3, of_each);
    let revival = select(&[Revival::AfterBackoff, Revival::AtOnce, Revival::Never]);
    let charge_and_ask = (any::<bool>(), any::<bool>(), of_each, revival);
    (backoff, strategy, auto, start, (first, exhausted(), limit, charge_and_ask)).prop_map(
        |(backoff, strategy, auto_shutdown, start, (first_start, on_exhausted, limit, rest))| {
            let (charge, has_failure_callback, of_each, revival) = rest;
            Rules {
                strategy,
                auto_shutdown,
                start,
                first_start,
                on_exhausted,
                intensity: limit,
                of_each,
                count_failed_starts: charge,
                has_failure_callback,
                revival,
                leak_timeout: ms(100),
                backoff,
                ..Rules::default()
            }
        },
    )
}
