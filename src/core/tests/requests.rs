//! What each request leads to in each state.

use std::time::Duration;

use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, Effect, MachineEvent};
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
    Rules { has_failure_callback: true, ..waiting() }
}

fn group() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..waiting() }
}

/// A child that takes a second for everything.
fn slow() -> FakeChild {
    fake("b").stops(secs(1))
}

/// The answers to all requests about `b`, each in a world that was just made.
fn answers(sim: &impl Fn() -> Simulation) -> [String; 8] {
    REQUESTS.map(|request| {
        let mut sim = sim();
        let (key, lifecycle) = (sim.key("b"), sim.lifecycle("b"));
        let ticket = sim.ask_for(key, request);
        // Waiting callers are answered within a few seconds.
        sim.advance(secs(5));
        let answer = sim.answer(ticket);
        if answer == format!("unfit {lifecycle}") { "·".to_owned() } else { answer.to_owned() }
    })
}

/// A line of a table of answers. A dot: there is nothing to do in this state.
fn row(name: &str, sim: impl Fn() -> Simulation) -> String {
    let [a, b, c, d, e, f, g, h] = answers(&sim);
    format!("{name:13} {a:9} {b:9} {c:10} {d:10} {e:4} {f:10} {g:9} {h}")
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_ordered_child() {
    fn begin(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
        let mut sim = Simulation::ordered(rules, fakes);
        sim.advance(Duration::ZERO);
        sim
    }
    let rows = [
        row("turn to come", || begin(rules(), [fake("a").signals(secs(2)), slow()])),
        row("gated", || {
            let a = fake("a").signals(Duration::ZERO).scripts([Script::Ignore]);
            begin(rules(), [a, slow().requires("a")])
        }),
        row("activating", || begin(rules(), [slow().signals(secs(2))])),
        row("active", || begin(rules(), [slow()])),
        row("in a group", || begin(group(), [fake("a"), slow()])),
        row("backoff", || {
            let mut sim = begin(waiting(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("asking", || {
            let mut sim = begin(asking(), [slow().silent()]);
            sim.fail("b");
            sim
        }),
        row("awaiting", || {
            let mut sim = begin(group(), [fake("a"), slow()]);
            sim.fail("b");
            sim
        }),
        row("its group", || {
            let mut sim = begin(group(), [fake("a"), slow()]);
            sim.fail("a");
            sim.advance(secs(1));
            sim
        }),
        row("stops: group", || {
            let mut sim =
                begin(Rules { strategy: Strategy::OneForAll, ..rules() }, [fake("a"), slow()]);
            sim.fail("a");
            sim
        }),
        row("stops: hand", || {
            let mut sim = begin(rules(), [slow()]);
            sim.ask("b", ChildRequest::Terminate);
            sim
        }),
        row("stops: self", || {
            let mut sim = begin(rules(), [slow().transient()]);
            let key = sim.key("b");
            sim.event(MachineEvent::StopSelf { key, incarnation: 1 });
            sim
        }),
        row("stops: fails", || {
            let b = slow().signals(None).activation_timeout(secs(1));
            let mut sim = begin(rules(), [b]);
            sim.advance(secs(1));
            sim.fake("b").ready = Some(ms(1));
            sim
        }),
        row("finished", || {
            let mut sim = begin(rules(), [slow().transient()]);
            sim.end("b");
            sim
        }),
        row("by hand", || {
            let mut sim = begin(rules(), [slow()]);
            sim.ask("b", ChildRequest::Terminate);
            sim.advance(secs(1));
            sim
        }),
        row("ignored", || begin(rules(), [slow().signals(ms(0)).scripts([Script::Ignore])])),
        row("given up", || {
            let mut sim = begin(parking(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("left", || {
            let mut sim =
                begin(group(), [fake("a"), slow().on_exit(ExitKind::Failed, OnExit::Leave)]);
            sim.fail("b");
            sim
        }),
        row("stopped", || {
            let mut sim = begin(stopping(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("pauses", || {
            let mut sim = begin(pausing(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("parked group", || {
            let mut sim =
                begin(Rules { strategy: Strategy::OneForAll, ..parking() }, [fake("a"), slow()]);
            sim.fail("a");
            sim.advance(secs(1));
            sim
        }),
        row("leaked", || {
            let b = fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut sim = begin(rules(), [b]);
            sim.call("b", ChildRequest::Kill);
            sim.advance(secs(1));
            sim.fake("b").dies = Some(ms(1));
            sim
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
    fn begin(rules: Rules, b: FakeChild) -> Simulation {
        Simulation::dynamic(rules, [b])
    }
    let rows = [
        row("activating", || begin(rules(), slow().signals(secs(2)))),
        row("active", || begin(rules(), slow())),
        row("asking", || {
            let mut sim = begin(asking(), slow().silent());
            sim.fail("b");
            sim
        }),
        row("backoff", || {
            let mut sim = begin(waiting(), slow());
            sim.fail("b");
            sim
        }),
        row("stops: hand", || {
            let mut sim = begin(rules(), slow());
            sim.ask("b", ChildRequest::Terminate);
            sim
        }),
        row("stops: renew", || {
            let mut sim = begin(rules(), slow());
            sim.ask("b", ChildRequest::RestartRunning);
            sim
        }),
        row("given up", || {
            let mut sim = begin(parking(), slow());
            sim.fail("b");
            sim
        }),
        row("stopped", || {
            let mut sim = begin(stopping(), slow());
            sim.fail("b");
            sim
        }),
        row("pauses", || {
            let mut sim = begin(pausing(), slow());
            sim.fail("b");
            sim
        }),
        row("leaked", || {
            let b = fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut sim = begin(rules(), b);
            sim.call("b", ChildRequest::Kill);
            sim.advance(secs(1));
            sim.fake("b").dies = Some(ms(1));
            sim
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
        let mut sim = Simulation::running(rules(), [fake("a"), slow().temporary()]);
        sim.end("b");
        sim
    };
    let dynamic = || {
        let mut sim = Simulation::dynamic(rules(), [fake("a"), slow().transient()]);
        sim.end("b");
        sim
    };
    assert_eq!(answers(&ordered), ["not found"; 8]);
    assert_eq!(answers(&dynamic), ["not found"; 8]);
}

#[test]
fn a_supervisor_that_is_stopping_refuses_everything() {
    let ordered = || {
        let mut sim = Simulation::running(rules(), [slow().stops(secs(4))]);
        sim.stop();
        sim
    };
    let dynamic = || {
        let mut sim = Simulation::dynamic(rules(), [slow().stops(secs(4))]);
        sim.stop();
        sim
    };
    assert_eq!(answers(&ordered), ["shutting down"; 8]);
    assert_eq!(answers(&dynamic), ["shutting down"; 8]);
}

#[test]
fn a_caller_that_waits_for_a_child_is_answered_with_the_outcome() {
    // Each is asked for, then something else happens.
    let asked = |request: ChildRequest, b: FakeChild| {
        let mut sim = Simulation::running(rules(), [fake("a"), b]);
        let ticket = sim.ask("b", request);
        (sim, ticket)
    };

    let (mut sim, ticket) = asked(ChildRequest::RestartRunning, slow());
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.answer(ticket), "shutting down");

    let (mut sim, ticket) = asked(ChildRequest::RestartRunning, slow());
    let second = sim.ask("b", ChildRequest::Terminate);
    sim.advance(secs(9));
    assert_eq!((sim.answer(ticket), sim.answer(second)), ("stopped", "done"));

    let (mut sim, ticket) = asked(ChildRequest::Terminate, slow());
    sim.stop();
    sim.advance(secs(9));
    assert_eq!(sim.answer(ticket), "done");

    // Killed, it is what the failure says.
    let (mut sim, ticket) = asked(ChildRequest::Terminate, slow());
    sim.ask("b", ChildRequest::Kill);
    sim.settle();
    assert_eq!(sim.answer(ticket), "done");
    assert!(sim.story("b").ends_with("stopped (killed)"));
}

#[test]
fn the_end_of_a_temporary_child_answers_only_the_caller_that_terminates_it() {
    let mut sim = Simulation::running(group(), [fake("a"), slow().temporary()]);
    let ticket = sim.ask("b", ChildRequest::Terminate);
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "done");

    let mut sim = Simulation::running(group(), [fake("a"), slow().temporary()]);
    let renewed = sim.ask("b", ChildRequest::RestartRunning);
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "0ns cancel b, 1s removed b, 1s cancel a, 1s start a#2");
    assert_eq!(sim.answer(renewed), "stopped", "its group forgets it");
}

#[test]
fn a_supervisor_that_has_ended_says_nothing_more() {
    fn check(mut sim: Simulation) {
        let key = sim.key("b");
        sim.stop();
        sim.advance(secs(1));
        assert!(sim.finished());
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
            sim.machine.on_event(event, sim.now, &mut effects);
            assert!(effects.is_empty(), "{effects:?}");
        }
    }
    check(Simulation::running(rules(), [fake("a"), slow()]));
    check(Simulation::dynamic(rules(), [fake("a"), slow()]));
}

#[test]
fn a_child_that_is_terminated_after_it_failed_has_ended_as_it_failed() {
    let late = fake("b").signals(None).activation_timeout(secs(1)).stops(secs(1));
    let mut ordered = Simulation::ordered(rules(), [late.clone()]);
    let mut dynamic = Simulation::dynamic(rules(), [late]);
    fn check(sim: &mut Simulation) {
        sim.advance(secs(1));
        let ticket = sim.ask("b", ChildRequest::Terminate);
        sim.advance(secs(1));
        assert_eq!(sim.answer(ticket), "done");
    }
    check(&mut ordered);
    check(&mut dynamic);
    assert!(ordered.story("b").ends_with("activating → errored (activation_timed_out) → stopped"));
    assert!(dynamic.timed().ends_with("2s removed b"));
}

#[test]
fn a_manual_start_that_fails_is_the_callers_alone() {
    let b = fake("b").signals(Duration::ZERO).scripts([Script::Run, Script::Fail]);
    let mut sim = Simulation::running(rules(), [fake("a"), b]);
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.call("b", ChildRequest::RestartStopped), "failed activation_failed");
    sim.advance(secs(60));
    assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
    assert_eq!(sim.call("b", ChildRequest::RestartStopped), "started 3");

    // One that was just added is forgotten.
    let ticket = sim.add(fake("c").signals(Duration::ZERO).scripts([Script::Panic]));
    sim.settle();
    assert_eq!(sim.answer(ticket), "failed panicked");
    assert!(sim.acts().ends_with("start c#1, removed c"));

    // One that declines is kept.
    let ticket = sim.add(fake("d").signals(Duration::ZERO).scripts([Script::Ignore]));
    sim.settle();
    assert_eq!(sim.answer(ticket), "ignored");
    assert_eq!(sim.call("d", ChildRequest::RestartStopped), "started 2");
}

#[test]
fn a_child_added_during_a_group_restart_is_started_in_order() {
    let fakes = [fake("a"), fake("b").stops(secs(1))];
    let mut sim = Simulation::running(group(), fakes);
    sim.fail("a");
    let ticket = sim.add(fake("c"));
    assert_eq!(sim.call("a", ChildRequest::Wake), "done");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel b, 1s start a#2, 1s start b#2, 1s start c#1");
    assert_eq!(sim.answer(ticket), "started 1");
}

#[test]
fn a_child_terminated_before_or_at_its_start_is_not_started() {
    let mut sim = Simulation::running(group(), [fake("a"), fake("b")]);
    sim.fail("a");
    let ticket = sim.add(fake("c"));
    assert_eq!(sim.call("c", ChildRequest::Terminate), "done");
    assert_eq!(sim.answer(ticket), "stopped", "before");

    let ticket = sim.add(fake("d").signals(secs(9)));
    sim.call("a", ChildRequest::Wake);
    assert_eq!(sim.answer(ticket), "-");
    assert_eq!(sim.call("d", ChildRequest::Terminate), "done");
    assert_eq!(sim.answer(ticket), "stopped", "in");
}

#[test]
fn a_child_down_before_its_group_stopped_is_about_to_be_restarted() {
    let fakes = [fake("a").transient(), fake("b").stops(secs(1)), fake("c")];
    for request in [ChildRequest::RestartStopped, ChildRequest::Delete] {
        let mut sim = Simulation::running(group(), fakes.clone());
        sim.end("a");
        sim.fail("c");
        assert_eq!(sim.why("a"), Some("finished"), "the group has not come to it");
        assert_eq!(sim.call("a", request), "restarting");
        sim.advance(secs(10));
        assert_eq!(sim.timed(), "0ns cancel b, 9s start a#2, 9s start b#2, 9s start c#2");
    }
}

#[test]
fn a_range_being_parked_starts_only_children_that_are_down_already() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d")];
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, fakes);
    sim.call("b", ChildRequest::Terminate);
    sim.skip();
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel d, cancel c");
    assert_eq!(sim.call("b", ChildRequest::RestartStopped), "stopped");
    assert_eq!(sim.call("d", ChildRequest::RestartStopped), "started 2");
    sim.fail("d");
    assert_eq!(sim.acts(), "start d#2, gave up d");
    sim.advance(secs(9));
    assert_eq!(sim.alive(), "");
}

#[test]
fn a_child_that_is_added_while_a_range_is_being_parked_is_not_of_the_range() {
    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").stops(secs(1)), fake("c")]);
    sim.fail("a");
    let d = sim.add(fake("d"));
    assert_eq!(sim.acts(), "gave up a, cancel c, cancel b, start d#1");
    assert_eq!(sim.answer(d), "started 1", "after the last one has gone");

    let rules = Rules { strategy: Strategy::OneForAll, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").stops(secs(1))]);
    sim.fail("a");
    let d = sim.add(fake("d"));
    assert_eq!(sim.acts(), "gave up a, cancel b, start d#1");
    assert_eq!(sim.answer(d), "started 1", "while the last one goes");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "");
    assert_eq!(sim.alive(), "d#1");
}

#[test]
fn a_child_that_is_deleted_and_added_again_is_the_last() {
    let mut sim = Simulation::named(rules(), "a b c");
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.call("b", ChildRequest::Delete), "done");
    sim.add(fake("b"));
    sim.skip();
    sim.stop();
    assert_eq!(sim.acts(), "cancel b, cancel c, cancel a, finish stopped");
}

#[test]
fn a_killed_child_has_failed() {
    let mut sim = Simulation::running(group(), [fake("a"), slow()]);
    assert_eq!(sim.call("b", ChildRequest::Kill), "done");
    sim.advance(secs(10));
    assert_eq!(sim.timed(), "0ns abort b, 0ns cancel a, 9s start a#2, 9s start b#2");
    assert!(sim.story("b").starts_with("active → errored (aborted) → restarting"));
}

#[test]
fn a_child_in_backoff_can_be_terminated_and_restarted() {
    let mut sim = Simulation::named(waiting(), "a b");
    sim.fail("b");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    sim.advance(secs(60));
    assert_eq!(sim.acts(), "");
    assert_eq!(sim.call("b", ChildRequest::RestartStopped), "started 2");
}

#[test]
fn a_gated_child_starts_when_a_new_one_of_that_name_comes() {
    let a = || fake("a").signals(ms(1));
    let mut sim =
        Simulation::ordered(rules(), [a().scripts([Script::Ignore]), fake("b").requires("a")]);
    sim.advance(secs(1));
    assert_eq!(sim.call("a", ChildRequest::Delete), "done");
    sim.skip();
    sim.add(a());
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#1, start b#1");
}

#[test]
fn a_cancelled_child_that_is_aborted_from_outside_was_not_killed_by_its_supervisor() {
    let mut sim = Simulation::running(rules(), [fake("a"), slow()]);
    sim.ask("b", ChildRequest::Terminate);
    sim.exit("b", ExitReason::Aborted);
    assert!(sim.story("b").ends_with("stopped (aborted)"));
    sim.call("b", ChildRequest::RestartStopped);

    sim.ask("b", ChildRequest::Terminate);
    sim.ask("b", ChildRequest::Kill);
    sim.settle();
    assert!(sim.story("b").ends_with("stopped (killed)"), "by its supervisor's hand");
}

#[test]
fn a_child_terminated_while_its_group_stops_can_be_requested_again_and_starts_with_it() {
    let mut sim = Simulation::running(group(), [fake("a"), slow(), fake("c")]);
    sim.fail("c");
    assert_eq!(sim.call("a", ChildRequest::Terminate), "done");
    let ticket = sim.ask("a", ChildRequest::RestartStopped);
    assert_eq!(sim.answer(ticket), "-", "it is not told that it stays down");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns cancel b, 0ns cancel a, 9s start a#2, 9s start b#2, 9s start c#2");
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn a_stopping_child_is_about_to_be_restarted_only_if_its_group_is() {
    let stopping = |rules| {
        let mut sim = Simulation::running(rules, [fake("a"), slow(), fake("c")]);
        sim.fail("c");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Deactivating);
        sim
    };
    assert_eq!(stopping(group()).call("b", ChildRequest::RestartRunning), "restarting");
    let parking = Rules { strategy: Strategy::OneForAll, ..parking() };
    assert_eq!(stopping(parking).call("b", ChildRequest::RestartRunning), "unfit deactivating");

    // By itself, it is restarted at once.
    let mut sim = Simulation::running(rules(), [fake("a"), slow()]);
    sim.ask("b", ChildRequest::RestartRunning);
    assert_eq!(sim.call("b", ChildRequest::RestartRunning), "restarting");
}

#[test]
fn a_finished_child_behind_a_stopping_group_can_be_restarted() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let c = fake("c").signals(None).stops(secs(1));
    let mut sim = Simulation::ordered(rules, [fake("a").transient(), fake("b"), c]);
    sim.settle();
    sim.end("a");
    sim.fail("b");
    assert_eq!(sim.acts(), "start a#1, start b#1, start c#1, cancel c");
    let ticket = sim.ask("a", ChildRequest::RestartStopped);
    assert_eq!(sim.answer(ticket), "-", "at its turn");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "1s start a#2, 1s start b#2, 1s start c#2");
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn parking_a_range_within_a_larger_one_keeps_the_larger_range() {
    let rules = Rules { strategy: Strategy::RestForOne, ..parking() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("z"), slow(), fake("c")]);
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel c, cancel b");
    assert_eq!(sim.call("c", ChildRequest::RestartStopped), "started 2");
    sim.fail("c");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns start c#2, 0ns gave up c, 1s cancel z");
    assert_eq!(sim.alive(), "");
}

#[test]
fn a_part_that_comes_back_is_not_stopped_anew_for_one_more_of_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let first = fake("a").consecutive(0).on_exhausted(OnExhausted::Park);
    let last = || fake("d").on_leak(OnLeak::Park);
    let fakes = [first, fake("b").stops(secs(99)).shutdown(Shutdown::Infinity), fake("c"), last()];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, cancel d, cancel c, cancel b");

    // Of the range that is being parked, the last comes back, but leaks when it is restarted.
    assert_eq!(sim.call("d", ChildRequest::RestartStopped), "started 2");
    *sim.fake("d") = last().leaks();
    sim.ask("d", ChildRequest::RestartRunning);
    sim.advance(secs(10));
    assert_eq!(sim.why("d"), Some("leaked"));
    assert_eq!(sim.call("c", ChildRequest::RestartStopped), "started 2");
    sim.skip();
    assert_eq!(sim.call("d", ChildRequest::Retry), "-");
    assert_eq!(sim.acts(), "", "a child that a call started keeps running");
    sim.advance(secs(99));
    assert_eq!(sim.acts(), "start d#3");
    assert_eq!(sim.alive(), "c#2 d#3");
}

#[test]
fn a_child_terminated_while_down_is_reported_once_if_it_would_have_come_back() {
    let told = |mut sim: Simulation| {
        let event = MachineEvent::Request {
            ticket: 0,
            key: sim.key("a"),
            request: ChildRequest::Terminate,
        };
        let mut effects = Vec::new();
        sim.machine.on_event(event, sim.now, &mut effects);
        let edges = effects.iter().filter(|it| matches!(it, Effect::Report(_))).count();
        let stays = effects.iter().filter(|it| matches!(it, Effect::StaysDown { .. })).count();
        (edges, stays)
    };

    let mut waits = Simulation::running(waiting(), [fake("a")]);
    waits.fail("a");
    assert_eq!(told(waits), (1, 0));

    let mut down = Simulation::running(rules(), [fake("a").transient().on_message()]);
    down.send("a");
    down.settle();
    down.end("a");
    assert_eq!(told(down), (0, 1), "a message would have started it");

    let mut down = Simulation::running(rules(), [fake("a").transient()]);
    down.end("a");
    assert_eq!(told(down), (0, 0));
}
