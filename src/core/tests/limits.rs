//! What follows when a restart limit is exceeded, and when a child ends the program.

use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, Jitter, OnExhausted, Rules, Strategy};

fn none(on_exhausted: OnExhausted) -> Rules {
    Rules { intensity: at_most(0), on_exhausted, ..rules() }
}

fn group(rules: Rules) -> Rules {
    Rules { strategy: Strategy::OneForAll, ..rules }
}

fn exit() -> ExitReason {
    Script::Exit.reason()
}

#[test]
fn a_child_ends_the_program_however_it_was_stopped() {
    let slow = || [fake("a"), fake("b").stops(secs(9)), fake("c")];
    let end = "cancel c, cancel a, finish exit 3 b: exit";

    let mut sim = Simulation::running(rules(), slow());
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), end, "while it runs");

    let mut sim = Simulation::running(rules(), slow());
    sim.request("b", ChildRequest::Terminate);
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), format!("cancel b, {end}"), "while a caller stops it");

    let mut sim = Simulation::running(rules(), slow());
    let ticket = sim.request("b", ChildRequest::RESTART);
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), format!("cancel b, {end}"), "before it is started again");
    assert_eq!(sim.answer(ticket), "stopped");

    let mut sim = Simulation::running(group(rules()), slow());
    sim.fail("a");
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(
        sim.acts(),
        "cancel c, cancel b, finish exit 3 b: exit",
        "while its group is being stopped"
    );

    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(group(rules()), fakes);
    sim.fail("a");
    sim.exit("b", exit());
    sim.advance(secs(1));
    assert_eq!(
        sim.timed(),
        "0ns cancel c, 1s finish exit 3 b: exit",
        "before its group operation reaches it"
    );

    let b = fake("b").signals(None).stops(secs(9)).activation_timeout(secs(1));
    let mut sim = Simulation::ordered(rules(), [b]);
    sim.advance(secs(1));
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), "start b#1, cancel b, finish exit 3 b: exit", "after it had failed");
}

#[test]
fn what_has_begun_to_end_ends_as_it_began() {
    let mut sim = Simulation::running(rules(), [fake("a"), fake("b").stops(secs(9))]);
    sim.stop();
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped");

    let mut sim = Simulation::dynamic(rules(), [fake("a"), fake("b").stops(secs(9))]);
    sim.stop();
    sim.exit("b", exit());
    sim.settle();
    assert_eq!(sim.acts(), "cancel b, cancel a, removed a, removed b, finish stopped");
}

#[test]
fn equal_children_end_the_program_too() {
    for is_terminated in [false, true] {
        let fakes = [fake("a"), fake("b").temporary().stops(secs(9))];
        let mut sim = Simulation::dynamic(rules(), fakes);
        if is_terminated {
            sim.request("b", ChildRequest::Terminate);
            assert_eq!(sim.acts(), "cancel b");
        }
        sim.exit("b", exit());
        sim.settle();
        assert_eq!(sim.acts(), "removed b, cancel a, removed a, finish exit 3 b: exit");
    }
    let mut sim = Simulation::dynamic(none(OnExhausted::Exit(7)), [fake("a"), fake("b")]);
    sim.fail("a");
    assert!(sim.acts().ends_with("finish exit 7 a: failed"));
}

#[test]
fn an_exit_costs_nothing_and_has_no_fallback() {
    let a = fake("a").consecutive(0).fallback(fake("x")).on_exhausted(OnExhausted::Park);
    let mut sim = Simulation::running(none(OnExhausted::Park), [a]);
    sim.exit("a", exit());
    sim.settle();
    assert_eq!(sim.acts(), "finish exit 3 a: exit");
}

#[test]
fn a_pause_merges_with_what_fails_in_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..none(OnExhausted::Pause(secs(2))) };
    let rules = Rules { backoff: Backoff::constant(secs(3)), ..rules };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b"), fake("c")]);
    sim.fail("b");
    sim.advance(secs(1));
    sim.fail("a");
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns pause b, 0ns cancel c, 4s start a#2, 4s start b#2, 4s start c#2",
        "its own delay is longer than the rest of the pause"
    );
}

#[test]
fn a_pause_is_over_at_its_end_and_not_after() {
    let rules = Rules { intensity: at_most(1), ..none(OnExhausted::Pause(secs(1))) };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b")]);
    sim.fail("a");
    sim.fail("a");
    sim.advance(ms(999));
    assert_eq!(sim.acts(), "start a#2, pause a");
    sim.now += ms(1);
    sim.fail("b");
    assert_eq!(sim.acts(), "start b#2, start a#3", "b is restarted at once, and counted");
    sim.fail("a");
    assert_eq!(sim.acts(), "pause a");
}

#[test]
fn the_pause_of_a_child_killed_after_its_grace_counts_from_the_failure() {
    let a = fake("a").signals(None).stops(None).shutdown(secs(2)).activation_timeout(secs(1));
    let mut sim = Simulation::ordered(none(OnExhausted::Pause(secs(3))), [a]);
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 1s cancel a, 3s abort a, 3s pause a, 4s start a#2, 5s cancel a"
    );
}

#[test]
fn a_fallback_takes_over_where_the_child_was() {
    let b = fake("b").intensity(Intensity::sliding(1, secs(1)));
    let b = b.fallback(fake("x").consecutive(1).on_exhausted(OnExhausted::StopChild));
    let mut sim = Simulation::running(group(rules()), [fake("a"), b, fake("c")]);
    sim.fail("b");
    sim.skip();
    sim.fail("b");
    assert_eq!(sim.acts(), "replaced b, cancel c, cancel a, start a#3, start b#3, start c#3");
    assert_eq!(sim.why("b"), Some("fallback"));
    sim.fail("b");
    sim.skip();
    sim.fail("b");
    assert_eq!(sim.acts(), "gave up b, cancel c, cancel a");
    assert_eq!((sim.lifecycle("b"), sim.why("b")), (Lifecycle::Stopped, Some("given up")));
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 5");
    assert_eq!(sim.alive(), "a#5 b#5 c#5");
}

#[test]
fn a_fallback_forgets_the_failures_of_the_child() {
    let wait = || Backoff::exponential(secs(1), secs(8)).jitter(Jitter::None);
    let a = fake("a").backoff(wait()).consecutive(2).fallback(fake("x").backoff(wait()));
    let mut sim = Simulation::running(rules(), [a]);
    for _ in 0..4 {
        sim.fail("a");
        sim.advance(secs(2));
    }
    assert_eq!(
        sim.timed(),
        "1s start a#2, 4s start a#3, 4s replaced a, 4s start a#4, 7s start a#5",
        "it waits for the first delay again"
    );
}

#[test]
fn a_temporary_fallback_is_started_once() {
    let with = |fake: FakeChild| {
        fake.consecutive(0).fallback(crate::core::verify::simulation::fake("x").temporary())
    };
    for rules in [rules(), group(rules())] {
        let mut sim = Simulation::running(rules, [fake("a"), with(fake("b"))]);
        sim.fail("b");
        sim.skip();
        sim.fail("b");
        assert_eq!(sim.acts(), "removed b");
    }
}

#[test]
fn a_supervisor_that_stops_ends_a_pause() {
    let mut sim = Simulation::running(none(OnExhausted::Pause(secs(9))), [fake("a")]);
    sim.fail("a");
    sim.event(MachineEvent::Stop { within: None });
    sim.settle();
    assert_eq!(sim.timed(), "0ns pause a, 0ns finish stopped");
}

#[test]
fn only_a_fallback_is_shown_as_one() {
    let mut sim = Simulation::named(rules(), "a b");
    assert_eq!(sim.why("a"), None);
    sim.fail("a");
    assert_eq!(sim.why("a"), None, "nor is a child that was restarted");
}
