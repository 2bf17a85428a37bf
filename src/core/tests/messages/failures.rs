//! Messages for a child that has failed, and whose trigger does not restart it.

use super::{not_restarted, on_message, returns, send};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, at_most, fake, ms, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Jitter, OnExhausted, RestartType, Revival, Rules, Start, Strategy};

fn doubling() -> Rules {
    Rules { backoff: Backoff::exponential(secs(4), secs(60)).jitter(Jitter::None), ..rules() }
}

fn both(rules: &Rules, check: fn(Simulation)) {
    for child in [not_restarted("a"), fake("a").temporary().on_message()] {
        check(Simulation::running(rules.clone(), [child.clone()]));
        check(Simulation::dynamic(rules.clone(), [child]));
    }
}

#[test]
fn a_message_starts_it_when_its_backoff_is_over() {
    both(&doubling(), |mut sim| {
        send(&mut sim, "a");
        sim.fail("a");
        sim.skip();
        sim.advance(secs(1));
        send(&mut sim, "a");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
        assert!(returns(&sim, "a"));
        sim.advance(secs(3) - ms(1));
        assert_eq!(sim.alive(), "");
        sim.advance(ms(1));
        assert_eq!(sim.causes(), "a#2 on_message");

        // The next delay is twice as long, and counts from the failure.
        sim.fail("a");
        sim.advance(secs(8));
        assert_eq!(sim.alive(), "", "no message waits");
        send(&mut sim, "a");
        assert_eq!(sim.causes(), "a#3 on_message");
    });
}

#[test]
fn a_message_that_came_while_it_ran_waits_as_well() {
    both(&doubling(), |mut sim| {
        send(&mut sim, "a");
        send(&mut sim, "a");
        sim.fail("a");
        assert_eq!(sim.alive(), "");
        sim.advance(secs(4));
        assert_eq!(sim.causes(), "a#1 on_message, a#2 on_message");
        assert_eq!(sim.alive(), "a#2");
    });
}

#[test]
fn after_a_clean_end_a_message_starts_it_at_once() {
    let mut sim = Simulation::running(doubling(), [on_message("a")]);
    send(&mut sim, "a");
    sim.end("a");
    send(&mut sim, "a");
    assert_eq!(sim.alive(), "a#2");
}

/// elfo's `never`: a failed actor is gone, and the next message starts another one.
///
/// Rule: seed4.20
#[test]
fn where_elfo_does_so_a_message_starts_a_temporary_child_soon_after_its_failure_and_without_a_limit()
 {
    let rules = Rules { revival: Revival::AtOnce, ..doubling() };
    let child = fake("a").temporary().on_message().consecutive(0);
    for mut sim in [
        Simulation::running(rules.clone(), [child.clone()]),
        Simulation::dynamic(rules.clone(), [child.clone()]),
    ] {
        for alive in ["a#1", "a#2", "a#3"] {
            send(&mut sim, "a");
            assert_eq!(sim.alive(), alive);
            sim.fail("a");
            assert_eq!(sim.alive(), "");
            assert!(returns(&sim, "a"));
        }
    }
    // Others wait for their backoff, because they may be restarted by their trigger.
    let mut sim = Simulation::running(rules, [not_restarted("a")]);
    send(&mut sim, "a");
    sim.fail("a");
    send(&mut sim, "a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
}

#[test]
fn the_start_counts_for_its_own_limits_and_not_for_the_supervisors() {
    let none = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..rules() };
    for child in
        [not_restarted("a").consecutive(2), fake("a").temporary().on_message().consecutive(2)]
    {
        for mut sim in [
            Simulation::running(none.clone(), [child.clone()]),
            Simulation::dynamic(none.clone(), [child.clone()]),
        ] {
            for alive in ["a#1", "a#2", "a#3"] {
                send(&mut sim, "a");
                assert_eq!(sim.alive(), alive);
                sim.fail("a");
            }
            assert_eq!(sim.why("a"), Some("not restarted"));
            send(&mut sim, "a");
            assert_eq!((sim.alive(), sim.why("a")), (String::new(), Some("given up")));
            assert!(!returns(&sim, "a"));
            send(&mut sim, "a");
            assert_eq!(sim.alive(), "", "no message starts a child that was given up");
        }
    }
}

#[test]
fn a_refused_start_escalates_if_that_is_what_follows() {
    let mut sim = Simulation::running(rules(), [not_restarted("a").consecutive(0)]);
    send(&mut sim, "a");
    sim.fail("a");
    assert!(!sim.finished(), "its failure is left");
    send(&mut sim, "a");
    assert_eq!(sim.acts(), "start a#1, gave up a, finish escalated a: failed");
}

#[test]
fn a_call_ends_the_wait() {
    for (request, answer, causes) in [
        (ChildRequest::RESUME, "started 2", "a#2 on_message"),
        (ChildRequest::RESTART, "started 2", "a#2 on_message"),
        (ChildRequest::Terminate, "done", ""),
    ] {
        let mut sim = Simulation::running(doubling(), [not_restarted("a")]);
        send(&mut sim, "a");
        sim.fail("a");
        send(&mut sim, "a");
        sim.skip();
        assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "restarting");
        assert_eq!(sim.call("a", request), answer);
        sim.advance(secs(99));
        assert_eq!(sim.causes(), causes, "{request:?}");
    }
}

#[test]
fn a_start_in_order_does_not_wait_for_it() {
    for start in [Start::Sequential, Start::Concurrent] {
        let rules = Rules { start, strategy: Strategy::RestForOne, ..rules() };
        let b = not_restarted("b").backoff(Backoff::constant(secs(9)));
        let a = fake("a").backoff(Backoff::constant(secs(2)));
        let mut sim = Simulation::running(rules, [a, b, fake("c")]);
        send(&mut sim, "b");
        sim.fail("b");
        sim.fail("a");
        sim.skip();
        // It waits for its group, which comes to it before its backoff is over.
        send(&mut sim, "b");
        sim.advance(secs(99));
        assert_eq!(sim.timed(), "2s start a#2, 2s start c#2, 9s start b#2");
    }
}

#[test]
fn a_group_that_restarts_meanwhile_starts_it_in_order() {
    let b = not_restarted("b").backoff(Backoff::constant(secs(9)));
    for b in [b.clone(), b.restart(RestartType::Temporary)] {
        let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
        let mut sim = Simulation::running(rules, [fake("a"), b, fake("c")]);
        send(&mut sim, "b");
        sim.fail("b");
        send(&mut sim, "b");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Restarting);
        sim.skip();
        sim.fail("a");
        assert_eq!(sim.acts(), "cancel c, start a#2, start b#2, start c#2");
        sim.advance(secs(99));
        assert_eq!(sim.acts(), "");
    }
}
