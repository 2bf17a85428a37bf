//! What it costs to measure how long polls take.

use std::future::poll_fn;
use std::sync::Mutex;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use verger::{Context, Supervisor, worker};

use crate::measure::{Side, nanos};

/// How often each side is measured. The shortest time has the least of everything else.
const TRIES: usize = 5;

/// By how much busy time makes a poll longer.
pub(crate) fn added(_side: Side, n: u64) -> f64 {
    let shortest = |measured| (0..TRIES).map(|_| polls(measured, n)).min().expect("some tries");
    // Without it first: a tree that is measured slows down others of the process.
    let (off, on) = (shortest(false), shortest(true));
    nanos(on.saturating_sub(off), n)
}

/// The time of `n` polls that do nothing.
fn polls(measured: bool, n: u64) -> Duration {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (done, took) = oneshot::channel();
        let done = Mutex::new(Some(done));
        let polled = worker("polled", move |ctx: Context| {
            let done = done.lock().expect("no panic").take();
            async move {
                let began = Instant::now();
                let mut left = n;
                poll_fn(|cx| {
                    left -= 1;
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
                let _ = done.map(|done| done.send(began.elapsed()));
                ctx.cancelled().await;
            }
        });
        let tree = Supervisor::builder("app").busy_time(measured).child(polled);
        let tree = tree.build().expect("a valid tree").start().await.expect("it starts");
        let took = took.await.expect("the child runs");
        tree.stop("measured").await.expect("an ordered stop");
        took
    })
}
