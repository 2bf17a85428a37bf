//! Callers that seek the incarnation of a child.

use std::time::Duration;

use super::{group, parking, slow, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Script, Simulation, fake, ms, rules, secs};
use crate::policy::{Backoff, FirstStart, OnExhausted, Rules, Strategy};

const FIND: ChildRequest = ChildRequest::Find { wait: true };
const TRY: ChildRequest = ChildRequest::Find { wait: false };

#[test]
fn a_caller_that_seeks_a_child_waits_for_the_attempt_that_succeeds() {
    let b = fake("b").signals(Duration::ZERO).scripts([Script::Run, Script::Fail, Script::Fail]);
    for rules in [waiting(), group()] {
        let mut sim = Simulation::running(rules, [fake("a"), b.clone()]);
        assert_eq!(sim.call("b", FIND), "started 1");
        sim.fail("b");
        let sought = sim.request("b", FIND);
        assert_eq!(sim.call("b", TRY), "restarting");
        sim.advance(secs(18));
        assert_eq!(sim.answer(sought), "-", "two attempts have failed");
        sim.advance(secs(9));
        assert_eq!(sim.answer(sought), "started 4");
    }
}

#[test]
fn a_caller_that_seeks_a_child_changes_no_failed_start() {
    let b = fake("b").signals(secs(1)).scripts([Script::Fail; 9]);
    let strict = Rules { first_start: FirstStart::Fail, ..rules() };
    let failed = |rules, seeks: bool| {
        let mut sim = Simulation::ordered(rules, [fake("a"), b.clone()]);
        sim.settle();
        let sought = seeks.then(|| sim.request("b", FIND));
        sim.advance(secs(2));
        (sim.timed().to_owned(), sought.map(|ticket| sim.answer(ticket).to_owned()))
    };
    let (acts, answer) = failed(strict.clone(), true);
    assert_eq!(acts, failed(strict, false).0);
    assert_eq!(answer.as_deref(), Some("shutting down"));

    let (acts, answer) = failed(waiting(), true);
    assert_eq!(acts, failed(waiting(), false).0);
    assert_eq!(answer.as_deref(), Some("-"), "it is restarted");

    // A caller that has requested the start is answered with the failure, and the child is removed.
    let mut sim = Simulation::running(rules(), [fake("a")]);
    let added = sim.add(b);
    let sought = sim.request("b", FIND);
    sim.advance(secs(1));
    assert_eq!((sim.answer(added), sim.answer(sought)), ("failed activation_failed", "not found"));
}

#[test]
fn a_caller_that_seeks_a_child_is_answered_when_it_stays_down() {
    let mut sim = Simulation::running(waiting(), [fake("a"), slow()]);
    sim.fail("b");
    let sought = sim.request("b", FIND);
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.answer(sought), "stopped");
    assert_eq!(sim.call("b", FIND), "invalid state stopped");

    let once = fake("b").signals(ms(0)).scripts([Script::Run, Script::Fail]);
    let once = once.consecutive(1).on_exhausted(OnExhausted::Park);
    let mut sim = Simulation::running(waiting(), [fake("a"), once]);
    sim.fail("b");
    let sought = sim.request("b", FIND);
    sim.advance(secs(10));
    assert_eq!(sim.answer(sought), "invalid state errored", "it is parked");

    let mut sim = Simulation::running(waiting(), [fake("a"), slow()]);
    sim.fail("b");
    let sought = sim.request("b", FIND);
    sim.stop();
    assert_eq!(sim.answer(sought), "shutting down");
}

#[test]
fn a_caller_that_seeks_a_child_waits_for_its_group() {
    let fakes = [fake("a"), slow(), fake("c").transient()];
    let mut sim = Simulation::running(group(), fakes.clone());
    sim.end("c");
    sim.fail("a");
    let sought = ["a", "b", "c"].map(|name| sim.request(name, FIND));
    sim.advance(secs(8));
    assert_eq!(sought.map(|ticket| sim.answer(ticket).to_owned()), ["-", "-", "-"]);
    sim.advance(secs(1));
    let answers = sought.map(|ticket| sim.answer(ticket).to_owned());
    assert_eq!(answers, ["started 2", "started 2", "started 2"]);

    let parks = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(parks, fakes);
    sim.fail("a");
    assert_eq!(sim.call("b", FIND), "invalid state deactivating", "its group stays down");

    // A caller ends the wait of the group.
    let mut sim = Simulation::running(group(), [fake("a"), fake("b")]);
    sim.fail("a");
    let sought = sim.request("b", FIND);
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.answer(sought), "stopped");
}

#[test]
fn a_caller_that_seeks_a_gated_child_waits_until_its_requirement_is_down_for_good() {
    let a = || fake("a").signals(secs(1));
    let begin = |a| {
        let mut sim = Simulation::ordered(
            Rules { backoff: Backoff::constant(secs(9)), ..rules() },
            [a, fake("b").requires("a"), fake("c").requires("b")],
        );
        sim.settle();
        let sought = ["b", "c"].map(|name| sim.request(name, FIND));
        (sim, sought)
    };
    let (mut sim, sought) = begin(a());
    assert_eq!(sought.map(|ticket| sim.answer(ticket).to_owned()), ["-", "-"]);
    sim.advance(secs(1));
    assert_eq!(sought.map(|ticket| sim.answer(ticket).to_owned()), ["started 1", "started 1"]);

    let (mut sim, sought) = begin(a().scripts([Script::Ignore]));
    sim.advance(secs(1));
    let blocked = "invalid state discovered";
    assert_eq!(sought.map(|ticket| sim.answer(ticket).to_owned()), [blocked, blocked]);
    assert_eq!(sim.call("b", FIND), blocked);
    assert_eq!(sim.call("b", TRY), blocked);
}
