//! The test kit with a paused clock, and code that blocks a thread: the test fails, and doesn't hang.
//!
//! Each test lets the clock stand still for a millisecond of real time.

#![cfg(all(feature = "task", feature = "testing"))]

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use verger::task::TaskSupervisor;
use verger::testing::TestTree;
use verger::{
    Backoff, BlockingContext, Context, Exit, Lifecycle, RestartType, Supervisor, blocking, worker,
};

use crate::block;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

/// Returns the text that the future panics with.
async fn failure<T>(future: impl Future<Output = T>) -> String {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(_)) => panic!("it was to fail"),
        Err(panic) => Poll::Ready(*panic.downcast::<String>().expect("a text")),
    })
    .await
}

/// Waits for the clock on a thread of tokio's pool, and so keeps the clock for ever.
fn sleep_on_the_pool(begun: &UnboundedSender<()>) {
    begun.send(()).unwrap();
    Handle::current().block_on(tokio::time::sleep(SECOND));
}

fn named(child: &str) -> String {
    format!(
        "the paused clock stands still while code of these children blocks a thread:\n  {child}\nif it waits for \
         the clock, let it wait with `BlockingContext::sleep` or `block_on`; otherwise release what it waits for \
         before the test waits, or run the test without `start_paused`"
    )
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_waits_for_a_blocked_thread_fails_and_names_the_child() {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let (begun, mut begins) = unbounded_channel();
    let child = blocking("hash", move |_ctx: BlockingContext| {
        begun.send(()).unwrap();
        block(&released.lock().unwrap());
    });
    let tree = TestTree::start(Supervisor::builder("app").child(child)).await;
    begins.recv().await.unwrap();
    let tree = tree.real_patience(MOMENT);
    let text = failure(tree.stop()).await;
    assert_eq!(text, format!("`app` did not stop: {}", named("hash (incarnation 1)")));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn an_expectation_that_waits_for_a_closure_which_waits_for_the_clock_names_its_child() {
    let (begun, mut begins) = unbounded_channel();
    let child = worker("sum", move |ctx: Context| {
        let begun = begun.clone();
        ctx.spawn_blocking(move || sleep_on_the_pool(&begun))
    });
    let child = child.restart(RestartType::Temporary);
    let ingest = Supervisor::builder("ingest").child(child);
    let tree = TestTree::start(Supervisor::builder("app").child(ingest)).await;
    begins.recv().await.unwrap();
    let tree = tree.real_patience(MOMENT);
    let text = failure(tree.expect(["ingest/sum: -> stopped"])).await;
    let expected = format!("but {}\n", named("ingest/sum (incarnation 1)"));
    assert!(text.contains(&expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_task_with_a_closure_that_waits_for_the_clock_is_named() {
    let tasks = TaskSupervisor::new("tasks");
    let tree = TestTree::start(Supervisor::builder("app").child(tasks.spec())).await;
    let (begun, mut begins) = unbounded_channel();
    let task = tasks.spawn_blocking("sum", move || sleep_on_the_pool(&begun));
    begins.recv().await.unwrap();
    let tree = tree.real_patience(MOMENT);
    let text = failure(tree.wait_for("tasks", Lifecycle::Stopped)).await;
    assert!(text.contains(&named("tasks/sum#1 (incarnation 1)")), "{text}");
    drop(task);
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_belongs_to_no_child_is_described() {
    let child = worker("sum", async |_ctx: Context| {
        tokio::task::spawn_blocking(|| Handle::current().block_on(tokio::time::sleep(SECOND)))
            .await
            .unwrap();
    });
    let tree = TestTree::start(Supervisor::builder("app").child(child)).await;
    let tree = tree.real_patience(MOMENT);
    let text = failure(tree.wait_for("sum", Lifecycle::Stopped)).await;
    let expected = "the paused clock stands still: a task is never idle, or a closure of \
                    `tokio::task::spawn_blocking` runs, which belongs to no child; call \
                    `Context::spawn_blocking` instead, which names its child here, or run the test without \
                    `start_paused`";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_blocking_child_that_sleeps_with_its_context_works_with_the_paused_clock() {
    let child = blocking("poll", |ctx: BlockingContext| -> Exit {
        ctx.sleep(600 * SECOND);
        Err("no answer".into())
    });
    let child = child.backoff(Backoff::constant(SECOND)).restart(RestartType::Transient);
    let tree = TestTree::start(Supervisor::builder("app").child(child)).await;
    let began = Instant::now();
    tree.expect(["poll: active -> errored (failed)", "poll: -> active"]).await;
    assert_eq!(began.elapsed(), 601 * SECOND);
    tree.kill("poll").await;
    tree.expect(["poll: active -> errored (aborted)", "poll: -> active"]).await;
    tree.stop().await;
    assert_eq!(began.elapsed(), 602 * SECOND);
}
