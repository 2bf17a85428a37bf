//! Delays that errors set, and restarts that are not charged, for both kinds of supervisor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::core::history::FailureHistory;
use crate::core::verify::simulation::{
    Busy, FakeChild, Script, Simulation, at_most, fake, ms, rules, secs,
};
use crate::core::{ChildRequest, ConditionEvent, Machine, MachineEvent, UserCalls};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{
    Backoff, ChildOptions, CurvePosition, FirstStart, Intensity, Jitter, OnExhausted, OnExit,
    Reset, Resolution, RestartPolicy, RestartType, Rules, Strategy, Trigger,
};

/// A delay of a minute before the first restart, doubled before each further one.
fn waiting() -> Rules {
    Rules { backoff: Backoff::exponential(secs(60), secs(600)).jitter(Jitter::None), ..rules() }
}

fn limited(max: u32) -> Rules {
    Rules { intensity: at_most(max), ..waiting() }
}

fn free(name: &str) -> FakeChild {
    fake(name).on_exit(ExitKind::Failed, OnExit::RestartUncharged)
}

fn busy() -> ExitReason {
    Script::Busy.reason()
}

/// The next attempt and its delay.
fn next(sim: &Simulation, name: &str) -> Option<(u32, Duration)> {
    let history = sim.machine.view(sim.key(name), sim.now)?.history?;
    Some((history.attempt, history.next?.1))
}

fn charged(sim: &Simulation) -> usize {
    sim.machine.intensity(sim.now).0
}

mod a_wait_that_an_error_asks_for {
    use super::*;

    fn waits(mut sim: Simulation) {
        sim.exit("a", busy());
        assert_eq!(next(&sim, "a"), Some((1, secs(5))), "it is shown");
        sim.advance(secs(5) - ms(1));
        assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
        sim.advance(ms(1));
        assert_eq!(sim.timed(), "5s start a#2");
        assert_eq!(next(&sim, "a"), None);
    }

    #[test]
    fn replaces_the_delay_that_would_have_been_drawn() {
        waits(Simulation::running(waiting(), [fake("a").retry_after(secs(5))]));
        waits(Simulation::dynamic(waiting(), [fake("a").retry_after(secs(5))]));
    }

    #[test]
    fn is_one_in_a_row_and_leaves_the_curve_where_it_is() {
        let mut sim = Simulation::running(waiting(), [fake("a").retry_after(secs(5))]);
        let fails = || Script::Fail.reason();
        let waits = [busy(), fails(), busy(), busy(), fails(), busy(), fails()].map(|reason| {
            sim.exit("a", reason);
            let (attempt, wait) = next(&sim, "a").expect("a wait");
            sim.advance(wait);
            (attempt, wait.as_secs())
        });
        assert_eq!(waits, [(1, 5), (2, 60), (3, 5), (4, 5), (5, 120), (6, 5), (7, 240)]);
    }

    #[test]
    fn is_the_childs_and_before_that_of_the_defaults() {
        let mut rules = waiting();
        rules.defaults.retry_after.add(|_: &Busy| Some(secs(7)));
        let mut sim = Simulation::running(rules, [fake("a").retry_after(secs(5)), fake("b")]);
        for name in ["a", "b"] {
            sim.exit(name, busy());
        }
        assert_eq!(next(&sim, "a"), Some((1, secs(5))));
        assert_eq!(next(&sim, "b"), Some((1, secs(7))));
    }

    #[test]
    fn counts_from_the_failure_and_not_from_the_end_of_the_task_or_the_decision() {
        let rules = Rules { has_failure_callback: true, ..waiting() };
        let a = fake("a").retry_after(secs(5)).answers([(secs(2), Resolution::Restart)]);
        let mut sim = Simulation::running(rules, [a]);
        sim.exit("a", busy());
        sim.advance(secs(5));
        assert_eq!(sim.lifecycle("a"), Lifecycle::Active);
        assert!(sim.timed().ends_with("5s start a#2"));
    }

    #[test]
    fn is_that_of_the_group() {
        let rules = Rules { strategy: Strategy::RestForOne, ..waiting() };
        let fakes = [fake("a"), fake("b").retry_after(secs(5)), fake("c")];
        let mut sim = Simulation::running(rules, fakes);
        sim.exit("b", busy());
        sim.advance(secs(5));
        assert_eq!(sim.timed(), "0ns cancel c, 5s start b#2, 5s start c#2");
    }

    #[test]
    fn is_found_in_what_a_supervisor_has_escalated() {
        let source = ExitReason::Escalated { child: Path::root("x"), source: busy().into() };
        let mut sim = Simulation::running(waiting(), [fake("a").retry_after(secs(5))]);
        sim.exit("a", source);
        assert_eq!(next(&sim, "a"), Some((1, secs(5))));
    }

    #[test]
    fn is_asked_for_once() {
        let draws = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&draws);
        let mut rules = Rules { has_failure_callback: true, ..waiting() };
        rules.defaults.retry_after.add(move |_: &Busy| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(secs(5))
        });
        // Without the invariants, which would read the view themselves.
        let now = std::time::Instant::now();
        let mut machine = Machine::dynamic(rules, now);
        let key = machine.add(ChildOptions::default(), now);
        let effects = &mut Vec::new();
        let mut calls = UserCalls::new(None, 7);
        let mut take = |event| machine.on_event(event, now, &mut calls, effects);
        take(MachineEvent::Request {
            ticket: 1,
            key,
            request: ChildRequest::StartNew { keep: false },
        });
        take(MachineEvent::Exited { key, incarnation: 1, reason: busy() });
        assert_eq!(draws.load(Ordering::Relaxed), 0, "nothing is drawn yet");
        take(MachineEvent::Condition(ConditionEvent::Answered {
            key,
            incarnation: 1,
            decision: Resolution::Restart.into(),
        }));
        assert_eq!(draws.load(Ordering::Relaxed), 1);
        take(MachineEvent::Request { ticket: 2, key, request: ChildRequest::RESUME });
        assert_eq!(draws.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn is_no_end_of_a_backoff_that_has_one() {
        let mut rules = rules();
        rules.backoff = Backoff::iter(|| [secs(1)]);
        let mut sim = Simulation::running(rules, [fake("a").retry_after(secs(5)), fake("b")]);
        for _ in 0..3 {
            sim.exit("a", busy());
            sim.advance(secs(5));
        }
        assert_eq!(sim.timed(), "5s start a#2, 10s start a#3, 15s start a#4");
    }

    #[test]
    fn is_bounded_by_the_limits_of_the_child() {
        let rules = Rules { on_exhausted: OnExhausted::Park, ..waiting() };
        let mut sim = Simulation::running(rules, [fake("a").retry_after(secs(5)).consecutive(1)]);
        sim.exit("a", busy());
        sim.advance(secs(5));
        sim.exit("a", busy());
        sim.settle();
        assert_eq!(sim.timed(), "5s start a#2, 5s gave up a");
    }

    #[test]
    fn of_zero_is_charged_also_before_it_is_active() {
        let scripts = || [Script::Busy, Script::Busy];
        let rules = || Rules { on_exhausted: OnExhausted::Park, ..limited(1) };
        let a = fake("a").signals(Duration::ZERO).retry_after(Duration::ZERO).scripts(scripts());
        let mut sim = Simulation::ordered(rules(), [a]);
        sim.settle();
        assert_eq!(sim.acts(), "start a#1, start a#2, gave up a, up");

        let a = fake("a").signals(Duration::ZERO).retry_after(ms(1)).scripts(scripts());
        let mut sim = Simulation::ordered(rules(), [a]);
        sim.advance(secs(1));
        assert_eq!(sim.acts(), "start a#1, start a#2, start a#3, up");
        assert_eq!(charged(&sim), 0);
    }

    /// The child was healthy, and its backoff restarts at once after that, but the error sets a delay.
    #[test]
    fn uses_up_that_a_child_was_well() {
        let backoff = Backoff::constant(secs(9)).first_at_once().at_once_after_reset();
        let mut history = FailureHistory::default();
        let draw = |_: CurvePosition| Some(secs(9));
        history.recover();
        assert_eq!(history.fail_and_wait(secs(5)), secs(5));
        assert_eq!(history.fail(&backoff, draw), Some(secs(9)));
        history.recover();
        assert_eq!(history.fail(&backoff, draw), Some(Duration::ZERO));
    }
}

mod a_restart_that_is_not_charged {
    use super::*;

    fn is_free(mut sim: Simulation) {
        for incarnation in 2..=4 {
            sim.fail("a");
            sim.advance(secs(60));
            sim.child_event("a", |key, incarnation| MachineEvent::Healthy { key, incarnation });
            assert_eq!(sim.acts(), format!("start a#{incarnation}"));
            assert_eq!(charged(&sim), 0);
        }
        sim.exit("a", ExitReason::Aborted);
        assert_eq!(charged(&sim), 1, "this exit has no exception");
    }

    #[test]
    fn is_free_as_long_as_there_is_a_wait() {
        is_free(Simulation::running(limited(1), [free("a")]));
        is_free(Simulation::dynamic(limited(1), [free("a")]));
    }

    #[test]
    fn is_charged_all_the_same_without_a_wait_so_that_it_ends() {
        let mut sim =
            Simulation::running(Rules { backoff: Backoff::none(), ..limited(2) }, [free("a")]);
        for _ in 0..3 {
            sim.fail("a");
        }
        assert_eq!(sim.acts(), "start a#2, start a#3, gave up a, finish escalated a: failed");

        let mut sim = Simulation::running(limited(1), [free("a").retry_after(Duration::ZERO)]);
        sim.exit("a", busy());
        assert_eq!(charged(&sim), 1, "an error may set no delay");
    }

    #[test]
    fn is_charged_where_everything_is_and_refused_where_nothing_is_restarted() {
        let mut sim =
            Simulation::running(Rules { count_failed_starts: true, ..limited(2) }, [free("a")]);
        sim.fail("a");
        assert_eq!(charged(&sim), 1);

        let mut sim = Simulation::running(limited(0), [free("a")]);
        sim.fail("a");
        assert_eq!(sim.acts(), "gave up a, finish escalated a: failed");
    }

    #[test]
    fn is_counted_by_the_limits_of_the_child() {
        let rules = || Rules { on_exhausted: OnExhausted::Park, ..limited(9) };
        let own = [
            free("a").consecutive(1),
            free("a").intensity(Intensity::sliding(1, secs(600))),
            free("a").failing_for(secs(59)),
        ];
        for a in own {
            let mut sim = Simulation::running(rules(), [a]);
            sim.fail("a");
            sim.advance(secs(60));
            sim.fail("a");
            assert_eq!(sim.acts(), "start a#2, gave up a");
        }
    }

    #[test]
    fn is_one_of_the_group_too() {
        let rules = Rules { strategy: Strategy::OneForAll, ..limited(1) };
        let mut sim = Simulation::running(rules, [fake("a"), free("b")]);
        sim.fail("b");
        sim.advance(secs(60));
        assert_eq!(sim.timed(), "0ns cancel a, 60s start a#2, 60s start b#2");
        assert_eq!(charged(&sim), 0);
    }

    /// The exception to its exit is known when the callback decides.
    #[test]
    fn is_not_charged_after_a_decision_of_the_callback() {
        let rules = Rules { has_failure_callback: true, ..limited(1) };
        let mut sim = Simulation::running(rules, [free("a").silent(), fake("b").silent()]);
        for (name, after) in [("a", 0), ("b", 1)] {
            sim.crash(name);
            sim.decide(name, Resolution::Restart.into());
            assert_eq!(charged(&sim), after, "{name}");
        }
    }

    #[test]
    fn is_up_to_the_child_where_it_says_so() {
        let own = Trigger::any().on(ExitKind::Failed, OnExit::RestartUncharged);
        let mut sim = Simulation::running(limited(2), [fake("a"), free("b")]);
        sim.policy("a", RestartPolicy::new().restart(own));
        sim.policy("b", RestartPolicy::new().restart(RestartType::Permanent));
        sim.fail("a");
        assert_eq!(charged(&sim), 0);
        sim.fail("b");
        assert_eq!(charged(&sim), 1);
    }

    /// An exception holds, also where a restart would otherwise always be charged.
    #[test]
    fn is_free_after_an_escalation_and_before_it_is_active() {
        let a = fake("a").on_exit(ExitKind::Escalated, OnExit::RestartUncharged);
        let mut sim = Simulation::running(limited(1), [a, fake("b")]);
        for (name, after) in [("a", 0), ("b", 1)] {
            sim.exit(name, Script::Escalate.reason());
            assert_eq!(charged(&sim), after, "{name}");
        }
        let rules = Rules { first_start: FirstStart::Retry, ..limited(1) };
        let a = free("a").on_exit(ExitKind::ActivationFailed, OnExit::RestartUncharged);
        let mut sim = Simulation::ordered(rules, [a.signals(ms(1)).scripts([Script::Fail])]);
        sim.advance(secs(61));
        assert_eq!((sim.acts().as_str(), charged(&sim)), ("start a#1, start a#2, up", 0));
    }

    #[test]
    fn of_a_clean_end_is_free_too() {
        let a = fake("a").on_exit(ExitKind::Normal, OnExit::RestartUncharged);
        let mut sim = Simulation::running(limited(1), [a]);
        sim.end("a");
        sim.advance(secs(60));
        assert_eq!((sim.acts().as_str(), charged(&sim)), ("start a#2", 0));
    }

    #[test]
    fn waits_for_the_end_of_a_pause_like_any_other() {
        let rules = Rules { on_exhausted: OnExhausted::Pause(secs(300)), ..limited(1) };
        let mut sim = Simulation::running(rules, [free("a"), fake("b"), fake("c")]);
        sim.fail("b");
        sim.fail("c");
        sim.fail("a");
        assert_eq!(next(&sim, "a"), Some((1, secs(300))));
    }
}

#[test]
fn what_is_shown_of_a_groups_wait_is_when_the_group_starts() {
    let rules = Rules { strategy: Strategy::OneForAll, ..waiting() };
    let mut sim = Simulation::running(rules, [fake("a"), fake("b").stops(secs(1)), fake("c")]);
    let begins = |sim: &Simulation| {
        let view = sim.machine.view(sim.key("c"), sim.now).expect("a child");
        view.history.and_then(|history| history.next).map(|(at, _)| at - sim.now)
    };
    sim.fail("c");
    assert_eq!(begins(&sim), Some(secs(60)));
    // A caller requests it earlier, but it waits for its sibling.
    assert_eq!(sim.call("c", ChildRequest::RESUME), "-");
    assert_eq!(sim.lifecycle("c"), Lifecycle::Restarting);
    assert_eq!(begins(&sim), Some(Duration::ZERO));
}

#[test]
fn being_ready_begins_the_backoff_anew_if_that_is_its_rule() {
    for (rule, expected) in [(Reset::OnReady, 60), (Reset::Never, 120)] {
        let backoff = Backoff::exponential(secs(60), secs(600)).jitter(Jitter::None).reset(rule);
        let mut sim = Simulation::running(rules(), [fake("a").backoff(backoff)]);
        sim.fail("a");
        assert_eq!(next(&sim, "a"), Some((1, secs(60))));
        sim.advance(secs(60));
        sim.fail("a");
        assert_eq!(next(&sim, "a").map(|(_, wait)| wait), Some(secs(expected)), "{rule:?}");
    }
}

#[test]
fn nothing_is_kept_of_a_child_that_never_failed_unless_its_backoff_wants_it() {
    let kept = |backoff| {
        let rules = Rules { backoff, ..rules() };
        let mut sim = Simulation::running(rules, [fake("a").transient()]);
        sim.end("a");
        sim.machine.view(sim.key("a"), sim.now).is_some_and(|view| view.history.is_some())
    };
    let backoff = || Backoff::exponential(secs(5), secs(30)).jitter(Jitter::None);
    assert!(!kept(backoff()));
    assert!(kept(backoff().at_once_after_reset()), "that it was healthy");
}
