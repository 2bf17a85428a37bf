//! What a message to a child, a question, and an unused mailbox cost, beside hand-written tokio.
//!
//! Both sides do the same work, in turns within one run; what counts is the ratio. Memory is the
//! peak of a process of its own, one for each figure.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use verger::{
    Address, DynamicSupervisor, Exit, Inbox, Reply, Supervisor, mailbox, worker_with_mailbox,
};

const ROUNDS: usize = 15;
const MESSAGES: u64 = 500_000;
const QUESTIONS: usize = 50_000;
const CHILDREN: u64 = 100_000;

/// What an idle task keeps, on both sides.
const KEPT: [u64; 8] = [1; 8];

fn main() {
    let args: Vec<_> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--idle", who] => return idle(who),
        _ if args.iter().any(|arg| arg == "--bench") => {}
        _ => {
            println!("nothing to test; `cargo bench --bench messages` measures");
            return;
        }
    }
    println!("{:<26} {:>9} {:>9}   ratio (min–median–max)   budget", "", "tokio", "verger");
    let unbounded = compare(raw_unbounded, || send(MESSAGES as usize));
    unbounded.row("message, never full", "≤ 1.67 (0.6 of the rate)", 1.0 / 0.6);
    compare(raw_bounded, || send(1000)).row("message, room for 1000", "", f64::INFINITY);
    compare(raw_questions, questions).row("question and answer", "≤ 1.3", 1.3);
    compare(|| peak("joinset"), || peak("mailbox")).row("bytes, mailbox unused", "≤ 2.0", 2.0);
}

/// Figures of both sides, by round.
struct Compared(Vec<(f64, f64)>);

fn compare(mut raw: impl FnMut() -> f64, mut ours: impl FnMut() -> f64) -> Compared {
    // The first round warms up.
    let _ = (raw(), ours());
    Compared((0..ROUNDS).map(|_| (raw(), ours())).collect())
}

impl Compared {
    fn row(&self, what: &str, budget: &str, most: f64) {
        let raw = sorted(self.0.iter().map(|(raw, _)| *raw));
        let ours = sorted(self.0.iter().map(|(_, ours)| *ours));
        let ratios = sorted(self.0.iter().map(|(raw, ours)| ours / raw));
        let median = |figures: &[f64]| figures[figures.len() / 2];
        let met = match (budget, median(&ratios) <= most) {
            ("", _) => "",
            (_, true) => "met",
            (_, false) => "NOT MET",
        };
        println!(
            "{what:<26} {:>9.1} {:>9.1}   {:.2}–{:.2}–{:.2}   {budget} {met}",
            median(&raw),
            median(&ours),
            ratios[0],
            median(&ratios),
            ratios[ratios.len() - 1],
        );
    }
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn nanos(took: Duration, n: u64) -> f64 {
    took.as_secs_f64() * 1e9 / n as f64
}

// --- Messages ------------------------------------------------------------------------------------

fn raw_unbounded() -> f64 {
    runtime().block_on(async {
        let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
        let reader = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        });
        let began = Instant::now();
        let sending = tokio::spawn(async move { (0..MESSAGES).try_for_each(|n| sender.send(n)) });
        sending.await.expect("no panic").expect("it is read");
        assert_eq!(reader.await.expect("no panic"), MESSAGES * (MESSAGES - 1) / 2);
        nanos(began.elapsed(), MESSAGES)
    })
}

fn raw_bounded() -> f64 {
    runtime().block_on(async {
        let (sender, mut receiver) = mpsc::channel::<u64>(1000);
        let reader = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        });
        let began = Instant::now();
        let sending = tokio::spawn(async move {
            for n in 0..MESSAGES {
                sender.send(n).await.expect("it is read");
            }
        });
        sending.await.expect("no panic");
        assert_eq!(reader.await.expect("no panic"), MESSAGES * (MESSAGES - 1) / 2);
        nanos(began.elapsed(), MESSAGES)
    })
}

/// With so much room: if it is for all, nobody waits.
fn send(room: usize) -> f64 {
    runtime().block_on(async {
        let (address, mailbox) = mailbox::<u64>(room);
        let (done, sum) = oneshot::channel();
        let done = std::sync::Mutex::new(Some(done));
        let spec = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u64>| {
            let done = done.lock().expect("no panic").take();
            async move {
                let mut sum = 0;
                for _ in 0..MESSAGES {
                    sum += inbox.recv().await.unwrap_or_default();
                }
                let _ = done.map(|done| done.send(sum));
                while inbox.recv().await.is_some() {}
            }
        });
        let app = Supervisor::builder("app").child(spec).build().expect("a tree");
        let tree = app.start().await.expect("it starts");
        let began = Instant::now();
        let waits = room < MESSAGES as usize;
        let sending = tokio::spawn(async move {
            for n in 0..MESSAGES {
                if waits {
                    address.send(n).await.expect("it is read");
                } else {
                    address.try_send(n).expect("it is read");
                }
            }
        });
        sending.await.expect("no panic");
        assert_eq!(sum.await, Ok(MESSAGES * (MESSAGES - 1) / 2));
        let took = began.elapsed();
        tree.stop("done").await.expect("it stops");
        nanos(took, MESSAGES)
    })
}

// --- Questions -----------------------------------------------------------------------------------

fn raw_questions() -> f64 {
    runtime().block_on(async {
        let (sender, mut receiver) = mpsc::channel::<oneshot::Sender<u64>>(64);
        tokio::spawn(async move {
            while let Some(reply) = receiver.recv().await {
                let _ = reply.send(1);
            }
        });
        let asker = tokio::spawn(async move {
            let mut took = Vec::with_capacity(QUESTIONS);
            for _ in 0..QUESTIONS {
                let began = Instant::now();
                let (reply, answer) = oneshot::channel();
                sender.send(reply).await.expect("it is read");
                answer.await.expect("an answer");
                took.push(began.elapsed());
            }
            took
        });
        p50(asker.await.expect("no panic"))
    })
}

fn questions() -> f64 {
    runtime().block_on(async {
        let (address, mailbox) = mailbox::<Reply<u64>>(64);
        let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
            while let Some(reply) = inbox.recv().await {
                Reply::send(&reply, 1);
            }
            Ok(())
        });
        let app = Supervisor::builder("app").child(spec).build().expect("a tree");
        let tree = app.start().await.expect("it starts");
        let asker = tokio::spawn(async move {
            let mut took = Vec::with_capacity(QUESTIONS);
            for _ in 0..QUESTIONS {
                let began = Instant::now();
                address.ask(|reply| reply).await.expect("an answer");
                took.push(began.elapsed());
            }
            took
        });
        let took = asker.await.expect("no panic");
        tree.stop("done").await.expect("it stops");
        p50(took)
    })
}

fn p50(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took[took.len() / 2].as_secs_f64() * 1e9
}

// --- Memory --------------------------------------------------------------------------------------

/// The peak of a process with idle children, per child.
fn peak(who: &str) -> f64 {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program).args(["--idle", who]).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn idle(who: &str) {
    let before = peak_bytes();
    runtime().block_on(async {
        match who {
            "joinset" => idle_tasks().await,
            _ => idle_children().await,
        }
        println!("{}", (peak_bytes() - before) as f64 / CHILDREN as f64);
        std::process::exit(0);
    });
}

async fn idle_tasks() {
    let mut tasks = JoinSet::new();
    for _ in 0..CHILDREN {
        tasks.spawn(async {
            let kept = std::hint::black_box(KEPT);
            std::future::pending::<()>().await;
            std::hint::black_box(&kept);
        });
    }
    tokio::task::yield_now().await;
    std::mem::forget(tasks);
}

async fn idle_children() {
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").child(conns).build().expect("a tree");
    let tree = app.start().await.expect("it starts");
    let conns = tree.supervisor("conns").await.expect("it runs");
    let mut addresses: Vec<Address<u64>> = Vec::with_capacity(CHILDREN as usize);
    for _ in 0..CHILDREN {
        let (address, mailbox) = mailbox::<u64>(1000);
        let spec = worker_with_mailbox("conn", mailbox, async |_ctx, mut inbox| -> Exit {
            let kept = std::hint::black_box(KEPT);
            while inbox.recv().await.is_some() {}
            std::hint::black_box(&kept);
            Ok(())
        });
        conns.start_child(spec).await.expect("it starts");
        addresses.push(address);
    }
    std::mem::forget((tree, conns, addresses));
}

fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
