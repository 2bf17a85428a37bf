//! Children with a delayed delivery, and acknowledgements that reset a backoff.

use std::time::Duration;

use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, Jitter, OnExhausted, Reset, Rules, StartCause, Strategy};

/// A delay of a second before the first restart, doubled before each further one.
fn doubling() -> Rules {
    Rules { backoff: Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None), ..rules() }
}

fn busy(name: &str) -> FakeChild {
    fake(name).delays_delivery()
}

fn acked(sim: &mut Simulation, name: &str) {
    sim.child_event(name, |key, incarnation| MachineEvent::Acked { key, incarnation });
    sim.settle();
}

#[test]
fn seed2_16_the_child_starts_at_the_crash_and_its_messages_are_held_for_the_delay() {
    fn check(mut sim: Simulation) {
        sim.advance(secs(7));
        sim.fail("a");
        assert_eq!(sim.timed(), "7s hold a 1s, 7s start a#2");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Active);
        let story = "active → errored (failed) → resolved → activating → active";
        assert_eq!(sim.story("a"), story, "as without a delay");
        // After the end of that delay it is the same again.
        sim.advance(secs(4));
        sim.fail("a");
        assert_eq!(sim.timed(), "11s hold a 2s, 11s start a#3");
        assert_eq!(sim.causes(), "");
    }
    check(Simulation::running(doubling(), [busy("a")]));
    check(Simulation::dynamic(doubling(), [busy("a")]));
}

#[test]
fn a_child_that_fails_while_its_messages_are_held_waits_for_their_delivery() {
    fn check(mut sim: Simulation) {
        sim.fail("a");
        sim.advance(ms(400));
        sim.fail("a");
        assert_eq!(sim.timed(), "0ns hold a 1s, 0ns start a#2");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
        let history = sim.machine.view(sim.key("a"), sim.now).and_then(|it| it.history);
        assert_eq!(history.and_then(|it| it.next).map(|(_, wait)| wait), Some(ms(600)));
        // From then on its messages are held for the delay that was drawn.
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "1s hold a 2s, 1s start a#3");
        // At its exact end, the hold is over.
        sim.advance(secs(3) - ms(1400));
        sim.fail("a");
        assert_eq!(sim.timed(), "3s hold a 4s, 3s start a#4");
    }
    check(Simulation::running(doubling(), [busy("a")]));
    check(Simulation::dynamic(doubling(), [busy("a")]));
}

#[test]
fn a_child_that_always_fails_is_started_once_per_delay_even_without_a_limit() {
    fn check(mut sim: Simulation) {
        sim.fail("a");
        sim.advance(secs(64));
        let timed = sim.timed();
        let starts: Vec<_> = timed.split(", ").filter(|act| act.contains("start")).collect();
        assert_eq!(
            starts,
            [
                "0ns start a#2",
                "1s start a#3",
                "3s start a#4",
                "7s start a#5",
                "15s start a#6",
                "31s start a#7",
                "63s start a#8",
            ]
        );
    }
    let dead = || busy("a").scripts([Script::Run]).scripts([Script::Fail; 100]);
    check(Simulation::running(doubling(), [dead()]));
    check(Simulation::dynamic(doubling(), [dead()]));
}

#[test]
fn without_a_wait_there_is_nothing_to_hold() {
    let mut sim = Simulation::running(rules(), [busy("a")]);
    sim.fail("a");
    sim.fail("a");
    assert_eq!(sim.timed(), "0ns start a#2, 0ns start a#3");

    // A delay of zero does not shorten the one before.
    let mut sim = Simulation::running(doubling(), [busy("a").retry_after(Duration::ZERO)]);
    sim.fail("a");
    sim.exit("a", Script::Busy.reason());
    sim.settle();
    sim.advance(secs(4));
    assert_eq!(sim.timed(), "0ns hold a 1s, 0ns start a#2, 1s start a#3");
}

#[test]
fn a_group_waits_as_ever() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let rules = Rules { strategy, ..doubling() };
        let mut sim = Simulation::running(rules, [fake("a"), busy("b")]);
        sim.fail("b");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Restarting);
        sim.advance(secs(1));
        let timed = sim.timed();
        assert!(timed.ends_with("1s start b#2") && !timed.contains("hold"), "{timed}");
    }
}

#[test]
fn a_call_that_ends_the_wait_delivers_the_held_messages() {
    fn check(mut sim: Simulation) {
        sim.fail("a");
        sim.fail("a");
        assert_eq!(sim.call("a", ChildRequest::RESUME), "started 3");
        assert_eq!(sim.timed(), "0ns hold a 1s, 0ns start a#2, 0ns start a#3");
        sim.fail("a");
        assert_eq!(sim.timed(), "0ns hold a 4s, 0ns start a#4");
        assert_eq!(sim.call("a", ChildRequest::RESTART), "started 5");
        assert_eq!(sim.timed(), "0ns cancel a, 0ns start a#5");
    }
    check(Simulation::running(doubling(), [busy("a")]));
    check(Simulation::dynamic(doubling(), [busy("a")]));
}

#[test]
fn seed2_24_a_limit_counts_restarts_with_a_delayed_delivery() {
    fn check(mut sim: Simulation) {
        sim.fail("a");
        sim.advance(secs(1));
        sim.fail("a");
        sim.advance(secs(2));
        assert_eq!(sim.machine.intensity(sim.now).0, 2);
        sim.fail("a");
        assert!(sim.timed().contains("3s gave up a"));
        assert!(sim.finished());
    }
    let rules = Rules { intensity: at_most(2), ..doubling() };
    check(Simulation::running(rules.clone(), [busy("a")]));
    check(Simulation::dynamic(rules, [busy("a")]));
}

#[test]
fn a_start_that_fails_while_messages_wait_costs_nothing_as_if_the_child_had_waited() {
    fn check(mut sim: Simulation) {
        for _ in 0..4 {
            sim.advance(secs(64));
        }
        assert_eq!(sim.machine.intensity(sim.now).0, 0);
        assert!(!sim.finished());
    }
    let rules = Rules { intensity: at_most(1), ..doubling() };
    let sick = || busy("a").signals(ms(1)).scripts([Script::Fail; 100]);
    let mut sim = Simulation::ordered(rules.clone(), [sick()]);
    sim.settle();
    check(sim);
    check(Simulation::running(rules, [busy("a").consecutive(9)]));
}

#[test]
fn a_pause_is_waited_out_as_ever() {
    fn check(mut sim: Simulation) {
        sim.fail("a");
        sim.fail("a");
        sim.advance(secs(10));
        assert_eq!(sim.timed(), "0ns hold a 1s, 0ns start a#2, 0ns pause a, 10s start a#3");
    }
    let once = || busy("a").intensity(Intensity::sliding(1, secs(60)));
    let pause = OnExhausted::Pause(secs(10));
    check(Simulation::running(doubling(), [once().on_exhausted(pause)]));
    let rules = Rules { on_exhausted: pause, intensity: at_most(1), ..doubling() };
    check(Simulation::dynamic(rules, [busy("a")]));
}

#[test]
fn a_pause_ends_what_was_held() {
    let once = busy("a").intensity(Intensity::sliding(1, secs(60)));
    let pause = OnExhausted::Pause(ms(500));
    let mut sim = Simulation::running(doubling(), [once.on_exhausted(pause)]);
    sim.fail("a");
    sim.fail("a");
    sim.advance(secs(2));
    assert_eq!(sim.timed(), "0ns hold a 1s, 0ns start a#2, 0ns pause a, 500ms start a#3");

    // So does a pause of the supervisor.
    let rules = Rules { on_exhausted: pause, intensity: at_most(1), ..doubling() };
    let mut sim = Simulation::running(rules, [busy("a").retry_after(Duration::ZERO), fake("b")]);
    sim.fail("a");
    sim.fail("b");
    sim.exit("a", Script::Busy.reason());
    sim.advance(secs(2));
    assert_eq!(
        sim.timed(),
        "0ns hold a 1s, 0ns start a#2, 0ns pause b, 500ms start a#3, 500ms start b#2"
    );
}

#[test]
fn a_gated_child_holds_its_messages_for_the_rest_of_the_delay() {
    let fakes = [fake("db").transient().backoff(Backoff::constant(secs(3))), busy("api")];
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..rules() };
    let mut sim = Simulation::running(
        rules,
        fakes.map(|it| if it.name() == "api" { it.requires("db") } else { it }),
    );
    sim.crash("db");
    sim.fail("api");
    assert_eq!(sim.why("api"), Some("waits for a requirement"));
    sim.advance(secs(3));
    assert_eq!(sim.timed(), "3s start db#2, 3s hold api 2s, 3s start api#2");
}

#[test]
fn an_acknowledgement_begins_the_backoff_anew_if_that_is_its_rule() {
    fn waits(mut sim: Simulation) -> Vec<u64> {
        let waits = [false, true, false].map(|acks| {
            if acks {
                acked(&mut sim, "a");
            }
            sim.crash("a");
            let view = sim.machine.view(sim.key("a"), sim.now);
            let (_, wait) = view.and_then(|view| view.history?.next).expect("a wait");
            sim.advance(wait);
            wait.as_secs()
        });
        waits.into()
    }
    let plain = doubling();
    let rules = Rules { backoff: plain.backoff.clone().reset(Reset::OnAck), ..plain.clone() };
    assert_eq!(waits(Simulation::running(rules.clone(), [fake("a")])), [1, 1, 2]);
    assert_eq!(waits(Simulation::dynamic(rules, [fake("a")])), [1, 1, 2]);
    assert_eq!(waits(Simulation::running(plain, [fake("a")])), [1, 2, 4], "it is not");
}

#[test]
fn a_restart_has_the_same_cause_whether_callers_wait_or_not() {
    let mut sim = Simulation::running(doubling(), [busy("a")]);
    sim.fail("a");
    assert_eq!(sim.causes(), format!("a#2 {}", StartCause::Restart));
}
