//! Children that are said to be healthy or unhealthy.

use std::sync::Arc;

use super::super::simulator::{Kid, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, MachineEvent};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExit, RestartType, Rules, Strategy};

/// It is said of the child that is there.
fn ill(world: &mut World, name: &str) {
    world.says(name, |key, incarnation| MachineEvent::Health {
        key,
        incarnation,
        problem: Some("ill".into()),
    });
    world.settle();
}

fn well(world: &mut World, name: &str) {
    world.says(name, |key, incarnation| MachineEvent::Health { key, incarnation, problem: None });
    world.settle();
}

fn frail(name: &str) -> Kid {
    kid(name).fails_unhealthy()
}

#[test]
fn seed3_34_that_a_child_is_unhealthy_is_told_and_changes_nothing() {
    let mut world = World::running(rules(), [kid("a"), kid("b")]);
    ill(&mut world, "a");
    well(&mut world, "a");
    ill(&mut world, "a");
    assert_eq!(world.acts(), "unhealthy a, healthy a, unhealthy a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Active);

    let mut world = World::dynamic(rules(), [kid("a")]);
    ill(&mut world, "a");
    assert_eq!(world.acts(), "unhealthy a");
}

#[test]
fn kin_163_an_unhealthy_child_fails_once_although_it_stays_so() {
    let mut world = World::running(rules(), [frail("a").stops(secs(2)), kid("b")]);
    ill(&mut world, "a");
    assert_eq!(world.acts(), "unhealthy a, cancel a");
    ill(&mut world, "a");
    world.advance(secs(1));
    ill(&mut world, "a");
    assert_eq!(world.acts(), "", "it is stopping");
    world.advance(secs(1));
    assert_eq!(world.acts(), "start a#2");
    let story = "active → errored (unhealthy) → resolved → activating → active";
    let told = world.story("a");
    assert!(told.ends_with(story), "{told}");

    // It has said something before it was to end, and is well.
    well(&mut world, "a");
    assert_eq!(world.acts(), "healthy a");
}

#[test]
fn kin_163_what_is_said_of_a_child_that_waits_for_its_restart_adds_no_second_one() {
    let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
    let mut world = World::running(rules, [frail("a")]);
    world.fail("a");
    ill(&mut world, "a");
    world.advance(secs(1) - ms(1));
    ill(&mut world, "a");
    world.advance(ms(1));
    assert_eq!(world.acts(), "start a#2");
    world.advance(secs(9));
    assert_eq!(world.acts(), "");
}

#[test]
fn who_is_not_active_yet_is_neither_healthy_nor_unhealthy() {
    let mut world = World::ordered(rules(), [frail("a").signals(None)]);
    world.settle();
    world.skip();
    ill(&mut world, "a");
    well(&mut world, "a");
    assert_eq!(world.acts(), "");
    world.ready("a");
    ill(&mut world, "a");
    assert_eq!(world.acts(), "up, unhealthy a, cancel a, start a#2");
}

#[test]
fn an_unhealthy_child_takes_its_range_with_it_and_is_charged() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, intensity: at_most(1), ..rules() };
    let mut world = World::running(one_for_all, [kid("a"), frail("b"), kid("c")]);
    ill(&mut world, "b");
    let expected = "unhealthy b, cancel b, cancel c, cancel a, start a#2, start b#2, start c#2";
    assert_eq!(world.acts(), expected);
    ill(&mut world, "b");
    let acts = world.acts();
    assert!(acts.starts_with("unhealthy b, cancel b, gave up b"), "{acts}");
    assert!(acts.ends_with("finish escalated b: unhealthy"), "{acts}");
}

#[test]
fn who_is_stopped_as_unhealthy_is_failing_and_who_is_stopped_with_it_is_not() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, ..rules() };
    let slow = [kid("a").stops(secs(1)), frail("b").stops(secs(1))];
    let mut world = World::running(one_for_all, slow);
    let failing = |world: &World| ["a", "b"].map(|it| world.machine.is_failing(world.key(it)));
    assert_eq!(failing(&world), [false, false]);
    ill(&mut world, "b");
    assert_eq!((failing(&world), world.acts()), ([false, true], "unhealthy b, cancel b".into()));
    world.advance(secs(1));
    assert_eq!((failing(&world), world.acts()), ([false, false], "cancel a".into()));
    world.advance(secs(1));
    assert_eq!((failing(&world), world.acts()), ([false, false], "start a#2, start b#2".into()));
}

#[test]
fn what_follows_is_what_the_trigger_says() {
    let table = [
        (frail("a").transient(), "unhealthy a, cancel a, start a#2"),
        (frail("a").restart(RestartType::OnWatchdog), "unhealthy a, cancel a, start a#2"),
        (frail("a").restart(RestartType::OnAbort), "unhealthy a, cancel a"),
        (frail("a").temporary(), "unhealthy a, cancel a, removed a"),
        (frail("a").on_exit(ExitKind::Unhealthy, OnExit::Leave), "unhealthy a, cancel a"),
        (
            frail("a").on_exit(ExitKind::Unhealthy, OnExit::FailSupervisor),
            "unhealthy a, cancel a, a fails all, finish failed a: unhealthy",
        ),
    ];
    for (kid, acts) in table {
        let mut world = World::running(rules(), [kid.clone()]);
        ill(&mut world, "a");
        assert_eq!(world.acts(), acts, "{kid:?}");
    }
}

#[test]
fn who_is_unhealthy_while_all_end_ends_in_its_turn() {
    let mut world = World::running(rules(), [frail("a"), kid("b").stops(secs(2))]);
    world.stop();
    assert_eq!(world.acts(), "cancel b");
    ill(&mut world, "a");
    assert_eq!(world.acts(), "unhealthy a", "it is told all the same");
    world.advance(secs(2));
    assert_eq!(world.acts(), "cancel a, finish stopped");
}

#[test]
fn a_caller_may_stop_for_good_who_fails_as_unhealthy() {
    let mut world = World::dynamic(rules(), [frail("a").stops(secs(2)), kid("b")]);
    ill(&mut world, "a");
    let asked = world.ask("a", ChildRequest::Terminate);
    world.advance(secs(2));
    assert_eq!(world.answer(asked), "done");
    assert_eq!(world.acts(), "unhealthy a, cancel a, removed a");
}

#[test]
fn a_reason_is_shared_with_whoever_is_told() {
    let problem: Arc<str> = "ill".into();
    let mut world = World::running(rules(), [kid("a")]);
    let key = world.key("a");
    let told = Some(Arc::clone(&problem));
    world.event(MachineEvent::Health { key, incarnation: 1, problem: told });
    assert_eq!(Arc::strong_count(&problem), 1, "nothing is kept of it");
}
