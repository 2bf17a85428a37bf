//! Messages to a child, and questions with answers.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use verger::mailbox::{Inbox, Reply};
use verger::{
    ChildSpec, Exit, Supervisor, SupervisorHandle, mailbox_with_capacity, worker_with_mailbox,
};

use crate::measure::{Side, percentile, runtime};

/// `n` messages from one task to one child. The queue is never full.
pub(crate) fn send(side: Side, n: u64) -> f64 {
    let took = runtime().block_on(async {
        match side {
            Side::Tokio => send_on_tokio(n).await,
            Side::Verger => send_on_verger(n).await,
        }
    });
    n as f64 / took.as_secs_f64()
}

/// `n` questions, one after the other.
pub(crate) fn ask(side: Side, n: u64) -> f64 {
    let times = runtime().block_on(async {
        match side {
            Side::Tokio => ask_on_tokio(n).await,
            Side::Verger => ask_on_verger(n).await,
        }
    });
    percentile(50, times)
}

/// The sum of the numbers below `n`: the reader must have received each message once.
const fn sum_below(n: u64) -> u64 {
    n * (n - 1) / 2
}

async fn send_on_tokio(n: u64) -> Duration {
    let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
    let reader = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum
    });
    let began = Instant::now();
    let sending = tokio::spawn(async move { (0..n).try_for_each(|it| sender.send(it)) });
    sending.await.expect("no panic").expect("the reader runs");
    assert_eq!(reader.await.expect("no panic"), sum_below(n));
    began.elapsed()
}

async fn send_on_verger(n: u64) -> Duration {
    send_beside(n, |_| ()).await
}

/// The same while what `begin` returns exists.
pub(crate) async fn send_beside<T>(n: u64, begin: impl FnOnce(&SupervisorHandle) -> T) -> Duration {
    let (address, mailbox) = mailbox_with_capacity::<u64>(n as usize);
    let (done, sum) = oneshot::channel();
    let done = Mutex::new(Some(done));
    let reader = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u64>| {
        let done = done.lock().expect("no panic").take();
        async move {
            let mut sum = 0;
            for _ in 0..n {
                sum += inbox.recv().await.unwrap_or_default();
            }
            let _ = done.map(|done| done.send(sum));
            while inbox.recv().await.is_some() {}
        }
    });
    let tree = started(reader).await;
    let _begun = begin(&tree);
    let began = Instant::now();
    let sending = tokio::spawn(async move { (0..n).try_for_each(|it| address.try_send(it)) });
    sending.await.expect("no panic").expect("the reader runs");
    assert_eq!(sum.await, Ok(sum_below(n)));
    began.elapsed()
}

async fn ask_on_tokio(n: u64) -> Vec<Duration> {
    let (sender, mut receiver) = mpsc::channel::<oneshot::Sender<u64>>(64);
    tokio::spawn(async move {
        while let Some(reply) = receiver.recv().await {
            let _ = reply.send(1);
        }
    });
    let asking = tokio::spawn(async move {
        let ask = || async {
            let (reply, answer) = oneshot::channel();
            sender.send(reply).await.expect("the reader runs");
            answer.await.expect("an answer")
        };
        times(n, ask).await
    });
    asking.await.expect("no panic")
}

async fn ask_on_verger(n: u64) -> Vec<Duration> {
    let (address, mailbox) = mailbox_with_capacity::<Reply<u64>>(64);
    let reader = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
        while let Some(reply) = inbox.recv().await {
            Reply::send(&reply, 1);
        }
        Ok(())
    });
    let _tree = started(reader).await;
    let asking = tokio::spawn(async move {
        times(n, || async { address.ask(|reply| reply).await.expect("an answer") }).await
    });
    asking.await.expect("no panic")
}

/// The time of each question, one after the other.
async fn times<F: Future>(n: u64, ask: impl Fn() -> F) -> Vec<Duration> {
    let mut times = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let began = Instant::now();
        ask().await;
        times.push(began.elapsed());
    }
    times
}

async fn started(child: ChildSpec) -> SupervisorHandle {
    let app = Supervisor::builder("app").child(child).build().expect("a tree");
    app.start().await.expect("it starts")
}
