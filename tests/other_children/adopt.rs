//! Children that are tasks which were spawned elsewhere.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use verger::{ChildSpec, DynamicSupervisor, Exit, RunError, Supervisor, SupervisorHandle, adopt};

use crate::{LEAKED, block, next_exit, start, until};

/// A task that runs until it is aborted, and then drops the sender.
fn endless() -> (JoinHandle<()>, oneshot::Receiver<()>) {
    let (held, dropped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let _held = held;
        pending::<()>().await;
    });
    (task, dropped)
}

/// Returns the exit of a child that is this task.
async fn exit_of(task: JoinHandle<Exit>) -> String {
    let mut app = Supervisor::builder("app").child(adopt("task", task)).build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    let exit = next_exit(&mut events).await;
    app.stop("enough").await.unwrap();
    exit
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_adopted_task_is_the_exit_of_the_child() {
    assert_eq!(exit_of(tokio::spawn(async { Ok(()) })).await, "ended normally");
    assert_eq!(exit_of(tokio::spawn(async { Err("refused".into()) })).await, "failed: refused");
    assert_eq!(exit_of(tokio::spawn(async { panic!("overflow") })).await, "panicked: overflow");

    let cancelled = tokio::spawn(pending::<Exit>());
    cancelled.abort();
    assert_eq!(exit_of(cancelled).await, "aborted");
}

#[tokio::test(start_paused = true)]
async fn a_stop_aborts_an_adopted_task_at_once_and_waits_until_it_has_ended() {
    let (task, mut dropped) = endless();
    let began = Instant::now();
    let app = start(adopt("task", task)).await;
    app.stop("enough").await.unwrap();
    assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_task_with_a_grace_can_end_by_itself() {
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let _ = stopped.await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    });
    let app = start(adopt("task", task).shutdown(Duration::from_secs(5))).await;
    let (mut events, began) = (app.events(), Instant::now());
    drop(stop);
    app.stop("enough").await.unwrap();
    assert_eq!(next_exit(&mut events).await, "shut down");
    assert_eq!(began.elapsed(), Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adopted_task_that_blocks_is_a_leak_of_the_child() {
    let (begun, begins) = oneshot::channel();
    let (release, released) = mpsc::channel();
    let task = tokio::spawn(async move {
        begun.send(()).unwrap();
        tokio::task::block_in_place(|| block(&released));
    });
    let app = start(adopt("task", task)).await;
    begins.await.unwrap();
    let mut events = app.events();
    assert!(matches!(app.stop("enough").await, Err(RunError::Forced { .. })));
    assert_eq!(until(&mut events, LEAKED).await, ("app/task".to_owned(), 1));
    drop(release);
}

async fn dynamic() -> SupervisorHandle {
    DynamicSupervisor::builder("tasks").build().unwrap().start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_adopted_task_is_never_started_a_second_time() {
    let tasks = dynamic().await;
    let spec: ChildSpec = adopt("task", tokio::spawn(async {}));
    tasks.start_child(spec.clone()).await.unwrap();
    let mut events = tasks.events();
    let _ = tasks.start_child(spec).await;
    let exit = loop {
        let exit = next_exit(&mut events).await;
        if exit != "ended normally" {
            break exit;
        }
    };
    assert_eq!(exit, "failed: `tasks/task#2` is made by `adopt`, and its task was watched before");
    tasks.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_spec_is_dropped_before_its_start_is_aborted() {
    let (task, dropped) = endless();
    let spec = adopt("task", task);
    drop(spec.clone());
    drop(spec);
    assert!(dropped.await.is_err());
}
