//! What follows when children of an ordered supervisor start, fail, hang and stop.

use std::time::Duration;

use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::state::{Down, State};
use super::super::{ChildRequest, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::failure::FailureDecision;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, Backoff, FirstStart, Intensity, OnExhausted, OnLeak, RestartType, Rules,
    Shutdown, Start, Strategy,
};

const WAIT: Duration = Duration::from_millis(200);

/// Without backoff and without a limit.
fn of(strategy: Strategy) -> Rules {
    Rules { strategy, ..rules() }
}

fn one_for_one() -> Rules {
    of(Strategy::OneForOne)
}

fn one_for_all() -> Rules {
    of(Strategy::OneForAll)
}

fn rest_for_one() -> Rules {
    of(Strategy::RestForOne)
}

fn waiting(rules: Rules) -> Rules {
    Rules { backoff: Backoff::constant(WAIT), ..rules }
}

fn sliding(max: u32) -> Option<Intensity> {
    Some(Intensity::sliding(max, secs(1)))
}

fn limited(max: u32, rules: Rules) -> Rules {
    Rules { intensity: at_most(max), ..rules }
}

fn parking(max: u32, rules: Rules) -> Rules {
    Rules { on_exhausted: OnExhausted::Park, ..limited(max, rules) }
}

/// A child that says when it is ready, which is at once.
fn prompt(name: &str) -> Kid {
    kid(name).signals(Duration::ZERO)
}

fn deaf(name: &str) -> Kid {
    kid(name).stops(None)
}

fn begin(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> World {
    let mut world = World::ordered(rules, kids);
    world.advance(Duration::ZERO);
    world
}

mod first_start {
    use super::*;

    #[test]
    fn each_starts_when_the_one_before_is_ready() {
        let kids = [kid("a").signals(secs(1)), kid("b").signals(secs(2)), kid("c")];
        let mut world = begin(rules(), kids);
        assert_eq!(world.acts(), "start a#1");
        world.advance(secs(1));
        assert_eq!(world.acts(), "start b#1");
        world.advance(secs(5));
        assert_eq!(world.timed(), "3s start c#1, 3s up");
        assert_eq!(world.story("a"), "discovered → resolved → activating → active");
    }

    #[test]
    fn all_start_at_once_if_told_so_and_it_is_up_when_the_last_is() {
        let rules = Rules { start: Start::Concurrent, ..rules() };
        let kids = [kid("a").signals(secs(2)), kid("b").signals(secs(1)), kid("c")];
        let mut world = begin(rules, kids);
        assert_eq!(world.acts(), "start a#1, start b#1, start c#1");
        world.advance(secs(5));
        assert_eq!(world.timed(), "2s up");
    }

    #[test]
    fn a_requirement_gates_a_concurrent_start() {
        let rules = Rules { start: Start::Concurrent, ..rules() };
        let kids = [
            kid("a").signals(secs(2)),
            kid("b").requires("a").signals(secs(1)),
            kid("c").requires("a").requires("b"),
            kid("d"),
        ];
        let mut world = begin(rules, kids);
        assert_eq!(world.acts(), "start a#1, start d#1");
        assert_eq!(world.why("c"), Some("waits for a requirement"));
        assert_eq!(world.lifecycle("c"), Lifecycle::Discovered);
        world.advance(secs(5));
        assert_eq!(world.timed(), "2s start b#1, 3s start c#1, 3s up");
    }

    #[test]
    fn one_that_is_down_for_good_has_passed() {
        let kids = [
            prompt("a").transient().plays([Play::End]),
            prompt("b").plays([Play::Ignore]),
            prompt("c").temporary().plays([Play::Fail]),
            prompt("d").temporary().plays([Play::Ignore]),
            kid("e"),
        ];
        let mut world = begin(rules(), kids);
        assert_eq!(
            world.acts(),
            "start a#1, start b#1, start c#1, removed c, start d#1, removed d, start e#1, up"
        );
        assert_eq!(world.why("a"), Some("finished"));
        assert_eq!(world.why("b"), Some("declined to start"));
        assert_eq!(world.story("b"), "discovered → resolved → activating → stopped (ignored)");
        assert_eq!(
            world.story("a"),
            "discovered → resolved → activating → deactivating → stopped (normal)"
        );
    }

    #[test]
    fn one_that_fails_is_retried_and_holds_up_the_next_and_is_not_charged() {
        let kids = [prompt("a").plays([Play::Fail; 4]), kid("b")];
        let mut world = begin(limited(1, waiting(rules())), kids);
        assert_eq!(world.acts(), "start a#1");
        assert_eq!(
            world.story("a"),
            "discovered → resolved → activating → errored (activation_failed) → restarting"
        );
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "200ms start a#2, 400ms start a#3, 600ms start a#4, 800ms start a#5, 800ms start b#1, \
             800ms up"
        );
    }

    #[test]
    fn without_a_delay_it_is_charged() {
        let mut world = begin(limited(2, rules()), [prompt("a").plays([Play::Fail; 9])]);
        assert_eq!(
            world.acts(),
            "start a#1, start a#2, start a#3, gave up a, finish escalated a: activation_failed"
        );
    }

    #[test]
    fn charge_everything_charges_it_too() {
        let rules = Rules { charge_everything: true, ..limited(1, waiting(rules())) };
        let mut world = begin(rules, [prompt("a").plays([Play::Fail; 9])]);
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns start a#1, 200ms start a#2, 200ms gave up a, \
             200ms finish escalated a: activation_failed"
        );
    }

    #[test]
    fn an_escalation_is_charged_also_before_it_was_active() {
        let kids = [prompt("a").plays([Play::Escalate; 9])];
        let mut world = begin(limited(1, waiting(rules())), kids);
        world.advance(secs(9));
        assert!(world.acts().ends_with("start a#2, gave up a, finish escalated a: escalated"));
    }

    #[test]
    fn with_no_restarts_there_is_no_second_attempt_not_even_before_active() {
        let mut world = begin(limited(0, waiting(rules())), [prompt("a").plays([Play::Fail])]);
        assert_eq!(world.acts(), "start a#1, gave up a, finish escalated a: activation_failed");
    }

    #[test]
    fn it_fails_as_a_whole_if_told_so() {
        let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
        let kids = [kid("a"), kid("b"), prompt("c").plays([Play::Panic]), kid("d")];
        let mut world = begin(rules, kids);
        assert_eq!(
            world.acts(),
            "start a#1, start b#1, start c#1, gave up c, cancel b, cancel a, \
             finish start failed c: panicked"
        );
    }

    #[test]
    fn once_it_is_up_a_failed_start_is_an_ordinary_failure() {
        let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
        let mut world = World::running(rules, [prompt("a").plays([Play::Run, Play::Fail])]);
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.timed(), "200ms start a#2, 400ms start a#3");
    }

    #[test]
    fn a_child_that_is_not_ready_in_time_is_ended_and_then_retried() {
        let a = kid("a").signals(None).activation_timeout(secs(3)).stops(secs(1));
        let mut world = begin(waiting(rules()), [a]);
        world.kid("a").ready = Some(ms(1));
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns start a#1, 3s cancel a, 4s start a#2, 4.001s up");
        assert_eq!(
            world.story("a"),
            "discovered → resolved → activating → errored (activation_timed_out) → resolved → \
             activating → active"
        );
    }

    #[test]
    fn one_that_waits_for_what_will_come_holds_up_the_next() {
        let kids = [
            kid("a").backoff(Backoff::constant(secs(3))),
            kid("b").signals(secs(1)),
            kid("c").requires("a"),
            kid("d"),
        ];
        let mut world = begin(rules(), kids);
        world.fail("a");
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns start a#1, 0ns start b#1, 3s start a#2, 3s start c#1, 3s start d#1, 3s up"
        );
    }

    #[test]
    fn under_concurrent_start_it_is_up_when_all_have_passed_also_after_a_group_restart() {
        let rules = Rules { start: Start::Concurrent, ..rest_for_one() };
        let mut world = begin(rules, [kid("a").signals(secs(2)), kid("b"), kid("c")]);
        world.fail("b");
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns start a#1, 0ns start b#1, 0ns start c#1, 0ns cancel c, 0ns start b#2, \
             0ns start c#2, 2s up"
        );
    }

    #[test]
    fn one_that_waits_for_what_is_down_for_good_has_passed_and_starts_when_that_comes() {
        let kids = [prompt("a").plays([Play::Ignore]), kid("b").requires("a"), kid("c")];
        let mut world = begin(rules(), kids);
        assert_eq!(world.acts(), "start a#1, start c#1, up");
        assert_eq!(world.call("a", ChildRequest::RestartStopped), "started 2");
        assert_eq!(world.acts(), "start a#2, start b#1");
    }

    #[test]
    fn a_requirement_that_ended_well_is_met() {
        let kids = [
            prompt("a").transient().plays([Play::End]),
            prompt("b").temporary().plays([Play::End]),
            kid("c").requires("a").requires("b"),
        ];
        let mut world = begin(rules(), kids);
        assert_eq!(world.acts(), "start a#1, start b#1, removed b, start c#1, up");
    }

    #[test]
    fn a_slow_start_does_not_keep_from_stopping() {
        let kids = [kid("a"), kid("b").signals(None), kid("c")];
        let mut world = begin(rules(), kids);
        world.stop();
        assert_eq!(world.acts(), "start a#1, start b#1, cancel b, cancel a, finish stopped");
    }

    #[test]
    fn a_group_restart_during_it_revives_only_its_range() {
        let kids = [
            prompt("a").transient().plays([Play::End]),
            kid("b"),
            kid("c").signals(secs(1)),
            kid("d"),
        ];
        let mut world = begin(rest_for_one(), kids);
        world.fail("b");
        assert_eq!(world.acts(), "start a#1, start b#1, start c#1, cancel c, start b#2, start c#2");
        assert_eq!(world.lifecycle("d"), Lifecycle::Discovered, "its turn has not come");
        world.advance(secs(1));
        assert_eq!(world.acts(), "start d#1, up");
    }

    #[test]
    fn many_start_in_slices() {
        let kids = (0..300).map(|number| kid(&number.to_string()));
        let mut world = World::running(rules(), kids);
        assert_eq!(world.alive().split(' ').count(), 300);
        world.stop();
        assert!(world.acts().starts_with("cancel 299, cancel 298"));
        assert!(world.finished());
    }
}

mod restart {
    use super::*;

    #[test]
    fn a_restart_type_decides() {
        let kids = || [kid("p"), kid("t").transient(), kid("x").temporary()];

        let mut world = World::running(rules(), kids());
        for name in ["p", "t", "x"] {
            world.fail(name);
        }
        assert_eq!(world.acts(), "start p#2, start t#2, removed x");

        let mut world = World::running(rules(), kids());
        for name in ["p", "t", "x"] {
            world.end(name);
        }
        assert_eq!(world.acts(), "start p#2, removed x");
        assert_eq!(world.lifecycle("t"), Lifecycle::Stopped);
    }

    #[test]
    fn it_waits_by_itself_under_one_for_one() {
        let mut world = World::named(waiting(one_for_one()), "a b c");
        world.fail("b");
        assert_eq!(world.story("b"), "active → errored (failed) → restarting");
        world.advance(ms(100));
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.timed(), "200ms start b#2, 300ms start a#2");
    }

    #[test]
    fn a_clean_end_of_a_permanent_child_is_charged_and_delayed() {
        let mut world = World::named(limited(1, waiting(rules())), "a b");
        world.end("a");
        assert_eq!(world.story("a"), "active → deactivating → stopped (normal) → restarting");
        world.advance(secs(1));
        world.end("a");
        assert_eq!(world.acts(), "start a#2, gave up a, cancel b, finish escalated a: normal");
    }

    #[test]
    fn intensity_restarts_are_granted_and_the_next_ends_it() {
        let mut world = World::named(limited(2, one_for_one()), "a b c");
        for name in ["a", "b", "b"] {
            world.fail(name);
        }
        assert_eq!(
            world.acts(),
            "start a#2, start b#2, gave up b, cancel c, cancel a, finish escalated b: failed"
        );
    }

    #[test]
    fn old_restarts_leave_the_window() {
        let rules = Rules { intensity: sliding(1), ..one_for_one() };
        let mut world = World::named(rules, "a");
        for _ in 0..5 {
            world.fail("a");
            world.advance(ms(1_001));
        }
        assert_eq!(world.alive(), "a#6");
        world.fail("a");
        world.advance(secs(1));
        world.fail("a");
        assert!(world.finished(), "exactly a period old still counts");
    }

    #[test]
    fn a_group_costs_one_unit() {
        let names = "a b c d e f g h i j";
        let mut world = World::named(limited(2, one_for_all()), names);
        world.fail("c");
        world.fail("d");
        assert!(!world.finished());
        world.fail("e");
        assert!(world.finished());
    }

    #[test]
    fn a_long_life_makes_the_next_backoff_begin_anew() {
        let doubling = Backoff::exponential(ms(100), secs(10)).reset_after(secs(30));
        let rules = Rules { backoff: doubling, ..one_for_one() };
        let mut world = World::named(rules, "a");
        world.fail("a");
        world.advance(secs(1));
        world.fail("a");
        world.advance(secs(31));
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.timed(), "100ms start a#2, 1.2s start a#3, 32.1s start a#4");
        // Also if it stops itself, or with others, in between.
        world.fail("a");
        world.advance(secs(40));
        let (key, incarnation) = (world.key("a"), 5);
        world.event(MachineEvent::StopSelf { key, incarnation });
        world.advance(secs(1));
        assert_eq!(world.timed(), "33.2s start a#5, 73s cancel a, 73.1s start a#6");
        world.fail("a");
        world.advance(ms(300));
        let (key, incarnation) = (world.key("a"), 7);
        world.event(MachineEvent::Healthy { key, incarnation });
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.timed(), "74.2s start a#7, 74.4s start a#8");
    }

    #[test]
    fn a_life_exactly_as_long_as_asked_for_is_long_enough() {
        let doubling = Backoff::exponential(ms(100), secs(10)).reset_after(secs(30));
        let mut world = World::running(one_for_one(), [kid("a").backoff(doubling)]);
        world.fail("a");
        world.advance(ms(30_100));
        world.fail("a");
        world.advance(secs(1));
        assert_eq!(world.timed(), "100ms start a#2, 30.2s start a#3");
    }

    #[test]
    fn what_declines_on_a_restart_stays_down() {
        let mut world = World::running(rules(), [prompt("a").plays([Play::Run, Play::Ignore])]);
        world.fail("a");
        assert_eq!(world.acts(), "start a#2");
        assert_eq!(world.why("a"), Some("declined to start"));
    }

    #[test]
    fn one_that_wants_to_stop_is_stopped_and_its_restart_type_decides() {
        let kids = [kid("p"), kid("t").transient(), kid("x").temporary()];
        let mut world = World::running(rules(), kids);
        for name in ["p", "t", "x"] {
            let key = world.key(name);
            world.event(MachineEvent::StopSelf { key, incarnation: 1 });
            world.settle();
        }
        assert_eq!(world.acts(), "cancel p, start p#2, cancel t, cancel x, removed x");
        assert_eq!(world.why("t"), Some("finished"));
    }

    #[test]
    fn a_requirement_gates_a_restart_too() {
        let mut world = World::running(waiting(one_for_one()), [kid("a"), kid("b").requires("a")]);
        world.fail("a");
        world.advance(ms(100));
        world.fail("b");
        assert_eq!(world.call("b", ChildRequest::Wake), "done");
        assert_eq!(
            world.story("b"),
            "active → errored (failed) → restarting → \
             resolved → discovered"
        );
        world.advance(secs(1));
        assert_eq!(world.timed(), "200ms start a#2, 200ms start b#2");
    }
}

mod group {
    use super::*;

    #[test]
    fn one_for_all_stops_all_in_reverse_and_starts_all_in_order() {
        let mut world = World::named(one_for_all(), "a b c d");
        world.fail("b");
        assert_eq!(
            world.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
        );
        assert_eq!(
            world.story("b"),
            "active → errored (failed) → restarting → resolved → activating → active"
        );
        assert_eq!(
            world.story("d"),
            "active → deactivating → stopped (shutdown) → resolved → activating → active"
        );
    }

    #[test]
    fn rest_for_one_leaves_those_before_alone() {
        let mut world = World::named(rest_for_one(), "a b c d");
        world.fail("b");
        assert_eq!(world.acts(), "cancel d, cancel c, start b#2, start c#2, start d#2");
    }

    #[test]
    fn under_concurrent_start_the_group_starts_at_once() {
        let rules = Rules { start: Start::Concurrent, ..one_for_all() };
        let kids = ["a", "b", "c"].map(|name| kid(name).signals(secs(1)));
        let mut world = begin(rules, kids);
        world.advance(secs(1));
        world.skip();
        world.fail("b");
        assert_eq!(world.acts(), "cancel c, cancel a, start a#2, start b#2, start c#2");
    }

    #[test]
    fn each_has_its_own_shutdown_and_then_the_group_waits() {
        let kids = [
            deaf("a").shutdown(secs(2)),
            kid("b"),
            kid("c").shutdown(Shutdown::BrutalKill),
            kid("d").stops(secs(1)),
        ];
        let mut world = World::running(waiting(one_for_all()), kids);
        world.fail("b");
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns cancel d, 1s abort c, 1s cancel a, 3s abort a, 3s start a#2, 3s start b#2, \
             3s start c#2, 3s start d#2",
            "the deadline counts from the failure"
        );
    }

    #[test]
    fn finished_stopped_and_parked_children_come_back() {
        let kids = [kid("a").transient(), kid("b"), kid("c"), kid("d").transient()];
        let mut world = World::running(rest_for_one(), kids);
        world.end("a");
        world.end("d");
        world.call("c", ChildRequest::Terminate);
        world.skip();
        world.fail("b");
        assert_eq!(world.acts(), "start b#2, start c#2, start d#2");
    }

    #[test]
    fn temporary_children_are_forgotten() {
        for (rules, expected) in [
            (one_for_all(), "cancel d, removed d, cancel a, removed a, start b#2, start c#2"),
            (rest_for_one(), "cancel d, removed d, start b#2, start c#2"),
        ] {
            let kids = [kid("a").temporary(), kid("b"), kid("c").transient(), kid("d").temporary()];
            let mut world = World::running(rules, kids);
            world.end("c");
            world.skip();
            world.fail("b");
            assert_eq!(world.acts(), expected);
        }
    }

    #[test]
    fn the_end_of_a_temporary_child_restarts_nobody() {
        for rules in [one_for_all(), rest_for_one()] {
            let mut world = World::running(rules, [kid("a").temporary(), kid("b")]);
            world.fail("a");
            assert_eq!(world.acts(), "removed a");
        }
    }

    #[test]
    fn a_second_crash_while_stopping_costs_nothing() {
        let kids = [kid("a"), kid("b"), kid("c"), kid("d").stops(secs(1))];
        let mut world = World::running(limited(1, waiting(one_for_all())), kids);
        world.fail("b");
        world.crash("c");
        assert_eq!(world.story("c"), "active → errored (failed) → stopped");
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "0ns cancel d, 1s cancel a, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
        );
    }

    #[test]
    fn one_that_ends_while_it_is_asked_to_is_not_asked_twice() {
        let kids = [kid("a"), kid("b"), kid("c"), kid("d").stops(secs(9))];
        let mut world = World::running(one_for_all(), kids);
        world.fail("b");
        world.fail("d");
        assert_eq!(
            world.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
        );
    }

    /// a, b, c, d; b crashes; c fails its next two starts.
    fn twice(rules: Rules) -> World {
        let c = prompt("c").plays([Play::Run, Play::Fail, Play::Fail]);
        World::running(rules, [kid("a"), kid("b"), c, kid("d")])
    }

    #[test]
    fn one_for_all_begins_again_from_the_first() {
        let mut world = twice(one_for_all());
        world.fail("b");
        assert_eq!(
            world.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, \
             cancel b, cancel a, start a#3, start b#3, start c#3, \
             cancel b, cancel a, start a#4, start b#4, start c#4, start d#2"
        );
    }

    #[test]
    fn rest_for_one_begins_again_from_the_one_that_failed() {
        let mut world = twice(rest_for_one());
        world.fail("b");
        assert_eq!(
            world.acts(),
            "cancel d, cancel c, start b#2, start c#2, start c#3, start c#4, start d#2"
        );
    }

    #[test]
    fn with_a_backoff_each_attempt_waits() {
        let mut world = twice(limited(1, waiting(one_for_all())));
        world.fail("b");
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "0ns cancel d, 0ns cancel c, 0ns cancel a, \
             200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms cancel b, 200ms cancel a, \
             400ms start a#3, 400ms start b#3, 400ms start c#3, 400ms cancel b, 400ms cancel a, \
             600ms start a#4, 600ms start b#4, 600ms start c#4, 600ms start d#2"
        );
        let mut world = twice(limited(1, waiting(rest_for_one())));
        world.fail("b");
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "0ns cancel d, 0ns cancel c, 200ms start b#2, 200ms start c#2, 400ms start c#3, \
             600ms start c#4, 600ms start d#2"
        );
    }

    #[test]
    fn failed_attempts_use_the_budget_up() {
        let b = prompt("b").plays([Play::Run, Play::Fail, Play::Fail, Play::Fail]);
        let mut world = World::running(limited(2, one_for_all()), [kid("a"), b]);
        world.fail("a");
        assert_eq!(
            world.acts(),
            "cancel b, start a#2, start b#2, cancel a, start a#3, start b#3, gave up b, cancel a, \
             finish escalated b: activation_failed"
        );
    }

    #[test]
    fn an_earlier_crash_while_a_later_one_waits_takes_the_later_deadline() {
        let kids = [kid("a").backoff(Backoff::constant(ms(50))), kid("b"), kid("c"), kid("d")];
        let mut world = World::running(limited(2, waiting(rest_for_one())), kids);
        world.fail("c");
        world.advance(ms(100));
        world.fail("a");
        assert_eq!(world.lifecycle("c"), Lifecycle::Stopped);
        assert_eq!(world.lifecycle("a"), Lifecycle::Restarting);
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "0ns cancel d, 100ms cancel b, \
             200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms start d#2"
        );
        world.fail("a");
        assert!(world.finished(), "it was two units");
    }

    #[test]
    fn or_its_own_if_that_is_the_later() {
        let kids = [kid("a"), kid("b"), kid("c").backoff(Backoff::constant(ms(250)))];
        let mut world = World::running(waiting(rest_for_one()), kids);
        world.fail("c");
        world.advance(ms(100));
        world.fail("a");
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "100ms cancel b, 300ms start a#2, 300ms start b#2, 300ms start c#2"
        );
    }

    #[test]
    fn one_that_is_no_longer_waited_for_is_stopped_like_the_others() {
        let kids = [kid("a"), kid("b"), kid("c").stops(secs(1)), kid("d")];
        let mut world = World::running(waiting(rest_for_one()), kids);
        world.fail("d");
        world.ask("b", ChildRequest::RestartRunning);
        assert_eq!(world.lifecycle("d"), Lifecycle::Restarting);
        world.fail("a");
        assert_eq!(world.lifecycle("d"), Lifecycle::Stopped);
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "0ns cancel c, 1s cancel b, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
        );
    }

    #[test]
    fn one_that_is_no_longer_waited_for_is_down_before_those_behind_it_are() {
        let kids = [kid("a"), kid("b"), kid("c").stops(secs(1))];
        let mut world = World::running(waiting(rest_for_one()), kids);
        world.fail("b");
        world.fail("a");
        assert_eq!(world.lifecycle("b"), Lifecycle::Stopped);
        assert_eq!(world.lifecycle("c"), Lifecycle::Deactivating);
        assert_eq!(world.call("b", ChildRequest::Wake), "unfit stopped");
        assert_eq!(world.call("b", ChildRequest::RestartStopped), "restarting");
        world.advance(secs(5));
        assert_eq!(world.causes(), "a#2 restart, b#2 group, c#2 group");
    }

    #[test]
    fn one_that_is_no_longer_waited_for_is_down_once_a_wider_range_comes_to_it() {
        let called = kid("called").on_message().signals(None);
        let leaks = kid("leaks").leaks().on_leak(OnLeak::Park).shutdown(Shutdown::BrutalKill);
        let last = kid("last").signals(None);
        let mut world = World::ordered(waiting(rest_for_one()), [called, kid("a"), leaks, last]);
        world.settle();
        world.send("called");
        world.fail("a");
        world.advance(WAIT);
        assert_eq!(
            world.lifecycle("a"),
            Lifecycle::Restarting,
            "it comes after the one in front of it"
        );

        world.ask("leaks", ChildRequest::Retry);
        world.fail("called");
        assert_eq!(world.lifecycle("a"), Lifecycle::Stopped);
        assert_eq!(world.call("a", ChildRequest::Wake), "unfit stopped");
    }

    #[test]
    fn nobody_is_said_to_be_next_in_a_group_that_stays_down() {
        let kids = [kid("a"), kid("b").stops(secs(9)), kid("c")];
        let mut world = World::running(waiting(one_for_all()), kids);
        world.fail("c");
        assert_eq!(world.stops_now(), Some("b"));

        // Others can be started behind them from now on.
        world.ask("c", ChildRequest::Terminate);
        assert_eq!(world.stops_now(), None);
        world.add(kid("d"));
        assert_eq!(world.lifecycle("d"), Lifecycle::Active);
    }

    #[test]
    fn nobody_is_said_to_be_next_in_a_range_of_which_a_part_stays_down() {
        let first = kid("a").consecutive(0).on_exhausted(OnExhausted::StopChild);
        let kids = [first, kid("b").stops(secs(9)), kid("c").stops(secs(1)), kid("d")];
        let mut world = World::running(waiting(rest_for_one()), kids);
        world.fail("a");
        world.add(kid("e"));
        world.fail("e");
        world.advance(secs(1));
        assert_eq!(world.lifecycle("b"), Lifecycle::Deactivating);

        assert_eq!(world.stops_now(), None);
        // It is not of the part that is started again, nor is it being stopped.
        world.ask("d", ChildRequest::RestartStopped);
        assert_eq!(world.lifecycle("d"), Lifecycle::Active);
    }

    #[test]
    fn one_that_is_no_longer_waited_for_does_not_wait_for_what_will_not_come() {
        let kids = || [kid("a"), kid("b"), kid("c").stops(secs(1))];
        let mut terminated = World::running(waiting(rest_for_one()), kids());
        terminated.fail("b");
        terminated.fail("a");
        assert_eq!(terminated.call("a", ChildRequest::Terminate), "done");
        let mut parked = World::running(parking(1, waiting(rest_for_one())), kids());
        parked.fail("b");
        parked.fail("a");
        for mut world in [terminated, parked] {
            assert_eq!(world.lifecycle("b"), Lifecycle::Stopped);
            assert_eq!(world.call("b", ChildRequest::RestartStopped), "stopped");
            // It is of no group that waits.
            world.skip();
            let added = world.add(kid("d"));
            assert_eq!(world.answer(added), "started 1");
            world.advance(secs(5));
            assert_eq!(world.why("b"), Some("stopped with its group"));
            assert_eq!(world.acts(), "start d#1");
            assert_eq!(world.alive(), "d#1");
            assert_eq!(world.call("b", ChildRequest::Delete), "done");
        }
    }

    #[test]
    fn one_whose_turn_comes_waits_for_it_while_a_range_behind_it_is_told_to_start() {
        let kids = [
            prompt("a"),
            kid("b"),
            kid("z").leaks().on_leak(OnLeak::Park),
            kid("slow").signals(None),
        ];
        let mut world = begin(waiting(rest_for_one()), kids);
        world.call("z", ChildRequest::Kill);
        world.call("a", ChildRequest::Terminate);
        world.kid("a").ready = Some(secs(5));
        world.ask("a", ChildRequest::RestartStopped);
        world.advance(secs(1));
        world.fail("b");
        world.advance(secs(1));
        world.skip();
        world.ask("z", ChildRequest::Retry);
        assert_eq!(world.lifecycle("b"), Lifecycle::Restarting);
        world.advance(secs(5));
        assert_eq!(world.causes(), "b#2 restart, z#2 manual, slow#2 group");
    }

    #[test]
    fn one_that_finishes_in_its_turn_has_had_it() {
        let c = prompt("c").transient().plays([Play::Run, Play::End]);
        let mut world = World::running(one_for_all(), [kid("a"), kid("b"), c, kid("d")]);
        world.fail("a");
        assert!(world.acts().ends_with("start a#2, start b#2, start c#2, start d#2"));
        assert_eq!(world.why("c"), Some("finished"));
    }

    #[test]
    fn one_that_requires_a_later_one_lets_that_have_its_turn() {
        for failed in ["b", "a", "c"] {
            let kids = [kid("a"), kid("b").requires("a"), kid("c")];
            let mut world = World::running(waiting(one_for_all()), kids);
            world.call("a", ChildRequest::Terminate);
            world.call("a", ChildRequest::Delete);
            world.add(kid("a"));
            world.skip();
            world.fail(failed);
            world.advance(secs(5));
            let acts = world.acts();
            assert!(acts.contains("start c#2, start a#2, start b#2"), "{failed}: {acts}");
        }
    }

    #[test]
    fn a_crash_of_one_whose_turn_was_to_come_keeps_nobody_from_his() {
        // `b` is parked and with it the rest, `d` is started by hand, `b` is tried again and takes
        // its time, and meanwhile `d` fails.
        let restarts = |max, failures| {
            let rules = Rules { intensity: sliding(max), ..parking(max, rest_for_one()) };
            let kids = [kid("a"), prompt("b"), kid("c"), kid("d")];
            let mut world = World::running(rules, kids);
            for _ in 0..=max {
                world.fail("b");
            }
            assert_eq!(
                world.call("d", ChildRequest::RestartStopped),
                format!("started {}", max + 2)
            );
            world.kid("b").ready = Some(secs(5));
            world.skip();
            world.ask("b", ChildRequest::Retry);
            for _ in 0..failures {
                world.fail("d");
            }
            world.advance(secs(9));
            world.acts()
        };
        assert_eq!(restarts(0, 1), "start b#2, gave up d, start c#2");
        assert_eq!(restarts(1, 1), "start b#3, start c#3, start d#4");
    }

    #[test]
    fn one_that_is_terminated_while_the_group_waits_stays_down() {
        let mut world = World::named(waiting(one_for_all()), "a b c");
        world.fail("a");
        assert_eq!(world.call("b", ChildRequest::Terminate), "done");
        assert_eq!(world.call("c", ChildRequest::Terminate), "done");
        let ticket = world.ask("c", ChildRequest::RestartStopped);
        world.advance(secs(5));
        assert_eq!(world.timed(), "0ns cancel c, 0ns cancel b, 200ms start a#2, 200ms start c#2");
        assert_eq!(world.answer(ticket), "started 2");
        assert_eq!(world.why("b"), Some("stopped by hand"));
        world.fail("a");
        world.advance(secs(5));
        assert!(world.acts().ends_with("start b#2, start c#3"), "the next group brings it back");
    }

    #[test]
    fn one_that_is_terminated_while_the_group_stops_stays_down() {
        for slow in ["b", "c"] {
            let kids = ["a", "b", "c"].map(|name| match name == slow {
                true => kid(name).stops(secs(1)),
                false => kid(name),
            });
            let mut world = begin(waiting(one_for_all()), kids);
            world.fail("a");
            let terminated = world.ask("b", ChildRequest::Terminate);
            world.advance(secs(2));
            assert_eq!(world.answer(terminated), "done");
            assert_eq!(world.why("b"), Some("stopped by hand"), "{slow} is slow");
            world.skip();
            world.fail("a");
            world.advance(secs(5));
            assert!(world.acts().contains("start b#2"), "the next group brings it back");
        }
    }

    #[test]
    fn one_that_is_terminated_while_the_group_stops_stays_down_also_if_that_begins_anew() {
        let kids = [kid("a"), kid("b"), kid("c").stops(secs(1))];
        let mut world = begin(waiting(rest_for_one()), kids);
        world.fail("b");
        assert_eq!(world.call("b", ChildRequest::Terminate), "done");
        world.fail("a");
        world.advance(secs(5));
        assert_eq!(world.why("b"), Some("stopped by hand"));
        assert!(world.acts().ends_with("start a#2, start c#2"));
    }

    #[test]
    fn one_that_is_wanted_again_while_the_group_stops_comes_back_with_it() {
        let mut world =
            begin(waiting(one_for_all()), [kid("a"), kid("b"), kid("c").stops(secs(1))]);
        world.fail("a");
        let terminated = world.ask("c", ChildRequest::Terminate);
        assert_eq!(world.call("c", ChildRequest::RestartRunning), "unfit deactivating");
        world.advance(secs(1));
        assert_eq!(world.answer(terminated), "done");
        let ticket = world.ask("c", ChildRequest::RestartStopped);
        world.advance(secs(1));
        assert_eq!(world.answer(ticket), "started 2");
    }

    #[test]
    fn a_temporary_child_that_is_stopped_with_its_group_is_not_restarting() {
        let kids = [kid("a"), kid("b").restart(RestartType::Temporary).stops(secs(1))];
        let mut world = begin(waiting(one_for_all()), kids);
        world.fail("a");
        assert_eq!(world.call("b", ChildRequest::RestartRunning), "unfit deactivating");
    }

    #[test]
    fn each_is_told_why_it_is_started() {
        let mut world = begin(rest_for_one(), [kid("a"), kid("b"), kid("c")]);
        assert_eq!(world.causes(), "a#1 initial, b#1 initial, c#1 initial");
        world.fail("b");
        assert_eq!(world.causes(), "b#2 restart, c#2 group");
        world.call("b", ChildRequest::RestartRunning);
        assert_eq!(world.causes(), "b#3 manual, c#3 group");
        world.add(kid("d"));
        world.call("c", ChildRequest::Terminate);
        world.call("c", ChildRequest::RestartStopped);
        assert_eq!(world.causes(), "d#1 manual, c#4 manual");

        let mut world = World::named(parking(0, one_for_all()), "a b");
        world.fail("a");
        world.call("a", ChildRequest::Retry);
        assert_eq!(world.causes(), "a#2 manual, b#2 group");
    }

    #[test]
    fn a_failure_while_starting_begins_again_at_its_range() {
        let kids = [kid("a"), kid("b"), kid("c").signals(secs(1)), kid("d")];
        let mut world = begin(waiting(rest_for_one()), kids);
        world.advance(secs(1));
        world.skip();
        world.fail("b");
        world.advance(ms(700));
        world.fail("a");
        world.advance(secs(5));
        assert_eq!(
            world.timed(),
            "1s cancel d, 1s cancel c, 1.2s start b#2, 1.2s start c#2, 1.7s cancel c, \
             1.7s cancel b, 1.9s start a#2, 1.9s start b#3, 1.9s start c#3, 2.9s start d#2"
        );
    }

    #[test]
    fn wake_cuts_the_wait_of_the_group_short() {
        let mut world = World::named(waiting(one_for_all()), "a b");
        world.fail("a");
        assert_eq!(world.call("b", ChildRequest::Wake), "unfit stopped");
        assert_eq!(world.call("a", ChildRequest::Wake), "done");
        assert_eq!(world.timed(), "0ns cancel b, 0ns start a#2, 0ns start b#2");
        assert_eq!(world.machine.next_deadline(), None);
    }

    #[test]
    fn terminating_the_one_it_waits_for_ends_it() {
        let mut world = World::named(waiting(rest_for_one()), "a b c d");
        world.fail("b");
        assert_eq!(world.call("b", ChildRequest::Terminate), "done");
        world.advance(secs(9));
        assert_eq!(world.acts(), "cancel d, cancel c");
        assert_eq!(world.alive(), "a#1");
        assert_eq!(world.why("b"), Some("stopped by hand"));
        assert_eq!(world.why("c"), Some("stopped with its group"));
        assert_eq!(world.call("c", ChildRequest::RestartStopped), "started 2");
    }

    #[test]
    fn one_that_is_about_to_be_told_that_it_stays_down_is_not_started_before() {
        let others = (0..200).map(|number| kid(&number.to_string()));
        let kids = [prompt("a").plays([Play::Fail])].into_iter().chain(others);
        let mut world = begin(waiting(one_for_all()), kids);
        world.ask("a", ChildRequest::Terminate);
        assert_eq!(world.call("5", ChildRequest::Start), "stopped");
        world.advance(secs(5));
        assert_eq!(world.why("5"), Some("stopped with its group"));
        assert_eq!(world.call("5", ChildRequest::RestartStopped), "started 1");
        assert_eq!(world.alive(), "5#1");
    }

    #[test]
    fn a_group_can_be_restarted_by_hand_uncharged() {
        let mut world = World::named(limited(0, waiting(rest_for_one())), "a b c");
        assert_eq!(world.call("b", ChildRequest::RestartRunning), "started 2");
        assert_eq!(world.acts(), "cancel c, cancel b, start b#2, start c#2");
    }
}

mod limit {
    use super::*;

    #[test]
    fn a_parked_child_waits_for_retry_and_the_others_go_on() {
        let mut world = World::named(parking(1, one_for_one()), "a b c");
        world.fail("b");
        world.fail("b");
        assert_eq!(world.acts(), "start b#2, gave up b");
        assert_eq!(world.lifecycle("b"), Lifecycle::Errored);
        assert_eq!(world.why("b"), Some("given up"));
        assert_eq!(world.call("b", ChildRequest::Retry), "started 3");
        world.fail("b");
        assert_eq!(world.alive(), "a#1 b#4 c#1", "the window is clear");
    }

    #[test]
    fn a_parked_range_is_stopped_first_and_retry_starts_it() {
        let mut world = World::named(parking(0, waiting(rest_for_one())), "a b c d");
        world.fail("b");
        world.advance(secs(9));
        assert_eq!(world.acts(), "gave up b, cancel d, cancel c");
        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(world.acts(), "start b#2, start c#2, start d#2");
    }

    #[test]
    fn a_retry_that_comes_while_the_range_is_stopped_waits_for_that() {
        let kids = [kid("a"), kid("b"), kid("c"), kid("d").stops(secs(1))];
        let mut world = World::running(parking(0, rest_for_one()), kids);
        world.fail("b");
        let ticket = world.ask("b", ChildRequest::Retry);
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns gave up b, 0ns cancel d, 1s cancel c, 1s start b#2, 1s start c#2, 1s start d#2"
        );
        assert_eq!(world.answer(ticket), "started 2");
    }

    #[test]
    fn a_retry_in_a_part_of_a_range_that_is_parked_starts_that_part() {
        let kids = [kid("a"), kid("a2"), kid("b").stops(secs(1)), kid("c"), kid("d")];
        let mut world = World::running(parking(1, rest_for_one()), kids);
        world.fail("c");
        world.fail("c");
        world.fail("a");
        assert_eq!(
            world.acts(),
            "cancel d, start c#2, start d#2, gave up c, cancel d, gave up a, cancel b"
        );
        world.ask("c", ChildRequest::Retry);
        assert_eq!(world.call("a", ChildRequest::RestartStopped), "stopped");
        world.advance(secs(9));
        assert_eq!(world.acts(), "cancel a2, start c#3, start d#3");
        let [a2, d] = ["a2", "d"].map(|name| world.state(world.key(name)));
        assert_eq!((a2, d), (Some(State::Down(Down::Rested)), Some(State::Active)));
        assert_eq!(world.alive(), "c#3 d#3");
    }

    #[test]
    fn two_retries_in_a_range_that_is_being_parked_start_both() {
        let kids = [kid("a"), kid("b").stops(secs(1)), kid("c"), kid("c2"), kid("d")];
        let mut world = World::running(parking(0, rest_for_one()), kids);
        for name in ["d", "c", "a"] {
            world.fail(name);
        }
        let tickets = ["d", "c"].map(|name| world.ask(name, ChildRequest::Retry));
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns gave up d, 0ns gave up c, 0ns cancel c2, 0ns gave up a, 0ns cancel b, \
             1s start c#2, 1s start c2#2, 1s start d#2"
        );
        assert_eq!(tickets.map(|ticket| world.answer(ticket)), ["started 2"; 2]);
    }

    #[test]
    fn a_crash_while_a_range_is_being_told_of_a_retry_is_an_ordinary_failure() {
        let last = kid("z").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
        let kids = (0..200).map(|number| kid(&number.to_string())).chain([last]);
        let mut world = World::running(one_for_all(), kids);
        world.call("z", ChildRequest::Kill);
        world.advance(secs(1));
        world.kid("z").dies = Some(ms(1));
        world.skip();
        let ticket = world.ask("z", ChildRequest::Retry);
        world.fail("5");
        let acts = world.acts();
        assert_eq!(acts.matches("cancel").count(), 199);
        assert_eq!(acts.matches("start").count(), 201);
        assert_eq!(world.answer(ticket), "started 2");
    }

    #[test]
    fn a_parked_child_comes_back_with_its_group() {
        let kids = [kid("a"), kid("b"), kid("c").backoff(Backoff::none())];
        let rules = Rules { intensity: sliding(1), ..parking(1, rest_for_one()) };
        let mut world = World::running(rules, kids);
        world.fail("c");
        world.fail("c");
        world.advance(secs(2));
        world.skip();
        world.fail("b");
        assert_eq!(world.acts(), "start b#2, start c#3");
    }

    #[test]
    fn a_retry_during_the_first_start_does_not_make_it_come_up_early() {
        let rules = Rules { start: Start::Concurrent, ..parking(0, rest_for_one()) };
        let kids = [kid("a").signals(secs(2)), kid("b"), kid("c").stops(secs(1))];
        let mut world = begin(rules, kids);
        world.fail("b");
        world.skip();
        world.ask("b", ChildRequest::Retry);
        world.advance(secs(9));
        assert_eq!(world.timed(), "1s start b#2, 1s start c#2, 2s up");
    }

    #[test]
    fn the_first_start_goes_on_past_what_was_parked() {
        let kids =
            [kid("a").signals(secs(1)), prompt("b").plays([Play::Fail]).stops(secs(1)), kid("c")];
        let mut world = begin(parking(0, rest_for_one()), kids);
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns start a#1, 1s start b#1, 1s gave up b, 1s up");
        assert_eq!(world.lifecycle("c"), Lifecycle::Stopped);
        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(world.acts(), "start b#2, start c#1");
    }
}

mod stop {
    use super::*;

    #[test]
    fn in_reverse_one_at_a_time() {
        let kids = ["a", "b", "c"].map(|name| kid(name).stops(secs(1)));
        let mut world = World::running(rules(), kids);
        world.stop();
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns cancel c, 1s cancel b, 2s cancel a, 3s finish stopped");
    }

    #[test]
    fn those_that_are_down_are_passed_in_slices_and_meanwhile_nobody_is_asked() {
        for ended in SLICE - 2..SLICE + 2 {
            let others = (0..ended).map(|number| kid(&number.to_string()).transient());
            let mut world = World::running(one_for_one(), [kid("a")].into_iter().chain(others));
            for number in 0..ended {
                world.end(&number.to_string());
            }
            world.event(MachineEvent::Stop { within: None });
            world.decide("a", FailureDecision::give_up());
            world.settle();
            assert_eq!(world.acts(), "cancel a, finish stopped", "{ended} have ended");
        }
    }

    #[test]
    fn grace_then_abort_then_leak_then_finish() {
        let kids = [
            kid("a"),
            kid("b").leaks().shutdown(secs(2)),
            deaf("c").shutdown(Duration::ZERO),
            kid("d").leaks().shutdown(Shutdown::BrutalKill),
            deaf("e"),
        ];
        let mut world = World::running(rules(), kids);
        world.stop();
        world.advance(secs(60));
        assert_eq!(
            world.timed(),
            "0ns cancel e, 5s abort e, 5s abort d, 6s leaked d#1, 6s cancel c, 6s abort c, \
             6s cancel b, 8s abort b, 9s leaked b#1, 9s cancel a, 9s finish stopped"
        );
        assert_eq!(world.story("e"), "active → deactivating → stopped (killed)");
    }

    #[test]
    fn on_expiry_of_the_whole_all_that_is_left_is_aborted_in_reverse() {
        let kids = ["a", "b", "c"].map(deaf);
        let mut world = World::running(rules(), kids);
        world.event(MachineEvent::Stop { within: Some(secs(7)) });
        world.event(MachineEvent::Stop { within: Some(secs(60)) });
        world.advance(secs(60));
        assert_eq!(
            world.timed(),
            "0ns cancel c, 5s abort c, 5s cancel b, 7s abort b, 7s abort a, 7s finish stopped"
        );
    }

    #[test]
    fn the_rules_may_set_the_deadline() {
        let rules = Rules { stop_deadline: Some(secs(1)), ..rules() };
        let kids = [kid("a").leaks(), kid("b").leaks()];
        let mut world = World::running(rules, kids);
        world.stop();
        world.advance(secs(60));
        assert_eq!(
            world.timed(),
            "0ns cancel b, 1s abort b, 1s abort a, 2s leaked a#1, 2s leaked b#1, 2s finish stopped"
        );
    }

    #[test]
    fn abort_all_aborts_all() {
        let kids = [kid("a"), kid("b"), kid("c").stops(secs(1))];
        let mut world = World::running(rules(), kids);
        world.fail("a");
        world.call("c", ChildRequest::Terminate);
        world.event(MachineEvent::AbortAll);
        world.settle();
        assert_eq!(world.acts(), "start a#2, cancel c, abort c, abort b, abort a, finish aborted");
    }

    #[test]
    fn what_has_failed_and_leaks_is_stopped_in_the_end_whatever_else_is_asked_for() {
        let b = kid("b").signals(None).activation_timeout(secs(1)).leaks().on_leak(OnLeak::Park);
        let mut world = begin(rules(), [kid("a"), b]);
        world.advance(secs(1));
        assert_eq!(world.lifecycle("b"), Lifecycle::Errored);
        world.event(MachineEvent::AbortAll);
        world.advance(secs(9));
        assert!(world.finished());
    }

    #[test]
    fn the_first_reason_is_the_one() {
        let kids = [kid("a"), kid("b").stops(secs(1))];
        let mut world = World::running(limited(0, rules()), kids);
        world.fail("a");
        world.stop();
        world.event(MachineEvent::AbortAll);
        world.settle();
        assert_eq!(world.acts(), "gave up a, cancel b, abort b, finish escalated a: failed");
    }

    #[test]
    fn what_ends_meanwhile_neither_comes_back_nor_derails_it() {
        let reasons = [ExitReason::Normal, ExitReason::Shutdown, ExitReason::Hung];
        let types = [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];
        let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let mut kids = vec![kid("a")];
        let mut ends = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            kids.push(kid(name).restart(types[number / 3]));
            ends.push((name, reasons[number % 3].clone()));
        }
        kids.push(kid("z").stops(secs(1)));
        let mut world = World::running(limited(0, one_for_all()), kids);
        world.stop();
        for (name, reason) in ends {
            world.exit(name, reason);
        }
        world.advance(secs(9));
        assert_eq!(
            world.acts(),
            "cancel z, removed h, removed i, removed j, cancel a, finish stopped"
        );
    }

    #[test]
    fn a_backoff_that_is_over_meanwhile_starts_nobody() {
        let kids = [kid("a"), kid("b").stops(secs(1))];
        let mut world = World::running(waiting(one_for_one()), kids);
        world.fail("a");
        world.stop();
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns cancel b, 1s finish stopped");
        assert!(world.story("a").ends_with("restarting → stopped"));
    }

    #[test]
    fn in_every_phase_of_a_group_restart() {
        let slow = || [kid("a"), kid("b"), kid("c").stops(secs(1)), kid("d").stops(secs(1))];

        // While it stops: whoever is stopping is not asked twice.
        let mut world = World::running(waiting(rest_for_one()), slow());
        world.fail("b");
        world.stop();
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns cancel d, 1s cancel c, 2s cancel a, 2s finish stopped");

        // While it waits.
        let mut world = World::named(waiting(rest_for_one()), "a b c");
        world.fail("b");
        world.stop();
        assert_eq!(world.timed(), "0ns cancel c, 0ns cancel a, 0ns finish stopped");

        // While it starts.
        let kids = [kid("a"), kid("b").signals(secs(1)), kid("c")];
        let mut world = begin(one_for_all(), kids);
        world.advance(secs(1));
        world.fail("c");
        world.skip();
        world.stop();
        assert_eq!(world.acts(), "cancel b, cancel a, finish stopped");
        assert!(world.story("c").ends_with("restarting → stopped"));
    }

    #[test]
    fn a_supervisor_without_children_comes_up_and_ends() {
        let mut world = begin(rules(), []);
        world.stop();
        assert_eq!(world.acts(), "up, finish stopped");
    }

    #[test]
    fn it_ends_before_it_has_begun() {
        let mut world = World::ordered(rules(), [kid("a"), kid("b")]);
        world.stop();
        assert_eq!(world.acts(), "finish stopped");
    }
}

mod leak {
    use super::*;

    fn hung(on_leak: OnLeak, rules: Rules) -> World {
        let b = kid("b").leaks().shutdown(secs(1)).on_leak(on_leak);
        World::running(rules, [kid("a"), b, kid("c")])
    }

    #[test]
    fn a_leaked_child_is_restarted_like_any_failure() {
        let mut world = hung(OnLeak::Restart, limited(1, waiting(one_for_one())));
        assert_eq!(world.call("b", ChildRequest::Kill), "done");
        world.advance(secs(9));
        assert_eq!(world.timed(), "0ns abort b, 1s leaked b#1, 1s start b#2");
    }

    #[test]
    fn or_it_is_parked_if_it_must_not_run_twice() {
        let mut world = hung(OnLeak::Park, one_for_one());
        world.call("b", ChildRequest::Kill);
        world.advance(secs(9));
        assert_eq!(world.lifecycle("b"), Lifecycle::Errored, "it had failed");
        assert_eq!(world.why("b"), Some("leaked"));
        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");

        let ticket = world.ask("b", ChildRequest::Terminate);
        world.advance(secs(9));
        assert_eq!(world.answer(ticket), "done");
        assert_eq!(world.lifecycle("b"), Lifecycle::Stopped, "it was being stopped");
        assert_eq!(world.why("b"), Some("leaked"));
        assert_eq!(world.call("b", ChildRequest::RestartStopped), "started 3");
    }

    #[test]
    fn a_group_passes_a_leaked_child() {
        let mut world = hung(OnLeak::Park, one_for_all());
        world.fail("a");
        world.advance(secs(9));
        assert_eq!(
            world.timed(),
            "0ns cancel c, 0ns cancel b, 1s abort b, 2s leaked b#1, 2s start a#2, 2s start c#2"
        );
        world.fail("a");
        assert_eq!(world.acts(), "cancel c, start a#3, start c#3");
        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(world.acts(), "start b#2", "those that run go on");
    }

    #[test]
    fn a_leaked_child_can_be_asked_for_in_every_phase_of_a_group_restart() {
        let leaking = |name| kid(name).leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
        for rules in [one_for_all(), rest_for_one()] {
            for request in [ChildRequest::Retry, ChildRequest::RestartStopped] {
                for (who, wait) in [("a", 500), ("a", 1_500), ("z", 500), ("z", 1_500)] {
                    let rules = Rules { backoff: Backoff::constant(secs(2)), ..rules.clone() };
                    let kids = [leaking("a"), kid("b"), kid("c").stops(secs(1)), leaking("z")];
                    let mut world = World::running(rules, kids);
                    for name in ["a", "z"] {
                        world.ask(name, ChildRequest::Terminate);
                    }
                    world.advance(secs(2));
                    world.kid(who).dies = Some(ms(1));
                    world.fail("b");
                    world.advance(ms(wait));
                    world.skip();
                    let ticket = world.ask(who, request);
                    world.advance(secs(9));
                    assert_eq!(world.answer(ticket), "started 2", "{request:?} {who} {wait}");
                    assert_eq!(world.timed().matches("start").count(), 3);
                }
            }
        }
    }

    #[test]
    fn a_leaked_child_whose_start_is_asked_for_during_a_group_start_waits_for_its_turn() {
        let kids = [
            kid("a").signals(secs(1)),
            kid("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park),
        ];
        let mut world = begin(one_for_all(), kids);
        world.advance(secs(1));
        world.fail("a");
        world.advance(ms(1_500));
        world.skip();
        let ticket = world.ask("b", ChildRequest::RestartStopped);
        assert_eq!(world.acts(), "");
        world.advance(secs(1));
        assert_eq!(world.timed(), "3s start b#2");
        assert_eq!(world.answer(ticket), "started 2");
    }
}

mod auto_shutdown {
    use super::*;

    fn rules(auto_shutdown: AutoShutdown) -> Rules {
        Rules { auto_shutdown, ..one_for_one() }
    }

    #[test]
    fn the_first_significant_child_that_ends_for_good_ends_it() {
        let kids = || [kid("a"), kid("t").transient().significant(), kid("x").temporary()];
        let mut world = World::running(rules(AutoShutdown::AnySignificant), kids());
        world.fail("x");
        world.fail("t");
        assert_eq!(world.acts(), "removed x, start t#2", "one insignificant, one restarted");
        world.end("t");
        assert_eq!(world.acts(), "cancel a, finish auto");

        let x = kid("x").temporary().significant();
        let mut world = World::running(rules(AutoShutdown::AnySignificant), [kid("a"), x]);
        world.fail("x");
        assert_eq!(world.acts(), "removed x, cancel a, finish auto");
    }

    #[test]
    fn the_last_one_ends_it_if_all_must_have_ended() {
        let kids = [kid("a"), kid("t"), kid("x")];
        let [a, t, x] = kids;
        let kids = [a, t.transient().significant(), x.temporary().significant()];
        let mut world = World::running(rules(AutoShutdown::AllSignificant), kids);
        world.end("t");
        world.fail("x");
        assert_eq!(world.acts(), "removed x, cancel a, finish auto");
    }

    #[test]
    fn one_that_will_be_restarted_counts_as_there_and_one_stopped_by_hand_does_not() {
        let kids = || ["t", "u"].map(|name| kid(name).transient().significant());
        let all = || waiting(rules(AutoShutdown::AllSignificant));
        let mut world = World::running(all(), kids());
        world.fail("t");
        world.end("u");
        world.advance(secs(1));
        assert_eq!(world.acts(), "start t#2");

        let mut world = World::running(all(), kids());
        world.call("t", ChildRequest::Terminate);
        assert!(!world.finished(), "a stop by hand ends nothing");
        world.end("u");
        assert!(world.finished());
    }

    #[test]
    fn one_that_waits_for_its_group_counts_as_there_and_one_that_is_parked_does_not() {
        let kids = || {
            let [u, a, t] = ["u", "a", "t"].map(kid);
            [u.transient().significant(), a, t.transient().significant()]
        };
        let all = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let mut world = World::running(waiting(all.clone()), kids());
        world.fail("a");
        world.end("u");
        world.advance(secs(1));
        assert_eq!(world.acts(), "cancel t, start a#2, start t#2");

        let mut world = World::running(parking(0, all), kids());
        world.fail("a");
        world.end("u");
        assert_eq!(world.acts(), "gave up a, cancel t, finish auto");
    }

    #[test]
    fn one_that_is_being_stopped_by_hand_counts_as_gone_unless_its_group_brings_it_back() {
        let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let kids = || {
            let [u, a, t] = ["u", "a", "t"].map(kid);
            let u = u.temporary().significant();
            [u, a, t.transient().significant().stops(secs(1))]
        };
        let mut world = World::running(all(), kids());
        world.ask("t", ChildRequest::Terminate);
        world.end("u");
        world.advance(secs(1));
        assert_eq!(world.acts(), "cancel t, removed u, cancel a, finish auto");

        let mut world = World::running(all(), kids());
        world.ask("t", ChildRequest::Terminate);
        world.fail("a");
        world.end("u");
        world.advance(secs(1));
        assert_eq!(world.acts(), "cancel t, removed u, start a#2, start t#2");
    }

    #[test]
    fn when_the_last_one_ends_while_a_group_stops_it_is_the_group_that_decides() {
        let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let kids = |last: Kid| {
            let [u, a] = ["u", "a"].map(kid);
            [u.temporary().significant(), a, last.significant(), kid("z").stops(secs(1))]
        };
        let play = |world: &mut World| {
            world.fail("a");
            world.end("u");
            world.advance(secs(1));
        };

        let mut world = World::running(all(), kids(kid("x").temporary()));
        play(&mut world);
        let acts = "cancel z, removed u, cancel x, removed x, finish auto";
        assert_eq!(world.acts(), acts, "it is forgotten");

        let mut world = World::running(all(), kids(kid("t").transient()));
        play(&mut world);
        let acts = "cancel z, removed u, cancel t, start a#2, start t#2, start z#2";
        assert_eq!(world.acts(), acts, "it comes back");

        let mut world = World::running(all(), kids(kid("t").transient()));
        world.end("t");
        play(&mut world);
        let acts = "cancel z, removed u, start a#2, start t#2, start z#2";
        assert_eq!(world.acts(), acts, "it comes back, though it had ended");

        let mut world = World::running(parking(0, all()), kids(kid("t").transient()));
        play(&mut world);
        let acts = "gave up a, cancel z, removed u, cancel t, finish auto";
        assert_eq!(world.acts(), acts, "it stays down");
    }

    #[test]
    fn a_bystander_of_a_group_restart_ends_nothing() {
        let any = Rules { strategy: Strategy::OneForAll, ..rules(AutoShutdown::AnySignificant) };
        let kids =
            [kid("a"), kid("t").transient().significant(), kid("x").temporary().significant()];
        let mut world = World::running(any, kids);
        world.fail("a");
        assert_eq!(world.acts(), "cancel x, removed x, cancel t, start a#2, start t#2");
    }
}

mod declining {
    use super::*;

    #[test]
    fn one_that_declines_while_it_is_active_is_stopped_and_not_restarted() {
        let mut world = World::named(rules(), "a b");
        world.says("b", |key, incarnation| MachineEvent::Ignored { key, incarnation });
        world.advance(secs(9));
        assert_eq!(world.acts(), "");
        assert_eq!(world.story("b"), "active → deactivating → stopped (ignored)");
        assert_eq!(world.why("b"), Some("declined to start"));
    }
}

mod causes {
    use super::*;

    #[test]
    fn who_is_started_a_second_time_with_its_group_is_not_started_initially() {
        let kids = [kid("a"), kid("b").signals(None), kid("c")];
        let mut world = begin(one_for_all(), kids);
        assert_eq!(world.causes(), "a#1 initial, b#1 initial");
        world.fail("a");
        assert_eq!(world.causes(), "a#2 restart, b#2 group");
        world.ready("b");
        assert_eq!(world.causes(), "c#1 initial");
    }
}

#[test]
fn a_chain_of_requirements_can_be_asked_for() {
    let kids = [kid("a"), kid("b").requires("a"), kid("c").requires("b"), kid("d")];
    let mut world = World::ordered(rules(), kids);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| world.key(name));
    let id = world.machine.provided_by(a);
    assert_eq!(world.machine.chain_to(id, &[c]), Some(vec![c, b]));
    assert_eq!(world.machine.chain_to(id, &[d]), None);
}
