//! Random children, random trouble: the [simulator](super::super::simulator) checks every event
//! against the invariants, and here is checked what must come of it in the end.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::simulator::{Kid, Play, World, kid, ms, secs};
use super::super::state::{Down, State};
use super::super::{ChildRequest, Key, MachineEvent};
use super::REQUESTS;
use crate::exit::{ExitError, ExitKind, ExitReason};
use crate::failure::Resolution;
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
    /// It fails with the error that may ask for a wait.
    Busy(usize),
    Panic(usize),
    End(usize),
    Ready(usize),
    Healthy(usize),
    StopSelf(usize),
    /// It acknowledges a message.
    Acked(usize),
    /// A message waits for it.
    Wanted(usize),
    Policy(usize, Box<RestartPolicy>),
    /// It is said whether it is well.
    Checked(usize, bool),
    /// It is decided what becomes of a child, be it asked or not.
    Decide(usize, Resolution),
    Ask(usize, ChildRequest),
    Add(Box<Kid>),
    Wait(u64),
    /// A tick that nobody asked for.
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
    let who = 0..8_usize;
    prop_oneof![
        4 => who.clone().prop_map(Step::Crash),
        1 => who.clone().prop_map(Step::Busy),
        1 => who.clone().prop_map(Step::Panic),
        2 => who.clone().prop_map(Step::End),
        2 => who.clone().prop_map(Step::Ready),
        1 => who.clone().prop_map(Step::Healthy),
        1 => who.clone().prop_map(Step::StopSelf),
        1 => who.clone().prop_map(Step::Acked),
        2 => who.clone().prop_map(Step::Wanted),
        1 => (who.clone(), a_word()).prop_map(|(who, word)| Step::Policy(who, Box::new(word))),
        1 => (who.clone(), any::<bool>()).prop_map(|(who, well)| Step::Checked(who, well)),
        2 => (who.clone(), select(&ANSWERS)).prop_map(|(who, answer)| Step::Decide(who, answer)),
        6 => (who, select(&REQUESTS)).prop_map(|(who, request)| Step::Ask(who, request)),
        1 => limited(9).prop_map(|kid| Step::Add(Box::new(kid))),
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
fn limited(number: usize) -> impl Strategy<Value = Kid> {
    let limits = (
        option::weighted(0.2, an_intensity()),
        option::weighted(0.2, 0..3_u32),
        option::weighted(0.2, 1..400_u64),
        option::weighted(0.3, exhausted()),
    );
    let mail = (prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    (a_kid(number), limits, option::weighted(0.2, a_kid(number)), mail).prop_map(
        |(mut kid, (intensity, consecutive, failing_for, on_exhausted), fallback, mail)| {
            (kid.options.on_message, kid.options.delays_traffic) = mail;
            if let Some(intensity) = intensity {
                kid = kid.intensity(intensity);
            }
            if let Some(max) = consecutive {
                kid = kid.consecutive(max);
            }
            if let Some(millis) = failing_for {
                kid = kid.failing_for(ms(millis));
            }
            if let Some(on_exhausted) = on_exhausted {
                kid = kid.on_exhausted(on_exhausted);
            }
            if let Some(fallback) = fallback {
                kid = kid.fallback(fallback);
            }
            kid
        },
    )
}

fn a_kid(number: usize) -> impl Strategy<Value = Kid> {
    let play = select(&[
        Play::Run,
        Play::Fail,
        Play::Fail,
        Play::Busy,
        Play::Panic,
        Play::Ignore,
        Play::End,
        Play::Escalate,
        Play::Exit,
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
    // Never ready only with a time-out, so that all can come up once nothing fails any more.
    let answers = (vec((0..6_000_u64, select(&ANSWERS)), 0..2), any::<bool>());
    let script = (a_time(), a_time(), a_time(), vec(play, 0..3), answers);
    let told = option::weighted(0.3, select(&[0_u64, 30, 500]));
    let links =
        (vec(0..8_usize, 0..2), option::of(1..400_u64), option::weighted(0.2, exception), told);
    (options, script, links).prop_map(
        move |(options, script, (requires, timeout, exception, told))| {
            let (restart, shutdown, (significant, signals, parks, frail)) = options;
            let (ready, stops, dies, plays, (answers, silent)) = script;
            let mut kid = kid(&name(number)).restart(restart).stops(stops).plays(plays);
            kid.dies = dies;
            kid.silent = silent;
            kid = kid.answers(answers.into_iter().map(|(after, answer)| (ms(after), answer)));
            if signals {
                kid = kid.signals(ready);
            }
            if significant && restart != RestartType::Permanent {
                kid = kid.significant();
            }
            if let Some(shutdown) = shutdown {
                kid = kid.shutdown(shutdown);
            }
            if let Some((kind, then)) = exception {
                kid = kid.on_exit(kind, then);
            }
            if let Some(millis) = told {
                kid = kid.told(ms(millis));
            }
            if frail {
                kid = kid.fails_unhealthy();
            }
            if parks {
                kid = kid.on_leak(OnLeak::Park);
            }
            if let Some(timeout) = timeout {
                kid = kid.activation_timeout(ms(timeout));
            }
            for required in requires.into_iter().filter(|&required| required < number) {
                kid = kid.requires(&name(required));
            }
            kid
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
                asks,
                leak_timeout: ms(100),
                backoff,
                ..Rules::default()
            }
        },
    )
}

fn kids(many: usize) -> impl Strategy<Value = Vec<Kid>> {
    let few = (1..8_usize).prop_flat_map(|count| (0..count).map(limited).collect::<Vec<_>>());
    let many = (65..=many).prop_flat_map(|count| (0..count).map(limited).collect::<Vec<_>>());
    prop_oneof![12 => few, 1 => many]
}

/// Does to the world what the script says. A step is about a child that is there, or, for some
/// requests, about one that was.
fn follow(world: &mut World, script: Vec<Step>) {
    let known: Vec<Key> = world.present().into_iter().map(|(_, key)| key).collect();
    for step in script {
        if world.finished() {
            return;
        }
        let present = world.present();
        let pick = |who: usize| present.get(who % present.len().max(1)).map(|(name, _)| &**name);
        match step {
            Step::Busy(who) => {
                if let Some(name) = pick(who) {
                    world.exit(name, Play::Busy.reason());
                }
            }
            Step::Crash(who) => {
                if let Some(name) = pick(who) {
                    world.crash(name);
                }
            }
            Step::Panic(who) => {
                let reason = ExitReason::Panicked("oh".to_owned());
                if let Some(name) = pick(who) {
                    world.exit(name, reason);
                }
            }
            Step::End(who) => {
                if let Some(name) = pick(who) {
                    world.exit(name, ExitReason::Normal);
                }
            }
            Step::Ready(who) => {
                if let Some(name) = pick(who) {
                    world.ready(name);
                }
            }
            Step::Wanted(who) => {
                if let Some(&key) = known.get(who % known.len().max(1)) {
                    world.event(MachineEvent::MessagePending { key });
                }
            }
            Step::Healthy(who) | Step::StopSelf(who) | Step::Acked(who) => {
                let live = present.get(who % present.len().max(1));
                if let Some((key, incarnation)) =
                    live.and_then(|&(_, key)| world.live(key).map(|live| (key, live)))
                {
                    world.event(match step {
                        Step::Healthy(_) => MachineEvent::Healthy { key, incarnation },
                        Step::Acked(_) => MachineEvent::Acked { key, incarnation },
                        _ => MachineEvent::StopSelf { key, incarnation },
                    });
                }
            }
            Step::Policy(who, word) => {
                if let Some(name) = pick(who) {
                    world.policy(name, *word);
                }
            }
            Step::Checked(who, well) => {
                if let Some(name) = pick(who) {
                    world.says(
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
            Step::Decide(who, resolution) => {
                if let Some(name) = pick(who) {
                    world.decide(name, resolution.into());
                }
            }
            Step::Ask(who, request) => {
                if let Some(&key) = known.get(who % known.len().max(1)) {
                    world.ask_for(key, request);
                }
            }
            Step::Add(kid) => {
                let free = present.iter().all(|(name, _)| *name != kid.name());
                if free && world.machine.admits().is_ok() {
                    world.add(*kid);
                }
            }
            Step::Wait(millis) => world.advance(ms(millis)),
            Step::Tick => world.event(MachineEvent::Tick),
        }
    }
}

/// How long the children that are there may take to stop, one after the other and all at once.
fn bounds(world: &World) -> (Option<Duration>, Option<Duration>) {
    let leak = world.machine.children().rules.leak_timeout;
    let mut bounds = (Some(Duration::ZERO), Some(Duration::ZERO));
    for (_, key) in world.present() {
        let grace = match world.machine.children().shutdown(key) {
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

/// Ends the story, and checks that it ends well.
fn conclude(
    world: &mut World,
    end: End,
    bound: impl Fn(&World) -> Option<Duration>,
) -> Result<(), TestCaseError> {
    let leak = world.machine.children().rules.leak_timeout;
    let limit = match end {
        _ if world.finished() => return Ok(()),
        End::Heal => return recover(world),
        End::AbortAll => {
            let limit = Some(leak);
            world.event(MachineEvent::AbortAll);
            limit
        }
        End::Stop { within } => {
            let limit = bound(world);
            let within = within.map(ms);
            world.event(MachineEvent::Stop { within });
            let total = within.map(|within| within + leak);
            limit.into_iter().chain(total).min()
        }
        End::StopTwice { within, then } => {
            world.event(MachineEvent::Stop { within: Some(ms(within)) });
            world.event(MachineEvent::Stop { within: Some(ms(then)) });
            Some(ms(within.min(then)) + leak)
        }
    };
    match limit {
        Some(limit) => {
            world.advance(limit);
            prop_assert!(world.finished(), "it stops within {:?}", limit);
        }
        None => {
            world.heal();
            prop_assert!(world.until_idle(secs(60)).is_some());
            prop_assert!(world.finished(), "it stops when its children do");
        }
    }
    Ok(())
}

/// Once nothing fails any more, whatever should be up comes up.
fn recover(world: &mut World) -> Result<(), TestCaseError> {
    world.heal();
    prop_assert!(world.until_idle(secs(60)).is_some(), "it comes to rest");
    if world.finished() {
        return Ok(());
    }
    world.check_rest();
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
        kids in kids(90),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let mut world = World::ordered(rules, kids);
        follow(&mut world, script);
        conclude(&mut world, end, |world| bounds(world).0)?;
    }

    #[test]
    fn no_script_breaks_the_rules_of_equal_children(
        rules in some_rules(),
        kids in kids(200),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let kids = kids.into_iter().map(Kid::alone);
        let script = script.into_iter().map(|step| match step {
            Step::Add(kid) => Step::Add(Box::new(kid.alone())),
            other => other,
        });
        let script = script.collect();
        let mut world = World::dynamic(rules, kids);
        follow(&mut world, script);
        conclude(&mut world, end, |world| bounds(world).1)?;
    }

    /// Without a limit, without parking, and if nobody interferes, all come back.
    #[test]
    fn what_fails_comes_back_once_it_can(
        rules in some_rules(),
        kids in kids(70),
        crashes in vec((0..8_usize, 0..200_u64), 0..20),
    ) {
        let rules = Rules {
            intensity: None,
            auto_shutdown: AutoShutdown::Never,
            first_start: FirstStart::Retry,
            asks: false,
            ..rules
        };
        let kids = kids.into_iter().map(|kid| kid.always_restarts().endless());
        let kids: Vec<_> = kids.collect();
        let mut world = World::ordered(rules, kids);
        for (who, wait) in crashes {
            let present = world.present();
            let (name, _) = &present[who % present.len()];
            world.exit(name, ExitReason::Failed(ExitError::from("no")));
            world.advance(ms(wait));
        }
        world.heal();
        prop_assert!(world.until_idle(secs(60)).is_some());
        for (name, key) in world.present() {
            let state = world.state(key).expect("a child that is there");
            // It declined, leaked and is not to run twice, or waits for a message; or it requires
            // such a one.
            let given_up = matches!(
                state,
                State::Down(Down::Ignored | Down::Leaked | Down::Dormant) | State::Gated(_)
            );
            prop_assert!(state == State::Active || given_up, "{} is {:?}", name, state);
        }
    }
}

/// What is asked for by a variable of proptest's: more cases, or none that are shrunk.
fn asked(what: &str, default: u32) -> u32 {
    let asked = std::env::var(format!("PROPTEST_{what}")).ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(default)
}
