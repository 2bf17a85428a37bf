//! Health checks: what is reported, and children that fail as unhealthy.

use std::sync::Arc;

use crate::core::verify::simulation::{FakeChild, Simulation, at_most, fake, ms, rules, secs};
use crate::core::{ChildRequest, ConditionEvent, MachineEvent};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExit, RestartType, Rules, Strategy};

/// A health check of the live incarnation fails.
fn check_fails(sim: &mut Simulation, name: &str) {
    sim.child_event(name, |key, incarnation| {
        MachineEvent::Condition(ConditionEvent::Health {
            key,
            incarnation,
            problem: Some("ill".into()),
        })
    });
    sim.settle();
}

/// A health check of the live incarnation passes.
fn check_passes(sim: &mut Simulation, name: &str) {
    sim.child_event(name, |key, incarnation| {
        MachineEvent::Condition(ConditionEvent::Health { key, incarnation, problem: None })
    });
    sim.settle();
}

/// A child that fails when its health check fails.
fn frail(name: &str) -> FakeChild {
    fake(name).fails_unhealthy()
}

#[test]
fn seed3_34_an_unhealthy_child_is_reported_and_nothing_else_follows() {
    let mut sim = Simulation::running(rules(), [fake("a"), fake("b")]);
    check_fails(&mut sim, "a");
    check_passes(&mut sim, "a");
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "unhealthy a, healthy a, unhealthy a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Active);

    let mut sim = Simulation::dynamic(rules(), [fake("a")]);
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "unhealthy a");
}

#[test]
fn kin_163_an_unhealthy_child_fails_once_although_it_stays_so() {
    let mut sim = Simulation::running(rules(), [frail("a").stops(secs(2)), fake("b")]);
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "unhealthy a, cancel a");
    check_fails(&mut sim, "a");
    sim.advance(secs(1));
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "", "it is stopping");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#2");
    let story = "active → errored (unhealthy) → resolved → activating → active";
    let story_of_a = sim.story("a");
    assert!(story_of_a.ends_with(story), "{story_of_a}");

    // The new incarnation is healthy.
    check_passes(&mut sim, "a");
    assert_eq!(sim.acts(), "healthy a");
}

#[test]
fn kin_163_what_is_said_of_a_child_that_waits_for_its_restart_adds_no_second_one() {
    let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
    let mut sim = Simulation::running(rules, [frail("a")]);
    sim.fail("a");
    check_fails(&mut sim, "a");
    sim.advance(secs(1) - ms(1));
    check_fails(&mut sim, "a");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "start a#2");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "");
}

#[test]
fn a_child_that_is_not_active_has_no_health() {
    let mut sim = Simulation::ordered(rules(), [frail("a").signals(None)]);
    sim.settle();
    sim.skip();
    check_fails(&mut sim, "a");
    check_passes(&mut sim, "a");
    assert_eq!(sim.acts(), "");
    sim.ready("a");
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "up, unhealthy a, cancel a, start a#2");
}

#[test]
fn an_unhealthy_child_takes_its_range_with_it_and_is_charged() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, intensity: at_most(1), ..rules() };
    let mut sim = Simulation::running(one_for_all, [fake("a"), frail("b"), fake("c")]);
    check_fails(&mut sim, "b");
    let expected = "unhealthy b, cancel b, cancel c, cancel a, start a#2, start b#2, start c#2";
    assert_eq!(sim.acts(), expected);
    check_fails(&mut sim, "b");
    let acts = sim.acts();
    assert!(acts.starts_with("unhealthy b, cancel b, gave up b"), "{acts}");
    assert!(acts.ends_with("finish escalated b: unhealthy"), "{acts}");
}

#[test]
fn a_child_stopped_as_unhealthy_is_failing_and_its_stopped_siblings_are_not() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, ..rules() };
    let slow = [fake("a").stops(secs(1)), frail("b").stops(secs(1))];
    let mut sim = Simulation::running(one_for_all, slow);
    let failing = |sim: &Simulation| ["a", "b"].map(|it| sim.machine.is_failing(sim.key(it)));
    assert_eq!(failing(&sim), [false, false]);
    check_fails(&mut sim, "b");
    assert_eq!((failing(&sim), sim.acts()), ([false, true], "unhealthy b, cancel b".into()));
    sim.advance(secs(1));
    assert_eq!((failing(&sim), sim.acts()), ([false, false], "cancel a".into()));
    sim.advance(secs(1));
    assert_eq!((failing(&sim), sim.acts()), ([false, false], "start a#2, start b#2".into()));
}

#[test]
fn what_follows_is_what_the_trigger_says() {
    let table = [
        (frail("a").transient(), "unhealthy a, cancel a, start a#2"),
        (frail("a").restart(RestartType::OnWatchdog), "unhealthy a, cancel a, start a#2"),
        (frail("a").restart(RestartType::OnAbort), "unhealthy a, cancel a"),
        (frail("a").temporary(), "unhealthy a, cancel a, removed a"),
        (frail("a").on_exit(ExitKind::Unhealthy, OnExit::Leave), "unhealthy a, cancel a"),
        (
            frail("a").on_exit(ExitKind::Unhealthy, OnExit::FailSupervisor),
            "unhealthy a, cancel a, a fails all, finish failed a: unhealthy",
        ),
    ];
    for (fake, acts) in table {
        let mut sim = Simulation::running(rules(), [fake.clone()]);
        check_fails(&mut sim, "a");
        assert_eq!(sim.acts(), acts, "{fake:?}");
    }
}

#[test]
fn an_unhealthy_child_of_a_stopping_supervisor_stops_in_order() {
    let mut sim = Simulation::running(rules(), [frail("a"), fake("b").stops(secs(2))]);
    sim.stop();
    assert_eq!(sim.acts(), "cancel b");
    check_fails(&mut sim, "a");
    assert_eq!(sim.acts(), "unhealthy a", "it is reported nevertheless");
    sim.advance(secs(2));
    assert_eq!(sim.acts(), "cancel a, finish stopped");
}

#[test]
fn a_caller_can_terminate_a_child_that_fails_as_unhealthy() {
    let mut sim = Simulation::dynamic(rules(), [frail("a").stops(secs(2)), fake("b")]);
    check_fails(&mut sim, "a");
    let ticket = sim.request("a", ChildRequest::Terminate);
    sim.advance(secs(2));
    assert_eq!(sim.answer(ticket), "done");
    assert_eq!(sim.acts(), "unhealthy a, cancel a, removed a");
}

#[test]
fn a_reason_is_shared_with_whoever_is_told() {
    let problem: Arc<str> = "ill".into();
    let mut sim = Simulation::running(rules(), [fake("a")]);
    let key = sim.key("a");
    let shared = Some(Arc::clone(&problem));
    sim.event(MachineEvent::Condition(ConditionEvent::Health {
        key,
        incarnation: 1,
        problem: shared,
    }));
    assert_eq!(Arc::strong_count(&problem), 1, "the problem is not kept");
}
