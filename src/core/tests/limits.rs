//! What follows when a child has failed too often, and when one says that the program is to end.

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, OnExhausted, Rules, Strategy};

fn none(on_exhausted: OnExhausted) -> Rules {
    Rules { intensity: at_most(0), on_exhausted, ..rules() }
}

fn group(rules: Rules) -> Rules {
    Rules { strategy: Strategy::OneForAll, ..rules }
}

fn exit() -> ExitReason {
    Play::Exit.reason()
}

#[test]
fn who_says_that_the_program_ends_is_heard_however_it_ended() {
    let slow = || [kid("a"), kid("b").stops(secs(9)), kid("c")];
    let end = "cancel c, cancel a, finish exit 3 b: exit";

    let mut world = World::running(rules(), slow());
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), end, "by itself");

    let mut world = World::running(rules(), slow());
    world.ask("b", ChildRequest::Terminate);
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), format!("cancel b, {end}"), "while it is stopped by hand");

    let mut world = World::running(rules(), slow());
    let ticket = world.ask("b", ChildRequest::RestartRunning);
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), format!("cancel b, {end}"), "before it is started again");
    assert_eq!(world.answer(ticket), "stopped");

    let mut world = World::running(group(rules()), slow());
    world.fail("a");
    world.exit("b", exit());
    world.settle();
    assert_eq!(
        world.acts(),
        "cancel c, cancel b, finish exit 3 b: exit",
        "while its group is being stopped"
    );

    let kids = [kid("a"), kid("b"), kid("c").stops(secs(1))];
    let mut world = World::running(group(rules()), kids);
    world.fail("a");
    world.exit("b", exit());
    world.advance(secs(1));
    assert_eq!(
        world.timed(),
        "0ns cancel c, 1s finish exit 3 b: exit",
        "before its group has come to it"
    );

    let b = kid("b").signals(None).stops(secs(9)).activation_timeout(secs(1));
    let mut world = World::ordered(rules(), [b]);
    world.advance(secs(1));
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), "start b#1, cancel b, finish exit 3 b: exit", "after it had failed");
}

#[test]
fn what_has_begun_to_end_ends_as_it_began() {
    let mut world = World::running(rules(), [kid("a"), kid("b").stops(secs(9))]);
    world.stop();
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), "cancel b, cancel a, finish stopped");

    let mut world = World::dynamic(rules(), [kid("a"), kid("b").stops(secs(9))]);
    world.stop();
    world.exit("b", exit());
    world.settle();
    assert_eq!(world.acts(), "cancel b, cancel a, removed a, removed b, finish stopped");
}

#[test]
fn equal_children_end_the_program_too() {
    for asked in [false, true] {
        let kids = [kid("a"), kid("b").temporary().stops(secs(9))];
        let mut world = World::dynamic(rules(), kids);
        if asked {
            world.ask("b", ChildRequest::Terminate);
            assert_eq!(world.acts(), "cancel b");
        }
        world.exit("b", exit());
        world.settle();
        assert_eq!(world.acts(), "removed b, cancel a, removed a, finish exit 3 b: exit");
    }
    let mut world = World::dynamic(none(OnExhausted::Exit(7)), [kid("a"), kid("b")]);
    world.fail("a");
    assert!(world.acts().ends_with("finish exit 7 a: failed"));
}

#[test]
fn an_exit_costs_nothing_and_has_no_fallback() {
    let a = kid("a").consecutive(0).fallback(kid("x")).on_exhausted(OnExhausted::Park);
    let mut world = World::running(none(OnExhausted::Park), [a]);
    world.exit("a", exit());
    world.settle();
    assert_eq!(world.acts(), "finish exit 3 a: exit");
}

#[test]
fn a_pause_merges_with_what_fails_in_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..none(OnExhausted::Pause(secs(2))) };
    let rules = Rules { backoff: Backoff::constant(secs(3)), ..rules };
    let mut world = World::running(rules, [kid("a"), kid("b"), kid("c")]);
    world.fail("b");
    world.advance(secs(1));
    world.fail("a");
    world.advance(secs(9));
    assert_eq!(
        world.timed(),
        "0ns pause b, 0ns cancel c, 4s start a#2, 4s start b#2, 4s start c#2",
        "its own wait is longer than the rest of the pause"
    );
}

#[test]
fn a_pause_is_over_at_its_end_and_not_after() {
    let rules = Rules { intensity: at_most(1), ..none(OnExhausted::Pause(secs(1))) };
    let mut world = World::running(rules, [kid("a"), kid("b")]);
    world.fail("a");
    world.fail("a");
    world.advance(ms(999));
    assert_eq!(world.acts(), "start a#2, pause a");
    world.now += ms(1);
    world.fail("b");
    assert_eq!(world.acts(), "start b#2, start a#3", "b is restarted at once, and counted");
    world.fail("a");
    assert_eq!(world.acts(), "pause a");
}

#[test]
fn whoever_is_killed_after_a_long_grace_has_paused_since_it_failed() {
    let a = kid("a").signals(None).stops(None).shutdown(secs(2)).activation_timeout(secs(1));
    let mut world = World::ordered(none(OnExhausted::Pause(secs(3))), [a]);
    world.advance(secs(5));
    assert_eq!(
        world.timed(),
        "0ns start a#1, 1s cancel a, 3s abort a, 3s pause a, 4s start a#2, 5s cancel a"
    );
}

#[test]
fn a_fallback_takes_over_where_the_child_was() {
    let b = kid("b").intensity(Intensity::sliding(1, secs(1)));
    let b = b.fallback(kid("x").consecutive(1).on_exhausted(OnExhausted::StopChild));
    let mut world = World::running(group(rules()), [kid("a"), b, kid("c")]);
    world.fail("b");
    world.skip();
    world.fail("b");
    assert_eq!(world.acts(), "replaced b, cancel c, cancel a, start a#3, start b#3, start c#3");
    assert_eq!(world.why("b"), Some("fallback"));
    world.fail("b");
    world.skip();
    world.fail("b");
    assert_eq!(world.acts(), "gave up b, cancel c, cancel a");
    assert_eq!((world.lifecycle("b"), world.why("b")), (Lifecycle::Stopped, Some("given up")));
    assert_eq!(world.call("b", ChildRequest::Retry), "started 5");
    assert_eq!(world.alive(), "a#5 b#5 c#5");
}

#[test]
fn a_fallback_forgets_the_failures_of_the_child() {
    let wait = || Backoff::exponential(secs(1), secs(8));
    let a = kid("a").backoff(wait()).consecutive(2).fallback(kid("x").backoff(wait()));
    let mut world = World::running(rules(), [a]);
    for _ in 0..4 {
        world.fail("a");
        world.advance(secs(2));
    }
    assert_eq!(
        world.timed(),
        "1s start a#2, 4s start a#3, 4s replaced a, 4s start a#4, 7s start a#5",
        "it waits the first wait again"
    );
}

#[test]
fn a_temporary_fallback_is_started_once() {
    let with =
        |kid: Kid| kid.consecutive(0).fallback(super::super::simulator::kid("x").temporary());
    for rules in [rules(), group(rules())] {
        let mut world = World::running(rules, [kid("a"), with(kid("b"))]);
        world.fail("b");
        world.skip();
        world.fail("b");
        assert_eq!(world.acts(), "removed b");
    }
}

#[test]
fn a_supervisor_that_stops_ends_a_pause() {
    let mut world = World::running(none(OnExhausted::Pause(secs(9))), [kid("a")]);
    world.fail("a");
    world.event(MachineEvent::Stop { within: None });
    world.settle();
    assert_eq!(world.timed(), "0ns pause a, 0ns finish stopped");
}

#[test]
fn only_a_fallback_is_shown_as_one() {
    let mut world = World::named(rules(), "a b");
    assert_eq!(world.why("a"), None);
    world.fail("a");
    assert_eq!(world.why("a"), None, "nor is one that was restarted");
}
