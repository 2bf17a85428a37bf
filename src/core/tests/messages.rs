//! Children that are started by a message.

use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, MachineEvent};
use crate::exit::ExitKind;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, Backoff, OnExhausted, OnExit, OnLeak, RestartType, Rules, Start, StartCause,
    Strategy,
};

const GROUPS: [Strategy; 3] = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];

fn group(strategy: Strategy) -> Rules {
    Rules { strategy, ..rules() }
}

/// Started by a message, and left when it has ended well.
fn on_message(name: &str) -> FakeChild {
    fake(name).transient().on_message()
}

/// Started by a message, and never restarted.
fn left(name: &str) -> FakeChild {
    on_message(name).on_exit(ExitKind::Failed, OnExit::Leave)
}

fn sent(sim: &mut Simulation, name: &str) {
    sim.send(name);
    sim.settle();
}

fn returns(sim: &Simulation, name: &str) -> bool {
    sim.machine.returns(sim.key(name))
}

#[test]
fn a_message_starts_a_child_once_that_did_not_start_with_its_supervisor() {
    fn check(mut sim: Simulation) {
        assert_eq!(sim.alive(), "");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Discovered);
        assert_eq!(sim.why("a"), Some("waits for a message"));
        assert!(returns(&sim, "a"));
        for _ in 0..3 {
            sent(&mut sim, "a");
        }
        assert_eq!(sim.causes(), "a#1 on_message");
        assert_eq!(sim.why("a"), None);
        assert_eq!(sim.story("a"), "discovered → resolved → activating → active");
    }
    check(Simulation::running(rules(), [on_message("a")]));
    check(Simulation::dynamic(rules(), [on_message("a")]));
}

#[test]
fn kin_77_a_child_sees_that_it_was_started_for_the_first_time_by_a_message_or_again() {
    let mut sim = Simulation::ordered(rules(), [fake("mounted"), fake("lazy").on_message()]);
    sim.settle();
    sim.fail("mounted");
    sim.send("lazy");
    sim.fail("lazy");
    assert_eq!(
        sim.causes(),
        "mounted#1 initial, mounted#2 restart, lazy#1 on_message, lazy#2 restart"
    );
}

#[test]
fn seed4_30_every_cause_of_a_start_has_a_word() {
    let rules = group(Strategy::OneForAll);
    let mut sim = Simulation::ordered(rules, [fake("a"), fake("b"), on_message("c")]);
    sim.settle();
    sim.send("c");
    sim.fail("a");
    sim.call("b", ChildRequest::Terminate);
    sim.call("b", ChildRequest::RestartStopped);
    assert_eq!(
        sim.causes(),
        "a#1 initial, b#1 initial, c#1 on_message, a#2 restart, b#2 group, c#2 group, b#3 manual"
    );
    let words = StartCause::ALL.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words, ["initial", "manual", "restart", "group", "on_message"]);
}

#[test]
fn kin_75_a_message_starts_a_child_again_that_has_ended_and_is_never_restarted() {
    fn check(mut sim: Simulation) {
        sent(&mut sim, "a");
        sim.end("a");
        assert_eq!((sim.alive(), sim.why("a")), (String::new(), Some("finished")));
        assert!(returns(&sim, "a"));
        sent(&mut sim, "a");
        sim.fail("a");
        assert_eq!((sim.alive(), sim.why("a")), (String::new(), Some("not restarted")));
        assert_eq!(sim.lifecycle("a"), Lifecycle::Errored);
        assert!(returns(&sim, "a"));
        sent(&mut sim, "a");
        assert_eq!(sim.causes(), "a#1 on_message, a#2 on_message, a#3 on_message");
    }
    // There may be no restart at all: a message is none.
    let none = Rules { intensity: at_most(0), ..rules() };
    check(Simulation::running(none.clone(), [left("a")]));
    check(Simulation::dynamic(none, [left("a")]));
}

#[test]
fn kin_74_a_child_started_by_a_message_is_restarted_after_each_doubled_delay() {
    fn check(mut sim: Simulation) {
        sent(&mut sim, "a");
        for wait in [5, 10, 20, 30, 30] {
            sim.fail("a");
            // It is restarted as any other: no message makes that come sooner.
            sent(&mut sim, "a");
            sim.advance(secs(wait) - ms(1));
            assert_eq!(sim.alive(), "");
            sim.advance(ms(1));
            assert_ne!(sim.alive(), "", "after {wait} s");
        }
        assert!(sim.causes().starts_with("a#1 on_message, a#2 restart, a#3 restart"));
        assert_eq!(sim.alive(), "a#6");
    }
    let rules = Rules { backoff: Backoff::exponential(secs(5), secs(30)), ..rules() };
    check(Simulation::running(rules.clone(), [fake("a").on_message()]));
    check(Simulation::dynamic(rules, [fake("a").on_message()]));
}

#[test]
fn a_message_that_comes_while_the_child_runs_starts_it_when_it_has_ended_by_itself() {
    fn check(mut sim: Simulation) {
        sent(&mut sim, "a");
        sent(&mut sim, "a");
        assert_eq!(sim.causes(), "a#1 on_message");
        sim.end("a");
        assert_eq!(sim.causes(), "a#2 on_message");
        sim.end("a");
        assert_eq!(sim.causes(), "", "that start was the answer to it");
        assert_eq!(sim.why("a"), Some("finished"));
    }
    check(Simulation::running(rules(), [on_message("a")]));
    check(Simulation::dynamic(rules(), [on_message("a")]));
}

#[test]
fn a_message_starts_no_child_that_was_terminated_declined_or_given_up() {
    let park = Rules { on_exhausted: OnExhausted::Park, intensity: at_most(0), ..rules() };
    let fakes = [
        on_message("fresh"),
        on_message("stopped"),
        on_message("declined").scripts([Script::Ignore]),
        on_message("parked").scripts([Script::Fail]),
        on_message("leaky").on_leak(OnLeak::Park).leaks().shutdown(secs(1)),
        fake("plain").transient(),
    ];
    let mut sim = Simulation::running(park, fakes);
    for name in ["stopped", "declined", "parked", "leaky"] {
        sent(&mut sim, name);
    }
    for name in ["fresh", "stopped", "leaky"] {
        sim.ask(name, ChildRequest::Terminate);
    }
    sim.end("plain");
    sim.advance(secs(3));
    sim.skip();
    for name in ["fresh", "stopped", "declined", "parked", "leaky", "plain"] {
        assert!(!returns(&sim, name), "{name}");
        sent(&mut sim, name);
    }
    assert_eq!(sim.causes(), "");
    let why = ["fresh", "stopped", "declined", "parked", "leaky", "plain"].map(|it| sim.why(it));
    let hand = Some("stopped manually");
    assert_eq!(
        why,
        [hand, hand, Some("declined to start"), Some("given up"), Some("leaked"), Some("finished")]
    );
}

#[test]
fn a_message_that_came_before_the_child_was_stopped_does_not_start_it_later() {
    let mut sim = Simulation::running(rules(), [on_message("a")]);
    sent(&mut sim, "a");
    sent(&mut sim, "a");
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.call("a", ChildRequest::RestartStopped), "started 2");
    sim.end("a");
    assert_eq!(sim.causes(), "a#1 on_message, a#2 manual");
}

#[test]
fn a_supervisor_that_ends_starts_no_child_for_a_message() {
    fn check(mut sim: Simulation) {
        sim.stop();
        sent(&mut sim, "a");
        sim.advance(secs(1));
        assert_eq!(sim.causes(), "");
        assert!(sim.finished());
    }
    check(Simulation::running(rules(), [on_message("a"), fake("b").stops(secs(1))]));
    check(Simulation::dynamic(rules(), [on_message("a"), fake("b").stops(secs(1))]));
    // So many are not visited at once.
    let mut sim =
        Simulation::dynamic(rules(), (0..200).map(|number| on_message(&number.to_string())));
    sim.event(MachineEvent::Stop { within: None });
    sim.send("0");
    sim.settle();
    assert_eq!(sim.causes(), "");
}

#[test]
fn the_first_start_passes_children_that_wait_for_a_message() {
    for start in [Start::Sequential, Start::Concurrent] {
        let rules = Rules { start, ..rules() };
        let mut sim = Simulation::ordered(
            rules,
            [on_message("a"), fake("b").signals(secs(1)), on_message("c")],
        );
        sim.settle();
        // It comes before the turn of one and after that of the other.
        sim.send("c");
        sim.send("a");
        sim.advance(secs(1));
        assert!(sim.is_up());
        let alive = sim.alive();
        assert_eq!(alive, "a#1 b#1 c#1");
        let causes = sim.causes();
        assert!(causes.contains("c#1 on_message") && causes.contains("a#1 on_message"), "{causes}");
    }
}

#[test]
fn a_pending_message_before_the_first_start_waits_for_the_start_order() {
    let mut sim =
        Simulation::ordered(rules(), [fake("a").signals(secs(1)), on_message("b"), fake("c")]);
    sim.settle();
    sim.send("b");
    sim.advance(secs(2));
    let timed = "0ns start a#1, 1s start b#1, 1s start c#1, 1s up";
    assert_eq!(sim.timed(), timed);
}

#[test]
fn a_group_restarts_children_that_ran_and_none_that_waits_for_a_message() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = [
            fake("a"),
            on_message("ran"),
            on_message("ended"),
            on_message("never"),
            left("failed"),
            fake("z"),
        ];
        let mut sim = Simulation::running(group(strategy), fakes);
        for name in ["ran", "ended", "failed"] {
            sent(&mut sim, name);
        }
        sim.end("ended");
        sim.fail("failed");
        sim.skip();

        sim.fail("a");
        assert_eq!(sim.causes(), "a#2 restart, ran#2 group, z#2 group");
        let why = ["ended", "never", "failed"].map(|name| sim.why(name));
        assert_eq!(why, [Some("finished"), Some("waits for a message"), Some("not restarted")]);
        for name in ["ended", "never", "failed"] {
            sent(&mut sim, name);
        }
        assert_eq!(sim.causes(), "ended#2 on_message, never#1 on_message, failed#2 on_message");
    }
}

#[test]
fn a_pending_message_starts_a_child_of_a_waiting_group_in_order() {
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
    let mut sim = Simulation::running(rules, [fake("a"), on_message("b"), fake("c")]);
    sim.fail("a");
    sent(&mut sim, "b");
    assert_eq!(sim.call("b", ChildRequest::RestartStopped), "restarting");
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "0ns cancel c, 5s start a#2, 5s start b#1, 5s start c#2");
    assert_eq!(sim.causes(), "");
}

#[test]
fn a_pending_message_starts_a_child_of_a_parked_group_once_it_was_passed() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::OneForAll)
    };
    let fakes = [fake("a"), on_message("b"), fake("c").stops(secs(1)), on_message("d")];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("a");
    sent(&mut sim, "b");
    sent(&mut sim, "d");
    assert_eq!(sim.timed(), "0ns gave up a, 0ns cancel c, 0ns start d#1");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "1s start b#1");
    assert_eq!(sim.why("c"), Some("stopped with its group"));
}

#[test]
fn a_pending_message_starts_a_child_of_a_range_that_restarts_in_part() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::RestForOne)
    };
    let fakes = [fake("a"), on_message("b"), fake("c"), fake("d").stops(secs(1))];
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("c");
    sim.advance(secs(1));
    sim.call("d", ChildRequest::RestartStopped);
    sim.fail("a");
    sim.ask("c", ChildRequest::Retry);
    sim.skip();
    sent(&mut sim, "b");
    assert_eq!(sim.acts(), "", "those behind it are still there");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start b#1, start c#2, start d#3");
}

#[test]
fn a_child_that_was_not_restarted_can_be_retried_while_its_group_stops() {
    let fakes = [fake("a"), on_message("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(group(Strategy::OneForAll), fakes);
    sent(&mut sim, "b");
    sim.end("b");
    sim.skip();
    sim.fail("a");
    let ticket = sim.ask("b", ChildRequest::RestartStopped);
    assert_eq!(sim.answer(ticket), "-", "the group would not have started it");
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "started 2");
    assert_eq!(sim.causes(), "a#2 restart, b#2 manual, c#2 group");
}

#[test]
fn a_child_with_a_pending_message_is_gated_by_its_requirements() {
    let mut sim =
        Simulation::running(rules(), [on_message("db"), on_message("api").requires("db")]);
    sent(&mut sim, "api");
    assert_eq!(sim.causes(), "");
    assert_eq!(sim.why("api"), Some("waits for a requirement"));
    assert!(returns(&sim, "api"));
    sent(&mut sim, "db");
    assert_eq!(sim.causes(), "db#1 on_message, api#1 on_message");
}

#[test]
fn a_dormant_child_counts_as_remaining_and_an_ended_child_does_not() {
    let rules = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rules() };
    let mut sim =
        Simulation::running(rules, [on_message("a").significant(), on_message("b").significant()]);
    sent(&mut sim, "a");
    sim.end("a");
    assert!(!sim.finished(), "b has not run yet");
    sent(&mut sim, "b");
    sent(&mut sim, "b");
    sim.end("b");
    assert!(sim.finished(), "an end is an end, although a message waits");
}

#[test]
fn a_temporary_child_is_removed_at_its_end_even_if_a_message_is_pending() {
    fn check(mut sim: Simulation) {
        sent(&mut sim, "a");
        sent(&mut sim, "a");
        sim.end("a");
        assert_eq!(sim.acts(), "start a#1, removed a");
        assert!(!returns(&sim, "a"));
        sim.send("a");
    }
    check(Simulation::running(rules(), [fake("a").temporary().on_message()]));
    check(Simulation::dynamic(rules(), [fake("a").temporary().on_message()]));
}

#[test]
fn adding_one_is_answered_at_once() {
    fn check(mut sim: Simulation) {
        let ticket = sim.add(on_message("a"));
        assert_eq!(sim.answer(ticket), "dormant");
        sent(&mut sim, "a");
        assert_eq!(sim.alive(), "a#1");
    }
    for strategy in GROUPS {
        check(Simulation::running(group(strategy), []));
    }
    check(Simulation::dynamic(rules(), []));
}

#[test]
fn a_dormant_child_can_be_started_terminated_and_deleted() {
    let mut sim = Simulation::running(rules(), [on_message("a"), on_message("b"), on_message("c")]);
    assert_eq!(sim.call("a", ChildRequest::RestartStopped), "started 1");
    assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
    assert_eq!(sim.call("c", ChildRequest::Delete), "done");
    assert_eq!(sim.call("b", ChildRequest::Wake), "unfit stopped");
    assert_eq!(sim.causes(), "a#1 manual");
}

#[test]
fn a_child_not_restarted_by_a_dynamic_supervisor_counts_until_it_is_removed() {
    let rules = Rules { max_children: Some(1), ..rules() };
    let mut sim = Simulation::dynamic(rules, [left("a")]);
    sent(&mut sim, "a");
    sim.fail("a");
    assert!(sim.machine.admits().is_err());
    assert_eq!(sim.call("a", ChildRequest::Retry), "started 2");
    sim.fail("a");
    assert_eq!(sim.call("a", ChildRequest::Delete), "done");
    assert!(sim.machine.admits().is_ok());
}

mod who_returns {
    use super::*;

    #[test]
    fn a_child_that_runs_waits_or_awaits_a_decision_comes_back() {
        fn check(mut sim: Simulation) {
            assert!(returns(&sim, "a"), "active");
            sim.fail("a");
            assert!(returns(&sim, "a"), "it waits");
            sim.advance(secs(1));
            sim.ask("a", ChildRequest::RestartRunning);
            assert!(returns(&sim, "a"), "to be renewed");
            sim.ask("a", ChildRequest::Terminate);
            assert!(!returns(&sim, "a"), "stopped manually");
        }
        let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
        check(Simulation::running(rules.clone(), [fake("a").stops(secs(1))]));
        check(Simulation::dynamic(rules, [fake("a").stops(secs(1))]));
    }

    #[test]
    fn with_its_group_unless_that_is_to_rest() {
        let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
        let types = [RestartType::Permanent, RestartType::Temporary];
        let [stays, goes] = types.map(|it| fake("x").restart(it));
        for (kid_b, expected) in [(stays, true), (goes, false)] {
            let fakes = [fake("a"), kid_b.stops(secs(1)), fake("c")];
            let mut sim = Simulation::running(rules.clone(), fakes);
            sim.fail("a");
            assert_eq!(returns(&sim, "x"), expected, "it stops");
            assert!(returns(&sim, "c"), "it is down");
            sim.advance(secs(2));
            // The child that the group waits for is terminated: no child of the group restarts.
            sim.call("a", ChildRequest::Terminate);
            assert!(!returns(&sim, "c"));
        }
    }

    #[test]
    fn a_child_that_ends_and_is_then_terminated_is_reported_as_staying_down() {
        let mut sim = Simulation::running(rules(), [on_message("a")]);
        sent(&mut sim, "a");
        sim.end("a");
        sim.skip();
        // The witness wants to hear of it, since no edge tells it.
        sim.call("a", ChildRequest::Terminate);
        assert!(!returns(&sim, "a"));
        assert_eq!(sim.story("a"), "");
    }

    #[test]
    fn no_child_comes_back_once_the_end_has_begun_nor_an_unknown_one() {
        let mut sim = Simulation::running(
            rules(),
            [fake("a").stops(secs(1)), on_message("b"), on_message("c")],
        );
        let gone = sim.key("c");
        sim.call("c", ChildRequest::Delete);
        assert!(!sim.machine.returns(gone));
        sim.stop();
        assert!(!returns(&sim, "a") && !returns(&sim, "b"));
    }
}

#[test]
fn a_child_awaits_a_message_while_it_is_down_and_none_is_pending() {
    fn check(mut sim: Simulation) {
        let awaits = |sim: &Simulation, name: &str| sim.machine.awaits_message(sim.key(name));
        assert!(awaits(&sim, "a"), "dormant");
        assert!(!awaits(&sim, "plain"), "started with its supervisor");
        sent(&mut sim, "a");
        assert!(!awaits(&sim, "a"), "active");
        sim.send("a");
        assert!(!awaits(&sim, "a"), "and called again");
        sim.end("a");
        assert!(!awaits(&sim, "a"), "started again");
        sim.end("a");
        assert!(awaits(&sim, "a"), "it has ended well");
        sim.stop();
        assert!(!awaits(&sim, "a"), "it is not started any more");
    }
    check(Simulation::running(rules(), [on_message("a"), fake("plain")]));
    check(Simulation::dynamic(rules(), [on_message("a"), fake("plain")]));
}
