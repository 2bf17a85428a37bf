//! Closures of `Context::spawn_blocking`: they belong to the incarnation that has spawned them.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::mpsc as channel;
use verger::{Backoff, Context, Exit, Lifecycle, RestartType, RunError, Supervisor, worker};

use crate::{LEAKED, block, next_exit, start, until};

#[tokio::test(start_paused = true)]
async fn a_closure_returns_its_value() {
    let (sent, mut values) = channel::unbounded_channel();
    let child = worker("sum", move |ctx: Context| {
        let sent = sent.clone();
        async move {
            let sum = ctx.spawn_blocking(|| (1..=100).sum::<u32>()).await?;
            sent.send(sum).unwrap();
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let app = start(child).await;
    assert_eq!(values.recv().await, Some(5_050));
    app.stop("enough").await.unwrap();
}

#[tokio::test]
async fn a_child_has_not_ended_before_its_closure_has() {
    let (begun, begins) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let state = Arc::new(Mutex::new(Some(released)));
    let child = worker("sum", move |ctx: Context| {
        let (begun, released) = (begun.clone(), state.lock().unwrap().take());
        async move {
            let Some(released) = released else { return ctx.cancelled().await };
            let closure = move || {
                begun.send(()).unwrap();
                block(&released);
            };
            drop(ctx.spawn_blocking(closure));
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").leak_timeout(Duration::from_secs(3_600)).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
    let mut events = app.events();

    let restarting = app.clone();
    let restarting = tokio::spawn(async move {
        restarting.stop_child("sum").await.unwrap();
        restarting.otp().restart_child("sum").await
    });
    until(&mut events, |kind| kind.to_string().contains("deactivating")).await;
    // The function returns then, and its closure runs on.
    crate::common::settle().await;
    let sum = app.which_child("sum").await.unwrap();
    assert_eq!((sum.incarnation, sum.lifecycle), (1, Lifecycle::Deactivating));
    assert!(!restarting.is_finished());

    drop(release);
    restarting.await.unwrap().unwrap();
    assert_eq!(app.which_child("sum").await.unwrap().incarnation, 2);
    app.stop("enough").await.unwrap();
}

#[tokio::test]
async fn a_closure_that_outlives_an_abort_is_a_leak_of_its_child() {
    let (begun, begins) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let state = Arc::new(Mutex::new(Some((begun, released))));
    let child = worker("sum", move |ctx: Context| {
        let state = state.lock().unwrap().take();
        async move {
            let (begun, released) = state.unwrap();
            let closure = move || {
                begun.send(()).unwrap();
                block(&released);
            };
            ctx.spawn_blocking(closure).await
        }
    });
    let app = start(child.shutdown(Duration::ZERO)).await;
    tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
    let mut events = app.events();
    let Err(RunError::Forced { leaked: children, .. }) = app.stop("enough").await else {
        panic!("the child has leaked")
    };
    assert_eq!(children[0].as_str(), "app/sum");
    assert_eq!(until(&mut events, LEAKED).await, ("app/sum".to_owned(), 1));
    drop(release);
}

#[test]
fn a_closure_that_has_not_begun_when_its_child_is_cancelled_is_dropped() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
    let (release, released) = mpsc::channel();
    runtime.unwrap().block_on(async {
        let occupied = tokio::task::spawn_blocking(move || block(&released));
        let child = worker("sum", async |ctx: Context| -> Exit {
            ctx.spawn_blocking(|| unreachable!("the pool has one thread")).await
        });
        let app = start(child).await;
        let mut events = app.events();
        app.stop("enough").await.unwrap();
        assert_eq!(next_exit(&mut events).await, "shut down", "`?` is a clean end then");
        drop(release);
        occupied.await.unwrap();
    });
}

/// Without the type `!`, which a closure can't return.
fn panics(text: &str) {
    assert!(text.is_empty(), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_closure_that_is_awaited_is_returned() {
    let child = worker("sum", async |ctx: Context| -> Exit {
        let error = ctx.spawn_blocking(|| panics("overflow")).await.unwrap_err();
        assert_eq!(error.to_string(), "panicked: overflow");
        ctx.spawn_blocking(|| panics("again")).await
    });
    let app = Supervisor::builder("app").child(child.restart(RestartType::Temporary));
    let mut app = app.build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    assert_eq!(next_exit(&mut events).await, "panicked: again");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_closure_that_no_code_awaits_fails_the_child() {
    let child = worker("sum", async |ctx: Context| {
        if ctx.incarnation() == 1 {
            drop(ctx.spawn_blocking(|| panics("overflow")));
        }
        ctx.cancelled().await;
    });
    let mut app = Supervisor::builder("app").child(child.backoff(Backoff::none())).build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    assert_eq!(next_exit(&mut events).await, "panicked: overflow");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn on_a_context_whose_child_has_ended_a_closure_never_begins() {
    let (sent, mut contexts) = channel::unbounded_channel();
    let child = worker("sum", move |ctx: Context| {
        sent.send(ctx).unwrap();
        async {}
    });
    let app = start(child.restart(RestartType::Transient)).await;
    let ctx = contexts.recv().await.unwrap();
    ctx.cancelled().await;
    let outcome = ctx.spawn_blocking(|| unreachable!("the child has ended")).await;
    let outcome: Result<(), _> = outcome;
    assert_eq!(outcome.unwrap_err().to_string(), "shut down");
    app.stop("enough").await.unwrap();
}
