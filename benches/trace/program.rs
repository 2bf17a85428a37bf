//! The program that `trace.py` traces: a supervisor with one plain worker, in which one event happens.
//!
//! `begin_trace` and `end_trace` are markers for the debugger. Time is paused, so that no deadline
//! expires while the debugger stops the program, and there is no subscriber.

use std::env;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::{Backoff, Context, Exit, Supervisor, SupervisorHandle, worker};

/// The argument of the program: what happens between the markers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The worker receives the request and doesn't fail.
    Nothing,
    /// The worker fails on request. The trace ends with the first instruction of the next incarnation.
    Failure,
    /// A call stops the worker.
    Stop,
    /// A call restarts the worker.
    Restart,
}

/// Wakes the worker.
static REQUEST: Notify = Notify::const_new();

/// Wakes the main task when the worker waits for a request.
static RUNNING: Notify = Notify::const_new();

#[inline(never)]
fn begin_trace() {
    // Otherwise the linker may give both markers one address.
    std::hint::black_box("begin");
}

#[inline(never)]
fn end_trace() {
    std::hint::black_box("end");
}

async fn plain(ctx: Context, event: Event) -> Exit {
    loop {
        if matches!(event, Event::Nothing | Event::Failure) {
            end_trace();
        }
        RUNNING.notify_one();
        if ctx.run_until_cancelled(REQUEST.notified()).await.is_none() {
            return Ok(());
        }
        if event == Event::Failure {
            return Err("requested".into());
        }
    }
}

async fn trace(tree: &SupervisorHandle, event: Event) {
    begin_trace();
    match event {
        Event::Nothing | Event::Failure => {
            REQUEST.notify_one();
            RUNNING.notified().await;
        }
        Event::Stop => tree.stop_child("plain").await.expect("the worker stops"),
        Event::Restart => {
            tree.restart("plain").await.expect("the worker runs again");
        }
    }
    end_trace();
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let event = match env::args().nth(1).as_deref() {
        Some("nothing") => Event::Nothing,
        Some("failure") => Event::Failure,
        Some("stop") => Event::Stop,
        Some("restart") => Event::Restart,
        _ => panic!("write an event: nothing, failure, stop or restart"),
    };
    let plain = worker("plain", move |ctx| plain(ctx, event)).backoff(Backoff::none());
    let app = Supervisor::builder("app").child(plain);
    let tree = app.build().expect("a valid tree").start().await.expect("the tree starts");
    RUNNING.notified().await;
    // Time advances when all tasks wait, so that the start is over.
    sleep(Duration::from_millis(1)).await;
    trace(&tree, event).await;
}
