//! The failure callback, and policies that an incarnation sets for itself.

use std::time::Duration;

use crate::core::ChildRequest;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, fake, ms, rules, secs};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::Resolution::{Escalate, GiveUp, Restart};
use crate::policy::{
    Backoff, FailureDecision, FirstStart, Intensity, OnExhausted, OnExit, RestartPolicy,
    RestartType, Rules, Strategy,
};

fn asking() -> Rules {
    Rules { has_failure_callback: true, ..rules() }
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

fn silent(name: &str) -> FakeChild {
    fake(name).silent()
}

/// Two children on which the callback decides only when a test sends its decision.
fn pair(rules: Rules) -> Simulation {
    Simulation::running(rules, [silent("a"), silent("b")])
}

#[test]
fn a_child_is_errored_until_the_callback_decides_and_its_siblings_go_on() {
    let mut sim = pair(asking());
    sim.fail("b");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
    assert_eq!(sim.why("b"), Some("being decided on"));
    assert_eq!(sim.call("a", ChildRequest::RESTART), "started 2");
    sim.add(fake("c"));
    assert_eq!(sim.acts(), "ask b#1 (1), cancel a, start a#2, start c#1");

    sim.decide("b", Restart.into());
    sim.settle();
    assert_eq!(sim.acts(), "start b#2");
    assert_eq!(sim.story("b"), "active → errored (failed) → resolved → activating → active");
}

#[test]
fn the_wait_counts_from_the_failure_however_long_the_answer_took() {
    for (answered, started) in [(0, 3_000), (1_000, 3_000), (2_999, 3_000), (4_000, 4_000)] {
        let b = fake("b").answers([(ms(answered), Restart)]);
        let mut sim = Simulation::running(waiting(secs(3), asking()), [b]);
        sim.fail("b");
        sim.advance(secs(9));
        let expected = format!("0ns ask b#1 (1), {:?} start b#2", ms(started));
        assert_eq!(sim.timed(), expected);
    }
}

#[test]
fn the_intensity_is_looked_at_when_the_answer_is_there() {
    // Both fail at once, and one restart is allowed within a second.
    let both = |later: Duration| {
        let a = fake("a").answers([(Duration::ZERO, Restart)]);
        let b = fake("b").answers([(later, Restart)]);
        let mut sim = Simulation::running(limited(1, secs(1), asking()), [a, b]);
        sim.crash("a");
        sim.fail("b");
        sim.advance(secs(4));
        sim.acts()
    };
    let calls = "ask a#1 (1), ask b#1 (1), start a#2";
    assert_eq!(
        both(ms(1_001)),
        format!("{calls}, start b#2"),
        "the other restart no longer counts"
    );
    let ended = "gave up b, cancel a, finish escalated b: failed";
    assert_eq!(both(ms(1_000)), format!("{calls}, {ended}"));
}

#[test]
fn the_range_is_that_of_the_moment_when_the_answer_is_there() {
    let rules = Rules { strategy: Strategy::RestForOne, ..asking() };
    let mut sim = Simulation::running(rules, [fake("a"), silent("b"), fake("c")]);
    sim.fail("b");
    sim.add(fake("d"));
    sim.call("c", ChildRequest::Terminate);
    assert_eq!(sim.acts(), "ask b#1 (1), start d#1, cancel c");
    sim.decide("b", Restart.into());
    sim.settle();
    assert_eq!(sim.acts(), "cancel d, start b#2, start c#2, start d#2");
}

#[test]
fn a_decision_to_give_up_leaves_the_child_errored_and_charges_nothing() {
    for rules in [asking(), one_for_all()] {
        let mut sim = pair(limited(1, secs(60), rules));
        sim.fail("b");
        sim.decide("b", GiveUp.into());
        sim.advance(secs(60));
        assert_eq!(sim.acts(), "ask b#1 (1), declined b");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
        assert_eq!(sim.why("b"), Some("given up"));
        sim.check_rest();

        assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
        assert_eq!(sim.alive(), "a#1 b#2");
        sim.fail("a");
        sim.decide("a", Restart.into());
        sim.settle();
        assert!(!sim.finished(), "it is the first restart that counts");
    }
}

#[test]
fn an_escalation_ends_the_supervisor_with_the_childs_own_reason() {
    for rules in [asking(), one_for_all()] {
        let mut sim = pair(rules);
        sim.exit("b", ExitReason::Hung(Duration::from_secs(30)));
        sim.decide("b", Escalate.into());
        sim.settle();
        assert_eq!(sim.acts(), "ask b#1 (1), escalated b, cancel a, finish failed b: hung");
    }
}

#[test]
fn no_answer_within_five_seconds_is_an_escalation() {
    let mut sim = pair(asking());
    sim.fail("b");
    sim.advance(ms(4_999));
    assert_eq!(sim.acts(), "ask b#1 (1)");
    sim.advance(ms(1));
    assert_eq!(sim.acts(), "no answer b#1, escalated b, cancel a, finish failed b: failed");

    let mut sim = pair(asking());
    sim.fail("b");
    sim.now += secs(5);
    // The decision arrives at the deadline, and is handled first.
    sim.decide("b", Restart.into());
    sim.settle();
    assert_eq!(sim.acts(), "ask b#1 (1), start b#2");
}

#[test]
fn whatever_stops_starts_or_forgets_the_child_discards_the_answer() {
    let answers =
        || [Restart, GiveUp, Escalate].map(|answer| FailureDecision::from(answer).with(7));
    let after = |act: fn(&mut Simulation), acts: &str, alive: &str| {
        for decision in answers() {
            let mut sim = pair(asking());
            sim.fail("b");
            sim.skip();
            act(&mut sim);
            sim.settle();
            sim.decide("b", decision);
            sim.advance(secs(9));
            assert_eq!((&*sim.acts(), &*sim.alive()), (acts, alive));
        }
    };
    fn request(sim: &mut Simulation, request: ChildRequest) {
        sim.request("b", request);
    }
    after(|sim| request(sim, ChildRequest::Terminate), "", "a#1");
    after(|sim| request(sim, ChildRequest::Delete), "removed b", "a#1");
    after(Simulation::stop, "cancel a, finish stopped", "");
    let again = |sim: &mut Simulation| {
        sim.request("b", ChildRequest::Terminate);
        sim.request("b", ChildRequest::RESTART_CHILD);
    };
    after(again, "start b#2", "a#1 b#2");
}

#[test]
fn a_group_operation_absorbs_a_child_that_awaits_a_decision() {
    for answer in [Restart, GiveUp, Escalate] {
        let fakes = [silent("a"), silent("b"), fake("c").stops(secs(1))];
        let mut sim = Simulation::running(one_for_all(), fakes);
        sim.crash("a");
        sim.fail("b");
        sim.decide("a", Restart.into());
        // The group operation has yet to stop it.
        sim.decide("b", FailureDecision::from(answer).with(7));
        sim.advance(secs(9));
        let calls = "0ns ask a#1 (1), 0ns ask b#1 (1), 0ns cancel c";
        assert_eq!(sim.timed(), format!("{calls}, 1s start a#2, 1s start b#2, 1s start c#2"));
        assert_eq!(
            sim.story("b"),
            "active → errored (failed) → stopped → resolved → activating → active"
        );
    }
}

#[test]
fn a_decision_that_no_child_awaits_changes_nothing() {
    let mut sim = pair(asking());
    sim.decide("b", FailureDecision::escalate().with(7));
    sim.fail("b");
    sim.decide("b", FailureDecision::restart().with(7));
    sim.decide("b", FailureDecision::escalate().with(7));
    sim.settle();
    assert_eq!(sim.acts(), "ask b#1 (1), changed b, start b#2");
}

#[test]
fn an_answer_about_an_earlier_run_changes_nothing() {
    let b = fake("b").answers([(secs(2), Escalate), (secs(4), Restart)]);
    let mut sim = Simulation::running(asking(), [fake("a"), b]);
    sim.fail("b");
    sim.call("b", ChildRequest::Terminate);
    sim.call("b", ChildRequest::RESTART_CHILD);
    sim.fail("b");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns ask b#1 (1), 0ns start b#2, 0ns ask b#2 (1), 4s start b#3");
}

#[test]
fn only_failures_that_would_be_followed_by_a_restart_are_asked_about() {
    let mut sim = Simulation::running(
        asking(),
        [fake("a"), fake("b").transient(), fake("c").temporary(), fake("d")],
    );
    sim.end("a");
    sim.end("b");
    sim.fail("c");
    sim.call("d", ChildRequest::Terminate);
    assert_eq!(sim.acts(), "start a#2, removed c, cancel d");

    // A child that is stopped with its group may fail meanwhile.
    let b = silent("b").stops(secs(1));
    let mut sim = Simulation::running(one_for_all(), [fake("a"), b]);
    sim.fail("a");
    sim.fail("b");
    assert_eq!(sim.acts(), "ask a#1 (1), cancel b, start a#2, start b#2");
}

#[test]
fn a_requested_start_that_fails_concerns_only_its_caller() {
    let b = fake("b").signals(Duration::ZERO).scripts([Script::Run, Script::Fail, Script::Fail]);
    let mut sim = Simulation::running(asking(), [fake("a"), b]);
    sim.call("b", ChildRequest::Terminate);
    sim.skip();
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "failed activation_failed");
    sim.add(fake("c").signals(Duration::ZERO).scripts([Script::Panic]));
    sim.settle();
    assert_eq!(sim.acts(), "start b#2, start c#1, removed c");

    // But a new start of a running child does not.
    sim.call("b", ChildRequest::RESTART_CHILD);
    sim.call("b", ChildRequest::RESTART_CHILD);
    sim.fake("b").scripts.push_back(Script::Fail);
    sim.skip();
    assert_eq!(sim.call("b", ChildRequest::RESTART), "failed activation_failed");
    assert_eq!(sim.acts(), "cancel b, start b#5, ask b#5 (1), start b#6");
}

#[test]
fn a_first_start_is_asked_about_and_holds_up_the_next_unless_it_must_not_fail() {
    let b =
        || fake("b").signals(Duration::ZERO).scripts([Script::Fail]).answers([(secs(1), Restart)]);
    let mut sim = Simulation::ordered(asking(), [fake("a"), b(), fake("c")]);
    sim.advance(secs(2));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 0ns start b#1, 0ns ask b#1 (1), 1s start b#2, 1s start c#1, 1s up"
    );

    let strict = Rules { first_start: FirstStart::Fail, ..asking() };
    let mut sim = Simulation::ordered(strict, [fake("a"), b()]);
    sim.advance(secs(2));
    assert!(sim.acts().ends_with("gave up b, cancel a, finish start failed b: activation_failed"));
}

#[test]
fn a_child_given_up_at_its_first_start_lets_the_next_start() {
    let b = fake("b").signals(Duration::ZERO).scripts([Script::Fail]);
    let b = b.answers([(Duration::ZERO, GiveUp)]);
    let mut sim = Simulation::ordered(asking(), [b, fake("c")]);
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start b#1, ask b#1 (1), declined b, start c#1, up");
}

#[test]
fn a_restart_that_is_wanted_and_not_allowed_is_what_the_rules_say() {
    let parked = Rules { on_exhausted: OnExhausted::Park, ..limited(0, secs(1), asking()) };
    let mut sim = Simulation::running(parked, [fake("a")]);
    sim.fail("a");
    assert_eq!(sim.acts(), "ask a#1 (1), gave up a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Errored);
}

#[test]
fn attempts_are_counted_as_restarts_are() {
    let mut sim = Simulation::running(waiting(ms(10), asking()), [fake("a")]);
    for _ in 0..3 {
        sim.fail("a");
        sim.advance(ms(10));
    }
    sim.child_event("a", |key, incarnation| crate::core::MachineEvent::Healthy {
        key,
        incarnation,
    });
    sim.fail("a");
    assert_eq!(
        sim.acts(),
        "ask a#1 (1), start a#2, ask a#2 (2), start a#3, ask a#3 (3), start a#4, ask a#4 (1)"
    );
}

#[test]
fn the_callback_decides_on_an_aborted_failing_child_when_it_is_gone() {
    let b = silent("b").signals(None).activation_timeout(secs(1)).stops(secs(2));
    let mut sim = Simulation::ordered(asking(), [b]);
    sim.advance(secs(3));
    assert_eq!(sim.timed(), "0ns start b#1, 1s cancel b, 3s ask b#1 (1)");
    sim.advance(secs(5));
    assert!(sim.timed().starts_with("8s no answer b#1"), "five seconds after the call");
}

#[test]
fn equal_children_are_asked_about_one_by_one() {
    let mut sim =
        Simulation::dynamic(asking(), [silent("a"), silent("b"), silent("c"), silent("d")]);
    for name in ["a", "b", "c", "d"] {
        sim.fail(name);
    }
    sim.skip();
    sim.decide("a", Restart.into());
    sim.decide("b", GiveUp.into());
    assert_eq!(sim.call("c", ChildRequest::Terminate), "done");
    sim.decide("c", Restart.into());
    assert_eq!(sim.acts(), "start a#2, declined b, removed c");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
    sim.skip();

    sim.decide("d", Escalate.into());
    sim.settle();
    assert_eq!(
        sim.acts(),
        "escalated d, removed d, cancel b, cancel a, removed b, removed a, \
         finish failed d: failed"
    );

    // A stop of many children takes several events, and ends all pending decisions.
    for answer in [Restart, GiveUp, Escalate] {
        let fakes = (0..100).map(|number| silent(&format!("c{number}")));
        let mut sim = Simulation::dynamic(asking(), fakes);
        sim.fail("c0");
        sim.event(crate::core::MachineEvent::Stop { within: None });
        sim.decide("c0", FailureDecision::from(answer).with(7));
        sim.skip();
        sim.settle();
        assert!(sim.acts().ends_with("removed c1, finish stopped"));
    }

    let mut sim = Simulation::dynamic(asking(), [silent("a"), silent("b")]);
    sim.fail("a");
    sim.skip();
    sim.stop();
    sim.decide("a", Escalate.into());
    assert_eq!(sim.acts(), "cancel b, removed a, removed b, finish stopped");
}

#[test]
fn what_a_child_says_of_its_restart_counts_for_one_incarnation() {
    let never = || RestartPolicy::new().restart(RestartType::Temporary);
    let mut sim =
        Simulation::running(waiting(secs(1), rules()), [fake("a"), fake("b").requires("a")]);
    sim.policy("a", never());
    sim.fail("a");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "", "it is not restarted, and its spec is kept");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Errored);
    assert_eq!(sim.why("a"), Some("not restarted"));
    assert_eq!(sim.call("b", ChildRequest::RESTART), "gated", "it has not finished");

    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 2");
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.live(sim.key("a")), Some(3), "the next incarnation sets no policy");

    sim.policy("a", never());
    sim.policy("a", None);
    sim.fail("a");
    sim.advance(secs(2));
    assert_eq!(sim.live(sim.key("a")), Some(4), "it has withdrawn its policy");

    sim.policy("a", RestartPolicy::new().backoff(Backoff::constant(secs(7))));
    for (wait, run) in [(secs(7), 5), (secs(1), 6)] {
        sim.fail("a");
        sim.advance(wait - ms(1));
        assert_eq!(sim.live(sim.key("a")), None);
        sim.advance(ms(1));
        assert_eq!(sim.live(sim.key("a")), Some(run));
    }
}

#[test]
fn a_temporary_child_may_want_to_come_back_and_is_forgotten_all_the_same_with_its_group() {
    let always = || RestartPolicy::new().restart(RestartType::Permanent);
    let mut sim = Simulation::running(rules(), [fake("a").temporary()]);
    sim.policy("a", always());
    sim.end("a");
    assert_eq!(sim.acts(), "start a#2");
    sim.end("a");
    assert_eq!(sim.acts(), "removed a");

    let fakes = [fake("a"), fake("b").temporary()];
    let mut sim = Simulation::running(Rules { strategy: Strategy::OneForAll, ..rules() }, fakes);
    sim.policy("b", always());
    sim.fail("a");
    assert_eq!(sim.acts(), "cancel b, removed b, start a#2");
}

/// An exception to its type would have restarted it, and its group does.
#[test]
fn a_temporary_child_that_is_being_decided_on_comes_back_with_its_group() {
    let rules = Rules {
        has_failure_callback: true,
        strategy: Strategy::OneForAll,
        backoff: Backoff::constant(ms(50)),
        ..rules()
    };
    let t = fake("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart).silent();
    let mut sim = Simulation::running(rules, [fake("a"), t]);
    sim.fail("t");
    sim.end("a");
    sim.advance(ms(50));
    assert_eq!(sim.timed(), "0ns ask t#1 (1), 50ms start a#2, 50ms start t#2");
}

#[test]
fn so_does_one_about_which_is_answered_while_its_group_is_still_stopping() {
    let rules = Rules { has_failure_callback: true, strategy: Strategy::OneForAll, ..rules() };
    let t = fake("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart);
    let t = t.answers([(ms(500), Restart)]);
    let mut sim = Simulation::running(rules, [fake("a"), t, fake("c").stops(secs(1))]);
    sim.fail("t");
    sim.end("a");
    sim.advance(secs(2));
    assert!(sim.acts().ends_with("start a#2, start t#2, start c#2"));
}
