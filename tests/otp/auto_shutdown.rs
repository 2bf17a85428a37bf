//! Significant children, and supervisors that end with them.
//!
//! OTP ends such a supervisor with `shutdown`. In verger it ends normally, because no caller
//! stopped it.

use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use crate::journal::{Journal, seconds};
use tokio::time::sleep;
use verger::policy::AutoShutdown;
use verger::{
    Backoff, BuildError, ChildSpec, ControlError, DynamicSupervisor, Lifecycle, RestartType,
    Strategy, Supervisor, SupervisorBuilder, SupervisorHandle,
};

const MODES: [AutoShutdown; 2] = [AutoShutdown::AnySignificant, AutoShutdown::AllSignificant];
const ENDS: [End; 3] = [End::Normal, End::Error, End::Panic];
const TYPES: [RestartType; 2] = [RestartType::Transient, RestartType::Temporary];
/// The delay before each restart.
const WAIT: Duration = Duration::from_secs(1);

fn app(mode: AutoShutdown) -> SupervisorBuilder {
    let builder = Supervisor::builder("app").auto_shutdown(mode);
    builder.defaults(|child| child.backoff(Backoff::constant(WAIT)))
}

fn significant(fakes: &FakeChildren, name: &str, restart: RestartType) -> ChildSpec {
    fakes.child(name).restart(restart).significant()
}

/// Asserts that the tree is running.
async fn assert_alive(tree: &SupervisorHandle, about: &str) {
    settle().await;
    assert!(tree.otp().count_children().await.is_ok(), "{about}: the supervisor has ended");
}

/// Asserts that the tree has ended normally, without waiting for a timer.
async fn assert_over(tree: &SupervisorHandle, about: &str) {
    settle().await;
    let calls = tree.otp().count_children().await;
    assert!(matches!(calls, Err(ControlError::Ended { .. })), "{about}: {calls:?}");
    assert!(tree.wait().await.is_ok(), "{about}");
}

#[tokio::test(start_paused = true)]
async fn otp_80_the_end_of_a_non_significant_child_ends_nothing() {
    for mode in MODES {
        for restart in TYPES {
            for end in ENDS {
                let about = format!("{mode:?}, {restart}, {end:?}");
                let fakes = FakeChildren::new();
                let builder = app(mode).child(fakes.child("a").restart(restart));
                let tree = start(builder.child(fakes.child("b"))).await;

                fakes.end("a", end).await;
                sleep(WAIT).await;

                assert_alive(&tree, &about).await;
                let mut acts = vec!["start a", "start b", "end a"];
                if restart == RestartType::Transient && end != End::Normal {
                    acts.push("start a");
                }
                assert_eq!(fakes.actions(), acts, "{about}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_81_the_end_of_a_significant_temporary_child_ends_all_unless_it_is_terminated() {
    for end in ENDS.map(Some).into_iter().chain([None]) {
        let about = format!("{end:?}");
        let fakes = FakeChildren::new();
        let spec = significant(&fakes, "a", RestartType::Temporary);
        let builder = app(AutoShutdown::AnySignificant).child(spec.clone());
        let tree = start(builder.child(fakes.child("b")).child(fakes.child("c"))).await;

        tree.otp().terminate_child("a").await.unwrap();
        assert_alive(&tree, &about).await;
        assert_eq!(fakes.actions(), ["start a", "start b", "start c", "stop a"], "{about}");

        tree.start_child(spec).await.unwrap();
        match end {
            Some(end) => fakes.end("a", end).await,
            None => drop(tree.kill("a").await.unwrap()),
        }

        assert_over(&tree, &about).await;
        let mut acts = fakes.actions();
        acts.retain(|act| act != "end a");
        assert_eq!(acts, ["start a", "stop c", "stop b"], "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_82_a_significant_transient_child_is_restarted_when_it_fails_and_ends_all_when_done() {
    for end in [Some(End::Error), Some(End::Panic), None] {
        let about = format!("{end:?}");
        let fakes = FakeChildren::new();
        let spec = significant(&fakes, "a", RestartType::Transient);
        let builder = app(AutoShutdown::AnySignificant).child(fakes.child("b"));
        let tree = start(builder.child(spec)).await;

        match end {
            Some(end) => fakes.end("a", end).await,
            None => drop(tree.kill("a").await.unwrap()),
        }
        assert_alive(&tree, &about).await;
        assert_eq!(tree.which_child("a").await.unwrap().next.unwrap().remaining, WAIT);
        sleep(WAIT).await;
        assert_alive(&tree, &about).await;
        let a = tree.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Active, 2), "{about}");

        fakes.actions();
        fakes.end("a", End::Normal).await;
        assert_over(&tree, &about).await;
        assert_eq!(fakes.actions(), ["end a", "stop b"], "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_83_with_all_significant_the_last_significant_child_ends_all() {
    for restart in TYPES {
        for last in ["a", "c"] {
            let about = format!("{restart}, {last} last");
            let first = if last == "a" { "c" } else { "a" };
            let fakes = FakeChildren::new();
            let builder = app(AutoShutdown::AllSignificant)
                .child(significant(&fakes, "a", restart))
                .child(fakes.child("b"))
                .child(significant(&fakes, "c", restart))
                .child(fakes.child("d"));
            let tree = start(builder).await;
            fakes.actions();

            fakes.end(first, End::Normal).await;
            sleep(seconds(60)).await;
            assert_alive(&tree, &about).await;
            assert_eq!(fakes.actions(), [format!("end {first}")], "{about}");

            fakes.end(last, End::Normal).await;
            assert_over(&tree, &about).await;
            assert_eq!(fakes.actions(), [&*format!("end {last}"), "stop d", "stop b"], "{about}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_84_significant_children_stopped_by_a_group_restart_end_nothing() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        for mode in MODES {
            for restart in TYPES {
                let about = format!("{strategy}, {mode:?}, {restart}");
                let fakes = FakeChildren::new();
                let builder = app(mode)
                    .strategy(strategy)
                    .child(fakes.child("culprit"))
                    .child(significant(&fakes, "a", restart))
                    .child(significant(&fakes, "b", restart));
                let tree = start(builder).await;
                fakes.actions();

                fakes.end("culprit", End::Error).await;
                assert_alive(&tree, &about).await;
                sleep(WAIT).await;

                assert_alive(&tree, &about).await;
                let mut acts = vec!["end culprit", "stop b", "stop a", "start culprit"];
                if restart == RestartType::Transient {
                    acts.extend(["start a", "start b"]);
                }
                assert_eq!(fakes.actions(), acts, "{about}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_85_auto_shutdown_propagates_through_significant_supervisors_only() {
    for is_significant in [true, false] {
        let fakes = FakeChildren::new();
        let mode = AutoShutdown::AnySignificant;
        let below = Supervisor::builder("below").auto_shutdown(mode);
        let below = below
            .child(fakes.child("x"))
            .child(significant(&fakes, "done", RestartType::Transient))
            .into_child()
            .restart(RestartType::Transient);
        let below = if is_significant { below.significant() } else { below };
        let tree = start(app(mode).child(fakes.child("a")).child(below)).await;
        let mut journal = Journal::of(&tree);
        fakes.actions();

        fakes.end("done", End::Normal).await;

        if is_significant {
            assert_over(&tree, "significant").await;
            assert_eq!(fakes.actions(), ["end done", "stop x", "stop a"]);
        } else {
            sleep(seconds(60)).await;
            assert_alive(&tree, "not significant").await;
            assert_eq!(fakes.actions(), ["end done", "stop x"]);
            let below = tree.which_child("below").await.unwrap();
            assert_eq!((below.lifecycle, below.why), (Lifecycle::Stopped, Some("finished")));
        }
        let ended = ["done: ended normally", "x: shut down", "below: ended normally"];
        assert_eq!(journal.reasons()[..3], ended);
    }
}

/// A dynamic supervisor has no `auto_shutdown`.
#[tokio::test(start_paused = true)]
async fn otp_86_a_dynamic_supervisor_refuses_significant_children() {
    for restart in TYPES {
        let fakes = FakeChildren::new();
        let tree = DynamicSupervisor::builder("pool").build().unwrap().start().await.unwrap();

        let refused = tree.start_child(significant(&fakes, "a", restart)).await.unwrap_err();

        let ControlError::InvalidSpec(BuildError::NotForDynamic { path, option, .. }) = &refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!((path.as_str(), *option), ("pool/a", "significant"));
        assert_eq!(fakes.log(), [""; 0]);
        assert_eq!(tree.otp().count_children().await.unwrap().specs, 0);
    }
}
