//! Children with one incarnation, which own what they are given.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use verger::{
    Backoff, BuildError, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitKind,
    Lifecycle, RestartType, Strategy, Supervisor, once, worker,
};

use crate::common::{End, FakeChildren, settle};

/// A value that can't be cloned.
struct Socket(u32);

fn conn(socket: Socket, served: mpsc::UnboundedSender<u32>) -> ChildSpec {
    once("conn", async move |ctx: Context| {
        served.send(socket.0).unwrap();
        ctx.cancelled().await;
    })
}

#[tokio::test(start_paused = true)]
async fn a_one_shot_child_owns_what_it_captured_and_is_gone_when_it_ends() {
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").child(conns).build().unwrap().start().await.unwrap();
    let conns = app.supervisor("conns").await.unwrap();
    let (answer, answered) = oneshot::channel();
    let (close, closed) = oneshot::channel::<()>();

    let child = conns
        .start_once("conn", async move |_| -> Exit {
            answer.send(7).unwrap();
            closed.await?;
            Ok(())
        })
        .await
        .unwrap();

    assert_eq!(child.name(), "conn#1");
    assert_eq!(answered.await.unwrap(), 7);
    assert_eq!(conns.which_child("conn#1").await.unwrap().restart, RestartType::Temporary);
    close.send(()).unwrap();
    settle().await;
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 0);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_one_shot_child_that_fails_is_not_restarted() {
    let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
    app.start_once("a", async |_| -> Exit { Err("no".into()) }).await.unwrap();
    settle().await;
    let gone = app.which_child("a").await.unwrap_err();
    assert!(matches!(gone, ControlError::NotFound { .. }), "{gone}");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_second_start_is_an_error_that_says_so() {
    let (served, mut serving) = mpsc::unbounded_channel();
    let spec = conn(Socket(1), served);
    let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
    let mut events = app.events();
    app.start_child(spec.clone().named("first")).await.unwrap();
    app.start_child(spec.named("second")).await.unwrap();
    settle().await;
    assert_eq!(serving.recv().await, Some(1));
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        if let verger::status::EventKind::Moved { reason: Some(reason), .. } = event.kind {
            reasons.push(format!("{}: {reason}", event.path));
        }
    }
    let text =
        "app/second: failed: `app/second` is made by `once`, and its function was called before";
    assert_eq!(reasons, [text]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_group_restart_forgets_a_child_that_has_begun_and_starts_one_that_waits() {
    let (served, mut serving) = mpsc::unbounded_channel();
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app")
        .strategy(Strategy::OneForAll)
        .child(fakes.child("db").restart(RestartType::Transient))
        .child(fakes.child("cache"))
        .child(conn(Socket(1), served.clone()))
        .child(conn(Socket(2), served).named("waiting").requires("db"));
    let app = app.build().unwrap().start().await.unwrap();
    assert_eq!((serving.recv().await, serving.recv().await), (Some(1), Some(2)));
    app.stop_child("db").await.unwrap();
    let (served, mut later) = mpsc::unbounded_channel();
    let gated =
        app.start_child(conn(Socket(3), served).named("gated").requires("db")).await.unwrap();
    assert!(gated.is_gated());
    assert_eq!(app.which_child("gated").await.unwrap().lifecycle, Lifecycle::Discovered);

    fakes.end("cache", End::Error).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let children = app.children().await.unwrap();
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(names, ["db", "cache", "gated"]);
    assert_eq!(later.recv().await, Some(3));
    assert!(serving.recv().await.is_none(), "the others were dropped");
    app.stop("enough").await.unwrap();
}

#[test]
fn a_one_shot_child_can_not_be_started_again_by_any_option() {
    let once = || once("a", async |_| {});
    let build = |child: ChildSpec| Supervisor::builder("app").child(child).build();
    let text = "`app/a` is made by `once`, so it can't be started again; remove its restart type, its exceptions and \
                `start_on_message()`, or use `worker`, whose function is called for each incarnation";
    for wrong in [
        once().restart(RestartType::Permanent),
        once().restart(RestartType::Transient),
        once().on_exit(ExitKind::Panicked, verger::policy::OnExit::Restart),
    ] {
        let error = build(wrong.backoff(Backoff::none())).unwrap_err();
        assert!(matches!(error, BuildError::RestartedOnce { .. }));
        assert_eq!(error.to_string(), text);
    }
    assert!(build(once()).unwrap().warnings().is_empty());
}

#[test]
fn a_one_shot_child_below_a_supervisor_that_can_be_restarted_is_warned_of_once() {
    let below = |restart| {
        let inner = Supervisor::builder("inner").child(once("a", async |_| {}));
        Supervisor::builder("outer").child(inner.into_child().restart(restart))
    };
    let warnings = |restart| {
        let app = Supervisor::builder("app").child(below(restart)).build().unwrap();
        app.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let text = |path: &str| {
        format!(
            "`{path}` has a child made by `once`, which fails if `{path}` is restarted; use `worker` for \
             it, or make `{path}` temporary"
        )
    };
    assert_eq!(warnings(RestartType::Permanent), [text("app/outer/inner")]);
    assert_eq!(warnings(RestartType::Temporary), [text("app/outer")]);
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_the_version_of_a_child() {
    let child = worker("a", async |ctx: Context| ctx.cancelled().await).version("1.0");
    let app = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
    assert_eq!(app.which_child("a").await.unwrap().version.as_deref(), Some("1.0"));
    let status = app.status().await.unwrap().to_string();
    let line = "└─ a                   permanent    active       up 0s  version=1.0";
    assert_eq!(status.lines().nth(1), Some(line));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_one_shot_child_is_not_restarted_by_a_policy_or_a_callback() {
    let app = Supervisor::builder("app").on_child_failure(|_| true);
    let app = app.build().unwrap().start().await.unwrap();
    let mut events = app.events();
    app.start_once("a", async |ctx: Context| -> Exit {
        let permanent = verger::policy::RestartPolicy::new().restart(RestartType::Permanent);
        ctx.set_restart_policy(Some(permanent))?;
        Err("first".into())
    })
    .await
    .unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        if let verger::status::EventKind::Moved { reason: Some(reason), .. } = event.kind {
            reasons.push(reason.to_string());
        }
    }
    assert_eq!(reasons, ["failed: first"]);
    app.stop("enough").await.unwrap();
}
