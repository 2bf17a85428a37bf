//! Children that need a lease.

use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, MachineEvent, SLICE};
use crate::exit::{ExitError, ExitReason};
use crate::policy::{Backoff, OnExhausted, OnLeak, Rules, Start, Strategy};

fn leased(name: &str) -> FakeChild {
    fake(name).leased(secs(5))
}

fn running(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
    Simulation::running(rules, fakes)
}

fn is_settled(sim: &Simulation, name: &str) -> bool {
    sim.machine.view(sim.key(name), sim.now).is_some_and(|view| view.settled)
}

#[test]
fn a_child_starts_when_its_lease_is_granted_and_holds_up_no_sibling() {
    for start in [Start::Sequential, Start::Concurrent] {
        let mut sim = Simulation::ordered(Rules { start, ..rules() }, [leased("a"), fake("b")]);
        sim.advance(ms(0));
        assert!(sim.is_up());
        assert_eq!(sim.acts(), "seek a, start b#1, up");
        assert_eq!(sim.why("a"), Some("standby"));
        sim.grant("a");
        assert_eq!(sim.acts(), "start a#1");
        assert_eq!(sim.why("a"), None);
    }
}

#[test]
fn a_standby_and_what_requires_it_are_settled() {
    let web = fake("web").requires("a");
    let sim = running(rules(), [leased("a"), web, fake("c").requires("web")]);
    for name in ["a", "web", "c"] {
        assert!(is_settled(&sim, name), "{name}");
    }
    assert_eq!([sim.why("web"), sim.why("c")], [Some("waits for a requirement"); 2]);
}

#[test]
fn a_lease_is_asked_for_once_all_other_requirements_are_met() {
    let db = fake("db").signals(None);
    let start = Start::Concurrent;
    let mut sim = Simulation::ordered(Rules { start, ..rules() }, [db, leased("a").requires("db")]);
    sim.advance(ms(0));
    assert_eq!(sim.acts(), "start db#1");
    assert!(!is_settled(&sim, "a"), "its requirement is to be met first");
    sim.ready("db");
    assert_eq!(sim.acts(), "seek a, up");
}

#[test]
fn a_child_whose_lease_is_lost_is_stopped_alone_and_uncharged_and_waits_for_it_again() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let intensity = at_most(0);
        let rules = Rules { strategy, intensity, ..rules() };
        let mut sim = running(rules, [leased("a"), fake("b")]);
        sim.grant("a");
        sim.skip();
        sim.lose("a");
        assert_eq!(sim.acts(), "cancel a, seek a");
        assert_eq!(
            sim.story("a"),
            "active → deactivating → stopped (shutdown) → resolved → discovered",
        );
        sim.grant("a");
        assert_eq!((sim.alive(), sim.causes()), ("a#2 b#1".to_owned(), "a#2 lease".to_owned()));
    }
}

#[test]
fn a_lease_is_kept_through_a_failure_and_its_backoff() {
    let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
    let mut sim = running(rules, [leased("a")]);
    sim.grant("a");
    sim.skip();
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#2");
}

#[test]
fn a_lease_that_is_lost_during_a_backoff_is_asked_for_at_its_end() {
    let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
    let mut sim = running(rules, [leased("a")]);
    sim.grant("a");
    sim.skip();
    sim.fail("a");
    sim.lose("a");
    assert_eq!(sim.acts(), "");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "seek a");
}

#[test]
fn a_lease_is_kept_through_a_group_restart_which_passes_a_standby() {
    let rules = Rules { strategy: Strategy::OneForAll, ..rules() };
    let mut sim = running(rules, [leased("a"), leased("b"), fake("c")]);
    sim.grant("a");
    sim.skip();
    sim.fail("c");
    assert_eq!(sim.acts(), "cancel a, start a#2, start c#2");
    sim.grant("b");
    assert_eq!(sim.acts(), "start b#1");
}

#[test]
fn a_lease_is_released_after_its_child_has_ended_for_good() {
    let mut sim = running(rules(), [leased("a")]);
    sim.fake("a").stops = Some(secs(1));
    sim.grant("a");
    sim.skip();
    sim.request("a", ChildRequest::Terminate);
    sim.settle();
    assert_eq!(sim.acts(), "cancel a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "release a");
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "gated");
    assert_eq!(sim.acts(), "seek a");
}

#[test]
fn a_standby_that_is_stopped_or_held_gives_its_request_up() {
    let mut sim = running(rules(), [leased("a"), leased("b")]);
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.acts(), "release a");
    sim.call("b", ChildRequest::Hold);
    assert_eq!(sim.acts(), "release b");
    sim.call("b", ChildRequest::Release);
    assert_eq!(sim.acts(), "seek b");
}

#[test]
fn a_child_that_is_given_up_or_finished_gives_its_lease_back() {
    let rules = Rules { on_exhausted: OnExhausted::Park, ..rules() };
    let once = leased("a").consecutive(0);
    let mut sim = running(rules, [once, leased("b").transient()]);
    sim.grant("a");
    sim.grant("b");
    sim.skip();
    sim.fail("a");
    assert_eq!(sim.acts(), "gave up a, release a");
    sim.end("b");
    assert_eq!(sim.acts(), "release b");
}

#[test]
fn a_child_that_leaks_gives_its_lease_up_without_a_release() {
    let fails = leased("a").on_leak(OnLeak::Park).shutdown(ms(10));
    let mut sim = running(rules(), [fails]);
    (sim.fake("a").stops, sim.fake("a").dies) = (None, None);
    sim.grant("a");
    sim.skip();
    sim.request("a", ChildRequest::Terminate);
    sim.advance(secs(2));
    assert_eq!(sim.acts(), "cancel a, abort a, leaked a#1, abandon a");
}

#[test]
fn a_lease_that_is_granted_after_a_leak_is_released() {
    let fails = leased("a").shutdown(ms(10));
    let mut sim = running(rules(), [fails, fake("b").stops(secs(1))]);
    (sim.fake("a").stops, sim.fake("a").dies) = (None, None);
    sim.grant("a");
    sim.lose("a");
    sim.advance(secs(2));
    assert_eq!(sim.acts(), "start a#1, cancel a, abort a, leaked a#1, seek a");
    sim.stop();
    sim.grant("a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel b, release a, finish stopped");
}

#[test]
fn a_lease_that_is_granted_while_its_supervisor_ends_starts_no_child() {
    let others = (0..2 * SLICE).map(|number| fake(&number.to_string()));
    let mut sim = Simulation::dynamic(rules(), [leased("a")].into_iter().chain(others));
    sim.event(MachineEvent::Stop { within: None });
    sim.grant("a");
    assert_eq!(sim.causes(), "");
    assert!(sim.finished());
}

#[test]
fn a_supervisor_ends_without_a_lease() {
    let mut sim = running(rules(), [leased("a"), leased("b")]);
    sim.grant("a");
    sim.skip();
    sim.stop();
    assert_eq!(sim.acts(), "cancel a, release b, release a, finish stopped");
}

#[test]
fn the_grace_of_a_child_that_set_none_ends_before_its_lease() {
    let mut sim = running(Rules { leak_timeout: secs(1), ..rules() }, [fake("a").leased(secs(4))]);
    (sim.fake("a").stops, sim.fake("a").dies) = (None, Some(ms(0)));
    sim.grant("a");
    sim.skip();
    sim.lose("a");
    sim.advance(secs(4));
    assert_eq!(sim.timed(), "0ns cancel a, 3s abort a, 3s seek a");
}

#[test]
fn calls_on_a_standby_say_so() {
    let mut sim = running(rules(), [leased("a")]);
    for request in [ChildRequest::RESTART_CHILD, ChildRequest::RESTART, ChildRequest::RESUME] {
        assert_eq!(sim.call("a", request), "standby");
    }
    assert_eq!(sim.call("a", ChildRequest::Find { wait: true }), "invalid state discovered");
}

#[test]
fn a_message_starts_a_leased_child_once_its_lease_is_granted() {
    let mut sim = running(rules(), [leased("a").on_message().transient()]);
    assert_eq!(sim.acts(), "");
    sim.send("a");
    sim.settle();
    assert_eq!(sim.acts(), "seek a");
    sim.grant("a");
    assert_eq!(sim.acts(), "start a#1");
    sim.end("a");
    assert_eq!(sim.acts(), "release a");
}

#[test]
fn a_message_starts_a_temporary_standby_whose_group_has_left_it_dormant() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let dormant = |name| leased(name).temporary().on_message();
        let rules = Rules { strategy, ..rules() };
        let mut sim = running(rules, [fake("a"), dormant("stopped"), dormant("ran")]);
        sim.call("stopped", ChildRequest::Terminate);
        sim.send("ran");
        sim.grant("ran");
        sim.skip();
        sim.fail("a");
        assert_eq!(sim.acts(), "cancel ran, start a#2, release ran");
        for name in ["stopped", "ran"] {
            assert_eq!(sim.why(name), Some("waits for a message"), "{name}");
            sim.send(name);
            sim.settle();
            assert_eq!(sim.why(name), Some("standby"), "{name}");
            sim.grant(name);
        }
        assert_eq!(sim.causes(), "stopped#1 on_message, ran#2 on_message");
    }
}

#[test]
fn a_lease_is_kept_while_a_group_waits_to_start_its_child_for_a_message() {
    let waiting = || {
        let (strategy, backoff) = (Strategy::OneForAll, Backoff::constant(secs(1)));
        let rules = Rules { strategy, backoff, ..rules() };
        let mut sim = running(rules, [fake("a"), leased("b").temporary().on_message()]);
        sim.send("b");
        sim.grant("b");
        sim.send("b");
        sim.skip();
        sim.fail("a");
        assert_eq!(sim.acts(), "cancel b");
        assert_eq!(sim.why("b"), Some("waits for a message"));
        sim
    };
    let mut sim = waiting();
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#2, start b#2");

    let mut sim = waiting();
    sim.lose("b");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start a#2, seek b");

    let mut sim = waiting();
    sim.call("b", ChildRequest::Terminate);
    assert_eq!(sim.acts(), "release b");

    let mut sim = waiting();
    sim.call("a", ChildRequest::Terminate);
    assert_eq!(sim.acts(), "start b#2", "its group restarts no more");

    let mut sim = waiting();
    sim.stop();
    assert_eq!(sim.acts(), "release b, finish stopped");
}

#[test]
fn a_message_keeps_no_lease_of_a_child_whose_failure_ends_its_supervisor() {
    let fails = leased("a").transient().on_message();
    let mut sim = running(rules(), [fails, fake("b").stops(secs(1))]);
    sim.send("a");
    sim.grant("a");
    sim.send("a");
    sim.skip();
    sim.exit("a", ExitReason::Failed(ExitError::fatal("no")));
    assert_eq!(sim.acts(), "a fails all, cancel b, release a");
}

#[test]
fn a_message_that_comes_while_a_leased_child_is_down_starts_it_once_nothing_holds_it_back() {
    fn check(holds: impl Fn(&mut Simulation), releases: impl Fn(&mut Simulation)) {
        let mut sim = running(rules(), [leased("a").transient().on_message()]);
        holds(&mut sim);
        sim.send("a");
        sim.settle();
        assert_eq!(sim.acts(), "");
        releases(&mut sim);
        assert_eq!(sim.acts(), "seek a");
        sim.grant("a");
        assert_eq!(sim.causes(), "a#1 on_message");
    }
    check(
        |sim| assert_eq!(sim.call("a", ChildRequest::Hold), "done"),
        |sim| assert_eq!(sim.call("a", ChildRequest::Release), "gated"),
    );
    check(|sim| sim.enable("a", false), |sim| sim.enable("a", true));
}

#[test]
fn a_standby_that_is_held_or_taken_out_keeps_its_message() {
    for held in [true, false] {
        let hold_back = |sim: &mut Simulation, holds: bool| {
            if held {
                let request = if holds { ChildRequest::Hold } else { ChildRequest::Release };
                sim.call("a", request);
            } else {
                sim.enable("a", !holds);
            }
        };
        let mut sim = running(rules(), [leased("a").transient().on_message()]);
        sim.send("a");
        sim.settle();
        assert_eq!(sim.acts(), "seek a");
        hold_back(&mut sim, true);
        assert_eq!(sim.acts(), "release a");
        hold_back(&mut sim, false);
        assert_eq!(sim.acts(), "seek a");
        sim.grant("a");
        assert_eq!(sim.causes(), "a#1 on_message");
    }
}

#[test]
fn a_child_that_has_lost_its_lease_needs_no_message_to_wait_for_it_again() {
    let mut sim = running(rules(), [leased("a").transient().on_message().stops(secs(1))]);
    sim.send("a");
    sim.grant("a");
    sim.lose("a");
    sim.send("a");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "seek a, start a#1, cancel a, seek a");
    sim.grant("a");
    assert_eq!(sim.causes(), "a#2 lease");
    sim.end("a");
    assert_eq!(sim.why("a"), Some("finished"), "the message came before its last start");
}

#[test]
fn no_message_starts_a_leased_child_that_was_stopped_or_given_up() {
    type Step = fn(&mut Simulation);
    fn terminate(sim: &mut Simulation) {
        assert_eq!(sim.call("a", ChildRequest::Terminate), "done");
    }
    let down: [(&str, Step); 10] = [
        ("dormant", terminate),
        ("on standby", |sim| {
            sim.send("a");
            sim.settle();
            terminate(sim);
        }),
        ("held", |sim| {
            sim.send("a");
            sim.call("a", ChildRequest::Hold);
            terminate(sim);
            sim.call("a", ChildRequest::Release);
        }),
        ("taken out", |sim| {
            sim.send("a");
            sim.enable("a", false);
            terminate(sim);
            sim.enable("a", true);
        }),
        ("active", |sim| {
            sim.send("a");
            sim.grant("a");
            sim.send("a");
            terminate(sim);
        }),
        ("without its lease", |sim| {
            sim.send("a");
            sim.grant("a");
            sim.lose("a");
            terminate(sim);
        }),
        ("about to stop without its lease", |sim| {
            sim.fake("a").stops = Some(secs(1));
            sim.send("a");
            sim.grant("a");
            sim.lose("a");
            sim.send("a");
            sim.request("a", ChildRequest::Terminate);
            sim.advance(secs(1));
        }),
        ("declined", |sim| {
            sim.fake("a").scripts.push_back(Script::Ignore);
            sim.send("a");
            sim.grant("a");
        }),
        ("given up", |sim| {
            sim.send("a");
            sim.grant("a");
            sim.send("a");
            sim.fail("a");
            sim.fail("a");
        }),
        ("leaked", |sim| {
            (sim.fake("a").stops, sim.fake("a").dies) = (None, None);
            sim.send("a");
            sim.grant("a");
            sim.lose("a");
            sim.advance(secs(8));
        }),
    ];
    for (what, step) in down {
        let rules = Rules { on_exhausted: OnExhausted::Park, ..rules() };
        let fails = leased("a").transient().on_message().consecutive(1).on_leak(OnLeak::Park);
        let mut sim = running(rules, [fails]);
        step(&mut sim);
        assert_eq!(sim.alive(), "", "{what}: {:?}", sim.why("a"));
        sim.skip();
        sim.send("a");
        sim.grant("a");
        assert_eq!(sim.acts(), "", "{what}: {:?}", sim.why("a"));
        assert!(!sim.machine.returns(sim.key("a")), "{what}");
    }
}

#[test]
fn a_dynamic_child_that_is_removed_gives_its_lease_back() {
    let mut sim = Simulation::dynamic(rules(), [leased("a").temporary()]);
    sim.grant("a");
    sim.skip();
    sim.end("a");
    assert_eq!(sim.acts(), "release a, removed a");
}

#[test]
fn a_first_start_that_fails_gives_the_lease_back_with_the_child() {
    let mut sim = Simulation::dynamic(rules(), []);
    let mut fails = leased("a").signals(None);
    fails.scripts.push_back(Script::Fail);
    let ticket = sim.add(fails);
    sim.settle();
    assert_eq!(sim.answer(ticket), "gated");
    sim.grant("a");
    assert_eq!(sim.acts(), "seek a, start a#1");
}
