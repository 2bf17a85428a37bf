//! Starting and stopping many idle children, and what they weigh.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use verger::{
    CancellationToken, ChildSpec, DynamicSupervisor, Exit, Inbox, Supervisor, SupervisorHandle,
    mailbox, worker, worker_with_mailbox,
};

use crate::idle::{self, STARTS};
use crate::measure::{Budget, Part, Row, Side, Unit, Who, nanos, peak_bytes, runtime};
use crate::raw;

const CHILDREN: u64 = 100_000;

pub(crate) const ROWS: &[Row] = &[
    Row::new("start", start)
        .what("start 100,000 idle children, each")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.1))])
        .many_rounds(),
    Row::new("describe", describe)
        .what("describe 100,000 children and check them, each, before they are started")
        .alone(Side::verger(CHILDREN))
        .parts(&[Part::without_budget("", Unit::Nanos)])
        .rounds(5),
    Row::new("start-by-handle", start_by_handle)
        .what("the same through the handle, each start awaited")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(2.0))])
        .many_rounds(),
    Row::new("bytes", bytes)
        .what("an idle child of a shared spec")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Bytes, Budget::AtMost(1.15))]),
    Row::new("bytes-kept", bytes_kept)
        .what("an idle child that keeps 64 bytes meanwhile")
        .beside_raw(CHILDREN)
        .parts(&[Part::without_budget("", Unit::Bytes)])
        .rounds(5),
    Row::new("bytes-mailbox", bytes_mailbox)
        .what("an idle child with a mailbox that is not used")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Bytes, Budget::AtMost(2.0))]),
    Row::new("stop", stop)
        .what("stop 100,000 children in order, each")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.0))])
        .many_rounds(),
    Row::new("stop-by-hand", stop_in_order)
        .what("by hand, the same in order: each is asked when the one behind it is down")
        .alone(Side::raw(CHILDREN))
        .parts(&[Part::without_budget("", Unit::Nanos)]),
    Row::new("stop-scale", stop)
        .what("stop one of 1,000,000 children, against one of 10,000")
        .against_itself(10_000, 1_000_000)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.5))])
        .rounds(9),
];

// --- Raw -----------------------------------------------------------------------------------------

/// A supervisor of idle children: starts them, would notice if one ended, and ends after all of them.
async fn supervise<F>(n: u64, stop: CancellationToken, child: fn(CancellationToken) -> F)
where
    F: Future<Output = raw::Exit> + Send + 'static,
{
    let mut children = JoinSet::new();
    for _ in 0..n {
        children.spawn(child(stop.clone()));
    }
    tokio::select! {
        () = stop.cancelled() => {}
        Some(_) = children.join_next() => stop.cancel(),
    }
    while children.join_next().await.is_some() {}
}

// --- Verger --------------------------------------------------------------------------------------

/// With so many children, each by a name of its own.
fn described(n: u64) -> Supervisor {
    let children = idle::named(worker("child", idle::child), n);
    let app = children.fold(Supervisor::builder("app"), |app, child| app.child(child));
    app.build().expect("a tree")
}

/// A tree with a dynamic supervisor, and the handle of that.
async fn dynamic() -> [SupervisorHandle; 2] {
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").child(conns).build().expect("a tree");
    let tree = app.start().await.expect("it starts");
    let conns = tree.supervisor("conns").await.expect("it runs");
    [tree, conns]
}

// --- Start ---------------------------------------------------------------------------------------

/// What is known before anything runs is described before the clock does: there is nothing like it
/// by hand, and it is done once.
fn describe(side: Side) -> Vec<f64> {
    let began = Instant::now();
    let tree = described(side.n);
    let took = began.elapsed();
    drop(tree);
    vec![nanos(took, side.n)]
}

/// From the first start to the last child's first instruction.
fn start(side: Side) -> Vec<f64> {
    let n = side.n;
    let tree = (side.who == Who::Verger).then(|| described(n));
    let took = runtime().block_on(async {
        let all = STARTS.expect(n);
        let began = Instant::now();
        match tree {
            None => drop(tokio::spawn(supervise(n, CancellationToken::new(), idle::task))),
            Some(tree) => drop(tokio::spawn(async { tree.start().await.expect("it starts") })),
        }
        all.await.expect("they start") - began
    });
    vec![nanos(took, n)]
}

fn start_by_handle(side: Side) -> Vec<f64> {
    if side.who == Who::Raw {
        return start(side);
    }
    let n = side.n;
    let took = runtime().block_on(async {
        let [_tree, conns] = dynamic().await;
        let all = STARTS.expect(n);
        let began = Instant::now();
        tokio::spawn(async move { start_each(&conns, n, worker("conn", idle::child)).await });
        all.await.expect("they start") - began
    });
    vec![nanos(took, n)]
}

async fn start_each(conns: &SupervisorHandle, n: u64, spec: ChildSpec) {
    for _ in 0..n {
        conns.start_child(spec.clone()).await.expect("it starts");
    }
}

// --- Memory --------------------------------------------------------------------------------------

fn bytes(side: Side) -> Vec<f64> {
    let n = side.n;
    heaviest(n, async move {
        match side.who {
            Who::Raw => drop(tokio::spawn(supervise(n, CancellationToken::new(), idle::task))),
            Who::Verger => {
                let [_tree, conns] = dynamic().await;
                start_each(&conns, n, worker("conn", idle::child)).await;
            }
        }
    })
}

fn bytes_kept(side: Side) -> Vec<f64> {
    let n = side.n;
    heaviest(n, async move {
        match side.who {
            Who::Raw => {
                drop(tokio::spawn(supervise(n, CancellationToken::new(), idle::keeping_task)));
            }
            Who::Verger => {
                let [_tree, conns] = dynamic().await;
                start_each(&conns, n, worker("conn", idle::keeping_child)).await;
            }
        }
    })
}

fn bytes_mailbox(side: Side) -> Vec<f64> {
    if side.who == Who::Raw {
        return bytes(side);
    }
    let n = side.n;
    heaviest(n, async move {
        let [_tree, conns] = dynamic().await;
        let mut addresses = Vec::with_capacity(n as usize);
        for _ in 0..n {
            let (address, mailbox) = mailbox::<u64>(1000);
            let spec =
                worker_with_mailbox("conn", mailbox, async |_ctx, mut inbox: Inbox<u64>| -> Exit {
                    STARTS.one();
                    while inbox.recv().await.is_some() {}
                    Ok(())
                });
            conns.start_child(spec).await.expect("it starts");
            addresses.push(address);
        }
        std::mem::forget(addresses);
    })
}

/// What each of `n` children weighs at the peak, once all of them run.
fn heaviest(n: u64, start: impl Future<Output = ()>) -> Vec<f64> {
    runtime().block_on(async {
        let before = peak_bytes();
        let all = STARTS.expect(n);
        start.await;
        all.await.expect("they start");
        vec![(peak_bytes() - before) as f64 / n as f64]
    })
}

// --- Stop ----------------------------------------------------------------------------------------

/// From the request to the end of the supervisor.
fn stop(side: Side) -> Vec<f64> {
    vec![runtime().block_on(start_and_stop(side))]
}

async fn start_and_stop(side: Side) -> f64 {
    let n = side.n;
    let all = STARTS.expect(n);
    let took = match side.who {
        Who::Raw => {
            let stop = CancellationToken::new();
            let supervisor = tokio::spawn(supervise(n, stop.clone(), idle::task));
            all.await.expect("they start");
            let began = Instant::now();
            stop.cancel();
            supervisor.await.expect("no panic");
            began.elapsed()
        }
        Who::Verger => {
            let tree = described(n).start().await.expect("it starts");
            all.await.expect("they start");
            let began = Instant::now();
            tree.stop("measured").await.expect("it stops");
            began.elapsed()
        }
    };
    nanos(took, n)
}

/// What an order costs, whoever keeps it.
fn stop_in_order(side: Side) -> Vec<f64> {
    let n = side.n;
    let took = runtime().block_on(async {
        let all = STARTS.expect(n);
        let (stop, stopped) = oneshot::channel();
        let supervisor = tokio::spawn(supervise_in_order(n, stopped));
        all.await.expect("they start");
        let began = Instant::now();
        stop.send(()).expect("it waits for that");
        supervisor.await.expect("no panic");
        began.elapsed()
    });
    vec![nanos(took, n)]
}

/// A supervisor of idle children, which it stops one after another, the last one first.
async fn supervise_in_order(n: u64, stopped: oneshot::Receiver<()>) {
    let child = |_| {
        let (stop, stopped) = oneshot::channel();
        (stop, tokio::spawn(idle::until(stopped)))
    };
    let children = (0..n).map(child).collect();
    let _ = stopped.await;
    idle::stop_in_order(children).await;
}
