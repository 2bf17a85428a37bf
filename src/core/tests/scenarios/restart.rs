//! Restarts of a single child.

use super::{limited, one_for_all, one_for_one, prompt, sliding, waiting};
use crate::core::verify::simulation::{Script, Simulation, fake, ms, rules, secs};
use crate::core::{ChildRequest, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Jitter, Rules};

#[test]
fn a_restart_type_decides() {
    let fakes = || [fake("p"), fake("t").transient(), fake("x").temporary()];

    let mut sim = Simulation::running(rules(), fakes());
    for name in ["p", "t", "x"] {
        sim.fail(name);
    }
    assert_eq!(sim.acts(), "start p#2, start t#2, removed x");

    let mut sim = Simulation::running(rules(), fakes());
    for name in ["p", "t", "x"] {
        sim.end(name);
    }
    assert_eq!(sim.acts(), "start p#2, removed x");
    assert_eq!(sim.lifecycle("t"), Lifecycle::Stopped);
}

#[test]
fn it_waits_by_itself_under_one_for_one() {
    let mut sim = Simulation::named(waiting(one_for_one()), "a b c");
    sim.fail("b");
    assert_eq!(sim.story("b"), "active → errored (failed) → restarting");
    sim.advance(ms(100));
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "200ms start b#2, 300ms start a#2");
}

#[test]
fn a_clean_end_of_a_permanent_child_is_charged_and_delayed() {
    let mut sim = Simulation::named(limited(1, waiting(rules())), "a b");
    sim.end("a");
    assert_eq!(sim.story("a"), "active → deactivating → stopped (normal) → restarting");
    sim.advance(secs(1));
    sim.end("a");
    assert_eq!(sim.acts(), "start a#2, gave up a, cancel b, finish escalated a: normal");
}

#[test]
fn intensity_restarts_are_granted_and_the_next_ends_it() {
    let mut sim = Simulation::named(limited(2, one_for_one()), "a b c");
    for name in ["a", "b", "b"] {
        sim.fail(name);
    }
    assert_eq!(
        sim.acts(),
        "start a#2, start b#2, gave up b, cancel c, cancel a, finish escalated b: failed"
    );
}

#[test]
fn old_restarts_leave_the_window() {
    let rules = Rules { intensity: sliding(1), ..one_for_one() };
    let mut sim = Simulation::named(rules, "a");
    for _ in 0..5 {
        sim.fail("a");
        sim.advance(ms(1_001));
    }
    assert_eq!(sim.alive(), "a#6");
    sim.fail("a");
    sim.advance(secs(1));
    sim.fail("a");
    assert!(sim.finished(), "exactly a period old still counts");
}

#[test]
fn a_group_costs_one_unit() {
    let names = "a b c d e f g h i j";
    let mut sim = Simulation::named(limited(2, one_for_all()), names);
    sim.fail("c");
    sim.fail("d");
    assert!(!sim.finished());
    sim.fail("e");
    assert!(sim.finished());
}

#[test]
fn a_long_life_makes_the_next_backoff_begin_anew() {
    let doubling =
        Backoff::exponential(ms(100), secs(10)).jitter(Jitter::None).reset_after(secs(30));
    let rules = Rules { backoff: doubling, ..one_for_one() };
    let mut sim = Simulation::named(rules, "a");
    sim.fail("a");
    sim.advance(secs(1));
    sim.fail("a");
    sim.advance(secs(31));
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "100ms start a#2, 1.2s start a#3, 32.1s start a#4");
    // Also if it stops itself, or with its group, in between.
    sim.fail("a");
    sim.advance(secs(40));
    let (key, incarnation) = (sim.key("a"), 5);
    sim.event(MachineEvent::StopSelf { key, incarnation });
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "33.2s start a#5, 73s cancel a, 73.1s start a#6");
    sim.fail("a");
    sim.advance(ms(300));
    let (key, incarnation) = (sim.key("a"), 7);
    sim.event(MachineEvent::Healthy { key, incarnation });
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "74.2s start a#7, 74.4s start a#8");
}

#[test]
fn a_life_exactly_as_long_as_asked_for_is_long_enough() {
    let doubling =
        Backoff::exponential(ms(100), secs(10)).jitter(Jitter::None).reset_after(secs(30));
    let mut sim = Simulation::running(one_for_one(), [fake("a").backoff(doubling)]);
    sim.fail("a");
    sim.advance(ms(30_100));
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "100ms start a#2, 30.2s start a#3");
}

#[test]
fn what_declines_on_a_restart_stays_down() {
    let mut sim =
        Simulation::running(rules(), [prompt("a").scripts([Script::Run, Script::Ignore])]);
    sim.fail("a");
    assert_eq!(sim.acts(), "start a#2");
    assert_eq!(sim.why("a"), Some("declined to start"));
}

#[test]
fn a_child_that_declines_while_active_is_stopped_and_not_restarted() {
    let mut sim = Simulation::named(rules(), "a b");
    sim.child_event("b", |key, incarnation| MachineEvent::Ignored { key, incarnation });
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "");
    assert_eq!(sim.story("b"), "active → deactivating → stopped (ignored)");
    assert_eq!(sim.why("b"), Some("declined to start"));
}

#[test]
fn a_child_that_stops_itself_is_stopped_and_its_restart_type_decides() {
    let fakes = [fake("p"), fake("t").transient(), fake("x").temporary()];
    let mut sim = Simulation::running(rules(), fakes);
    for name in ["p", "t", "x"] {
        let key = sim.key(name);
        sim.event(MachineEvent::StopSelf { key, incarnation: 1 });
        sim.settle();
    }
    assert_eq!(sim.acts(), "cancel p, start p#2, cancel t, cancel x, removed x");
    assert_eq!(sim.why("t"), Some("finished"));
}

#[test]
fn a_requirement_gates_a_restart_too() {
    let mut sim = Simulation::running(waiting(one_for_one()), [fake("a"), fake("b").requires("a")]);
    sim.fail("a");
    sim.advance(ms(100));
    sim.fail("b");
    let ticket = sim.request("b", ChildRequest::RESUME);
    assert_eq!(
        sim.story("b"),
        "active → errored (failed) → restarting → \
         resolved → discovered"
    );
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "200ms start a#2, 200ms start b#2");
    assert_eq!(sim.answer(ticket), "started 2");
}
