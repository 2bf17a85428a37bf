//! Random children and random scripts.
//!
//! The [simulation](crate::core::verify::simulation) checks the invariants at every event; the properties
//! check the outcome.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::core::child::{ChildState, DownState};
use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, fake, ms, secs};
use crate::core::{ChildRequest, Key, MachineEvent};
use crate::exit::{ExitError, ExitKind, ExitReason};
use crate::policy::Resolution;
use crate::policy::{
    AutoShutdown, Backoff, FirstStart, Intensity, OnExhausted, OnExit, OnLeak, Reset,
    RestartPolicy, RestartType, Rules, Shutdown, Start, Strategy as Range,
};

const TYPES: [RestartType; 3] =
    [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];

const ANSWERS: [Resolution; 3] = [Resolution::Restart, Resolution::GiveUp, Resolution::Escalate];

#[derive(Clone, Debug)]
enum Step {
    Crash(usize),
    /// Fails with the error that may ask for a delay.
    Busy(usize),
    Panic(usize),
    End(usize),
    Ready(usize),
    Healthy(usize),
    StopSelf(usize),
    /// Acknowledges a message.
    Acked(usize),
    /// A message waits for the child.
    Wanted(usize),
    Policy(usize, Box<RestartPolicy>),
    /// The result of a health check: whether it passes.
    Checked(usize, bool),
    /// A decision of the failure callback, whether it was called or not.
    Decide(usize, Resolution),
    Ask(usize, ChildRequest),
    Add(Box<FakeChild>),
    Wait(u64),
    /// A tick without a deadline.
    Tick,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Stop { within: Option<u64> },
    StopTwice { within: u64, then: u64 },
    AbortAll,
    Heal,
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..8_usize;
    prop_oneof![
        4 => index.clone().prop_map(Step::Crash),
        1 => index.clone().prop_map(Step::Busy),
        1 => index.clone().prop_map(Step::Panic),
        2 => index.clone().prop_map(Step::End),
        2 => index.clone().prop_map(Step::Ready),
        1 => index.clone().prop_map(Step::Healthy),
        1 => index.clone().prop_map(Step::StopSelf),
        1 => index.clone().prop_map(Step::Acked),
        2 => index.clone().prop_map(Step::Wanted),
        1 => (index.clone(), a_word()).prop_map(|(index, word)| Step::Policy(index, Box::new(word))),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, well)| Step::Checked(index, well)),
        2 => (index.clone(), select(&ANSWERS)).prop_map(|(index, answer)| Step::Decide(index, answer)),
        6 => (index, select(&REQUESTS)).prop_map(|(index, request)| Step::Ask(index, request)),
        1 => limited(9).prop_map(|fake| Step::Add(Box::new(fake))),
        6 => (0..400_u64).prop_map(Step::Wait),
        1 => Just(Step::Tick),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        option::of(0..3_000_u64).prop_map(|within| End::Stop { within }),
        (0..3_000_u64, 0..3_000_u64).prop_map(|(within, then)| End::StopTwice { within, then }),
        Just(End::AbortAll),
        Just(End::Heal),
        Just(End::Heal),
    ]
}

fn a_time() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![
        4 => Just(Some(Duration::ZERO)),
        4 => (1..300_u64).prop_map(|millis| Some(ms(millis))),
        1 => Just(None),
    ]
}

fn an_intensity() -> impl Strategy<Value = Intensity> {
    let max = prop_oneof![1 => Just(0), 4 => 1..6_u32];
    (max, 0..4_u32).prop_map(|(max, kind)| match kind {
        0 | 1 => Intensity::sliding(max, secs(1)),
        2 => Intensity::tumbling(max, secs(1)),
        // Where sums of powers of two don't come.
        _ => Intensity::decaying(f64::from(max) + 0.234_567, ms(500)),
    })
}

fn exhausted() -> impl Strategy<Value = OnExhausted> {
    prop_oneof![
        Just(OnExhausted::Escalate),
        Just(OnExhausted::Park),
        Just(OnExhausted::StopChild),
        select(&[150, 1_000]).prop_map(|millis| OnExhausted::Pause(ms(millis))),
        Just(OnExhausted::Exit(3)),
    ]
}

/// What a child may say of its restart.
fn a_word() -> impl Strategy<Value = RestartPolicy> {
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
            let mut word = RestartPolicy::new();
            word.restart = restart.map(Into::into);
            (word.backoff, word.on_exhausted) = (backoff, on_exhausted);
            intensity.into_iter().for_each(|it| word.limits.intensity(it));
            consecutive.into_iter().for_each(|max| word.limits.consecutive(max));
            failing_for.into_iter().for_each(|max| word.limits.failing_for(ms(max)));
            word
        })
}

/// A child with limits of its own, maybe, and maybe with one that takes its place.
fn limited(number: usize) -> impl Strategy<Value = FakeChild> {
    let limits = (
        option::weighted(0.2, an_intensity()),
        option::weighted(0.2, 0..3_u32),
        option::weighted(0.2, 1..400_u64),
        option::weighted(0.3, exhausted()),
    );
    let mail = (prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    (a_kid(number), limits, option::weighted(0.2, a_kid(number)), mail).prop_map(
        |(mut fake, (intensity, consecutive, failing_for, on_exhausted), fallback, mail)| {
            (fake.options.on_message, fake.options.delays_delivery) = mail;
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

fn a_kid(number: usize) -> impl Strategy<Value = FakeChild> {
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
        3 => select(&[100, 200, 500]).prop_map(|millis| Shutdown::Timeout(ms(millis))),
    ];
    let flags = any::<(bool, bool, bool, bool)>();
    let options = (restart, option::of(shutdown), flags);
    // Never ready only with a timeout, so that all children can come up once none fails any more.
    let answers = (vec((0..6_000_u64, select(&ANSWERS)), 0..2), any::<bool>());
    let script = (a_time(), a_time(), a_time(), vec(script, 0..3), answers);
    let told = option::weighted(0.3, select(&[0_u64, 30, 500]));
    let links =
        (vec(0..8_usize, 0..2), option::of(1..400_u64), option::weighted(0.2, exception), told);
    (options, script, links).prop_map(
        move |(options, script, (requires, timeout, exception, told))| {
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
            if let Some(millis) = told {
                fake = fake.told(ms(millis));
            }
            if frail {
                fake = fake.fails_unhealthy();
            }
            if parks {
                fake = fake.on_leak(OnLeak::Park);
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

fn some_rules() -> impl Strategy<Value = Rules> {
    let backoff = prop_oneof![
        Just(Backoff::none()),
        Just(Backoff::constant(ms(50))),
        Just(Backoff::exponential(ms(30), ms(200)).reset(Reset::OnAck)),
        Just(Backoff::exponential(ms(30), ms(200)).reset(Reset::OnReady)),
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
    let charge_and_ask = any::<(bool, bool)>();
    (backoff, strategy, auto, start, (first, exhausted(), limit, charge_and_ask)).prop_map(
        |(backoff, strategy, auto_shutdown, start, (first_start, on_exhausted, limit, rest))| {
            let (charge, asks) = rest;
            Rules {
                strategy,
                auto_shutdown,
                start,
                first_start,
                on_exhausted,
                intensity: limit,
                charge_everything: charge,
                has_failure_callback: asks,
                leak_timeout: ms(100),
                backoff,
                ..Rules::default()
            }
        },
    )
}

fn fakes(many: usize) -> impl Strategy<Value = Vec<FakeChild>> {
    let few = (1..8_usize).prop_flat_map(|count| (0..count).map(limited).collect::<Vec<_>>());
    let many = (65..=many).prop_flat_map(|count| (0..count).map(limited).collect::<Vec<_>>());
    prop_oneof![12 => few, 1 => many]
}

/// Runs a script. A step concerns an existing child, or, for some requests, a removed one.
fn follow(sim: &mut Simulation, script: Vec<Step>) {
    let known: Vec<Key> = sim.present().into_iter().map(|(_, key)| key).collect();
    for step in script {
        if sim.finished() {
            return;
        }
        let present = sim.present();
        let pick =
            |index: usize| present.get(index % present.len().max(1)).map(|(name, _)| &**name);
        match step {
            Step::Busy(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, Script::Busy.reason());
                }
            }
            Step::Crash(index) => {
                if let Some(name) = pick(index) {
                    sim.crash(name);
                }
            }
            Step::Panic(index) => {
                let reason = ExitReason::Panicked("oh".to_owned());
                if let Some(name) = pick(index) {
                    sim.exit(name, reason);
                }
            }
            Step::End(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, ExitReason::Normal);
                }
            }
            Step::Ready(index) => {
                if let Some(name) = pick(index) {
                    sim.ready(name);
                }
            }
            Step::Wanted(index) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.event(MachineEvent::MessagePending { key });
                }
            }
            Step::Healthy(index) | Step::StopSelf(index) | Step::Acked(index) => {
                let live = present.get(index % present.len().max(1));
                if let Some((key, incarnation)) =
                    live.and_then(|&(_, key)| sim.live(key).map(|live| (key, live)))
                {
                    sim.event(match step {
                        Step::Healthy(_) => MachineEvent::Healthy { key, incarnation },
                        Step::Acked(_) => MachineEvent::Acked { key, incarnation },
                        _ => MachineEvent::StopSelf { key, incarnation },
                    });
                }
            }
            Step::Policy(index, word) => {
                if let Some(name) = pick(index) {
                    sim.policy(name, *word);
                }
            }
            Step::Checked(index, well) => {
                if let Some(name) = pick(index) {
                    sim.says(
                        name,
                        match well {
                            true => |key, incarnation| MachineEvent::Health {
                                key,
                                incarnation,
                                problem: None,
                            },
                            false => |key, incarnation| MachineEvent::Health {
                                key,
                                incarnation,
                                problem: Some("ill".into()),
                            },
                        },
                    );
                }
            }
            Step::Decide(index, resolution) => {
                if let Some(name) = pick(index) {
                    sim.decide(name, resolution.into());
                }
            }
            Step::Ask(index, request) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.ask_for(key, request);
                }
            }
            Step::Add(fake) => {
                let free = present.iter().all(|(name, _)| *name != fake.name());
                if free && sim.machine.admits().is_ok() {
                    sim.add(*fake);
                }
            }
            Step::Wait(millis) => sim.advance(ms(millis)),
            Step::Tick => sim.event(MachineEvent::Tick),
        }
    }
}

/// How long the remaining children may take to stop: one after the other, and all at once.
fn bounds(sim: &Simulation) -> (Option<Duration>, Option<Duration>) {
    let leak = sim.machine.children().rules.leak_timeout;
    let mut bounds = (Some(Duration::ZERO), Some(Duration::ZERO));
    for (_, key) in sim.present() {
        let grace = match sim.machine.children().shutdown(key) {
            Shutdown::BrutalKill => Some(leak),
            Shutdown::Timeout(grace) => Some(grace + leak),
            Shutdown::Infinity => None,
        };
        let (sum, max) = bounds;
        bounds = (
            sum.zip(grace).map(|(sum, grace)| sum + grace),
            max.zip(grace).map(|(max, grace)| max.max(grace)),
        );
    }
    bounds
}

/// Ends the simulation, and checks the outcome.
fn conclude(
    sim: &mut Simulation,
    end: End,
    bound: impl Fn(&Simulation) -> Option<Duration>,
) -> Result<(), TestCaseError> {
    let leak = sim.machine.children().rules.leak_timeout;
    let limit = match end {
        _ if sim.finished() => return Ok(()),
        End::Heal => return recover(sim),
        End::AbortAll => {
            let limit = Some(leak);
            sim.event(MachineEvent::AbortAll);
            limit
        }
        End::Stop { within } => {
            let limit = bound(sim);
            let within = within.map(ms);
            sim.event(MachineEvent::Stop { within });
            let total = within.map(|within| within + leak);
            limit.into_iter().chain(total).min()
        }
        End::StopTwice { within, then } => {
            sim.event(MachineEvent::Stop { within: Some(ms(within)) });
            sim.event(MachineEvent::Stop { within: Some(ms(then)) });
            Some(ms(within.min(then)) + leak)
        }
    };
    match limit {
        Some(limit) => {
            sim.advance(limit);
            prop_assert!(sim.finished(), "it stops within {:?}", limit);
        }
        None => {
            sim.heal();
            prop_assert!(sim.until_idle(secs(60)).is_some());
            prop_assert!(sim.finished(), "it stops when its children do");
        }
    }
    Ok(())
}

/// Checks that once no child fails any more, every child that should be up comes up.
fn recover(sim: &mut Simulation) -> Result<(), TestCaseError> {
    sim.heal();
    prop_assert!(sim.until_idle(secs(60)).is_some(), "it comes to rest");
    if sim.finished() {
        return Ok(());
    }
    sim.check_rest();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: asked("CASES", 500),
        max_shrink_iters: asked("MAX_SHRINK_ITERS", 4_000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_script_breaks_the_rules_of_children_in_order(
        rules in some_rules(),
        fakes in fakes(90),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let mut sim = Simulation::ordered(rules, fakes);
        follow(&mut sim, script);
        conclude(&mut sim, end, |sim| bounds(sim).0)?;
    }

    #[test]
    fn no_script_breaks_the_rules_of_equal_children(
        rules in some_rules(),
        fakes in fakes(200),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let fakes = fakes.into_iter().map(FakeChild::alone);
        let script = script.into_iter().map(|step| match step {
            Step::Add(fake) => Step::Add(Box::new(fake.alone())),
            other => other,
        });
        let script = script.collect();
        let mut sim = Simulation::dynamic(rules, fakes);
        follow(&mut sim, script);
        conclude(&mut sim, end, |sim| bounds(sim).1)?;
    }

    /// Without a limit, without parking and without requests, all children come back.
    #[test]
    fn what_fails_comes_back_once_it_can(
        rules in some_rules(),
        fakes in fakes(70),
        crashes in vec((0..8_usize, 0..200_u64), 0..20),
    ) {
        let rules = Rules {
            intensity: None,
            auto_shutdown: AutoShutdown::Never,
            first_start: FirstStart::Retry,
            has_failure_callback: false,
            ..rules
        };
        let fakes = fakes.into_iter().map(|fake| fake.always_restarts().endless());
        let fakes: Vec<_> = fakes.collect();
        let mut sim = Simulation::ordered(rules, fakes);
        for (index, wait) in crashes {
            let present = sim.present();
            let (name, _) = &present[index % present.len()];
            sim.exit(name, ExitReason::Failed(ExitError::from("no")));
            sim.advance(ms(wait));
        }
        sim.heal();
        prop_assert!(sim.until_idle(secs(60)).is_some());
        for (name, key) in sim.present() {
            let state = sim.state(key).expect("a child that is there");
            // It declined, leaked or waits for a message, or it requires such a child.
            let given_up = matches!(
                state,
                ChildState::Down(DownState::Ignored | DownState::Leaked | DownState::Dormant) | ChildState::Gated(_)
            );
            prop_assert!(state == ChildState::Active || given_up, "{} is {:?}", name, state);
        }
    }
}

/// The settings of proptest's environment variables: more cases, or no shrinking.
fn asked(what: &str, default: u32) -> u32 {
    let asked = std::env::var(format!("PROPTEST_{what}")).ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(default)
}
