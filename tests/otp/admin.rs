//! Calls to a supervisor and their answers: rules 26 to 33, 40 and 123.

use crate::common::{FakeChildren, counts, settle, start};
use verger::{
    BuildError, ControlError, DynamicSupervisor, Lifecycle, Supervisor, SupervisorHandle,
};

/// Returns a child's state and incarnation.
async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

#[tokio::test(start_paused = true)]
async fn otp_26_a_running_child_is_already_started() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    let answer = tree.start_child(fakes.child("a")).await;

    assert!(matches!(
        answer,
        Err(ControlError::NameTaken { path, running: true }) if path.as_str() == "app/a"
    ));
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1));
    assert_eq!(fakes.actions(), ["start a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_27_a_stopped_child_is_already_present() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;
    tree.otp().terminate_child("a").await.unwrap();

    let answer = tree.start_child(fakes.child("a")).await;

    assert!(matches!(
        answer,
        Err(ControlError::NameTaken { path, running: false })
            if path.as_str() == "app/a"
    ));
    assert_eq!(fakes.actions(), ["start a", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_28_terminating_a_stopped_child_succeeds() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    tree.otp().terminate_child("a").await.unwrap();
    tree.otp().terminate_child("a").await.unwrap();

    assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1));
    assert_eq!(fakes.actions(), ["start a", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_29_a_running_child_is_neither_restarted_nor_deleted_and_an_unknown_child_not_found() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    let restarted = tree.otp().restart_child("a").await.unwrap_err();
    let deleted = tree.otp().delete_child("a").await.unwrap_err();
    assert!(matches!(restarted, ControlError::Running { path } if path.as_str() == "app/a"));
    assert!(matches!(deleted, ControlError::Running { path } if path.as_str() == "app/a"));
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1));

    let answers = [
        tree.otp().restart_child("b").await.map(drop),
        tree.otp().delete_child("b").await,
        tree.otp().terminate_child("b").await,
        tree.kill("b").await.map(drop),
        tree.which_child("b").await.map(drop),
        tree.child_spec("b").await.map(drop),
    ];
    for answer in answers {
        assert!(matches!(
            answer,
            Err(ControlError::NotFound { path, .. }) if path.as_str() == "app/b"
        ));
    }
}

/// OTP means a pid; here, it is the name of a dynamic child's incarnation.
#[tokio::test(start_paused = true)]
async fn otp_30_a_dynamic_childs_handle_is_not_found_under_a_static_supervisor() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    let answer = tree.otp().terminate_child("a#1").await;

    assert!(matches!(answer, Err(ControlError::NotFound { .. })));
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1));
    assert_eq!(fakes.log(), ["start a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_31_a_call_to_a_missing_supervisor_is_an_error() {
    let fakes = FakeChildren::new();
    let sub = Supervisor::builder("sub").child(fakes.child("a"));
    let tree = start(Supervisor::builder("app").child(sub)).await;
    let sub = tree.supervisor("sub").await.unwrap();

    tree.otp().terminate_child("sub").await.unwrap();
    let answers = [
        sub.start_child(fakes.child("b")).await.map(drop),
        sub.otp().terminate_child("a").await,
        sub.otp().restart_child("a").await.map(drop),
        sub.otp().delete_child("a").await,
        sub.otp().which_children().await.map(drop),
        sub.which_child("a").await.map(drop),
        sub.otp().count_children().await.map(drop),
        sub.child_spec("a").await.map(drop),
        tree.supervisor("sub").await.map(drop),
    ];
    for answer in answers {
        assert!(matches!(
            answer,
            Err(ControlError::NotRunning { nearest, .. }) if nearest.as_str() == "app"
        ));
    }

    tree.stop("the test is over").await.unwrap();
    let answers = [
        tree.start_child(fakes.child("b")).await.map(drop),
        tree.otp().terminate_child("sub").await,
        tree.otp().count_children().await.map(drop),
        sub.which_child("a").await.map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(ControlError::Ended { .. })));
    }
}

/// For the second call, OTP returns `ok` and Elixir `not_found`; verger returns the latter.
#[tokio::test(start_paused = true)]
async fn otp_32_a_dynamic_child_is_terminated_by_its_handle_only() {
    let fakes = FakeChildren::new();
    let others = DynamicSupervisor::builder("others");
    let conns = DynamicSupervisor::builder("conns");
    let tree = start(Supervisor::builder("app").child(conns).child(others)).await;
    let conns = tree.supervisor("conns").await.unwrap();
    let others = tree.supervisor("others").await.unwrap();
    let a = conns.start_child(fakes.child("a")).await.unwrap();
    let stranger = others.start_child(fakes.child("stranger")).await.unwrap();

    let not_found = |answer| matches!(answer, Err(ControlError::NotFound { .. }));
    assert!(not_found(conns.otp().terminate_child("a").await), "by its id");
    assert_eq!(state(&conns, a.name()).await, (Lifecycle::Active, 1));
    conns.otp().terminate_child(a.name()).await.unwrap();
    assert!(not_found(conns.otp().terminate_child(a.name()).await), "a dead handle");
    assert!(
        not_found(conns.otp().terminate_child(stranger.name()).await),
        "a handle of a different supervisor"
    );
    assert_eq!(state(&others, stranger.name()).await, (Lifecycle::Active, 1));
    assert_eq!(fakes.actions(), ["start a", "start stranger", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_33_a_child_is_terminated_restarted_terminated_and_deleted() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 1));

    tree.otp().terminate_child("a").await.unwrap();
    assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1));
    assert_eq!(tree.otp().restart_child("a").await.unwrap().incarnation(), Some(2));
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
    tree.otp().terminate_child("a").await.unwrap();
    assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 2));
    tree.otp().delete_child("a").await.unwrap();
    assert!(tree.otp().which_children().await.unwrap().is_empty());
    assert!(matches!(tree.which_child("a").await, Err(ControlError::NotFound { .. })));
    assert_eq!(fakes.actions(), ["start a", "stop a", "start a", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_40_an_invalid_spec_is_refused_in_the_caller_even_without_a_supervisor() {
    let fakes = FakeChildren::new();
    let sub = Supervisor::builder("sub").child(fakes.child("a"));
    let tree = start(Supervisor::builder("app").child(sub)).await;
    let sub = tree.supervisor("sub").await.unwrap();
    let refused = |answer| {
        matches!(
            answer,
            Err(ControlError::InvalidSpec(BuildError::BadName { parent, .. }))
                if parent == "app/sub"
        )
    };

    assert!(refused(sub.start_child(fakes.child("a/b")).await), "it runs");
    tree.otp().terminate_child("sub").await.unwrap();
    assert!(refused(sub.start_child(fakes.child("a/b")).await), "it does not");
    tree.stop("the test is over").await.unwrap();
    assert!(refused(sub.start_child(fakes.child("a/b")).await), "nor does the tree");
    let valid = sub.start_child(fakes.child("b")).await;
    assert!(matches!(valid, Err(ControlError::Ended { .. })));
}

#[tokio::test(start_paused = true)]
async fn otp_123_a_supervisor_whose_name_is_taken_is_refused_and_none_of_its_children_ran() {
    let fakes = FakeChildren::new();
    let tree = start(Supervisor::builder("app").child(Supervisor::builder("sub"))).await;

    let second = Supervisor::builder("sub").child(fakes.child("a")).child(fakes.child("b"));
    let answer = tree.start_child(second).await;

    assert!(matches!(
        answer,
        Err(ControlError::NameTaken { path, running: true }) if path.as_str() == "app/sub"
    ));
    settle().await;
    assert_eq!(fakes.log(), [""; 0]);
    assert_eq!(counts(&tree.supervisor("sub").await.unwrap()).await, [0; 4]);
}
