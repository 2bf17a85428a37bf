//! A panic anywhere in a child is that child's failure only.

use std::fmt;
use std::future::{Future, Ready, poll_fn, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::level_filters::LevelFilter;

use verger::policy::{Jitter, OnExhausted};
use verger::status::EventKind;
use verger::{
    Backoff, Child, ChildSpec, Context, Exit, Lifecycle, RestartType, RunError, Supervisor,
    async_trait, child, worker, worker_with,
};

use crate::common::settle;
use crate::log::Log;

/// The place where a child panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    Activate,
    Run,
    Deactivate,
    Drop,
    RunAndDrop,
    ActivateAndDrop,
    DropAfterError,
    DeactivateError,
}

struct Faulty(In);

#[async_trait]
impl Child for Faulty {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        assert!(!matches!(self.0, In::Activate | In::ActivateAndDrop), "in activate");
        Ok(())
    }

    async fn run(&mut self, _ctx: &Context) -> Exit {
        assert!(!matches!(self.0, In::Run | In::RunAndDrop), "in run");
        if self.0 == In::DropAfterError { Err("no".into()) } else { Ok(()) }
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        assert!(self.0 != In::Deactivate, "in deactivate");
        if self.0 == In::DeactivateError { Err("not tidy".into()) } else { Ok(()) }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        let in_drop = [In::Drop, In::RunAndDrop, In::ActivateAndDrop, In::DropAfterError];
        assert!(!in_drop.contains(&self.0), "in drop");
    }
}

/// A function whose future panics on drop.
async fn drop_panics(_ctx: Context) -> Exit {
    let _value = Faulty(In::Drop);
    Err("no".into())
}

fn value(place: In) -> ChildSpec {
    child("faulty", move || Faulty(place))
}

/// Runs the child beside a sibling, under a supervisor that restarts nothing. Returns the reason,
/// as reported by the event, the status and the error.
async fn end_of(faulty: ChildSpec) -> String {
    let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    let mid = Supervisor::builder("mid")
        .restarts(0, Duration::from_secs(60))
        .on_exhausted(OnExhausted::Park)
        .child(faulty.restart(RestartType::Permanent))
        .child(worker("other", async |ctx: Context| ctx.cancelled().await));
    app.start_child(mid).await.unwrap();
    settle().await;

    let child = app.which_child("mid/faulty").await.unwrap();
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Errored, 1));
    let text = child.last_exit.unwrap().to_string();
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        match event.kind {
            EventKind::Moved { reason: Some(reason), .. } => reasons.push(("ended", reason)),
            EventKind::GaveUp { reason } => reasons.push(("gave up", reason)),
            _ => {}
        }
    }
    let reasons: Vec<_> =
        reasons.iter().map(|(what, reason)| format!("{what}: {reason}")).collect();
    assert_eq!(reasons, [format!("ended: {text}"), format!("gave up: {text}")]);
    let letter = letters.try_next().unwrap();
    assert_eq!((letter.target.as_str(), letter.incarnation), ("app/mid/faulty", 1));
    assert_eq!(letter.reason.to_string(), "gave_up");
    assert_eq!(letter.error.unwrap().to_string(), text);
    assert!(letters.try_next().is_none());

    let other = app.which_child("mid/other").await.unwrap();
    assert_eq!((other.lifecycle, other.incarnation), (Lifecycle::Active, 1));
    app.stop("done").await.unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_a_child_is_its_failure() {
    let cases = [
        (
            worker("faulty", |_ctx| -> Ready<()> { panic!("in the function") }),
            "panicked: in the function",
        ),
        (
            worker("faulty", async |_ctx| -> Exit { panic!("in the {}", "future") }),
            "panicked: in the future",
        ),
        (child("faulty", || -> Faulty { panic!("in the factory") }), "panicked: in the factory"),
        (value(In::Activate), "panicked: in activate"),
        (value(In::Run), "panicked: in run"),
        (value(In::Drop), "panicked: in drop"),
        (
            worker("faulty", |_ctx| -> Ready<()> { std::panic::panic_any(42) }),
            "panicked: a value that is not a string",
        ),
    ];
    for (spec, text) in cases {
        assert_eq!(end_of(spec).await, text);
    }
}

/// In plain Rust, two panics at once end the process.
#[tokio::test(start_paused = true)]
async fn a_value_that_panics_on_drop_after_a_panic_keeps_both_texts() {
    let text = "panicked: in run; then, while dropped: in drop";
    assert_eq!(end_of(value(In::RunAndDrop)).await, text);
    let text = "panicked: in activate; then, while dropped: in drop";
    assert_eq!(end_of(value(In::ActivateAndDrop)).await, text);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_kept_although_a_panic_follows() {
    let text = "panicked: failed: no; then, while dropped: in drop";
    assert_eq!(end_of(value(In::DropAfterError)).await, text);
    // The function owns the value, so its error never left it.
    assert_eq!(end_of(worker("faulty", drop_panics)).await, "panicked: in drop");
}

/// An error whose `Display` panics.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in its text")
    }
}

impl std::error::Error for Unspeakable {}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_in_display_affects_no_sibling() {
    // The supervisor writes the log.
    let log = Log::at(LevelFilter::DEBUG);
    let text = "failed: an error that panics when it is displayed";
    assert_eq!(
        end_of(worker("faulty", async |_ctx| -> Exit { Err(Unspeakable.into()) })).await,
        text
    );
    let written = log.lines();
    assert!(written.iter().any(|line| line.contains(text)), "{written:?}");

    // It is formatted in the child's task, too, if that panics on drop.
    struct Value;
    impl Drop for Value {
        fn drop(&mut self) {
            panic!("in drop")
        }
    }
    let both = |_ctx: Context| {
        let value = Value;
        std::future::poll_fn(move |_| {
            let _value = &value;
            std::task::Poll::Ready(Exit::Err(Unspeakable.into()))
        })
    };
    let text = format!("panicked: {text}; then, while dropped: in drop");
    assert_eq!(end_of(worker("faulty", both)).await, text);
}

/// A value that panics on drop.
#[derive(Debug, thiserror::Error)]
#[error("a bomb")]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_on_drop_affects_no_sibling() {
    let fails = || worker("fails", async |_ctx| -> Exit { Err(Bomb.into()) });
    let waits = fails().backoff(Backoff::constant(Duration::from_secs(100)));
    let app = Supervisor::builder("app").unlimited_restarts().child(waits);
    let app = app.build().unwrap().start().await.unwrap();
    let other = app.start_child(worker("other", async |ctx: Context| ctx.cancelled().await));
    assert_eq!(other.await.unwrap().incarnation(), Some(1));
    settle().await;

    // Dropped by the next iteration.
    for incarnation in 2..5 {
        app.resume("fails").await.unwrap();
        settle().await;
        let child = app.which_child("fails").await.unwrap();
        assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Restarting, incarnation));
    }
    // Dropped with the child.
    app.stop_child("fails").await.unwrap();
    app.otp().delete_child("fails").await.unwrap();
    assert!(app.start_child(fails().restart(RestartType::Temporary)).await.is_ok());
    settle().await;
    assert_eq!(app.which_child("other").await.unwrap().incarnation, 1);

    // Dropped with the supervisor, each of several.
    for name in ["a", "b", "c"] {
        let waits = fails().named(name).backoff(Backoff::constant(Duration::from_secs(100)));
        app.start_child(waits).await.unwrap();
    }
    settle().await;
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_waiting_for_a_supervisor_is_answered_despite_pending_events() {
    type Tree = Option<Pin<Box<dyn Future<Output = Result<(), RunError>> + Send>>>;
    let tree = Arc::<Mutex<Tree>>::default();
    let (tx, rx) = oneshot::channel();
    let own = (Arc::clone(&tree), Arc::new(Mutex::new(Some(tx))));
    // It aborts its whole tree, and ends when no receiver is left.
    let last = worker_with("last", own, async |ctx, (tree, tx)| -> Exit {
        let tx = tx.lock().unwrap().take().expect("it runs once");
        tx.send(ctx.parent()).expect("the test waits for it");
        drop(tree.lock().unwrap().take());
        Err(Bomb.into())
    });
    let app = Supervisor::builder("app").child(last).build().unwrap();
    *tree.lock().unwrap() = Some(Box::pin(app.run()));
    poll_fn(|cx| {
        let mut tree = tree.lock().unwrap();
        assert!(tree.as_mut().unwrap().as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    let app = rx.await.unwrap();
    let end = app.wait().await;
    assert!(matches!(end, Err(RunError::Aborted { .. })), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_source_of_random_numbers_that_panics_counts_as_zero() {
    let wait = Backoff::constant(Duration::from_secs(1)).jitter(Jitter::Additive(0.5));
    let child = worker("child", async |_ctx| -> Exit { Err("no".into()) }).backoff(wait);
    let app = Supervisor::builder("app").random(|| || -> f64 { panic!("no numbers") });
    let app = app.child(child).build().unwrap().start().await.unwrap();
    settle().await;
    let next = app.which_child("child").await.unwrap().next.unwrap();
    assert_eq!(next.delay, Duration::from_secs(1));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failed_deactivate_is_reported_and_changes_nothing() {
    for (place, text) in
        [(In::Deactivate, "panicked: in deactivate"), (In::DeactivateError, "failed: not tidy")]
    {
        let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
        let mut events = app.events();
        app.start_child(value(place).restart(RestartType::Transient)).await.unwrap();
        settle().await;

        let mut failures = Vec::new();
        while let Some(event) = events.try_next() {
            if let EventKind::DeactivateFailed { reason } = event.kind {
                failures.push((event.path.to_string(), event.incarnation, reason.to_string()));
            }
        }
        assert_eq!(failures, [("app/faulty".to_owned(), 1, text.to_owned())]);
        let child = app.which_child("faulty").await.unwrap();
        assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("finished")));
        assert_eq!(child.incarnation, 1, "its run had ended normally");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_panics_while_stopping_is_stopped() {
    let spec = worker("faulty", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        panic!("at the end")
    });
    let killed = worker("killed", async |_ctx: Context| -> Exit {
        let _value = Faulty(In::Drop);
        std::future::pending().await
    });
    let tree = Supervisor::builder("app").child(spec).child(killed);
    let app = tree.build().unwrap().start().await.unwrap();
    settle().await;
    let mut events = app.events();
    app.stop("done").await.unwrap();

    let mut endings = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Moved { reason: Some(reason), to, .. } = event.kind {
            endings.push(format!("{} {to} ({reason})", event.path));
        }
    }
    assert_eq!(
        endings,
        ["app/killed stopped (panicked: in drop)", "app/faulty stopped (panicked: at the end)"],
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_always_panics_is_restarted_until_its_limit() {
    let spec = worker("faulty", |_ctx| if true { panic!("again") } else { ready(()) });
    let tree = Supervisor::builder("app").restarts(3, Duration::from_secs(60));
    let tree = tree.child(spec.backoff(Backoff::none()));
    let error = tree.build().unwrap().run().await.unwrap_err();
    assert_eq!(error.to_string(), "`app` gave up on `app/faulty`: panicked: again");
    assert_eq!(format!("{error:?}"), error.to_string());
}
