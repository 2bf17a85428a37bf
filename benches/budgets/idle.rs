//! Children that wait, on both sides, and count when they start.

use std::hint::black_box;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use verger::{CancellationToken, ChildSpec, Context};

use crate::measure::{KEPT, Starts};
use crate::raw;

/// Each measurement has a process of its own, so there is one.
pub(crate) static STARTS: Starts = Starts::new();

/// By hand.
pub(crate) async fn task(stop: CancellationToken) -> raw::Exit {
    STARTS.one();
    // Owned: the task is 128 bytes smaller than one that borrows the token.
    stop.cancelled_owned().await;
    Ok(())
}

/// By hand, stopped by itself. It is the same if its supervisor is gone.
pub(crate) async fn until(stopped: oneshot::Receiver<()>) {
    STARTS.one();
    let _ = stopped.await;
}

/// Stops children one after another, the last one first: each is asked when the one behind it is down.
pub(crate) async fn stop_in_order(children: Vec<(oneshot::Sender<()>, JoinHandle<()>)>) {
    for (stop, child) in children.into_iter().rev() {
        let _ = stop.send(());
        child.await.expect("no panic");
    }
}

/// Of verger.
pub(crate) async fn child(ctx: Context) {
    STARTS.one();
    ctx.cancelled().await;
}

/// By hand, with something to keep meanwhile.
pub(crate) async fn keeping_task(stop: CancellationToken) -> raw::Exit {
    STARTS.one();
    let kept = black_box(KEPT);
    stop.cancelled_owned().await;
    black_box(&kept);
    Ok(())
}

/// Of verger, with something to keep meanwhile.
pub(crate) async fn keeping_child(ctx: Context) {
    STARTS.one();
    let kept = black_box(KEPT);
    ctx.cancelled().await;
    black_box(&kept);
}

/// The same child so many times, since those of one supervisor need names of their own.
pub(crate) fn named(child: ChildSpec, n: u64) -> impl Iterator<Item = ChildSpec> {
    (0..n).map(move |number| child.clone().named(format!("child-{number}")))
}
