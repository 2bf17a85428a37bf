//! What each strategy restarts, and when a supervisor gives up: rules 49 to 60.

use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle};
use verger::policy::Preset;
use verger::status::{Event, EventKind, Subscription};
use verger::{
    ControlError, DynamicSupervisor, ExitReason, Lifecycle, RestartType, RunError, Strategy,
    Supervisor, SupervisorBuilder, SupervisorHandle,
};

const SECOND: Duration = Duration::from_secs(1);

/// A root with OTP's settings: no delays, and every failure counts.
fn otp(strategy: Strategy, restarts: u32) -> SupervisorBuilder {
    Supervisor::builder("app").preset(Preset::otp()).strategy(strategy).restarts(restarts, SECOND)
}

/// Starts a root with these children, and discards the log of their start.
async fn up(fakes: &FakeChildren, builder: SupervisorBuilder, names: &[&str]) -> SupervisorHandle {
    let builder = names.iter().fold(builder, |it, name| it.child(fakes.child(name)));
    let tree = builder.build().unwrap().start().await.unwrap();
    fakes.log();
    tree
}

/// Returns a dynamic supervisor with OTP's settings and these children, below a root.
async fn conns(
    fakes: &FakeChildren,
    restarts: u32,
    names: &[&str],
) -> (SupervisorHandle, SupervisorHandle, Vec<String>) {
    let conns =
        DynamicSupervisor::builder("conns").preset(Preset::otp()).restarts(restarts, SECOND);
    let conns = conns.into_child().restart(RestartType::Transient);
    let tree = Supervisor::builder("app").child(conns).build().unwrap().start().await.unwrap();
    let conns = tree.supervisor("conns").await.unwrap();
    let mut children = Vec::new();
    for name in names {
        children.push(conns.start_child(fakes.child(name)).await.unwrap().name().to_owned());
    }
    fakes.log();
    (tree, conns, children)
}

/// Returns a child's state and incarnation.
async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

/// Returns the incarnations of the active children.
async fn active<const N: usize>(tree: &SupervisorHandle, paths: [&str; N]) -> [u32; N] {
    let mut incarnations = [0; N];
    for (incarnation, path) in incarnations.iter_mut().zip(paths) {
        let (lifecycle, number) = state(tree, path).await;
        assert_eq!(lifecycle, Lifecycle::Active, "{path}");
        *incarnation = number;
    }
    incarnations
}

/// Asserts that a root has given up because of `child`, and returns that child's last reason.
async fn gave_up(tree: &SupervisorHandle, culprit: &str) -> ExitReason {
    let ended = tokio::time::timeout(Duration::from_secs(3600), tree.wait()).await;
    match ended.expect("it has not given up") {
        Err(RunError::GaveUp { path, child, reason, .. }) => {
            assert_eq!((path.as_str(), child.as_str()), ("app", culprit));
            reason
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the children that have ended since the last call, with their reasons.
fn ends(events: &mut Subscription<Event>) -> Vec<String> {
    let mut ends = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            ends.push(format!("{} {}", event.path.name(), reason.kind()));
        }
    }
    ends
}

#[tokio::test(start_paused = true)]
async fn otp_49_one_for_one_restarts_the_failed_child_alone_until_the_limit_is_exceeded() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForOne, 2), &["a", "b", "c"]).await;

    fakes.end("b", End::Error).await;
    fakes.end("b", End::Panic).await;
    assert_eq!(active(&tree, ["a", "b", "c"]).await, [1, 3, 1]);
    assert_eq!(fakes.actions(), ["end b", "start b", "end b", "start b"]);

    fakes.end("b", End::Error).await;
    let reason = gave_up(&tree, "app/b").await;
    assert_eq!(reason.to_string(), "failed: b failed");
    assert_eq!(fakes.actions(), ["end b", "stop c", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_50_failed_restart_attempts_use_up_the_limit() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForOne, 4), &["a", "b"]).await;
    fakes.next_starts("a", [NextStart::Error; 100]);

    fakes.end("a", End::Error).await;

    let reason = gave_up(&tree, "app/a").await;
    assert_eq!(reason.to_string(), "activation failed: no start");
    assert_eq!(fakes.actions(), ["end a", "try a", "try a", "try a", "try a", "stop b"]);
}

#[tokio::test(start_paused = true)]
async fn otp_51_one_for_all_replaces_every_child() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForAll, 2), &["a", "b"]).await;

    fakes.end("a", End::Error).await;
    assert_eq!(active(&tree, ["a", "b"]).await, [2, 2]);
    assert_eq!(fakes.actions(), ["end a", "stop b", "start a", "start b"]);

    fakes.end("b", End::Error).await;
    assert_eq!(active(&tree, ["a", "b"]).await, [3, 3]);
    assert_eq!(fakes.actions(), ["end b", "stop a", "start a", "start b"]);

    fakes.end("a", End::Error).await;
    gave_up(&tree, "app/a").await;
    assert_eq!(fakes.actions(), ["end a", "stop b"]);
}

#[tokio::test(start_paused = true)]
async fn otp_52_a_sibling_that_cannot_restart_with_its_group_ends_the_supervisor() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForAll, 4), &["a", "b"]).await;
    fakes.next_starts("b", [NextStart::Error; 100]);

    fakes.end("a", End::Error).await;

    let reason = gave_up(&tree, "app/b").await;
    assert!(matches!(reason, ExitReason::ActivationFailed(_)));
    let round = ["start a", "try b", "stop a"];
    let mut expected = vec!["end a", "stop b"];
    for _ in 0..4 {
        expected.extend(round);
    }
    assert_eq!(fakes.actions(), expected, "four rounds, one for each unit of the budget");
}

#[tokio::test(start_paused = true)]
async fn otp_53_a_group_whose_second_child_fails_to_restart_starts_over_from_the_first() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForAll, 2), &["a", "b"]).await;
    let mut events = tree.events();
    fakes.next_starts("b", [NextStart::Error]);

    fakes.end("a", End::Error).await;

    assert_eq!(
        fakes.actions(),
        ["end a", "stop b", "start a", "try b", "stop a", "start a", "start b"],
    );
    assert_eq!(ends(&mut events), ["a failed", "b shutdown", "b activation_failed", "a shutdown"],);
    assert_eq!(active(&tree, ["a", "b"]).await, [3, 3]);
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 2, "each round was counted once");
}

#[tokio::test(start_paused = true)]
async fn otp_54_rest_for_one_restarts_the_failed_child_and_all_later_children() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::RestForOne, 2), &["a", "b", "c"]).await;

    fakes.end("b", End::Error).await;

    assert_eq!(active(&tree, ["a", "b", "c"]).await, [1, 2, 2]);
    assert_eq!(fakes.actions(), ["end b", "stop c", "start b", "start c"]);
}

#[tokio::test(start_paused = true)]
async fn otp_55_under_rest_for_one_a_later_child_that_fails_to_restart_is_retried_alone() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::RestForOne, 2), &["a", "b", "c"]).await;
    let mut events = tree.events();
    fakes.next_starts("c", [NextStart::Error]);

    fakes.end("b", End::Error).await;

    assert_eq!(fakes.actions(), ["end b", "stop c", "start b", "try c", "start c"]);
    assert_eq!(ends(&mut events), ["b failed", "c shutdown", "c activation_failed"]);
    assert_eq!(active(&tree, ["a", "b", "c"]).await, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn otp_56_a_dynamic_child_is_replaced_alone_and_beyond_the_limit_all_end_with_shutdown() {
    let fakes = FakeChildren::new();
    let (tree, dynamic, children) = conns(&fakes, 2, &["a", "b", "c"]).await;
    let mut events = tree.events();

    fakes.end("b", End::Error).await;
    fakes.end("b", End::Normal).await;
    let names = [children[0].as_str(), &children[1], &children[2]];
    assert_eq!(active(&dynamic, names).await, [1, 3, 1]);
    assert_eq!(fakes.actions(), ["end b", "start b", "end b", "start b"]);
    assert_eq!(ends(&mut events), ["b#2 failed", "b#2 normal"]);

    fakes.end("b", End::Error).await;
    let mut ended = ends(&mut events);
    ended[1..3].sort();
    assert_eq!(ended, ["b#2 failed", "a#1 shutdown", "c#3 shutdown", "conns shutdown"]);
    assert_eq!(state(&tree, "conns").await, (Lifecycle::Stopped, 1), "a clean end of a transient");
}

/// Without the preset, the same end is `Escalated`, which is a failure, and the supervisor is
/// restarted.
#[tokio::test(start_paused = true)]
async fn otp_56_a_dynamic_supervisor_that_gives_up_fails_unless_set_to_end_cleanly() {
    let fakes = FakeChildren::new();
    let conns = DynamicSupervisor::builder("conns").restarts(0, SECOND).into_child();
    let conns = conns.restart(RestartType::Transient);
    let tree = up(&fakes, Supervisor::builder("app").child(conns), &[]).await;
    let dynamic = tree.supervisor("conns").await.unwrap();
    dynamic.start_child(fakes.child("a")).await.unwrap();
    let mut events = tree.events();

    fakes.end("a", End::Error).await;
    assert_eq!(ends(&mut events), ["a#1 failed", "conns escalated"]);
    assert_eq!(state(&tree, "conns").await, (Lifecycle::Restarting, 1));

    tokio::time::sleep(SECOND).await;
    assert_eq!(state(&tree, "conns").await, (Lifecycle::Active, 2));
    assert_eq!(
        tree.supervisor("conns").await.unwrap().otp().which_children().await.unwrap().len(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn otp_57_a_dynamic_child_that_declines_its_restart_is_removed() {
    let fakes = FakeChildren::new();
    let (tree, dynamic, children) = conns(&fakes, 10, &["a", "b"]).await;
    fakes.end("a", End::Error).await;
    fakes.end("a", End::Error).await;
    assert_eq!(active(&dynamic, [&children[0]]).await, [3]);
    fakes.next_starts("a", [NextStart::Ignore]);

    fakes.end("a", End::Error).await;

    let left = dynamic.otp().which_children().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].path.name(), children[1]);
    assert_eq!(dynamic.otp().count_children().await.unwrap().specs, 1);
    tree.stop("the test is over").await.unwrap();
    assert_eq!(
        fakes.actions(),
        ["end a", "start a", "end a", "start a", "end a", "try a", "stop b"],
    );
}

#[tokio::test(start_paused = true)]
async fn otp_58_restarts_leave_the_window_so_that_a_rare_crash_never_ends_the_supervisor() {
    let fakes = FakeChildren::new();
    let tree = up(&fakes, otp(Strategy::OneForOne, 1), &["a"]).await;

    for incarnation in 2..=20 {
        fakes.end("a", End::Error).await;
        assert_eq!(active(&tree, ["a"]).await, [incarnation]);
        tokio::time::sleep(Duration::from_millis(2100)).await;
    }
}

/// OTP counts in whole seconds, so a restart counts up to a second longer.
#[tokio::test(start_paused = true)]
async fn otp_58_a_restart_counts_for_exactly_its_period() {
    for (pause, survives) in [(SECOND, false), (SECOND + Duration::from_millis(1), true)] {
        let fakes = FakeChildren::new();
        let tree = up(&fakes, otp(Strategy::OneForOne, 1), &["a"]).await;

        fakes.end("a", End::Error).await;
        tokio::time::sleep(pause).await;
        fakes.end("a", End::Error).await;

        if survives {
            assert_eq!(active(&tree, ["a"]).await, [3]);
        } else {
            gave_up(&tree, "app/a").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_59_a_restarted_subtree_has_its_static_children_only() {
    let fakes = FakeChildren::new();
    let inner = Supervisor::builder("inner").child(fakes.child("leaf"));
    let sub = Supervisor::builder("sub")
        .preset(Preset::otp())
        .strategy(Strategy::OneForAll)
        .restarts(1, SECOND)
        .child(fakes.child("a"))
        .child(fakes.child("b"))
        .child(inner.into_child().restart(RestartType::Transient));
    let tree = up(&fakes, otp(Strategy::OneForOne, 2).child(sub), &["other"]).await;

    tree.otp().terminate_child("sub/inner").await.unwrap();
    assert_eq!(state(&tree, "sub/inner").await, (Lifecycle::Stopped, 1));
    let added = tree.supervisor("sub").await.unwrap();
    added.start_child(fakes.child("added")).await.unwrap();
    assert_eq!(fakes.actions(), ["stop leaf", "start added"]);

    fakes.end("a", End::Error).await;
    assert_eq!(active(&tree, ["sub/a", "sub/b", "sub/inner", "sub/added"]).await, [2; 4]);
    assert_eq!(active(&tree, ["sub", "sub/inner/leaf"]).await, [1; 2]);
    assert_eq!(
        fakes.actions(),
        ["end a", "stop added", "stop b", "start a", "start b", "start leaf", "start added"],
        "the stopped subtree came back with its group",
    );

    fakes.end("b", End::Error).await;
    assert_eq!(active(&tree, ["sub", "other"]).await, [2, 1]);
    assert_eq!(active(&tree, ["sub/a", "sub/b", "sub/inner", "sub/inner/leaf"]).await, [1; 4]);
    let lost = tree.which_child("sub/added").await;
    assert!(matches!(
        lost,
        Err(ControlError::NotFound { path, .. }) if path.as_str() == "app/sub/added"
    ));
    assert_eq!(
        fakes.actions(),
        ["end b", "stop added", "stop leaf", "stop a", "start a", "start b", "start leaf"],
    );
}

/// There are no registered names; a path leads to the current incarnation.
#[tokio::test(start_paused = true)]
async fn otp_60_a_killed_supervisor_and_a_killed_worker_return_under_their_paths() {
    let fakes = FakeChildren::new();
    let sub = Supervisor::builder("sub").preset(Preset::otp()).child(fakes.child("a"));
    let tree = up(&fakes, otp(Strategy::OneForOne, 2).child(sub), &[]).await;
    let handle = tree.supervisor("sub").await.unwrap();

    tree.kill("sub/a").await.unwrap();
    settle().await;
    assert_eq!(active(&tree, ["sub", "sub/a"]).await, [1, 2]);
    assert_eq!(fakes.log(), ["dead a", "start a"]);

    tree.kill("sub").await.unwrap();
    settle().await;
    assert_eq!(active(&tree, ["sub", "sub/a"]).await, [2, 1]);
    assert_eq!(fakes.log(), ["dead a", "start a"], "no earlier incarnation is left");
    assert_eq!(active(&handle, ["a"]).await, [1], "an old handle leads there, too");
}
