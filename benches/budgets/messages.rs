//! Messages to a child, and questions.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use verger::{Exit, Inbox, Reply, Supervisor, SupervisorHandle, mailbox, worker_with_mailbox};

use crate::measure::{Budget, Part, Row, Unit, Who, p50, runtime};

const MESSAGES: u64 = 500_000;
const QUESTIONS: u64 = 50_000;
/// Of a mailbox that senders have to wait for.
const ROOM: usize = 1_000;

pub(crate) const ROWS: &[Row] = &[
    Row::new("message", |side| match side.who {
        Who::Raw => raw_unbounded(side.n),
        Who::Verger => messages(side.n, side.n as usize),
    })
    .what("messages to a child, by a mailbox that is never full")
    .beside_raw(MESSAGES)
    .parts(&[Part::new("", Unit::PerSecond, Budget::AtLeast(0.6))]),
    Row::new("message-bounded", |side| match side.who {
        Who::Raw => raw_bounded(side.n),
        Who::Verger => messages(side.n, ROOM),
    })
    .what("messages to a child that has room for 1,000")
    .beside_raw(MESSAGES)
    .parts(&[Part::without_budget("", Unit::PerSecond)]),
    Row::new("ask", |side| match side.who {
        Who::Raw => raw_questions(side.n),
        Who::Verger => questions(side.n),
    })
    .what("a question and its answer, p50")
    .beside_raw(QUESTIONS)
    .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.3))]),
];

fn rate(messages: u64, took: Duration) -> Vec<f64> {
    vec![messages as f64 / took.as_secs_f64()]
}

/// Of the numbers below `n`, to see that every message came.
const fn sum_below(n: u64) -> u64 {
    n * (n - 1) / 2
}

// --- Messages ------------------------------------------------------------------------------------

fn raw_unbounded(n: u64) -> Vec<f64> {
    runtime().block_on(async {
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
        sending.await.expect("no panic").expect("it is read");
        assert_eq!(reader.await.expect("no panic"), sum_below(n));
        rate(n, began.elapsed())
    })
}

fn raw_bounded(n: u64) -> Vec<f64> {
    runtime().block_on(async {
        let (sender, mut receiver) = mpsc::channel::<u64>(ROOM);
        let reader = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(number) = receiver.recv().await {
                sum += number;
            }
            sum
        });
        let began = Instant::now();
        let sending = tokio::spawn(async move {
            for number in 0..n {
                sender.send(number).await.expect("it is read");
            }
        });
        sending.await.expect("no panic");
        assert_eq!(reader.await.expect("no panic"), sum_below(n));
        rate(n, began.elapsed())
    })
}

/// With so much room: if it is for all, nobody waits.
fn messages(n: u64, room: usize) -> Vec<f64> {
    runtime().block_on(async {
        let (address, mailbox) = mailbox::<u64>(room);
        let (done, sum) = oneshot::channel();
        let done = Mutex::new(Some(done));
        let spec = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u64>| {
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
        let tree = started(Supervisor::builder("app").child(spec).build()).await;
        let began = Instant::now();
        let waits = room < n as usize;
        let sending = tokio::spawn(async move {
            for number in 0..n {
                if waits {
                    address.send(number).await.expect("it is read");
                } else {
                    address.try_send(number).expect("it is read");
                }
            }
        });
        sending.await.expect("no panic");
        assert_eq!(sum.await, Ok(sum_below(n)));
        let took = began.elapsed();
        tree.stop("measured").await.expect("it stops");
        rate(n, took)
    })
}

async fn started(app: Result<Supervisor, verger::BuildError>) -> SupervisorHandle {
    app.expect("a tree").start().await.expect("it starts")
}

// --- Questions -----------------------------------------------------------------------------------

fn raw_questions(n: u64) -> Vec<f64> {
    runtime().block_on(async {
        let (sender, mut receiver) = mpsc::channel::<oneshot::Sender<u64>>(64);
        tokio::spawn(async move {
            while let Some(reply) = receiver.recv().await {
                let _ = reply.send(1);
            }
        });
        let asker = tokio::spawn(async move {
            let mut took = Vec::with_capacity(n as usize);
            for _ in 0..n {
                let began = Instant::now();
                let (reply, answer) = oneshot::channel();
                sender.send(reply).await.expect("it is read");
                answer.await.expect("an answer");
                took.push(began.elapsed());
            }
            took
        });
        vec![p50(asker.await.expect("no panic"))]
    })
}

fn questions(n: u64) -> Vec<f64> {
    runtime().block_on(async {
        let (address, mailbox) = mailbox::<Reply<u64>>(64);
        let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
            while let Some(reply) = inbox.recv().await {
                Reply::send(&reply, 1);
            }
            Ok(())
        });
        let tree = started(Supervisor::builder("app").child(spec).build()).await;
        let asker = tokio::spawn(async move {
            let mut took = Vec::with_capacity(n as usize);
            for _ in 0..n {
                let began = Instant::now();
                address.ask(|reply| reply).await.expect("an answer");
                took.push(began.elapsed());
            }
            took
        });
        let took = asker.await.expect("no panic");
        tree.stop("measured").await.expect("it stops");
        vec![p50(took)]
    })
}
