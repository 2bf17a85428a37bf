//! Supervisors below supervisors: start and stop of the whole tree.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use verger::CancellationToken;

use crate::measure::{STARTS, Shape, Side, Timing, nanos, runtime, up_and_down};
use crate::tokio_only;

pub(crate) fn deep_build(side: Side, n: u64) -> f64 {
    nanos(measured(side, deep(n)).build, 1)
}

pub(crate) fn deep_stop(side: Side, n: u64) -> f64 {
    nanos(measured(side, deep(n)).stop, 1)
}

pub(crate) fn wide_build(side: Side, _n: u64) -> f64 {
    nanos(measured(side, WIDE).build, 1)
}

pub(crate) fn wide_stop(side: Side, _n: u64) -> f64 {
    nanos(measured(side, WIDE).stop, 1)
}

/// 1,111 supervisors with 10,000 workers.
const WIDE: Shape = Shape { levels: 4, width: 10 };

fn deep(n: u64) -> Shape {
    Shape { levels: u32::try_from(n).expect("a thousand levels"), width: 1 }
}

fn measured(side: Side, shape: Shape) -> Timing {
    runtime().block_on(async {
        match side {
            Side::Tokio => on_tokio(shape).await,
            Side::Verger => up_and_down(shape, || ()).await,
        }
    })
}

async fn on_tokio(shape: Shape) -> Timing {
    let stop = CancellationToken::new();
    let all = STARTS.expect(shape.workers());
    let (ready, is_ready) = oneshot::channel();
    let began = Instant::now();
    let root = tokio::spawn(supervise(shape, stop.clone(), ready));
    is_ready.await.expect("it starts");
    let build = Instant::now().max(all.await.expect("they start")) - began;
    let began = Instant::now();
    stop.cancel();
    root.await.expect("no panic").expect("it ends well");
    Timing { build, stop: began.elapsed() }
}

/// Starts its children one after the other, reports that it is ready, and ends after all of them.
#[expect(clippy::manual_async_fn, reason = "it spawns itself, so `Send` has to be declared")]
fn supervise(
    shape: Shape,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> impl Future<Output = tokio_only::Exit> + Send {
    async move {
        let mut children = JoinSet::new();
        for _ in 0..shape.width {
            match shape.below() {
                None => {
                    children.spawn(tokio_only::idle(stop.clone()));
                }
                Some(below) => {
                    let (ready, is_ready) = oneshot::channel();
                    children.spawn(supervise(below, stop.child_token(), ready));
                    let _ = is_ready.await;
                }
            }
        }
        let _ = ready.send(());
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = children.join_next() => stop.cancel(),
        }
        while children.join_next().await.is_some() {}
        Ok(())
    }
}
