//! Values of the user's whose `Drop` leads to the next one, and what is dropped on threads and runtimes that end.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;
use verger::bus::Publisher;
use verger::dead_letter::DeadLetter;
use verger::policy::OnExhausted;
use verger::status::Subscription;
use verger::{Context, Exit, Lifecycle, Supervisor, SupervisorHandle, worker};

use crate::common::settle;
use crate::log::Log;

/// More than the stack of a thread has room for.
const LINKS: u32 = 100_000;

/// Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn start(child: impl Into<verger::ChildSpec>) -> SupervisorHandle {
    Supervisor::builder("app").child(child.into()).build().unwrap().start().await.unwrap()
}

/// A child that hands out its context, and runs until it is cancelled.
async fn with_context() -> (SupervisorHandle, Context) {
    let (sender, mut contexts) = mpsc::unbounded_channel();
    let app = start(worker("child", move |ctx: Context| {
        sender.send(ctx.clone()).unwrap();
        async move { ctx.cancelled().await }
    }));
    (app.await, contexts.recv().await.unwrap())
}

#[test]
fn a_subscription_in_a_thread_local_is_dropped_with_its_thread() {
    thread_local! {
        static KEPT: RefCell<Option<Subscription<DeadLetter>>> = const { RefCell::new(None) };
    }
    let exiting = thread::spawn(|| {
        runtime().block_on(async {
            let (app, _ctx) = with_context().await;
            for _ in 0..2 {
                // The drop of the first one registers what is destroyed before the second one.
                KEPT.set(Some(app.dead_letters()));
            }
        });
    });
    exiting.join().unwrap();
}

/// An event that emits the next one when it is dropped.
struct Echo(u32, Publisher, Arc<AtomicU32>);

impl Drop for Echo {
    fn drop(&mut self) {
        self.2.fetch_add(1, Ordering::Relaxed);
        if let Some(left) = self.0.checked_sub(1) {
            self.1.emit(Self(left, self.1.clone(), Arc::clone(&self.2)));
        }
    }
}

#[test]
fn a_chain_of_events_that_are_emitted_on_drop_needs_no_stack() {
    let emitting = thread::spawn(|| {
        runtime().block_on(async {
            let (app, _ctx) = with_context().await;
            let dropped = Arc::new(AtomicU32::new(0));
            app.bus().emit(Echo(LINKS, app.bus(), Arc::clone(&dropped)));
            assert_eq!(dropped.load(Ordering::Relaxed), LINKS + 1);
            app.stop("done").await.unwrap();
        });
    });
    emitting.join().unwrap();
}

/// What a helper owns that spawns the next helper when it is dropped.
struct Heir(u32, Context, Arc<AtomicU32>);

impl Drop for Heir {
    fn drop(&mut self) {
        self.2.fetch_add(1, Ordering::Relaxed);
        if let Some(left) = self.0.checked_sub(1) {
            spawn_heir(Self(left, self.1.clone(), Arc::clone(&self.2)));
        }
    }
}

fn spawn_heir(heir: Heir) {
    heir.1.clone().spawn(async move { drop(heir) });
}

#[test]
fn a_chain_of_helpers_that_are_spawned_on_drop_needs_no_stack() {
    let spawning = thread::spawn(|| {
        runtime().block_on(async {
            let (app, ctx) = with_context().await;
            app.stop("done").await.unwrap();
            let dropped = Arc::new(AtomicU32::new(0));
            spawn_heir(Heir(LINKS, ctx, Arc::clone(&dropped)));
            assert_eq!(dropped.load(Ordering::Relaxed), LINKS + 1);
        });
    });
    spawning.join().unwrap();
}

#[test]
fn a_helper_runs_on_the_runtime_of_its_tree_wherever_it_is_spawned() {
    runtime().block_on(async {
        let (app, ctx) = with_context().await;
        let (asked, question) = oneshot::channel::<()>();
        let (answer, answered) = oneshot::channel();
        let spawned = thread::spawn(move || {
            let other = runtime();
            let helper = async move {
                question.await.unwrap();
                answer.send(()).unwrap();
            };
            let entered = other.enter();
            let first = ctx.spawn(helper);
            drop(entered);
            drop(other);
            // Without any runtime.
            (first, ctx.spawn(async {}))
        });
        let (first, second) = spawned.join().unwrap();
        timeout(PATIENCE, second).await.unwrap();
        assert!(!first.is_finished());
        asked.send(()).unwrap();
        timeout(PATIENCE, answered).await.unwrap().unwrap();
        let child = app.which_child("child").await.unwrap();
        assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Active, 1));
        app.stop("done").await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_mebibyte_is_at_most_two_kibibytes_of_each_line_and_view() {
    let log = Log::at(LevelFilter::TRACE);
    let fails = worker("fails", async |ctx: Context| -> Exit {
        ctx.set_status("s".repeat(1 << 20));
        tokio::time::sleep(Duration::from_secs(1)).await;
        match ctx.incarnation() {
            1 => Err("e".repeat(1 << 20).into()),
            _ => panic!("{}", "p".repeat(1 << 20)),
        }
    });
    let app = start(fails.consecutive_restarts(1).on_exhausted(OnExhausted::Park)).await;
    settle().await;
    let status = app.which_child("fails").await.unwrap().status.unwrap();
    assert_eq!(status, format!("{}…", "s".repeat(2045)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let last = app.which_child("fails").await.unwrap().last_exit.unwrap();
    assert_eq!(last.reason.to_string(), format!("panicked: {}…", "p".repeat(2045)));
    app.stop("done").await.unwrap();
    let lines = log.lines();
    let longest = lines.iter().map(String::len).max().unwrap();
    assert!((2048..4096).contains(&longest), "{longest} bytes");
}
