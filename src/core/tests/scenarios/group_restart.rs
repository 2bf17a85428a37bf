//! Group restarts: which children stop and start together, and in which order.

use super::{begin, deaf, limited, one_for_all, parking, prompt, rest_for_one, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Script, Simulation, fake, secs};
use crate::policy::{Rules, Shutdown, Start};

#[test]
fn one_for_all_stops_all_in_reverse_and_starts_all_in_order() {
    let mut sim = Simulation::named(one_for_all(), "a b c d");
    sim.fail("b");
    assert_eq!(
        sim.acts(),
        "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
    );
    assert_eq!(
        sim.story("b"),
        "active → errored (failed) → restarting → resolved → activating → active"
    );
    assert_eq!(
        sim.story("d"),
        "active → deactivating → stopped (shutdown) → resolved → activating → active"
    );
}

#[test]
fn rest_for_one_leaves_those_before_alone() {
    let mut sim = Simulation::named(rest_for_one(), "a b c d");
    sim.fail("b");
    assert_eq!(sim.acts(), "cancel d, cancel c, start b#2, start c#2, start d#2");
}

#[test]
fn under_concurrent_start_the_group_starts_at_once() {
    let rules = Rules { start: Start::Concurrent, ..one_for_all() };
    let fakes = ["a", "b", "c"].map(|name| fake(name).signals(secs(1)));
    let mut sim = begin(rules, fakes);
    sim.advance(secs(1));
    sim.skip();
    sim.fail("b");
    assert_eq!(sim.acts(), "cancel c, cancel a, start a#2, start b#2, start c#2");
}

#[test]
fn each_has_its_own_shutdown_and_then_the_group_waits() {
    let fakes = [
        deaf("a").shutdown(secs(2)),
        fake("b"),
        fake("c").shutdown(Shutdown::BrutalKill),
        fake("d").stops(secs(1)),
    ];
    let mut sim = Simulation::running(waiting(one_for_all()), fakes);
    sim.fail("b");
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 1s abort c, 1s cancel a, 3s abort a, 3s start a#2, 3s start b#2, \
         3s start c#2, 3s start d#2",
        "the deadline counts from the failure"
    );
}

#[test]
fn finished_stopped_and_parked_children_come_back() {
    let fakes = [fake("a").transient(), fake("b"), fake("c"), fake("d").transient()];
    let mut sim = Simulation::running(rest_for_one(), fakes);
    sim.end("a");
    sim.end("d");
    sim.call("c", ChildRequest::Terminate);
    sim.skip();
    sim.fail("b");
    assert_eq!(sim.acts(), "start b#2, start c#2, start d#2");
}

#[test]
fn temporary_children_are_forgotten() {
    for (rules, expected) in [
        (one_for_all(), "cancel d, removed d, cancel a, removed a, start b#2, start c#2"),
        (rest_for_one(), "cancel d, removed d, start b#2, start c#2"),
    ] {
        let fakes =
            [fake("a").temporary(), fake("b"), fake("c").transient(), fake("d").temporary()];
        let mut sim = Simulation::running(rules, fakes);
        sim.end("c");
        sim.skip();
        sim.fail("b");
        assert_eq!(sim.acts(), expected);
    }
}

#[test]
fn the_end_of_a_temporary_child_restarts_no_sibling() {
    for rules in [one_for_all(), rest_for_one()] {
        let mut sim = Simulation::running(rules, [fake("a").temporary(), fake("b")]);
        sim.fail("a");
        assert_eq!(sim.acts(), "removed a");
    }
}

#[test]
fn a_second_crash_while_stopping_costs_nothing() {
    let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(1))];
    let mut sim = Simulation::running(limited(1, waiting(one_for_all())), fakes);
    sim.fail("b");
    sim.crash("c");
    assert_eq!(sim.story("c"), "active → errored (failed) → stopped");
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 1s cancel a, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
    );
}

#[test]
fn a_child_that_ends_while_it_is_cancelled_is_not_cancelled_twice() {
    let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(9))];
    let mut sim = Simulation::running(one_for_all(), fakes);
    sim.fail("b");
    sim.fail("d");
    assert_eq!(
        sim.acts(),
        "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
    );
}

/// a, b, c, d; b crashes; c fails its next two starts.
fn twice(rules: Rules) -> Simulation {
    let c = prompt("c").scripts([Script::Run, Script::Fail, Script::Fail]);
    Simulation::running(rules, [fake("a"), fake("b"), c, fake("d")])
}

#[test]
fn one_for_all_begins_again_from_the_first() {
    let mut sim = twice(one_for_all());
    sim.fail("b");
    assert_eq!(
        sim.acts(),
        "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, \
         cancel b, cancel a, start a#3, start b#3, start c#3, \
         cancel b, cancel a, start a#4, start b#4, start c#4, start d#2"
    );
}

#[test]
fn rest_for_one_begins_again_at_the_failed_child() {
    let mut sim = twice(rest_for_one());
    sim.fail("b");
    assert_eq!(
        sim.acts(),
        "cancel d, cancel c, start b#2, start c#2, start c#3, start c#4, start d#2"
    );
}

#[test]
fn with_a_backoff_each_attempt_waits() {
    let mut sim = twice(limited(1, waiting(one_for_all())));
    sim.fail("b");
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 0ns cancel c, 0ns cancel a, \
         200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms cancel b, 200ms cancel a, \
         400ms start a#3, 400ms start b#3, 400ms start c#3, 400ms cancel b, 400ms cancel a, \
         600ms start a#4, 600ms start b#4, 600ms start c#4, 600ms start d#2"
    );
    let mut sim = twice(limited(1, waiting(rest_for_one())));
    sim.fail("b");
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 0ns cancel c, 200ms start b#2, 200ms start c#2, 400ms start c#3, \
         600ms start c#4, 600ms start d#2"
    );
}

#[test]
fn failed_attempts_use_the_budget_up() {
    let b = prompt("b").scripts([Script::Run, Script::Fail, Script::Fail, Script::Fail]);
    let mut sim = Simulation::running(limited(2, one_for_all()), [fake("a"), b]);
    sim.fail("a");
    assert_eq!(
        sim.acts(),
        "cancel b, start a#2, start b#2, cancel a, start a#3, start b#3, gave up b, cancel a, \
         finish escalated b: activation_failed"
    );
}

#[test]
fn a_child_that_finishes_at_its_start_lets_the_next_start() {
    let c = prompt("c").transient().scripts([Script::Run, Script::End]);
    let mut sim = Simulation::running(one_for_all(), [fake("a"), fake("b"), c, fake("d")]);
    sim.fail("a");
    assert!(sim.acts().ends_with("start a#2, start b#2, start c#2, start d#2"));
    assert_eq!(sim.why("c"), Some("finished"));
}

#[test]
fn a_child_that_requires_a_later_sibling_lets_it_start_first() {
    for failed in ["b", "a", "c"] {
        let fakes = [fake("a"), fake("b").requires("a"), fake("c")];
        let mut sim = Simulation::running(waiting(one_for_all()), fakes);
        sim.call("a", ChildRequest::Terminate);
        sim.call("a", ChildRequest::Delete);
        sim.add(fake("a"));
        sim.skip();
        sim.fail(failed);
        sim.advance(secs(5));
        let acts = sim.acts();
        assert!(acts.contains("start c#2, start a#2, start b#2"), "{failed}: {acts}");
    }
}

#[test]
fn each_incarnation_has_the_cause_of_its_start() {
    let mut sim = begin(rest_for_one(), [fake("a"), fake("b"), fake("c")]);
    assert_eq!(sim.causes(), "a#1 initial, b#1 initial, c#1 initial");
    sim.fail("b");
    assert_eq!(sim.causes(), "b#2 restart, c#2 group");
    sim.call("b", ChildRequest::RESTART);
    assert_eq!(sim.causes(), "b#3 manual, c#3 group");
    sim.add(fake("d"));
    sim.call("c", ChildRequest::Terminate);
    sim.call("c", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.causes(), "d#1 manual, c#4 manual");

    let mut sim = Simulation::named(parking(0, one_for_all()), "a b");
    sim.fail("a");
    sim.call("a", ChildRequest::RESUME);
    assert_eq!(sim.causes(), "a#2 manual, b#2 group");
}

#[test]
fn a_child_started_a_second_time_with_its_group_has_not_the_initial_cause() {
    let fakes = [fake("a"), fake("b").signals(None), fake("c")];
    let mut sim = begin(one_for_all(), fakes);
    assert_eq!(sim.causes(), "a#1 initial, b#1 initial");
    sim.fail("a");
    assert_eq!(sim.causes(), "a#2 restart, b#2 group");
    sim.ready("b");
    assert_eq!(sim.causes(), "c#1 initial");
}
