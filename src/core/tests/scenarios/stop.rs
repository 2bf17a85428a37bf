//! The stop of the supervisor.

use std::time::Duration;

use super::{begin, deaf, limited, one_for_all, one_for_one, rest_for_one, waiting};
use crate::core::verify::simulation::{Simulation, fake, rules, secs};
use crate::core::{ChildRequest, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FailureDecision, OnLeak, RestartType, Rules, Shutdown};

#[test]
fn in_reverse_one_at_a_time() {
    let fakes = ["a", "b", "c"].map(|name| fake(name).stops(secs(1)));
    let mut sim = Simulation::running(rules(), fakes);
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel c, 1s cancel b, 2s cancel a, 3s finish stopped");
}

#[test]
fn children_that_are_down_are_passed_in_slices_and_none_is_cancelled_meanwhile() {
    for ended in SLICE - 2..SLICE + 2 {
        let others = (0..ended).map(|number| fake(&number.to_string()).transient());
        let mut sim = Simulation::running(one_for_one(), [fake("a")].into_iter().chain(others));
        for number in 0..ended {
            sim.end(&number.to_string());
        }
        sim.event(MachineEvent::Stop { within: None });
        sim.decide("a", FailureDecision::give_up());
        sim.settle();
        assert_eq!(sim.acts(), "cancel a, finish stopped", "{ended} have ended");
    }
}

#[test]
fn a_child_is_stopped_with_its_supervisor_whether_it_ran_or_not() {
    let slow = || fake("a").signals(secs(1)).stops(secs(1));
    for (began, ran) in [(secs(0), false), (secs(1), true)] {
        let mut sim = begin(rules(), [slow(), fake("b")]);
        sim.advance(began);
        assert_eq!(sim.lifecycle("b") == Lifecycle::Active, ran);
        sim.stop();
        assert_eq!(sim.lifecycle("a"), Lifecycle::Deactivating);
        assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
        assert_eq!(sim.why("b"), Some("stopped with its supervisor"));
    }
}

#[test]
fn grace_then_abort_then_leak_then_finish() {
    let fakes = [
        fake("a"),
        fake("b").leaks().shutdown(secs(2)),
        deaf("c").shutdown(Duration::ZERO),
        fake("d").leaks().shutdown(Shutdown::BrutalKill),
        deaf("e"),
    ];
    let mut sim = Simulation::running(rules(), fakes);
    sim.stop();
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel e, 5s abort e, 5s abort d, 6s leaked d#1, 6s cancel c, 6s abort c, \
         6s cancel b, 8s abort b, 9s leaked b#1, 9s cancel a, 9s finish stopped"
    );
    assert_eq!(sim.story("e"), "active → deactivating → stopped (killed)");
}

#[test]
fn at_the_stop_deadline_all_remaining_children_are_aborted_in_reverse() {
    let fakes = ["a", "b", "c"].map(deaf);
    let mut sim = Simulation::running(rules(), fakes);
    sim.event(MachineEvent::Stop { within: Some(secs(7)) });
    sim.event(MachineEvent::Stop { within: Some(secs(60)) });
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel c, 5s abort c, 5s cancel b, 7s abort b, 7s abort a, 7s finish stopped"
    );
}

#[test]
fn when_the_time_for_an_ordered_stop_is_over_all_children_are_cancelled_at_once() {
    let fakes = [deaf("a"), deaf("b"), deaf("c"), fake("d")];
    let mut sim = Simulation::running(rules(), fakes);
    sim.stop();
    sim.advance(secs(7));
    sim.event(MachineEvent::Close { all: false });
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel d, 0ns cancel c, 5s abort c, 5s cancel b, 7s cancel a, 10s abort b, 12s abort a, \
         12s finish stopped"
    );
}

#[test]
fn a_higher_stop_order_is_cancelled_when_the_lower_ones_are_down() {
    let fakes = || {
        [
            deaf("log").stop_order(100),
            deaf("metrics").stop_order(100),
            deaf("a").shutdown(secs(1)),
            deaf("b").shutdown(secs(2)),
        ]
    };
    let mut sim = Simulation::running(rules(), fakes());
    sim.event(MachineEvent::Close { all: false });
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel b, 0ns cancel a, 1s abort a, 2s abort b, 2s cancel metrics, 2s cancel log, \
         7s abort log, 7s abort metrics, 7s finish stopped"
    );

    let mut sim = Simulation::running(rules(), fakes());
    sim.event(MachineEvent::Close { all: false });
    sim.advance(secs(1));
    sim.event(MachineEvent::Close { all: true });
    sim.event(MachineEvent::AbortAll);
    sim.settle();
    assert_eq!(
        sim.timed(),
        "0ns cancel b, 0ns cancel a, 1s abort a, 1s cancel metrics, 1s cancel log, 1s abort b, \
         1s abort metrics, 1s abort log, 1s finish stopped"
    );
}

#[test]
fn a_child_that_is_added_later_stops_before_those_that_are_there() {
    let mut sim = Simulation::running(rules(), [deaf("a").stop_order(5)]);
    sim.add(deaf("b").stop_order(9));
    sim.settle();
    sim.event(MachineEvent::Close { all: false });
    sim.settle();
    assert_eq!(sim.acts(), "start b#1, cancel b, cancel a", "both have the stop order 5");
}

#[test]
fn nothing_starts_once_the_time_for_an_ordered_stop_is_over() {
    let mut sim = begin(rules(), [fake("a"), fake("b").signals(None), fake("c")]);
    sim.event(MachineEvent::Close { all: false });
    sim.settle();
    assert_eq!(sim.acts(), "start a#1, start b#1, cancel b, cancel a, finish stopped");
    assert_eq!(sim.why("c"), Some("stopped with its supervisor"));
}

#[test]
fn the_rules_may_set_the_deadline() {
    let rules = Rules { stop_deadline: Some(secs(1)), ..rules() };
    let fakes = [fake("a").leaks(), fake("b").leaks()];
    let mut sim = Simulation::running(rules, fakes);
    sim.stop();
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel b, 1s abort b, 1s abort a, 2s leaked a#1, 2s leaked b#1, 2s finish stopped"
    );
}

#[test]
fn abort_all_aborts_all() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(rules(), fakes);
    sim.fail("a");
    sim.call("c", ChildRequest::Terminate);
    sim.event(MachineEvent::AbortAll);
    sim.settle();
    assert_eq!(sim.acts(), "start a#2, cancel c, abort c, abort b, abort a, finish aborted");
}

#[test]
fn what_has_failed_and_leaks_is_stopped_in_the_end_whatever_else_is_asked_for() {
    let b = fake("b").signals(None).activation_timeout(secs(1)).leaks().on_leak(OnLeak::Park);
    let mut sim = begin(rules(), [fake("a"), b]);
    sim.advance(secs(1));
    assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
    sim.event(MachineEvent::AbortAll);
    sim.advance(secs(9));
    assert!(sim.finished());
}

#[test]
fn the_first_reason_is_the_one() {
    let fakes = [fake("a"), fake("b").stops(secs(1))];
    let mut sim = Simulation::running(limited(0, rules()), fakes);
    sim.fail("a");
    sim.stop();
    sim.event(MachineEvent::AbortAll);
    sim.settle();
    assert_eq!(sim.acts(), "gave up a, cancel b, abort b, finish escalated a: failed");
}

#[test]
fn what_ends_meanwhile_neither_comes_back_nor_derails_it() {
    let reasons =
        [ExitReason::Normal, ExitReason::Shutdown, ExitReason::Hung(Duration::from_secs(30))];
    let types = [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];
    let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut fakes = vec![fake("a")];
    let mut ends = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        fakes.push(fake(name).restart(types[number / 3]));
        ends.push((name, reasons[number % 3].clone()));
    }
    fakes.push(fake("z").stops(secs(1)));
    let mut sim = Simulation::running(limited(0, one_for_all()), fakes);
    sim.stop();
    for (name, reason) in ends {
        sim.exit(name, reason);
    }
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "cancel z, removed h, removed i, removed j, cancel a, finish stopped");
}

#[test]
fn a_backoff_that_ends_meanwhile_starts_no_child() {
    let fakes = [fake("a"), fake("b").stops(secs(1))];
    let mut sim = Simulation::running(waiting(one_for_one()), fakes);
    sim.fail("a");
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel b, 1s finish stopped");
    assert!(sim.story("a").ends_with("restarting → stopped"));
}

#[test]
fn in_every_phase_of_a_group_restart() {
    let slow = || [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d").stops(secs(1))];

    // While it stops: a stopping child is not cancelled twice.
    let mut sim = Simulation::running(waiting(rest_for_one()), slow());
    sim.fail("b");
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel d, 1s cancel c, 2s cancel a, 2s finish stopped");

    // While it waits.
    let mut sim = Simulation::named(waiting(rest_for_one()), "a b c");
    sim.fail("b");
    sim.stop();
    assert_eq!(sim.timed(), "0ns cancel c, 0ns cancel a, 0ns finish stopped");

    // While it starts.
    let fakes = [fake("a"), fake("b").signals(secs(1)), fake("c")];
    let mut sim = begin(one_for_all(), fakes);
    sim.advance(secs(1));
    sim.fail("c");
    sim.skip();
    sim.stop();
    assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped");
    assert!(sim.story("c").ends_with("restarting → stopped"));
}

#[test]
fn a_supervisor_without_children_comes_up_and_ends() {
    let mut sim = begin(rules(), []);
    sim.stop();
    assert_eq!(sim.acts(), "up, finish stopped");
}

#[test]
fn it_ends_before_it_has_begun() {
    let mut sim = Simulation::ordered(rules(), [fake("a"), fake("b")]);
    sim.stop();
    assert_eq!(sim.acts(), "finish stopped");
}
