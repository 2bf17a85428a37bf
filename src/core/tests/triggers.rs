//! What a trigger leads to besides a restart, for both kinds of supervisor.

use std::time::Duration;

use crate::core::verify::simulation::{FakeChild, Script, Simulation, fake, ms, rules, secs};
use crate::core::{ChildRequest, MachineEvent, SLICE};
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

fn not_restarted(name: &str) -> FakeChild {
    fake(name).on_exit(ExitKind::Failed, OnExit::Leave)
}

mod a_child_that_is_left {
    use super::*;

    #[test]
    fn is_errored_if_it_failed_and_stopped_if_it_ended_well() {
        let b = not_restarted("b").on_exit(ExitKind::Normal, OnExit::Leave);
        let mut sim = Simulation::running(one_for_all(), [fake("a"), b, fake("c")]);
        sim.fail("b");
        assert_eq!(sim.story("b"), "active → errored (failed)");
        assert_eq!(sim.why("b"), Some("not restarted"));
        assert_eq!(sim.alive(), "a#1 c#1", "its group keeps running");

        assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
        sim.skip();
        sim.end("b");
        assert_eq!(sim.story("b"), "active → deactivating → stopped (normal)");
        assert_eq!(sim.why("b"), Some("finished"));
        assert_eq!(sim.acts(), "");
        sim.check_rest();
    }

    #[test]
    fn costs_nothing() {
        let mut sim = Simulation::running(limited(1), [not_restarted("a")]);
        for incarnation in 2..5 {
            sim.fail("a");
            assert_eq!(sim.call("a", ChildRequest::RESUME), format!("started {incarnation}"));
        }
        assert_eq!(sim.machine.intensity(sim.now).0, 0);
    }

    #[test]
    fn comes_back_with_its_group() {
        let mut sim =
            Simulation::running(one_for_all(), [fake("a"), not_restarted("b"), fake("c")]);
        sim.fail("b");
        sim.fail("c");
        assert_eq!(sim.acts(), "cancel a, start a#2, start b#2, start c#2");
    }

    #[test]
    fn blocks_no_sibling_and_meets_no_requirement() {
        let fakes = [not_restarted("a").signals(ms(1)), fake("b"), fake("c").requires("a")];
        let mut sim = Simulation::ordered(rules(), fakes);
        sim.fake("a").scripts = [Script::Fail].into();
        sim.advance(ms(1));
        // Before it was active the failure has a different kind, so it is restarted.
        assert_eq!(sim.acts(), "start a#1, start a#2");
        sim.advance(ms(1));
        assert_eq!(sim.acts(), "start b#1, start c#1, up");

        sim.fail("a");
        sim.fail("c");
        assert_eq!(sim.alive(), "b#1");
        assert_eq!(sim.why("c"), Some("waits for a requirement"));
        assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "-");
        sim.advance(ms(1));
        assert_eq!(sim.alive(), "a#3 b#1 c#2");
    }

    #[test]
    fn that_is_significant_has_ended() {
        for (auto, acts) in [
            (AutoShutdown::AnySignificant, "cancel b, finish auto"),
            (AutoShutdown::AllSignificant, ""),
        ] {
            let rules = Rules { auto_shutdown: auto, ..rules() };
            let fakes = [not_restarted("a").significant(), fake("b").transient().significant()];
            let mut sim = Simulation::running(rules, fakes);
            sim.fail("a");
            assert_eq!(sim.acts(), acts);
        }
    }

    #[test]
    fn that_is_temporary_is_forgotten() {
        let mut sim =
            Simulation::running(rules(), [fake("a").temporary(), not_restarted("b").temporary()]);
        sim.fail("b");
        assert_eq!(sim.acts(), "removed b");
    }

    #[test]
    fn is_down_for_good_in_a_first_start() {
        for start in [Start::Sequential, Start::Concurrent] {
            let a = fake("a").signals(ms(0)).scripts([Script::Fail]);
            let a = a.on_exit(ExitKind::ActivationFailed, OnExit::Leave);
            let mut sim = Simulation::ordered(Rules { start, ..rules() }, [a, fake("b")]);
            sim.advance(Duration::ZERO);
            assert!(sim.is_up());
            assert_eq!((sim.alive(), sim.lifecycle("a")), ("b#1".to_owned(), Lifecycle::Errored));
        }
    }

    #[test]
    fn by_a_dynamic_supervisor_is_forgotten() {
        let mut sim = Simulation::dynamic(rules(), [not_restarted("a"), fake("b")]);
        sim.fail("a");
        assert_eq!(sim.acts(), "removed a");
        assert_eq!(sim.alive(), "b#1");
    }
}

mod the_supervisor {
    use super::*;

    #[test]
    fn ends_cleanly_and_stops_its_siblings_in_reverse() {
        for (end, kind) in [(ExitReason::Normal, "clean"), (Script::Fail.reason(), "failed")] {
            let b = fake("b").on_exit(end.exit_kind(), OnExit::EndSupervisor);
            let fakes = [fake("a"), b.stops(ms(3)), fake("c"), fake("d")];
            let mut sim = Simulation::running(one_for_all(), fakes);
            sim.exit("b", end);
            sim.settle();
            let acts = "b ends all, cancel d, cancel c, cancel a, finish auto";
            assert_eq!(sim.acts(), acts, "{kind}");
        }
    }

    #[test]
    fn fails_with_the_reason_and_stops_its_siblings_in_reverse() {
        for end in [ExitReason::Normal, Script::Fail.reason(), ExitReason::Aborted] {
            let b = fake("b").on_exit(end.exit_kind(), OnExit::FailSupervisor);
            let mut sim = Simulation::running(limited(9), [fake("a"), b, fake("c")]);
            let acts = format!("b fails all, cancel c, cancel a, finish failed b: {}", end.kind());
            sim.exit("b", end);
            sim.settle();
            assert_eq!(sim.acts(), acts);
            assert_eq!(sim.machine.intensity(sim.now).0, 0, "nothing is charged");
        }
    }

    #[test]
    fn that_is_dynamic_stops_all_at_once() {
        let ends = |then| {
            let b = fake("b").on_exit(ExitKind::Failed, then);
            let mut sim = Simulation::dynamic(limited(9), [fake("a"), b, fake("c")]);
            sim.fail("b");
            assert_eq!(sim.machine.intensity(sim.now).0, 0);
            sim.acts()
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
        let deaf = |name: &str, then| fake(name).stops(None).on_exit(ExitKind::Failed, then);
        let fakes = || [deaf("a", OnExit::EndSupervisor), deaf("b", OnExit::FailSupervisor)];
        let mut sim = Simulation::running(rules(), fakes());
        sim.stop();
        for name in ["b", "a"] {
            sim.fail(name);
        }
        assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped");

        let mut sim = Simulation::dynamic(rules(), fakes());
        sim.stop();
        for name in ["b", "a"] {
            sim.fail(name);
        }
        assert_eq!(sim.acts(), "cancel b, cancel a, removed b, removed a, finish stopped");

        // A child that fails before it is cancelled.
        let many = (0..2 * SLICE).map(|number| deaf(&number.to_string(), OnExit::FailSupervisor));
        let mut sim = Simulation::dynamic(rules(), many);
        sim.event(MachineEvent::Stop { within: None });
        sim.skip();
        sim.fail("0");
        assert!(sim.acts().starts_with("removed 0, cancel "), "its exit is not decided");
    }
}

mod an_ordered_stop {
    use super::*;

    /// Restarts after every exit, despite the restart type.
    fn eager(name: &str) -> FakeChild {
        let trigger = Trigger::any().restart_if(|_: &std::io::Error| true);
        fake(name).stops(None).trigger(trigger).on_exit(ExitKind::Failed, OnExit::Restart)
    }

    fn refused() -> ExitReason {
        ExitReason::Failed(std::io::Error::other("no").into())
    }

    #[test]
    fn a_termination_overrides_every_policy() {
        let mut sim =
            Simulation::running(rules(), [eager("a"), eager("t").restart(RestartType::Temporary)]);
        for name in ["a", "t"] {
            sim.request(name, ChildRequest::Terminate);
            sim.exit(name, refused());
        }
        sim.settle();
        assert_eq!(sim.acts(), "cancel a, cancel t, removed t");
        assert_eq!(sim.lifecycle("a"), Lifecycle::Stopped);

        let mut sim = Simulation::dynamic(rules(), [eager("a")]);
        sim.request("a", ChildRequest::Terminate);
        sim.exit("a", refused());
        assert_eq!(sim.acts(), "cancel a, removed a");
    }

    #[test]
    fn of_the_supervisor_wins_over_all_that_is_said() {
        let mut sim = Simulation::running(rules(), [eager("a"), eager("b")]);
        sim.stop();
        sim.exit("b", refused());
        sim.exit("a", refused());
        assert_eq!(sim.acts(), "cancel b, cancel a, finish stopped");
    }

    #[test]
    fn of_a_group_brings_it_back_once_and_is_free() {
        let rules = Rules { intensity: Some(Intensity::sliding(3, secs(60))), ..one_for_all() };
        let ends_all = eager("b").on_exit(ExitKind::Failed, OnExit::FailSupervisor);
        let mut sim = Simulation::running(rules, [fake("a"), ends_all]);
        sim.fail("a");
        sim.exit("b", refused());
        sim.settle();
        assert_eq!(sim.acts(), "cancel b, start a#2, start b#2");
        assert_eq!(sim.machine.intensity(sim.now).0, 1, "the restart of the group");
    }

    #[test]
    fn a_temporary_child_is_restarted_where_an_exception_says_so_and_forgotten_where_not() {
        let t = || fake("t").temporary().on_exit(ExitKind::Failed, OnExit::Restart);
        let waiting = Rules { backoff: Backoff::constant(ms(50)), ..rules() };
        let mut sim = Simulation::running(waiting, [fake("a"), t()]);
        sim.fail("t");
        assert_eq!(sim.lifecycle("t"), Lifecycle::Restarting);
        sim.advance(ms(50));
        sim.end("t");
        assert_eq!(sim.acts(), "start t#2, removed t");

        // A child that is given up is parked.
        let rules = Rules { on_exhausted: OnExhausted::Park, ..limited(0) };
        let mut sim = Simulation::running(rules, [t()]);
        sim.fail("t");
        assert_eq!((sim.acts().as_str(), sim.lifecycle("t")), ("gave up t", Lifecycle::Errored));
    }
}

/// The trigger of a child that was cancelled after a failure decides by the failure, not by the task's exit.
#[test]
fn the_real_reason_counts() {
    let late = |then| {
        let a = fake("a").signals(None).activation_timeout(secs(1)).stops(ms(100));
        let a = a
            .on_exit(ExitKind::ActivationTimedOut, then)
            .on_exit(ExitKind::Shutdown, OnExit::Restart);
        let mut sim = Simulation::ordered(rules(), [fake("z"), a]);
        sim.advance(secs(1));
        sim.skip();
        sim
    };
    let decided = |then| {
        let mut sim = late(then);
        sim.advance(ms(100));
        sim.acts()
    };
    assert_eq!(decided(OnExit::Restart), "start a#2");
    assert_eq!(decided(OnExit::Leave), "up");
    let fails = "a fails all, cancel z, finish failed a: activation_timed_out";
    assert_eq!(decided(OnExit::FailSupervisor), fails);

    // A caller that restarts it meanwhile decides instead.
    for then in [OnExit::Restart, OnExit::Leave, OnExit::FailSupervisor] {
        let mut sim = late(then);
        sim.fake("a").ready = Some(ms(1));
        let ticket = sim.request("a", ChildRequest::RESTART);
        sim.advance(secs(1));
        assert_eq!((sim.acts().as_str(), sim.answer(ticket)), ("start a#2, up", "started 2"));
    }
}

#[test]
fn a_child_that_stops_itself_ends_cleanly() {
    let a = || fake("a").trigger(Trigger::failure());
    let mut sim = Simulation::running(rules(), [a()]);
    sim.child_event("a", |key, incarnation| MachineEvent::StopSelf { key, incarnation });
    sim.settle();
    assert_eq!(sim.acts(), "cancel a, a ends all, finish auto");

    let mut sim = Simulation::running(rules(), [fake("a").trigger(Trigger::stop())]);
    sim.child_event("a", |key, incarnation| MachineEvent::StopSelf { key, incarnation });
    sim.settle();
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn for_the_activation_only_a_child_is_retried_until_it_is_active() {
    let a = fake("a").trigger(Trigger::any().activation_only()).signals(ms(1));
    let mut sim = Simulation::ordered(rules(), [a.scripts([Script::Fail, Script::Panic])]);
    sim.advance(ms(3));
    assert_eq!(sim.acts(), "start a#1, start a#2, start a#3, up");
    sim.fail("a");
    assert_eq!((sim.acts().as_str(), sim.lifecycle("a")), ("", Lifecycle::Errored));
}
