//! Which exits restart a child, and which are logged: rules 41 to 48.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use verger::policy::Preset;
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, ChildSpec, ControlError, Lifecycle, RestartType, Strategy, Supervisor,
    SupervisorBuilder, SupervisorHandle,
};

const SECOND: Duration = Duration::from_secs(1);

/// A root with OTP's settings and enough restarts for the test.
fn otp() -> SupervisorBuilder {
    Supervisor::builder("app").preset(Preset::otp()).restarts(10, SECOND)
}

/// A child that ends with `Shutdown` as soon as `fuse` fails: a supervisor with OTP's settings that
/// gives up. There is no tagged shutdown.
fn ends_with_shutdown(fakes: &FakeChildren) -> ChildSpec {
    let sub = Supervisor::builder("sub").preset(Preset::otp()).restarts(0, SECOND);
    sub.child(fakes.child("fuse")).into_child()
}

/// Returns a child's state and incarnation.
async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

async fn is_unknown(tree: &SupervisorHandle, path: &str) -> bool {
    matches!(tree.which_child(path).await, Err(ControlError::NotFound { .. }))
}

/// Returns how the incarnations of a child ended since the last call.
fn ends_of(path: &str, events: &mut Subscription<Event>) -> Vec<&'static str> {
    let mut ends = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind
            && event.path.as_str() == path
        {
            ends.push(reason.kind());
        }
    }
    ends
}

#[tokio::test(start_paused = true)]
async fn otp_41_a_permanent_child_that_ends_normally_is_restarted() {
    let fakes = FakeChildren::new();
    let tree = start(otp().child(fakes.child("a"))).await;
    let mut events = tree.events();

    fakes.end("a", End::Normal).await;

    assert_eq!(ends_of("app/a", &mut events), ["normal"]);
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
    assert_eq!(fakes.actions(), ["start a", "end a", "start a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_41_without_the_preset_a_normal_end_waits_like_a_failure() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").backoff(Backoff::constant(SECOND));
    let tree = start(Supervisor::builder("app").child(child)).await;

    fakes.end("a", End::Normal).await;
    let waiting = tree.which_child("a").await.unwrap();
    assert_eq!((waiting.lifecycle, waiting.incarnation), (Lifecycle::Restarting, 1));
    assert_eq!(waiting.next.unwrap().remaining, SECOND);

    tokio::time::sleep(SECOND).await;
    settle().await;
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
    let limit = tree.which_child("a").await.unwrap().limit.unwrap();
    assert_eq!(limit.restarts, 1, "it was charged");
}

#[tokio::test(start_paused = true)]
async fn otp_42_a_permanent_child_that_ends_with_shutdown_is_restarted() {
    let fakes = FakeChildren::new();
    let tree = start(otp().child(ends_with_shutdown(&fakes))).await;
    let mut events = tree.events();

    fakes.end("fuse", End::Error).await;

    assert_eq!(ends_of("app/sub", &mut events), ["shutdown"]);
    assert_eq!(state(&tree, "sub").await, (Lifecycle::Active, 2));
    assert_eq!(state(&tree, "sub/fuse").await, (Lifecycle::Active, 1));
    assert_eq!(fakes.actions(), ["start fuse", "end fuse", "start fuse"]);
}

#[tokio::test(start_paused = true)]
async fn otp_43_a_transient_child_that_ends_normally_is_kept_as_stopped() {
    for builder in [otp(), Supervisor::builder("app")] {
        let fakes = FakeChildren::new();
        let tree = start(builder.child(fakes.child("a").restart(RestartType::Transient))).await;

        fakes.end("a", End::Normal).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(state(&tree, "a").await, (Lifecycle::Stopped, 1));
        assert_eq!(tree.which_child("a").await.unwrap().why, Some("finished"));
        let counts = tree.otp().count_children().await.unwrap();
        assert_eq!((counts.specs, counts.active), (1, 0));
        assert_eq!(fakes.actions(), ["start a", "end a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn otp_44_a_transient_child_that_ends_with_shutdown_is_kept_and_can_be_restarted_manually() {
    let fakes = FakeChildren::new();
    let tree = start(otp().child(ends_with_shutdown(&fakes).restart(RestartType::Transient))).await;
    let mut events = tree.events();

    fakes.end("fuse", End::Error).await;
    assert_eq!(ends_of("app/sub", &mut events), ["shutdown"]);
    assert_eq!(state(&tree, "sub").await, (Lifecycle::Stopped, 1));
    assert_eq!(fakes.actions(), ["start fuse", "end fuse"]);

    assert_eq!(tree.otp().restart_child("sub").await.unwrap().incarnation(), Some(2));
    assert_eq!(state(&tree, "sub/fuse").await, (Lifecycle::Active, 1));
    assert_eq!(fakes.actions(), ["start fuse"]);
}

#[tokio::test(start_paused = true)]
async fn otp_45_a_transient_child_that_ends_abnormally_is_restarted() {
    let fakes = FakeChildren::new();
    let tree = start(otp().child(fakes.child("a").restart(RestartType::Transient))).await;
    let mut events = tree.events();

    fakes.end("a", End::Error).await;
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
    fakes.end("a", End::Panic).await;
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 3));
    tree.kill("a").await.unwrap();
    settle().await;
    assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 4));

    assert_eq!(ends_of("app/a", &mut events), ["failed", "panicked", "aborted"]);
}

#[tokio::test(start_paused = true)]
async fn otp_46_a_temporary_child_is_gone_however_it_ended() {
    for builder in [otp(), Supervisor::builder("app")] {
        let fakes = FakeChildren::new();
        let temporary = |spec: ChildSpec| spec.restart(RestartType::Temporary);
        let names = ["normal", "failed", "panicked", "killed"];
        let builder =
            names.into_iter().fold(builder, |it, name| it.child(temporary(fakes.child(name))));
        let tree = start(builder.child(temporary(ends_with_shutdown(&fakes)))).await;
        assert_eq!(tree.otp().count_children().await.unwrap().specs, 5);

        fakes.end("normal", End::Normal).await;
        fakes.end("failed", End::Error).await;
        fakes.end("panicked", End::Panic).await;
        tree.kill("killed").await.unwrap();
        fakes.end("fuse", End::Error).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;

        for name in names.into_iter().chain(["sub"]) {
            assert!(is_unknown(&tree, name).await, "{name}");
        }
        assert!(tree.otp().which_children().await.unwrap().is_empty());
        let counts = tree.otp().count_children().await.unwrap();
        assert_eq!((counts.specs, counts.active, counts.workers, counts.supervisors), (0, 0, 0, 0));
        let starts = fakes.actions().iter().filter(|act| act.starts_with("start")).count();
        assert_eq!(starts, 5, "no child was restarted");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_47_a_temporary_sibling_in_a_group_restart_is_stopped_and_removed() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        for end in [End::Normal, End::Error] {
            let fakes = FakeChildren::new();
            let temporary = fakes.child("bystander").restart(RestartType::Temporary);
            let tree = otp().strategy(strategy).child(fakes.child("a")).child(temporary);
            let tree = start(tree).await;
            fakes.log();
            let mut events = tree.events();

            fakes.end("a", end).await;

            assert_eq!(ends_of("app/bystander", &mut events), ["shutdown"]);
            assert_eq!(fakes.actions(), ["end a", "stop bystander", "start a"]);
            assert!(is_unknown(&tree, "bystander").await);
            assert_eq!(tree.otp().count_children().await.unwrap().specs, 1);
            assert_eq!(state(&tree, "a").await, (Lifecycle::Active, 2));
        }
    }
}

/// The log lines about active children.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _ctx: LayerContext<'_, S>) {
        #[derive(Default)]
        struct Fields {
            message: String,
            child: String,
        }

        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                match field.name() {
                    "message" => self.message = format!("{value:?}"),
                    "child" => self.child = format!("{value:?}"),
                    _ => {}
                }
            }
        }

        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.message == "active" {
            let line = format!("{} {} {}", event.metadata().level(), fields.child, fields.message);
            self.0.lock().unwrap().push(line);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_48_a_child_that_a_caller_starts_makes_no_progress_record_at_info() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    crate::log::register_second_subscriber();
    let logged = || std::mem::take(&mut *lines.0.lock().unwrap());
    let fakes = FakeChildren::new();

    let tree = start(otp().child(fakes.child("a"))).await;
    assert_eq!(logged(), ["INFO app/a active", "INFO app active"], "by its supervisor");
    fakes.end("a", End::Error).await;
    assert_eq!(logged(), ["INFO app/a active"], "by its supervisor, again");

    tree.start_child(fakes.child("b")).await.unwrap();
    assert_eq!(logged(), ["DEBUG app/b active"], "by start_child");
    tree.otp().terminate_child("b").await.unwrap();
    tree.otp().restart_child("b").await.unwrap();
    assert_eq!(logged(), ["DEBUG app/b active"], "by restart_child");
    fakes.end("b", End::Error).await;
    assert_eq!(logged(), ["INFO app/b active"], "by its supervisor, although a caller added it");
}
