//! A parameter may be any pattern that a function's may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verger::{Context, Supervisor, worker};

#[derive(Clone)]
struct Point {
    x: u32,
    y: u32,
}

type Sum = Arc<AtomicU32>;

#[worker]
async fn patterns(
    mut ctx: Context,
    mut count: u32,
    (left, right): (u32, u32),
    Point { x, y: height }: Point,
    _: &'static str,
    [first, .., last]: [u32; 3],
    whole @ Point { .. }: Point,
    sum: Sum,
) {
    count += left + right + x + height + first + last + whole.x + whole.y;
    sum.store(count, Ordering::Relaxed);
    ctx = ctx.clone();
    ctx.cancelled().await;
}

#[worker]
async fn ignores(_: Context, _: u32, _ignored: u32) {}

#[worker]
async fn takes_apart((count, sum): (u32, Sum)) {
    sum.fetch_add(count, Ordering::Relaxed);
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let (one, other) = (Sum::default(), Sum::default());
    let point = |x, y| Point { x, y };
    let patterns =
        patterns(1, (2, 4), point(8, 16), "", [32, 0, 64], point(128, 256), Arc::clone(&one));
    let app = Supervisor::builder("app")
        .child(patterns)
        .child(ignores(1, 2))
        .child(takes_apart((7, Arc::clone(&other))));
    let tree = app.build().unwrap().start().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(one.load(Ordering::Relaxed), 511);
    assert_eq!(other.load(Ordering::Relaxed), 7);
    tree.stop("the test is over").await.unwrap();
}
