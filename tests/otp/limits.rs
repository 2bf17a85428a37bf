//! Failing restarts, limits, and arguments of dynamic children.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle};
use crate::journal::{Journal, seconds};
use tokio::time::{Instant, sleep};
use verger::policy::Preset;
use verger::{
    Backoff, Context, ControlError, DynamicSupervisor, DynamicSupervisorBuilder, Exit, ExitReason,
    Lifecycle, RestartType, RunError, Supervisor, SupervisorHandle, worker_with,
};

async fn start(builder: DynamicSupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

fn pool() -> DynamicSupervisorBuilder {
    DynamicSupervisor::builder("pool")
}

#[tokio::test(start_paused = true)]
async fn otp_61_a_dynamic_child_whose_restart_fails_once_is_retried() {
    let fakes = FakeChildren::new();
    let tree = start(pool().preset(Preset::elixir())).await;
    tree.start_child(fakes.child("a")).await.unwrap();
    fakes.next_starts("a", [NextStart::Error]);

    let began = Instant::now();
    fakes.end("a", End::Error).await;

    assert_eq!(fakes.actions(), ["start a", "end a", "try a", "start a"]);
    let child = tree.which_child("a#1").await.unwrap();
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Active, 3));
    assert_eq!(tree.otp().count_children().await.unwrap().active, 1);
    assert_eq!(began.elapsed(), Duration::ZERO, "Elixir knows no backoff");
}

/// In verger, attempts are separated by a delay.
#[tokio::test(start_paused = true)]
async fn otp_61_each_restart_attempt_waits_for_its_backoff() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(seconds(1), seconds(8)).jitter(0.0);
    let tree = start(pool().defaults(|child| child.backoff(backoff))).await;
    tree.start_child(fakes.child("a")).await.unwrap();
    fakes.next_starts("a", [NextStart::Error, NextStart::Panic]);
    fakes.end("a", End::Error).await;
    assert_eq!(fakes.actions(), ["start a", "end a"]);

    for (wait, act) in [(seconds(1), "try a"), (seconds(2), "try a"), (seconds(4), "start a")] {
        sleep(wait - Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(fakes.actions(), [""; 0], "before {wait:?}");
        sleep(Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(fakes.actions(), [act], "after {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_62_a_child_that_never_restarts_ends_its_supervisor_whatever_the_limit() {
    for max in [1, 10] {
        let fakes = FakeChildren::new();
        let pool = pool().preset(Preset::otp()).restarts(max, seconds(5)).into_child();
        let builder = Supervisor::builder("app").child(pool.restart(RestartType::Temporary));
        let tree = builder.build().unwrap().start().await.unwrap();
        let pool = tree.supervisor("pool").await.unwrap();
        pool.start_child(fakes.child("a")).await.unwrap();
        fakes.next_starts("a", vec![NextStart::Error; 100]);
        let mut journal = Journal::of(&tree);

        let began = Instant::now();
        fakes.end("a", End::Error).await;

        let ended = pool.wait().await.unwrap_err();
        let RunError::GaveUp { path, child, reason, .. } = ended else { panic!("{ended:?}") };
        assert_eq!((path.as_str(), child.as_str()), ("app/pool", "app/pool/a#1"));
        assert_eq!(reason.to_string(), "activation failed: no start");
        let mut acts = vec!["start a", "end a"];
        acts.extend(vec!["try a"; max as usize]);
        assert_eq!(fakes.actions(), acts, "limit {max}");
        // The reason for the parent is OTP's.
        assert_eq!(journal.reasons().last().unwrap(), "pool: shut down", "limit {max}");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

/// OTP's `{ok, Pid, Info}` has no counterpart here.
#[tokio::test(start_paused = true)]
async fn otp_63_the_result_of_its_restart_decides_about_a_dynamic_child() {
    let fakes = FakeChildren::new();
    let tree = start(pool().defaults(|child| child.backoff(Backoff::constant(seconds(1))))).await;
    let restarts = [
        ("fine#1", NextStart::Ok),
        ("ignores#2", NextStart::Ignore),
        ("fails#3", NextStart::Error),
        ("panics#4", NextStart::Panic),
    ];
    for (segment, outcome) in restarts {
        let (name, _) = segment.split_once('#').unwrap();
        let child = tree.start_child(fakes.child(name)).await.unwrap();
        assert_eq!(child.name(), segment);
        fakes.next_starts(name, [outcome]);
    }

    for (segment, _) in restarts {
        tree.kill(segment).await.unwrap();
        settle().await;
        let child = tree.which_child(segment).await.unwrap();
        assert_eq!(child.lifecycle, Lifecycle::Restarting, "{segment}");
        assert_eq!(child.last_exit.unwrap().reason.kind(), "aborted", "{segment}");
    }
    sleep(seconds(1)).await;
    settle().await;

    let fine = tree.which_child("fine#1").await.unwrap();
    assert_eq!((fine.lifecycle, fine.incarnation), (Lifecycle::Active, 2));
    let ignores = tree.which_child("ignores#2").await;
    assert!(matches!(ignores, Err(ControlError::NotFound { .. })), "{ignores:?}");
    for segment in ["fails#3", "panics#4"] {
        let child = tree.which_child(segment).await.unwrap();
        assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Restarting, 2), "{segment}");
        let next = child.next.unwrap();
        assert_eq!((next.attempt, next.remaining), (2, seconds(1)), "{segment}");
    }
    let counts = tree.otp().count_children().await.unwrap();
    assert_eq!((counts.specs, counts.active, counts.restarting), (3, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn otp_64_with_max_children_zero_no_child_is_started() {
    let fakes = FakeChildren::new();
    let tree = start(pool().max_children(0)).await;

    let refused = tree.start_child(fakes.child("a")).await.unwrap_err();

    let ControlError::MaxChildren { path, max } = &refused else { panic!("{refused:?}") };
    assert_eq!((path.as_str(), *max), ("pool", 0));
    assert_eq!(fakes.log(), [""; 0]);
    assert_eq!(tree.otp().count_children().await.unwrap().specs, 0);
}

#[tokio::test(start_paused = true)]
async fn otp_65_a_restarting_child_counts_towards_max_children() {
    let fakes = FakeChildren::new();
    let builder = pool().max_children(1);
    let tree = start(builder.defaults(|child| child.backoff(Backoff::constant(seconds(10))))).await;
    tree.start_child(fakes.child("a")).await.unwrap();
    fakes.next_starts("a", [NextStart::Error]);
    fakes.end("a", End::Error).await;

    for lifecycle in [Lifecycle::Restarting, Lifecycle::Restarting, Lifecycle::Active] {
        assert_eq!(tree.which_child("a#1").await.unwrap().lifecycle, lifecycle);
        let refused = tree.start_child(fakes.child("b")).await;
        assert!(matches!(refused, Err(ControlError::MaxChildren { max: 1, .. })), "{refused:?}");
        sleep(seconds(10)).await;
        settle().await;
    }
    assert_eq!(fakes.actions(), ["start a", "end a", "try a", "start a"]);

    tree.otp().terminate_child("a#1").await.unwrap();
    assert_eq!(tree.start_child(fakes.child("b")).await.unwrap().name(), "b#2");
}

/// Arguments belong to the spec here, and not to the supervisor.
#[tokio::test(start_paused = true)]
async fn otp_66_a_restarted_child_gets_its_arguments_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let tree = start(pool().preset(Preset::elixir())).await;

    let spec = worker_with("a", vec!["argument"], move |ctx: Context, mut arguments: Vec<_>| {
        let sink = Arc::clone(&sink);
        async move {
            sink.lock().unwrap().push((ctx.incarnation(), arguments.clone()));
            // The next incarnation must not see this change.
            arguments.push("changed");
            if ctx.incarnation() == 3 {
                ctx.cancelled().await;
                return Ok(());
            }
            Exit::Err("again".into())
        }
    });
    tree.start_child(spec).await.unwrap();
    settle().await;

    let arguments = vec!["argument"];
    let expected = [(1, arguments.clone()), (2, arguments.clone()), (3, arguments)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn otp_67_each_kind_of_start_failure_has_its_own_error_and_the_supervisor_continues() {
    let fakes = FakeChildren::new();
    let tree = start(pool()).await;
    tree.start_child(fakes.child("sibling")).await.unwrap();
    let began = Instant::now();

    let mut reasons = Vec::new();
    for outcome in [NextStart::Error, NextStart::Panic, NextStart::Hang] {
        fakes.next_starts("a", [outcome]);
        let spec = fakes.child("a").activation_timeout(seconds(2)).shutdown(seconds(3));
        let error = tree.start_child(spec).await.unwrap_err();
        let ControlError::ActivationFailed { path, reason, .. } = error else {
            panic!("{error:?}")
        };
        assert!(path.as_str().starts_with("pool/a#"), "{path}");
        reasons.push(reason);
    }

    let [failed, panicked, late] = &reasons[..] else { panic!("{reasons:?}") };
    assert!(
        matches!(failed, ExitReason::ActivationFailed(error) if error.to_string() == "no start")
    );
    assert!(matches!(panicked, ExitReason::Panicked(message) if message == "panic at start"));
    assert!(matches!(late, ExitReason::ActivationTimedOut));
    // The child was cancelled after 2 s, and had a grace of 3 s.
    assert_eq!(began.elapsed(), seconds(5));

    assert_eq!(tree.otp().count_children().await.unwrap().specs, 1);
    let a = tree.start_child(fakes.child("a")).await.unwrap();
    assert_eq!(tree.which_child(a.name()).await.unwrap().lifecycle, Lifecycle::Active);
    let sibling = tree.which_child("sibling#1").await.unwrap();
    assert_eq!((sibling.lifecycle, sibling.incarnation), (Lifecycle::Active, 1));
}
