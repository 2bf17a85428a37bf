//! Requests while a group restarts or is parked.

use std::time::Duration;

use super::{group, parking, slow};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Script, Simulation, fake, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{OnExhausted, OnLeak, Rules, Shutdown, Strategy};

#[test]
fn a_child_added_during_a_group_restart_is_started_in_order() {
    let fakes = [fake("a"), fake("b").stops(secs(1))];
    let mut sim = Simulation::running(group(), fakes);
    sim.fail("a");
    let ticket = sim.add(fake("c"));
    let resumed = sim.request("a", ChildRequest::RESUME);
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel b, 1s start a#2, 1s start b#2, 1s start c#1");
    assert_eq!(sim.answer(resumed), "started 2");
    assert_eq!(sim.answer(ticket), "started 1");
}

#[test]
fn a_call_waits_for_one_restart_of_the_group_and_is_answered_when_a_failure_interrupts_it() {
    let a = fake("a").signals(Duration::ZERO).scripts([Script::Run, Script::Fail, Script::Fail]);
    let mut sim = Simulation::running(group(), [a, fake("b"), fake("c")]);
    sim.call("c", ChildRequest::Terminate);
    sim.fail("a");
    let calls = [sim.add(fake("d")), sim.request("b", ChildRequest::Terminate)];
    assert_eq!(sim.answer(calls[1]), "done");
    let again = sim.request("b", ChildRequest::RESTART_CHILD);
    assert_eq!([sim.answer(calls[0]), sim.answer(again)], ["-", "-"]);
    sim.advance(secs(9));
    // Its first attempt has failed.
    assert_eq!([sim.answer(calls[0]), sim.answer(again)], ["restarting", "restarting"]);
    assert_eq!(sim.alive(), "");
    sim.advance(secs(99));
    assert_eq!(sim.alive(), "a#4 b#2 c#2 d#1", "the children are started with their group");
}

#[test]
fn a_call_about_a_child_whose_siblings_keep_failing_is_answered() {
    let a = fake("a").signals(secs(1)).scripts([Script::Fail; 99]);
    let rules = Rules { strategy: Strategy::OneForAll, ..rules() };
    let mut sim = Simulation::ordered(rules, [a]);
    sim.settle();
    let added = sim.add(fake("b"));
    sim.advance(secs(1));
    assert_eq!(sim.answer(added), "restarting");
    for call in [ChildRequest::RESTART_CHILD, ChildRequest::Delete] {
        assert_eq!(sim.call("b", call), "restarting");
    }
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
}

#[test]
fn a_child_terminated_before_or_at_its_start_is_not_started() {
    let mut sim = Simulation::running(group(), [fake("a"), fake("b")]);
    sim.fail("a");
    let ticket = sim.add(fake("c"));
    assert_eq!(sim.call("c", ChildRequest::Terminate), "done");
    assert_eq!(sim.answer(ticket), "stopped", "before");

    let ticket = sim.add(fake("d").signals(secs(9)));
    sim.call("a", ChildRequest::RESUME);
    assert_eq!(sim.answer(ticket), "-");
    assert_eq!(sim.call("d", ChildRequest::Terminate), "done");
    assert_eq!(sim.answer(ticket), "stopped", "in");
}

#[test]
fn a_child_down_before_its_group_stopped_is_about_to_be_restarted() {
    let fakes = [fake("a").transient(), fake("b").stops(secs(1)), fake("c")];
    for request in [ChildRequest::RESTART_CHILD, ChildRequest::Delete] {
        let mut sim = Simulation::running(group(), fakes.clone());
        sim.end("a");
        sim.fail("c");
        assert_eq!(sim.why("a"), Some("finished"), "the group operation has not reached it");
        assert_eq!(sim.call("a", request), "restarting");
        sim.advance(secs(10));
        assert_eq!(sim.timed(), "0ns cancel b, 9s start a#2, 9s start b#2, 9s start c#2");
    }
}

#[test]
fn a_range_being_parked_starts_only_children_that_are_down_already() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d")];
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, fakes);
    sim.call("b", ChildRequest::Terminate);
    sim.skip();
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel d, cancel c");
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "stopped");
    assert_eq!(sim.call("d", ChildRequest::RESTART_CHILD), "started 2");
    sim.fail("d");
    assert_eq!(sim.acts(), "start d#2, gave up d");
    sim.advance(secs(9));
    assert_eq!(sim.alive(), "");
}

#[test]
fn a_child_that_is_added_while_a_range_is_being_parked_is_not_of_the_range() {
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").stops(secs(1)), fake("c")]);
    sim.fail("a");
    let d = sim.add(fake("d"));
    assert_eq!(sim.acts(), "gave up a, cancel c, cancel b, start d#1");
    assert_eq!(sim.answer(d), "started 1", "after the last child has exited");

    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").stops(secs(1))]);
    sim.fail("a");
    let d = sim.add(fake("d"));
    assert_eq!(sim.acts(), "gave up a, cancel b, start d#1");
    assert_eq!(sim.answer(d), "started 1", "while the last child stops");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "");
    assert_eq!(sim.alive(), "d#1");
}

#[test]
fn a_child_terminated_while_its_group_stops_can_be_requested_again_and_starts_with_it() {
    let mut sim = Simulation::running(group(), [fake("a"), slow(), fake("c")]);
    sim.fail("c");
    assert_eq!(sim.call("a", ChildRequest::Terminate), "done");
    let ticket = sim.request("a", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.answer(ticket), "-", "the request is not refused");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel b, 0ns cancel a, 9s start a#2, 9s start b#2, 9s start c#2");
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn a_stopping_child_is_started_with_its_group_or_stays_down_with_it() {
    let stopping = |rules| {
        let mut sim = Simulation::running(rules, [fake("a"), slow(), fake("c")]);
        sim.fail("c");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Deactivating);
        sim
    };
    let parking = Rules { strategy: Strategy::OneForAll, ..parking() };
    for (rules, expected) in [(group(), "started 2"), (parking, "stopped")] {
        for request in [ChildRequest::RESTART, ChildRequest::RESUME] {
            let mut sim = stopping(rules.clone());
            let ticket = sim.request("b", request);
            sim.advance(secs(9));
            assert_eq!(sim.answer(ticket), expected, "{request:?}");
        }
    }

    // A child without a group is started when it is down. It is stopped once.
    let mut sim = Simulation::running(rules(), [fake("a"), slow()]);
    let calls = [ChildRequest::RESTART, ChildRequest::RESTART, ChildRequest::RESUME];
    let tickets = calls.map(|request| sim.request("b", request));
    sim.advance(secs(9));
    assert_eq!(tickets.map(|ticket| sim.answer(ticket)), ["started 2"; 3]);
}

#[test]
fn a_finished_child_behind_a_stopping_group_can_be_restarted() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let c = fake("c").signals(None).stops(secs(1));
    let mut sim = Simulation::ordered(rules, [fake("a").transient(), fake("b"), c]);
    sim.settle();
    sim.end("a");
    sim.fail("b");
    assert_eq!(sim.acts(), "start a#1, start b#1, start c#1, cancel c");
    let ticket = sim.request("a", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.answer(ticket), "-", "it starts in order");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "1s start a#2, 1s start b#2, 1s start c#2");
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn parking_a_range_within_a_larger_one_keeps_the_larger_range() {
    let rules = Rules { strategy: Strategy::RestForOne, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("z"), slow(), fake("c")]);
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel c, cancel b");
    assert_eq!(sim.call("c", ChildRequest::RESTART_CHILD), "started 2");
    sim.fail("c");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns start c#2, 0ns gave up c, 1s cancel z");
    assert_eq!(sim.alive(), "");
}

#[test]
fn a_part_that_comes_back_is_not_stopped_anew_for_one_more_of_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let first = fake("a").consecutive(0).on_exhausted(OnExhausted::Park);
    let last = || fake("d").on_leak(OnLeak::Park);
    let fakes = [first, fake("b").stops(secs(99)).shutdown(Shutdown::Infinity), fake("c"), last()];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel d, cancel c, cancel b");

    // The last child of the range that is being parked restarts, but leaks at its next restart.
    assert_eq!(sim.call("d", ChildRequest::RESTART_CHILD), "started 2");
    *sim.fake("d") = last().leaks();
    sim.request("d", ChildRequest::RESTART);
    sim.advance(secs(10));
    assert_eq!(sim.why("d"), Some("leaked"));
    assert_eq!(sim.call("c", ChildRequest::RESTART_CHILD), "started 2");
    sim.skip();
    assert_eq!(sim.call("d", ChildRequest::RESUME), "-");
    assert_eq!(sim.acts(), "", "a child that a call started keeps running");
    sim.advance(secs(99));
    assert_eq!(sim.acts(), "start d#3");
    assert_eq!(sim.alive(), "c#2 d#3");
}
