//! The consequence of each exit: rules of actor-ts (`seed0`), SignalPy (`seed3`), and Pekko and
//! oversight (`kin`).

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::Instant;
use verger::policy::{AutoShutdown, OnExit, Preset, Trigger};
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, BuildError, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitKind,
    ExitReason, Lifecycle, RestartType, RunError, Supervisor, SupervisorBuilder, SupervisorHandle,
    worker,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A supervisor that restarts after a second, without a limit.
fn app() -> SupervisorBuilder {
    Supervisor::builder("app").unlimited_restarts().defaults(|child| child.backoff(second()))
}

fn second() -> Backoff {
    Backoff::constant(SECOND)
}

async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

/// Returns how the tree ends. Fails instead of waiting for a tree that doesn't.
async fn end_of(tree: &SupervisorHandle) -> Result<(), RunError> {
    tokio::time::timeout(HOUR, tree.wait()).await.expect("the tree runs on")
}

/// Waits until a second later.
async fn later() {
    tokio::time::sleep(SECOND).await;
    settle().await;
}

/// A child with this trigger, and a sibling started before it.
async fn with(trigger: impl Into<Trigger>) -> (FakeChildren, SupervisorHandle) {
    let fakes = FakeChildren::new();
    let children = app().child(fakes.child("z")).child(fakes.child("a").restart(trigger));
    let tree = start(children).await;
    fakes.log();
    (fakes, tree)
}

/// A child that fails with an error of this kind as soon as it is active.
fn failing(kind: ErrorKind) -> ChildSpec {
    worker("a", move |ctx: Context| async move {
        // Not at its first poll, so that it becomes active.
        tokio::task::yield_now().await;
        if ctx.incarnation() == 1 {
            return Exit::Err(io::Error::from(kind).into());
        }
        ctx.cancelled().await;
        Ok(())
    })
}

fn is(kind: ErrorKind) -> impl Fn(&io::Error) -> bool + Send + Sync + 'static {
    move |error| error.kind() == kind
}

/// Returns the state of a child that fails with an error of this kind, at once and a second later.
async fn becomes(spec: ChildSpec) -> [(Lifecycle, u32); 2] {
    let tree = start(app().child(spec)).await;
    settle().await;
    let at_once = state(&tree, "a").await;
    later().await;
    [at_once, state(&tree, "a").await]
}

const RESTARTED: [(Lifecycle, u32); 2] = [(Lifecycle::Restarting, 1), (Lifecycle::Active, 2)];
const LEFT: [(Lifecycle, u32); 2] = [(Lifecycle::Errored, 1); 2];

fn gave_up(events: &mut Subscription<Event>) -> Vec<String> {
    let received = std::iter::from_fn(|| events.try_next());
    received
        .filter_map(|event| match event.kind {
            EventKind::GaveUp { reason } => Some(format!("{}: {reason}", event.path)),
            _ => None,
        })
        .collect()
}

mod what_ends {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn seed0_23_by_default_both_a_failure_and_a_normal_end_restart() {
        for end in [End::Error, End::Normal] {
            let fakes = FakeChildren::new();
            let tree = start(app().child(fakes.child("a"))).await;

            fakes.end("a", end).await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Restarting, 1));
            later().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2), "{end:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_29_any_exit_restarts() {
        let (fakes, tree) = with(Trigger::any()).await;
        for (incarnation, end) in (2..).zip([End::Error, End::Normal, End::Panic, End::Normal]) {
            fakes.end("a", end).await;
            later().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, incarnation));
        }
        assert_eq!(fakes.actions(), ["end a", "start a"].repeat(4), "siblings are not affected");
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_30_on_failure_a_failure_restarts_and_a_normal_end_ends_all() {
        let (fakes, tree) = with(Trigger::failure()).await;
        fakes.end("a", End::Error).await;
        later().await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
        fakes.log();

        let ended = Instant::now();
        fakes.end("a", End::Normal).await;
        end_of(&tree).await.unwrap();
        assert_eq!(ended.elapsed(), Duration::ZERO, "there is no delay");
        assert_eq!(fakes.actions(), ["end a", "stop z"]);
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_30_the_supervisor_above_sees_a_normal_end() {
        let fakes = FakeChildren::new();
        let sub = Supervisor::builder("sub").child(fakes.child("a").restart(Trigger::failure()));
        let sub = sub.into_child().restart(RestartType::Transient);
        let tree = start(app().child(sub).child(fakes.child("b"))).await;
        let mut events = tree.events();

        fakes.end("a", End::Normal).await;

        assert_eq!(state(&tree, "sub").await, (Lifecycle::Stopped, 1));
        let mut ends = Vec::new();
        while let Some(event) = events.try_next() {
            if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
                ends.push(format!("{}: {}", event.path, reason.kind()));
            }
        }
        assert_eq!(ends, ["app/sub/a: normal", "app/sub: normal"]);
        assert_eq!(state(&tree, "b").await, (Lifecycle::Active, 1));
    }

    /// In actor-ts, the supervisor stops and its parent sees no failure; here, it fails.
    #[tokio::test(start_paused = true)]
    async fn seed0_31_on_stop_a_normal_end_restarts_and_a_failure_fails_the_supervisor() {
        for trigger in [Trigger::stop(), RestartType::OnStop.into()] {
            let (fakes, tree) = with(trigger).await;
            let mut events = tree.events();
            fakes.end("a", End::Normal).await;
            later().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
            fakes.log();

            fakes.end("a", End::Error).await;
            let error = end_of(&tree).await.unwrap_err();
            assert_eq!(error.to_string(), "`app` gave up on `app/a`: failed: a failed");
            assert_eq!(error.exit_code(), 1);
            assert_eq!(fakes.actions(), ["end a", "stop z"]);
            assert_eq!(gave_up(&mut events), ["app/a: failed: a failed"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_31_the_parents_policy_treats_the_supervisors_failure_like_a_childs() {
        for preset in [None, Some(Preset::otp())] {
            let fakes = FakeChildren::new();
            let sub = Supervisor::builder("sub").child(fakes.child("a").restart(Trigger::stop()));
            let sub = match preset {
                Some(preset) => sub.preset(preset),
                None => sub,
            };
            let sub = sub.into_child().restart(RestartType::Transient);
            let tree = start(app().child(sub)).await;

            fakes.end("a", End::Error).await;

            let sub = tree.which_child("sub").await.unwrap();
            assert_eq!(sub.lifecycle, Lifecycle::Restarting);
            let reason = sub.last_exit.unwrap().to_string();
            assert_eq!(reason, "escalated: child app/sub/a: failed: a failed");
            later().await;
            assert_eq!(state(&tree, "sub/a").await, (Lifecycle::Active, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_32_each_exit_is_judged_by_itself() {
        let (fakes, tree) = with(Trigger::failure()).await;
        for incarnation in [2, 3] {
            fakes.end("a", End::Error).await;
            later().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, incarnation));
        }
        fakes.end("a", End::Normal).await;
        end_of(&tree).await.unwrap();
    }

    /// `any` is the later meaning of `onStop`, and `failure` is for an unexpected exit.
    #[tokio::test(start_paused = true)]
    async fn seed0_33_any_and_failure_differ_only_in_a_normal_end() {
        for trigger in [Trigger::any(), Trigger::failure()] {
            for end in [End::Error, End::Panic] {
                let (fakes, tree) = with(trigger.clone()).await;
                fakes.end("a", end).await;
                later().await;
                assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2), "{trigger:?}");
            }
        }
        let (fakes, tree) = with(Trigger::any()).await;
        fakes.end("a", End::Normal).await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Restarting, 1));

        let (fakes, tree) = with(Trigger::failure()).await;
        fakes.end("a", End::Normal).await;
        assert_eq!(fakes.actions(), ["end a", "stop z"], "the supervisor ends with the child");
        end_of(&tree).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn seed0_33_each_preset_answers_every_exit_as_its_name_says() {
        let any = (Trigger::any(), true);
        let failure = Trigger::failure()
            .on(ExitKind::ActivationFailed, OnExit::EndSupervisor)
            .on(ExitKind::Aborted, OnExit::EndSupervisor);
        let failure = (failure, false);
        for (preset, (trigger, restarts_after_a_normal_end)) in [
            (Preset::actor_ts(), any.clone()),
            (Preset::pekko_on_stop(), any),
            (Preset::pekko_on_failure(), failure),
        ] {
            let name = preset.name();
            assert_eq!(*preset.trigger(), trigger, "{name}");
            for (end, restarts) in
                [(End::Error, true), (End::Panic, true), (End::Normal, restarts_after_a_normal_end)]
            {
                let fakes = FakeChildren::new();
                let app = Supervisor::builder("app").unlimited_restarts().preset(preset.clone());
                let tree = start(app.child(fakes.child("a"))).await;
                fakes.end("a", end).await;
                let ended = match tree.which_child("a").await {
                    Ok(child) => child.lifecycle.to_string(),
                    Err(error) => error.to_string(),
                };
                let expected = if restarts { "restarting" } else { "`app` has ended" };
                assert_eq!(ended, expected, "{name}, {end:?}");
                if !restarts {
                    end_of(&tree).await.unwrap();
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn kin_72_a_child_that_ended_normally_at_first_later_or_after_a_restart_stays_stopped() {
        // Before the child was active.
        let tree =
            start(app().child(worker("a", async |_| {}).restart(RestartType::Transient))).await;
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1));
        // After it was active.
        let (fakes, tree) = with(RestartType::Transient).await;
        fakes.end("a", End::Normal).await;
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1));
        // After a restart.
        let (fakes, tree) = with(RestartType::Transient).await;
        fakes.end("a", End::Error).await;
        later().await;
        fakes.end("a", End::Normal).await;
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn kin_114_each_restart_type_restarts_after_exactly_these_exits() {
        let restarted = |restart: &'static str| async move {
            let mut after = Vec::new();
            for end in [End::Normal, End::Error, End::Panic] {
                let (fakes, tree) = with(restart.parse::<RestartType>().unwrap()).await;
                fakes.end("a", end).await;
                after.push(match tree.which_child("a").await {
                    Ok(child) => child.lifecycle.to_string(),
                    Err(ControlError::NotFound { .. }) => "forgotten".to_owned(),
                    Err(error) => error.to_string(),
                });
            }
            after
        };
        let table = [
            ("permanent", ["restarting", "restarting", "restarting"]),
            ("transient", ["stopped", "restarting", "restarting"]),
            ("temporary", ["forgotten", "forgotten", "forgotten"]),
            ("on_success", ["restarting", "errored", "errored"]),
            ("on_abnormal", ["stopped", "errored", "restarting"]),
            ("on_abort", ["stopped", "errored", "restarting"]),
            ("on_watchdog", ["stopped", "errored", "errored"]),
        ];
        for (word, row) in table {
            assert_eq!(restarted(word).await, row, "{word}");
        }
    }
}

mod errors {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn kin_54_an_error_named_by_a_rule_restarts_the_child_whatever_the_trigger() {
        for trigger in [Trigger::any(), Trigger::failure(), Trigger::stop()] {
            let trigger = trigger.restart_if(is(ErrorKind::TimedOut));
            assert_eq!(becomes(failing(ErrorKind::TimedOut).restart(trigger)).await, RESTARTED);
        }
    }

    /// Pekko's strategy stops the child on the error, and the backoff brings up a fresh one.
    #[tokio::test(start_paused = true)]
    async fn kin_54_an_error_that_stops_the_child_is_followed_by_a_fresh_child() {
        for preset in [Preset::pekko_on_stop(), Preset::pekko_on_failure()] {
            let made = Arc::new(AtomicU32::new(0));
            let makes = Arc::clone(&made);
            let fresh = verger::child("a", move || {
                makes.fetch_add(1, Relaxed);
                Fresh { polls: 0 }
            });
            let builder = Supervisor::builder("app").unlimited_restarts().preset(preset);
            let tree = start(builder.random(|| || 0.0).child(fresh)).await;
            settle().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Restarting, 1));
            tokio::time::sleep(3 * SECOND).await;
            settle().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
            assert_eq!(made.load(Relaxed), 2, "a value for each incarnation");
            tree.stop("the end").await.unwrap();
        }
    }

    /// A value that fails in its first incarnation, and whose state begins at zero in the second.
    struct Fresh {
        polls: u32,
    }

    #[verger::async_trait]
    impl verger::Child for Fresh {
        async fn run(&mut self, ctx: &Context) -> Exit {
            self.polls += 1;
            assert_eq!(self.polls, 1, "the value of the failed incarnation is gone");
            if ctx.incarnation() == 1 {
                return Err(io::Error::from(ErrorKind::TimedOut).into());
            }
            ctx.cancelled().await;
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn kin_61_an_error_set_to_end_the_supervisor_does_so_without_a_delay() {
        let trigger = Trigger::failure().on_error(is(ErrorKind::TimedOut), OnExit::EndSupervisor);
        let begun = Instant::now();
        let tree =
            app().child(failing(ErrorKind::TimedOut).restart(trigger.clone())).build().unwrap();
        tokio::time::timeout(HOUR, tree.run()).await.expect("the tree runs on").unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);

        // The rule doesn't change other errors.
        assert_eq!(becomes(failing(ErrorKind::Other).restart(trigger)).await, RESTARTED);
    }

    /// A manual abort is a failure, so a permanent child is restarted. It isn't the child's own
    /// error, so rules about errors don't apply. A child that was stopped is never restarted.
    #[tokio::test(start_paused = true)]
    async fn kin_73_rules_about_errors_apply_neither_to_an_abort_nor_to_an_ordered_stop() {
        let stubborn = || {
            let a = worker("a", |ctx: Context| async move {
                ctx.cancelled().await;
                Exit::Err(io::Error::from(ErrorKind::Interrupted).into())
            });
            a.restart_if(|_: &io::Error| true)
        };
        for (restart, lifecycle) in [
            (RestartType::Permanent, Lifecycle::Restarting),
            (RestartType::OnSuccess, Lifecycle::Errored),
        ] {
            let tree = start(app().child(stubborn().restart(restart))).await;
            tree.kill("a").await.unwrap();
            settle().await;
            assert_eq!(state(&tree, "a").await, (lifecycle, 1), "{restart}");

            let tree = start(app().child(stubborn().restart(restart))).await;
            tree.stop_child("a").await.unwrap();
            later().await;
            assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1), "{restart}");
            tree.stop("the end").await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn systemd_prevents_before_it_forces_before_the_kind_before_the_type() {
        let yes = |_: &io::Error| true;
        let failing = || failing(ErrorKind::TimedOut).restart(RestartType::OnSuccess);
        assert_eq!(becomes(failing()).await, LEFT);
        assert_eq!(becomes(failing().on_exit(ExitKind::Failed, OnExit::Restart)).await, RESTARTED);
        let forced = failing().on_exit(ExitKind::Failed, OnExit::EndSupervisor).restart_if(yes);
        assert_eq!(becomes(forced.clone()).await, RESTARTED);
        assert_eq!(becomes(forced.leave_down_if(yes)).await, LEFT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_found_among_causes_and_behind_an_escalation() {
        #[derive(Debug, thiserror::Error)]
        #[error("no database")]
        struct NoDatabase(#[source] io::Error);

        let fails = || {
            worker("leaf", async |_: Context| -> Result<(), NoDatabase> {
                tokio::task::yield_now().await;
                Err(NoDatabase(ErrorKind::NotFound.into()))
            })
        };
        let sub = |name: &str| Supervisor::builder(name).restarts(0, SECOND);
        let deep = sub("a").child(sub("b").child(fails()));
        let tree =
            start(app().child(deep.into_child().leave_down_if(is(ErrorKind::NotFound)))).await;
        settle().await;

        let a = tree.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.why), (Lifecycle::Errored, Some("not restarted")));
        assert_eq!(
            a.last_exit.unwrap().to_string(),
            "escalated: child app/a/b: escalated: child app/a/b/leaf: failed: no database: entity \
             not found",
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_predicate_counts_as_false_and_affects_no_sibling() {
        let calls = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&calls);
        let spec = failing(ErrorKind::TimedOut).leave_down_if(move |_: &io::Error| {
            count.fetch_add(1, Relaxed);
            panic!("on purpose")
        });
        assert_eq!(becomes(spec).await, RESTARTED);
        assert_eq!(calls.load(Relaxed), 1);
    }
}

mod what_is_left {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn seed3_33_supervision_of_the_activation_only_shows_a_later_failure() {
        let fakes = FakeChildren::new();
        fakes.next_starts("a", [NextStart::Error, NextStart::Panic]);
        let a = fakes.child("a").restart(Trigger::any().activation_only());
        let tree = app().child(a).child(fakes.child("b")).build().unwrap().start();
        let tree = tree.await.unwrap();
        assert_eq!(
            fakes.actions(),
            ["try a", "try a", "start a", "start b"],
            "supervised until it is up"
        );
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 3));

        fakes.end("a", End::Error).await;
        tokio::time::sleep(60 * SECOND).await;
        let a = tree.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.why), (Lifecycle::Errored, Some("not restarted")));
        assert_eq!(a.last_exit.unwrap().to_string(), "failed: a failed");
        assert_eq!(fakes.actions(), ["end a"], "siblings run");

        tree.resume("a").await.unwrap();
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_that_is_never_restarted_can_be_started_manually() {
        let kept = Trigger::from(RestartType::Transient).on_failure(OnExit::Leave);
        let (fakes, tree) = with(kept).await;
        for (incarnation, end, lifecycle) in [
            (1, End::Error, Lifecycle::Errored),
            (2, End::Panic, Lifecycle::Errored),
            (3, End::Normal, Lifecycle::Stopped),
        ] {
            fakes.end("a", end).await;
            later().await;
            assert_eq!(state(&tree, "a").await, (lifecycle, incarnation));
            tree.otp().restart_child("a").await.unwrap();
        }
        fakes.end("a", End::Error).await;
        tree.stop_child("a").await.unwrap();
        assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 4));
        tree.otp().delete_child("a").await.unwrap();
        assert!(matches!(tree.which_child("a").await, Err(ControlError::NotFound { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn an_exit_of_a_dynamic_child_removes_the_child_or_ends_or_fails_its_supervisor() {
        for (then, result) in [
            (OnExit::Leave, None),
            (OnExit::EndSupervisor, Some(Ok(()))),
            (OnExit::FailSupervisor, Some(Err("`app` gave up on `app/a#1`: failed: a failed"))),
        ] {
            let fakes = FakeChildren::new();
            let tree = DynamicSupervisor::builder("app").build().unwrap().start().await.unwrap();
            let spec = fakes.child("a").on_exit(ExitKind::Failed, then);
            tree.start_child(spec).await.unwrap();
            tree.start_child(fakes.child("b")).await.unwrap();

            fakes.end("a", End::Error).await;

            match result {
                None => assert_eq!(tree.otp().count_children().await.unwrap().specs, 1),
                Some(expected) => {
                    let ended = end_of(&tree).await.map_err(|error: RunError| error.to_string());
                    assert_eq!(ended, expected.map_err(str::to_owned));
                    assert_eq!(fakes.actions().last().unwrap(), "stop b");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_normal_end_may_fail_the_supervisor() {
        let (fakes, tree) = with(Trigger::any().on(ExitKind::Normal, OnExit::FailSupervisor)).await;
        fakes.end("a", End::Normal).await;
        let error = end_of(&tree).await.unwrap_err();
        assert_eq!(error.to_string(), "`app` gave up on `app/a`: ended normally");
        assert!(matches!(error, RunError::GaveUp { reason: ExitReason::Normal, .. }));
    }
}

mod how_it_is_said {
    use super::*;

    /// The default of all children ignores timeouts.
    fn with_default() -> SupervisorBuilder {
        let default = Trigger::from(RestartType::Transient).leave_down_if(is(ErrorKind::TimedOut));
        app().defaults(|child| child.restart(default))
    }

    async fn becomes(spec: ChildSpec) -> [(Lifecycle, u32); 2] {
        let tree = start(with_default().child(spec)).await;
        settle().await;
        let at_once = state(&tree, "a").await;
        later().await;
        [at_once, state(&tree, "a").await]
    }

    #[tokio::test(start_paused = true)]
    async fn a_default_holds_for_a_child_that_adds_exceptions_to_it() {
        assert_eq!(becomes(failing(ErrorKind::TimedOut)).await, LEFT);
        assert_eq!(becomes(failing(ErrorKind::Other)).await, RESTARTED);

        let added = |kind| failing(kind).leave_down_if(is(ErrorKind::NotFound));
        assert_eq!(becomes(added(ErrorKind::NotFound)).await, LEFT);
        assert_eq!(becomes(added(ErrorKind::TimedOut)).await, LEFT, "it is still there");
        assert_eq!(becomes(added(ErrorKind::Other)).await, RESTARTED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_childs_own_trigger_replaces_the_default_as_a_whole() {
        let own = |kind| failing(kind).restart(RestartType::Permanent);
        assert_eq!(becomes(own(ErrorKind::TimedOut)).await, RESTARTED);
        // Exceptions belong to the child, wherever they are written.
        let before = failing(ErrorKind::NotFound).leave_down_if(is(ErrorKind::NotFound));
        assert_eq!(becomes(before.restart(RestartType::Permanent)).await, LEFT);
        let after = own(ErrorKind::NotFound).leave_down_if(is(ErrorKind::NotFound));
        assert_eq!(becomes(after).await, LEFT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_spec_shows_the_whole_trigger_and_status_the_type() {
        let a = worker("a", async |ctx: Context| ctx.cancelled().await);
        let a = a.on_exit(ExitKind::Panicked, OnExit::FailSupervisor);
        let a = a.restart_if(|_: &std::fmt::Error| true);
        let tree = start(with_default().child(a)).await;

        let spec = tree.child_spec("a").await.unwrap();
        assert_eq!(
            (spec.restart, spec.trigger.restart_type()),
            (RestartType::Transient, RestartType::Transient)
        );
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(
            json["trigger"],
            serde_json::json!({
                "type": "transient",
                "on_exit": { "panicked": "fail_supervisor" },
                "on_error": [
                    { "error": std::any::type_name::<std::fmt::Error>(), "then": "restart" },
                    { "error": std::any::type_name::<io::Error>(), "then": "leave" },
                ],
            }),
        );
        let info = tree.which_child("a").await.unwrap();
        assert_eq!(serde_json::to_value(&info).unwrap()["restart"], "transient");
    }

    #[test]
    fn a_significant_child_needs_an_exit_that_is_not_restarted() {
        let build = |spec: ChildSpec| {
            let app = Supervisor::builder("app").auto_shutdown(AutoShutdown::AnySignificant);
            app.child(spec.significant()).build().map(drop)
        };
        let a = || worker("a", async |_| {});
        let refused = [
            a(),
            a().restart(Trigger::any().restart_if(|_: &io::Error| true)),
            a().restart(RestartType::Transient)
                .on_exit(ExitKind::Normal, OnExit::Restart)
                .on_exit(ExitKind::Shutdown, OnExit::Restart),
        ];
        for spec in refused {
            let error = build(spec).unwrap_err();
            assert!(matches!(error, BuildError::SignificantPermanent { .. }), "{error}");
        }
        let built = [
            a().leave_down_if(|_: &io::Error| true),
            a().on_exit(ExitKind::Hung, OnExit::Leave),
            a().restart(Trigger::any().activation_only()),
            a().restart(RestartType::OnStop),
        ];
        for spec in built {
            build(spec).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_significant_child_whose_failure_is_ignored_has_ended() {
        let fakes = FakeChildren::new();
        let a = fakes.child("a").restart(RestartType::OnSuccess).significant();
        let app =
            app().auto_shutdown(AutoShutdown::AnySignificant).child(a).child(fakes.child("b"));
        let tree = start(app).await;

        fakes.end("a", End::Normal).await;
        later().await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
        fakes.end("a", End::Error).await;
        end_of(&tree).await.unwrap();
    }
}
