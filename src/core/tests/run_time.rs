//! Run-time limits: which child has been active for too long, and what follows.

use crate::core::verify::simulation::{
    FakeChild, Heart, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, ConditionEvent, MachineEvent};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, ChildLayer, ChildOptions, OnExit, RestartType, Rules, Shutdown, Strategy,
};

/// A child that may be active for 4 s.
fn limited(name: &str) -> FakeChild {
    fake(name).run_time_limit(secs(4))
}

#[test]
fn a_child_has_timed_out_when_its_limit_is_over_and_not_before() {
    let mut sim = Simulation::running(rules(), [limited("a"), fake("b")]);
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
    let story = sim.story("a");
    let end = "active → errored (timed_out) → resolved → activating → active";
    assert!(story.ends_with(end), "{story}");
    // The next incarnation has the whole time.
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#3");
}

#[test]
fn the_time_counts_from_when_the_child_is_ready() {
    let mut sim = Simulation::ordered(rules(), [limited("a").signals(None)]);
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "start a#1");
    sim.ready("a");
    sim.advance(secs(4) - ms(1));
    assert_eq!(sim.acts(), "up");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn a_child_that_ends_in_time_has_no_deadline_left() {
    let mut sim = Simulation::running(rules(), [limited("a").transient()]);
    sim.advance(secs(3));
    sim.end("a");
    sim.advance(secs(60));
    assert_eq!((sim.acts(), sim.lifecycle("a")), (String::new(), Lifecycle::Stopped));
}

#[test]
fn the_time_of_a_stop_does_not_count() {
    let slow = limited("a").shutdown(Shutdown::Infinity).stops(secs(60));
    let mut sim = Simulation::running(rules(), [slow]);
    sim.advance(secs(3));
    let ticket = sim.request("a", ChildRequest::Terminate);
    sim.advance(secs(60));
    assert_eq!((sim.acts(), sim.answer(ticket)), ("cancel a".into(), "done"));

    let slow = fake("b").stops(secs(60)).shutdown(secs(90));
    let mut sim = Simulation::running(rules(), [limited("a"), slow]);
    sim.stop();
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped", "nor in a supervisor that stops");
}

#[test]
fn a_child_that_has_timed_out_is_aborted_after_its_grace_and_may_leak() {
    let mut sim = Simulation::running(rules(), [limited("a").leaks()]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a");
    sim.advance(secs(5));
    assert_eq!(sim.acts(), "abort a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "leaked a#1, start a#2");
}

#[test]
fn what_follows_is_what_the_trigger_says() {
    let table = [
        (limited("a").transient(), "cancel a, start a#2"),
        (limited("a").restart(RestartType::OnAbnormal), "cancel a, start a#2"),
        (limited("a").restart(RestartType::OnWatchdog), "cancel a"),
        (limited("a").restart(RestartType::OnAbort), "cancel a"),
        (limited("a").temporary(), "cancel a, removed a"),
        (limited("a").on_exit(ExitKind::TimedOut, OnExit::Leave), "cancel a"),
        (
            limited("a").on_exit(ExitKind::TimedOut, OnExit::FailSupervisor),
            "cancel a, a fails all, finish failed a: timed_out",
        ),
    ];
    for (fake, acts) in table {
        let mut sim = Simulation::running(rules(), [fake.clone()]);
        sim.advance(secs(4));
        assert_eq!(sim.acts(), acts, "{fake:?}");
    }
}

#[test]
fn it_takes_its_range_with_it_and_is_charged() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, intensity: at_most(1), ..rules() };
    let mut sim = Simulation::running(one_for_all, [fake("a"), limited("b")]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel b, cancel a, start a#2, start b#2");
    sim.advance(secs(4));
    let acts = sim.acts();
    assert!(acts.ends_with("finish escalated b: timed_out"), "{acts}");
}

#[test]
fn a_watchdog_and_a_limit_do_not_disturb_each_other() {
    let both = || limited("a").watchdog(secs(3)).heart(Heart::Manual(None));
    let mut sim = Simulation::running(rules(), [both()]);
    sim.advance(secs(3));
    assert!(sim.story("a").contains("errored (hung)"), "the watchdog is first");

    let mut sim = Simulation::running(rules(), [both().heart(Heart::Beats)]);
    sim.advance(secs(4));
    assert!(sim.story("a").contains("errored (timed_out)"), "the limit is first");
    sim.advance(secs(3));
    assert_eq!(sim.lifecycle("a"), Lifecycle::Active);
}

#[test]
fn an_unhealthy_child_has_not_timed_out_as_well() {
    let mut sim = Simulation::running(rules(), [limited("a").fails_unhealthy().stops(secs(3))]);
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
    let values = ChildLayer { run_time_limit: Some(secs(4)), ..ChildLayer::default() };
    let defaults = ChildOptions { values, ..ChildOptions::default() };
    let rules = Rules { defaults, ..rules() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").supervisor()]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn children_of_a_dynamic_supervisor_are_limited_too() {
    let mut sim = Simulation::dynamic(rules(), [limited("a"), fake("b")]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a, start a#2");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Active);
}

#[test]
fn a_restart_waits_for_its_backoff() {
    let waits = Rules { backoff: Backoff::constant(secs(2)), ..rules() };
    let mut sim = Simulation::running(waits, [limited("a")]);
    sim.advance(secs(4));
    assert_eq!(sim.acts(), "cancel a");
    sim.advance(secs(2));
    assert_eq!(sim.acts(), "start a#2");
}
