//! Start, memory and stop of many idle children.

use std::time::Instant;

use verger::mailbox::Inbox;
use verger::{
    CancellationToken, ChildSpec, Exit, Supervisor, SupervisorHandle, mailbox, worker,
    worker_with_mailbox,
};

use crate::measure::{STARTS, Side, dynamic, idle, named, nanos, peak_bytes, runtime, spawn_start};
use crate::tokio_only;

pub(crate) fn tree(n: u64) -> Supervisor {
    let children = named(worker("child", idle), n);
    let app = children.fold(Supervisor::builder("app"), |app, child| app.child(child));
    app.build().expect("a tree")
}

/// From the start to the last child's first instruction. The tree is built before.
pub(crate) fn declared(side: Side, n: u64) -> f64 {
    let tree = (side == Side::Verger).then(|| tree(n));
    runtime().block_on(async {
        let all = STARTS.expect(n);
        let began = Instant::now();
        match tree {
            None => drop(tokio::spawn(tokio_only::idle_children(n, CancellationToken::new()))),
            Some(tree) => spawn_start(tree),
        }
        nanos(all.await.expect("they start") - began, n)
    })
}

pub(crate) fn by_handle(side: Side, n: u64) -> f64 {
    if side == Side::Tokio {
        return declared(side, n);
    }
    runtime().block_on(async {
        let [_tree, conns] = dynamic().await;
        let all = STARTS.expect(n);
        let began = Instant::now();
        tokio::spawn(async move { start_each(&conns, n, worker("conn", idle)).await });
        nanos(all.await.expect("they start") - began, n)
    })
}

async fn start_each(conns: &SupervisorHandle, n: u64, spec: ChildSpec) {
    for _ in 0..n {
        conns.start_child(spec.clone()).await.expect("it starts");
    }
}

/// The growth of the peak resident set for each child.
pub(crate) fn bytes(side: Side, n: u64) -> f64 {
    peak_growth(n, async move {
        match side {
            Side::Tokio => {
                drop(tokio::spawn(tokio_only::idle_children(n, CancellationToken::new())));
            }
            Side::Verger => {
                let [_tree, conns] = dynamic().await;
                start_each(&conns, n, worker("conn", idle)).await;
            }
        }
    })
}

/// The base is an idle task without a channel.
pub(crate) fn bytes_mailbox(side: Side, n: u64) -> f64 {
    if side == Side::Tokio {
        return bytes(side, n);
    }
    peak_growth(n, async move {
        let [_tree, conns] = dynamic().await;
        let mut addresses = Vec::with_capacity(n as usize);
        for _ in 0..n {
            let (address, mailbox) = mailbox::<u64>();
            let spec =
                worker_with_mailbox("conn", mailbox, async |_ctx, mut inbox: Inbox<u64>| -> Exit {
                    STARTS.count();
                    while inbox.recv().await.is_some() {}
                    Ok(())
                });
            conns.start_child(spec).await.expect("it starts");
            addresses.push(address);
        }
        std::mem::forget(addresses);
    })
}

fn peak_growth(n: u64, start: impl Future<Output = ()>) -> f64 {
    runtime().block_on(async {
        let before = peak_bytes();
        let all = STARTS.expect(n);
        start.await;
        all.await.expect("they start");
        (peak_bytes() - before) as f64 / n as f64
    })
}

/// From the stop to the end of the supervisor. tokio's side cancels all children at once.
pub(crate) fn stop(side: Side, n: u64) -> f64 {
    runtime().block_on(async {
        let all = STARTS.expect(n);
        let took = match side {
            Side::Tokio => {
                let stop = CancellationToken::new();
                let supervisor = tokio::spawn(tokio_only::idle_children(n, stop.clone()));
                all.await.expect("they start");
                let began = Instant::now();
                stop.cancel();
                supervisor.await.expect("no panic");
                began.elapsed()
            }
            Side::Verger => {
                let tree = tree(n).start().await.expect("it starts");
                all.await.expect("they start");
                let began = Instant::now();
                tree.stop("measured").await.expect("it stops");
                began.elapsed()
            }
        };
        nanos(took, n)
    })
}
