//! What follows when children of an ordered supervisor start, fail, hang and stop.

use std::time::Duration;

use crate::core::child::{ChildState, DownState};
use crate::core::verify::simulation::{
    FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, MachineEvent, SLICE};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::FailureDecision;
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
fn prompt(name: &str) -> FakeChild {
    fake(name).signals(Duration::ZERO)
}

fn deaf(name: &str) -> FakeChild {
    fake(name).stops(None)
}

fn begin(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
    let mut sim = Simulation::ordered(rules, fakes);
    sim.advance(Duration::ZERO);
    sim
}

mod first_start {
    use super::*;

    #[test]
    fn each_starts_when_the_one_before_is_ready() {
        let fakes = [fake("a").signals(secs(1)), fake("b").signals(secs(2)), fake("c")];
        let mut sim = begin(rules(), fakes);
        assert_eq!(sim.acts(), "start a#1");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "start b#1");
        sim.advance(secs(5));
        assert_eq!(sim.timed(), "3s start c#1, 3s up");
        assert_eq!(sim.story("a"), "discovered → resolved → activating → active");
    }

    #[test]
    fn a_concurrent_start_starts_all_children_and_is_up_with_the_last() {
        let rules = Rules { start: Start::Concurrent, ..rules() };
        let fakes = [fake("a").signals(secs(2)), fake("b").signals(secs(1)), fake("c")];
        let mut sim = begin(rules, fakes);
        assert_eq!(sim.acts(), "start a#1, start b#1, start c#1");
        sim.advance(secs(5));
        assert_eq!(sim.timed(), "2s up");
    }

    #[test]
    fn a_requirement_gates_a_concurrent_start() {
        let rules = Rules { start: Start::Concurrent, ..rules() };
        let fakes = [
            fake("a").signals(secs(2)),
            fake("b").requires("a").signals(secs(1)),
            fake("c").requires("a").requires("b"),
            fake("d"),
        ];
        let mut sim = begin(rules, fakes);
        assert_eq!(sim.acts(), "start a#1, start d#1");
        assert_eq!(sim.why("c"), Some("waits for a requirement"));
        assert_eq!(sim.lifecycle("c"), Lifecycle::Discovered);
        sim.advance(secs(5));
        assert_eq!(sim.timed(), "2s start b#1, 3s start c#1, 3s up");
    }

    #[test]
    fn a_child_that_is_down_for_good_lets_the_next_start() {
        let fakes = [
            prompt("a").transient().scripts([Script::End]),
            prompt("b").scripts([Script::Ignore]),
            prompt("c").temporary().scripts([Script::Fail]),
            prompt("d").temporary().scripts([Script::Ignore]),
            fake("e"),
        ];
        let mut sim = begin(rules(), fakes);
        assert_eq!(
            sim.acts(),
            "start a#1, start b#1, start c#1, removed c, start d#1, removed d, start e#1, up"
        );
        assert_eq!(sim.why("a"), Some("finished"));
        assert_eq!(sim.why("b"), Some("declined to start"));
        assert_eq!(sim.story("b"), "discovered → resolved → activating → stopped (ignored)");
        assert_eq!(
            sim.story("a"),
            "discovered → resolved → activating → deactivating → stopped (normal)"
        );
    }

    #[test]
    fn a_failed_first_start_is_retried_uncharged_and_blocks_the_next_child() {
        let fakes = [prompt("a").scripts([Script::Fail; 4]), fake("b")];
        let mut sim = begin(limited(1, waiting(rules())), fakes);
        assert_eq!(sim.acts(), "start a#1");
        assert_eq!(
            sim.story("a"),
            "discovered → resolved → activating → errored (activation_failed) → restarting"
        );
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "200ms start a#2, 400ms start a#3, 600ms start a#4, 800ms start a#5, 800ms start b#1, \
             800ms up"
        );
    }

    #[test]
    fn without_a_delay_it_is_charged() {
        let mut sim = begin(limited(2, rules()), [prompt("a").scripts([Script::Fail; 9])]);
        assert_eq!(
            sim.acts(),
            "start a#1, start a#2, start a#3, gave up a, finish escalated a: activation_failed"
        );
    }

    #[test]
    fn charge_everything_charges_it_too() {
        let rules = Rules { charge_everything: true, ..limited(1, waiting(rules())) };
        let mut sim = begin(rules, [prompt("a").scripts([Script::Fail; 9])]);
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns start a#1, 200ms start a#2, 200ms gave up a, \
             200ms finish escalated a: activation_failed"
        );
    }

    #[test]
    fn an_escalation_is_charged_also_before_it_was_active() {
        let fakes = [prompt("a").scripts([Script::Escalate; 9])];
        let mut sim = begin(limited(1, waiting(rules())), fakes);
        sim.advance(secs(9));
        assert!(sim.acts().ends_with("start a#2, gave up a, finish escalated a: escalated"));
    }

    #[test]
    fn with_no_restarts_there_is_no_second_attempt_not_even_before_active() {
        let mut sim = begin(limited(0, waiting(rules())), [prompt("a").scripts([Script::Fail])]);
        assert_eq!(sim.acts(), "start a#1, gave up a, finish escalated a: activation_failed");
    }

    #[test]
    fn the_first_start_fails_as_a_whole_if_configured() {
        let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
        let fakes = [fake("a"), fake("b"), prompt("c").scripts([Script::Panic]), fake("d")];
        let mut sim = begin(rules, fakes);
        assert_eq!(
            sim.acts(),
            "start a#1, start b#1, start c#1, gave up c, cancel b, cancel a, \
             finish start failed c: panicked"
        );
    }

    #[test]
    fn once_it_is_up_a_failed_start_is_an_ordinary_failure() {
        let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
        let mut sim =
            Simulation::running(rules, [prompt("a").scripts([Script::Run, Script::Fail])]);
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "200ms start a#2, 400ms start a#3");
    }

    #[test]
    fn a_child_that_is_not_ready_in_time_is_ended_and_then_retried() {
        let a = fake("a").signals(None).activation_timeout(secs(3)).stops(secs(1));
        let mut sim = begin(waiting(rules()), [a]);
        sim.fake("a").ready = Some(ms(1));
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns start a#1, 3s cancel a, 4s start a#2, 4.001s up");
        assert_eq!(
            sim.story("a"),
            "discovered → resolved → activating → errored (activation_timed_out) → resolved → \
             activating → active"
        );
    }

    #[test]
    fn a_child_gated_by_a_sibling_that_will_start_blocks_the_next() {
        let fakes = [
            fake("a").backoff(Backoff::constant(secs(3))),
            fake("b").signals(secs(1)),
            fake("c").requires("a"),
            fake("d"),
        ];
        let mut sim = begin(rules(), fakes);
        sim.fail("a");
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns start a#1, 0ns start b#1, 3s start a#2, 3s start c#1, 3s start d#1, 3s up"
        );
    }

    #[test]
    fn under_concurrent_start_it_is_up_when_all_have_passed_also_after_a_group_restart() {
        let rules = Rules { start: Start::Concurrent, ..rest_for_one() };
        let mut sim = begin(rules, [fake("a").signals(secs(2)), fake("b"), fake("c")]);
        sim.fail("b");
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns start a#1, 0ns start b#1, 0ns start c#1, 0ns cancel c, 0ns start b#2, \
             0ns start c#2, 2s up"
        );
    }

    #[test]
    fn a_child_gated_by_a_sibling_that_stays_down_blocks_no_start_and_starts_with_it() {
        let fakes = [prompt("a").scripts([Script::Ignore]), fake("b").requires("a"), fake("c")];
        let mut sim = begin(rules(), fakes);
        assert_eq!(sim.acts(), "start a#1, start c#1, up");
        assert_eq!(sim.call("a", ChildRequest::RestartStopped), "started 2");
        assert_eq!(sim.acts(), "start a#2, start b#1");
    }

    #[test]
    fn a_requirement_that_ended_well_is_met() {
        let fakes = [
            prompt("a").transient().scripts([Script::End]),
            prompt("b").temporary().scripts([Script::End]),
            fake("c").requires("a").requires("b"),
        ];
        let mut sim = begin(rules(), fakes);
        assert_eq!(sim.acts(), "start a#1, start b#1, removed b, start c#1, up");
    }

    #[test]
    fn a_slow_start_does_not_keep_from_stopping() {
        let fakes = [fake("a"), fake("b").signals(None), fake("c")];
        let mut sim = begin(rules(), fakes);
        sim.stop();
        assert_eq!(sim.acts(), "start a#1, start b#1, cancel b, cancel a, finish stopped");
    }

    #[test]
    fn a_group_restart_during_it_revives_only_its_range() {
        let fakes = [
            prompt("a").transient().scripts([Script::End]),
            fake("b"),
            fake("c").signals(secs(1)),
            fake("d"),
        ];
        let mut sim = begin(rest_for_one(), fakes);
        sim.fail("b");
        assert_eq!(sim.acts(), "start a#1, start b#1, start c#1, cancel c, start b#2, start c#2");
        assert_eq!(sim.lifecycle("d"), Lifecycle::Discovered, "its turn has not come");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "start d#1, up");
    }

    #[test]
    fn many_start_in_slices() {
        let fakes = (0..300).map(|number| fake(&number.to_string()));
        let mut sim = Simulation::running(rules(), fakes);
        assert_eq!(sim.alive().split(' ').count(), 300);
        sim.stop();
        assert!(sim.acts().starts_with("cancel 299, cancel 298"));
        assert!(sim.finished());
    }
}

mod restart {
    use super::*;

    #[test]
    fn a_restart_type_decides() {
        let fakes = || [fake("p"), fake("t").transient(), fake("x").temporary()];

        let mut sim = Simulation::running(rules(), fakes());
        for name in ["p", "t", "x"] {
            sim.fail(name);
        }
        assert_eq!(sim.acts(), "start p#2, start t#2, removed x");

        let mut sim = Simulation::running(rules(), fakes());
        for name in ["p", "t", "x"] {
            sim.end(name);
        }
        assert_eq!(sim.acts(), "start p#2, removed x");
        assert_eq!(sim.lifecycle("t"), Lifecycle::Stopped);
    }

    #[test]
    fn it_waits_by_itself_under_one_for_one() {
        let mut sim = Simulation::named(waiting(one_for_one()), "a b c");
        sim.fail("b");
        assert_eq!(sim.story("b"), "active → errored (failed) → restarting");
        sim.advance(ms(100));
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "200ms start b#2, 300ms start a#2");
    }

    #[test]
    fn a_clean_end_of_a_permanent_child_is_charged_and_delayed() {
        let mut sim = Simulation::named(limited(1, waiting(rules())), "a b");
        sim.end("a");
        assert_eq!(sim.story("a"), "active → deactivating → stopped (normal) → restarting");
        sim.advance(secs(1));
        sim.end("a");
        assert_eq!(sim.acts(), "start a#2, gave up a, cancel b, finish escalated a: normal");
    }

    #[test]
    fn intensity_restarts_are_granted_and_the_next_ends_it() {
        let mut sim = Simulation::named(limited(2, one_for_one()), "a b c");
        for name in ["a", "b", "b"] {
            sim.fail(name);
        }
        assert_eq!(
            sim.acts(),
            "start a#2, start b#2, gave up b, cancel c, cancel a, finish escalated b: failed"
        );
    }

    #[test]
    fn old_restarts_leave_the_window() {
        let rules = Rules { intensity: sliding(1), ..one_for_one() };
        let mut sim = Simulation::named(rules, "a");
        for _ in 0..5 {
            sim.fail("a");
            sim.advance(ms(1_001));
        }
        assert_eq!(sim.alive(), "a#6");
        sim.fail("a");
        sim.advance(secs(1));
        sim.fail("a");
        assert!(sim.finished(), "exactly a period old still counts");
    }

    #[test]
    fn a_group_costs_one_unit() {
        let names = "a b c d e f g h i j";
        let mut sim = Simulation::named(limited(2, one_for_all()), names);
        sim.fail("c");
        sim.fail("d");
        assert!(!sim.finished());
        sim.fail("e");
        assert!(sim.finished());
    }

    #[test]
    fn a_long_life_makes_the_next_backoff_begin_anew() {
        let doubling = Backoff::exponential(ms(100), secs(10)).reset_after(secs(30));
        let rules = Rules { backoff: doubling, ..one_for_one() };
        let mut sim = Simulation::named(rules, "a");
        sim.fail("a");
        sim.advance(secs(1));
        sim.fail("a");
        sim.advance(secs(31));
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "100ms start a#2, 1.2s start a#3, 32.1s start a#4");
        // Also if it stops itself, or with its group, in between.
        sim.fail("a");
        sim.advance(secs(40));
        let (key, incarnation) = (sim.key("a"), 5);
        sim.event(MachineEvent::StopSelf { key, incarnation });
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "33.2s start a#5, 73s cancel a, 73.1s start a#6");
        sim.fail("a");
        sim.advance(ms(300));
        let (key, incarnation) = (sim.key("a"), 7);
        sim.event(MachineEvent::Healthy { key, incarnation });
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "74.2s start a#7, 74.4s start a#8");
    }

    #[test]
    fn a_life_exactly_as_long_as_asked_for_is_long_enough() {
        let doubling = Backoff::exponential(ms(100), secs(10)).reset_after(secs(30));
        let mut sim = Simulation::running(one_for_one(), [fake("a").backoff(doubling)]);
        sim.fail("a");
        sim.advance(ms(30_100));
        sim.fail("a");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "100ms start a#2, 30.2s start a#3");
    }

    #[test]
    fn what_declines_on_a_restart_stays_down() {
        let mut sim =
            Simulation::running(rules(), [prompt("a").scripts([Script::Run, Script::Ignore])]);
        sim.fail("a");
        assert_eq!(sim.acts(), "start a#2");
        assert_eq!(sim.why("a"), Some("declined to start"));
    }

    #[test]
    fn a_child_that_stops_itself_is_stopped_and_its_restart_type_decides() {
        let fakes = [fake("p"), fake("t").transient(), fake("x").temporary()];
        let mut sim = Simulation::running(rules(), fakes);
        for name in ["p", "t", "x"] {
            let key = sim.key(name);
            sim.event(MachineEvent::StopSelf { key, incarnation: 1 });
            sim.settle();
        }
        assert_eq!(sim.acts(), "cancel p, start p#2, cancel t, cancel x, removed x");
        assert_eq!(sim.why("t"), Some("finished"));
    }

    #[test]
    fn a_requirement_gates_a_restart_too() {
        let mut sim =
            Simulation::running(waiting(one_for_one()), [fake("a"), fake("b").requires("a")]);
        sim.fail("a");
        sim.advance(ms(100));
        sim.fail("b");
        assert_eq!(sim.call("b", ChildRequest::Wake), "done");
        assert_eq!(
            sim.story("b"),
            "active → errored (failed) → restarting → \
             resolved → discovered"
        );
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "200ms start a#2, 200ms start b#2");
    }
}

mod group {
    use super::*;

    #[test]
    fn one_for_all_stops_all_in_reverse_and_starts_all_in_order() {
        let mut sim = Simulation::named(one_for_all(), "a b c d");
        sim.fail("b");
        assert_eq!(
            sim.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
        );
        assert_eq!(
            sim.story("b"),
            "active → errored (failed) → restarting → resolved → activating → active"
        );
        assert_eq!(
            sim.story("d"),
            "active → deactivating → stopped (shutdown) → resolved → activating → active"
        );
    }

    #[test]
    fn rest_for_one_leaves_those_before_alone() {
        let mut sim = Simulation::named(rest_for_one(), "a b c d");
        sim.fail("b");
        assert_eq!(sim.acts(), "cancel d, cancel c, start b#2, start c#2, start d#2");
    }

    #[test]
    fn under_concurrent_start_the_group_starts_at_once() {
        let rules = Rules { start: Start::Concurrent, ..one_for_all() };
        let fakes = ["a", "b", "c"].map(|name| fake(name).signals(secs(1)));
        let mut sim = begin(rules, fakes);
        sim.advance(secs(1));
        sim.skip();
        sim.fail("b");
        assert_eq!(sim.acts(), "cancel c, cancel a, start a#2, start b#2, start c#2");
    }

    #[test]
    fn each_has_its_own_shutdown_and_then_the_group_waits() {
        let fakes = [
            deaf("a").shutdown(secs(2)),
            fake("b"),
            fake("c").shutdown(Shutdown::BrutalKill),
            fake("d").stops(secs(1)),
        ];
        let mut sim = Simulation::running(waiting(one_for_all()), fakes);
        sim.fail("b");
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns cancel d, 1s abort c, 1s cancel a, 3s abort a, 3s start a#2, 3s start b#2, \
             3s start c#2, 3s start d#2",
            "the deadline counts from the failure"
        );
    }

    #[test]
    fn finished_stopped_and_parked_children_come_back() {
        let fakes = [fake("a").transient(), fake("b"), fake("c"), fake("d").transient()];
        let mut sim = Simulation::running(rest_for_one(), fakes);
        sim.end("a");
        sim.end("d");
        sim.call("c", ChildRequest::Terminate);
        sim.skip();
        sim.fail("b");
        assert_eq!(sim.acts(), "start b#2, start c#2, start d#2");
    }

    #[test]
    fn temporary_children_are_forgotten() {
        for (rules, expected) in [
            (one_for_all(), "cancel d, removed d, cancel a, removed a, start b#2, start c#2"),
            (rest_for_one(), "cancel d, removed d, start b#2, start c#2"),
        ] {
            let fakes =
                [fake("a").temporary(), fake("b"), fake("c").transient(), fake("d").temporary()];
            let mut sim = Simulation::running(rules, fakes);
            sim.end("c");
            sim.skip();
            sim.fail("b");
            assert_eq!(sim.acts(), expected);
        }
    }

    #[test]
    fn the_end_of_a_temporary_child_restarts_no_sibling() {
        for rules in [one_for_all(), rest_for_one()] {
            let mut sim = Simulation::running(rules, [fake("a").temporary(), fake("b")]);
            sim.fail("a");
            assert_eq!(sim.acts(), "removed a");
        }
    }

    #[test]
    fn a_second_crash_while_stopping_costs_nothing() {
        let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(1))];
        let mut sim = Simulation::running(limited(1, waiting(one_for_all())), fakes);
        sim.fail("b");
        sim.crash("c");
        assert_eq!(sim.story("c"), "active → errored (failed) → stopped");
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "0ns cancel d, 1s cancel a, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
        );
    }

    #[test]
    fn a_child_that_ends_while_it_is_cancelled_is_not_cancelled_twice() {
        let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(9))];
        let mut sim = Simulation::running(one_for_all(), fakes);
        sim.fail("b");
        sim.fail("d");
        assert_eq!(
            sim.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, start d#2"
        );
    }

    /// a, b, c, d; b crashes; c fails its next two starts.
    fn twice(rules: Rules) -> Simulation {
        let c = prompt("c").scripts([Script::Run, Script::Fail, Script::Fail]);
        Simulation::running(rules, [fake("a"), fake("b"), c, fake("d")])
    }

    #[test]
    fn one_for_all_begins_again_from_the_first() {
        let mut sim = twice(one_for_all());
        sim.fail("b");
        assert_eq!(
            sim.acts(),
            "cancel d, cancel c, cancel a, start a#2, start b#2, start c#2, \
             cancel b, cancel a, start a#3, start b#3, start c#3, \
             cancel b, cancel a, start a#4, start b#4, start c#4, start d#2"
        );
    }

    #[test]
    fn rest_for_one_begins_again_at_the_failed_child() {
        let mut sim = twice(rest_for_one());
        sim.fail("b");
        assert_eq!(
            sim.acts(),
            "cancel d, cancel c, start b#2, start c#2, start c#3, start c#4, start d#2"
        );
    }

    #[test]
    fn with_a_backoff_each_attempt_waits() {
        let mut sim = twice(limited(1, waiting(one_for_all())));
        sim.fail("b");
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "0ns cancel d, 0ns cancel c, 0ns cancel a, \
             200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms cancel b, 200ms cancel a, \
             400ms start a#3, 400ms start b#3, 400ms start c#3, 400ms cancel b, 400ms cancel a, \
             600ms start a#4, 600ms start b#4, 600ms start c#4, 600ms start d#2"
        );
        let mut sim = twice(limited(1, waiting(rest_for_one())));
        sim.fail("b");
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "0ns cancel d, 0ns cancel c, 200ms start b#2, 200ms start c#2, 400ms start c#3, \
             600ms start c#4, 600ms start d#2"
        );
    }

    #[test]
    fn failed_attempts_use_the_budget_up() {
        let b = prompt("b").scripts([Script::Run, Script::Fail, Script::Fail, Script::Fail]);
        let mut sim = Simulation::running(limited(2, one_for_all()), [fake("a"), b]);
        sim.fail("a");
        assert_eq!(
            sim.acts(),
            "cancel b, start a#2, start b#2, cancel a, start a#3, start b#3, gave up b, cancel a, \
             finish escalated b: activation_failed"
        );
    }

    #[test]
    fn an_earlier_crash_while_a_later_one_waits_takes_the_later_deadline() {
        let fakes = [fake("a").backoff(Backoff::constant(ms(50))), fake("b"), fake("c"), fake("d")];
        let mut sim = Simulation::running(limited(2, waiting(rest_for_one())), fakes);
        sim.fail("c");
        sim.advance(ms(100));
        sim.fail("a");
        assert_eq!(sim.lifecycle("c"), Lifecycle::Stopped);
        assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "0ns cancel d, 100ms cancel b, \
             200ms start a#2, 200ms start b#2, 200ms start c#2, 200ms start d#2"
        );
        sim.fail("a");
        assert!(sim.finished(), "it was two units");
    }

    #[test]
    fn or_its_own_if_that_is_the_later() {
        let fakes = [fake("a"), fake("b"), fake("c").backoff(Backoff::constant(ms(250)))];
        let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
        sim.fail("c");
        sim.advance(ms(100));
        sim.fail("a");
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "100ms cancel b, 300ms start a#2, 300ms start b#2, 300ms start c#2"
        );
    }

    #[test]
    fn a_child_no_longer_awaited_is_stopped_with_its_siblings() {
        let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d")];
        let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
        sim.fail("d");
        sim.ask("b", ChildRequest::RestartRunning);
        assert_eq!(sim.lifecycle("d"), Lifecycle::Restarting);
        sim.fail("a");
        assert_eq!(sim.lifecycle("d"), Lifecycle::Stopped);
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "0ns cancel c, 1s cancel b, 1s start a#2, 1s start b#2, 1s start c#2, 1s start d#2"
        );
    }

    #[test]
    fn a_child_no_longer_awaited_is_down_before_the_children_behind_it() {
        let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
        let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
        sim.fail("b");
        sim.fail("a");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
        assert_eq!(sim.lifecycle("c"), Lifecycle::Deactivating);
        assert_eq!(sim.call("b", ChildRequest::Wake), "unfit stopped");
        assert_eq!(sim.call("b", ChildRequest::RestartStopped), "restarting");
        sim.advance(secs(5));
        assert_eq!(sim.causes(), "a#2 restart, b#2 group, c#2 group");
    }

    #[test]
    fn a_child_no_longer_awaited_is_down_once_a_wider_range_includes_it() {
        let called = fake("called").on_message().signals(None);
        let leaks = fake("leaks").leaks().on_leak(OnLeak::Park).shutdown(Shutdown::BrutalKill);
        let last = fake("last").signals(None);
        let mut sim =
            Simulation::ordered(waiting(rest_for_one()), [called, fake("a"), leaks, last]);
        sim.settle();
        sim.send("called");
        sim.fail("a");
        sim.advance(WAIT);
        assert_eq!(
            sim.lifecycle("a"),
            Lifecycle::Restarting,
            "it comes after the one in front of it"
        );

        sim.ask("leaks", ChildRequest::Retry);
        sim.fail("called");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Stopped);
        assert_eq!(sim.call("a", ChildRequest::Wake), "unfit stopped");
    }

    #[test]
    fn no_child_is_shown_as_next_in_a_group_that_stays_down() {
        let fakes = [fake("a"), fake("b").stops(secs(9)), fake("c")];
        let mut sim = Simulation::running(waiting(one_for_all()), fakes);
        sim.fail("c");
        assert_eq!(sim.stops_now(), Some("b"));

        // Later children can be started from now on.
        sim.ask("c", ChildRequest::Terminate);
        assert_eq!(sim.stops_now(), None);
        sim.add(fake("d"));
        assert_eq!(sim.lifecycle("d"), Lifecycle::Active);
    }

    #[test]
    fn no_child_is_shown_as_next_in_a_range_of_which_a_part_stays_down() {
        let first = fake("a").consecutive(0).on_exhausted(OnExhausted::StopChild);
        let fakes = [first, fake("b").stops(secs(9)), fake("c").stops(secs(1)), fake("d")];
        let mut sim = Simulation::running(waiting(rest_for_one()), fakes);
        sim.fail("a");
        sim.add(fake("e"));
        sim.fail("e");
        sim.advance(secs(1));
        assert_eq!(sim.lifecycle("b"), Lifecycle::Deactivating);

        assert_eq!(sim.stops_now(), None);
        // It is not of the part that is started again, nor is it being stopped.
        sim.ask("d", ChildRequest::RestartStopped);
        assert_eq!(sim.lifecycle("d"), Lifecycle::Active);
    }

    #[test]
    fn a_child_no_longer_awaited_does_not_wait_for_its_own_restart() {
        let fakes = || [fake("a"), fake("b"), fake("c").stops(secs(1))];
        let mut terminated = Simulation::running(waiting(rest_for_one()), fakes());
        terminated.fail("b");
        terminated.fail("a");
        assert_eq!(terminated.call("a", ChildRequest::Terminate), "done");
        let mut parked = Simulation::running(parking(1, waiting(rest_for_one())), fakes());
        parked.fail("b");
        parked.fail("a");
        for mut sim in [terminated, parked] {
            assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped);
            assert_eq!(sim.call("b", ChildRequest::RestartStopped), "stopped");
            // It is of no group that waits.
            sim.skip();
            let added = sim.add(fake("d"));
            assert_eq!(sim.answer(added), "started 1");
            sim.advance(secs(5));
            assert_eq!(sim.why("b"), Some("stopped with its group"));
            assert_eq!(sim.acts(), "start d#1");
            assert_eq!(sim.alive(), "d#1");
            assert_eq!(sim.call("b", ChildRequest::Delete), "done");
        }
    }

    #[test]
    fn a_child_yet_to_be_started_keeps_its_place_while_a_later_range_restarts() {
        let fakes = [
            prompt("a"),
            fake("b"),
            fake("z").leaks().on_leak(OnLeak::Park),
            fake("slow").signals(None),
        ];
        let mut sim = begin(waiting(rest_for_one()), fakes);
        sim.call("z", ChildRequest::Kill);
        sim.call("a", ChildRequest::Terminate);
        sim.fake("a").ready = Some(secs(5));
        sim.ask("a", ChildRequest::RestartStopped);
        sim.advance(secs(1));
        sim.fail("b");
        sim.advance(secs(1));
        sim.skip();
        sim.ask("z", ChildRequest::Retry);
        assert_eq!(sim.lifecycle("b"), Lifecycle::Restarting);
        sim.advance(secs(5));
        assert_eq!(sim.causes(), "b#2 restart, z#2 manual, slow#2 group");
    }

    #[test]
    fn a_child_that_finishes_at_its_start_lets_the_next_start() {
        let c = prompt("c").transient().scripts([Script::Run, Script::End]);
        let mut sim = Simulation::running(one_for_all(), [fake("a"), fake("b"), c, fake("d")]);
        sim.fail("a");
        assert!(sim.acts().ends_with("start a#2, start b#2, start c#2, start d#2"));
        assert_eq!(sim.why("c"), Some("finished"));
    }

    #[test]
    fn a_child_that_requires_a_later_sibling_lets_it_start_first() {
        for failed in ["b", "a", "c"] {
            let fakes = [fake("a"), fake("b").requires("a"), fake("c")];
            let mut sim = Simulation::running(waiting(one_for_all()), fakes);
            sim.call("a", ChildRequest::Terminate);
            sim.call("a", ChildRequest::Delete);
            sim.add(fake("a"));
            sim.skip();
            sim.fail(failed);
            sim.advance(secs(5));
            let acts = sim.acts();
            assert!(acts.contains("start c#2, start a#2, start b#2"), "{failed}: {acts}");
        }
    }

    #[test]
    fn a_crash_of_a_child_yet_to_be_started_does_not_block_its_siblings() {
        // `b` is parked and with it the rest, `d` is restarted, `b` is retried and takes
        // its time, and meanwhile `d` fails.
        let restarts = |max, failures| {
            let rules = Rules { intensity: sliding(max), ..parking(max, rest_for_one()) };
            let fakes = [fake("a"), prompt("b"), fake("c"), fake("d")];
            let mut sim = Simulation::running(rules, fakes);
            for _ in 0..=max {
                sim.fail("b");
            }
            assert_eq!(sim.call("d", ChildRequest::RestartStopped), format!("started {}", max + 2));
            sim.fake("b").ready = Some(secs(5));
            sim.skip();
            sim.ask("b", ChildRequest::Retry);
            for _ in 0..failures {
                sim.fail("d");
            }
            sim.advance(secs(9));
            sim.acts()
        };
        assert_eq!(restarts(0, 1), "start b#2, gave up d, start c#2");
        assert_eq!(restarts(1, 1), "start b#3, start c#3, start d#4");
    }

    #[test]
    fn a_child_terminated_while_its_group_waits_stays_down() {
        let mut sim = Simulation::named(waiting(one_for_all()), "a b c");
        sim.fail("a");
        assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
        assert_eq!(sim.call("c", ChildRequest::Terminate), "done");
        let ticket = sim.ask("c", ChildRequest::RestartStopped);
        sim.advance(secs(5));
        assert_eq!(sim.timed(), "0ns cancel c, 0ns cancel b, 200ms start a#2, 200ms start c#2");
        assert_eq!(sim.answer(ticket), "started 2");
        assert_eq!(sim.why("b"), Some("stopped manually"));
        sim.fail("a");
        sim.advance(secs(5));
        assert!(sim.acts().ends_with("start b#2, start c#3"), "the next group brings it back");
    }

    #[test]
    fn a_child_terminated_while_its_group_stops_stays_down() {
        for slow in ["b", "c"] {
            let fakes = ["a", "b", "c"].map(|name| match name == slow {
                true => fake(name).stops(secs(1)),
                false => fake(name),
            });
            let mut sim = begin(waiting(one_for_all()), fakes);
            sim.fail("a");
            let terminated = sim.ask("b", ChildRequest::Terminate);
            sim.advance(secs(2));
            assert_eq!(sim.answer(terminated), "done");
            assert_eq!(sim.why("b"), Some("stopped manually"), "{slow} is slow");
            sim.skip();
            sim.fail("a");
            sim.advance(secs(5));
            assert!(sim.acts().contains("start b#2"), "the next group brings it back");
        }
    }

    #[test]
    fn a_child_terminated_while_its_group_stops_stays_down_if_the_stop_begins_again() {
        let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
        let mut sim = begin(waiting(rest_for_one()), fakes);
        sim.fail("b");
        assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
        sim.fail("a");
        sim.advance(secs(5));
        assert_eq!(sim.why("b"), Some("stopped manually"));
        assert!(sim.acts().ends_with("start a#2, start c#2"));
    }

    #[test]
    fn a_child_requested_again_while_its_group_stops_restarts_with_it() {
        let mut sim =
            begin(waiting(one_for_all()), [fake("a"), fake("b"), fake("c").stops(secs(1))]);
        sim.fail("a");
        let terminated = sim.ask("c", ChildRequest::Terminate);
        assert_eq!(sim.call("c", ChildRequest::RestartRunning), "unfit deactivating");
        sim.advance(secs(1));
        assert_eq!(sim.answer(terminated), "done");
        let ticket = sim.ask("c", ChildRequest::RestartStopped);
        sim.advance(secs(1));
        assert_eq!(sim.answer(ticket), "started 2");
    }

    #[test]
    fn a_temporary_child_that_is_stopped_with_its_group_is_not_restarting() {
        let fakes = [fake("a"), fake("b").restart(RestartType::Temporary).stops(secs(1))];
        let mut sim = begin(waiting(one_for_all()), fakes);
        sim.fail("a");
        assert_eq!(sim.call("b", ChildRequest::RestartRunning), "unfit deactivating");
    }

    #[test]
    fn each_incarnation_has_the_cause_of_its_start() {
        let mut sim = begin(rest_for_one(), [fake("a"), fake("b"), fake("c")]);
        assert_eq!(sim.causes(), "a#1 initial, b#1 initial, c#1 initial");
        sim.fail("b");
        assert_eq!(sim.causes(), "b#2 restart, c#2 group");
        sim.call("b", ChildRequest::RestartRunning);
        assert_eq!(sim.causes(), "b#3 manual, c#3 group");
        sim.add(fake("d"));
        sim.call("c", ChildRequest::Terminate);
        sim.call("c", ChildRequest::RestartStopped);
        assert_eq!(sim.causes(), "d#1 manual, c#4 manual");

        let mut sim = Simulation::named(parking(0, one_for_all()), "a b");
        sim.fail("a");
        sim.call("a", ChildRequest::Retry);
        assert_eq!(sim.causes(), "a#2 manual, b#2 group");
    }

    #[test]
    fn a_failure_while_starting_begins_again_at_its_range() {
        let fakes = [fake("a"), fake("b"), fake("c").signals(secs(1)), fake("d")];
        let mut sim = begin(waiting(rest_for_one()), fakes);
        sim.advance(secs(1));
        sim.skip();
        sim.fail("b");
        sim.advance(ms(700));
        sim.fail("a");
        sim.advance(secs(5));
        assert_eq!(
            sim.timed(),
            "1s cancel d, 1s cancel c, 1.2s start b#2, 1.2s start c#2, 1.7s cancel c, \
             1.7s cancel b, 1.9s start a#2, 1.9s start b#3, 1.9s start c#3, 2.9s start d#2"
        );
    }

    #[test]
    fn wake_cuts_the_wait_of_the_group_short() {
        let mut sim = Simulation::named(waiting(one_for_all()), "a b");
        sim.fail("a");
        assert_eq!(sim.call("b", ChildRequest::Wake), "unfit stopped");
        assert_eq!(sim.call("a", ChildRequest::Wake), "done");
        assert_eq!(sim.timed(), "0ns cancel b, 0ns start a#2, 0ns start b#2");
        assert_eq!(sim.machine.next_deadline(), None);
    }

    #[test]
    fn terminating_the_one_it_waits_for_ends_it() {
        let mut sim = Simulation::named(waiting(rest_for_one()), "a b c d");
        sim.fail("b");
        assert_eq!(sim.call("b", ChildRequest::Terminate), "done");
        sim.advance(secs(9));
        assert_eq!(sim.acts(), "cancel d, cancel c");
        assert_eq!(sim.alive(), "a#1");
        assert_eq!(sim.why("b"), Some("stopped manually"));
        assert_eq!(sim.why("c"), Some("stopped with its group"));
        assert_eq!(sim.call("c", ChildRequest::RestartStopped), "started 2");
    }

    #[test]
    fn a_child_about_to_be_marked_as_staying_down_is_not_started_before() {
        let others = (0..200).map(|number| fake(&number.to_string()));
        let fakes = [prompt("a").scripts([Script::Fail])].into_iter().chain(others);
        let mut sim = begin(waiting(one_for_all()), fakes);
        sim.ask("a", ChildRequest::Terminate);
        assert_eq!(sim.call("5", ChildRequest::Start), "stopped");
        sim.advance(secs(5));
        assert_eq!(sim.why("5"), Some("stopped with its group"));
        assert_eq!(sim.call("5", ChildRequest::RestartStopped), "started 1");
        assert_eq!(sim.alive(), "5#1");
    }

    #[test]
    fn a_requested_group_restart_is_not_charged() {
        let mut sim = Simulation::named(limited(0, waiting(rest_for_one())), "a b c");
        assert_eq!(sim.call("b", ChildRequest::RestartRunning), "started 2");
        assert_eq!(sim.acts(), "cancel c, cancel b, start b#2, start c#2");
    }
}

mod limit {
    use super::*;

    #[test]
    fn a_parked_child_waits_for_retry_and_its_siblings_go_on() {
        let mut sim = Simulation::named(parking(1, one_for_one()), "a b c");
        sim.fail("b");
        sim.fail("b");
        assert_eq!(sim.acts(), "start b#2, gave up b");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
        assert_eq!(sim.why("b"), Some("given up"));
        assert_eq!(sim.call("b", ChildRequest::Retry), "started 3");
        sim.fail("b");
        assert_eq!(sim.alive(), "a#1 b#4 c#1", "the window is clear");
    }

    #[test]
    fn a_parked_range_is_stopped_first_and_retry_starts_it() {
        let mut sim = Simulation::named(parking(0, waiting(rest_for_one())), "a b c d");
        sim.fail("b");
        sim.advance(secs(9));
        assert_eq!(sim.acts(), "gave up b, cancel d, cancel c");
        assert_eq!(sim.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(sim.acts(), "start b#2, start c#2, start d#2");
    }

    #[test]
    fn a_retry_that_comes_while_the_range_is_stopped_waits_for_that() {
        let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(1))];
        let mut sim = Simulation::running(parking(0, rest_for_one()), fakes);
        sim.fail("b");
        let ticket = sim.ask("b", ChildRequest::Retry);
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns gave up b, 0ns cancel d, 1s cancel c, 1s start b#2, 1s start c#2, 1s start d#2"
        );
        assert_eq!(sim.answer(ticket), "started 2");
    }

    #[test]
    fn a_retry_in_a_part_of_a_range_that_is_parked_starts_that_part() {
        let fakes = [fake("a"), fake("a2"), fake("b").stops(secs(1)), fake("c"), fake("d")];
        let mut sim = Simulation::running(parking(1, rest_for_one()), fakes);
        sim.fail("c");
        sim.fail("c");
        sim.fail("a");
        assert_eq!(
            sim.acts(),
            "cancel d, start c#2, start d#2, gave up c, cancel d, gave up a, cancel b"
        );
        sim.ask("c", ChildRequest::Retry);
        assert_eq!(sim.call("a", ChildRequest::RestartStopped), "stopped");
        sim.advance(secs(9));
        assert_eq!(sim.acts(), "cancel a2, start c#3, start d#3");
        let [a2, d] = ["a2", "d"].map(|name| sim.state(sim.key(name)));
        assert_eq!(
            (a2, d),
            (Some(ChildState::Down(DownState::DownWithGroup)), Some(ChildState::Active))
        );
        assert_eq!(sim.alive(), "c#3 d#3");
    }

    #[test]
    fn two_retries_in_a_range_that_is_being_parked_start_both() {
        let fakes = [fake("a"), fake("b").stops(secs(1)), fake("c"), fake("c2"), fake("d")];
        let mut sim = Simulation::running(parking(0, rest_for_one()), fakes);
        for name in ["d", "c", "a"] {
            sim.fail(name);
        }
        let tickets = ["d", "c"].map(|name| sim.ask(name, ChildRequest::Retry));
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns gave up d, 0ns gave up c, 0ns cancel c2, 0ns gave up a, 0ns cancel b, \
             1s start c#2, 1s start c2#2, 1s start d#2"
        );
        assert_eq!(tickets.map(|ticket| sim.answer(ticket)), ["started 2"; 2]);
    }

    #[test]
    fn a_crash_while_a_retry_marks_its_range_is_an_ordinary_failure() {
        let last = fake("z").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
        let fakes = (0..200).map(|number| fake(&number.to_string())).chain([last]);
        let mut sim = Simulation::running(one_for_all(), fakes);
        sim.call("z", ChildRequest::Kill);
        sim.advance(secs(1));
        sim.fake("z").dies = Some(ms(1));
        sim.skip();
        let ticket = sim.ask("z", ChildRequest::Retry);
        sim.fail("5");
        let acts = sim.acts();
        assert_eq!(acts.matches("cancel").count(), 199);
        assert_eq!(acts.matches("start").count(), 201);
        assert_eq!(sim.answer(ticket), "started 2");
    }

    #[test]
    fn a_parked_child_comes_back_with_its_group() {
        let fakes = [fake("a"), fake("b"), fake("c").backoff(Backoff::none())];
        let rules = Rules { intensity: sliding(1), ..parking(1, rest_for_one()) };
        let mut sim = Simulation::running(rules, fakes);
        sim.fail("c");
        sim.fail("c");
        sim.advance(secs(2));
        sim.skip();
        sim.fail("b");
        assert_eq!(sim.acts(), "start b#2, start c#3");
    }

    #[test]
    fn a_retry_during_the_first_start_does_not_make_it_come_up_early() {
        let rules = Rules { start: Start::Concurrent, ..parking(0, rest_for_one()) };
        let fakes = [fake("a").signals(secs(2)), fake("b"), fake("c").stops(secs(1))];
        let mut sim = begin(rules, fakes);
        sim.fail("b");
        sim.skip();
        sim.ask("b", ChildRequest::Retry);
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "1s start b#2, 1s start c#2, 2s up");
    }

    #[test]
    fn the_first_start_goes_on_past_what_was_parked() {
        let fakes = [
            fake("a").signals(secs(1)),
            prompt("b").scripts([Script::Fail]).stops(secs(1)),
            fake("c"),
        ];
        let mut sim = begin(parking(0, rest_for_one()), fakes);
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns start a#1, 1s start b#1, 1s gave up b, 1s up");
        assert_eq!(sim.lifecycle("c"), Lifecycle::Stopped);
        assert_eq!(sim.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(sim.acts(), "start b#2, start c#1");
    }
}

mod stop {
    use super::*;

    #[test]
    fn in_reverse_one_at_a_time() {
        let fakes = ["a", "b", "c"].map(|name| fake(name).stops(secs(1)));
        let mut sim = Simulation::running(rules(), fakes);
        sim.stop();
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns cancel c, 1s cancel b, 2s cancel a, 3s finish stopped");
    }

    #[test]
    fn children_that_are_down_are_passed_in_slices_and_none_is_cancelled_meanwhile() {
        for ended in SLICE - 2..SLICE + 2 {
            let others = (0..ended).map(|number| fake(&number.to_string()).transient());
            let mut sim = Simulation::running(one_for_one(), [fake("a")].into_iter().chain(others));
            for number in 0..ended {
                sim.end(&number.to_string());
            }
            sim.event(MachineEvent::Stop { within: None });
            sim.decide("a", FailureDecision::give_up());
            sim.settle();
            assert_eq!(sim.acts(), "cancel a, finish stopped", "{ended} have ended");
        }
    }

    #[test]
    fn grace_then_abort_then_leak_then_finish() {
        let fakes = [
            fake("a"),
            fake("b").leaks().shutdown(secs(2)),
            deaf("c").shutdown(Duration::ZERO),
            fake("d").leaks().shutdown(Shutdown::BrutalKill),
            deaf("e"),
        ];
        let mut sim = Simulation::running(rules(), fakes);
        sim.stop();
        sim.advance(secs(60));
        assert_eq!(
            sim.timed(),
            "0ns cancel e, 5s abort e, 5s abort d, 6s leaked d#1, 6s cancel c, 6s abort c, \
             6s cancel b, 8s abort b, 9s leaked b#1, 9s cancel a, 9s finish stopped"
        );
        assert_eq!(sim.story("e"), "active → deactivating → stopped (killed)");
    }

    #[test]
    fn at_the_stop_deadline_all_remaining_children_are_aborted_in_reverse() {
        let fakes = ["a", "b", "c"].map(deaf);
        let mut sim = Simulation::running(rules(), fakes);
        sim.event(MachineEvent::Stop { within: Some(secs(7)) });
        sim.event(MachineEvent::Stop { within: Some(secs(60)) });
        sim.advance(secs(60));
        assert_eq!(
            sim.timed(),
            "0ns cancel c, 5s abort c, 5s cancel b, 7s abort b, 7s abort a, 7s finish stopped"
        );
    }

    #[test]
    fn the_rules_may_set_the_deadline() {
        let rules = Rules { stop_deadline: Some(secs(1)), ..rules() };
        let fakes = [fake("a").leaks(), fake("b").leaks()];
        let mut sim = Simulation::running(rules, fakes);
        sim.stop();
        sim.advance(secs(60));
        assert_eq!(
            sim.timed(),
            "0ns cancel b, 1s abort b, 1s abort a, 2s leaked a#1, 2s leaked b#1, 2s finish stopped"
        );
    }

    #[test]
    fn abort_all_aborts_all() {
        let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
        let mut sim = Simulation::running(rules(), fakes);
        sim.fail("a");
        sim.call("c", ChildRequest::Terminate);
        sim.event(MachineEvent::AbortAll);
        sim.settle();
        assert_eq!(sim.acts(), "start a#2, cancel c, abort c, abort b, abort a, finish aborted");
    }

    #[test]
    fn what_has_failed_and_leaks_is_stopped_in_the_end_whatever_else_is_asked_for() {
        let b = fake("b").signals(None).activation_timeout(secs(1)).leaks().on_leak(OnLeak::Park);
        let mut sim = begin(rules(), [fake("a"), b]);
        sim.advance(secs(1));
        assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
        sim.event(MachineEvent::AbortAll);
        sim.advance(secs(9));
        assert!(sim.finished());
    }

    #[test]
    fn the_first_reason_is_the_one() {
        let fakes = [fake("a"), fake("b").stops(secs(1))];
        let mut sim = Simulation::running(limited(0, rules()), fakes);
        sim.fail("a");
        sim.stop();
        sim.event(MachineEvent::AbortAll);
        sim.settle();
        assert_eq!(sim.acts(), "gave up a, cancel b, abort b, finish escalated a: failed");
    }

    #[test]
    fn what_ends_meanwhile_neither_comes_back_nor_derails_it() {
        let reasons = [ExitReason::Normal, ExitReason::Shutdown, ExitReason::Hung];
        let types = [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];
        let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let mut fakes = vec![fake("a")];
        let mut ends = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            fakes.push(fake(name).restart(types[number / 3]));
            ends.push((name, reasons[number % 3].clone()));
        }
        fakes.push(fake("z").stops(secs(1)));
        let mut sim = Simulation::running(limited(0, one_for_all()), fakes);
        sim.stop();
        for (name, reason) in ends {
            sim.exit(name, reason);
        }
        sim.advance(secs(9));
        assert_eq!(
            sim.acts(),
            "cancel z, removed h, removed i, removed j, cancel a, finish stopped"
        );
    }

    #[test]
    fn a_backoff_that_ends_meanwhile_starts_no_child() {
        let fakes = [fake("a"), fake("b").stops(secs(1))];
        let mut sim = Simulation::running(waiting(one_for_one()), fakes);
        sim.fail("a");
        sim.stop();
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns cancel b, 1s finish stopped");
        assert!(sim.story("a").ends_with("restarting → stopped"));
    }

    #[test]
    fn in_every_phase_of_a_group_restart() {
        let slow = || [fake("a"), fake("b"), fake("c").stops(secs(1)), fake("d").stops(secs(1))];

        // While it stops: a stopping child is not cancelled twice.
        let mut sim = Simulation::running(waiting(rest_for_one()), slow());
        sim.fail("b");
        sim.stop();
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns cancel d, 1s cancel c, 2s cancel a, 2s finish stopped");

        // While it waits.
        let mut sim = Simulation::named(waiting(rest_for_one()), "a b c");
        sim.fail("b");
        sim.stop();
        assert_eq!(sim.timed(), "0ns cancel c, 0ns cancel a, 0ns finish stopped");

        // While it starts.
        let fakes = [fake("a"), fake("b").signals(secs(1)), fake("c")];
        let mut sim = begin(one_for_all(), fakes);
        sim.advance(secs(1));
        sim.fail("c");
        sim.skip();
        sim.stop();
        assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped");
        assert!(sim.story("c").ends_with("restarting → stopped"));
    }

    #[test]
    fn a_supervisor_without_children_comes_up_and_ends() {
        let mut sim = begin(rules(), []);
        sim.stop();
        assert_eq!(sim.acts(), "up, finish stopped");
    }

    #[test]
    fn it_ends_before_it_has_begun() {
        let mut sim = Simulation::ordered(rules(), [fake("a"), fake("b")]);
        sim.stop();
        assert_eq!(sim.acts(), "finish stopped");
    }
}

mod leak {
    use super::*;

    fn hung(on_leak: OnLeak, rules: Rules) -> Simulation {
        let b = fake("b").leaks().shutdown(secs(1)).on_leak(on_leak);
        Simulation::running(rules, [fake("a"), b, fake("c")])
    }

    #[test]
    fn a_leaked_child_is_restarted_like_any_failure() {
        let mut sim = hung(OnLeak::Restart, limited(1, waiting(one_for_one())));
        assert_eq!(sim.call("b", ChildRequest::Kill), "done");
        sim.advance(secs(9));
        assert_eq!(sim.timed(), "0ns abort b, 1s leaked b#1, 1s start b#2");
    }

    #[test]
    fn or_it_is_parked_if_it_must_not_run_twice() {
        let mut sim = hung(OnLeak::Park, one_for_one());
        sim.call("b", ChildRequest::Kill);
        sim.advance(secs(9));
        assert_eq!(sim.lifecycle("b"), Lifecycle::Errored, "it had failed");
        assert_eq!(sim.why("b"), Some("leaked"));
        assert_eq!(sim.call("b", ChildRequest::Retry), "started 2");

        let ticket = sim.ask("b", ChildRequest::Terminate);
        sim.advance(secs(9));
        assert_eq!(sim.answer(ticket), "done");
        assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped, "it was being stopped");
        assert_eq!(sim.why("b"), Some("leaked"));
        assert_eq!(sim.call("b", ChildRequest::RestartStopped), "started 3");
    }

    #[test]
    fn a_group_passes_a_leaked_child() {
        let mut sim = hung(OnLeak::Park, one_for_all());
        sim.fail("a");
        sim.advance(secs(9));
        assert_eq!(
            sim.timed(),
            "0ns cancel c, 0ns cancel b, 1s abort b, 2s leaked b#1, 2s start a#2, 2s start c#2"
        );
        sim.fail("a");
        assert_eq!(sim.acts(), "cancel c, start a#3, start c#3");
        assert_eq!(sim.call("b", ChildRequest::Retry), "started 2");
        assert_eq!(sim.acts(), "start b#2", "those that run go on");
    }

    #[test]
    fn a_leaked_child_can_be_asked_for_in_every_phase_of_a_group_restart() {
        let leaking =
            |name| fake(name).leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
        for rules in [one_for_all(), rest_for_one()] {
            for request in [ChildRequest::Retry, ChildRequest::RestartStopped] {
                for (name, wait) in [("a", 500), ("a", 1_500), ("z", 500), ("z", 1_500)] {
                    let rules = Rules { backoff: Backoff::constant(secs(2)), ..rules.clone() };
                    let fakes = [leaking("a"), fake("b"), fake("c").stops(secs(1)), leaking("z")];
                    let mut sim = Simulation::running(rules, fakes);
                    for name in ["a", "z"] {
                        sim.ask(name, ChildRequest::Terminate);
                    }
                    sim.advance(secs(2));
                    sim.fake(name).dies = Some(ms(1));
                    sim.fail("b");
                    sim.advance(ms(wait));
                    sim.skip();
                    let ticket = sim.ask(name, request);
                    sim.advance(secs(9));
                    assert_eq!(sim.answer(ticket), "started 2", "{request:?} {name} {wait}");
                    assert_eq!(sim.timed().matches("start").count(), 3);
                }
            }
        }
    }

    #[test]
    fn a_leaked_child_retried_during_a_group_start_is_started_in_order() {
        let fakes = [
            fake("a").signals(secs(1)),
            fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park),
        ];
        let mut sim = begin(one_for_all(), fakes);
        sim.advance(secs(1));
        sim.fail("a");
        sim.advance(ms(1_500));
        sim.skip();
        let ticket = sim.ask("b", ChildRequest::RestartStopped);
        assert_eq!(sim.acts(), "");
        sim.advance(secs(1));
        assert_eq!(sim.timed(), "3s start b#2");
        assert_eq!(sim.answer(ticket), "started 2");
    }
}

mod auto_shutdown {
    use super::*;

    fn rules(auto_shutdown: AutoShutdown) -> Rules {
        Rules { auto_shutdown, ..one_for_one() }
    }

    #[test]
    fn the_first_significant_child_that_ends_for_good_ends_it() {
        let fakes = || [fake("a"), fake("t").transient().significant(), fake("x").temporary()];
        let mut sim = Simulation::running(rules(AutoShutdown::AnySignificant), fakes());
        sim.fail("x");
        sim.fail("t");
        assert_eq!(sim.acts(), "removed x, start t#2", "one insignificant, one restarted");
        sim.end("t");
        assert_eq!(sim.acts(), "cancel a, finish auto");

        let x = fake("x").temporary().significant();
        let mut sim = Simulation::running(rules(AutoShutdown::AnySignificant), [fake("a"), x]);
        sim.fail("x");
        assert_eq!(sim.acts(), "removed x, cancel a, finish auto");
    }

    #[test]
    fn the_last_one_ends_it_if_all_must_have_ended() {
        let fakes = [fake("a"), fake("t"), fake("x")];
        let [a, t, x] = fakes;
        let fakes = [a, t.transient().significant(), x.temporary().significant()];
        let mut sim = Simulation::running(rules(AutoShutdown::AllSignificant), fakes);
        sim.end("t");
        sim.fail("x");
        assert_eq!(sim.acts(), "removed x, cancel a, finish auto");
    }

    #[test]
    fn a_child_in_backoff_counts_as_remaining_and_a_terminated_child_does_not() {
        let fakes = || ["t", "u"].map(|name| fake(name).transient().significant());
        let all = || waiting(rules(AutoShutdown::AllSignificant));
        let mut sim = Simulation::running(all(), fakes());
        sim.fail("t");
        sim.end("u");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "start t#2");

        let mut sim = Simulation::running(all(), fakes());
        sim.call("t", ChildRequest::Terminate);
        assert!(!sim.finished(), "a stop by hand ends nothing");
        sim.end("u");
        assert!(sim.finished());
    }

    #[test]
    fn a_child_that_awaits_its_group_counts_as_remaining_and_a_parked_child_does_not() {
        let fakes = || {
            let [u, a, t] = ["u", "a", "t"].map(fake);
            [u.transient().significant(), a, t.transient().significant()]
        };
        let all = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let mut sim = Simulation::running(waiting(all.clone()), fakes());
        sim.fail("a");
        sim.end("u");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "cancel t, start a#2, start t#2");

        let mut sim = Simulation::running(parking(0, all), fakes());
        sim.fail("a");
        sim.end("u");
        assert_eq!(sim.acts(), "gave up a, cancel t, finish auto");
    }

    #[test]
    fn a_child_being_terminated_counts_as_gone_unless_its_group_restarts_it() {
        let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let fakes = || {
            let [u, a, t] = ["u", "a", "t"].map(fake);
            let u = u.temporary().significant();
            [u, a, t.transient().significant().stops(secs(1))]
        };
        let mut sim = Simulation::running(all(), fakes());
        sim.ask("t", ChildRequest::Terminate);
        sim.end("u");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "cancel t, removed u, cancel a, finish auto");

        let mut sim = Simulation::running(all(), fakes());
        sim.ask("t", ChildRequest::Terminate);
        sim.fail("a");
        sim.end("u");
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "cancel t, removed u, start a#2, start t#2");
    }

    #[test]
    fn when_the_last_one_ends_while_a_group_stops_it_is_the_group_that_decides() {
        let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
        let fakes = |last: FakeChild| {
            let [u, a] = ["u", "a"].map(fake);
            [u.temporary().significant(), a, last.significant(), fake("z").stops(secs(1))]
        };
        let script = |sim: &mut Simulation| {
            sim.fail("a");
            sim.end("u");
            sim.advance(secs(1));
        };

        let mut sim = Simulation::running(all(), fakes(fake("x").temporary()));
        script(&mut sim);
        let acts = "cancel z, removed u, cancel x, removed x, finish auto";
        assert_eq!(sim.acts(), acts, "it is forgotten");

        let mut sim = Simulation::running(all(), fakes(fake("t").transient()));
        script(&mut sim);
        let acts = "cancel z, removed u, cancel t, start a#2, start t#2, start z#2";
        assert_eq!(sim.acts(), acts, "it comes back");

        let mut sim = Simulation::running(all(), fakes(fake("t").transient()));
        sim.end("t");
        script(&mut sim);
        let acts = "cancel z, removed u, start a#2, start t#2, start z#2";
        assert_eq!(sim.acts(), acts, "it comes back, though it had ended");

        let mut sim = Simulation::running(parking(0, all()), fakes(fake("t").transient()));
        script(&mut sim);
        let acts = "gave up a, cancel z, removed u, cancel t, finish auto";
        assert_eq!(sim.acts(), acts, "it stays down");
    }

    #[test]
    fn a_bystander_of_a_group_restart_ends_nothing() {
        let any = Rules { strategy: Strategy::OneForAll, ..rules(AutoShutdown::AnySignificant) };
        let fakes =
            [fake("a"), fake("t").transient().significant(), fake("x").temporary().significant()];
        let mut sim = Simulation::running(any, fakes);
        sim.fail("a");
        assert_eq!(sim.acts(), "cancel x, removed x, cancel t, start a#2, start t#2");
    }
}

mod declining {
    use super::*;

    #[test]
    fn a_child_that_declines_while_active_is_stopped_and_not_restarted() {
        let mut sim = Simulation::named(rules(), "a b");
        sim.says("b", |key, incarnation| MachineEvent::Ignored { key, incarnation });
        sim.advance(secs(9));
        assert_eq!(sim.acts(), "");
        assert_eq!(sim.story("b"), "active → deactivating → stopped (ignored)");
        assert_eq!(sim.why("b"), Some("declined to start"));
    }
}

mod causes {
    use super::*;

    #[test]
    fn a_child_started_a_second_time_with_its_group_has_not_the_initial_cause() {
        let fakes = [fake("a"), fake("b").signals(None), fake("c")];
        let mut sim = begin(one_for_all(), fakes);
        assert_eq!(sim.causes(), "a#1 initial, b#1 initial");
        sim.fail("a");
        assert_eq!(sim.causes(), "a#2 restart, b#2 group");
        sim.ready("b");
        assert_eq!(sim.causes(), "c#1 initial");
    }
}

#[test]
fn a_chain_of_requirements_can_be_asked_for() {
    let fakes = [fake("a"), fake("b").requires("a"), fake("c").requires("b"), fake("d")];
    let mut sim = Simulation::ordered(rules(), fakes);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| sim.key(name));
    let id = sim.machine.provided_by(a);
    assert_eq!(sim.machine.chain_to(id, &[c]), Some(vec![c, b]));
    assert_eq!(sim.machine.chain_to(id, &[d]), None);
}
