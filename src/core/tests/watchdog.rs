//! Watchdogs: which child has hung, and which has not.

use crate::core::verify::simulation::{
    FakeChild, Heart, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, ConditionEvent, MachineEvent};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, ChildLayer, ChildOptions, OnExit, RestartType, Rules, Shutdown, Strategy,
};

/// A child that has to send a heartbeat every 4 s, and sends one when the test says so.
fn watched(name: &str) -> FakeChild {
    fake(name).watchdog(secs(4)).heart(Heart::Manual(None))
}

/// Lets the runtime stand still for this long.
fn stall(sim: &mut Simulation, secs_: u64) {
    sim.now += secs(secs_);
    sim.settle();
}

#[test]
fn a_silent_child_has_hung_when_its_interval_is_over_and_not_before() {
    let mut sim = Simulation::running(rules(), [watched("a"), fake("b")]);
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
    let story = sim.story("a");
    assert!(story.ends_with("active → errored (hung) → resolved → activating → active"), "{story}");
    // The next incarnation has the whole interval.
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
}

#[test]
fn the_interval_counts_from_the_last_heartbeat() {
    let mut sim = Simulation::running(rules(), [watched("a")]);
    sim.advance(secs(1));
    sim.beat("a");
    sim.advance(secs(2));
    sim.beat("a");
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn a_child_that_beats_costs_one_tick_for_each_interval() {
    let mut sim = Simulation::running(rules(), [watched("a").heart(Heart::Beats)]);
    let before = sim.ticks();
    sim.advance(secs(400));
    assert_eq!((sim.ticks() - before, sim.acts()), (100, String::new()));
}

#[test]
fn the_watchdog_is_armed_when_the_child_is_ready() {
    let mut sim = Simulation::ordered(rules(), [watched("a").signals(None)]);
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "start a#1");
    sim.ready("a");
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "up");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn a_child_that_stops_is_not_watched() {
    let mut sim =
        Simulation::running(rules(), [watched("a").shutdown(Shutdown::Infinity).stops(secs(60))]);
    sim.advance(secs(3));
    let ticket = sim.request("a", ChildRequest::Terminate);
    sim.advance(secs(60));
    assert_eq!((sim.acts(), sim.answer(ticket)), ("cancel a".into(), "done"));

    let slow = fake("b").stops(secs(60)).shutdown(secs(90));
    let mut sim = Simulation::running(rules(), [watched("a"), slow]);
    sim.stop();
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped", "nor in a supervisor that stops");
}

#[test]
fn a_hung_child_is_aborted_after_its_grace_and_may_leak() {
    let mut sim = Simulation::running(rules(), [watched("a").leaks()]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a");
    sim.advance(secs(5));
    assert_eq!(sim.acts(), "abort a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "leaked a#1, start a#2");
}

#[test]
fn what_follows_a_hang_is_what_the_trigger_says() {
    let table = [
        (watched("a").transient(), "cancel a, start a#2"),
        (watched("a").restart(RestartType::OnWatchdog), "cancel a, start a#2"),
        (watched("a").restart(RestartType::OnAbort), "cancel a"),
        (watched("a").temporary(), "cancel a, removed a"),
        (watched("a").on_exit(ExitKind::Hung, OnExit::Leave), "cancel a"),
        (
            watched("a").on_exit(ExitKind::Hung, OnExit::FailSupervisor),
            "cancel a, a fails all, finish failed a: hung",
        ),
    ];
    for (fake, acts) in table {
        let mut sim = Simulation::running(rules(), [fake.clone()]);
        sim.advance(secs(4));
        assert_eq!(sim.acts(), acts, "{fake:?}");
    }
}

#[test]
fn a_hung_child_takes_its_range_with_it_and_is_charged() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, intensity: at_most(1), ..rules() };
    let mut sim = Simulation::running(one_for_all, [fake("a"), watched("b")]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel b, cancel a, start a#2, start b#2");
    sim.advance(secs(4));
    let acts = sim.acts();
    assert!(acts.ends_with("finish escalated b: hung"), "{acts}");
}

#[test]
fn an_unhealthy_child_is_not_hung_as_well() {
    let mut sim = Simulation::running(rules(), [watched("a").fails_unhealthy().stops(secs(3))]);
    sim.advance(secs(3));
    sim.child_event("a", |key, incarnation| {
        MachineEvent::Condition(ConditionEvent::Health {
            key,
            incarnation,
            problem: Some("ill".into()),
        })
    });
    sim.advance(secs(3));
    assert_eq!(sim.acts(), "unhealthy a, cancel a, start a#2");
}

#[test]
fn a_default_applies_to_workers_only() {
    let values = ChildLayer { watchdog: Some(secs(4)), ..ChildLayer::default() };
    let defaults = ChildOptions { values, ..ChildOptions::default() };
    let rules = Rules { defaults, ..rules() };
    let silent = |name| fake(name).heart(Heart::Manual(None));
    let mut sim = Simulation::running(rules, [silent("a"), silent("b").supervisor()]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn children_of_a_dynamic_supervisor_are_watched_too() {
    let mut sim = Simulation::dynamic(rules(), [watched("a"), watched("b")]);
    sim.advance(secs(3));
    sim.beat("b");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Active);
}

#[test]
fn if_the_runtime_was_late_no_child_has_hung_and_that_is_said_once() {
    let children = (0..200).map(|number| watched(&format!("c{number}")));
    let mut sim = Simulation::running(rules(), children);
    stall(&mut sim, 14);
    assert_eq!(sim.acts(), "late by 10s");
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
    sim.beat("c7");
    sim.advance(ms(1));
    let acts = sim.acts();
    assert_eq!(acts.matches("cancel").count(), 199, "{acts}");
}

#[test]
fn a_child_whose_own_deadline_was_on_time_has_a_fresh_interval_after_a_stall() {
    // The timer of `b` is what comes late; the deadline of `a` is due soon after.
    let waits = Rules { backoff: Backoff::constant(secs(2)), ..rules() };
    let mut sim = Simulation::running(waits, [watched("a"), fake("b")]);
    sim.fail("b");
    sim.now += ms(3_900);
    sim.settle();
    assert_eq!(sim.acts(), "start b#2");
    sim.advance(ms(100));
    assert_eq!(sim.acts(), "late by 1.9s");
    sim.advance(ms(3_799));
    assert_eq!(sim.acts(), "");
    sim.advance(ms(1));
    sim.advance(ms(100));
    assert!(sim.acts().starts_with("cancel a"), "4 s after the late tick");
}

#[test]
fn a_tick_that_is_late_by_a_second_or_a_quarter_of_the_interval_changes_nothing() {
    for (interval, late, spared) in [
        (secs(2), secs(1), false),
        (secs(2), ms(1_001), true),
        (secs(40), secs(10), false),
        (secs(40), ms(10_001), true),
    ] {
        let child = fake("a").watchdog(interval).heart(Heart::Manual(None));
        let mut sim = Simulation::running(rules(), [child]);
        sim.now += interval + late;
        sim.settle();
        let acts = sim.acts();
        assert_eq!(acts.starts_with("late by"), spared, "{interval:?} {late:?}: {acts}");
        assert_eq!(acts.contains("cancel a"), !spared, "{interval:?} {late:?}: {acts}");
    }
}

#[test]
fn each_stall_is_reported() {
    let mut sim = Simulation::running(rules(), [watched("a")]);
    stall(&mut sim, 14);
    stall(&mut sim, 9);
    assert_eq!(sim.acts(), "late by 10s, late by 10s", "the second is part of the first");
    sim.beat("a");
    sim.advance(secs(60));
    assert!(sim.acts().starts_with("cancel a"), "it has hung after all");
}

#[test]
fn an_answer_that_comes_later_counts_as_well() {
    let mut sim = Simulation::running(rules(), [watched("a").heart(Heart::Unanswered)]);
    sim.advance(secs(6));
    assert_eq!(sim.acts(), "");
    sim.answer_heartbeat("a", Some(sim.now - secs(1)));
    sim.advance(secs(3));
    sim.answer_heartbeat("a", None);
    assert_eq!(sim.acts(), "cancel a");
}
