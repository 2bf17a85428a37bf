//! What a trigger leads to, besides a restart, in either machine.

use std::time::Duration;

use super::super::simulator::{Kid, Play, World, kid, ms, rules, secs};
use super::super::{ChildRequest, MachineEvent, SLICE};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, Backoff, Intensity, OnExhausted, OnExit, RestartType, Rules, Start, Strategy,
    Trigger,
};

fn one_for_all() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..rules() }
}

fn limited(max: u32) -> Rules {
    Rules { intensity: Some(Intensity::sliding(max, secs(60))), ..rules() }
}

fn left(name: &str) -> Kid {
    kid(name).on_exit(ExitKind::Failed, OnExit::Leave)
}

mod a_child_that_is_left {
    use super::*;

    #[test]
    fn is_errored_if_it_failed_and_stopped_if_it_ended_well() {
        let b = left("b").on_exit(ExitKind::Normal, OnExit::Leave);
        let mut world = World::running(one_for_all(), [kid("a"), b, kid("c")]);
        world.fail("b");
        assert_eq!(world.story("b"), "active → errored (failed)");
        assert_eq!(world.why("b"), Some("not restarted"));
        assert_eq!(world.alive(), "a#1 c#1", "its group isn't concerned");

        assert_eq!(world.call("b", ChildRequest::Retry), "started 2");
        world.skip();
        world.end("b");
        assert_eq!(world.story("b"), "active → deactivating → stopped (normal)");
        assert_eq!(world.why("b"), Some("finished"));
        assert_eq!(world.acts(), "");
        world.check_rest();
    }

    #[test]
    fn costs_nothing() {
        let mut world = World::running(limited(1), [left("a")]);
        for incarnation in 2..5 {
            world.fail("a");
            assert_eq!(world.call("a", ChildRequest::Retry), format!("started {incarnation}"));
        }
        assert_eq!(world.machine.intensity(world.now).0, 0);
    }

    #[test]
    fn comes_back_with_its_group() {
        let mut world = World::running(one_for_all(), [kid("a"), left("b"), kid("c")]);
        world.fail("b");
        world.fail("c");
        assert_eq!(world.acts(), "cancel a, start a#2, start b#2, start c#2");
    }

    #[test]
    fn holds_up_nobody_and_meets_no_requirement() {
        let kids = [left("a").signals(ms(1)), kid("b"), kid("c").requires("a")];
        let mut world = World::ordered(rules(), kids);
        world.kid("a").plays = [Play::Fail].into();
        world.advance(ms(1));
        // Before it was active the failure is of another kind, so it is tried again.
        assert_eq!(world.acts(), "start a#1, start a#2");
        world.advance(ms(1));
        assert_eq!(world.acts(), "start b#1, start c#1, up");

        world.fail("a");
        world.fail("c");
        assert_eq!(world.alive(), "b#1");
        assert_eq!(world.why("c"), Some("waits for a requirement"));
        assert_eq!(world.call("a", ChildRequest::RestartStopped), "-");
        world.advance(ms(1));
        assert_eq!(world.alive(), "a#3 b#1 c#2");
    }

    #[test]
    fn that_is_significant_has_ended() {
        for (auto, acts) in [
            (AutoShutdown::AnySignificant, "cancel b, finish auto"),
            (AutoShutdown::AllSignificant, ""),
        ] {
            let rules = Rules { auto_shutdown: auto, ..rules() };
            let kids = [left("a").significant(), kid("b").transient().significant()];
            let mut world = World::running(rules, kids);
            world.fail("a");
            assert_eq!(world.acts(), acts);
        }
    }

    #[test]
    fn that_is_temporary_is_forgotten() {
        let mut world = World::running(rules(), [kid("a").temporary(), left("b").temporary()]);
        world.fail("b");
        assert_eq!(world.acts(), "removed b");
    }

    #[test]
    fn is_down_for_good_in_a_first_start() {
        for start in [Start::Sequential, Start::Concurrent] {
            let a = kid("a").signals(ms(0)).plays([Play::Fail]);
            let a = a.on_exit(ExitKind::ActivationFailed, OnExit::Leave);
            let mut world = World::ordered(Rules { start, ..rules() }, [a, kid("b")]);
            world.advance(Duration::ZERO);
            assert!(world.is_up());
            assert_eq!(
                (world.alive(), world.lifecycle("a")),
                ("b#1".to_owned(), Lifecycle::Errored)
            );
        }
    }

    #[test]
    fn by_a_dynamic_supervisor_is_forgotten() {
        let mut world = World::dynamic(rules(), [left("a"), kid("b")]);
        world.fail("a");
        assert_eq!(world.acts(), "removed a");
        assert_eq!(world.alive(), "b#1");
    }
}

mod the_supervisor {
    use super::*;

    #[test]
    fn ends_well_and_stops_the_others_in_reverse() {
        for (end, kind) in [(ExitReason::Normal, "clean"), (Play::Fail.reason(), "failed")] {
            let b = kid("b").on_exit(end.exit_kind(), OnExit::EndSupervisor);
            let kids = [kid("a"), b.stops(ms(3)), kid("c"), kid("d")];
            let mut world = World::running(one_for_all(), kids);
            world.exit("b", end);
            world.settle();
            let acts = "b ends all, cancel d, cancel c, cancel a, finish auto";
            assert_eq!(world.acts(), acts, "{kind}");
        }
    }

    #[test]
    fn fails_with_the_reason_and_stops_the_others_in_reverse() {
        for end in [ExitReason::Normal, Play::Fail.reason(), ExitReason::Aborted] {
            let b = kid("b").on_exit(end.exit_kind(), OnExit::FailSupervisor);
            let mut world = World::running(limited(9), [kid("a"), b, kid("c")]);
            let acts = format!("b fails all, cancel c, cancel a, finish failed b: {}", end.kind());
            world.exit("b", end);
            world.settle();
            assert_eq!(world.acts(), acts);
            assert_eq!(world.machine.intensity(world.now).0, 0, "nothing is charged");
        }
    }

    #[test]
    fn that_is_dynamic_stops_all_at_once() {
        let ends = |then| {
            let b = kid("b").on_exit(ExitKind::Failed, then);
            let mut world = World::dynamic(limited(9), [kid("a"), b, kid("c")]);
            world.fail("b");
            assert_eq!(world.machine.intensity(world.now).0, 0);
            world.acts()
        };
        assert_eq!(
            ends(OnExit::EndSupervisor),
            "b ends all, removed b, cancel c, cancel a, removed c, removed a, finish auto",
        );
        assert_eq!(
            ends(OnExit::FailSupervisor),
            "b fails all, removed b, cancel c, cancel a, removed c, removed a, \
             finish failed b: failed",
        );
    }

    #[test]
    fn that_ends_already_ends_as_it_was_to() {
        let deaf = |name: &str, then| kid(name).stops(None).on_exit(ExitKind::Failed, then);
        let kids = || [deaf("a", OnExit::EndSupervisor), deaf("b", OnExit::FailSupervisor)];
        let mut world = World::running(rules(), kids());
        world.stop();
        for name in ["b", "a"] {
            world.fail(name);
        }
        assert_eq!(world.acts(), "cancel b, cancel a, finish stopped");

        let mut world = World::dynamic(rules(), kids());
        world.stop();
        for name in ["b", "a"] {
            world.fail(name);
        }
        assert_eq!(world.acts(), "cancel b, cancel a, removed b, removed a, finish stopped");

        // One that fails before its turn to be asked has come.
        let many = (0..2 * SLICE).map(|number| deaf(&number.to_string(), OnExit::FailSupervisor));
        let mut world = World::dynamic(rules(), many);
        world.event(MachineEvent::Stop { within: None });
        world.skip();
        world.fail("0");
        assert!(world.acts().starts_with("removed 0, cancel "), "nothing is told of it");
    }
}

mod an_ordered_stop {
    use super::*;

    /// Always back, whatever else is said.
    fn eager(name: &str) -> Kid {
        let trigger = Trigger::any().restart_if(|_: &std::io::Error| true);
        kid(name).stops(None).trigger(trigger).on_exit(ExitKind::Failed, OnExit::Restart)
    }

    fn refused() -> ExitReason {
        ExitReason::Failed(std::io::Error::other("no").into())
    }

    #[test]
    fn by_hand_wins_over_all_that_is_said() {
        let mut world =
            World::running(rules(), [eager("a"), eager("t").restart(RestartType::Temporary)]);
        for name in ["a", "t"] {
            world.ask(name, ChildRequest::Terminate);
            world.exit(name, refused());
        }
        world.settle();
        assert_eq!(world.acts(), "cancel a, cancel t, removed t");
        assert_eq!(world.lifecycle("a"), Lifecycle::Stopped);

        let mut world = World::dynamic(rules(), [eager("a")]);
        world.ask("a", ChildRequest::Terminate);
        world.exit("a", refused());
        assert_eq!(world.acts(), "cancel a, removed a");
    }

    #[test]
    fn of_the_supervisor_wins_over_all_that_is_said() {
        let mut world = World::running(rules(), [eager("a"), eager("b")]);
        world.stop();
        world.exit("b", refused());
        world.exit("a", refused());
        assert_eq!(world.acts(), "cancel b, cancel a, finish stopped");
    }

    #[test]
    fn of_a_group_brings_it_back_once_and_is_free() {
        let rules = Rules { intensity: Some(Intensity::sliding(3, secs(60))), ..one_for_all() };
        let ends_all = eager("b").on_exit(ExitKind::Failed, OnExit::FailSupervisor);
        let mut world = World::running(rules, [kid("a"), ends_all]);
        world.fail("a");
        world.exit("b", refused());
        world.settle();
        assert_eq!(world.acts(), "cancel b, start a#2, start b#2");
        assert_eq!(world.machine.intensity(world.now).0, 1, "that of the group");
    }

    #[test]
    fn a_temporary_child_is_restarted_where_an_exception_says_so_and_forgotten_where_not() {
        let t = || kid("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart);
        let waiting = Rules { backoff: Backoff::constant(ms(50)), ..rules() };
        let mut world = World::running(waiting, [kid("a"), t()]);
        world.fail("t");
        assert_eq!(world.lifecycle("t"), Lifecycle::Restarting);
        world.advance(ms(50));
        world.end("t");
        assert_eq!(world.acts(), "start t#2, removed t");

        // One that gives up is parked like any other.
        let rules = Rules { on_exhausted: OnExhausted::Park, ..limited(0) };
        let mut world = World::running(rules, [t()]);
        world.fail("t");
        assert_eq!(
            (world.acts().as_str(), world.lifecycle("t")),
            ("gave up t", Lifecycle::Errored)
        );
    }
}

/// A child whose task had to be ended is judged by how it failed, not by how its task ended.
#[test]
fn the_real_reason_counts() {
    let late = |then| {
        let a = kid("a").signals(None).activation_timeout(secs(1)).stops(ms(100));
        let a = a
            .on_exit(ExitKind::ActivationTimedOut, then)
            .on_exit(ExitKind::Shutdown, OnExit::Restart);
        let mut world = World::ordered(rules(), [kid("z"), a]);
        world.advance(secs(1));
        world.skip();
        // Whoever asks meanwhile is told the same.
        let answer = world.call("a", ChildRequest::RestartRunning).to_owned();
        world.advance(ms(100));
        (answer, world.acts())
    };
    assert_eq!(late(OnExit::Restart), ("restarting".to_owned(), "start a#2".to_owned()));
    assert_eq!(late(OnExit::Leave), ("unfit errored".to_owned(), "up".to_owned()));
    let (answer, acts) = late(OnExit::FailSupervisor);
    assert_eq!(answer, "unfit errored");
    assert_eq!(acts, "a fails all, cancel z, finish failed a: activation_timed_out");
}

#[test]
fn one_that_stops_itself_ends_well() {
    let a = || kid("a").trigger(Trigger::failure());
    let mut world = World::running(rules(), [a()]);
    world.says("a", |key, incarnation| MachineEvent::StopSelf { key, incarnation });
    world.settle();
    assert_eq!(world.acts(), "cancel a, a ends all, finish auto");

    let mut world = World::running(rules(), [kid("a").trigger(Trigger::stop())]);
    world.says("a", |key, incarnation| MachineEvent::StopSelf { key, incarnation });
    world.settle();
    assert_eq!(world.acts(), "cancel a, start a#2");
}

#[test]
fn for_the_activation_only_a_child_is_retried_until_it_is_active() {
    let a = kid("a").trigger(Trigger::any().activation_only()).signals(ms(1));
    let mut world = World::ordered(rules(), [a.plays([Play::Fail, Play::Panic])]);
    world.advance(ms(3));
    assert_eq!(world.acts(), "start a#1, start a#2, start a#3, up");
    world.fail("a");
    assert_eq!((world.acts().as_str(), world.lifecycle("a")), ("", Lifecycle::Errored));
}
