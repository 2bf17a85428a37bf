//! Children that a caller holds, and counters that a caller resets.

use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, fake, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, Jitter, Rules, Strategy};

#[test]
fn a_held_child_runs_on_and_is_discovered_once_it_has_failed() {
    let mut sim = Simulation::running(rules(), [fake("a"), fake("b")]);
    assert_eq!(sim.call("a", ChildRequest::Hold), "done");
    assert_eq!((sim.alive(), sim.why("a")), ("a#1 b#1".to_owned(), None));

    sim.fail("a");
    sim.advance(secs(99));
    assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Discovered, Some("held")));
    assert_eq!(sim.alive(), "b#1");
}

#[test]
fn no_call_but_a_release_starts_a_held_child() {
    let mut sim = Simulation::running(rules(), [fake("a")]);
    sim.call("a", ChildRequest::Hold);
    // A restart would leave it down.
    for request in [ChildRequest::RESTART, ChildRequest::RESTART_CHILD] {
        assert_eq!(sim.call("a", request), "held", "{request:?}");
    }
    assert_eq!(sim.alive(), "a#1");
    sim.fail("a");
    sim.advance(secs(1));
    for request in [ChildRequest::RESTART_CHILD, ChildRequest::RESUME, ChildRequest::RESUME] {
        assert_eq!(sim.call("a", request), "held", "{request:?}");
    }
    assert_eq!(sim.call("a", ChildRequest::Release), "started 2");
    assert_eq!(sim.alive(), "a#2");
}

#[test]
fn a_child_that_is_released_before_it_fails_is_restarted_as_usual() {
    let mut sim = Simulation::running(rules(), [fake("a")]);
    sim.call("a", ChildRequest::Hold);
    assert_eq!(sim.call("a", ChildRequest::Release), "done");
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.alive(), "a#2");
}

#[test]
fn a_hold_cuts_a_backoff_short_and_a_release_does_not_go_back_to_it() {
    let backoff = Backoff::constant(secs(9));
    let mut sim = Simulation::running(rules(), [fake("a").backoff(backoff)]);
    sim.fail("a");
    sim.call("a", ChildRequest::Hold);
    assert_eq!(sim.lifecycle("a"), Lifecycle::Discovered);
    assert_eq!(sim.call("a", ChildRequest::Release), "started 2");
}

#[test]
fn a_child_that_was_stopped_stays_stopped_when_it_is_released() {
    let mut sim = Simulation::running(rules(), [fake("a")]);
    sim.call("a", ChildRequest::Hold);
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.call("a", ChildRequest::Release), "done");
    assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Stopped, Some("stopped manually")));
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 2");
}

#[test]
fn a_group_starts_without_the_child_that_is_held() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, ..rules() };
    let mut sim = Simulation::named(one_for_all, "a b c");
    sim.call("b", ChildRequest::Hold);
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.alive(), "a#2 c#2");
    assert_eq!(sim.call("b", ChildRequest::Release), "started 2");
    assert_eq!(sim.alive(), "a#2 b#2 c#2");
}

#[test]
fn a_held_child_that_is_disabled_needs_both_to_end() {
    let mut sim = Simulation::running(rules(), [fake("a"), fake("b")]);
    sim.call("a", ChildRequest::Hold);
    sim.enable("a", false);
    sim.settle();
    assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Discovered, Some("disabled")));
    sim.enable("a", true);
    sim.settle();
    assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Discovered, Some("held")));
    assert_eq!(sim.call("a", ChildRequest::Release), "started 2");
}

#[test]
fn a_release_reports_the_requirement_that_the_child_waits_for() {
    let mut sim = Simulation::running(rules(), [fake("db"), fake("api").requires("db")]);
    for name in ["api", "db"] {
        sim.call(name, ChildRequest::Hold);
        sim.fail(name);
        sim.advance(secs(1));
    }
    assert_eq!(sim.call("api", ChildRequest::Release), "gated");
    assert_eq!(sim.why("api"), Some("waits for a requirement"));
    assert_eq!(sim.call("db", ChildRequest::Release), "started 2");
    assert_eq!(sim.alive(), "db#2 api#2");
}

#[test]
fn a_reset_begins_the_window_and_the_backoff_again() {
    let intensity = Some(Intensity::sliding(2, secs(60)));
    let growing = Backoff::exponential(secs(1), secs(8)).jitter(Jitter::None);
    let mut sim = Simulation::running(Rules { intensity, ..rules() }, [fake("a").backoff(growing)]);
    for round in 0..3 {
        for wait in [1, 2] {
            sim.fail("a");
            assert_eq!(sim.until_idle(secs(99)), Some(secs(wait)), "round {round}");
        }
        assert_eq!(sim.call("a", ChildRequest::Reset), "done");
    }
    assert_eq!(sim.alive(), "a#7");
}

#[test]
fn a_caller_that_waits_for_the_start_is_answered_once_the_child_is_held() {
    let db = fake("db").backoff(Backoff::constant(secs(9)));
    let mut sim = Simulation::running(rules(), [db, fake("api").requires("db")]);
    sim.call("api", ChildRequest::Terminate);
    sim.fail("db");
    let ticket = sim.request("api", ChildRequest::RESTART_CHILD);
    sim.settle();
    assert_eq!(sim.answer(ticket), "-", "its requirement is about to be met");
    sim.call("api", ChildRequest::Hold);
    assert_eq!(sim.answer(ticket), "gated");
    sim.advance(secs(99));
    assert_eq!(sim.alive(), "db#2");
}
