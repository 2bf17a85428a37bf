//! A child that fails with its new value fails for the plan alone: no policy answers it, and everything comes back.

use verger::config::ChildConfig;
use verger::policy::{ChildFailure, FailureDecision, Jitter};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, Lifecycle, Readiness, RestartType,
    Strategy, Supervisor, worker,
};

use super::{Server, app, config, idle, secs, start_with, state, try_apply};
use crate::common::{End, FakeChildren, NextStart, settle};

/// A child that is restarted for its configuration, and isn't ready with port 2.
fn picky(name: &str) -> ChildSpec {
    let run = async |ctx: Context| -> Exit {
        if ctx.config::<Server>()?.get().port == 2 {
            return Err("port 2 is taken".into());
        }
        ctx.ready();
        idle(ctx).await
    };
    let config = ChildConfig::<Server>::new().restart_on_change();
    worker(name, run).readiness(Readiness::Signal).config(config)
}

#[tokio::test(start_paused = true)]
async fn no_limit_no_sibling_and_no_callback_is_concerned() {
    let escalates = async |_: ChildFailure| FailureDecision::escalate();
    let trees = [
        ("the limit of the child", app(), picky("b").consecutive_restarts(0)),
        ("the limit of the supervisor", app().restarts(0, secs(60)), picky("b")),
        ("one_for_all", app().strategy(Strategy::OneForAll), picky("b")),
        ("a callback", app().on_child_failure(escalates), picky("b")),
        ("a fallback", app(), picky("b").consecutive_restarts(0).fallback(worker("f", idle))),
        ("temporary", app(), picky("b").restart(RestartType::Temporary)),
        ("on_stop", app(), picky("b").restart(RestartType::OnStop)),
    ];
    for (case, app, child) in trees {
        let tree = start_with(app.child(worker("a", idle)).child(child), "").await;
        let error = try_apply(&tree, "[b.config]\nport = 2").await.unwrap_err();
        let expected = "rolled back, not active: `app/b`: activation failed: port 2 is taken";
        assert_eq!(error, expected, "{case}");
        tokio::time::sleep(secs(60)).await;
        settle().await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1), "{case}");
        let b = tree.which_child("b").await.unwrap();
        assert_eq!((b.lifecycle, b.incarnation, b.failures), (Lifecycle::Active, 3, 0), "{case}");
        assert_eq!(b.why, None, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn temporary_children_of_a_dynamic_supervisor_come_back() {
    let tree = start_with(app().child(DynamicSupervisor::builder("jobs")), "").await;
    let jobs = tree.supervisor("jobs").await.unwrap();
    for _ in 0..2 {
        jobs.start_child(picky("job").restart(RestartType::Temporary)).await.unwrap();
    }
    try_apply(&tree, "[\"jobs/job\".config]\nport = 2").await.unwrap_err();
    for name in ["job#1", "job#2"] {
        assert_eq!(state(&jobs, name).await.0, Lifecycle::Active, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_enabled_and_fails_is_taken_out_again() {
    let fakes = FakeChildren::new();
    let b = fakes.child("b").consecutive_restarts(0);
    for (before, after) in [
        ("[b]\nenabled = false", ""),
        ("[\"*\"]\nenabled = false\n[a]\nenabled = true", "[a]\nenabled = true"),
        (
            "[\"*\"]\nenabled = false\n[a]\nenabled = true",
            "[\"*\"]\nenabled = false\n[a]\nenabled = true\n[b]\nenabled = true",
        ),
    ] {
        let tree = start_with(app().child(worker("a", idle)).child(b.clone()), before).await;
        fakes.next_starts("b", [NextStart::Error]);
        let error = try_apply(&tree, after).await.unwrap_err();
        assert!(error.starts_with("rolled back, not active: `app/b`: "), "{error}");
        settle().await;
        assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1), "{after}");
        assert_eq!(state(&tree, "b").await.0, Lifecycle::Discovered, "{after}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_taken_out_and_does_not_come_back_is_named() {
    let fakes = FakeChildren::new();
    let tree = start_with(app().child(fakes.child("a")).child(picky("b")), "").await;
    fakes.next_starts("a", [NextStart::Error]);
    let error = try_apply(&tree, "[a]\nenabled = false\n[b.config]\nport = 2").await.unwrap_err();
    assert!(error.contains("`app/a`: also with its old configuration: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_waits_for_stops_of_sections_for_several_children() {
    let port = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
    let server = |name: &str| {
        let port = std::sync::Arc::clone(&port);
        let run = move |ctx: Context| {
            let port = std::sync::Arc::clone(&port);
            async move {
                let _bound = port.try_acquire()?;
                ctx.ready();
                ctx.cancelled().await;
                tokio::time::sleep(secs(1)).await;
                Exit::Ok(())
            }
        };
        worker(name, run).readiness(Readiness::Signal)
    };
    let group = Supervisor::builder("group").child(server("a"));
    let tree = start_with(app().child(group).child(server("b")), "[b]\nenabled = false").await;
    for (text, up, down) in [
        ("[\"group/*\"]\nenabled = false", "b", "group/a"),
        ("[b]\nenabled = false", "group/a", "b"),
        ("[common]\nenabled = false\n[b]\nenabled = true", "b", "group"),
    ] {
        try_apply(&tree, text).await.unwrap();
        assert_eq!(state(&tree, up).await.0, Lifecycle::Active, "{text}");
        assert_eq!(state(&tree, down).await.0, Lifecycle::Discovered, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_code_that_is_taken_back_restores_what_a_group_restart_was_about_to_start() {
    let fakes = FakeChildren::new();
    let a = || fakes.child("a").backoff(Backoff::constant(secs(600)).jitter(Jitter::None));
    let slow = worker("slow", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
        Ok(())
    });
    let all = || app().strategy(Strategy::OneForAll);
    let old = all().child(a()).child(slow).child(fakes.child("quick"));
    let tree = start_with(old, "").await;
    let new = all().child(a()).build().unwrap();
    let plan = tree.plan_tree(&new, &config("")).await.unwrap();
    let applied = tokio::spawn({
        let tree = tree.clone();
        async move { tree.apply(plan).await }
    });
    tokio::time::sleep(secs(1)).await;
    fakes.end("a", End::Error).await;
    applied.await.unwrap().unwrap_err();
    tokio::time::sleep(secs(1_000)).await;
    settle().await;
    for name in ["a", "slow", "quick"] {
        assert_eq!(state(&tree, name).await.0, Lifecycle::Active, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_code_that_is_taken_back_starts_no_child_that_was_stopped_by_hand() {
    let fakes = FakeChildren::new();
    let tree = start_with(app().child(fakes.child("a")).child(fakes.child("b")), "").await;
    tree.stop_child("b").await.unwrap();
    fakes.next_starts("c", [NextStart::Error]);
    let new = app().child(fakes.child("a")).child(fakes.child("c")).build().unwrap();
    let plan = tree.plan_tree(&new, &config("")).await.unwrap();
    tree.apply(plan).await.unwrap_err();
    assert_ne!(state(&tree, "b").await.0, Lifecycle::Active);
    tree.otp().restart_child("b").await.unwrap();
}
