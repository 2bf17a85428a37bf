//! Bounds that hold while a child blocks the worker thread that drives tokio's timers.
//!
//! tokio advances its timers while a worker thread is parked on them. A task that a timer has woken runs on
//! exactly this thread, so each blocker here sleeps first. What blocks is released by what follows from the bound
//! under test, so a bound that doesn't hold leaves it blocked. Then the test fails after [`PATIENCE`], and names
//! what didn't happen.

use std::future::pending;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::sleep;
use verger::app::{Stage, StopStages, hook};
use verger::{
    Application, Backoff, Child, ChildSpec, Context, Exit, HealthCheck, Readiness, Shutdown,
    Supervisor, SupervisorBuilder, SupervisorHandle, async_trait, child, worker, worker_with,
};

/// How long the test waits for something that takes less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// The bound under test.
const BOUND: Duration = Duration::from_millis(50);

/// Blocks a thread until it is released, at the latest when the test has failed.
#[derive(Clone)]
struct Gate {
    release: Sender<()>,
    released: Arc<Mutex<Receiver<()>>>,
    blocks: Sender<()>,
}

impl Gate {
    /// Returns a gate, and what receives a message when something blocks.
    fn new() -> (Self, Receiver<()>) {
        let ((release, released), (blocks, blocked)) = (mpsc::channel(), mpsc::channel());
        (Self { release, released: Arc::new(Mutex::new(released)), blocks }, blocked)
    }

    /// Blocks the thread that drives the timers.
    async fn block(&self) {
        sleep(Duration::from_millis(10)).await;
        let _ = self.blocks.send(());
        let _ = self.released.lock().unwrap().recv_timeout(2 * PATIENCE);
    }

    fn release(&self) {
        let _ = self.release.send(());
    }
}

/// How a tree is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Start,
    Run,
    RunToEnd,
    GracefulShutdown,
    ApplicationRun,
}

const ENTRIES: [Entry; 5] =
    [Entry::Start, Entry::Run, Entry::RunToEnd, Entry::GracefulShutdown, Entry::ApplicationRun];

impl Entry {
    /// Runs a tree in a task. `stop` stops it. Returns what receives its end.
    fn run(
        self,
        runtime: &Runtime,
        app: SupervisorBuilder,
        stop: oneshot::Receiver<()>,
        change: fn(Application) -> Application,
    ) -> Receiver<()> {
        let (sender, ended) = mpsc::channel();
        let stop = async {
            let _ = stop.await;
        };
        runtime.spawn(async move {
            let stages = StopStages::new([Stage::Polite(BOUND)]);
            let application = |app: SupervisorBuilder| {
                let app = Application::new(app).listen_to_signals(false).stages(stages);
                change(app.exit_grace(Duration::MAX))
            };
            match self {
                Self::Start => {
                    let app = app.stop_deadline(BOUND).build().unwrap().start().await.unwrap();
                    stop.await;
                    let _ = app.stop("done").await;
                }
                Self::Run => {
                    let (up, handle) = oneshot::channel::<SupervisorHandle>();
                    let up = Arc::new(Mutex::new(Some(up)));
                    let shows = worker_with("shows", up, async |ctx: Context, up| {
                        let up: Arc<Mutex<Option<oneshot::Sender<SupervisorHandle>>>> = up;
                        if let Some(up) = up.lock().unwrap().take() {
                            let _ = up.send(ctx.parent());
                        }
                        ctx.cancelled().await;
                    });
                    let tree = app.stop_deadline(BOUND).child(shows).build().unwrap();
                    let stops = tokio::spawn(async {
                        let app = handle.await.unwrap();
                        stop.await;
                        let _ = app.stop("done").await;
                    });
                    let _ = tree.run().await;
                    stops.abort();
                }
                Self::RunToEnd => {
                    let _ = application(app).stop_on(stop).run_to_end().await;
                }
                Self::GracefulShutdown => {
                    let _ = app.build().unwrap().with_graceful_shutdown(stop).await;
                }
                Self::ApplicationRun => {
                    application(app).stop_on(stop).run().await;
                }
            }
            let _ = sender.send(());
        });
        ended
    }
}

/// A tree whose children leak soon.
fn app(blocker: ChildSpec) -> SupervisorBuilder {
    Supervisor::builder("app").leak_timeout(BOUND).unlimited_restarts().child(blocker)
}

#[track_caller]
fn wait_for<T>(what: &str, entry: Entry, workers: usize, receiver: &Receiver<T>) -> T {
    let received = receiver.recv_timeout(PATIENCE);
    received.unwrap_or_else(|_| {
        panic!("{entry:?}, {workers} workers: {what} didn't happen within {PATIENCE:?}")
    })
}

/// Runs a tree at each entry point, on 2 and on 4 worker threads, all at the same time.
fn on_each_entry(entries: &[Entry], test: fn(Entry, usize, &Runtime)) {
    thread::scope(|scope| {
        for &entry in entries {
            for workers in [2, 4] {
                scope.spawn(move || {
                    let mut runtime = tokio::runtime::Builder::new_multi_thread();
                    let runtime = runtime.worker_threads(workers).enable_all().build().unwrap();
                    // The end of a runtime waits for its threads, also for those that are blocked.
                    let runtime = Background(Some(runtime));
                    test(entry, workers, runtime.0.as_ref().unwrap());
                });
            }
        }
    });
}

/// Doesn't wait for the threads of a runtime.
struct Background(Option<Runtime>);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a tree in which the first incarnation of a child blocks, until the second one releases it.
fn is_restarted(entry: Entry, workers: usize, runtime: &Runtime, blocker: fn(Gate) -> ChildSpec) {
    let (gate, blocked) = Gate::new();
    let (stop, stopped) = oneshot::channel();
    let ended = entry.run(runtime, app(blocker(gate.clone())), stopped, |app| app);
    wait_for("the block", entry, workers, &blocked);
    // The second incarnation has released the first one, and blocks nothing.
    wait_for("the restart", entry, workers, &blocked);
    stop.send(()).unwrap();
    wait_for("the end", entry, workers, &ended);
}

/// The function of a child that is restarted.
async fn blocks_once(ctx: Context, gate: Gate) {
    if ctx.incarnation() == 1 {
        gate.block().await;
    } else {
        gate.release();
        let _ = gate.blocks.send(());
        let _waiting = ctx.waiting();
        ctx.cancelled().await;
    }
}

#[test]
fn a_watchdog_finds_a_child_that_blocks_the_timers() {
    on_each_entry(&ENTRIES, |entry, workers, runtime| {
        is_restarted(entry, workers, runtime, |gate| {
            let child = worker_with("blocker", gate, blocks_once).backoff(Backoff::none());
            child.watchdog(BOUND).shutdown(BOUND)
        });
    });
}

#[test]
fn a_watchdog_finds_a_child_that_blocks_right_after_it_has_signalled() {
    on_each_entry(&ENTRIES, |entry, workers, runtime| {
        is_restarted(entry, workers, runtime, |gate| {
            let child = worker_with("blocker", gate, async |ctx: Context, gate: Gate| {
                sleep(Duration::from_millis(10)).await;
                // Wakes the supervisor, whose task stays with this thread.
                ctx.ready();
                if ctx.incarnation() == 1 {
                    let _ = gate.blocks.send(());
                    let _ = gate.released.lock().unwrap().recv_timeout(2 * PATIENCE);
                }
                blocks_once(ctx, gate).await;
            });
            let child = child.readiness(Readiness::Signal).backoff(Backoff::none());
            child.watchdog(BOUND).shutdown(BOUND)
        });
    });
}

#[test]
fn a_health_check_restarts_a_child_that_blocks_the_timers() {
    on_each_entry(&ENTRIES, |entry, workers, runtime| {
        is_restarted(entry, workers, runtime, |gate| {
            let check = HealthCheck::new(async |ctx: Context| match ctx.incarnation() {
                1 => Err("no answer"),
                _ => Ok(()),
            });
            let child = worker_with("blocker", gate, blocks_once).backoff(Backoff::none());
            child.health_check(check.every(BOUND).failures(1).restarts()).shutdown(BOUND)
        });
    });
}

/// Blocks in its first activation.
#[derive(Clone)]
struct Activates(Gate);

#[async_trait]
impl Child for Activates {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() == 1 {
            self.0.block().await;
            pending().await
        }
        self.0.release();
        let _ = self.0.blocks.send(());
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

#[test]
fn an_activation_that_blocks_the_timers_times_out() {
    on_each_entry(&ENTRIES, |entry, workers, runtime| {
        is_restarted(entry, workers, runtime, |gate| {
            let blocker = child("blocker", move || Activates(gate.clone()));
            blocker.activation_timeout(BOUND).shutdown(BOUND).backoff(Backoff::none())
        });
    });
}

#[test]
fn a_hook_that_blocks_the_timers_is_given_up_after_its_bound() {
    let entries = [Entry::RunToEnd, Entry::ApplicationRun];
    on_each_entry(&entries, |entry, workers, runtime| {
        let (stop, stopped) = oneshot::channel();
        stop.send(()).unwrap();
        let calm = worker("calm", async |ctx: Context| ctx.cancelled().await);
        let ended = entry.run(runtime, app(calm), stopped, |app| {
            let (gate, _) = Gate::new();
            let blocks = hook("blocks", async move |_cause| gate.block().await);
            app.before_stop(blocks.within(BOUND))
        });
        wait_for("the end", entry, workers, &ended);
    });
}

#[test]
fn a_stop_ends_within_its_bound_beside_a_child_that_blocks_the_timers() {
    on_each_entry(&ENTRIES, |entry, workers, runtime| {
        let (gate, blocked) = Gate::new();
        let (stop, stopped) = oneshot::channel();
        let blocker = worker_with("blocker", gate.clone(), async |ctx: Context, gate: Gate| {
            gate.block().await;
            ctx.cancelled().await;
        });
        // Its stages can't be set, and take longer.
        let grace = match entry {
            Entry::GracefulShutdown => Shutdown::Timeout(BOUND),
            _ => Shutdown::Infinity,
        };
        let ended = entry.run(runtime, app(blocker.shutdown(grace)), stopped, |app| app);
        wait_for("the block", entry, workers, &blocked);
        stop.send(()).unwrap();
        wait_for("the end", entry, workers, &ended);
        gate.release();
    });
}
