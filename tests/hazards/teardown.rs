//! Trees that are dropped, aborted or left without a runtime instead of being stopped.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::runtime::{self, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use verger::{
    Application, Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Readiness,
    RunError, Shutdown, Supervisor, SupervisorHandle, worker, worker_with,
};

use crate::common::settle;

const SECOND: Duration = Duration::from_secs(1);

/// The dropped children, and a handle to the tree once it runs.
#[derive(Clone)]
struct Watch {
    dropped: mpsc::Sender<String>,
    began: Arc<Mutex<usize>>,
    handle: Arc<Mutex<Option<SupervisorHandle>>>,
}

struct Guard(mpsc::Sender<String>, String);

impl Drop for Guard {
    fn drop(&mut self) {
        // The receiver is gone if the test has failed.
        let _ = self.0.send(self.1.clone());
    }
}

impl Watch {
    fn new() -> (Self, mpsc::Receiver<String>) {
        let (dropped, drops) = mpsc::channel();
        (Self { dropped, began: Arc::default(), handle: Arc::default() }, drops)
    }

    /// A child that ignores its cancellation.
    fn ignores_cancellation(&self, name: &str) -> ChildSpec {
        let spec = worker_with(name, self.clone(), async |ctx: Context, watch| -> Exit {
            let _guard = Guard(watch.dropped.clone(), ctx.path().to_string());
            if ctx.path().as_str() == "app/a" {
                *watch.handle.lock().unwrap() = Some(ctx.parent());
            }
            *watch.began.lock().unwrap() += 1;
            pending().await
        });
        spec.shutdown(Shutdown::Infinity)
    }

    /// A tree with four workers on three levels, one waiting child, and an empty dynamic
    /// supervisor.
    fn tree(&self) -> Supervisor {
        let failing = worker("failing", async |_ctx: Context| -> Exit { Err("no".into()) });
        let low = Supervisor::builder("low").child(self.ignores_cancellation("c"));
        Supervisor::builder("app")
            .child(self.ignores_cancellation("a"))
            .child(Supervisor::builder("mid").child(self.ignores_cancellation("b")).child(low))
            .child(failing.backoff(Backoff::constant(1000 * SECOND)))
            .child(DynamicSupervisor::builder("conns"))
            .build()
            .unwrap()
    }

    fn handle(&self) -> SupervisorHandle {
        self.handle.lock().unwrap().clone().unwrap()
    }
}

const ALL: [&str; 4] = ["app/a", "app/conns/d#1", "app/mid/b", "app/mid/low/c"];

/// Returns the dropped children; waits until all are dropped.
fn all_dropped(drops: &mpsc::Receiver<String>) -> Vec<String> {
    let patience = Duration::from_secs(30);
    let mut names: Vec<_> = ALL.iter().map_while(|_| drops.recv_timeout(patience).ok()).collect();
    names.sort();
    names
}

/// Starts calls that are answered only by the end of the tree.
fn callers(handle: &SupervisorHandle) -> JoinHandle<Answers> {
    let handle = handle.clone();
    tokio::spawn(async move {
        let calls = async {
            let (stuck, below) =
                tokio::join!(handle.stop_child("a"), handle.stop_child("mid/low/c"),);
            vec![stuck, below]
        };
        tokio::join!(handle.wait(), calls)
    })
}

/// The result of `wait`, and the results of the calls.
type Answers = (Result<(), RunError>, Vec<Result<(), ControlError>>);

fn check((end, calls): Answers) {
    assert_eq!(end.unwrap_err().to_string(), "`app` was aborted");
    for answer in calls {
        // On several threads, the child may exit just before its supervisor. Then its termination
        // succeeds.
        let Err(error) = answer else { continue };
        assert!(
            matches!(error, ControlError::Ended { .. } | ControlError::NotRunning { .. }),
            "{error}"
        );
    }
}

/// Runs the tree in `run`, ends it with `end`, and checks that every child is gone.
async fn torn_down<F>(run: impl FnOnce(Supervisor) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (watch, drops) = Watch::new();
    let user = tokio::spawn(run(watch.tree()));
    settle().await;
    let handle = watch.handle();
    let conns = handle.supervisor("conns").await.unwrap();
    conns.start_child(watch.ignores_cancellation("d")).await.unwrap();
    let callers = callers(&handle);
    settle().await;
    assert!(drops.try_recv().is_err());

    let began = Instant::now();
    user.abort();
    assert!(user.await.unwrap_err().is_cancelled());
    check(callers.await.unwrap());
    settle().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "no child was given a grace");
    assert_eq!(all_dropped(&drops), ALL);
    let error = handle.status().await.unwrap_err();
    assert_eq!(error.to_string(), "`app` has ended");
}

#[tokio::test(start_paused = true)]
async fn aborting_the_task_that_runs_a_tree_aborts_every_child() {
    torn_down(async |tree: Supervisor| drop(tree.run().await)).await;
    torn_down(async |tree: Supervisor| drop(tree.await)).await;
    torn_down(async |tree: Supervisor| drop(tree.with_graceful_shutdown(pending::<()>()).await))
        .await;
    torn_down(async |tree: Supervisor| {
        let app = Application::new(tree).listen_to_signals(false);
        app.exit_grace(Duration::MAX).run().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_that_runs_a_tree_aborts_every_child() {
    let (watch, drops) = Watch::new();
    let run = watch.tree().run();
    assert!(timeout(SECOND, run).await.is_err());
    settle().await;
    let names: Vec<_> = drops.try_iter().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    check((watch.handle().wait().await, vec![]));

    // A future that was never polled hasn't started its tree.
    let (watch, drops) = Watch::new();
    drop(watch.tree().run());
    drop(watch.tree());
    settle().await;
    assert!(watch.handle.lock().unwrap().is_none());
    assert!(drops.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_start_of_a_tree_aborts_every_child() {
    let (watch, drops) = Watch::new();
    let never = worker("never", async |ctx: Context| ctx.cancelled().await);
    let tree = Supervisor::builder("app")
        .child(watch.ignores_cancellation("a"))
        .child(never.readiness(Readiness::Signal))
        .child(watch.ignores_cancellation("b"));
    assert!(timeout(SECOND, tree.build().unwrap().start()).await.is_err());
    settle().await;
    assert_eq!(drops.try_iter().collect::<Vec<_>>(), ["app/a"]);
    check((watch.handle().wait().await, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_started_tree_outlives_the_task_that_started_it() {
    let (watch, drops) = Watch::new();
    let tree = watch.tree();
    tokio::spawn(async move { drop(tree.start().await) }).await.unwrap();
    sleep(1000 * SECOND).await;
    assert!(drops.try_recv().is_err());
    assert_eq!(watch.handle().otp().count_children().await.unwrap().specs, 4);
}

/// Starts the tree on its own runtime, shuts that runtime down, and checks that every child is
/// gone.
fn without_runtime(mut builder: runtime::Builder, end: impl FnOnce(Runtime)) {
    let (watch, drops) = Watch::new();
    let own = builder.enable_all().build().unwrap();
    let handle = own.block_on(async {
        let handle = watch.tree().start().await.unwrap();
        let conns = handle.supervisor("conns").await.unwrap();
        conns.start_child(watch.ignores_cancellation("d")).await.unwrap();
        while *watch.began.lock().unwrap() < ALL.len() {
            tokio::task::yield_now().await;
        }
        handle
    });
    let other = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let callers = {
        let _guard = other.enter();
        callers(&handle)
    };
    other.block_on(settle());
    end(own);
    assert_eq!(all_dropped(&drops), ALL);
    check(other.block_on(callers).unwrap());
    let late = other.block_on(handle.status()).unwrap_err();
    assert_eq!(late.to_string(), "`app` has ended");
    let late = other.block_on(handle.stop("too late")).unwrap_err();
    assert_eq!(late.to_string(), "`app` was aborted");
}

#[test]
fn ending_the_runtime_aborts_every_child_and_answers_every_caller() {
    let threads = || {
        let mut builder = runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    };
    without_runtime(runtime::Builder::new_current_thread(), drop);
    without_runtime(runtime::Builder::new_current_thread(), Runtime::shutdown_background);
    without_runtime(threads(), drop);
    without_runtime(threads(), Runtime::shutdown_background);
    without_runtime(threads(), |own| own.shutdown_timeout(SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_wait_through_a_childs_context_ends_when_the_tree_is_dropped() {
    let (tx, rx) = mpsc::channel();
    let child = worker_with("child", tx, async |ctx: Context, tx: mpsc::Sender<()>| -> Exit {
        let cancelled = ctx.cancelled();
        #[expect(clippy::disallowed_methods, reason = "a task outside of every supervisor")]
        tokio::spawn(async move {
            cancelled.await;
            tx.send(()).unwrap();
        });
        drop(ctx);
        pending().await
    });
    let app = Supervisor::builder("app").child(child).build().unwrap();
    assert!(timeout(SECOND, app.run()).await.is_err());
    settle().await;
    assert_eq!(rx.try_recv(), Ok(()));
}
