//! New code for a running tree, by the rules of OTP's code change, and where they differ.

use std::time::Duration;

use verger::config::{ApplyError, Config};
use verger::mailbox::{Inbox, SendError};
use verger::policy::{AutoShutdown, OnExhausted};
use verger::{
    BuildError, Context, ControlError, DynamicSupervisor, Exit, Lifecycle, RestartType, Strategy,
    Supervisor, SupervisorBuilder, SupervisorHandle, mailbox_with_capacity, worker,
    worker_with_mailbox,
};

use super::{app, apply, idle, secs, start};
use crate::common::{End, FakeChildren, settle};

async fn change(
    tree: &SupervisorHandle,
    new: SupervisorBuilder,
) -> Result<Vec<String>, ApplyError> {
    let plan = tree.plan_tree(&new.build().unwrap(), &Config::new()).await?;
    let applied = tree.apply(plan).await?;
    Ok(applied.changes.iter().map(ToString::to_string).collect())
}

/// The children of the root: name, lifecycle, incarnation.
async fn children(tree: &SupervisorHandle) -> Vec<String> {
    let children = tree.children().await.unwrap();
    let line = |it: &verger::status::ChildInfo| {
        format!("{} {} #{}", it.path.name(), it.lifecycle, it.incarnation)
    };
    children.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn otp_87_new_flags_apply_and_a_bad_one_changes_nothing() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a")).child(fakes.child("b"))).await;
    let new = app().strategy(Strategy::OneForAll).restarts(1, secs(60)).stop_deadline(secs(20));
    let changes = change(&tree, new.child(fakes.child("a")).child(fakes.child("b"))).await.unwrap();
    assert_eq!(
        changes,
        [
            r#"~ app  intensity  none → { max = 1, period = "1m" }  live"#,
            r#"~ app  stop_deadline  none → "20s"  live"#,
            r#"~ app  strategy  "one_for_one" → "one_for_all"  live"#,
        ]
    );
    fakes.end("a", End::Error).await;
    tokio::time::sleep(secs(1)).await;
    settle().await;
    assert_eq!(children(&tree).await, ["a active #2", "b active #2"], "one_for_all");

    let bad = app().restarts(1, Duration::ZERO).child(fakes.child("a")).build().unwrap_err();
    assert!(matches!(bad, BuildError::ZeroPeriod { .. }), "{bad}");
    let bad = tree.plan(&super::config("[app]\nstrategy = \"all\"")).await.unwrap_err();
    assert!(matches!(bad, ApplyError::Invalid(_)), "{bad}");
    assert_eq!(children(&tree).await, ["a active #2", "b active #2"], "the supervisor goes on");
}

/// OTP leaves added children stopped and keeps omitted ones. Here a tree is as its code says.
#[tokio::test(start_paused = true)]
async fn otp_88_added_children_start_changed_ones_keep_their_task_and_omitted_ones_are_removed() {
    let fakes = FakeChildren::new();
    let old = app().child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c"));
    let tree = start(old).await;
    tree.start_child(worker("extra", idle)).await.unwrap();
    let new = app()
        .child(fakes.child("d"))
        .child(fakes.child("c").shutdown(secs(9)))
        .child(fakes.child("a").restart(RestartType::Transient));
    let changes = change(&tree, new).await.unwrap();
    assert_eq!(
        changes,
        [
            r#"~ app/a  restart  "permanent" → "transient"  at the next failure"#,
            "- app/b  live",
            r#"~ app/c  shutdown  "5s" → "9s"  live"#,
            "+ app/d  live",
        ]
    );
    // In the order of the new code. What a call has added stays, behind the others.
    let after = ["d active #1", "c active #1", "a active #1", "extra active #1"];
    assert_eq!(children(&tree).await, after);
    assert_eq!(tree.child_spec("a").await.unwrap().restart, RestartType::Transient);
    assert_eq!(tree.child_spec("c").await.unwrap().shutdown, secs(9).into());
    tree.stop("done").await.unwrap();
    let stops: Vec<_> = fakes.log().into_iter().filter(|it| it.contains("stop")).collect();
    assert_eq!(stops.len(), 4, "b once, and then the others: {stops:?}");
}

#[tokio::test(start_paused = true)]
async fn otp_89_a_supervisor_of_a_different_kind_is_refused_at_the_root_and_replaced_below() {
    let app = || app().unlimited_restarts();
    let below = || app().child(Supervisor::builder("jobs").child(worker("job", idle)));
    let tree = start(below()).await;
    let dynamic = DynamicSupervisor::builder("app").build().unwrap();
    let refused = tree.plan_tree(&dynamic, &Config::new()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "refused by `app`: the new root is a different kind of supervisor; restart the program"
    );
    let changes = change(&tree, app().child(DynamicSupervisor::builder("jobs"))).await.unwrap();
    assert_eq!(changes, ["~ app/jobs  needs a restart"]);
    let jobs = tree.supervisor("jobs").await.unwrap();
    assert_eq!(jobs.otp().count_children().await.unwrap().specs, 0);
    jobs.start_child(worker("job", idle)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_90_a_switch_of_auto_shutdown_ends_nothing_and_the_new_mode_decides() {
    let fakes = FakeChildren::new();
    let tree = |mode| {
        let significant = |name| fakes.child(name).restart(RestartType::Transient).significant();
        app().auto_shutdown(mode).child(significant("a")).child(significant("b"))
    };
    let running = start(tree(AutoShutdown::AllSignificant)).await;
    fakes.end("a", End::Normal).await;
    let changes = apply(&running, "[app]\nauto_shutdown = \"any_significant\"").await;
    assert_eq!(
        changes,
        ["~ app  auto_shutdown  \"all_significant\" → \"any_significant\"  live  app.toml:2"]
    );
    settle().await;
    assert_eq!(running.which_child("b").await.unwrap().lifecycle, Lifecycle::Active);
    fakes.end("b", End::Normal).await;
    running.wait().await.unwrap();

    let running = start(tree(AutoShutdown::AnySignificant)).await;
    apply(&running, "[app]\nauto_shutdown = \"all_significant\"").await;
    fakes.end("a", End::Normal).await;
    assert_eq!(running.which_child("b").await.unwrap().lifecycle, Lifecycle::Active);
    running.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_91_a_lower_limit_of_children_keeps_those_that_run_and_refuses_the_next() {
    let conns = DynamicSupervisor::builder("conns").max_children(3);
    let tree = start(app().child(conns)).await;
    let conns = tree.supervisor("conns").await.unwrap();
    for _ in 0..2 {
        conns.start_child(worker("conn", idle)).await.unwrap();
    }
    let changes = apply(&tree, "[conns]\nmax_children = 1").await;
    assert_eq!(changes, ["~ app/conns  max_children  3 → 1  live  app.toml:2"]);
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 2);
    let full = conns.start_child(worker("conn", idle)).await.unwrap_err();
    assert!(matches!(full, ControlError::MaxChildren { max: 1, .. }), "{full}");
    apply(&tree, "").await;
    conns.start_child(worker("conn", idle)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn new_code_that_does_not_start_is_taken_back() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a")).child(fakes.child("b"))).await;
    let before = children(&tree).await;
    let broken = worker("c", async |_| -> Exit { Err("no database".into()) });
    let broken = broken.readiness(verger::Readiness::Signal);
    let error = change(&tree, app().child(fakes.child("a")).child(broken)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "rolled back, not active: `app/c`: activation failed: no database"
    );
    let after = children(&tree).await;
    assert_eq!(before, ["a active #1", "b active #1"]);
    assert_eq!(after, ["a active #1", "b active #1"], "b was started again with its old code");
    assert_eq!(OnExhausted::Escalate, tree.child_spec("a").await.unwrap().on_exhausted);
}

/// A call has removed `m`, so new code for it starts nothing. A sender would wait for the rest of the program.
#[tokio::test(start_paused = true)]
async fn a_mailbox_of_a_new_fallback_whose_child_was_removed_is_closed_with_its_supervisor() {
    let tree = start(app().child(worker("a", idle)).child(worker("m", idle))).await;
    tree.stop_child("m").await.unwrap();
    tree.otp().delete_child("m").await.unwrap();
    let (address, mailbox) = mailbox_with_capacity(1);
    let reads = |ctx: Context, _: Inbox<&str>| async move { ctx.cancelled().await };
    let fallback = worker_with_mailbox("m", mailbox, reads);
    let new = app().child(worker("a", idle)).child(worker("m", idle).fallback(fallback));
    change(&tree, new).await.unwrap();
    assert_eq!(children(&tree).await, ["a active #1"]);

    address.send("queued").await.unwrap();
    let waits = tokio::spawn({
        let address = address.clone();
        async move { address.send("waits").await }
    });
    settle().await;
    tree.stop("done").await.unwrap();
    let sent = tokio::time::timeout(secs(60), waits).await.expect("the mailbox is closed");
    let error = sent.unwrap().unwrap_err();
    assert!(matches!(error, SendError::Closed { message: "waits", .. }), "{error}");
    assert!(address.is_closed());
}
