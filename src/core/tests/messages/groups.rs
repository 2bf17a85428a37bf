//! Messages for children whose group restarts or is parked.

use super::{group, not_restarted, on_message, send};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, at_most, fake, secs};
use crate::policy::{Backoff, OnExhausted, Rules, Strategy};

#[test]
fn a_group_restarts_children_that_ran_and_none_that_waits_for_a_message() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = [
            fake("a"),
            on_message("ran"),
            on_message("ended"),
            on_message("never"),
            not_restarted("failed"),
            fake("z"),
        ];
        let mut sim = Simulation::running(group(strategy), fakes);
        for name in ["ran", "ended", "failed"] {
            send(&mut sim, name);
        }
        sim.end("ended");
        sim.fail("failed");
        sim.skip();

        sim.fail("a");
        assert_eq!(sim.causes(), "a#2 restart, ran#2 group, z#2 group");
        let why = ["ended", "never", "failed"].map(|name| sim.why(name));
        assert_eq!(why, [Some("finished"), Some("waits for a message"), Some("not restarted")]);
        for name in ["ended", "never", "failed"] {
            send(&mut sim, name);
        }
        assert_eq!(sim.causes(), "ended#2 on_message, never#1 on_message, failed#2 on_message");
    }
}

#[test]
fn a_pending_message_starts_a_child_of_a_waiting_group_in_order() {
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
    let mut sim = Simulation::running(rules, [fake("a"), on_message("b"), fake("c")]);
    sim.fail("a");
    send(&mut sim, "b");
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "restarting");
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "0ns cancel c, 5s start a#2, 5s start b#1, 5s start c#2");
    assert_eq!(sim.causes(), "");
}

#[test]
fn a_pending_message_starts_a_child_of_a_parked_group_once_it_was_passed() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::OneForAll)
    };
    let fakes = [fake("a"), on_message("b"), fake("c").stops(secs(1)), on_message("d")];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("a");
    send(&mut sim, "b");
    send(&mut sim, "d");
    assert_eq!(sim.timed(), "0ns gave up a, 0ns cancel c, 0ns start d#1");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "1s start b#1");
    assert_eq!(sim.why("c"), Some("stopped with its group"));
}

#[test]
fn a_pending_message_starts_a_child_of_a_range_that_restarts_in_part() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::RestForOne)
    };
    let fakes = [fake("a"), on_message("b"), fake("c"), fake("d").stops(secs(1))];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("c");
    sim.advance(secs(1));
    sim.call("d", ChildRequest::RESTART_CHILD);
    sim.fail("a");
    sim.request("c", ChildRequest::RESUME);
    sim.skip();
    send(&mut sim, "b");
    assert_eq!(sim.acts(), "", "the children behind it still run");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start b#1, start c#2, start d#3");
}

#[test]
fn a_child_that_was_not_restarted_can_be_retried_while_its_group_stops() {
    let fakes = [fake("a"), on_message("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(group(Strategy::OneForAll), fakes);
    send(&mut sim, "b");
    sim.end("b");
    sim.skip();
    sim.fail("a");
    let ticket = sim.request("b", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.answer(ticket), "-", "the group would not have started it");
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "started 2");
    assert_eq!(sim.causes(), "a#2 restart, b#2 manual, c#2 group");
}
