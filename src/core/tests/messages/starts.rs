//! Which messages start a child.

use super::{group, not_restarted, on_message, returns, send};
use crate::core::verify::simulation::{Script, Simulation, at_most, fake, ms, rules, secs};
use crate::core::{ChildRequest, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Jitter, OnExhausted, OnLeak, Rules, Start, StartCause, Strategy};

#[test]
fn a_message_starts_a_child_once_that_did_not_start_with_its_supervisor() {
    fn check(mut sim: Simulation) {
        assert_eq!(sim.alive(), "");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Discovered);
        assert_eq!(sim.why("a"), Some("waits for a message"));
        assert!(returns(&sim, "a"));
        for _ in 0..3 {
            send(&mut sim, "a");
        }
        assert_eq!(sim.causes(), "a#1 on_message");
        assert_eq!(sim.why("a"), None);
        assert_eq!(sim.story("a"), "discovered → resolved → activating → active");
    }
    check(Simulation::running(rules(), [on_message("a")]));
    check(Simulation::dynamic(rules(), [on_message("a")]));
}

#[test]
fn kin_77_a_child_sees_that_it_was_started_for_the_first_time_by_a_message_or_again() {
    let mut sim = Simulation::ordered(rules(), [fake("mounted"), fake("lazy").on_message()]);
    sim.settle();
    sim.fail("mounted");
    sim.send("lazy");
    sim.fail("lazy");
    assert_eq!(
        sim.causes(),
        "mounted#1 initial, mounted#2 restart, lazy#1 on_message, lazy#2 restart"
    );
}

#[test]
fn seed4_30_every_cause_of_a_start_has_a_word() {
    let rules = group(Strategy::OneForAll);
    let mut sim = Simulation::ordered(rules, [fake("a"), fake("b"), on_message("c")]);
    sim.settle();
    sim.send("c");
    sim.fail("a");
    sim.call("b", ChildRequest::Terminate);
    sim.call("b", ChildRequest::RESTART_CHILD);
    assert_eq!(
        sim.causes(),
        "a#1 initial, b#1 initial, c#1 on_message, a#2 restart, b#2 group, c#2 group, b#3 manual"
    );
    let words = StartCause::ALL.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words, ["initial", "manual", "restart", "group", "on_message", "lease"]);
}

#[test]
fn kin_75_a_message_starts_a_child_again_that_has_ended_and_is_never_restarted() {
    fn check(mut sim: Simulation) {
        send(&mut sim, "a");
        sim.end("a");
        assert_eq!((sim.alive(), sim.why("a")), (String::new(), Some("finished")));
        assert!(returns(&sim, "a"));
        send(&mut sim, "a");
        sim.fail("a");
        assert_eq!((sim.alive(), sim.why("a")), (String::new(), Some("not restarted")));
        assert_eq!(sim.lifecycle("a"), Lifecycle::Errored);
        assert!(returns(&sim, "a"));
        send(&mut sim, "a");
        assert_eq!(sim.causes(), "a#1 on_message, a#2 on_message, a#3 on_message");
    }
    // The limit allows no restart, and a start by a message is none.
    let none = Rules { intensity: at_most(0), ..rules() };
    check(Simulation::running(none.clone(), [not_restarted("a")]));
    check(Simulation::dynamic(none, [not_restarted("a")]));
}

#[test]
fn kin_74_a_child_started_by_a_message_is_restarted_after_each_doubled_delay() {
    fn check(mut sim: Simulation) {
        send(&mut sim, "a");
        for wait in [5, 10, 20, 30, 30] {
            sim.fail("a");
            // No message makes its restart come sooner.
            send(&mut sim, "a");
            sim.advance(secs(wait) - ms(1));
            assert_eq!(sim.alive(), "");
            sim.advance(ms(1));
            assert_ne!(sim.alive(), "", "after {wait} s");
        }
        assert!(sim.causes().starts_with("a#1 on_message, a#2 restart, a#3 restart"));
        assert_eq!(sim.alive(), "a#6");
    }
    let rules =
        Rules { backoff: Backoff::exponential(secs(5), secs(30)).jitter(Jitter::None), ..rules() };
    check(Simulation::running(rules.clone(), [fake("a").on_message()]));
    check(Simulation::dynamic(rules, [fake("a").on_message()]));
}

#[test]
fn a_message_that_comes_while_the_child_runs_starts_it_when_it_has_ended_by_itself() {
    fn check(mut sim: Simulation) {
        send(&mut sim, "a");
        send(&mut sim, "a");
        assert_eq!(sim.causes(), "a#1 on_message");
        sim.end("a");
        assert_eq!(sim.causes(), "a#2 on_message");
        sim.end("a");
        assert_eq!(sim.causes(), "", "the message was handled by that start");
        assert_eq!(sim.why("a"), Some("finished"));
    }
    check(Simulation::running(rules(), [on_message("a")]));
    check(Simulation::dynamic(rules(), [on_message("a")]));
}

#[test]
fn a_message_starts_no_child_that_was_terminated_declined_or_given_up() {
    let park = Rules { on_exhausted: OnExhausted::Park, intensity: at_most(0), ..rules() };
    let fakes = [
        on_message("fresh"),
        on_message("stopped"),
        on_message("declined").scripts([Script::Ignore]),
        on_message("parked").scripts([Script::Fail]),
        on_message("leaky").on_leak(OnLeak::Park).leaks().shutdown(secs(1)),
        fake("plain").transient(),
    ];
    let mut sim = Simulation::running(park, fakes);
    for name in ["stopped", "declined", "parked", "leaky"] {
        send(&mut sim, name);
    }
    for name in ["fresh", "stopped", "leaky"] {
        sim.request(name, ChildRequest::Terminate);
    }
    sim.end("plain");
    sim.advance(secs(3));
    sim.skip();
    for name in ["fresh", "stopped", "declined", "parked", "leaky", "plain"] {
        assert!(!returns(&sim, name), "{name}");
        send(&mut sim, name);
    }
    assert_eq!(sim.causes(), "");
    let why = ["fresh", "stopped", "declined", "parked", "leaky", "plain"].map(|it| sim.why(it));
    let manually = Some("stopped manually");
    assert_eq!(
        why,
        [
            manually,
            manually,
            Some("declined to start"),
            Some("given up"),
            Some("leaked"),
            Some("finished")
        ]
    );
}

#[test]
fn a_message_that_came_before_the_child_was_stopped_does_not_start_it_later() {
    let mut sim = Simulation::running(rules(), [on_message("a")]);
    send(&mut sim, "a");
    send(&mut sim, "a");
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 2");
    sim.end("a");
    assert_eq!(sim.causes(), "a#1 on_message, a#2 manual");
}

#[test]
fn a_supervisor_that_ends_starts_no_child_for_a_message() {
    fn check(mut sim: Simulation) {
        sim.stop();
        send(&mut sim, "a");
        sim.advance(secs(1));
        assert_eq!(sim.causes(), "");
        assert!(sim.finished());
    }
    check(Simulation::running(rules(), [on_message("a"), fake("b").stops(secs(1))]));
    check(Simulation::dynamic(rules(), [on_message("a"), fake("b").stops(secs(1))]));
    // A walk over this many takes several events.
    let mut sim =
        Simulation::dynamic(rules(), (0..200).map(|number| on_message(&number.to_string())));
    sim.event(MachineEvent::Stop { within: None });
    sim.send("0");
    sim.settle();
    assert_eq!(sim.causes(), "");
}

#[test]
fn the_first_start_passes_children_that_wait_for_a_message() {
    for start in [Start::Sequential, Start::Concurrent] {
        let rules = Rules { start, ..rules() };
        let mut sim = Simulation::ordered(
            rules,
            [on_message("a"), fake("b").signals(secs(1)), on_message("c")],
        );
        sim.settle();
        // The messages arrive before the first start reaches one child and after it has passed the other.
        sim.send("c");
        sim.send("a");
        sim.advance(secs(1));
        assert!(sim.is_up());
        let alive = sim.alive();
        assert_eq!(alive, "a#1 b#1 c#1");
        let causes = sim.causes();
        assert!(causes.contains("c#1 on_message") && causes.contains("a#1 on_message"), "{causes}");
    }
}

#[test]
fn a_pending_message_before_the_first_start_waits_for_the_start_order() {
    let mut sim =
        Simulation::ordered(rules(), [fake("a").signals(secs(1)), on_message("b"), fake("c")]);
    sim.settle();
    sim.send("b");
    sim.advance(secs(2));
    let timed = "0ns start a#1, 1s start b#1, 1s start c#1, 1s up";
    assert_eq!(sim.timed(), timed);
}

#[test]
fn a_child_with_a_pending_message_is_gated_by_its_requirements() {
    let mut sim =
        Simulation::running(rules(), [on_message("db"), on_message("api").requires("db")]);
    send(&mut sim, "api");
    assert_eq!(sim.causes(), "");
    assert_eq!(sim.why("api"), Some("waits for a requirement"));
    assert!(returns(&sim, "api"));
    send(&mut sim, "db");
    assert_eq!(sim.causes(), "db#1 on_message, api#1 on_message");
}
