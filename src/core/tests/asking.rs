//! What follows when somebody is asked about a failure, and when a child says itself how it is to be
//! restarted.

use std::time::Duration;

use super::super::ChildRequest;
use super::super::simulator::{Kid, Play, World, kid, ms, rules, secs};
use crate::exit::{ExitKind, ExitReason};
use crate::failure::FailureDecision;
use crate::failure::Resolution::{Escalate, GiveUp, Restart};
use crate::lifecycle::Lifecycle;
use crate::policy::{
    Backoff, FirstStart, Intensity, OnExhausted, OnExit, RestartPolicy, RestartType, Rules,
    Strategy,
};

fn asking() -> Rules {
    Rules { asks: true, ..rules() }
}

fn one_for_all() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..asking() }
}

fn waiting(wait: Duration, rules: Rules) -> Rules {
    Rules { backoff: Backoff::constant(wait), ..rules }
}

fn limited(max: u32, period: Duration, rules: Rules) -> Rules {
    Rules { intensity: Some(Intensity::sliding(max, period)), ..rules }
}

fn silent(name: &str) -> Kid {
    kid(name).silent()
}

/// Two children about whom nothing is answered by itself.
fn pair(rules: Rules) -> World {
    World::running(rules, [silent("a"), silent("b")])
}

#[test]
fn a_child_is_errored_until_there_is_an_answer_and_nobody_else_waits() {
    let mut world = pair(asking());
    world.fail("b");
    assert_eq!(world.lifecycle("b"), Lifecycle::Errored);
    assert_eq!(world.why("b"), Some("being decided on"));
    assert_eq!(world.call("a", ChildRequest::RestartRunning), "started 2");
    world.add(kid("c"));
    assert_eq!(world.acts(), "ask b#1 (1), cancel a, start a#2, start c#1");

    world.decide("b", Restart.into());
    world.settle();
    assert_eq!(world.acts(), "start b#2");
    assert_eq!(world.story("b"), "active → errored (failed) → resolved → activating → active");
}

#[test]
fn the_wait_counts_from_the_failure_however_long_the_answer_took() {
    for (answered, started) in [(0, 3_000), (1_000, 3_000), (2_999, 3_000), (4_000, 4_000)] {
        let b = kid("b").answers([(ms(answered), Restart)]);
        let mut world = World::running(waiting(secs(3), asking()), [b]);
        world.fail("b");
        world.advance(secs(9));
        let expected = format!("0ns ask b#1 (1), {:?} start b#2", ms(started));
        assert_eq!(world.timed(), expected);
    }
}

#[test]
fn the_intensity_is_looked_at_when_the_answer_is_there() {
    // Both fail at once, and one restart is allowed within a second.
    let both = |later: Duration| {
        let a = kid("a").answers([(Duration::ZERO, Restart)]);
        let b = kid("b").answers([(later, Restart)]);
        let mut world = World::running(limited(1, secs(1), asking()), [a, b]);
        world.crash("a");
        world.fail("b");
        world.advance(secs(4));
        world.acts()
    };
    let asked = "ask a#1 (1), ask b#1 (1), start a#2";
    assert_eq!(both(ms(1_001)), format!("{asked}, start b#2"), "the other one counts no longer");
    let ended = "gave up b, cancel a, finish escalated b: failed";
    assert_eq!(both(ms(1_000)), format!("{asked}, {ended}"));
}

#[test]
fn the_range_is_that_of_the_moment_when_the_answer_is_there() {
    let rules = Rules { strategy: Strategy::RestForOne, ..asking() };
    let mut world = World::running(rules, [kid("a"), silent("b"), kid("c")]);
    world.fail("b");
    world.add(kid("d"));
    world.call("c", ChildRequest::Terminate);
    assert_eq!(world.acts(), "ask b#1 (1), start d#1, cancel c");
    world.decide("b", Restart.into());
    world.settle();
    assert_eq!(world.acts(), "cancel d, start b#2, start c#2, start d#2");
}

#[test]
fn whoever_gives_up_leaves_the_child_errored_and_its_siblings_alone_and_nothing_is_charged() {
    for rules in [asking(), one_for_all()] {
        let mut world = pair(limited(1, secs(60), rules));
        world.fail("b");
        world.decide("b", GiveUp.into());
        world.advance(secs(60));
        assert_eq!(world.acts(), "ask b#1 (1), declined b");
        assert_eq!(world.lifecycle("b"), Lifecycle::Errored);
        assert_eq!(world.why("b"), Some("given up"));
        world.check_rest();

        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(world.alive(), "a#1 b#2");
        world.fail("a");
        world.decide("a", Restart.into());
        world.settle();
        assert!(!world.finished(), "the first one that counts");
    }
}

#[test]
fn an_escalation_ends_the_supervisor_with_the_childs_own_reason() {
    for rules in [asking(), one_for_all()] {
        let mut world = pair(rules);
        world.exit("b", ExitReason::Hung);
        world.decide("b", Escalate.into());
        world.settle();
        assert_eq!(world.acts(), "ask b#1 (1), escalated b, cancel a, finish failed b: hung");
    }
}

#[test]
fn no_answer_within_five_seconds_is_an_escalation() {
    let mut world = pair(asking());
    world.fail("b");
    world.advance(ms(4_999));
    assert_eq!(world.acts(), "ask b#1 (1)");
    world.advance(ms(1));
    assert_eq!(world.acts(), "no answer b#1, escalated b, cancel a, finish failed b: failed");

    let mut world = pair(asking());
    world.fail("b");
    world.now += secs(5);
    // It comes in together with the deadline, and is looked at first.
    world.decide("b", Restart.into());
    world.settle();
    assert_eq!(world.acts(), "ask b#1 (1), start b#2");
}

#[test]
fn whatever_stops_starts_or_forgets_the_child_discards_the_answer() {
    let answers =
        || [Restart, GiveUp, Escalate].map(|answer| FailureDecision::from(answer).with(7));
    let after = |act: fn(&mut World), acts: &str, alive: &str| {
        for decision in answers() {
            let mut world = pair(asking());
            world.fail("b");
            world.skip();
            act(&mut world);
            world.settle();
            world.decide("b", decision);
            world.advance(secs(9));
            assert_eq!((&*world.acts(), &*world.alive()), (acts, alive));
        }
    };
    fn request(world: &mut World, request: ChildRequest) {
        world.ask("b", request);
    }
    after(|world| request(world, ChildRequest::Terminate), "", "a#1");
    after(|world| request(world, ChildRequest::Delete), "removed b", "a#1");
    after(World::stop, "cancel a, finish stopped", "");
    let again = |world: &mut World| {
        world.ask("b", ChildRequest::Terminate);
        world.ask("b", ChildRequest::RestartStopped);
    };
    after(again, "start b#2", "a#1 b#2");
}

#[test]
fn a_group_operation_takes_along_whoever_is_being_decided_on() {
    for answer in [Restart, GiveUp, Escalate] {
        let kids = [silent("a"), silent("b"), kid("c").stops(secs(1))];
        let mut world = World::running(one_for_all(), kids);
        world.crash("a");
        world.fail("b");
        world.decide("a", Restart.into());
        // The operation has not come to it, and will.
        world.decide("b", FailureDecision::from(answer).with(7));
        world.advance(secs(9));
        let asked = "0ns ask a#1 (1), 0ns ask b#1 (1), 0ns cancel c";
        assert_eq!(world.timed(), format!("{asked}, 1s start a#2, 1s start b#2, 1s start c#2"));
        assert_eq!(
            world.story("b"),
            "active → errored (failed) → stopped → resolved → activating → active"
        );
    }
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let mut world = pair(asking());
    world.decide("b", FailureDecision::escalate().with(7));
    world.fail("b");
    world.decide("b", FailureDecision::restart().with(7));
    world.decide("b", FailureDecision::escalate().with(7));
    world.settle();
    assert_eq!(world.acts(), "ask b#1 (1), changed b, start b#2");
}

#[test]
fn an_answer_about_an_earlier_run_changes_nothing() {
    let b = kid("b").answers([(secs(2), Escalate), (secs(4), Restart)]);
    let mut world = World::running(asking(), [kid("a"), b]);
    world.fail("b");
    world.call("b", ChildRequest::Terminate);
    world.call("b", ChildRequest::RestartStopped);
    world.fail("b");
    world.advance(secs(9));
    assert_eq!(world.timed(), "0ns ask b#1 (1), 0ns start b#2, 0ns ask b#2 (1), 4s start b#3");
}

#[test]
fn only_failures_that_would_be_followed_by_a_restart_are_asked_about() {
    let mut world =
        World::running(asking(), [kid("a"), kid("b").transient(), kid("c").temporary(), kid("d")]);
    world.end("a");
    world.end("b");
    world.fail("c");
    world.call("d", ChildRequest::Terminate);
    assert_eq!(world.acts(), "start a#2, removed c, cancel d");

    // What is stopped with its group may fail then.
    let b = silent("b").stops(secs(1));
    let mut world = World::running(one_for_all(), [kid("a"), b]);
    world.fail("a");
    world.fail("b");
    assert_eq!(world.acts(), "ask a#1 (1), cancel b, start a#2, start b#2");
}

#[test]
fn a_start_that_somebody_waits_for_is_his_alone() {
    let b = kid("b").signals(Duration::ZERO).plays([Play::Run, Play::Fail, Play::Fail]);
    let mut world = World::running(asking(), [kid("a"), b]);
    world.call("b", ChildRequest::Terminate);
    world.skip();
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "failed activation_failed");
    world.add(kid("c").signals(Duration::ZERO).plays([Play::Panic]));
    world.settle();
    assert_eq!(world.acts(), "start b#2, start c#1, removed c");

    // But not the new start of one that runs.
    world.call("b", ChildRequest::RestartStopped);
    world.call("b", ChildRequest::RestartStopped);
    world.kid("b").plays.push_back(Play::Fail);
    world.skip();
    assert_eq!(world.call("b", ChildRequest::RestartRunning), "failed activation_failed");
    assert_eq!(world.acts(), "cancel b, start b#5, ask b#5 (1), start b#6");
}

#[test]
fn a_first_start_is_asked_about_and_holds_up_the_next_unless_it_must_not_fail() {
    let b = || kid("b").signals(Duration::ZERO).plays([Play::Fail]).answers([(secs(1), Restart)]);
    let mut world = World::ordered(asking(), [kid("a"), b(), kid("c")]);
    world.advance(secs(2));
    assert_eq!(
        world.timed(),
        "0ns start a#1, 0ns start b#1, 0ns ask b#1 (1), 1s start b#2, 1s start c#1, 1s up"
    );

    let strict = Rules { first_start: FirstStart::Fail, ..asking() };
    let mut world = World::ordered(strict, [kid("a"), b()]);
    world.advance(secs(2));
    assert!(
        world.acts().ends_with("gave up b, cancel a, finish start failed b: activation_failed")
    );
}

#[test]
fn one_that_is_given_up_at_its_first_start_has_passed() {
    let b = kid("b").signals(Duration::ZERO).plays([Play::Fail]);
    let b = b.answers([(Duration::ZERO, GiveUp)]);
    let mut world = World::ordered(asking(), [b, kid("c")]);
    world.advance(secs(1));
    assert_eq!(world.acts(), "start b#1, ask b#1 (1), declined b, start c#1, up");
}

#[test]
fn a_restart_that_is_wanted_and_not_allowed_is_what_the_rules_say() {
    let parked = Rules { on_exhausted: OnExhausted::Park, ..limited(0, secs(1), asking()) };
    let mut world = World::running(parked, [kid("a")]);
    world.fail("a");
    assert_eq!(world.acts(), "ask a#1 (1), gave up a");
    assert_eq!(world.lifecycle("a"), Lifecycle::Errored);
}

#[test]
fn attempts_are_counted_as_restarts_are() {
    let mut world = World::running(waiting(ms(10), asking()), [kid("a")]);
    for _ in 0..3 {
        world.fail("a");
        world.advance(ms(10));
    }
    world.says("a", |key, incarnation| super::super::MachineEvent::Healthy { key, incarnation });
    world.fail("a");
    assert_eq!(
        world.acts(),
        "ask a#1 (1), start a#2, ask a#2 (2), start a#3, ask a#3 (3), start a#4, ask a#4 (1)"
    );
}

#[test]
fn one_that_failed_and_had_to_be_aborted_is_asked_about_when_it_is_gone() {
    let b = silent("b").signals(None).activation_timeout(secs(1)).stops(secs(2));
    let mut world = World::ordered(asking(), [b]);
    world.advance(secs(3));
    assert_eq!(world.timed(), "0ns start b#1, 1s cancel b, 3s ask b#1 (1)");
    world.advance(secs(5));
    assert!(world.timed().starts_with("8s no answer b#1"), "five seconds from the question");
}

#[test]
fn equal_children_are_asked_about_one_by_one() {
    let mut world = World::dynamic(asking(), [silent("a"), silent("b"), silent("c"), silent("d")]);
    for name in ["a", "b", "c", "d"] {
        world.fail(name);
    }
    world.skip();
    world.decide("a", Restart.into());
    world.decide("b", GiveUp.into());
    assert_eq!(world.call("c", ChildRequest::Terminate), "done");
    world.decide("c", Restart.into());
    assert_eq!(world.acts(), "start a#2, declined b, removed c");
    assert_eq!(world.lifecycle("b"), Lifecycle::Errored);
    assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
    world.skip();

    world.decide("d", Escalate.into());
    world.settle();
    assert_eq!(
        world.acts(),
        "escalated d, removed d, cancel b, cancel a, removed b, removed a, \
         finish failed d: failed"
    );

    // A stop of many takes its time, and decides about all of them.
    for answer in [Restart, GiveUp, Escalate] {
        let kids = (0..100).map(|number| silent(&format!("c{number}")));
        let mut world = World::dynamic(asking(), kids);
        world.fail("c0");
        world.event(super::super::MachineEvent::Stop { within: None });
        world.decide("c0", FailureDecision::from(answer).with(7));
        world.skip();
        world.settle();
        assert!(world.acts().ends_with("removed c1, finish stopped"));
    }

    let mut world = World::dynamic(asking(), [silent("a"), silent("b")]);
    world.fail("a");
    world.skip();
    world.stop();
    world.decide("a", Escalate.into());
    assert_eq!(world.acts(), "cancel b, removed a, removed b, finish stopped");
}

#[test]
fn what_a_child_says_of_its_restart_counts_for_one_incarnation() {
    let never = || RestartPolicy::new().restart(RestartType::Temporary);
    let mut world = World::running(waiting(secs(1), rules()), [kid("a"), kid("b").requires("a")]);
    world.policy("a", never());
    world.fail("a");
    world.advance(secs(9));
    assert_eq!(world.acts(), "", "it is not restarted, and its spec is kept");
    assert_eq!(world.lifecycle("a"), Lifecycle::Errored);
    assert_eq!(world.why("a"), Some("not restarted"));
    assert_eq!(world.call("b", ChildRequest::RestartRunning), "gated", "it has not ended well");

    assert_eq!(world.call("a", ChildRequest::RestartStopped), "started 2");
    world.fail("a");
    world.advance(secs(1));
    assert_eq!(world.live(world.key("a")), Some(3), "the next one says nothing");

    world.policy("a", never());
    world.policy("a", None);
    world.fail("a");
    world.advance(secs(2));
    assert_eq!(world.live(world.key("a")), Some(4), "it has taken it back");

    world.policy("a", RestartPolicy::new().backoff(Backoff::constant(secs(7))));
    for (wait, run) in [(secs(7), 5), (secs(1), 6)] {
        world.fail("a");
        world.advance(wait - ms(1));
        assert_eq!(world.live(world.key("a")), None);
        world.advance(ms(1));
        assert_eq!(world.live(world.key("a")), Some(run));
    }
}

#[test]
fn a_temporary_child_may_want_to_come_back_and_is_forgotten_all_the_same_with_its_group() {
    let always = || RestartPolicy::new().restart(RestartType::Permanent);
    let mut world = World::running(rules(), [kid("a").temporary()]);
    world.policy("a", always());
    world.end("a");
    assert_eq!(world.acts(), "start a#2");
    world.end("a");
    assert_eq!(world.acts(), "removed a");

    let kids = [kid("a"), kid("b").temporary()];
    let mut world = World::running(Rules { strategy: Strategy::OneForAll, ..rules() }, kids);
    world.policy("b", always());
    world.fail("a");
    assert_eq!(world.acts(), "cancel b, removed b, start a#2");
}

/// An exception to its type would have brought it back, and its group does.
#[test]
fn a_temporary_child_that_is_being_decided_on_comes_back_with_its_group() {
    let rules = Rules {
        asks: true,
        strategy: Strategy::OneForAll,
        backoff: Backoff::constant(ms(50)),
        ..rules()
    };
    let t = kid("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart).silent();
    let mut world = World::running(rules, [kid("a"), t]);
    world.fail("t");
    world.end("a");
    world.advance(ms(50));
    assert_eq!(world.timed(), "0ns ask t#1 (1), 50ms start a#2, 50ms start t#2");
}

#[test]
fn so_does_one_about_which_is_answered_while_its_group_is_still_stopping() {
    let rules = Rules { asks: true, strategy: Strategy::OneForAll, ..rules() };
    let t = kid("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart);
    let t = t.answers([(ms(500), Restart)]);
    let mut world = World::running(rules, [kid("a"), t, kid("c").stops(secs(1))]);
    world.fail("t");
    world.end("a");
    world.advance(secs(2));
    assert!(world.acts().ends_with("start a#2, start t#2, start c#2"));
}
