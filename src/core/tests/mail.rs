//! Children that are started by a message.

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, MachineEvent};
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
fn lazy(name: &str) -> Kid {
    kid(name).transient().on_message()
}

/// Started by a message, and never restarted.
fn left(name: &str) -> Kid {
    lazy(name).on_exit(ExitKind::Failed, OnExit::Leave)
}

fn sent(world: &mut World, name: &str) {
    world.send(name);
    world.settle();
}

fn returns(world: &World, name: &str) -> bool {
    world.machine.returns(world.key(name))
}

#[test]
fn a_message_starts_a_child_once_that_did_not_start_with_its_supervisor() {
    fn check(mut world: World) {
        assert_eq!(world.alive(), "");
        assert_eq!(world.lifecycle("a"), Lifecycle::Discovered);
        assert_eq!(world.why("a"), Some("waits for a message"));
        assert!(returns(&world, "a"));
        for _ in 0..3 {
            sent(&mut world, "a");
        }
        assert_eq!(world.causes(), "a#1 on_message");
        assert_eq!(world.why("a"), None);
        assert_eq!(world.story("a"), "discovered → resolved → activating → active");
    }
    check(World::running(rules(), [lazy("a")]));
    check(World::dynamic(rules(), [lazy("a")]));
}

#[test]
fn kin_77_a_child_sees_that_it_was_started_for_the_first_time_by_a_message_or_again() {
    let mut world = World::ordered(rules(), [kid("mounted"), kid("lazy").on_message()]);
    world.settle();
    world.fail("mounted");
    world.send("lazy");
    world.fail("lazy");
    assert_eq!(
        world.causes(),
        "mounted#1 initial, mounted#2 restart, lazy#1 on_message, lazy#2 restart"
    );
}

#[test]
fn seed4_30_every_cause_of_a_start_has_a_word() {
    let rules = group(Strategy::OneForAll);
    let mut world = World::ordered(rules, [kid("a"), kid("b"), lazy("c")]);
    world.settle();
    world.send("c");
    world.fail("a");
    world.call("b", ChildRequest::Terminate);
    world.call("b", ChildRequest::RestartStopped);
    assert_eq!(
        world.causes(),
        "a#1 initial, b#1 initial, c#1 on_message, a#2 restart, b#2 group, c#2 group, b#3 manual"
    );
    let words = StartCause::ALL.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words, ["initial", "manual", "restart", "group", "on_message"]);
}

#[test]
fn kin_75_a_message_starts_a_child_again_that_has_ended_and_is_never_restarted() {
    fn check(mut world: World) {
        sent(&mut world, "a");
        world.end("a");
        assert_eq!((world.alive(), world.why("a")), (String::new(), Some("finished")));
        assert!(returns(&world, "a"));
        sent(&mut world, "a");
        world.fail("a");
        assert_eq!((world.alive(), world.why("a")), (String::new(), Some("not restarted")));
        assert_eq!(world.lifecycle("a"), Lifecycle::Errored);
        assert!(returns(&world, "a"));
        sent(&mut world, "a");
        assert_eq!(world.causes(), "a#1 on_message, a#2 on_message, a#3 on_message");
    }
    // There may be no restart at all: a message is none.
    let none = Rules { intensity: at_most(0), ..rules() };
    check(World::running(none.clone(), [left("a")]));
    check(World::dynamic(none, [left("a")]));
}

#[test]
fn kin_74_one_that_is_started_by_a_message_is_restarted_after_each_doubled_wait() {
    fn check(mut world: World) {
        sent(&mut world, "a");
        for wait in [5, 10, 20, 30, 30] {
            world.fail("a");
            // It is restarted as any other: no message makes that come sooner.
            sent(&mut world, "a");
            world.advance(secs(wait) - ms(1));
            assert_eq!(world.alive(), "");
            world.advance(ms(1));
            assert_ne!(world.alive(), "", "after {wait} s");
        }
        assert!(world.causes().starts_with("a#1 on_message, a#2 restart, a#3 restart"));
        assert_eq!(world.alive(), "a#6");
    }
    let rules = Rules { backoff: Backoff::exponential(secs(5), secs(30)), ..rules() };
    check(World::running(rules.clone(), [kid("a").on_message()]));
    check(World::dynamic(rules, [kid("a").on_message()]));
}

#[test]
fn a_message_that_comes_while_the_child_runs_starts_it_when_it_has_ended_by_itself() {
    fn check(mut world: World) {
        sent(&mut world, "a");
        sent(&mut world, "a");
        assert_eq!(world.causes(), "a#1 on_message");
        world.end("a");
        assert_eq!(world.causes(), "a#2 on_message");
        world.end("a");
        assert_eq!(world.causes(), "", "that start was the answer to it");
        assert_eq!(world.why("a"), Some("finished"));
    }
    check(World::running(rules(), [lazy("a")]));
    check(World::dynamic(rules(), [lazy("a")]));
}

#[test]
fn a_message_starts_nobody_who_was_stopped_declined_or_given_up() {
    let park = Rules { on_exhausted: OnExhausted::Park, intensity: at_most(0), ..rules() };
    let kids = [
        lazy("fresh"),
        lazy("stopped"),
        lazy("declined").plays([Play::Ignore]),
        lazy("parked").plays([Play::Fail]),
        lazy("leaky").on_leak(OnLeak::Park).leaks().shutdown(secs(1)),
        kid("plain").transient(),
    ];
    let mut world = World::running(park, kids);
    for name in ["stopped", "declined", "parked", "leaky"] {
        sent(&mut world, name);
    }
    for name in ["fresh", "stopped", "leaky"] {
        world.ask(name, ChildRequest::Terminate);
    }
    world.end("plain");
    world.advance(secs(3));
    world.skip();
    for name in ["fresh", "stopped", "declined", "parked", "leaky", "plain"] {
        assert!(!returns(&world, name), "{name}");
        sent(&mut world, name);
    }
    assert_eq!(world.causes(), "");
    let why = ["fresh", "stopped", "declined", "parked", "leaky", "plain"].map(|it| world.why(it));
    let hand = Some("stopped by hand");
    assert_eq!(
        why,
        [hand, hand, Some("declined to start"), Some("given up"), Some("leaked"), Some("finished")]
    );
}

#[test]
fn a_message_that_came_before_the_child_was_stopped_does_not_start_it_later() {
    let mut world = World::running(rules(), [lazy("a")]);
    sent(&mut world, "a");
    sent(&mut world, "a");
    world.call("a", ChildRequest::Terminate);
    assert_eq!(world.call("a", ChildRequest::RestartStopped), "started 2");
    world.end("a");
    assert_eq!(world.causes(), "a#1 on_message, a#2 manual");
}

#[test]
fn a_supervisor_that_ends_starts_nobody_for_a_message() {
    fn check(mut world: World) {
        world.stop();
        sent(&mut world, "a");
        world.advance(secs(1));
        assert_eq!(world.causes(), "");
        assert!(world.finished());
    }
    check(World::running(rules(), [lazy("a"), kid("b").stops(secs(1))]));
    check(World::dynamic(rules(), [lazy("a"), kid("b").stops(secs(1))]));
    // So many are not visited at once.
    let mut world = World::dynamic(rules(), (0..200).map(|number| lazy(&number.to_string())));
    world.event(MachineEvent::Stop { within: None });
    world.send("0");
    world.settle();
    assert_eq!(world.causes(), "");
}

#[test]
fn the_first_start_passes_whoever_waits_for_a_message() {
    for start in [Start::Sequential, Start::Concurrent] {
        let rules = Rules { start, ..rules() };
        let mut world = World::ordered(rules, [lazy("a"), kid("b").signals(secs(1)), lazy("c")]);
        world.settle();
        // It comes before the turn of one and after that of the other.
        world.send("c");
        world.send("a");
        world.advance(secs(1));
        assert!(world.is_up());
        let alive = world.alive();
        assert_eq!(alive, "a#1 b#1 c#1");
        let causes = world.causes();
        assert!(causes.contains("c#1 on_message") && causes.contains("a#1 on_message"), "{causes}");
    }
}

#[test]
fn one_that_is_wanted_before_its_turn_waits_for_it() {
    let mut world = World::ordered(rules(), [kid("a").signals(secs(1)), lazy("b"), kid("c")]);
    world.settle();
    world.send("b");
    world.advance(secs(2));
    let timed = "0ns start a#1, 1s start b#1, 1s start c#1, 1s up";
    assert_eq!(world.timed(), timed);
}

#[test]
fn a_group_brings_back_who_ran_and_nobody_who_waits_for_a_message() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let kids = [kid("a"), lazy("ran"), lazy("ended"), lazy("never"), left("failed"), kid("z")];
        let mut world = World::running(group(strategy), kids);
        for name in ["ran", "ended", "failed"] {
            sent(&mut world, name);
        }
        world.end("ended");
        world.fail("failed");
        world.skip();

        world.fail("a");
        assert_eq!(world.causes(), "a#2 restart, ran#2 group, z#2 group");
        let why = ["ended", "never", "failed"].map(|name| world.why(name));
        assert_eq!(why, [Some("finished"), Some("waits for a message"), Some("not restarted")]);
        for name in ["ended", "never", "failed"] {
            sent(&mut world, name);
        }
        assert_eq!(world.causes(), "ended#2 on_message, never#1 on_message, failed#2 on_message");
    }
}

#[test]
fn one_that_is_wanted_while_its_group_waits_starts_at_its_turn() {
    let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
    let mut world = World::running(rules, [kid("a"), lazy("b"), kid("c")]);
    world.fail("a");
    sent(&mut world, "b");
    assert_eq!(world.call("b", ChildRequest::RestartStopped), "restarting");
    world.advance(secs(5));
    assert_eq!(world.timed(), "0ns cancel c, 5s start a#2, 5s start b#1, 5s start c#2");
    assert_eq!(world.causes(), "");
}

#[test]
fn one_that_is_wanted_while_its_group_goes_to_rest_starts_when_it_was_passed() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::OneForAll)
    };
    let kids = [kid("a"), lazy("b"), kid("c").stops(secs(1)), lazy("d")];
    let mut world = World::running(rules, kids);
    world.fail("a");
    sent(&mut world, "b");
    sent(&mut world, "d");
    assert_eq!(world.timed(), "0ns gave up a, 0ns cancel c, 0ns start d#1");
    world.advance(secs(1));
    assert_eq!(world.timed(), "1s start b#1");
    assert_eq!(world.why("c"), Some("stopped with its group"));
}

#[test]
fn one_that_is_wanted_starts_although_only_a_part_of_its_range_comes_back() {
    let rules = Rules {
        on_exhausted: OnExhausted::Park,
        intensity: at_most(0),
        ..group(Strategy::RestForOne)
    };
    let kids = [kid("a"), lazy("b"), kid("c"), kid("d").stops(secs(1))];
    let mut world = World::running(rules, kids);
    world.fail("c");
    world.advance(secs(1));
    world.call("d", ChildRequest::RestartStopped);
    world.fail("a");
    world.ask("c", ChildRequest::Retry);
    world.skip();
    sent(&mut world, "b");
    assert_eq!(world.acts(), "", "those behind it are still there");
    world.advance(secs(1));
    assert_eq!(world.acts(), "start b#1, start c#2, start d#3");
}

#[test]
fn one_that_was_left_is_called_back_by_hand_while_its_group_stops() {
    let kids = [kid("a"), lazy("b"), kid("c").stops(secs(1))];
    let mut world = World::running(group(Strategy::OneForAll), kids);
    sent(&mut world, "b");
    world.end("b");
    world.skip();
    world.fail("a");
    let ticket = world.ask("b", ChildRequest::RestartStopped);
    assert_eq!(world.answer(ticket), "-", "the group would not have started it");
    world.advance(secs(1));
    assert_eq!(world.answer(ticket), "started 2");
    assert_eq!(world.causes(), "a#2 restart, b#2 manual, c#2 group");
}

#[test]
fn who_is_wanted_is_gated_as_ever() {
    let mut world = World::running(rules(), [lazy("db"), lazy("api").requires("db")]);
    sent(&mut world, "api");
    assert_eq!(world.causes(), "");
    assert_eq!(world.why("api"), Some("waits for a requirement"));
    assert!(returns(&world, "api"));
    sent(&mut world, "db");
    assert_eq!(world.causes(), "db#1 on_message, api#1 on_message");
}

#[test]
fn a_dormant_child_is_there_for_its_supervisor_and_one_that_has_ended_is_not() {
    let rules = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rules() };
    let mut world = World::running(rules, [lazy("a").significant(), lazy("b").significant()]);
    sent(&mut world, "a");
    world.end("a");
    assert!(!world.finished(), "b has not run yet");
    sent(&mut world, "b");
    sent(&mut world, "b");
    world.end("b");
    assert!(world.finished(), "an end is an end, although a message waits");
}

#[test]
fn a_temporary_one_is_forgotten_at_its_end_whoever_wants_it() {
    fn check(mut world: World) {
        sent(&mut world, "a");
        sent(&mut world, "a");
        world.end("a");
        assert_eq!(world.acts(), "start a#1, removed a");
        assert!(!returns(&world, "a"));
        world.send("a");
    }
    check(World::running(rules(), [kid("a").temporary().on_message()]));
    check(World::dynamic(rules(), [kid("a").temporary().on_message()]));
}

#[test]
fn adding_one_is_answered_at_once() {
    fn check(mut world: World) {
        let ticket = world.add(lazy("a"));
        assert_eq!(world.answer(ticket), "dormant");
        sent(&mut world, "a");
        assert_eq!(world.alive(), "a#1");
    }
    for strategy in GROUPS {
        check(World::running(group(strategy), []));
    }
    check(World::dynamic(rules(), []));
}

#[test]
fn a_dormant_child_is_started_stopped_and_deleted_by_hand_like_any_other() {
    let mut world = World::running(rules(), [lazy("a"), lazy("b"), lazy("c")]);
    assert_eq!(world.call("a", ChildRequest::RestartStopped), "started 1");
    assert_eq!(world.call("b", ChildRequest::Terminate), "done");
    assert_eq!(world.call("c", ChildRequest::Delete), "done");
    assert_eq!(world.call("b", ChildRequest::Wake), "unfit stopped");
    assert_eq!(world.causes(), "a#1 manual");
}

#[test]
fn whoever_is_left_by_a_dynamic_supervisor_counts_until_it_is_gone() {
    let rules = Rules { max_children: Some(1), ..rules() };
    let mut world = World::dynamic(rules, [left("a")]);
    sent(&mut world, "a");
    world.fail("a");
    assert!(world.machine.admits().is_err());
    assert_eq!(world.call("a", ChildRequest::Retry), "started 2");
    world.fail("a");
    assert_eq!(world.call("a", ChildRequest::Delete), "done");
    assert!(world.machine.admits().is_ok());
}

mod who_returns {
    use super::*;

    #[test]
    fn whoever_runs_waits_or_is_about_to_be_decided_on() {
        fn check(mut world: World) {
            assert!(returns(&world, "a"), "active");
            world.fail("a");
            assert!(returns(&world, "a"), "it waits");
            world.advance(secs(1));
            world.ask("a", ChildRequest::RestartRunning);
            assert!(returns(&world, "a"), "to be renewed");
            world.ask("a", ChildRequest::Terminate);
            assert!(!returns(&world, "a"), "stopped by hand");
        }
        let rules = Rules { backoff: Backoff::constant(secs(1)), ..rules() };
        check(World::running(rules.clone(), [kid("a").stops(secs(1))]));
        check(World::dynamic(rules, [kid("a").stops(secs(1))]));
    }

    #[test]
    fn with_its_group_unless_that_is_to_rest() {
        let rules = Rules { backoff: Backoff::constant(secs(5)), ..group(Strategy::OneForAll) };
        let types = [RestartType::Permanent, RestartType::Temporary];
        let [stays, goes] = types.map(|it| kid("x").restart(it));
        for (kid_b, expected) in [(stays, true), (goes, false)] {
            let kids = [kid("a"), kid_b.stops(secs(1)), kid("c")];
            let mut world = World::running(rules.clone(), kids);
            world.fail("a");
            assert_eq!(returns(&world, "x"), expected, "it stops");
            assert!(returns(&world, "c"), "it is down");
            world.advance(secs(2));
            // Whoever the group waits for is stopped: nobody of it comes back.
            world.call("a", ChildRequest::Terminate);
            assert!(!returns(&world, "c"));
        }
    }

    #[test]
    fn not_one_that_has_ended_and_is_then_stopped_by_hand_which_is_told() {
        let mut world = World::running(rules(), [lazy("a")]);
        sent(&mut world, "a");
        world.end("a");
        world.skip();
        // The witness wants to hear of it, since no edge tells it.
        world.call("a", ChildRequest::Terminate);
        assert!(!returns(&world, "a"));
        assert_eq!(world.story("a"), "");
    }

    #[test]
    fn nobody_once_the_end_has_begun_and_nobody_unknown() {
        let mut world = World::running(rules(), [kid("a").stops(secs(1)), lazy("b"), lazy("c")]);
        let gone = world.key("c");
        world.call("c", ChildRequest::Delete);
        assert!(!world.machine.returns(gone));
        world.stop();
        assert!(!returns(&world, "a") && !returns(&world, "b"));
    }
}

#[test]
fn a_child_awaits_a_message_while_it_is_down_and_none_has_been_told_of() {
    fn check(mut world: World) {
        let awaits = |world: &World, name: &str| world.machine.awaits_message(world.key(name));
        assert!(awaits(&world, "a"), "dormant");
        assert!(!awaits(&world, "plain"), "started with its supervisor");
        sent(&mut world, "a");
        assert!(!awaits(&world, "a"), "active");
        world.send("a");
        assert!(!awaits(&world, "a"), "and called again");
        world.end("a");
        assert!(!awaits(&world, "a"), "started again");
        world.end("a");
        assert!(awaits(&world, "a"), "it has ended well");
        world.stop();
        assert!(!awaits(&world, "a"), "nobody starts it any more");
    }
    check(World::running(rules(), [lazy("a"), kid("plain")]));
    check(World::dynamic(rules(), [lazy("a"), kid("plain")]));
}
