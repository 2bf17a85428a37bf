//! What follows when children of a dynamic supervisor start, fail and stop.

use std::time::Duration;

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildAnswer, ChildRequest, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExhausted, OnLeak, Rules, Shutdown};

fn waiting() -> Rules {
    Rules { backoff: Backoff::constant(ms(200)), ..rules() }
}

fn running(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> World {
    World::dynamic(rules, kids)
}

fn many(count: usize) -> impl Iterator<Item = Kid> {
    (0..count).map(|number| kid(&number.to_string()))
}

#[test]
fn it_is_up_at_once_and_starts_children_when_they_are_added() {
    let mut world = running(rules(), []);
    assert!(world.is_up());
    let ticket = world.add(kid("a").signals(secs(1)));
    let second = world.add(kid("b"));
    assert_eq!((world.answer(ticket), world.answer(second)), ("-", "started 1"));
    world.advance(secs(1));
    assert_eq!(world.answer(ticket), "started 1");
}

#[test]
fn a_failed_first_start_goes_to_the_caller_and_the_child_is_forgotten() {
    let mut world = running(waiting(), []);
    let signals = || kid("a").signals(Duration::ZERO);
    for (play, answer) in [
        (Play::Fail, "failed activation_failed"),
        (Play::Panic, "failed panicked"),
        (Play::Ignore, "ignored"),
    ] {
        let ticket = world.add(signals().plays([play]));
        world.settle();
        assert_eq!(world.answer(ticket), answer);
        assert_eq!(world.acts(), "start a#1, removed a");
    }
}

#[test]
fn a_first_start_that_ends_well_before_it_is_ready_was_one() {
    let mut world = running(waiting(), []);
    let ticket = world.add(kid("a").transient().signals(None));
    world.end("a");
    assert_eq!(world.answer(ticket), "started 1");
    assert_eq!(world.acts(), "start a#1, removed a");
}

#[test]
fn each_is_restarted_by_itself_or_forgotten() {
    let kids = [kid("p"), kid("t").transient(), kid("x").temporary(), kid("u").transient()];
    let mut world = running(waiting(), kids);
    for name in ["p", "t", "x"] {
        world.fail(name);
    }
    world.end("u");
    world.advance(secs(1));
    assert_eq!(world.timed(), "0ns removed x, 0ns removed u, 200ms start p#2, 200ms start t#2");
}

#[test]
fn one_that_declines_on_a_restart_is_forgotten() {
    let kids = [kid("a").signals(ms(1)).plays([Play::Run, Play::Run, Play::Ignore])];
    let mut world = running(rules(), kids);
    for _ in 0..2 {
        world.advance(secs(1));
        world.fail("a");
    }
    world.advance(secs(1));
    assert_eq!(world.acts(), "start a#2, start a#3, removed a");
    world.stop();
    assert_eq!(world.acts(), "finish stopped");
}

#[test]
fn a_start_that_fails_is_tried_again() {
    let mut world = running(rules(), []);
    world.add(kid("a").signals(Duration::ZERO).plays([Play::Run, Play::Fail]));
    world.settle();
    world.skip();
    world.fail("a");
    assert_eq!(world.acts(), "start a#2, start a#3");
    assert_eq!(world.lifecycle("a"), Lifecycle::Active);
}

#[test]
fn beyond_the_intensity_it_ends() {
    let rules = Rules { intensity: at_most(1), ..rules() };
    let mut world = running(rules, [kid("a"), kid("b"), kid("c")]);
    world.fail("a");
    world.fail("b");
    assert_eq!(
        world.acts(),
        "start a#2, gave up b, removed b, cancel c, cancel a, removed c, removed a, \
         finish escalated b: failed"
    );
}

#[test]
fn or_parks_the_child() {
    let rules = Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..waiting() };
    let mut world = running(rules, [kid("a"), kid("b")]);
    world.fail("a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Errored);
    assert_eq!(world.call("a", ChildRequest::Retry), "started 2");
    world.fail("a");
    world.stop();
    assert_eq!(
        world.acts(),
        "gave up a, start a#2, gave up a, cancel b, removed a, removed b, finish stopped"
    );
}

#[test]
fn there_are_no_more_children_than_there_may_be() {
    let rules = Rules { max_children: Some(1), ..waiting() };
    let mut world = running(rules, []);
    let admits = |world: &World| match world.machine.admits() {
        Ok(()) => "yes".to_owned(),
        Err(ChildAnswer::MaxChildren(max)) => format!("max {max}"),
        Err(other) => format!("{other:?}"),
    };
    assert_eq!(admits(&world), "yes");
    world.add(kid("a").temporary());
    assert_eq!(admits(&world), "max 1");
    world.end("a");
    world.add(kid("b"));
    world.fail("b");
    assert_eq!(admits(&world), "max 1", "one that waits for its restart counts");
    assert_eq!(world.call("b", ChildRequest::Terminate), "done");
    assert_eq!(admits(&world), "yes");
    world.stop();
    assert_eq!(admits(&world), "ShuttingDown");
}

#[test]
fn a_terminated_child_is_gone() {
    let mut world = running(rules(), [kid("a").stops(secs(1))]);
    let first = world.ask("a", ChildRequest::Terminate);
    let second = world.ask("a", ChildRequest::Terminate);
    world.advance(secs(1));
    assert_eq!((world.answer(first), world.answer(second)), ("done", "done"));
    assert_eq!(world.call("a", ChildRequest::Terminate), "not found");
}

#[test]
fn all_stop_at_once_each_within_its_grace() {
    let kids = [
        kid("a").stops(secs(1)).shutdown(secs(2)),
        kid("b").stops(None).shutdown(secs(2)),
        kid("c").leaks().shutdown(secs(3)),
        kid("d").stops(secs(7)).shutdown(Shutdown::Infinity),
        kid("e").stops(secs(1)).shutdown(Shutdown::BrutalKill),
        kid("f").stops(None).shutdown(Duration::ZERO),
    ];
    let mut world = running(rules(), kids);
    world.stop();
    world.advance(secs(60));
    assert_eq!(
        world.timed(),
        "0ns cancel f, 0ns abort e, 0ns cancel d, 0ns cancel c, 0ns cancel b, 0ns cancel a, \
         0ns removed e, 0ns abort f, 0ns removed f, 1s removed a, 2s abort b, 2s removed b, \
         3s abort c, 4s leaked c#1, 4s removed c, 7s removed d, 7s finish stopped"
    );
}

#[test]
fn there_is_one_timer_for_each_distinct_grace() {
    let kids = many(300).map(|kid| kid.stops(None).shutdown(secs(2)));
    let mut world = running(rules(), kids);
    world.event(MachineEvent::Stop { within: None });
    let timers = |world: &World| world.machine.children().timers.len();
    world.settle();
    assert_eq!(timers(&world), 1);
    world.advance(secs(60));
    assert!(world.timed().ends_with("2s finish stopped"));
}

#[test]
fn the_stop_as_a_whole_has_a_deadline_if_told_so() {
    let kids = [kid("a").stops(None), kid("b").stops(None).shutdown(Shutdown::Infinity)];
    let mut world = running(rules(), kids);
    world.event(MachineEvent::Stop { within: Some(secs(1)) });
    world.event(MachineEvent::Stop { within: Some(secs(9)) });
    world.advance(secs(60));
    assert_eq!(
        world.timed(),
        "0ns cancel b, 0ns cancel a, 1s abort b, 1s abort a, 1s removed b, 1s removed a, \
         1s finish stopped"
    );
}

#[test]
fn a_stop_of_many_takes_few_at_a_time_and_is_not_repeated_for_each_slice() {
    let count = 12 * SLICE;
    let kids = many(count).map(|kid| kid.stops(None).dies(ms(1)).shutdown(Duration::ZERO));
    let mut world = running(rules(), kids);
    world.stop();
    world.advance(secs(1));
    assert!(world.finished());
    // One walk to ask them, and one or two to abort them.
    assert!(world.ticks() < 4 * count / SLICE, "{} ticks", world.ticks());
}

#[test]
fn a_backoff_that_is_over_while_it_stops_starts_nobody() {
    let mut world = running(waiting(), many(3 * SLICE).map(|kid| kid.stops(secs(1))));
    world.fail("0");
    world.advance(ms(199));
    // It is due in the same instant in which the last slice is still to be visited.
    world.now += ms(1);
    world.event(MachineEvent::Stop { within: None });
    world.advance(secs(1));
    assert!(world.finished());
    assert!(world.story("0").ends_with("restarting → stopped"));
}

#[test]
fn one_that_fails_before_it_is_asked_to_stop_is_not_restarted() {
    let mut world = running(rules(), many(3 * SLICE).map(|kid| kid.stops(secs(1))));
    world.event(MachineEvent::Stop { within: None });
    world.fail("0");
    world.advance(secs(1));
    assert!(world.timed().ends_with("1s finish stopped"));
}

#[test]
fn a_leaked_child_is_parked_unless_it_was_to_go() {
    let leaks = || kid("a").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    let mut world = running(rules(), [leaks()]);
    world.call("a", ChildRequest::Kill);
    world.advance(secs(1));
    assert_eq!(world.timed(), "0ns abort a, 1s leaked a#1");
    assert_eq!(world.why("a"), Some("leaked"));

    let mut world = running(rules(), [leaks()]);
    world.call("a", ChildRequest::Terminate);
    world.advance(secs(1));
    assert_eq!(world.timed(), "0ns abort a, 1s leaked a#1, 1s removed a");
}

#[test]
fn whoever_waits_for_the_restart_of_a_child_that_leaks_and_is_parked_is_told_that_it_is_down() {
    let leaks = kid("a").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    let mut world = running(rules(), [leaks]);
    let ticket = world.ask("a", ChildRequest::RestartRunning);
    world.advance(secs(1));
    assert_eq!(world.timed(), "0ns abort a, 1s leaked a#1");
    assert_eq!(world.answer(ticket), "stopped");
}

#[test]
fn how_each_ends_meanwhile_does_not_matter() {
    let kids = ["a", "b", "c", "d"].map(|name| kid(name).stops(None));
    let mut world = running(Rules { intensity: at_most(0), ..rules() }, kids);
    world.stop();
    let reasons = [ExitReason::Normal, ExitReason::Shutdown, ExitReason::Hung, ExitReason::Aborted];
    for (name, reason) in ["a", "b", "c", "d"].into_iter().zip(reasons) {
        world.exit(name, reason);
    }
    assert!(world.acts().ends_with("removed a, removed b, removed c, removed d, finish stopped"));
}

#[test]
fn abort_all_aborts_all() {
    let mut world = running(rules(), many(3 * SLICE).map(|kid| kid.leaks()));
    world.event(MachineEvent::AbortAll);
    world.event(MachineEvent::AbortAll);
    world.advance(secs(1));
    assert!(world.timed().ends_with("1s finish aborted"));
}
