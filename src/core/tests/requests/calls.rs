//! Answers to callers, and what their requests do to a single child.

use std::time::Duration;

use super::{group, slow, waiting};
use crate::core::user_code::NoUserCode;
use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, fake, ms, rules, secs};
use crate::core::{ChildRequest, Effect, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;

#[test]
fn a_caller_whose_child_waits_for_a_requirement_learns_that_it_is_down_for_good() {
    for request in [ChildRequest::Terminate, ChildRequest::Hold] {
        let db = fake("db").signals(secs(9));
        let sim = [db, fake("api").requires("db"), fake("web").requires("api")];
        let mut sim = Simulation::ordered(rules(), sim);
        sim.advance(secs(9));
        for name in ["web", "api", "db"] {
            sim.call(name, ChildRequest::Terminate);
        }
        sim.request("db", ChildRequest::RESTART_CHILD);
        let api = sim.request("api", ChildRequest::RESTART_CHILD);
        let web = sim.request("web", ChildRequest::RESTART_CHILD);
        assert_eq!((sim.answer(api), sim.answer(web)), ("-", "-"), "db comes up");
        sim.call("db", request);
        sim.fail("db");
        sim.advance(secs(1));
        assert_eq!((sim.answer(api), sim.answer(web)), ("gated", "gated"), "{request:?}");
    }
}

#[test]
fn a_caller_that_waits_for_a_child_is_answered_with_the_outcome() {
    // Each case sends a request, then something else happens.
    let requested = |request: ChildRequest, b: FakeChild| {
        let mut sim = Simulation::running(rules(), [fake("a"), b]);
        let ticket = sim.request("b", request);
        (sim, ticket)
    };

    let (mut sim, ticket) = requested(ChildRequest::RESTART, slow());
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.answer(ticket), "shutting down");

    let (mut sim, ticket) = requested(ChildRequest::RESTART, slow());
    let second = sim.request("b", ChildRequest::Terminate);
    sim.advance(secs(9));
    assert_eq!((sim.answer(ticket), sim.answer(second)), ("stopped", "done"));

    let (mut sim, ticket) = requested(ChildRequest::Terminate, slow());
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.answer(ticket), "done");

    // A kill is the reason of the exit.
    let (mut sim, ticket) = requested(ChildRequest::Terminate, slow());
    sim.request("b", ChildRequest::Kill);
    sim.settle();
    assert_eq!(sim.answer(ticket), "done");
    assert!(sim.story("b").ends_with("stopped (killed)"));
}

#[test]
fn the_end_of_a_temporary_child_answers_only_the_caller_that_terminates_it() {
    let mut sim = Simulation::running(group(), [fake("a"), slow().temporary()]);
    let ticket = sim.request("b", ChildRequest::Terminate);
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "done");

    let mut sim = Simulation::running(group(), [fake("a"), slow().temporary()]);
    let restarted = sim.request("b", ChildRequest::RESTART);
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns cancel b, 1s removed b, 1s cancel a, 1s start a#2");
    assert_eq!(sim.answer(restarted), "stopped", "its group removes it");
}

#[test]
fn a_supervisor_that_has_ended_says_nothing_more() {
    fn check(mut sim: Simulation) {
        let key = sim.key("b");
        sim.stop();
        sim.advance(secs(1));
        assert!(sim.finished());
        let requests = REQUESTS.map(|request| MachineEvent::Request { ticket: 99, key, request });
        let exited = MachineEvent::Exited {
            key,
            incarnation: 1,
            reason: ExitReason::Hung(Duration::from_secs(30)),
        };
        let others = [
            MachineEvent::Tick,
            MachineEvent::Stop { within: None },
            MachineEvent::AbortAll,
            exited,
        ];
        for event in requests.into_iter().chain(others) {
            let mut effects = Vec::new();
            sim.machine.on_event(event, sim.now, &mut NoUserCode, &mut effects);
            assert!(effects.is_empty(), "{effects:?}");
        }
    }
    check(Simulation::running(rules(), [fake("a"), slow()]));
    check(Simulation::dynamic(rules(), [fake("a"), slow()]));
}

#[test]
fn a_child_that_is_terminated_after_it_failed_has_ended_as_it_failed() {
    let late = fake("b").signals(None).activation_timeout(secs(1)).stops(secs(1));
    let mut ordered = Simulation::ordered(rules(), [late.clone()]);
    let mut dynamic = Simulation::dynamic(rules(), [late]);
    fn check(sim: &mut Simulation) {
        sim.advance(secs(1));
        let ticket = sim.request("b", ChildRequest::Terminate);
        sim.advance(secs(1));
        assert_eq!(sim.answer(ticket), "done");
    }
    check(&mut ordered);
    check(&mut dynamic);
    assert!(ordered.story("b").ends_with("activating → errored (activation_timed_out) → stopped"));
    assert!(dynamic.timed().ends_with("2s removed b"));
}

#[test]
fn a_manual_start_that_fails_is_the_callers_alone() {
    let b = fake("b").signals(Duration::ZERO).scripts([Script::Run, Script::Fail]);
    let mut sim = Simulation::running(rules(), [fake("a"), b]);
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "failed activation_failed");
    sim.advance(secs(60));
    assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "started 3");

    // A child that was just added is removed.
    let ticket = sim.add(fake("c").signals(Duration::ZERO).scripts([Script::Panic]));
    sim.settle();
    assert_eq!(sim.answer(ticket), "failed panicked");
    assert!(sim.acts().ends_with("start c#1, removed c"));

    // A child that declines is kept.
    let ticket = sim.add(fake("d").signals(Duration::ZERO).scripts([Script::Ignore]));
    sim.settle();
    assert_eq!(sim.answer(ticket), "ignored");
    assert_eq!(sim.call("d", ChildRequest::RESTART_CHILD), "started 2");
}

#[test]
fn a_child_that_is_deleted_and_added_again_is_the_last() {
    let mut sim = Simulation::named(rules(), "a b c");
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.call("b", ChildRequest::Delete), "done");
    sim.add(fake("b"));
    sim.skip();
    sim.stop();
    assert_eq!(sim.acts(), "cancel b, cancel c, cancel a, finish stopped");
}

#[test]
fn a_killed_child_has_failed() {
    let mut sim = Simulation::running(group(), [fake("a"), slow()]);
    assert_eq!(sim.call("b", ChildRequest::Kill), "done");
    sim.advance(secs(10));
    assert_eq!(sim.timed(), "0ns abort b, 0ns cancel a, 9s start a#2, 9s start b#2");
    assert!(sim.story("b").starts_with("active → errored (aborted) → restarting"));
}

#[test]
fn a_child_in_backoff_can_be_terminated_and_restarted() {
    let mut sim = Simulation::named(waiting(), "a b");
    sim.fail("b");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "");
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "started 2");
}

#[test]
fn a_gated_child_starts_when_a_new_one_of_that_name_comes() {
    let a = || fake("a").signals(ms(1));
    let mut sim =
        Simulation::ordered(rules(), [a().scripts([Script::Ignore]), fake("b").requires("a")]);
    sim.advance(secs(1));
    assert_eq!(sim.call("a", ChildRequest::Delete), "done");
    sim.skip();
    sim.add(a());
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#1, start b#1");
}

#[test]
fn a_cancelled_child_that_is_aborted_from_outside_was_not_killed_by_its_supervisor() {
    let mut sim = Simulation::running(rules(), [fake("a"), slow()]);
    sim.request("b", ChildRequest::Terminate);
    sim.exit("b", ExitReason::Aborted);
    assert!(sim.story("b").ends_with("stopped (aborted)"));
    sim.call("b", ChildRequest::RESTART_CHILD);

    sim.request("b", ChildRequest::Terminate);
    sim.request("b", ChildRequest::Kill);
    sim.settle();
    assert!(sim.story("b").ends_with("stopped (killed)"), "by its supervisor");
}

#[test]
fn a_child_terminated_while_down_is_reported_once_if_it_would_have_come_back() {
    let reports = |mut sim: Simulation| {
        let event = MachineEvent::Request {
            ticket: 0,
            key: sim.key("a"),
            request: ChildRequest::Terminate,
        };
        let mut effects = Vec::new();
        sim.machine.on_event(event, sim.now, &mut NoUserCode, &mut effects);
        let edges = effects.iter().filter(|it| matches!(it, Effect::Report(_))).count();
        let stays = effects.iter().filter(|it| matches!(it, Effect::StaysDown { .. })).count();
        (edges, stays)
    };

    let mut waits = Simulation::running(waiting(), [fake("a")]);
    waits.fail("a");
    assert_eq!(reports(waits), (1, 0));

    let mut down = Simulation::running(rules(), [fake("a").transient().on_message()]);
    down.send("a");
    down.settle();
    down.end("a");
    assert_eq!(reports(down), (0, 1), "a message would have started it");

    let mut down = Simulation::running(rules(), [fake("a").transient()]);
    down.end("a");
    assert_eq!(reports(down), (0, 0));

    for stays in [false, true] {
        let mut down = Simulation::running(group(), [fake("c"), fake("a"), slow()]);
        down.fail("c");
        down.fail("a");
        if stays {
            down.call("c", ChildRequest::Terminate);
        }
        assert_eq!(reports(down), (0, 1), "its group stays down: {stays}");
    }
}

#[test]
fn a_child_that_is_terminated_in_a_group_that_stays_down_is_reported() {
    let mut sim = Simulation::running(group(), [fake("c"), fake("a"), slow()]);
    for name in ["c", "a"] {
        sim.fail(name);
    }
    for name in ["c", "a"] {
        assert_eq!(sim.call(name, ChildRequest::Terminate), "done");
    }
    sim.advance(secs(1));
    assert_eq!([sim.why("c"), sim.why("a")], [Some("stopped manually"); 2]);
    assert_eq!(sim.why("b"), Some("stopped with its group"));
}
