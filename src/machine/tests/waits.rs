//! Restarts that cost the supervisor nothing, in either machine.

use std::time::Duration;

use super::super::Event;
use super::super::simulator::{Kid, Play, World, at_most, kid, ms, rules, secs};
use super::super::witness::Subject;
use crate::exit::{ExitKind, ExitReason};
use crate::failure::Resolution;
use crate::policy::{
    Backoff, FirstStart, Intensity, OnExhausted, OnExit, RestartPolicy, RestartType, Rules,
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

/// The attempt that is waited for, and the wait.
fn next<M: Subject>(world: &World<M>, name: &str) -> Option<(u32, Duration)> {
    let history = world.machine.view(world.key(name), world.now)?.history?;
    Some((history.attempt, history.next?.1))
}

fn charged<M: Subject>(world: &World<M>) -> usize {
    world.machine.intensity(world.now).0
}

mod a_restart_that_is_not_charged {
    use super::*;

    fn is_free<M: Subject>(mut world: World<M>) {
        for incarnation in 2..=4 {
            world.fail("a");
            world.advance(secs(60));
            world.says("a", |key, incarnation| Event::Healthy { key, incarnation });
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
