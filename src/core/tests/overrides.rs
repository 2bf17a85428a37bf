//! Policies that an incarnation sets for itself: limits, what follows when they are exceeded, the log.

use std::sync::Arc;
use std::time::Instant;

use crate::core::verify::simulation::{Script, Simulation, at_most, fake, ms, rules, secs};
use crate::core::{ChildRequest, Effect, Machine, MachineEvent, UserCalls};
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureLog, Intensity, LogLevel, OnExhausted, RestartPolicy, Rules};

fn park() -> RestartPolicy {
    RestartPolicy::new().on_exhausted(OnExhausted::Park)
}

#[test]
fn a_limit_that_is_said_in_each_incarnation_counts_over_all_of_them() {
    let twice = || park().consecutive_restarts(2);
    let mut sim = Simulation::running(rules(), [fake("a"), fake("b")]);
    for _ in 0..2 {
        sim.policy("a", twice());
        sim.fail("a");
    }
    assert_eq!(sim.acts(), "start a#2, start a#3");
    sim.policy("a", twice());
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Errored, "it is parked, as its policy says");
}

#[test]
fn what_a_limit_has_counted_is_forgotten_with_the_first_restart_that_is_granted_without_it() {
    let policies = [
        park().consecutive_restarts(1),
        park().failing_for(ms(1)),
        park().intensity(Intensity::sliding(1, secs(60))),
        park().intensity(Intensity::decaying(1.0, secs(60))),
    ];
    for policy in policies {
        let mut sim = Simulation::running(rules(), [fake("a")]);
        sim.policy("a", policy.clone());
        sim.fail("a");
        sim.advance(secs(1));
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(
            sim.acts(),
            "start a#2, start a#3",
            "the second restart has no delay: {policy:?}"
        );
        sim.policy("a", policy.clone());
        sim.fail("a");
        assert_eq!(sim.acts(), "start a#4", "it counts from zero: {policy:?}");
        sim.advance(secs(1));
        sim.policy("a", policy.clone());
        sim.fail("a");
        assert_eq!(sim.acts(), "gave up a", "{policy:?}");
    }
}

#[test]
fn an_own_limit_replaces_that_of_the_spec_and_the_remaining_limits_stay() {
    let strict = || fake("a").consecutive(1).on_exhausted(OnExhausted::Park);
    let mut sim = Simulation::running(rules(), [strict()]);
    sim.fail("a");
    sim.policy("a", RestartPolicy::new().consecutive_restarts(3));
    sim.fail("a");
    assert_eq!(sim.acts(), "start a#2, start a#3", "three in a row are allowed this time");
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a", "and one restart the next time");

    let mut sim = Simulation::running(rules(), [strict()]);
    sim.fail("a");
    sim.policy("a", RestartPolicy::new().intensity(Intensity::sliding(9, secs(60))));
    sim.fail("a");
    assert_eq!(sim.acts(), "start a#2, gave up a", "the spec limits restarts in a row");

    let mut sim = Simulation::running(Rules { intensity: at_most(1), ..rules() }, [fake("a")]);
    sim.fail("a");
    sim.policy("a", RestartPolicy::new().consecutive_restarts(9));
    sim.fail("a");
    let acts = sim.acts();
    assert!(acts.starts_with("start a#2, gave up a"), "so does its supervisor: {acts}");
}

#[test]
fn what_follows_when_it_has_failed_too_often_is_for_this_incarnation() {
    let table = [
        (OnExhausted::Park, "gave up a"),
        (OnExhausted::StopChild, "gave up a"),
        (OnExhausted::Pause(secs(15)), "pause a"),
        (OnExhausted::Exit(3), "gave up a, cancel b, finish exit 3 a: failed"),
        (OnExhausted::Escalate, "gave up a, cancel b, finish escalated a: failed"),
    ];
    for (what, acts) in table {
        let none = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..rules() };
        let mut sim = Simulation::running(none, [fake("a"), fake("b")]);
        sim.policy("a", RestartPolicy::new().on_exhausted(what));
        sim.fail("a");
        assert_eq!(sim.acts(), acts, "{what}");
    }

    let none = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..rules() };
    let mut sim = Simulation::running(none, [fake("a")]);
    sim.policy("a", RestartPolicy::new().on_exhausted(OnExhausted::StopChild));
    sim.fail("a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Stopped);
    assert_eq!(sim.call("a", ChildRequest::RESUME), "started 2");
    sim.fail("a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Errored, "the next incarnation sets no policy");
}

#[test]
fn how_loudly_an_end_is_logged_is_said_with_the_decision() {
    let loud = |level| FailureLog::at(level);
    let spec = crate::policy::ChildOptions {
        values: crate::policy::ChildLayer {
            policy: RestartPolicy::new().failure_log(loud(LogLevel::Info)),
            ..Default::default()
        },
        ..Default::default()
    };
    let now = Instant::now();
    let mut machine = Machine::ordered(rules(), 1, now);
    let key = machine.add(spec, now);
    let mut calls = UserCalls::new(None, 7);
    let mut handle = |event| {
        let mut effects = Vec::new();
        machine.on_event(event, now, &mut calls, &mut effects);
        effects
    };
    handle(MachineEvent::Tick);
    let own = RestartPolicy::new().failure_log(loud(LogLevel::Error));
    for (incarnation, own, expected) in
        [(1, None, LogLevel::Info), (2, Some(own), LogLevel::Error), (3, None, LogLevel::Info)]
    {
        let policy = own.map(Arc::new);
        handle(MachineEvent::Policy { key, incarnation, policy });
        let reason = Script::Fail.reason();
        let effects = handle(MachineEvent::Exited { key, incarnation, reason });
        let logs = effects.iter().filter_map(|effect| match effect {
            Effect::Decided { log, .. } => Some(*log),
            _ => None,
        });
        assert_eq!(logs.collect::<Vec<_>>(), [loud(expected)], "incarnation {incarnation}");
    }
}
