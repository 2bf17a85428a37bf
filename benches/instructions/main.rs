//! How many instructions the hot paths take, counted by callgrind through gungraun.
//!
//! Unlike times, counts are the same in every run and on a busy machine, within one per mille. So each
//! benchmark has a limit for one event, a tenth above its count when it was written, and `.ci/run`
//! fails above it. `benches/README.md` says what to do then.
//!
//! Everything runs on one thread with paused time. Waits for memory, other threads and the kernel
//! aren't counted. Of each benchmark only the function's body counts: not its argument, nor the drop of
//! what it returns. callgrind recognizes the function by its name, which is part of the names of async
//! blocks and closures in it as well, and stops counting there: so these are in functions of their own.

#![expect(missing_docs, reason = "the macros of gungraun generate public items")]

use std::panic;
use std::time::Duration;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use verger::mailbox::{Address, AskError, Reply};
use verger::status::Status;
use verger::{
    Backoff, BuildError, Context, DynamicSupervisor, Exit, Strategy, Supervisor, SupervisorBuilder,
    SupervisorHandle, mailbox_with_capacity, worker, worker_with, worker_with_mailbox,
};

/// Events in each benchmark, so many that what happens only once hardly counts.
const EVENTS: u32 = 1_000;

/// A limit of instructions for one event.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    // Without the simulation of caches, whose counts depend on addresses.
    let mut callgrind = Callgrind::with_args(["cache-sim=no"]);
    callgrind.format([EventKind::Ir]);
    callgrind.hard_limits([(EventKind::Ir, instructions * u64::from(EVENTS))]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

/// A runtime with a tree that runs in it.
struct Running {
    runtime: Runtime,
    tree: SupervisorHandle,
}

impl Running {
    fn start(app: Result<Supervisor, BuildError>) -> Self {
        let runtime = runtime();
        let tree = runtime.block_on(async {
            let tree = app.expect("a tree").start().await.expect("it starts");
            settle().await;
            tree
        });
        Self { runtime, tree }
    }

    fn incarnation(&self, child: &str) -> u32 {
        self.runtime.block_on(self.tree.which_child(child)).expect("it exists").incarnation
    }
}

/// One thread, whose time advances when all tasks wait.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

/// Ready when all tasks wait.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

fn name(number: u32) -> String {
    format!("worker-{number}")
}

// --- Children ------------------------------------------------------------------------------------

fn declared() -> SupervisorBuilder {
    let app = Supervisor::builder("app");
    (0..EVENTS).fold(app, |app, number| app.child(worker(name(number), idle)))
}

/// A chain: each supervisor has the next one as its child.
fn chain() -> SupervisorBuilder {
    let last = Supervisor::builder("level").child(worker("idle", idle));
    (1..EVENTS).fold(last, |below, _| Supervisor::builder("level").child(below))
}

fn dynamic() -> Running {
    Running::start(DynamicSupervisor::builder("conns").build())
}

async fn start_children(conns: &SupervisorHandle) {
    for _ in 0..EVENTS {
        conns.start_child(worker("conn", idle)).await.expect("it starts");
    }
    settle().await;
}

fn full() -> Running {
    let running = dynamic();
    running.runtime.block_on(start_children(&running.tree));
    running
}

// One declared child.
#[library_benchmark(config = at_most(2_000))]
#[bench::each(declared())]
fn build(app: SupervisorBuilder) -> Supervisor {
    app.build().expect("a tree")
}

// One declared child, or one supervisor of a chain.
#[library_benchmark]
#[bench::child(args = (declared().build()), config = at_most(5_500))]
#[bench::supervisor(args = (chain().build()), config = at_most(34_300))]
fn start(app: Result<Supervisor, BuildError>) -> Running {
    Running::start(app)
}

#[library_benchmark(config = at_most(11_450))]
#[bench::each(dynamic())]
fn start_child(running: Running) -> Running {
    running.runtime.block_on(start_children(&running.tree));
    running
}

// One declared child in order, one child of a dynamic supervisor, or one supervisor of a chain.
#[library_benchmark]
#[bench::child(args = (Running::start(declared().build())), config = at_most(8_850))]
#[bench::dynamic(args = (full()), config = at_most(8_500))]
#[bench::supervisor(args = (Running::start(chain().build())), config = at_most(25_900))]
fn stop(running: Running) -> Running {
    running.runtime.block_on(running.tree.stop("done")).expect("it stops");
    running
}

async fn terminate_each(conns: &SupervisorHandle) {
    for number in 1..=EVENTS {
        conns.stop_child(&format!("conn#{number}")).await.expect("it runs");
    }
}

#[library_benchmark(config = at_most(17_200))]
#[bench::each(full())]
fn terminate_child(running: Running) -> Running {
    running.runtime.block_on(terminate_each(&running.tree));
    running
}

// --- Failures ------------------------------------------------------------------------------------

/// A child that fails in its first incarnations.
fn flaky(fail: fn() -> Exit, backoff: Backoff) -> Result<Supervisor, BuildError> {
    let flaky = worker_with("flaky", fail, async |ctx: Context, fail| -> Exit {
        if ctx.incarnation() <= EVENTS {
            return fail();
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app").unlimited_restarts();
    app.random(|| fastrand::Rng::with_seed(1)).child(flaky.backoff(backoff)).build()
}

fn error() -> Exit {
    Err("connection refused".into())
}

fn panicking() -> Result<Supervisor, BuildError> {
    panic::set_hook(Box::new(|_| {}));
    flaky(|| panic!("out of luck"), Backoff::none())
}

fn group() -> Running {
    let app = declared().strategy(Strategy::OneForAll);
    Running::start(app.defaults(|child| child.backoff(Backoff::none())).build())
}

/// Longer than all backoffs together.
async fn wait() {
    sleep(Duration::from_secs(1) * 2 * EVENTS).await;
}

// From an exit until the next incarnation has started.
#[library_benchmark]
#[bench::error(args = (flaky(error, Backoff::none())), config = at_most(9_600))]
#[bench::panic(args = (panicking()), config = at_most(51_200))]
#[bench::backoff(
    args = (flaky(
        error,
        Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1)).jitter(0.0)
    )),
    config = at_most(17_200)
)]
fn restart(app: Result<Supervisor, BuildError>) -> Running {
    let running = Running::start(app);
    running.runtime.block_on(wait());
    assert_eq!(running.incarnation("flaky"), EVENTS + 1);
    running
}

async fn kill_one(tree: &SupervisorHandle) {
    tree.kill("worker-0").await.expect("it runs");
    settle().await;
}

// One child of the group.
#[library_benchmark(config = at_most(13_100))]
#[bench::each(group())]
fn restart_one_for_all(running: Running) -> Running {
    running.runtime.block_on(kill_one(&running.tree));
    assert_eq!(running.incarnation(&name(EVENTS - 1)), 2);
    running
}

// --- Messages ------------------------------------------------------------------------------------

enum Message {
    Work(u32),
    Question(Reply<u32>),
}

/// A child that answers a question with the sum of its work.
fn reader(capacity: usize) -> (Running, Address<Message>) {
    let (address, mailbox) = mailbox_with_capacity::<Message>(capacity);
    let spec = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
        let mut sum = 0;
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Work(number) => sum += number,
                Message::Question(reply) => Reply::send(&reply, sum),
            }
        }
        Ok(())
    });
    (Running::start(Supervisor::builder("app").child(spec).build()), address)
}

async fn send_each(address: &Address<Message>) -> Result<u32, AskError> {
    for number in 0..EVENTS {
        address.send(Message::Work(number)).await.expect("it is read");
    }
    settle().await;
    address.ask(Message::Question).await
}

// One message, sent and received. With a capacity of 1, most sends wait.
#[library_benchmark]
#[bench::roomy(args = (reader(EVENTS as usize + 1)), config = at_most(900))]
#[bench::full(args = (reader(1)), config = at_most(2_930))]
fn message((running, address): (Running, Address<Message>)) -> Running {
    let sum = running.runtime.block_on(send_each(&address));
    assert_eq!(sum, Ok(EVENTS * (EVENTS - 1) / 2));
    running
}

async fn ask_each(address: &Address<Message>) {
    for _ in 0..EVENTS {
        address.ask(Message::Question).await.expect("an answer");
    }
}

// One question with its answer.
#[library_benchmark(config = at_most(2_850))]
#[bench::each(reader(64))]
fn ask((running, address): (Running, Address<Message>)) -> Running {
    running.runtime.block_on(ask_each(&address));
    running
}

// --- Calls ---------------------------------------------------------------------------------------

/// A tree of a thousand children, and their names.
fn with_names(app: SupervisorBuilder) -> (Running, Vec<String>) {
    (Running::start(app.build()), (0..EVENTS).map(name).collect())
}

async fn which_each(tree: &SupervisorHandle, names: &[String]) {
    for name in names {
        tree.which_child(name).await.expect("it exists");
    }
}

// One call for one of a thousand children.
#[library_benchmark(config = at_most(7_800))]
#[bench::each(with_names(declared()))]
fn which_child((running, names): (Running, Vec<String>)) -> Running {
    running.runtime.block_on(which_each(&running.tree, &names));
    running
}

fn supervisors() -> SupervisorBuilder {
    let children = (0..EVENTS).map(|number| DynamicSupervisor::builder(name(number)));
    children.fold(Supervisor::builder("app"), SupervisorBuilder::child)
}

async fn look_up_each(tree: &SupervisorHandle, names: &[String]) {
    for name in names {
        tree.supervisor(name).await.expect("it runs");
    }
}

// One lookup of a supervisor by its path.
#[library_benchmark(config = at_most(1_360))]
#[bench::each(with_names(supervisors()))]
fn lookup((running, names): (Running, Vec<String>)) -> Running {
    running.runtime.block_on(look_up_each(&running.tree, &names));
    running
}

// One child of the snapshot.
#[library_benchmark(config = at_most(2_850))]
#[bench::each(Running::start(declared().build()))]
fn status(running: Running) -> (Running, Status) {
    let status = running.runtime.block_on(running.tree.status()).expect("it runs");
    assert_eq!(status.root.children.len(), EVENTS as usize);
    (running, status)
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [
        build,
        start,
        start_child,
        stop,
        terminate_child,
        restart,
        restart_one_for_all,
        message,
        ask,
        which_child,
        lookup,
        status
    ]
);

main!(library_benchmark_groups = hot_paths);
