//! What is done in person: on a runtime with several threads, whoever has something for a supervisor
//! takes its turn himself.
//!
//! It has one worker thread, so that nobody steals and each count is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::Notify;
use verger::{
    Backoff, BuildError, Context, DynamicSupervisor, Exit, Supervisor, SupervisorHandle,
    worker_with,
};

use crate::Scenario;
use crate::children::declared;

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::threads("start_child, threads", "child of a dynamic supervisor", start_child),
    Scenario::threads("restart, threads", "exit by an error, until it runs again", restart),
    Scenario::threads("which_child, threads", "call", which_child),
    Scenario::threads("count_children, threads", "call", count_children),
];

/// Ends the process with what the tree holds: to take it down is not what is counted.
fn run<F: Future<Output: Send> + Send + 'static>(
    app: Result<Supervisor, BuildError>,
    work: impl FnOnce(SupervisorHandle) -> F,
) {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let tree = app.expect("a tree").start().await.expect("it starts");
        tokio::spawn(work(tree)).await.expect("no panic");
    });
    std::process::exit(0);
}

/// How many runs there are to come, and who waits for the last.
struct Runs(AtomicU32, Notify);

impl Runs {
    fn of(n: u32) -> Arc<Self> {
        Arc::new(Self(n.into(), Notify::new()))
    }

    /// Whether this was the last.
    fn one(&self) -> bool {
        let last = self.0.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            self.1.notify_one();
        }
        last
    }
}

fn start_child(n: u32) {
    run(DynamicSupervisor::builder("conns").build(), async move |conns| {
        let runs = Runs::of(n);
        for _ in 0..n {
            let conn = worker_with("conn", Arc::clone(&runs), async |ctx: Context, runs| {
                Runs::one(&runs);
                ctx.cancelled().await;
            });
            conns.start_child(conn).await.expect("it starts");
        }
        runs.1.notified().await;
    });
}

fn restart(n: u32) {
    let runs = Runs::of(n + 1);
    let flaky = worker_with("flaky", Arc::clone(&runs), async |ctx: Context, runs| -> Exit {
        if !Runs::one(&runs) {
            return Err("connection refused".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app").restarts(2 * n, Duration::from_secs(3600));
    run(app.child(flaky.backoff(Backoff::none())).build(), async move |_app| {
        runs.1.notified().await;
    });
}

fn which_child(n: u32) {
    run(declared().build(), async move |app| {
        for _ in 0..n {
            app.which_child("worker-0").await.expect("it is there");
        }
    });
}

fn count_children(n: u32) {
    run(declared().build(), async move |app| {
        for _ in 0..n {
            app.count_children().await.expect("it runs");
        }
    });
}
