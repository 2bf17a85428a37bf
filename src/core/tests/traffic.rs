//! Children whose messages wait in their place, and acknowledgements that let a backoff begin anew.

use std::time::Duration;

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, MachineEvent};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, OnExhausted, Reset, Rules, StartCause, Strategy};

/// A second before the first restart, and twice as long before each further one.
fn doubling() -> Rules {
    Rules { backoff: Backoff::exponential(secs(1), secs(60)), ..rules() }
}

fn busy(name: &str) -> Kid {
    kid(name).delays_traffic()
}

fn acked(world: &mut World, name: &str) {
    world.says(name, |key, incarnation| MachineEvent::Acked { key, incarnation });
    world.settle();
}

#[test]
fn seed2_16_the_child_starts_at_the_crash_and_its_traffic_is_held_for_the_wait() {
    fn check(mut world: World) {
        world.advance(secs(7));
        world.fail("a");
        assert_eq!(world.timed(), "7s hold a 1s, 7s start a#2");
        assert_eq!(world.lifecycle("a"), Lifecycle::Active);
        let story = "active → errored (failed) → resolved → activating → active";
        assert_eq!(world.story("a"), story, "as after no wait at all");
        // Later than the end of that wait it is the same again.
        world.advance(secs(4));
        world.fail("a");
        assert_eq!(world.timed(), "11s hold a 2s, 11s start a#3");
        assert_eq!(world.causes(), "");
    }
    check(World::running(doubling(), [busy("a")]));
    check(World::dynamic(doubling(), [busy("a")]));
}

#[test]
fn one_that_fails_while_its_traffic_is_held_waits_for_the_end_of_that() {
    fn check(mut world: World) {
        world.fail("a");
        world.advance(ms(400));
        world.fail("a");
        assert_eq!(world.timed(), "0ns hold a 1s, 0ns start a#2");
        assert_eq!(world.lifecycle("a"), Lifecycle::Restarting);
        let history = world.machine.view(world.key("a"), world.now).and_then(|it| it.history);
        assert_eq!(history.and_then(|it| it.next).map(|(_, wait)| wait), Some(ms(600)));
        // From there on its traffic is held for the wait that was drawn.
        world.advance(secs(1));
        assert_eq!(world.timed(), "1s hold a 2s, 1s start a#3");
        // At the very end of it, it is over.
        world.advance(secs(3) - ms(1400));
        world.fail("a");
        assert_eq!(world.timed(), "3s hold a 4s, 3s start a#4");
    }
    check(World::running(doubling(), [busy("a")]));
    check(World::dynamic(doubling(), [busy("a")]));
}

#[test]
fn one_that_cannot_live_is_started_once_for_each_wait_although_restarts_are_unlimited() {
    fn check(mut world: World) {
        world.fail("a");
        world.advance(secs(64));
        let timed = world.timed();
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
    let dead = || busy("a").plays([Play::Run]).plays([Play::Fail; 100]);
    check(World::running(doubling(), [dead()]));
    check(World::dynamic(doubling(), [dead()]));
}

#[test]
fn without_a_wait_there_is_nothing_to_hold() {
    let mut world = World::running(rules(), [busy("a")]);
    world.fail("a");
    world.fail("a");
    assert_eq!(world.timed(), "0ns start a#2, 0ns start a#3");

    // A wait of none does not cut short the one before.
    let mut world = World::running(doubling(), [busy("a").told(Duration::ZERO)]);
    world.fail("a");
    world.exit("a", Play::Busy.reason());
    world.settle();
    world.advance(secs(4));
    assert_eq!(world.timed(), "0ns hold a 1s, 0ns start a#2, 1s start a#3");
}

#[test]
fn a_group_waits_as_ever() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let rules = Rules { strategy, ..doubling() };
        let mut world = World::running(rules, [kid("a"), busy("b")]);
        world.fail("b");
        assert_eq!(world.lifecycle("b"), Lifecycle::Restarting);
        world.advance(secs(1));
        let timed = world.timed();
        assert!(timed.ends_with("1s start b#2") && !timed.contains("hold"), "{timed}");
    }
}

#[test]
fn whoever_calls_the_child_lets_its_messages_go() {
    fn check(mut world: World) {
        world.fail("a");
        world.fail("a");
        assert_eq!(world.call("a", ChildRequest::Wake), "done");
        assert_eq!(world.timed(), "0ns hold a 1s, 0ns start a#2, 0ns start a#3");
        world.fail("a");
        assert_eq!(world.timed(), "0ns hold a 4s, 0ns start a#4");
        assert_eq!(world.call("a", ChildRequest::RestartRunning), "started 5");
        assert_eq!(world.timed(), "0ns cancel a, 0ns start a#5");
    }
    check(World::running(doubling(), [busy("a")]));
    check(World::dynamic(doubling(), [busy("a")]));
}

#[test]
fn seed2_24_a_limit_counts_restarts_whose_traffic_waits_like_any_other() {
    fn check(mut world: World) {
        world.fail("a");
        world.advance(secs(1));
        world.fail("a");
        world.advance(secs(2));
        assert_eq!(world.machine.intensity(world.now).0, 2);
        world.fail("a");
        assert!(world.timed().contains("3s gave up a"));
        assert!(world.finished());
    }
    let rules = Rules { intensity: at_most(2), ..doubling() };
    check(World::running(rules.clone(), [busy("a")]));
    check(World::dynamic(rules, [busy("a")]));
}

#[test]
fn a_start_that_fails_while_messages_wait_costs_nothing_as_if_the_child_had_waited() {
    fn check(mut world: World) {
        for _ in 0..4 {
            world.advance(secs(64));
        }
        assert_eq!(world.machine.intensity(world.now).0, 0);
        assert!(!world.finished());
    }
    let rules = Rules { intensity: at_most(1), ..doubling() };
    let sick = || busy("a").signals(ms(1)).plays([Play::Fail; 100]);
    let mut world = World::ordered(rules.clone(), [sick()]);
    world.settle();
    check(world);
    check(World::running(rules, [busy("a").consecutive(9)]));
}

#[test]
fn a_pause_is_waited_out_as_ever() {
    fn check(mut world: World) {
        world.fail("a");
        world.fail("a");
        world.advance(secs(10));
        assert_eq!(world.timed(), "0ns hold a 1s, 0ns start a#2, 0ns pause a, 10s start a#3");
    }
    let once = || busy("a").intensity(Intensity::sliding(1, secs(60)));
    let pause = OnExhausted::Pause(secs(10));
    check(World::running(doubling(), [once().on_exhausted(pause)]));
    let rules = Rules { on_exhausted: pause, intensity: at_most(1), ..doubling() };
    check(World::dynamic(rules, [busy("a")]));
}

#[test]
fn a_pause_ends_what_was_held() {
    let once = busy("a").intensity(Intensity::sliding(1, secs(60)));
    let pause = OnExhausted::Pause(ms(500));
    let mut world = World::running(doubling(), [once.on_exhausted(pause)]);
    world.fail("a");
    world.fail("a");
    world.advance(secs(2));
    assert_eq!(world.timed(), "0ns hold a 1s, 0ns start a#2, 0ns pause a, 500ms start a#3");

    // The pause of all does, too.
    let rules = Rules { on_exhausted: pause, intensity: at_most(1), ..doubling() };
    let mut world = World::running(rules, [busy("a").told(Duration::ZERO), kid("b")]);
    world.fail("a");
    world.fail("b");
    world.exit("a", Play::Busy.reason());
    world.advance(secs(2));
    assert_eq!(
        world.timed(),
        "0ns hold a 1s, 0ns start a#2, 0ns pause b, 500ms start a#3, 500ms start b#2"
    );
}

#[test]
fn one_that_requires_another_is_gated_and_its_messages_wait_for_what_is_left() {
    let kids = [kid("db").transient().backoff(Backoff::constant(secs(3))), busy("api")];
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..rules() };
    let mut world = World::running(
        rules,
        kids.map(|it| if it.name() == "api" { it.requires("db") } else { it }),
    );
    world.crash("db");
    world.fail("api");
    assert_eq!(world.why("api"), Some("waits for a requirement"));
    world.advance(secs(3));
    assert_eq!(world.timed(), "3s start db#2, 3s hold api 2s, 3s start api#2");
}

#[test]
fn an_acknowledgement_begins_the_backoff_anew_if_that_is_its_rule() {
    fn waits(mut world: World) -> Vec<u64> {
        let waits = [false, true, false].map(|acks| {
            if acks {
                acked(&mut world, "a");
            }
            world.crash("a");
            let view = world.machine.view(world.key("a"), world.now);
            let (_, wait) = view.and_then(|view| view.history?.next).expect("a wait");
            world.advance(wait);
            wait.as_secs()
        });
        waits.into()
    }
    let plain = doubling();
    let rules = Rules { backoff: plain.backoff.clone().reset(Reset::OnAck), ..plain.clone() };
    assert_eq!(waits(World::running(rules.clone(), [kid("a")])), [1, 1, 2]);
    assert_eq!(waits(World::dynamic(rules, [kid("a")])), [1, 1, 2]);
    assert_eq!(waits(World::running(plain, [kid("a")])), [1, 2, 4], "it is not");
}

#[test]
fn a_restart_is_a_restart_whoever_waits() {
    let mut world = World::running(doubling(), [busy("a")]);
    world.fail("a");
    assert_eq!(world.causes(), format!("a#2 {}", StartCause::Restart));
}
