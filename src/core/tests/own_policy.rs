//! What a child says of its own restart: limits, what follows when they are hit, and the log.

use std::sync::Arc;
use std::time::Instant;

use super::super::simulator::{Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, Effect, Machine, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureLog, Intensity, LogLevel, OnExhausted, RestartPolicy, Rules};

fn park() -> RestartPolicy {
    RestartPolicy::new().on_exhausted(OnExhausted::Park)
}

#[test]
fn a_limit_that_is_said_in_each_incarnation_counts_over_all_of_them() {
    let twice = || park().consecutive_restarts(2);
    let mut world = World::running(rules(), [kid("a"), kid("b")]);
    for _ in 0..2 {
        world.policy("a", twice());
        world.fail("a");
    }
    assert_eq!(world.acts(), "start a#2, start a#3");
    world.policy("a", twice());
    world.fail("a");
    assert_eq!(world.acts(), "gave up a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Errored, "it is parked, as it has said");
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
        let mut world = World::running(rules(), [kid("a")]);
        world.policy("a", policy.clone());
        world.fail("a");
        world.advance(secs(1));
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.acts(), "start a#2, start a#3", "the second time without: {policy:?}");
        world.policy("a", policy.clone());
        world.fail("a");
        assert_eq!(world.acts(), "start a#4", "it counts from none: {policy:?}");
        world.advance(secs(1));
        world.policy("a", policy.clone());
        world.fail("a");
        assert_eq!(world.acts(), "gave up a", "{policy:?}");
    }
}

#[test]
fn a_limit_of_its_own_stands_in_place_of_that_of_the_spec_and_the_others_stay() {
    let strict = || kid("a").consecutive(1).on_exhausted(OnExhausted::Park);
    let mut world = World::running(rules(), [strict()]);
    world.fail("a");
    world.policy("a", RestartPolicy::new().consecutive_restarts(3));
    world.fail("a");
    assert_eq!(world.acts(), "start a#2, start a#3", "three in a row are allowed this time");
    world.fail("a");
    assert_eq!(world.acts(), "gave up a", "and one the next time");

    let mut world = World::running(rules(), [strict()]);
    world.fail("a");
    world.policy("a", RestartPolicy::new().intensity(Intensity::sliding(9, secs(60))));
    world.fail("a");
    assert_eq!(world.acts(), "start a#2, gave up a", "the spec limits what is in a row");

    let mut world = World::running(Rules { intensity: at_most(1), ..rules() }, [kid("a")]);
    world.fail("a");
    world.policy("a", RestartPolicy::new().consecutive_restarts(9));
    world.fail("a");
    let acts = world.acts();
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
        let mut world = World::running(none, [kid("a"), kid("b")]);
        world.policy("a", RestartPolicy::new().on_exhausted(what));
        world.fail("a");
        assert_eq!(world.acts(), acts, "{what}");
    }

    let none = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..rules() };
    let mut world = World::running(none, [kid("a")]);
    world.policy("a", RestartPolicy::new().on_exhausted(OnExhausted::StopChild));
    world.fail("a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Stopped);
    assert_eq!(world.call("a", ChildRequest::Retry), "started 2");
    world.fail("a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Errored, "the next one says nothing");
}

#[test]
fn how_loudly_an_end_is_logged_is_said_with_the_decision() {
    let loud = |level| FailureLog::at(level);
    let spec = crate::policy::ChildOptions {
        failure_log: Some(loud(LogLevel::Info)),
        ..Default::default()
    };
    let now = Instant::now();
    let mut machine = Machine::ordered(rules(), now, 7);
    let key = machine.add(Arc::new(spec), now);
    machine.on_event(MachineEvent::Tick, now, &mut Vec::new());
    let own = RestartPolicy::new().failure_log(loud(LogLevel::Error));
    for (incarnation, own, expected) in
        [(1, None, LogLevel::Info), (2, Some(own), LogLevel::Error), (3, None, LogLevel::Info)]
    {
        let policy = own.map(Arc::new);
        machine.on_event(MachineEvent::Policy { key, incarnation, policy }, now, &mut Vec::new());
        let mut effects = Vec::new();
        let reason = Play::Fail.reason();
        machine.on_event(MachineEvent::Exited { key, incarnation, reason }, now, &mut effects);
        let logs = effects.iter().filter_map(|effect| match effect {
            Effect::Decided { log, .. } => Some(*log),
            _ => None,
        });
        assert_eq!(logs.collect::<Vec<_>>(), [loud(expected)], "incarnation {incarnation}");
    }
}
