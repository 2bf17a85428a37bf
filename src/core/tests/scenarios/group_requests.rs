//! Requests about children whose group restarts.

use super::{WAIT, begin, limited, one_for_all, one_for_one, prompt, rest_for_one, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Script, Simulation, fake, secs};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{OnExit, RestartType};

#[test]
fn no_child_is_shown_as_next_in_a_group_that_stays_down() {
    let fakes = [fake("a"), fake("b").stops(secs(9)), fake("c")];
    let mut sim = Simulation::running(waiting(one_for_all()), fakes);
    sim.fail("c");
    assert_eq!(sim.stops_now(), Some("b"));

    // Later children can be started from now on.
    sim.request("c", ChildRequest::Terminate);
    assert_eq!(sim.stops_now(), None);
    sim.add(fake("d"));
    assert_eq!(sim.lifecycle("d"), Lifecycle::Active);
}

#[test]
fn a_child_terminated_while_its_group_waits_stays_down() {
    let mut sim = Simulation::named(waiting(one_for_all()), "a b c");
    sim.fail("a");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    assert_eq!(sim.call("c", ChildRequest::Terminate), "done");
    let ticket = sim.request("c", ChildRequest::RESTART_CHILD);
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "0ns cancel c, 0ns cancel b, 200ms start a#2, 200ms start c#2");
    assert_eq!(sim.answer(ticket), "started 2");
    assert_eq!(sim.why("b"), Some("stopped manually"));
    sim.fail("a");
    sim.advance(secs(5));
    assert!(sim.acts().ends_with("start b#2, start c#3"), "the next group restart includes it");
}

#[test]
fn a_child_terminated_while_its_group_stops_stays_down() {
    for slow in ["b", "c"] {
        let fakes = ["a", "b", "c"].map(|name| match name == slow {
            true => fake(name).stops(secs(1)),
            false => fake(name),
        });
        let mut sim = begin(waiting(one_for_all()), fakes);
        sim.fail("a");
        let terminated = sim.request("b", ChildRequest::Terminate);
        sim.advance(secs(2));
        assert_eq!(sim.answer(terminated), "done");
        assert_eq!(sim.why("b"), Some("stopped manually"), "{slow} is slow");
        sim.skip();
        sim.fail("a");
        sim.advance(secs(5));
        assert!(sim.acts().contains("start b#2"), "the next group restart includes it");
    }
}

#[test]
fn a_child_terminated_while_its_group_stops_stays_down_if_the_stop_begins_again() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut sim = begin(waiting(rest_for_one()), fakes);
    sim.fail("b");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    sim.fail("a");
    sim.advance(secs(5));
    assert_eq!(sim.why("b"), Some("stopped manually"));
    assert!(sim.acts().ends_with("start a#2, start c#2"));
}

#[test]
fn a_child_requested_again_while_its_group_stops_restarts_with_it() {
    let mut sim = begin(waiting(one_for_all()), [fake("a"), fake("b"), fake("c").stops(secs(1))]);
    sim.fail("a");
    let terminated = sim.request("c", ChildRequest::Terminate);
    assert_eq!(sim.call("c", ChildRequest::RESTART_CHILD), "running");
    sim.advance(secs(1));
    assert_eq!(sim.answer(terminated), "done");
    let ticket = sim.request("c", ChildRequest::RESTART_CHILD);
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn a_child_restarted_after_it_was_terminated_is_down_for_the_one_caller_and_started_for_the_other()
{
    for rules in [one_for_one(), waiting(one_for_all())] {
        let mut sim = begin(rules, [fake("a"), fake("b"), fake("c").stops(secs(1))]);
        sim.fail("a");
        let terminated = sim.request("c", ChildRequest::Terminate);
        let restarted = sim.request("c", ChildRequest::RESTART);
        sim.advance(secs(5));
        assert_eq!([terminated, restarted].map(|it| sim.answer(it)), ["done", "started 2"]);
    }
}

/// The group decides on its start.
#[test]
fn a_backoff_that_ends_while_the_group_stops_starts_nothing() {
    let called = fake("a").on_message().on_exit(ExitKind::Failed, OnExit::Leave);
    let fakes = [called, fake("b"), fake("c").stops(secs(1))];
    let mut sim = begin(waiting(one_for_all()), fakes);
    for _ in 0..2 {
        sim.send("a");
        sim.settle();
    }
    sim.fail("a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
    sim.advance(WAIT / 2);
    sim.fail("b");
    sim.skip();
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "1.1s start a#2, 1.1s start b#2, 1.1s start c#2");
}

#[test]
fn a_temporary_child_that_is_stopped_with_its_group_is_not_restarting() {
    let fakes = [fake("a"), fake("b").restart(RestartType::Temporary).stops(secs(1))];
    let mut sim = begin(waiting(one_for_all()), fakes);
    sim.fail("a");
    let ticket = sim.request("b", ChildRequest::RESTART);
    sim.advance(secs(5));
    assert_eq!(sim.answer(ticket), "stopped");
}

#[test]
fn a_call_for_any_of_its_children_ends_the_wait_of_the_group() {
    for name in ["a", "b"] {
        let mut sim = Simulation::named(waiting(one_for_all()), "a b");
        sim.fail("a");
        assert_eq!(sim.call(name, ChildRequest::RESUME), "started 2");
        assert_eq!(sim.timed(), "0ns cancel b, 0ns start a#2, 0ns start b#2");
        assert_eq!(sim.machine.next_deadline(), None);
    }
}

#[test]
fn terminating_the_one_it_waits_for_ends_it() {
    let mut sim = Simulation::named(waiting(rest_for_one()), "a b c d");
    sim.fail("b");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "cancel d, cancel c");
    assert_eq!(sim.alive(), "a#1");
    assert_eq!(sim.why("b"), Some("stopped manually"));
    assert_eq!(sim.why("c"), Some("stopped with its group"));
    assert_eq!(sim.call("c", ChildRequest::RESTART_CHILD), "started 2");
}

#[test]
fn a_child_about_to_be_marked_as_staying_down_is_not_started_before() {
    let others = (0..200).map(|number| fake(&number.to_string()));
    let fakes = [prompt("a").scripts([Script::Fail])].into_iter().chain(others);
    let mut sim = begin(waiting(one_for_all()), fakes);
    sim.request("a", ChildRequest::Terminate);
    assert_eq!(sim.call("5", ChildRequest::StartNew { keep: false }), "stopped");
    sim.advance(secs(5));
    assert_eq!(sim.why("5"), Some("stopped with its group"));
    assert_eq!(sim.call("5", ChildRequest::RESTART_CHILD), "started 1");
    assert_eq!(sim.alive(), "5#1");
}

#[test]
fn a_requested_group_restart_is_not_charged() {
    let mut sim = Simulation::named(limited(0, waiting(rest_for_one())), "a b c");
    assert_eq!(sim.call("b", ChildRequest::RESTART), "started 2");
    assert_eq!(sim.acts(), "cancel c, cancel b, start b#2, start c#2");
}
