//! Failures of further children while a group restarts.

use super::{WAIT, begin, limited, parking, prompt, rest_for_one, sliding, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Script, Simulation, fake, ms, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExhausted, OnLeak, Rules, Shutdown, Strategy};

#[test]
fn an_earlier_crash_while_a_later_one_waits_takes_the_later_deadline() {
    let fakes = [fake("a").backoff(Backoff::constant(ms(50))), fake("b"), fake("c"), fake("d")];
    let mut sim = Simulation::running(limited(2, waiting(rest_for_one())), fakes);
    sim.fail("c");
    sim.advance(ms(100));
    sim.fail("a");
    assert_eq!(sim.lifecycle("c"), Lifecycle::Stopped);
    assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 100ms cancel b, \
         200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms start d#2"
    );
    sim.fail("a");
    assert!(sim.finished(), "both restarts count");
}

#[test]
fn or_its_own_if_that_is_the_later() {
    let fakes = [fake("a"), fake("b"), fake("c").backoff(Backoff::constant(ms(250)))];
    let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
    sim.fail("c");
    sim.advance(ms(100));
    sim.fail("a");
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "100ms cancel b, 300ms start a#2, 300ms start b#2, 300ms start c#2");
}

#[test]
fn a_child_no_longer_awaited_is_stopped_with_its_siblings() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d")];
    let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
    sim.fail("d");
    sim.request("b", ChildRequest::RESTART);
    assert_eq!(sim.lifecycle("d"), Lifecycle::Restarting);
    sim.fail("a");
    assert_eq!(sim.lifecycle("d"), Lifecycle::Stopped);
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns cancel c, 1s cancel b, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
    );
}

#[test]
fn a_child_no_longer_awaited_is_down_before_the_children_behind_it() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
    sim.fail("b");
    sim.fail("a");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
    assert_eq!(sim.lifecycle("c"), Lifecycle::Deactivating);
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "restarting");
    sim.advance(secs(5));
    assert_eq!(sim.causes(), "a#2 restart, b#2 group, c#2 group");
}

#[test]
fn a_child_no_longer_awaited_is_down_once_a_wider_range_includes_it() {
    let called = fake("called").on_message().signals(None);
    let leaks = fake("leaks").leaks().on_leak(OnLeak::Park).shutdown(Shutdown::BrutalKill);
    let last = fake("last").signals(None);
    let mut sim = Simulation::ordered(waiting(rest_for_one()), [called, fake("a"), leaks, last]);
    sim.settle();
    sim.send("called");
    sim.fail("a");
    sim.advance(WAIT);
    assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting, "the child in front of it starts first");

    sim.request("leaks", ChildRequest::RESUME);
    sim.fail("called");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Stopped);
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "restarting");
}

#[test]
fn no_child_is_shown_as_next_in_a_range_of_which_a_part_stays_down() {
    let first = fake("a").consecutive(0).on_exhausted(OnExhausted::StopChild);
    let fakes = [first, fake("b").stops(secs(9)), fake("c").stops(secs(1)), fake("d")];
    let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
    sim.fail("a");
    sim.add(fake("e"));
    sim.fail("e");
    sim.advance(secs(1));
    assert_eq!(sim.lifecycle("b"), Lifecycle::Deactivating);

    assert_eq!(sim.stops_now(), None);
    // `d` is neither in the part that restarts nor being stopped.
    sim.request("d", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.lifecycle("d"), Lifecycle::Active);
}

#[test]
fn a_child_no_longer_awaited_does_not_wait_for_its_own_restart() {
    let fakes = || [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut terminated = Simulation::running(waiting(rest_for_one()), fakes());
    terminated.fail("b");
    terminated.fail("a");
    assert_eq!(terminated.call("a", ChildRequest::Terminate), "done");
    let mut parked = Simulation::running(parking(1, waiting(rest_for_one())), fakes());
    parked.fail("b");
    parked.fail("a");
    for mut sim in [terminated, parked] {
        assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
        assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "stopped");
        // It belongs to no group that waits.
        sim.skip();
        let added = sim.add(fake("d"));
        assert_eq!(sim.answer(added), "started 1");
        sim.advance(secs(5));
        assert_eq!(sim.why("b"), Some("stopped with its group"));
        assert_eq!(sim.acts(), "start d#1");
        assert_eq!(sim.alive(), "d#1");
        assert_eq!(sim.call("b", ChildRequest::Delete), "done");
    }
}

#[test]
fn a_child_yet_to_be_started_keeps_its_place_while_a_later_range_restarts() {
    let fakes = [
        prompt("a"),
        fake("b"),
        fake("z").leaks().on_leak(OnLeak::Park),
        fake("slow").signals(None),
    ];
    let mut sim = begin(waiting(rest_for_one()), fakes);
    sim.call("z", ChildRequest::Kill);
    sim.call("a", ChildRequest::Terminate);
    sim.fake("a").ready = Some(secs(5));
    sim.request("a", ChildRequest::RESTART_CHILD);
    sim.advance(secs(1));
    sim.fail("b");
    sim.advance(secs(1));
    sim.skip();
    sim.request("z", ChildRequest::RESUME);
    assert_eq!(sim.lifecycle("b"), Lifecycle::Restarting);
    sim.advance(secs(5));
    assert_eq!(sim.causes(), "b#2 restart, z#2 manual, slow#2 group");
}

#[test]
fn a_crash_of_a_child_yet_to_be_started_does_not_block_its_siblings() {
    // `b` and the children behind it are parked, `d` is restarted, `b` is retried, and `d` fails
    // while `b` starts.
    let restarts = |max, failures| {
        let rules = Rules { intensity: sliding(max), ..parking(max, rest_for_one()) };
        let fakes = [fake("a"), prompt("b"), fake("c"), fake("d")];
        let mut sim = Simulation::running(rules, fakes);
        for _ in 0..=max {
            sim.fail("b");
        }
        assert_eq!(sim.call("d", ChildRequest::RESTART_CHILD), format!("started {}", max + 2));
        sim.fake("b").ready = Some(secs(5));
        sim.skip();
        sim.request("b", ChildRequest::RESUME);
        for _ in 0..failures {
            sim.fail("d");
        }
        sim.advance(secs(9));
        sim.acts()
    };
    assert_eq!(restarts(0, 1), "start b#2, gave up d, start c#2");
    assert_eq!(restarts(1, 1), "start b#3, start c#3, start d#4");
}

#[test]
fn a_failure_while_starting_begins_again_at_its_range() {
    let fakes = [fake("a"), fake("b"), fake("c").signals(secs(1)), fake("d")];
    let mut sim = begin(waiting(rest_for_one()), fakes);
    sim.advance(secs(1));
    sim.skip();
    sim.fail("b");
    sim.advance(ms(700));
    sim.fail("a");
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "1s cancel d, 1s cancel c, 1.2s start b#2, 1.2s start c#2, 1.7s cancel c, \
         1.7s cancel b, 1.9s start a#2, 1.9s start b#3, 1.9s start c#3, 2.9s start d#2"
    );
}

#[test]
fn an_exit_in_a_range_that_stops_is_free_also_if_the_failure_that_began_the_stop_was() {
    let b = prompt("b").scripts([Script::Run, Script::Fail]);
    let rules = Rules { strategy: Strategy::OneForAll, ..limited(1, waiting(rules())) };
    let mut sim = Simulation::running(rules, [fake("a").stops(ms(50)), b]);
    sim.fail("a");
    assert_eq!(sim.machine.intensity(sim.now).0, 1);
    // The start of `b` fails, which is not charged, and stops `a`.
    sim.advance(WAIT);
    assert_eq!(sim.acts(), "cancel b, start a#2, start b#2, cancel a");
    sim.fail("a");
    assert_eq!(sim.machine.intensity(sim.now).0, 1);
    sim.advance(secs(1));
    assert_eq!(sim.alive(), "a#3 b#3");
    sim.fail("a");
    assert!(sim.finished(), "a failure outside of a stop is charged");
}
