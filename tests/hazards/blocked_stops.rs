//! Children that block a worker thread when they are cancelled or aborted.
//!
//! As long as one worker thread is free, such children are reported as leaked in time, and other
//! tasks run. On a runtime of N workers, N - 1 children block here until both were seen: all leaks,
//! and a hundred ticks of a timer of another task. Where one of them is missing, the test fails after [`PATIENCE`].

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use verger::status::EventKind;
use verger::{
    Application, Backoff, ChildSpec, Context, Exit, Readiness, RunError, Shutdown, Strategy,
    Supervisor, SupervisorBuilder, SupervisorHandle, worker, worker_with,
};

/// How long a test waits for stops and ticks that take less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

const TICKS: usize = 100;
const TICK: Duration = Duration::from_millis(4);

/// Blocks threads until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    blocked: AtomicUsize,
}

impl Gate {
    fn block(&self) {
        self.blocked.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Where a child blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    /// In code behind `cancelled().await`.
    Code,
    /// In the `Drop` of a value, when its task is aborted.
    Drop,
}

/// Blocks once, at the latest when it is dropped.
struct Blocker(Option<Arc<Gate>>);

impl Blocker {
    fn block(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.block();
        }
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        self.block();
    }
}

/// A child whose first incarnation blocks when it is stopped.
fn blocks(name: String, place: In, gate: &Arc<Gate>) -> ChildSpec {
    worker_with(name, (place, Arc::clone(gate)), async |ctx: Context, (place, gate)| -> Exit {
        // A child that is aborted before it sees that it is cancelled blocks as well.
        let mut blocker = Blocker((ctx.incarnation() == 1).then_some(gate));
        ctx.ready();
        ctx.cancelled().await;
        match place {
            In::Code => blocker.block(),
            In::Drop => pending().await,
        }
        Ok(())
    })
    .readiness(Readiness::Signal)
    .backoff(Backoff::none())
    .shutdown(match place {
        In::Code => Shutdown::Timeout(Duration::from_millis(1)),
        In::Drop => Shutdown::BrutalKill,
    })
}

fn name(number: usize) -> String {
    format!("blocks-{number}")
}

/// Resolves when all workers are parked but the one that goes on: it was at the timers, and nothing is
/// there now.
async fn idle() {
    tokio::time::sleep(TICK * 3 / 2).await;
}

/// Stops a tree of these children in some way, from a task. Resolves when so many have leaked.
type Stops = fn(Vec<ChildSpec>, usize) -> JoinHandle<()>;

fn app(children: Vec<ChildSpec>) -> SupervisorBuilder {
    let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(1));
    children.into_iter().fold(app.unlimited_restarts(), |app, child| app.child(child))
}

async fn start(app: SupervisorBuilder) -> SupervisorHandle {
    app.build().unwrap().start().await.unwrap()
}

fn expect_leaks(result: Result<(), RunError>, count: usize) {
    let error = result.unwrap_err();
    let RunError::Forced { leaked: children, .. } = &error else { panic!("{error}") };
    assert_eq!(children.len(), count, "{error}");
}

async fn see_leaks(app: &SupervisorHandle, count: usize) {
    let mut events = app.events();
    let mut leaked = 0;
    while leaked < count {
        let event = events.next().await.expect("the tree runs");
        leaked += usize::from(matches!(event.kind, EventKind::Leaked));
    }
}

fn by_stop(children: Vec<ChildSpec>, count: usize) -> JoinHandle<()> {
    tokio::spawn(async move {
        let app = start(app(children)).await;
        idle().await;
        expect_leaks(app.stop("done").await, count);
    })
}

fn by_graceful_shutdown(children: Vec<ChildSpec>, count: usize) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (up, is_up) = oneshot::channel();
        let last = worker_with("last", Arc::new(Mutex::new(Some(up))), async |ctx: Context, up| {
            let up: Arc<Mutex<Option<oneshot::Sender<()>>>> = up;
            if let Some(up) = up.lock().unwrap().take() {
                up.send(()).unwrap();
            }
            ctx.cancelled().await;
        });
        let tree = app(children).child(last).build().unwrap();
        let up = async {
            is_up.await.unwrap();
            idle().await;
        };
        expect_leaks(tree.with_graceful_shutdown(up).await, count);
    })
}

fn by_terminate_child(children: Vec<ChildSpec>, count: usize) -> JoinHandle<()> {
    tokio::spawn(async move {
        let app = start(app(children)).await;
        let leaks = see_leaks(&app, count);
        let calls = async {
            idle().await;
            for number in 0..count {
                app.stop_child(&name(number)).await.unwrap();
            }
        };
        tokio::join!(leaks, calls);
        // What is left is released with the gate.
        std::mem::forget(app);
    })
}

fn by_group_restart(children: Vec<ChildSpec>, count: usize) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (fail, failure) = oneshot::channel::<()>();
        let failure = Arc::new(Mutex::new(Some(failure)));
        let fails = worker_with("fails", failure, async |ctx: Context, failure| -> Exit {
            let failure: Option<oneshot::Receiver<()>> = failure.lock().unwrap().take();
            match failure {
                Some(failure) => {
                    failure.await?;
                    Err("on purpose".into())
                }
                None => {
                    ctx.cancelled().await;
                    Ok(())
                }
            }
        });
        let app = start(app(children).strategy(Strategy::OneForAll).child(fails)).await;
        let leaks = see_leaks(&app, count);
        idle().await;
        fail.send(()).unwrap();
        leaks.await;
        std::mem::forget(app);
    })
}

/// Opens the gate, also if the test fails: the end of a runtime waits for its threads.
struct OpensOnDrop(Arc<Gate>);

impl Drop for OpensOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn stops_in_time(workers: usize, place: In, quick: usize, stops: Stops) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build().unwrap();
    let (ticked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Gate::default()));
    let _opens = OpensOnDrop(Arc::clone(&gate));
    let blocking = workers - 1;
    let mut children = Vec::new();
    for number in 0..blocking {
        children.push(blocks(name(number), place, &gate));
        children.extend((0..quick).map(|it| {
            worker(format!("quick-{number}-{it}"), async |ctx: Context| ctx.cancelled().await)
        }));
    }
    let (done, is_done) = mpsc::channel();
    let stopped = done.clone();
    runtime.spawn({
        let (gate, ticked) = (Arc::clone(&gate), Arc::clone(&ticked));
        async move {
            let mut timer = tokio::time::interval(TICK);
            while ticked.load(Ordering::SeqCst) < TICKS {
                timer.tick().await;
                let blocked = gate.blocked.load(Ordering::SeqCst) == blocking;
                ticked.fetch_add(usize::from(blocked), Ordering::SeqCst);
            }
            let _ = done.send("ticks");
        }
    });
    runtime.spawn(async move {
        stops(children, blocking).await.unwrap();
        let _ = stopped.send("stops");
    });
    let mut seen = Vec::new();
    while seen.len() < 2 {
        // From this thread: the timers of the runtime may stand still.
        let next = is_done.recv_timeout(PATIENCE);
        seen.push(next.unwrap_or_else(|_| {
            let (blocked, ticks) = (&gate.blocked, ticked.load(Ordering::SeqCst));
            panic!(
                "{workers} workers, {place:?}: only {seen:?} within {PATIENCE:?}; {blocked:?} of {blocking} block, \
                 {ticks} ticks"
            )
        }));
    }
}

/// With `quick` children behind each that blocks. They stop at once, and the last one's exit cancels it.
fn stop_in_all_places(stops: Stops) {
    for workers in [2, 4, 8] {
        for (place, quick) in [(In::Code, 0), (In::Code, 2), (In::Drop, 0)] {
            stops_in_time(workers, place, quick, stops);
        }
    }
}

#[test]
fn a_child_that_blocks_in_a_stop_blocks_nothing_else() {
    stop_in_all_places(by_stop);
}

#[test]
fn a_child_that_blocks_in_a_graceful_shutdown_blocks_nothing_else() {
    stop_in_all_places(by_graceful_shutdown);
}

#[test]
fn a_child_that_blocks_when_it_is_terminated_blocks_nothing_else() {
    stop_in_all_places(by_terminate_child);
}

#[test]
fn a_child_that_blocks_in_a_group_restart_blocks_nothing_else() {
    stop_in_all_places(by_group_restart);
}

/// A child that blocks its thread when it is cancelled, after it has woken another child there.
fn blocked_beside(gate: &Arc<Gate>) -> SupervisorBuilder {
    let woken = Arc::new(Notify::new());
    let waiting = Arc::clone(&woken);
    let innocent = worker_with("innocent", waiting, async |ctx: Context, woken: Arc<Notify>| {
        woken.notified().await;
        ctx.cancelled().await;
    });
    let shared = (woken, Arc::clone(gate));
    let blocks = worker_with("blocks", shared, async |ctx: Context, shared| {
        let (woken, gate): (Arc<Notify>, Arc<Gate>) = shared;
        ctx.cancelled().await;
        // In the slot for the next task of this thread, which no other thread takes.
        woken.notify_one();
        gate.block();
    });
    let grace = Shutdown::Timeout(Duration::from_millis(20));
    let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(20));
    app.child(innocent.shutdown(grace)).child(blocks.shutdown(grace))
}

type Ends = fn(SupervisorBuilder) -> JoinHandle<Result<(), RunError>>;

#[test]
fn a_child_that_waits_for_a_blocked_thread_has_leaked_by_no_way_to_stop() {
    let by_run_to_end: Ends = |app| {
        let app = Application::new(app).listen_to_signals(false).stop_on(idle());
        tokio::spawn(app.run_to_end())
    };
    let unwatched: Ends = |app| {
        let app = Application::new(app.self_check(false)).listen_to_signals(false);
        tokio::spawn(app.stop_on(idle()).run_to_end())
    };
    let by_graceful_shutdown: Ends = |app| {
        let tree = app.build().unwrap();
        tokio::spawn(async move { tree.with_graceful_shutdown(idle()).await })
    };
    let by_stop: Ends = |app| {
        let app = app.stop_deadline(Duration::from_secs(60));
        tokio::spawn(async move {
            let tree = start(app).await;
            idle().await;
            tree.stop("done").await
        })
    };
    let by_wait: Ends = |app| {
        let app = app.stop_deadline(Duration::from_secs(60));
        tokio::spawn(async move {
            let tree = start(app).await;
            idle().await;
            let stopping = tree.clone();
            tokio::spawn(async move { drop(stopping.stop("done").await) });
            tree.wait().await
        })
    };
    let ways = [by_run_to_end, unwatched, by_graceful_shutdown, by_stop, by_wait];
    for (number, way) in ways.into_iter().enumerate() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let gate = Arc::new(Gate::default());
        let _opens = OpensOnDrop(Arc::clone(&gate));
        let (done, is_done) = mpsc::channel();
        let app = blocked_beside(&gate);
        runtime.spawn(async move { done.send(way(app).await.unwrap()) });
        let result = is_done.recv_timeout(PATIENCE).expect("it stops");
        let Err(RunError::Forced { killed, leaked }) = result else {
            panic!("{number}: {result:?}")
        };
        let paths =
            [killed, leaked].map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(paths, [["app/innocent"], ["app/blocks"]], "{number}");
    }
}
