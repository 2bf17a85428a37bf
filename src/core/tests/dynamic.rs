//! What follows when children of a dynamic supervisor start, fail and stop.

use std::time::Duration;

use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildAnswer, ChildRequest, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExhausted, OnLeak, Rules, Shutdown};

fn waiting() -> Rules {
    Rules { backoff: Backoff::constant(ms(200)), ..rules() }
}

fn running(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
    Simulation::dynamic(rules, fakes)
}

fn many(count: usize) -> impl Iterator<Item = FakeChild> {
    (0..count).map(|number| fake(&number.to_string()))
}

#[test]
fn it_is_up_at_once_and_starts_children_when_they_are_added() {
    let mut sim = running(rules(), []);
    assert!(sim.is_up());
    let ticket = sim.add(fake("a").signals(secs(1)));
    let second = sim.add(fake("b"));
    assert_eq!((sim.answer(ticket), sim.answer(second)), ("-", "started 1"));
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "started 1");
}

#[test]
fn a_failed_first_start_goes_to_the_caller_and_the_child_is_forgotten() {
    let mut sim = running(waiting(), []);
    let signals = || fake("a").signals(Duration::ZERO);
    for (script, answer) in [
        (Script::Fail, "failed activation_failed"),
        (Script::Panic, "failed panicked"),
        (Script::Ignore, "ignored"),
    ] {
        let ticket = sim.add(signals().scripts([script]));
        sim.settle();
        assert_eq!(sim.answer(ticket), answer);
        assert_eq!(sim.acts(), "start a#1, removed a");
    }
}

#[test]
fn a_first_start_that_ends_well_before_it_is_ready_was_one() {
    let mut sim = running(waiting(), []);
    let ticket = sim.add(fake("a").transient().signals(None));
    sim.end("a");
    assert_eq!(sim.answer(ticket), "started 1");
    assert_eq!(sim.acts(), "start a#1, removed a");
}

#[test]
fn each_is_restarted_by_itself_or_forgotten() {
    let fakes = [fake("p"), fake("t").transient(), fake("x").temporary(), fake("u").transient()];
    let mut sim = running(waiting(), fakes);
    for name in ["p", "t", "x"] {
        sim.fail(name);
    }
    sim.end("u");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns removed x, 0ns removed u, 200ms start p#2, 200ms start t#2");
}

#[test]
fn a_child_that_declines_at_a_restart_is_removed() {
    let fakes = [fake("a").signals(ms(1)).scripts([Script::Run, Script::Run, Script::Ignore])];
    let mut sim = running(rules(), fakes);
    for _ in 0..2 {
        sim.advance(secs(1));
        sim.fail("a");
    }
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#2, start a#3, removed a");
    sim.stop();
    assert_eq!(sim.acts(), "finish stopped");
}

#[test]
fn a_start_that_fails_is_tried_again() {
    let mut sim = running(rules(), []);
    sim.add(fake("a").signals(Duration::ZERO).scripts([Script::Run, Script::Fail]));
    sim.settle();
    sim.skip();
    sim.fail("a");
    assert_eq!(sim.acts(), "start a#2, start a#3");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Active);
}

#[test]
fn beyond_the_intensity_it_ends() {
    let rules = Rules { intensity: at_most(1), ..rules() };
    let mut sim = running(rules, [fake("a"), fake("b"), fake("c")]);
    sim.fail("a");
    sim.fail("b");
    assert_eq!(
        sim.acts(),
        "start a#2, gave up b, removed b, cancel c, cancel a, removed c, removed a, \
         finish escalated b: failed"
    );
}

#[test]
fn or_parks_the_child() {
    let rules = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..waiting() };
    let mut sim = running(rules, [fake("a"), fake("b")]);
    sim.fail("a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Errored);
    assert_eq!(sim.call("a", ChildRequest::RESUME), "started 2");
    sim.fail("a");
    sim.stop();
    assert_eq!(
        sim.acts(),
        "gave up a, start a#2, gave up a, cancel b, removed a, removed b, finish stopped"
    );
}

#[test]
fn there_are_no_more_children_than_there_may_be() {
    let rules = Rules { max_children: Some(1), ..waiting() };
    let mut sim = running(rules, []);
    let admits = |sim: &Simulation| match sim.machine.admits() {
        Ok(()) => "yes".to_owned(),
        Err(ChildAnswer::MaxChildren(max)) => format!("max {max}"),
        Err(other) => format!("{other:?}"),
    };
    assert_eq!(admits(&sim), "yes");
    sim.add(fake("a").temporary());
    assert_eq!(admits(&sim), "max 1");
    sim.end("a");
    sim.add(fake("b"));
    sim.fail("b");
    assert_eq!(admits(&sim), "max 1", "a child that waits for its restart counts");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    assert_eq!(admits(&sim), "yes");
    sim.stop();
    assert_eq!(admits(&sim), "ShuttingDown");
}

#[test]
fn a_terminated_child_is_gone() {
    let mut sim = running(rules(), [fake("a").stops(secs(1))]);
    let first = sim.request("a", ChildRequest::Terminate);
    let second = sim.request("a", ChildRequest::Terminate);
    sim.advance(secs(1));
    assert_eq!((sim.answer(first), sim.answer(second)), ("done", "done"));
    assert_eq!(sim.call("a", ChildRequest::Terminate), "not found");
}

#[test]
fn all_stop_at_once_each_within_its_grace() {
    let fakes = [
        fake("a").stops(secs(1)).shutdown(secs(2)),
        fake("b").stops(None).shutdown(secs(2)),
        fake("c").leaks().shutdown(secs(3)),
        fake("d").stops(secs(7)).shutdown(Shutdown::Infinity),
        fake("e").stops(secs(1)).shutdown(Shutdown::BrutalKill),
        fake("f").stops(None).shutdown(Duration::ZERO),
    ];
    let mut sim = running(rules(), fakes);
    sim.stop();
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel f, 0ns abort e, 0ns cancel d, 0ns cancel c, 0ns cancel b, 0ns cancel a, \
         0ns removed e, 0ns abort f, 0ns removed f, 1s removed a, 2s abort b, 2s removed b, \
         3s abort c, 4s leaked c#1, 4s removed c, 7s removed d, 7s finish stopped"
    );
}

#[test]
fn there_is_one_timer_for_each_distinct_grace() {
    let fakes = many(300).map(|fake| fake.stops(None).shutdown(secs(2)));
    let mut sim = running(rules(), fakes);
    sim.event(MachineEvent::Stop { within: None });
    let timers = |sim: &Simulation| sim.machine.children().timers.len();
    sim.settle();
    assert_eq!(timers(&sim), 1);
    sim.advance(secs(60));
    assert!(sim.timed().ends_with("2s finish stopped"));
}

#[test]
fn the_stop_has_a_deadline_if_configured() {
    let fakes = [fake("a").stops(None), fake("b").stops(None).shutdown(Shutdown::Infinity)];
    let mut sim = running(rules(), fakes);
    sim.event(MachineEvent::Stop { within: Some(secs(1)) });
    sim.event(MachineEvent::Stop { within: Some(secs(9)) });
    sim.advance(secs(60));
    assert_eq!(
        sim.timed(),
        "0ns cancel b, 0ns cancel a, 1s abort b, 1s abort a, 1s removed b, 1s removed a, \
         1s finish stopped"
    );
}

#[test]
fn a_stop_of_many_takes_few_at_a_time_and_is_not_repeated_for_each_slice() {
    let count = 12 * SLICE;
    let fakes = many(count).map(|fake| fake.stops(None).dies(ms(1)).shutdown(Duration::ZERO));
    let mut sim = running(rules(), fakes);
    sim.stop();
    sim.advance(secs(1));
    assert!(sim.finished());
    // One walk to cancel them, and one or two to abort them.
    assert!(sim.ticks() < 4 * count / SLICE, "{} ticks", sim.ticks());
}

#[test]
fn a_backoff_that_ends_while_the_supervisor_stops_starts_no_child() {
    let mut sim = running(waiting(), many(3 * SLICE).map(|fake| fake.stops(secs(1))));
    sim.fail("0");
    sim.advance(ms(199));
    // It is due at the same instant as the last slice.
    sim.now += ms(1);
    sim.event(MachineEvent::Stop { within: None });
    sim.advance(secs(1));
    assert!(sim.finished());
    assert!(sim.story("0").ends_with("restarting → stopped"));
}

#[test]
fn a_child_that_fails_before_it_is_cancelled_in_a_stop_is_not_restarted() {
    let mut sim = running(rules(), many(3 * SLICE).map(|fake| fake.stops(secs(1))));
    sim.event(MachineEvent::Stop { within: None });
    sim.fail("0");
    sim.advance(secs(1));
    assert!(sim.timed().ends_with("1s finish stopped"));
}

#[test]
fn a_leaked_child_is_parked_unless_it_was_to_go() {
    let leaks = || fake("a").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    let mut sim = running(rules(), [leaks()]);
    sim.call("a", ChildRequest::Kill);
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns abort a, 1s leaked a#1");
    assert_eq!(sim.why("a"), Some("leaked"));

    let mut sim = running(rules(), [leaks()]);
    sim.call("a", ChildRequest::Terminate);
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns abort a, 1s leaked a#1, 1s removed a");
}

#[test]
fn a_caller_that_waits_for_the_restart_of_a_leaked_child_is_answered_that_it_is_down() {
    let leaks = fake("a").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    let mut sim = running(rules(), [leaks]);
    let ticket = sim.request("a", ChildRequest::RESTART);
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns abort a, 1s leaked a#1");
    assert_eq!(sim.answer(ticket), "stopped");
}

#[test]
fn how_each_ends_meanwhile_does_not_matter() {
    let fakes = ["a", "b", "c", "d"].map(|name| fake(name).stops(None));
    let mut sim = running(Rules { intensity: at_most(0), ..rules() }, fakes);
    sim.stop();
    let reasons = [
        ExitReason::Normal,
        ExitReason::Shutdown,
        ExitReason::Hung(Duration::from_secs(30)),
        ExitReason::Aborted,
    ];
    for (name, reason) in ["a", "b", "c", "d"].into_iter().zip(reasons) {
        sim.exit(name, reason);
    }
    assert!(sim.acts().ends_with("removed a, removed b, removed c, removed d, finish stopped"));
}

#[test]
fn abort_all_aborts_all() {
    let mut sim = running(rules(), many(3 * SLICE).map(|fake| fake.leaks()));
    sim.event(MachineEvent::AbortAll);
    sim.event(MachineEvent::AbortAll);
    sim.advance(secs(1));
    assert!(sim.timed().ends_with("1s finish aborted"));
}
