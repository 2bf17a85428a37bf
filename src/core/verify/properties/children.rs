//! Random children, with random options, behaviour and fallbacks.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::core::verify::simulation::{FakeChild, Heart, Script, fake, ms, secs};
use crate::exit::ExitKind;
use crate::policy::{
    Backoff, Intensity, OnExhausted, OnExit, OnLeak, Resolution, RestartPolicy, RestartType,
    Shutdown,
};

const TYPES: [RestartType; 3] =
    [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];

pub(super) const ANSWERS: [Resolution; 3] =
    [Resolution::Restart, Resolution::GiveUp, Resolution::Escalate];

fn a_time() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![
        4 => Just(Some(Duration::ZERO)),
        4 => (1..300_u64).prop_map(|millis| Some(ms(millis))),
        1 => Just(None),
    ]
}

pub(super) fn an_intensity() -> impl Strategy<Value = Intensity> {
    let max = prop_oneof![1 => Just(0), 4 => 1..6_u32];
    (max, 0..4_u32).prop_map(|(max, kind)| match kind {
        0 | 1 => Intensity::sliding(max, secs(1)),
        2 => Intensity::tumbling(max, secs(1)),
        // Where sums of powers of two don't come.
        _ => Intensity::decaying(f64::from(max) + 0.234_567, ms(500)),
    })
}

pub(super) fn exhausted() -> impl Strategy<Value = OnExhausted> {
    prop_oneof![
        Just(OnExhausted::Escalate),
        Just(OnExhausted::Park),
        Just(OnExhausted::StopChild),
        Just(OnExhausted::Remove),
        select(&[150, 1_000]).prop_map(|millis| OnExhausted::Pause(ms(millis))),
        Just(OnExhausted::Exit(3)),
    ]
}

/// A policy that a child sets for itself.
pub(super) fn own_policy() -> impl Strategy<Value = RestartPolicy> {
    let backoffs = vec![Backoff::none(), Backoff::constant(ms(70))];
    (
        option::weighted(0.5, select(&TYPES)),
        option::weighted(0.2, proptest::sample::select(backoffs)),
        option::weighted(0.2, an_intensity()),
        option::weighted(0.2, 0..3_u32),
        option::weighted(0.2, 1..400_u64),
        option::weighted(0.3, exhausted()),
    )
        .prop_map(|(restart, backoff, intensity, consecutive, failing_for, on_exhausted)| {
            let mut policy = RestartPolicy::new();
            policy.restart = restart.map(Into::into);
            (policy.backoff, policy.on_exhausted) = (backoff, on_exhausted);
            intensity.into_iter().for_each(|it| policy.limits.intensity(it));
            consecutive.into_iter().for_each(|max| policy.limits.consecutive(max));
            failing_for.into_iter().for_each(|max| policy.limits.failing_for(ms(max)));
            policy
        })
}

/// A child, sometimes with its own limits and with a fallback.
pub(super) fn child_with_limits(number: usize) -> impl Strategy<Value = FakeChild> {
    let limits = (
        option::weighted(0.2, an_intensity()),
        option::weighted(0.2, 0..3_u32),
        option::weighted(0.2, 1..400_u64),
        option::weighted(0.3, exhausted()),
    );
    let message_options = (prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let lease = option::weighted(0.2, 0..300_u64);
    let fallback = option::weighted(0.2, a_child(number));
    (a_child(number), limits, fallback, message_options, lease).prop_map(
        |(
            mut fake,
            (intensity, consecutive, failing_for, on_exhausted),
            mut fallback,
            message_options,
            lease,
        )| {
            (fake.options.on_message, fake.options.delays_delivery) = message_options;
            // A fallback has the lease of the child that it replaces.
            for fake in [Some(&mut fake), fallback.as_mut()].into_iter().flatten() {
                fake.options.lease_grace = lease.map(ms);
            }
            if let Some(intensity) = intensity {
                fake = fake.intensity(intensity);
            }
            if let Some(max) = consecutive {
                fake = fake.consecutive(max);
            }
            if let Some(millis) = failing_for {
                fake = fake.failing_for(ms(millis));
            }
            if let Some(on_exhausted) = on_exhausted {
                fake = fake.on_exhausted(on_exhausted);
            }
            if let Some(fallback) = fallback {
                fake = fake.fallback(fallback);
            }
            fake
        },
    )
}

fn a_child(number: usize) -> impl Strategy<Value = FakeChild> {
    let script = select(&[
        Script::Run,
        Script::Fail,
        Script::Fail,
        Script::Busy,
        Script::Panic,
        Script::Ignore,
        Script::End,
        Script::Escalate,
        Script::Exit,
    ]);
    let restart = select(&[
        RestartType::Permanent,
        RestartType::Transient,
        RestartType::Temporary,
        RestartType::OnSuccess,
        RestartType::OnAbnormal,
        RestartType::OnAbort,
    ]);
    let exception = (
        select(&[
            ExitKind::Normal,
            ExitKind::Failed,
            ExitKind::ActivationFailed,
            ExitKind::Panicked,
        ]),
        select(&[
            OnExit::Restart,
            OnExit::Restart,
            OnExit::RestartUncharged,
            OnExit::RestartUncharged,
            OnExit::Leave,
            OnExit::Leave,
            OnExit::EndSupervisor,
            OnExit::FailSupervisor,
        ]),
    );
    let shutdown = prop_oneof![
        1 => Just(Shutdown::BrutalKill),
        1 => Just(Shutdown::Infinity),
        1 => Just(Shutdown::Timeout(Duration::ZERO)),
        1 => Just(Shutdown::Drain(ms(200))),
        3 => select(&[100, 200, 500]).prop_map(|millis| Shutdown::Timeout(ms(millis))),
    ];
    let flags = any::<(bool, bool, bool, bool)>();
    let options = (restart, option::of(shutdown), flags);
    // Never ready only with a timeout, so that all children can come up once none fails any more.
    let answers = (vec((0..6_000_u64, select(&ANSWERS)), 0..2), any::<bool>());
    let script = (a_time(), a_time(), a_time(), vec(script, 0..3), answers);
    let retry_after = option::weighted(0.3, select(&[0_u64, 30, 500]));
    let links = (
        vec(0..8_usize, 0..2),
        option::of(1..400_u64),
        option::weighted(0.2, exception),
        retry_after,
        option::weighted(0.2, (50..400_u64, any::<bool>())),
        option::weighted(0.1, 300..5_000_u64),
    );
    (options, script, links).prop_map(
        move |(options, script, (requires, timeout, exception, retry_after, watchdog, limit))| {
            let (restart, shutdown, (significant, signals, parks, frail)) = options;
            let (ready, stops, dies, scripts, (answers, silent)) = script;
            let mut fake = fake(&name(number)).restart(restart).stops(stops).scripts(scripts);
            fake.dies = dies;
            fake.silent = silent;
            fake = fake.answers(answers.into_iter().map(|(after, answer)| (ms(after), answer)));
            if signals {
                fake = fake.signals(ready);
            }
            if significant && restart != RestartType::Permanent {
                fake = fake.significant();
            }
            if let Some(shutdown) = shutdown {
                fake = fake.shutdown(shutdown);
            }
            if let Some((kind, then)) = exception {
                fake = fake.on_exit(kind, then);
            }
            if let Some(millis) = retry_after {
                fake = fake.retry_after(ms(millis));
            }
            if frail {
                fake = fake.fails_unhealthy();
            }
            if parks {
                fake = fake.on_leak(OnLeak::Park);
            }
            if let Some((millis, beats)) = watchdog {
                fake = fake.watchdog(ms(millis));
                fake.heart = if beats { Heart::Beats } else { Heart::Manual(None) };
            }
            if let Some(limit) = limit {
                fake = fake.run_time_limit(ms(limit));
            }
            if let Some(timeout) = timeout {
                fake = fake.activation_timeout(ms(timeout));
            }
            for required in requires.into_iter().filter(|&required| required < number) {
                fake = fake.requires(&name(required));
            }
            fake
        },
    )
}

fn name(number: usize) -> String {
    format!("c{number}")
}

pub(super) fn fakes(many: usize) -> impl Strategy<Value = Vec<FakeChild>> {
    let few =
        (1..8_usize).prop_flat_map(|count| (0..count).map(child_with_limits).collect::<Vec<_>>());
    let many =
        (65..=many).prop_flat_map(|count| (0..count).map(child_with_limits).collect::<Vec<_>>());
    prop_oneof![12 => few, 1 => many]
}
