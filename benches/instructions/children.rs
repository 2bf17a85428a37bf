//! Children start, fail, are started again, and stop.

use std::panic;
use std::time::Duration;

use tokio::runtime::Runtime;
use verger::{
    Backoff, BuildError, Context, DynamicSupervisor, Exit, Strategy, Supervisor, SupervisorBuilder,
    SupervisorHandle, worker, worker_with,
};

use crate::{EVENTS, Scenario, counted, runtime, settle};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("build", "declared child", || count_build(declared())),
    Scenario::alone("start", "declared child", || count_start(declared())),
    Scenario::alone("start_child", "child of a dynamic supervisor", start_child),
    Scenario::alone("restart, error", "exit, until it runs again", restart_error),
    Scenario::alone("restart, panic", "exit, until it runs again", restart_panic),
    Scenario::alone("restart, one_for_all", "child of the group", restart_group),
    Scenario::alone("stop", "declared child, in order", || count_stop(declared())),
    Scenario::alone("stop, dynamic", "child, all at once", stop_dynamic),
    Scenario::alone("terminate_child", "child of a dynamic supervisor", terminate),
];

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

pub(crate) fn declared() -> SupervisorBuilder {
    let app = Supervisor::builder("app");
    (0..EVENTS).fold(app, |app, n| app.child(worker(format!("worker-{n}"), idle)))
}

pub(crate) fn started(runtime: &Runtime, app: Result<Supervisor, BuildError>) -> SupervisorHandle {
    runtime.block_on(async {
        let tree = app.expect("a tree").start().await.expect("it starts");
        settle().await;
        tree
    })
}

fn dynamic(runtime: &Runtime) -> SupervisorHandle {
    started(runtime, DynamicSupervisor::builder("conns").build())
}

async fn start_children(conns: &SupervisorHandle) {
    for _ in 0..EVENTS {
        conns.start_child(worker("conn", idle)).await.expect("it starts");
    }
    settle().await;
}

pub(crate) fn count_build(app: SupervisorBuilder) {
    let built = counted(&runtime(), async { app.build() });
    assert!(built.is_ok(), "a tree");
}

pub(crate) fn count_start(app: SupervisorBuilder) {
    let app = app.build().expect("a tree");
    let tree = counted(&runtime(), async {
        let tree = app.start().await;
        settle().await;
        tree
    });
    assert!(tree.is_ok(), "it starts");
}

fn start_child() {
    let runtime = runtime();
    let conns = dynamic(&runtime);
    counted(&runtime, start_children(&conns));
}

/// Fails at once, until all events have happened.
fn crash_loop(fail: fn() -> Exit) {
    let flaky = worker_with("flaky", fail, async |ctx: Context, fail| -> Exit {
        if ctx.incarnation() <= EVENTS {
            return fail();
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app")
        .restarts(2 * EVENTS, Duration::from_secs(60))
        .child(flaky.backoff(Backoff::none()));
    let app = app.build().expect("a tree");
    let runtime = runtime();
    let tree = counted(&runtime, async {
        let tree = app.start().await.expect("it starts");
        settle().await;
        tree
    });
    let child = runtime.block_on(tree.which_child("flaky")).expect("it is there");
    assert_eq!(child.incarnation, EVENTS + 1);
}

fn restart_error() {
    crash_loop(|| Err("connection refused".into()));
}

fn restart_panic() {
    panic::set_hook(Box::new(|_| {}));
    crash_loop(|| panic!("connection refused"));
}

fn restart_group() {
    let app = declared().strategy(Strategy::OneForAll);
    let runtime = runtime();
    let app = app.defaults(|child| child.backoff(Backoff::none()));
    let tree = started(&runtime, app.build());
    counted(&runtime, async {
        tree.kill_child("worker-0").await.expect("it runs");
        settle().await;
    });
    let last = format!("worker-{}", EVENTS - 1);
    let child = runtime.block_on(tree.which_child(&last)).expect("it is there");
    assert_eq!(child.incarnation, 2);
}

pub(crate) fn count_stop(app: SupervisorBuilder) {
    let runtime = runtime();
    let tree = started(&runtime, app.build());
    counted(&runtime, tree.stop("done")).expect("it stops");
}

fn stop_dynamic() {
    let runtime = runtime();
    let conns = dynamic(&runtime);
    runtime.block_on(start_children(&conns));
    counted(&runtime, conns.stop("done")).expect("it stops");
}

fn terminate() {
    let runtime = runtime();
    let conns = dynamic(&runtime);
    runtime.block_on(start_children(&conns));
    counted(&runtime, async {
        for n in 1..=EVENTS {
            conns.terminate_child(&format!("conn#{n}")).await.expect("it runs");
        }
    });
}
