//! An event on the bus to one handler, beside a bounded channel to one task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use verger::{Context, Readiness, Supervisor, worker};

use crate::measure::{Side, in_runtime, nanos};

/// How many events are emitted before the reader has its turn.
const BATCH: u64 = 50;

/// Nanoseconds for each of `n` events, without the time in which they are handled.
///
/// The emitter is the only task of its runtime that is busy: after each batch it waits until the reader has
/// taken everything, so that no queue is ever full.
pub(crate) fn emit(side: Side, n: u64) -> f64 {
    let took = in_runtime(async move {
        match side {
            Side::Tokio => on_tokio(n).await,
            Side::Verger => on_verger(n).await,
        }
    });
    nanos(took, n)
}

/// Marks the end of a batch.
#[derive(Debug)]
enum Event {
    Number(u64),
    Taken(std::sync::Mutex<Option<oneshot::Sender<()>>>),
}

fn handle(event: &Event, sum: &mut u64) {
    match event {
        Event::Number(number) => *sum += number,
        Event::Taken(done) => {
            let done = done.lock().expect("no panic").take();
            done.map(|done| done.send(()));
        }
    }
}

async fn batches(n: u64, send: impl Fn(Event)) -> Duration {
    let mut took = Duration::ZERO;
    for batch in 0..n / BATCH {
        let began = Instant::now();
        for number in 0..BATCH {
            send(Event::Number(batch * BATCH + number));
        }
        took += began.elapsed();
        let (done, taken) = oneshot::channel();
        send(Event::Taken(Some(done).into()));
        taken.await.expect("the reader runs");
    }
    took
}

async fn on_tokio(n: u64) -> Duration {
    let (sender, mut receiver) = mpsc::channel::<Event>(64);
    tokio::spawn(async move {
        let mut sum = 0;
        while let Some(event) = receiver.recv().await {
            handle(&event, &mut sum);
        }
    });
    let send = move |event| sender.try_send(event).expect("there is room");
    tokio::spawn(batches(n, send)).await.expect("no panic")
}

async fn on_verger(n: u64) -> Duration {
    let reader = worker("reader", async |ctx: Context| {
        let mut sum = 0;
        ctx.bus().on(move |event: Arc<Event>| {
            handle(&event, &mut sum);
            async {}
        });
        ctx.ready();
        ctx.cancelled().await;
    });
    let app = Supervisor::builder("app").child(reader.readiness(Readiness::Signal));
    let tree = app.build().expect("a tree").start().await.expect("it starts");
    let bus = tree.bus();
    tokio::spawn(batches(n, move |event| bus.emit(event))).await.expect("no panic")
}
