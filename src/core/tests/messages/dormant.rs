//! Children that are down and may be started by a message.

use super::{group, not_restarted, on_message, returns, send};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, at_most, fake, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{AutoShutdown, Backoff, RestartType, Revival, Rules, Strategy};

const GROUPS: [Strategy; 3] = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];

#[test]
fn a_dormant_child_counts_as_remaining_and_an_ended_child_does_not() {
    let rules = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rules() };
    let mut sim =
        Simulation::running(rules, [on_message("a").significant(), on_message("b").significant()]);
    send(&mut sim, "a");
    sim.end("a");
    assert!(!sim.finished(), "b has not run yet");
    send(&mut sim, "b");
    send(&mut sim, "b");
    sim.end("b");
    assert!(sim.finished(), "an exit counts, although a message is pending");
}

#[test]
fn a_temporary_child_is_removed_at_its_end_even_if_a_message_is_pending_where_otp_does_so() {
    fn check(mut sim: Simulation) {
        send(&mut sim, "a");
        send(&mut sim, "a");
        sim.end("a");
        assert_eq!(sim.acts(), "start a#1, removed a");
        assert!(!returns(&sim, "a"));
        sim.send("a");
    }
    let rules = Rules { revival: Revival::Never, ..rules() };
    check(Simulation::running(rules.clone(), [fake("a").temporary().on_message()]));
    check(Simulation::dynamic(rules, [fake("a").temporary().on_message()]));
}

#[test]
fn a_temporary_child_is_stopped_at_its_end_and_a_message_starts_it_again() {
    fn check(mut sim: Simulation) {
        send(&mut sim, "a");
        sim.end("a");
        assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Stopped, Some("finished")));
        assert!(returns(&sim, "a"));
        send(&mut sim, "a");
        sim.fail("a");
        assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Stopped, Some("not restarted")));
        assert!(returns(&sim, "a"));
        // Also for a message that came while it ran.
        send(&mut sim, "a");
        send(&mut sim, "a");
        sim.fail("a");
        let causes = "a#1 on_message, a#2 on_message, a#3 on_message, a#4 on_message";
        assert_eq!(sim.causes(), causes);
        sim.end("a");
        assert_eq!(sim.call("a", ChildRequest::RESUME), "started 5");
        sim.end("a");
        assert_eq!(sim.call("a", ChildRequest::Delete), "done");
    }
    // The limit allows no restart.
    let none = Rules { intensity: at_most(0), ..rules() };
    check(Simulation::running(none.clone(), [fake("a").temporary().on_message()]));
    check(Simulation::dynamic(none, [fake("a").temporary().on_message()]));
}

#[test]
fn a_temporary_child_keeps_its_place_when_it_is_terminated_and_until_it_is_deleted() {
    let mut sim = Simulation::running(rules(), [fake("a").temporary().on_message()]);
    send(&mut sim, "a");
    assert_eq!(sim.call("a", ChildRequest::Terminate), "done");
    assert_eq!(sim.why("a"), Some("stopped manually"));
    send(&mut sim, "a");
    assert_eq!(sim.causes(), "a#1 on_message", "no message starts it");
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 2");
    sim.end("a");
    assert_eq!(sim.call("a", ChildRequest::Terminate), "done");
    assert_eq!(sim.call("a", ChildRequest::Delete), "done");
}

#[test]
fn a_group_leaves_a_temporary_child_dormant() {
    let temporary = |name| fake(name).temporary().on_message();
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = [
            fake("a"),
            temporary("ran"),
            temporary("ended"),
            temporary("never"),
            temporary("stopped"),
            fake("z"),
        ];
        let mut sim = Simulation::running(group(strategy), fakes);
        for name in ["ran", "ended", "stopped"] {
            send(&mut sim, name);
        }
        sim.end("ended");
        sim.call("stopped", ChildRequest::Terminate);
        sim.skip();

        sim.fail("a");
        assert_eq!(sim.causes(), "a#2 restart, z#2 group");
        let why = ["ran", "ended", "never", "stopped"].map(|name| sim.why(name));
        let dormant = Some("waits for a message");
        assert_eq!(why, [dormant, Some("finished"), dormant, dormant]);
        assert_eq!(sim.lifecycle("ran"), Lifecycle::Stopped);
        for name in ["ran", "ended", "never", "stopped"] {
            assert!(returns(&sim, name), "{name}");
            send(&mut sim, name);
        }
        let causes =
            "ran#2 on_message, ended#2 on_message, never#1 on_message, stopped#2 on_message";
        assert_eq!(sim.causes(), causes);
    }
}

#[test]
fn a_message_for_a_child_that_is_stopped_is_forgotten_when_its_group_makes_it_dormant() {
    let mut sim = Simulation::running(
        group(Strategy::OneForAll),
        [fake("a"), fake("b").temporary().on_message(), fake("c").temporary().on_message()],
    );
    send(&mut sim, "c");
    send(&mut sim, "c");
    sim.call("b", ChildRequest::Terminate);
    sim.call("c", ChildRequest::Terminate);
    send(&mut sim, "b");
    sim.skip();
    sim.fail("a");
    assert_eq!(sim.causes(), "a#2 restart");
    assert_eq!(["b", "c"].map(|name| sim.why(name)), [Some("waits for a message"); 2]);
}

#[test]
fn a_message_starts_a_child_that_its_group_has_left_dormant_once_nothing_prevents_its_start() {
    let temporary = |name| fake(name).temporary().on_message();
    let fakes = [fake("a"), fake("db"), temporary("web").requires("db"), temporary("held")];
    let mut sim = Simulation::running(group(Strategy::OneForAll), fakes);
    for name in ["web", "held"] {
        sim.call(name, ChildRequest::Terminate);
    }
    for name in ["db", "held"] {
        sim.call(name, ChildRequest::Hold);
    }
    sim.fail("a");
    sim.skip();
    for name in ["web", "held"] {
        assert_eq!(sim.why(name), Some("waits for a message"), "{name}");
        send(&mut sim, name);
    }
    assert_eq!(
        ["web", "held"].map(|name| sim.why(name)),
        [Some("waits for a requirement"), Some("held")]
    );
    for name in ["db", "held"] {
        sim.call(name, ChildRequest::Release);
    }
    assert_eq!(sim.causes(), "db#2 group, web#1 on_message, held#1 on_message");
}

#[test]
fn a_group_that_restarts_starts_a_child_that_waits_to_be_started_by_a_message() {
    let web = fake("web").temporary().on_message().requires("db");
    let mut sim = Simulation::running(group(Strategy::OneForAll), [fake("a"), fake("db"), web]);
    sim.call("db", ChildRequest::Hold);
    sim.fail("a");
    send(&mut sim, "web");
    sim.fail("a");
    sim.skip();
    assert_eq!(sim.why("web"), Some("waits for a requirement"));
    sim.call("db", ChildRequest::Release);
    assert_eq!(sim.causes(), "db#2 group, web#1 group");
}

#[test]
fn a_message_that_comes_while_its_group_stops_starts_a_temporary_child_in_order() {
    let fakes = [fake("a"), fake("b").temporary().on_message().stops(secs(1)), fake("c")];
    let mut sim = Simulation::running(group(Strategy::OneForAll), fakes);
    send(&mut sim, "b");
    sim.skip();
    sim.fail("a");
    assert!(returns(&sim, "b"));
    send(&mut sim, "b");
    sim.advance(secs(1));
    assert_eq!(sim.causes(), "a#2 restart, b#2 on_message, c#2 group");
}

#[test]
fn adding_one_is_answered_at_once() {
    fn check(mut sim: Simulation) {
        let ticket = sim.add(on_message("a"));
        assert_eq!(sim.answer(ticket), "dormant");
        send(&mut sim, "a");
        assert_eq!(sim.alive(), "a#1");
    }
    for strategy in GROUPS {
        check(Simulation::running(group(strategy), []));
    }
    check(Simulation::dynamic(rules(), []));
}

#[test]
fn a_dormant_child_can_be_started_terminated_and_deleted() {
    let mut sim = Simulation::running(rules(), [on_message("a"), on_message("b"), on_message("c")]);
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 1");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    assert_eq!(sim.call("c", ChildRequest::Delete), "done");
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 1");
    assert_eq!(sim.causes(), "a#1 manual, b#1 manual");
}

#[test]
fn a_child_not_restarted_by_a_dynamic_supervisor_counts_until_it_is_removed() {
    let rules = Rules { max_children: Some(1), ..rules() };
    let mut sim = Simulation::dynamic(rules, [not_restarted("a")]);
    send(&mut sim, "a");
    sim.fail("a");
    assert!(sim.machine.admits().is_err());
    assert_eq!(sim.call("a", ChildRequest::RESUME), "started 2");
    sim.fail("a");
    assert_eq!(sim.call("a", ChildRequest::Delete), "done");
    assert!(sim.machine.admits().is_ok());
}

#[test]
fn a_child_awaits_a_message_while_it_is_down_and_none_is_pending() {
    fn check(mut sim: Simulation) {
        let awaits = |sim: &Simulation, name: &str| sim.machine.awaits_message(sim.key(name));
        assert!(awaits(&sim, "a"), "dormant");
        assert!(!awaits(&sim, "plain"), "started with its supervisor");
        send(&mut sim, "a");
        assert!(!awaits(&sim, "a"), "active");
        sim.send("a");
        assert!(!awaits(&sim, "a"), "active, and a message is pending");
        sim.end("a");
        assert!(!awaits(&sim, "a"), "started again");
        sim.end("a");
        assert!(awaits(&sim, "a"), "it has finished");
        sim.stop();
        assert!(!awaits(&sim, "a"), "it is not started any more");
    }
    check(Simulation::running(rules(), [on_message("a"), fake("plain")]));
    check(Simulation::dynamic(rules(), [on_message("a"), fake("plain")]));
}

#[test]
fn a_child_that_runs_waits_or_awaits_a_decision_comes_back() {
    fn check(mut sim: Simulation) {
        assert!(returns(&sim, "a"), "active");
        sim.fail("a");
        assert!(returns(&sim, "a"), "it waits");
        sim.advance(secs(1));
        sim.request("a", ChildRequest::RESTART);
        assert!(returns(&sim, "a"), "to be restarted");
        sim.request("a", ChildRequest::Terminate);
        assert!(!returns(&sim, "a"), "stopped manually");
    }
    let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
    check(Simulation::running(rules.clone(), [fake("a").stops(secs(1))]));
    check(Simulation::dynamic(rules, [fake("a").stops(secs(1))]));
}

#[test]
fn with_its_group_unless_that_is_to_rest() {
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
    let types = [RestartType::Permanent, RestartType::Temporary];
    let [stays, goes] = types.map(|it| fake("x").restart(it));
    for (fake_b, expected) in [(stays, true), (goes, false)] {
        let fakes = [fake("a"), fake_b.stops(secs(1)), fake("c")];
        let mut sim = Simulation::running(rules.clone(), fakes);
        sim.fail("a");
        assert_eq!(returns(&sim, "x"), expected, "it stops");
        assert!(returns(&sim, "c"), "it is down");
        sim.advance(secs(2));
        // The child that the group waits for is terminated: no child of the group restarts.
        sim.call("a", ChildRequest::Terminate);
        assert!(!returns(&sim, "c"));
    }
}

#[test]
fn a_child_that_ends_and_is_then_terminated_is_reported_as_staying_down() {
    let mut sim = Simulation::running(rules(), [on_message("a")]);
    send(&mut sim, "a");
    sim.end("a");
    sim.skip();
    // The invariants need a report of it, since no edge shows it.
    sim.call("a", ChildRequest::Terminate);
    assert!(!returns(&sim, "a"));
    assert_eq!(sim.story("a"), "");
}

#[test]
fn no_child_comes_back_once_the_end_has_begun_nor_an_unknown_one() {
    let mut sim =
        Simulation::running(rules(), [fake("a").stops(secs(1)), on_message("b"), on_message("c")]);
    let gone = sim.key("c");
    sim.call("c", ChildRequest::Delete);
    assert!(!sim.machine.returns(gone));
    sim.stop();
    assert!(!returns(&sim, "a") && !returns(&sim, "b"));
}
