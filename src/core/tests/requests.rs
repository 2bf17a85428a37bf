//! What each request leads to in each state.

use std::time::Duration;

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, Effect, MachineEvent};
use super::REQUESTS;
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExhausted, OnExit, OnLeak, Rules, Shutdown, Strategy};

fn waiting() -> Rules {
    Rules { backoff: Backoff::constant(secs(9)), ..rules() }
}

fn stopping() -> Rules {
    Rules { on_exhausted: OnExhausted::StopChild, ..parking() }
}

fn pausing() -> Rules {
    Rules { on_exhausted: OnExhausted::Pause(secs(9)), ..parking() }
}

fn parking() -> Rules {
    Rules { intensity: at_most(0), on_exhausted: OnExhausted::Park, ..waiting() }
}

fn asking() -> Rules {
    Rules { asks: true, ..waiting() }
}

fn group() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..waiting() }
}

/// A child that takes a second for everything.
fn slow() -> Kid {
    kid("b").stops(secs(1))
}

/// The answers to all requests about `b`, each in a world that was just made.
fn answers(world: &impl Fn() -> World) -> [String; 8] {
    REQUESTS.map(|request| {
        let mut world = world();
        let (key, lifecycle) = (world.key("b"), world.lifecycle("b"));
        let ticket = world.ask_for(key, request);
        // Those who wait get their answer within a few seconds.
        world.advance(secs(5));
        let answer = world.answer(ticket);
        if answer == format!("unfit {lifecycle}") { "·".to_owned() } else { answer.to_owned() }
    })
}

/// A line of a table of answers. A dot: there is nothing to do in this state.
fn row(name: &str, world: impl Fn() -> World) -> String {
    let [a, b, c, d, e, f, g, h] = answers(&world);
    format!("{name:13} {a:9} {b:9} {c:10} {d:10} {e:4} {f:10} {g:9} {h}")
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_ordered_child() {
    fn begin(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> World {
        let mut world = World::ordered(rules, kids);
        world.advance(Duration::ZERO);
        world
    }
    let rows = [
        row("turn to come", || begin(rules(), [kid("a").signals(secs(2)), slow()])),
        row("gated", || {
            let a = kid("a").signals(Duration::ZERO).plays([Play::Ignore]);
            begin(rules(), [a, slow().requires("a")])
        }),
        row("activating", || begin(rules(), [slow().signals(secs(2))])),
        row("active", || begin(rules(), [slow()])),
        row("in a group", || begin(group(), [kid("a"), slow()])),
        row("backoff", || {
            let mut world = begin(waiting(), [slow()]);
            world.fail("b");
            world
        }),
        row("asking", || {
            let mut world = begin(asking(), [slow().silent()]);
            world.fail("b");
            world
        }),
        row("awaiting", || {
            let mut world = begin(group(), [kid("a"), slow()]);
            world.fail("b");
            world
        }),
        row("its group", || {
            let mut world = begin(group(), [kid("a"), slow()]);
            world.fail("a");
            world.advance(secs(1));
            world
        }),
        row("stops: group", || {
            let mut world =
                begin(Rules { strategy: Strategy::OneForAll, ..rules() }, [kid("a"), slow()]);
            world.fail("a");
            world
        }),
        row("stops: hand", || {
            let mut world = begin(rules(), [slow()]);
            world.ask("b", ChildRequest::Terminate);
            world
        }),
        row("stops: self", || {
            let mut world = begin(rules(), [slow().transient()]);
            let key = world.key("b");
            world.event(MachineEvent::StopSelf { key, incarnation: 1 });
            world
        }),
        row("stops: fails", || {
            let b = slow().signals(None).activation_timeout(secs(1));
            let mut world = begin(rules(), [b]);
            world.advance(secs(1));
            world.kid("b").ready = Some(ms(1));
            world
        }),
        row("finished", || {
            let mut world = begin(rules(), [slow().transient()]);
            world.end("b");
            world
        }),
        row("by hand", || {
            let mut world = begin(rules(), [slow()]);
            world.ask("b", ChildRequest::Terminate);
            world.advance(secs(1));
            world
        }),
        row("ignored", || begin(rules(), [slow().signals(ms(0)).plays([Play::Ignore])])),
        row("given up", || {
            let mut world = begin(parking(), [slow()]);
            world.fail("b");
            world
        }),
        row("left", || {
            let mut world =
                begin(group(), [kid("a"), slow().on_exit(ExitKind::Failed, OnExit::Leave)]);
            world.fail("b");
            world
        }),
        row("stopped", || {
            let mut world = begin(stopping(), [slow()]);
            world.fail("b");
            world
        }),
        row("pauses", || {
            let mut world = begin(pausing(), [slow()]);
            world.fail("b");
            world
        }),
        row("parked group", || {
            let mut world =
                begin(Rules { strategy: Strategy::OneForAll, ..parking() }, [kid("a"), slow()]);
            world.fail("a");
            world.advance(secs(1));
            world
        }),
        row("leaked", || {
            let b = kid("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut world = begin(rules(), [b]);
            world.call("b", ChildRequest::Kill);
            world.advance(secs(1));
            world.kid("b").dies = Some(ms(1));
            world
        }),
    ];
    #[rustfmt::skip]
    let expected = [
        //              start     terminate again      restart    kill delete     retry     wake
        "turn to come  started 1 done      restarting ·          ·    restarting ·         ·",
        "gated         ·         done      restarting restarting ·    restarting ·         ·",
        "activating    ·         done      running    started 2  done running    ·         ·",
        "active        ·         done      running    started 2  done running    ·         ·",
        "in a group    ·         done      running    started 2  done running    ·         ·",
        "backoff       ·         done      restarting restarting ·    restarting ·         done",
        "asking        ·         done      ·          ·          ·    done       ·         ·",
        "awaiting      ·         done      restarting restarting ·    restarting ·         done",
        "its group     ·         done      restarting ·          ·    restarting ·         ·",
        "stops: group  ·         done      running    restarting done running    ·         ·",
        "stops: hand   ·         done      running    ·          done running    ·         ·",
        "stops: self   ·         done      running    ·          done running    ·         ·",
        "stops: fails  ·         done      running    restarting done running    ·         ·",
        "finished      ·         done      started 2  ·          ·    done       ·         ·",
        "by hand       ·         done      started 2  ·          ·    done       ·         ·",
        "ignored       ·         done      started 2  ·          ·    done       ·         ·",
        "given up      ·         done      started 2  ·          ·    done       started 2 ·",
        "left          ·         done      started 2  ·          ·    done       started 2 ·",
        "stopped       ·         done      started 2  ·          ·    done       started 2 ·",
        "pauses        ·         done      restarting restarting ·    restarting ·         done",
        "parked group  ·         done      started 2  ·          ·    done       ·         ·",
        "leaked        ·         done      started 2  ·          ·    done       started 2 ·",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_equal_child() {
    fn begin(rules: Rules, b: Kid) -> World {
        World::dynamic(rules, [b])
    }
    let rows = [
        row("activating", || begin(rules(), slow().signals(secs(2)))),
        row("active", || begin(rules(), slow())),
        row("asking", || {
            let mut world = begin(asking(), slow().silent());
            world.fail("b");
            world
        }),
        row("backoff", || {
            let mut world = begin(waiting(), slow());
            world.fail("b");
            world
        }),
        row("stops: hand", || {
            let mut world = begin(rules(), slow());
            world.ask("b", ChildRequest::Terminate);
            world
        }),
        row("stops: renew", || {
            let mut world = begin(rules(), slow());
            world.ask("b", ChildRequest::RestartRunning);
            world
        }),
        row("given up", || {
            let mut world = begin(parking(), slow());
            world.fail("b");
            world
        }),
        row("stopped", || {
            let mut world = begin(stopping(), slow());
            world.fail("b");
            world
        }),
        row("pauses", || {
            let mut world = begin(pausing(), slow());
            world.fail("b");
            world
        }),
        row("leaked", || {
            let b = kid("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut world = begin(rules(), b);
            world.call("b", ChildRequest::Kill);
            world.advance(secs(1));
            world.kid("b").dies = Some(ms(1));
            world
        }),
    ];
    #[rustfmt::skip]
    let expected = [
        //              start     terminate again      restart    kill delete     retry     wake
        "activating    ·         done      running    started 2  done running    ·         ·",
        "active        ·         done      running    started 2  done running    ·         ·",
        "asking        ·         done      ·          ·          ·    done       ·         ·",
        "backoff       ·         done      restarting restarting ·    restarting ·         done",
        "stops: hand   ·         done      running    ·          done running    ·         ·",
        "stops: renew  ·         done      running    restarting done running    ·         ·",
        "given up      ·         done      ·          ·          ·    done       started 2 ·",
        "stopped       ·         done      ·          ·          ·    done       started 2 ·",
        "pauses        ·         done      restarting restarting ·    restarting ·         done",
        "leaked        ·         done      ·          ·          ·    done       started 2 ·",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_child_that_is_gone_is_not_found() {
    let ordered = || {
        let mut world = World::running(rules(), [kid("a"), slow().temporary()]);
        world.end("b");
        world
    };
    let dynamic = || {
        let mut world = World::dynamic(rules(), [kid("a"), slow().transient()]);
        world.end("b");
        world
    };
    assert_eq!(answers(&ordered), ["not found"; 8]);
    assert_eq!(answers(&dynamic), ["not found"; 8]);
}

#[test]
fn a_supervisor_that_is_stopping_refuses_everything() {
    let ordered = || {
        let mut world = World::running(rules(), [slow().stops(secs(4))]);
        world.stop();
        world
    };
    let dynamic = || {
        let mut world = World::dynamic(rules(), [slow().stops(secs(4))]);
        world.stop();
        world
    };
    assert_eq!(answers(&ordered), ["shutting down"; 8]);
    assert_eq!(answers(&dynamic), ["shutting down"; 8]);
}

#[test]
fn whoever_waits_for_a_child_is_told_what_became_of_it() {
    // Each is asked for, then something else happens.
    let asked = |request: ChildRequest, b: Kid| {
        let mut world = World::running(rules(), [kid("a"), b]);
        let ticket = world.ask("b", request);
        (world, ticket)
    };

    let (mut world, ticket) = asked(ChildRequest::RestartRunning, slow());
    world.stop();
    world.advance(secs(9));
    assert_eq!(world.answer(ticket), "shutting down");

    let (mut world, ticket) = asked(ChildRequest::RestartRunning, slow());
    let second = world.ask("b", ChildRequest::Terminate);
    world.advance(secs(9));
    assert_eq!((world.answer(ticket), world.answer(second)), ("stopped", "done"));

    let (mut world, ticket) = asked(ChildRequest::Terminate, slow());
    world.stop();
    world.advance(secs(9));
    assert_eq!(world.answer(ticket), "done");

    // Killed, it is what the failure says.
    let (mut world, ticket) = asked(ChildRequest::Terminate, slow());
    world.ask("b", ChildRequest::Kill);
    world.settle();
    assert_eq!(world.answer(ticket), "done");
    assert!(world.story("b").ends_with("stopped (killed)"));
}

#[test]
fn the_end_of_a_temporary_child_is_what_its_terminator_waits_for_and_nobody_else() {
    let mut world = World::running(group(), [kid("a"), slow().temporary()]);
    let ticket = world.ask("b", ChildRequest::Terminate);
    world.advance(secs(1));
    assert_eq!(world.answer(ticket), "done");

    let mut world = World::running(group(), [kid("a"), slow().temporary()]);
    let renewed = world.ask("b", ChildRequest::RestartRunning);
    world.advance(secs(1));
    assert_eq!(world.timed(), "0ns cancel b, 1s removed b, 1s cancel a, 1s start a#2");
    assert_eq!(world.answer(renewed), "stopped", "its group forgets it");
}

#[test]
fn a_supervisor_that_has_ended_says_nothing_more() {
    fn check(mut world: World) {
        let key = world.key("b");
        world.stop();
        world.advance(secs(1));
        assert!(world.finished());
        let requests = REQUESTS.map(|request| MachineEvent::Request { ticket: 99, key, request });
        let exited = MachineEvent::Exited { key, incarnation: 1, reason: ExitReason::Hung };
        let others = [
            MachineEvent::Tick,
            MachineEvent::Stop { within: None },
            MachineEvent::AbortAll,
            exited,
        ];
        for event in requests.into_iter().chain(others) {
            let mut effects = Vec::new();
            world.machine.on_event(event, world.now, &mut effects);
            assert!(effects.is_empty(), "{effects:?}");
        }
    }
    check(World::running(rules(), [kid("a"), slow()]));
    check(World::dynamic(rules(), [kid("a"), slow()]));
}

#[test]
fn a_child_that_is_terminated_after_it_failed_has_ended_as_it_failed() {
    let late = kid("b").signals(None).activation_timeout(secs(1)).stops(secs(1));
    let mut ordered = World::ordered(rules(), [late.clone()]);
    let mut dynamic = World::dynamic(rules(), [late]);
    fn check(world: &mut World) {
        world.advance(secs(1));
        let ticket = world.ask("b", ChildRequest::Terminate);
        world.advance(secs(1));
        assert_eq!(world.answer(ticket), "done");
    }
    check(&mut ordered);
    check(&mut dynamic);
    assert!(ordered.story("b").ends_with("activating → errored (activation_timed_out) → stopped"));
    assert!(dynamic.timed().ends_with("2s removed b"));
}

#[test]
fn a_manual_start_that_fails_is_the_callers_alone() {
    let b = kid("b").signals(Duration::ZERO).plays([Play::Run, Play::Fail]);
    let mut world = World::running(rules(), [kid("a"), b]);
    world.call("b", ChildRequest::Terminate);
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "failed activation_failed");
    world.advance(secs(60));
    assert_eq!(world.lifecycle("b"), Lifecycle::Stopped);
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "started 3");

    // One that was just added is forgotten.
    let ticket = world.add(kid("c").signals(Duration::ZERO).plays([Play::Panic]));
    world.settle();
    assert_eq!(world.answer(ticket), "failed panicked");
    assert!(world.acts().ends_with("start c#1, removed c"));

    // One that declines is kept.
    let ticket = world.add(kid("d").signals(Duration::ZERO).plays([Play::Ignore]));
    world.settle();
    assert_eq!(world.answer(ticket), "ignored");
    assert_eq!(world.call("d", ChildRequest::RestartStopped), "started 2");
}

#[test]
fn a_child_that_is_added_during_a_group_restart_waits_for_its_turn() {
    let kids = [kid("a"), kid("b").stops(secs(1))];
    let mut world = World::running(group(), kids);
    world.fail("a");
    let ticket = world.add(kid("c"));
    assert_eq!(world.call("a", ChildRequest::Wake), "done");
    world.advance(secs(9));
    assert_eq!(world.timed(), "0ns cancel b, 1s start a#2, 1s start b#2, 1s start c#1");
    assert_eq!(world.answer(ticket), "started 1");
}

#[test]
fn a_child_that_is_terminated_before_or_in_its_turn_has_not_started() {
    let mut world = World::running(group(), [kid("a"), kid("b")]);
    world.fail("a");
    let ticket = world.add(kid("c"));
    assert_eq!(world.call("c", ChildRequest::Terminate), "done");
    assert_eq!(world.answer(ticket), "stopped", "before");

    let ticket = world.add(kid("d").signals(secs(9)));
    world.call("a", ChildRequest::Wake);
    assert_eq!(world.answer(ticket), "-");
    assert_eq!(world.call("d", ChildRequest::Terminate), "done");
    assert_eq!(world.answer(ticket), "stopped", "in");
}

#[test]
fn who_was_down_before_its_group_stopped_is_about_to_be_started_again() {
    let kids = [kid("a").transient(), kid("b").stops(secs(1)), kid("c")];
    for request in [ChildRequest::RestartStopped, ChildRequest::Delete] {
        let mut world = World::running(group(), kids.clone());
        world.end("a");
        world.fail("c");
        assert_eq!(world.why("a"), Some("finished"), "the group has not come to it");
        assert_eq!(world.call("a", request), "restarting");
        world.advance(secs(10));
        assert_eq!(world.timed(), "0ns cancel b, 9s start a#2, 9s start b#2, 9s start c#2");
    }
}

#[test]
fn a_range_that_is_being_parked_takes_in_nobody_but_gives_back_who_is_down_already() {
    let kids = [kid("a"), kid("b"), kid("c").stops(secs(1)), kid("d")];
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut world = World::running(rules, kids);
    world.call("b", ChildRequest::Terminate);
    world.skip();
    world.fail("a");
    assert_eq!(world.acts(), "gave up a, cancel d, cancel c");
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "stopped");
    assert_eq!(world.call("d", ChildRequest::RestartStopped), "started 2");
    world.fail("d");
    assert_eq!(world.acts(), "start d#2, gave up d");
    world.advance(secs(9));
    assert_eq!(world.alive(), "");
}

#[test]
fn a_child_that_is_added_while_a_range_is_being_parked_is_not_of_the_range() {
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut world = World::running(rules, [kid("a"), kid("b").stops(secs(1)), kid("c")]);
    world.fail("a");
    let d = world.add(kid("d"));
    assert_eq!(world.acts(), "gave up a, cancel c, cancel b, start d#1");
    assert_eq!(world.answer(d), "started 1", "after the last one has gone");

    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut world = World::running(rules, [kid("a"), kid("b").stops(secs(1))]);
    world.fail("a");
    let d = world.add(kid("d"));
    assert_eq!(world.acts(), "gave up a, cancel b, start d#1");
    assert_eq!(world.answer(d), "started 1", "while the last one goes");
    world.advance(secs(9));
    assert_eq!(world.acts(), "");
    assert_eq!(world.alive(), "d#1");
}

#[test]
fn a_child_that_is_deleted_and_added_again_is_the_last() {
    let mut world = World::named(rules(), "a b c");
    world.call("b", ChildRequest::Terminate);
    assert_eq!(world.call("b", ChildRequest::Delete), "done");
    world.add(kid("b"));
    world.skip();
    world.stop();
    assert_eq!(world.acts(), "cancel b, cancel c, cancel a, finish stopped");
}

#[test]
fn a_killed_child_has_failed() {
    let mut world = World::running(group(), [kid("a"), slow()]);
    assert_eq!(world.call("b", ChildRequest::Kill), "done");
    world.advance(secs(10));
    assert_eq!(world.timed(), "0ns abort b, 0ns cancel a, 9s start a#2, 9s start b#2");
    assert!(world.story("b").starts_with("active → errored (aborted) → restarting"));
}

#[test]
fn a_child_that_waits_for_its_restart_can_be_terminated_and_started_by_hand() {
    let mut world = World::named(waiting(), "a b");
    world.fail("b");
    assert_eq!(world.call("b", ChildRequest::Terminate), "done");
    world.advance(secs(60));
    assert_eq!(world.acts(), "");
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "started 2");
}

#[test]
fn a_gated_child_starts_when_a_new_one_of_that_name_comes() {
    let a = || kid("a").signals(ms(1));
    let mut world = World::ordered(rules(), [a().plays([Play::Ignore]), kid("b").requires("a")]);
    world.advance(secs(1));
    assert_eq!(world.call("a", ChildRequest::Delete), "done");
    world.skip();
    world.add(a());
    world.advance(secs(1));
    assert_eq!(world.acts(), "start a#1, start b#1");
}

#[test]
fn who_is_aborted_by_others_while_it_is_asked_to_end_was_not_killed_by_its_supervisor() {
    let mut world = World::running(rules(), [kid("a"), slow()]);
    world.ask("b", ChildRequest::Terminate);
    world.exit("b", ExitReason::Aborted);
    assert!(world.story("b").ends_with("stopped (aborted)"));
    world.call("b", ChildRequest::RestartStopped);

    world.ask("b", ChildRequest::Terminate);
    world.ask("b", ChildRequest::Kill);
    world.settle();
    assert!(world.story("b").ends_with("stopped (killed)"), "by its supervisor's hand");
}

#[test]
fn who_was_stopped_by_hand_while_its_group_stops_is_called_back_and_starts_with_it() {
    let mut world = World::running(group(), [kid("a"), slow(), kid("c")]);
    world.fail("c");
    assert_eq!(world.call("a", ChildRequest::Terminate), "done");
    let ticket = world.ask("a", ChildRequest::RestartStopped);
    assert_eq!(world.answer(ticket), "-", "it is not told that it stays down");
    world.advance(secs(9));
    assert_eq!(
        world.timed(),
        "0ns cancel b, 0ns cancel a, 9s start a#2, 9s start b#2, 9s start c#2"
    );
    assert_eq!(world.answer(ticket), "started 2");
}

#[test]
fn who_is_being_stopped_is_about_to_be_restarted_only_if_its_group_is() {
    let stopping = |rules| {
        let mut world = World::running(rules, [kid("a"), slow(), kid("c")]);
        world.fail("c");
        assert_eq!(world.lifecycle("b"), Lifecycle::Deactivating);
        world
    };
    assert_eq!(stopping(group()).call("b", ChildRequest::RestartRunning), "restarting");
    let parking = Rules { strategy: Strategy::OneForAll, ..parking() };
    assert_eq!(stopping(parking).call("b", ChildRequest::RestartRunning), "unfit deactivating");

    // By itself, it is restarted at once.
    let mut world = World::running(rules(), [kid("a"), slow()]);
    world.ask("b", ChildRequest::RestartRunning);
    assert_eq!(world.call("b", ChildRequest::RestartRunning), "restarting");
}

#[test]
fn who_has_ended_well_behind_a_group_that_is_being_stopped_may_be_started_by_hand() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let c = kid("c").signals(None).stops(secs(1));
    let mut world = World::ordered(rules, [kid("a").transient(), kid("b"), c]);
    world.settle();
    world.end("a");
    world.fail("b");
    assert_eq!(world.acts(), "start a#1, start b#1, start c#1, cancel c");
    let ticket = world.ask("a", ChildRequest::RestartStopped);
    assert_eq!(world.answer(ticket), "-", "at its turn");
    world.advance(secs(1));
    assert_eq!(world.timed(), "1s start a#2, 1s start b#2, 1s start c#2");
    assert_eq!(world.answer(ticket), "started 2");
}

#[test]
fn a_range_that_is_parked_within_another_leaves_that_as_long_as_it_was() {
    let rules = Rules { strategy: Strategy::RestForOne, ..parking() };
    let mut world = World::running(rules, [kid("a"), kid("z"), slow(), kid("c")]);
    world.fail("a");
    assert_eq!(world.acts(), "gave up a, cancel c, cancel b");
    assert_eq!(world.call("c", ChildRequest::RestartStopped), "started 2");
    world.fail("c");
    world.advance(secs(9));
    assert_eq!(world.timed(), "0ns start c#2, 0ns gave up c, 1s cancel z");
    assert_eq!(world.alive(), "");
}

#[test]
fn a_part_that_comes_back_is_not_stopped_anew_for_one_more_of_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let first = kid("a").consecutive(0).on_exhausted(OnExhausted::Park);
    let last = || kid("d").on_leak(OnLeak::Park);
    let kids = [first, kid("b").stops(secs(99)).shutdown(Shutdown::Infinity), kid("c"), last()];
    let mut world = World::running(rules, kids);
    world.fail("a");
    assert_eq!(world.acts(), "gave up a, cancel d, cancel c, cancel b");

    // Of the range that is being parked, the last comes back, but leaks when it is restarted.
    assert_eq!(world.call("d", ChildRequest::RestartStopped), "started 2");
    *world.kid("d") = last().leaks();
    world.ask("d", ChildRequest::RestartRunning);
    world.advance(secs(10));
    assert_eq!(world.why("d"), Some("leaked"));
    assert_eq!(world.call("c", ChildRequest::RestartStopped), "started 2");
    world.skip();
    assert_eq!(world.call("d", ChildRequest::Retry), "-");
    assert_eq!(world.acts(), "", "who was started by hand runs on");
    world.advance(secs(99));
    assert_eq!(world.acts(), "start d#3");
    assert_eq!(world.alive(), "c#2 d#3");
}

#[test]
fn who_is_terminated_while_down_is_told_of_once_if_he_would_have_come_back() {
    let told = |mut world: World| {
        let event = MachineEvent::Request {
            ticket: 0,
            key: world.key("a"),
            request: ChildRequest::Terminate,
        };
        let mut effects = Vec::new();
        world.machine.on_event(event, world.now, &mut effects);
        let edges = effects.iter().filter(|it| matches!(it, Effect::Report(_))).count();
        let stays = effects.iter().filter(|it| matches!(it, Effect::StaysDown { .. })).count();
        (edges, stays)
    };

    let mut waits = World::running(waiting(), [kid("a")]);
    waits.fail("a");
    assert_eq!(told(waits), (1, 0));

    let mut down = World::running(rules(), [kid("a").transient().on_message()]);
    down.send("a");
    down.settle();
    down.end("a");
    assert_eq!(told(down), (0, 1), "a message would have started it");

    let mut down = World::running(rules(), [kid("a").transient()]);
    down.end("a");
    assert_eq!(told(down), (0, 0));
}
