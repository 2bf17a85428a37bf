//! Waits that errors ask for, and restarts that cost the supervisor nothing, in either machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::super::ledger::Ledger;
use super::super::simulator::{Busy, Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::{ChildRequest, Machine, MachineEvent};
use crate::exit::{ExitKind, ExitReason};
use crate::failure::Resolution;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{
    Backoff, FirstStart, Intensity, OnExhausted, OnExit, Reset, RestartPolicy, RestartType, Rules,
    Strategy, Trigger,
};

/// A minute before the first restart, and twice as long before each further one.
fn waiting() -> Rules {
    Rules { backoff: Backoff::exponential(secs(60), secs(600)), ..rules() }
}

fn limited(max: u32) -> Rules {
    Rules { intensity: at_most(max), ..waiting() }
}

fn free(name: &str) -> Kid {
    kid(name).on_exit(ExitKind::Failed, OnExit::RestartUncharged)
}

fn busy() -> ExitReason {
    Play::Busy.reason()
}

/// The attempt that is waited for, and the wait.
fn next(world: &World, name: &str) -> Option<(u32, Duration)> {
    let history = world.machine.view(world.key(name), world.now)?.history?;
    Some((history.attempt, history.next?.1))
}

fn charged(world: &World) -> usize {
    world.machine.intensity(world.now).0
}

mod a_wait_that_an_error_asks_for {
    use super::*;

    fn waits(mut world: World) {
        world.exit("a", busy());
        assert_eq!(next(&world, "a"), Some((1, secs(5))), "it is shown");
        world.advance(secs(5) - ms(1));
        assert_eq!(world.lifecycle("a"), Lifecycle::Restarting);
        world.advance(ms(1));
        assert_eq!(world.timed(), "5s start a#2");
        assert_eq!(next(&world, "a"), None);
    }

    #[test]
    fn takes_the_place_of_the_one_that_would_have_been_drawn() {
        waits(World::running(waiting(), [kid("a").told(secs(5))]));
        waits(World::dynamic(waiting(), [kid("a").told(secs(5))]));
    }

    #[test]
    fn is_one_in_a_row_and_leaves_the_curve_where_it_is() {
        let mut world = World::running(waiting(), [kid("a").told(secs(5))]);
        let fails = || Play::Fail.reason();
        let waits = [busy(), fails(), busy(), busy(), fails(), busy(), fails()].map(|reason| {
            world.exit("a", reason);
            let (attempt, wait) = next(&world, "a").expect("a wait");
            world.advance(wait);
            (attempt, wait.as_secs())
        });
        assert_eq!(waits, [(1, 5), (2, 60), (3, 5), (4, 5), (5, 120), (6, 5), (7, 240)]);
    }

    #[test]
    fn is_the_childs_and_before_that_of_the_defaults() {
        let mut rules = waiting();
        rules.defaults.retry_after.add(|_: &Busy| Some(secs(7)));
        let mut world = World::running(rules, [kid("a").told(secs(5)), kid("b")]);
        for name in ["a", "b"] {
            world.exit(name, busy());
        }
        assert_eq!(next(&world, "a"), Some((1, secs(5))));
        assert_eq!(next(&world, "b"), Some((1, secs(7))));
    }

    #[test]
    fn counts_from_the_failure_and_not_from_the_end_of_the_task_or_the_decision() {
        let rules = Rules { asks: true, ..waiting() };
        let a = kid("a").told(secs(5)).answers([(secs(2), Resolution::Restart)]);
        let mut world = World::running(rules, [a]);
        world.exit("a", busy());
        world.advance(secs(5));
        assert_eq!(world.lifecycle("a"), Lifecycle::Active);
        assert!(world.timed().ends_with("5s start a#2"));
    }

    #[test]
    fn is_that_of_the_group() {
        let rules = Rules { strategy: Strategy::RestForOne, ..waiting() };
        let kids = [kid("a"), kid("b").told(secs(5)), kid("c")];
        let mut world = World::running(rules, kids);
        world.exit("b", busy());
        world.advance(secs(5));
        assert_eq!(world.timed(), "0ns cancel c, 5s start b#2, 5s start c#2");
    }

    #[test]
    fn is_found_in_what_a_supervisor_has_escalated() {
        let source = ExitReason::Escalated { child: Path::root("x"), source: busy().into() };
        let mut world = World::running(waiting(), [kid("a").told(secs(5))]);
        world.exit("a", source);
        assert_eq!(next(&world, "a"), Some((1, secs(5))));
    }

    #[test]
    fn is_asked_for_once() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let mut rules = Rules { asks: true, ..waiting() };
        rules.defaults.retry_after.add(move |_: &Busy| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(secs(5))
        });
        // Without the witness, who asks for himself.
        let now = std::time::Instant::now();
        let mut machine = Machine::dynamic(rules, now, 7);
        let key = machine.add(Arc::default(), now);
        let effects = &mut Vec::new();
        let mut take = |event| machine.on_event(event, now, effects);
        take(MachineEvent::Request { ticket: 1, key, request: ChildRequest::Start });
        take(MachineEvent::Exited { key, incarnation: 1, reason: busy() });
        assert_eq!(asked.load(Ordering::Relaxed), 0, "nothing is drawn yet");
        take(MachineEvent::Answered { key, incarnation: 1, decision: Resolution::Restart.into() });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        take(MachineEvent::Request { ticket: 2, key, request: ChildRequest::Wake });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn is_no_end_of_a_backoff_that_has_one() {
        let mut rules = rules();
        rules.backoff = Backoff::iter(|| [secs(1)]);
        let mut world = World::running(rules, [kid("a").told(secs(5)), kid("b")]);
        for _ in 0..3 {
            world.exit("a", busy());
            world.advance(secs(5));
        }
        assert_eq!(world.timed(), "5s start a#2, 10s start a#3, 15s start a#4");
    }

    #[test]
    fn is_bounded_by_the_limits_of_the_child() {
        let rules = Rules { on_exhausted: OnExhausted::Park, ..waiting() };
        let mut world = World::running(rules, [kid("a").told(secs(5)).consecutive(1)]);
        world.exit("a", busy());
        world.advance(secs(5));
        world.exit("a", busy());
        world.settle();
        assert_eq!(world.timed(), "5s start a#2, 5s gave up a");
    }

    #[test]
    fn of_zero_is_charged_also_before_it_is_active() {
        let plays = || [Play::Busy, Play::Busy];
        let rules = || Rules { on_exhausted: OnExhausted::Park, ..limited(1) };
        let a = kid("a").signals(Duration::ZERO).told(Duration::ZERO).plays(plays());
        let mut world = World::ordered(rules(), [a]);
        world.settle();
        assert_eq!(world.acts(), "start a#1, start a#2, gave up a, up");

        let a = kid("a").signals(Duration::ZERO).told(ms(1)).plays(plays());
        let mut world = World::ordered(rules(), [a]);
        world.advance(secs(1));
        assert_eq!(world.acts(), "start a#1, start a#2, start a#3, up");
        assert_eq!(charged(&world), 0);
    }

    /// It was well before, and the backoff says at once after that: the error has said otherwise.
    #[test]
    fn uses_up_that_a_child_was_well() {
        let backoff = Backoff::constant(secs(9)).first_at_once().at_once_after_reset();
        let mut ledger = Ledger::default();
        ledger.recover();
        assert_eq!(ledger.fail_and_wait(secs(5)), secs(5));
        assert_eq!(ledger.fail(&backoff, &mut || 0.0), Some(secs(9)));
        ledger.recover();
        assert_eq!(ledger.fail(&backoff, &mut || 0.0), Some(Duration::ZERO));
    }
}

mod a_restart_that_is_not_charged {
    use super::*;

    fn is_free(mut world: World) {
        for incarnation in 2..=4 {
            world.fail("a");
            world.advance(secs(60));
            world.says("a", |key, incarnation| MachineEvent::Healthy { key, incarnation });
            assert_eq!(world.acts(), format!("start a#{incarnation}"));
            assert_eq!(charged(&world), 0);
        }
        world.exit("a", ExitReason::Aborted);
        assert_eq!(charged(&world), 1, "this end isn't excepted");
    }

    #[test]
    fn is_free_as_long_as_there_is_a_wait() {
        is_free(World::running(limited(1), [free("a")]));
        is_free(World::dynamic(limited(1), [free("a")]));
    }

    #[test]
    fn is_charged_all_the_same_without_a_wait_so_that_it_ends() {
        let mut world =
            World::running(Rules { backoff: Backoff::none(), ..limited(2) }, [free("a")]);
        for _ in 0..3 {
            world.fail("a");
        }
        assert_eq!(world.acts(), "start a#2, start a#3, gave up a, finish escalated a: failed");

        let mut world = World::running(limited(1), [free("a").told(Duration::ZERO)]);
        world.exit("a", busy());
        assert_eq!(charged(&world), 1, "an error may ask for none");
    }

    #[test]
    fn is_charged_where_everything_is_and_refused_where_nothing_is_restarted() {
        let mut world =
            World::running(Rules { charge_everything: true, ..limited(2) }, [free("a")]);
        world.fail("a");
        assert_eq!(charged(&world), 1);

        let mut world = World::running(limited(0), [free("a")]);
        world.fail("a");
        assert_eq!(world.acts(), "gave up a, finish escalated a: failed");
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
            let mut world = World::running(rules(), [a]);
            world.fail("a");
            world.advance(secs(60));
            world.fail("a");
            assert_eq!(world.acts(), "start a#2, gave up a");
        }
    }

    #[test]
    fn is_one_of_the_group_too() {
        let rules = Rules { strategy: Strategy::OneForAll, ..limited(1) };
        let mut world = World::running(rules, [kid("a"), free("b")]);
        world.fail("b");
        world.advance(secs(60));
        assert_eq!(world.timed(), "0ns cancel a, 60s start a#2, 60s start b#2");
        assert_eq!(charged(&world), 0);
    }

    /// What is said of its end is known when the answer comes.
    #[test]
    fn is_free_when_somebody_was_asked() {
        let rules = Rules { asks: true, ..limited(1) };
        let mut world = World::running(rules, [free("a").silent(), kid("b").silent()]);
        for (name, after) in [("a", 0), ("b", 1)] {
            world.crash(name);
            world.decide(name, Resolution::Restart.into());
            assert_eq!(charged(&world), after, "{name}");
        }
    }

    #[test]
    fn is_up_to_the_child_where_it_says_so() {
        let own = Trigger::any().on(ExitKind::Failed, OnExit::RestartUncharged);
        let mut world = World::running(limited(2), [kid("a"), free("b")]);
        world.policy("a", RestartPolicy::new().restart(own));
        world.policy("b", RestartPolicy::new().restart(RestartType::Permanent));
        world.fail("a");
        assert_eq!(charged(&world), 0);
        world.fail("b");
        assert_eq!(charged(&world), 1);
    }

    /// What is excepted is excepted, also where a restart would otherwise always be charged.
    #[test]
    fn is_free_after_an_escalation_and_before_it_is_active() {
        let a = kid("a").on_exit(ExitKind::Escalated, OnExit::RestartUncharged);
        let mut world = World::running(limited(1), [a, kid("b")]);
        for (name, after) in [("a", 0), ("b", 1)] {
            world.exit(name, Play::Escalate.reason());
            assert_eq!(charged(&world), after, "{name}");
        }
        let rules = Rules { first_start: FirstStart::Retry, ..limited(1) };
        let a = free("a").on_exit(ExitKind::ActivationFailed, OnExit::RestartUncharged);
        let mut world = World::ordered(rules, [a.signals(ms(1)).plays([Play::Fail])]);
        world.advance(secs(61));
        assert_eq!((world.acts().as_str(), charged(&world)), ("start a#1, start a#2, up", 0));
    }

    #[test]
    fn of_a_clean_end_is_free_too() {
        let a = kid("a").on_exit(ExitKind::Normal, OnExit::RestartUncharged);
        let mut world = World::running(limited(1), [a]);
        world.end("a");
        world.advance(secs(60));
        assert_eq!((world.acts().as_str(), charged(&world)), ("start a#2", 0));
    }

    #[test]
    fn waits_for_the_end_of_a_pause_like_any_other() {
        let rules = Rules { on_exhausted: OnExhausted::Pause(secs(300)), ..limited(1) };
        let mut world = World::running(rules, [free("a"), kid("b"), kid("c")]);
        world.fail("b");
        world.fail("c");
        world.fail("a");
        assert_eq!(next(&world, "a"), Some((1, secs(300))));
    }
}

#[test]
fn what_is_shown_of_a_groups_wait_is_when_the_group_starts() {
    let rules = Rules { strategy: Strategy::OneForAll, ..waiting() };
    let mut world = World::running(rules, [kid("a"), kid("b").stops(secs(1)), kid("c")]);
    let begins = |world: &World| {
        let view = world.machine.view(world.key("c"), world.now).expect("a child");
        view.history.and_then(|history| history.next).map(|(at, _)| at - world.now)
    };
    world.fail("c");
    assert_eq!(begins(&world), Some(secs(60)));
    // Somebody wants it sooner, but it has to wait for its sibling.
    assert_eq!(world.call("c", ChildRequest::Wake), "done");
    assert_eq!(world.lifecycle("c"), Lifecycle::Restarting);
    assert_eq!(begins(&world), Some(Duration::ZERO));
}

#[test]
fn being_ready_begins_the_backoff_anew_if_that_is_its_rule() {
    for (rule, expected) in [(Reset::OnReady, 60), (Reset::Never, 120)] {
        let backoff = Backoff::exponential(secs(60), secs(600)).reset(rule);
        let mut world = World::running(rules(), [kid("a").backoff(backoff)]);
        world.fail("a");
        assert_eq!(next(&world, "a"), Some((1, secs(60))));
        world.advance(secs(60));
        world.fail("a");
        assert_eq!(next(&world, "a").map(|(_, wait)| wait), Some(secs(expected)), "{rule:?}");
    }
}

#[test]
fn nothing_is_kept_of_a_child_that_never_failed_unless_its_backoff_wants_it() {
    let kept = |backoff| {
        let rules = Rules { backoff, ..rules() };
        let mut world = World::running(rules, [kid("a").transient()]);
        world.end("a");
        world.machine.view(world.key("a"), world.now).is_some_and(|view| view.history.is_some())
    };
    let backoff = || Backoff::exponential(secs(5), secs(30));
    assert!(!kept(backoff()));
    assert!(kept(backoff().at_once_after_reset()), "that it was well");
}
