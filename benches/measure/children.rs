//! Idle children, and the runtime in which they run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use verger::{ChildSpec, Context, DynamicSupervisor, Supervisor, SupervisorHandle};

/// Counts the children of this process. Each measurement has a process of its own.
pub(crate) static STARTS: Starts = Starts::new();

/// The same number of worker threads on every machine.
const WORKERS: usize = 2;

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().expect("a runtime")
}

/// Nanoseconds for each of `n`.
pub(crate) fn nanos(took: Duration, n: u64) -> f64 {
    took.as_secs_f64() * 1e9 / n as f64
}

/// Counts children at their first instruction, and reports when the last one started.
#[derive(Debug)]
pub(crate) struct Starts {
    left: AtomicU64,
    last: Mutex<Option<oneshot::Sender<Instant>>>,
}

impl Starts {
    const fn new() -> Self {
        Self { left: AtomicU64::new(0), last: Mutex::new(None) }
    }

    /// Receives the time at which the last of the next `n` children started.
    pub(crate) fn expect(&self, n: u64) -> oneshot::Receiver<Instant> {
        let (last, all) = oneshot::channel();
        *self.last.lock().expect("no panic") = Some(last);
        self.left.store(n, Ordering::SeqCst);
        all
    }

    pub(crate) fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(last) = self.last.lock().expect("no panic").take()
        {
            let _ = last.send(Instant::now());
        }
    }
}

/// A child that waits until it is cancelled.
pub(crate) async fn idle(ctx: Context) {
    STARTS.count();
    ctx.cancelled().await;
}

pub(crate) fn name(number: u64) -> String {
    format!("child-{number}")
}

/// The same spec `n` times, each with a name of its own.
pub(crate) fn named(spec: ChildSpec, n: u64) -> impl Iterator<Item = ChildSpec> {
    (0..n).map(move |number| spec.clone().named(name(number)))
}

/// A running tree with one dynamic supervisor, and that supervisor's handle.
pub(crate) async fn dynamic() -> [SupervisorHandle; 2] {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
    let app = Supervisor::builder("app").child(conns).build().expect("a tree");
    let tree = app.start().await.expect("it starts");
    let conns = tree.supervisor("conns").await.expect("it runs");
    [tree, conns]
}

/// Starts a tree on a worker thread.
pub(crate) fn spawn_start(app: Supervisor) {
    tokio::spawn(async { app.start().await.expect("it starts") });
}

/// Runs `work` on a runtime of its own. A child that hasn't ended is left behind.
pub(crate) fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = runtime();
    let value = runtime.block_on(work);
    runtime.shutdown_background();
    value
}
