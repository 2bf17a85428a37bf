//! Starts, and children that decline or fail them: rules 1 to 11 and 20.

use std::time::Duration;

use crate::common::{FakeChildren, NextStart, conns, counts, settle, start};
use verger::policy::Preset;
use verger::status::EventKind;
use verger::{
    Child, Context, ControlError, Exit, ExitReason, Lifecycle, RestartType, StartError, Supervisor,
    async_trait, child,
};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn otp_1_a_supervisor_without_children_starts_and_ends_with_shutdown() {
    let tree = start(Supervisor::builder("app").child(Supervisor::builder("empty"))).await;
    let mut events = tree.events();

    assert_eq!(tree.which_child("empty").await.unwrap().lifecycle, Lifecycle::Active);
    tree.stop("the test is over").await.unwrap();

    let mut ended = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            ended.push(format!("{} {}", event.path, reason.kind()));
        }
    }
    assert_eq!(ended, ["app/empty shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn otp_3_a_permanent_child_that_declines_is_kept_without_a_process() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Ignore]);
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    let added = tree.start_child(fakes.child("b")).await.unwrap();

    assert!(added.declined());
    assert_eq!(counts(&tree).await, [2, 1, 0, 2]);
    let b = tree.which_child("b").await.unwrap();
    assert_eq!((b.lifecycle, b.why), (Lifecycle::Stopped, Some("declined to start")));
}

#[tokio::test(start_paused = true)]
async fn otp_4_a_temporary_child_that_declines_at_first_is_removed_and_the_next_child_starts() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Ignore]);

    let tree = start(
        Supervisor::builder("app")
            .preset(Preset::otp())
            .child(fakes.child("a").restart(RestartType::Temporary))
            .child(fakes.child("b")),
    )
    .await;

    assert_eq!(fakes.actions(), ["try a", "start b"]);
    assert_eq!(counts(&tree).await, [1, 1, 0, 1]);
    assert!(matches!(tree.which_child("a").await, Err(ControlError::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn otp_5_a_temporary_child_that_declines_when_added_is_not_listed() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Ignore]);
    let tree = start(Supervisor::builder("app")).await;

    let added = tree.start_child(fakes.child("a").restart(RestartType::Temporary)).await.unwrap();

    assert!(added.declined());
    assert_eq!(added.incarnation(), None);
    assert!(tree.otp().which_children().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn otp_6_a_dynamic_child_that_declines_leaves_nothing_behind() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Ignore]);
    let (tree, conns) = conns().await;

    assert!(conns.start_child(fakes.child("a")).await.unwrap().declined());

    assert_eq!(counts(&conns).await, [0; 4]);
    assert!(conns.otp().which_children().await.unwrap().is_empty());
    tree.stop("the test is over").await.unwrap();
    assert_eq!(fakes.actions(), ["try a"]);
}

/// OTP's `init` may return what verger's types exclude; only invalid values remain.
#[tokio::test(start_paused = true)]
async fn otp_7_an_invalid_tree_is_one_error_value_and_nothing_starts() {
    let fakes = FakeChildren::new();
    let nonsense = || {
        let inner = Supervisor::builder("inner").child(fakes.child("b")).child(fakes.child("b"));
        Supervisor::builder("outer").child(fakes.child("a")).child(inner)
    };

    let error = nonsense().build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`outer/inner` has two children named `b`; give one of them another name",
    );

    let tree = start(Supervisor::builder("app")).await;
    let error = tree.start_child(nonsense()).await.unwrap_err();
    assert!(matches!(&error, ControlError::InvalidSpec(_)));
    assert_eq!(
        error.to_string(),
        "`app/outer/inner` has two children named `b`; give one of them another name",
    );
    settle().await;
    assert_eq!(fakes.log(), [""; 0]);
    assert_eq!(counts(&tree).await, [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn otp_8_a_panic_in_the_first_start_is_an_error_value_for_the_caller() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Panic]);
    let tree = Supervisor::builder("app").preset(Preset::otp());
    let tree = tree.child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c"));

    let error = tree.build().unwrap().start().await.unwrap_err();

    let StartError::ChildFailed { path, reason, .. } = error else { panic!("{error}") };
    assert_eq!(path.as_str(), "app/b");
    assert!(matches!(reason, ExitReason::Panicked(text) if text == "panic at start"));
    assert_eq!(fakes.actions(), ["start a", "try b", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_8_a_panic_in_a_factory_is_an_error_value_for_the_caller() {
    struct Never;

    #[async_trait]
    impl Child for Never {
        async fn run(&mut self, _ctx: &Context) -> Exit {
            Ok(())
        }
    }

    fn make() -> Never {
        panic!("no child today")
    }

    let tree = Supervisor::builder("app").preset(Preset::otp()).child(child("a", make));
    let error = tree.build().unwrap().start().await.unwrap_err();

    assert_eq!(error.to_string(), "`app/a` could not be started: panicked: no child today");
}

#[tokio::test(start_paused = true)]
async fn otp_9_a_child_that_fails_when_added_is_an_error_and_leaves_no_spec() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Error, NextStart::Panic]);
    let tree = start(Supervisor::builder("app").child(fakes.child("a"))).await;

    let error = tree.start_child(fakes.child("b")).await.unwrap_err();
    let odd = tree.start_child(fakes.child("b")).await.unwrap_err();

    let removed = "it was removed, and can be added again";
    assert_eq!(
        [error, odd].map(|error| error.to_string()),
        [
            format!("`app/b` failed to start: activation failed: no start; {removed}"),
            format!("`app/b` failed to start: panicked: panic at start; {removed}"),
        ]
    );
    assert_eq!(counts(&tree).await, [1, 1, 0, 1]);
    tokio::time::sleep(HOUR).await;
    assert_eq!(fakes.actions(), ["start a", "try b", "try b"], "nothing is retried");
}

#[tokio::test(start_paused = true)]
async fn otp_10_a_failed_manual_restart_is_returned_to_the_caller_and_not_retried() {
    for preset in [None, Some(Preset::otp())] {
        let fakes = FakeChildren::new();
        let mut builder = Supervisor::builder("app").child(fakes.child("a"));
        if let Some(preset) = preset {
            builder = builder.preset(preset);
        }
        let tree = start(builder.child(fakes.child("b"))).await;
        tree.otp().terminate_child("a").await.unwrap();
        fakes.next_starts("a", [NextStart::Error]);

        let error = tree.otp().restart_child("a").await.unwrap_err();

        assert!(matches!(
            error,
            ControlError::ActivationFailed { path, reason: ExitReason::ActivationFailed(error), .. }
                if path.as_str() == "app/a" && error.to_string() == "no start"
        ));
        tokio::time::sleep(HOUR).await;
        let a = tree.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.next), (Lifecycle::Stopped, None));
        assert_eq!(counts(&tree).await, [2, 1, 0, 2]);
        assert_eq!(fakes.actions(), ["start a", "start b", "stop a", "try a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn otp_11_a_dynamic_child_that_fails_when_added_leaves_the_supervisor_empty() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error]);
    let (tree, conns) = conns().await;

    let error = conns.start_child(fakes.child("a")).await.unwrap_err();

    assert!(matches!(
        error,
        ControlError::ActivationFailed { reason: ExitReason::ActivationFailed(error), .. }
            if error.to_string() == "no start"
    ));
    assert_eq!(counts(&conns).await, [0; 4]);
    tokio::time::sleep(HOUR).await;
    assert_eq!(fakes.actions(), ["try a"], "nothing is retried");
    tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_20_a_nested_child_that_cannot_start_is_named_with_its_cause_through_the_layers() {
    let fakes = FakeChildren::new();
    fakes.next_starts("bad", [NextStart::Error]);
    let preset = Preset::otp;
    let inner = Supervisor::builder("inner").preset(preset()).child(fakes.child("bad"));
    let outer = Supervisor::builder("outer").preset(preset()).child(fakes.child("a")).child(inner);
    let tree = Supervisor::builder("app").preset(preset()).child(fakes.child("first")).child(outer);

    let error = tree.build().unwrap().start().await.unwrap_err();

    assert!(matches!(
        &error,
        StartError::ChildFailed { path, reason: ExitReason::ActivationFailed(_), .. }
            if path.as_str() == "app/outer"
    ));
    assert_eq!(
        error.to_string(),
        "`app/outer` could not be started: activation failed: \
         `app/outer/inner` could not be started: activation failed: \
         `app/outer/inner/bad` could not be started: activation failed: no start",
    );
    assert_eq!(fakes.actions(), ["start first", "start a", "try bad", "stop a", "stop first"]);
}
