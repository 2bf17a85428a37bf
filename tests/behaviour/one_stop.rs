//! One stop: whoever requests it, the tree stops in the same way, and the result names the children that had to be
//! forced.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::app::memory::{MemoryGuard, MemoryUsage};
use verger::app::{Stage, StopStages};
use verger::{
    Application, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, RunError, Shutdown,
    Strategy, Supervisor, SupervisorBuilder, worker,
};

use crate::application::{Diary, assert_code};
use crate::common::settle;
use crate::log::Log;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Who stops an application, after a second.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Future,
    Handle,
    Child,
    Memory,
}

impl Asks {
    const ALL: [Self; 4] = [Self::Future, Self::Handle, Self::Child, Self::Memory];

    fn cause(self) -> &'static str {
        match self {
            Self::Memory => "memory at 95 % of 100 MiB",
            _ => "test",
        }
    }

    fn code(self) -> u8 {
        if matches!(self, Self::Memory) { 4 } else { 3 }
    }

    fn report(self) -> &'static str {
        match self {
            Self::Memory => {
                "`app` was stopped: memory at 95 % of 100 MiB; killed at the end of their grace: `app/deaf`"
            }
            _ => "stopped, but killed at the end of their grace: `app/deaf`",
        }
    }

    /// Adds what stops the application.
    fn to(self, tree: SupervisorBuilder) -> Application {
        let tree = match self {
            Self::Child => tree.child(worker("asks", async |ctx: Context| {
                sleep(secs(1)).await;
                let _ = ctx.run_until_cancelled(ctx.parent().stop("test")).await;
            })),
            _ => tree,
        };
        let app = Application::new(tree).listen_to_signals(false).exit_grace(Duration::MAX);
        match self {
            Self::Future => app.stop_on(async {
                sleep(secs(1)).await;
                "test"
            }),
            Self::Handle => app.on_start(|tree| {
                drop(tokio::spawn(async move {
                    sleep(secs(1)).await;
                    tree.stop("test").await
                }));
            }),
            Self::Child => app,
            Self::Memory => {
                let source = || Ok(MemoryUsage::new(95 << 20, 100 << 20));
                app.memory(MemoryGuard::new().source(source).period(secs(1)))
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_has_the_same_stages_hooks_bound_code_and_report_whoever_requests_it() {
    for asks in Asks::ALL {
        let stages = [Stage::Polite(secs(2)), Stage::Closing(secs(1))];
        let app = |diary: &Diary| {
            let deaf = diary.deaf("deaf").shutdown(Shutdown::Infinity);
            asks.to(Supervisor::builder("app").child(deaf))
                .stages(StopStages::new(stages).drain(secs(1)))
                .before_stop(diary.hook("before", secs(0)))
                .after_stop(diary.hook("after", secs(0)))
        };
        let (diary, cause) = (Diary::new(), asks.cause());
        let expected = format!(
            "0 before begins ({cause}), 0 before ends, 1 deaf cancelled, 3 deaf gone, \
             3 after begins ({cause}), 3 after ends"
        );
        let log = Log::at(LevelFilter::INFO);
        assert_code(app(&diary).run().await, asks.code());
        assert_eq!(diary.text(), expected, "{asks:?}");
        let stages: Vec<_> =
            log.lines().into_iter().filter(|line| line.contains("stage begins")).collect();
        let stage = |stage: &str, length: u64| {
            format!(
                "INFO verger::shutdown: stage begins cause=\"{cause}\" stage=\"{stage}\" length={length}s"
            )
        };
        assert_eq!(
            stages,
            [stage("drain", 1), stage("polite", 1), stage("closing", 1)],
            "{asks:?}"
        );

        let error = app(&Diary::new()).run_to_end().await.unwrap_err();
        assert_eq!(error.to_string(), asks.report(), "{asks:?}");
        assert_eq!(error.exit_code(), asks.code(), "{asks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_stops_a_tree_with_a_graceful_shutdown_in_its_stages() {
    let deaf = worker("deaf", |_| pending::<()>()).shutdown(Shutdown::Infinity);
    let stops = worker("stops", async |ctx: Context| {
        let _ = ctx.run_until_cancelled(ctx.parent().stop("enough")).await;
    });
    let tree = Supervisor::builder("app").child(deaf).child(stops).build().unwrap();
    let began = Instant::now();
    let error = tree.with_graceful_shutdown(pending::<()>()).await.unwrap_err();
    assert_eq!(began.elapsed(), secs(25));
    assert_eq!(error.to_string(), "stopped, but killed at the end of their grace: `app/deaf`");
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_order_for_a_cause_with_an_exit_code_is_an_error() {
    let idle = || worker("idle", async |ctx: Context| ctx.cancelled().await);
    let app = || Asks::Memory.to(Supervisor::builder("app").child(idle()));
    let error = app().run_to_end().await.unwrap_err();
    let RunError::StoppedFor { cause, code: 4, killed, leaked, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((&**cause, killed.len(), leaked.len()), ("memory at 95 % of 100 MiB", 0, 0));
    assert_eq!(error.to_string(), "`app` was stopped: memory at 95 % of 100 MiB");
    assert_code(app().run().await, 4);
}

// --- Which children are forced -------------------------------------------------------------------

fn deaf(name: &str) -> ChildSpec {
    worker(name, |_| pending::<()>()).shutdown(secs(1))
}

type Stopped = Pin<Box<dyn Future<Output = Result<(), RunError>>>>;

/// Every way to learn how a tree has stopped.
fn ways(tree: fn() -> SupervisorBuilder) -> [(&'static str, Stopped); 5] {
    let stops = move || {
        let stops = worker("stops", async |ctx: Context| {
            let _ = ctx.run_until_cancelled(ctx.parent().stop("test")).await;
        });
        tree().child(stops).build().unwrap()
    };
    let started = move || async move {
        let tree = tree().build().unwrap().start().await.unwrap();
        settle().await;
        tree
    };
    [
        ("stop", Box::pin(async move { started().await.stop("test").await })),
        ("wait", {
            Box::pin(async move {
                let tree = started().await;
                let (waited, _) = tokio::join!(tree.wait(), tree.stop("test"));
                waited
            })
        }),
        ("run", Box::pin(async move { stops().run().await })),
        ("run_to_end", {
            Box::pin(async move {
                Application::new(stops()).listen_to_signals(false).run_to_end().await
            })
        }),
        ("with_graceful_shutdown", {
            Box::pin(async move { stops().with_graceful_shutdown(pending::<()>()).await })
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn children_that_are_killed_in_a_stop_are_named_by_all_that_answer_it() {
    let tree = || {
        let inner = Supervisor::builder("inner").child(deaf("a"));
        let brutal = deaf("brutal").shutdown(Shutdown::BrutalKill);
        let drains = deaf("drains").shutdown(Shutdown::Drain(secs(1)));
        // Nothing below it has a grace that it could miss.
        let below = Supervisor::builder("below").child(deaf("x")).into_child();
        let app = Supervisor::builder("app").child(inner).child(brutal).child(drains);
        app.child(below.shutdown(Shutdown::BrutalKill)).child(deaf("b"))
    };
    for (way, stopped) in ways(tree) {
        let error = stopped.await.unwrap_err();
        let RunError::Forced { killed, leaked } = &error else { panic!("{way}: {error}") };
        let killed: Vec<_> = killed.iter().map(|path| path.as_str()).collect();
        assert_eq!((killed, leaked.len()), (vec!["app/b", "app/inner/a"], 0), "{way}");
        assert_eq!(error.exit_code(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn children_that_are_forgotten_as_they_stop_are_named_too() {
    let pool = DynamicSupervisor::builder("pool");
    let brutal =
        DynamicSupervisor::builder("brutal").defaults(|it| it.shutdown(Shutdown::BrutalKill));
    let temporary = deaf("job").restart(RestartType::Temporary);
    let app = Supervisor::builder("app").child(pool).child(brutal).child(temporary);
    let app = app.build().unwrap().start().await.unwrap();
    let brutal = app.supervisor("brutal").await.unwrap();
    brutal.start_child(worker("conn", |_| pending::<()>())).await.unwrap();
    let pool = app.supervisor("pool").await.unwrap();
    pool.start_child(deaf("conn")).await.unwrap();
    settle().await;
    let log = Log::at(LevelFilter::WARN);
    let error = app.stop("test").await.unwrap_err();
    let text = "stopped, but killed at the end of their grace: `app/job`, `app/pool/conn#1`";
    assert_eq!(error.to_string(), text);
    let lines = ["app/job", "app/pool/conn#1"]
        .map(|child| format!("WARN verger::shutdown: killed child={child} incarnation=1 took=1s"));
    assert_eq!(log.lines(), lines);
}

#[tokio::test(start_paused = true)]
async fn children_that_are_killed_otherwise_are_no_part_of_a_stop() {
    let inner = Supervisor::builder("inner").strategy(Strategy::OneForAll);
    let inner = inner.child(deaf("a")).child(worker("b", |_| pending::<()>()));
    let app = Supervisor::builder("app").child(inner).child(deaf("c")).build().unwrap();
    let app = app.start().await.unwrap();
    // Killed in a group restart, in the restart of a supervisor, by a call, and when its child was stopped.
    app.kill("inner/b").await.unwrap();
    sleep(secs(5)).await;
    app.restart("inner").await.unwrap();
    app.kill("c").await.unwrap();
    app.stop_child("c").await.unwrap();
    app.stop_child("inner").await.unwrap();
    app.stop("test").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_gives_up_lists_the_children_that_were_killed_then() {
    let (fail, fails) = oneshot::channel::<()>();
    let fails = std::sync::Mutex::new(Some(fails));
    let fails = worker("fails", move |_| {
        let fails = fails.lock().unwrap().take();
        async move {
            if let Some(fails) = fails {
                let _ = fails.await;
            }
            Exit::Err("no".into())
        }
    });
    let app = Supervisor::builder("app").restarts(0, secs(60)).child(deaf("deaf")).child(fails);
    let app = Application::new(app).listen_to_signals(false).run_to_end();
    let ((), ended) = tokio::join!(async { drop(fail) }, app);
    let error = ended.unwrap_err();
    let RunError::GaveUp { killed, leaked, .. } = &error else { panic!("{error}") };
    assert_eq!((killed.len(), leaked.len(), error.exit_code()), (1, 0, 1));
    assert_eq!(
        error.to_string(),
        "`app` gave up on `app/fails`: failed: no; killed at the end of their grace: `app/deaf`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_below_the_root_answers_for_its_own_children() {
    let inner = Supervisor::builder("inner").child(deaf("a"));
    let app = Supervisor::builder("app").child(inner).child(deaf("b")).build().unwrap();
    let app = app.start().await.unwrap();
    settle().await;
    let error = app.supervisor("inner").await.unwrap().stop("test").await.unwrap_err();
    assert_eq!(error.to_string(), "stopped, but killed at the end of their grace: `app/inner/a`");
    app.stop_child("b").await.unwrap();
    app.stop_child("inner").await.unwrap();
    app.stop("test").await.unwrap();
}

// --- Drain ---------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_child_that_drains_has_its_time_and_is_then_aborted_as_expected() {
    let log = Log::at(LevelFilter::INFO);
    let diary = Diary::new();
    let drains = |name: &str| diary.deaf(name).shutdown(Shutdown::Drain(secs(10)));
    let pool = DynamicSupervisor::builder("pool");
    let pool = pool.defaults(|child| child.shutdown(Shutdown::Drain(secs(4))));
    let deaf = diary.clone();
    let starter = worker("starter", move |ctx: Context| {
        let deaf = deaf.deaf("conn");
        async move {
            let pool = ctx.parent().supervisor("pool").await.unwrap();
            pool.start_child(deaf).await.unwrap();
        }
    });
    let tree = Supervisor::builder("app").child(pool).child(drains("tunnel"));
    let tree = tree.child(starter.restart(RestartType::Transient));
    let app = Asks::Future.to(tree);
    assert_code(app.run().await, 0);
    assert_eq!(
        diary.text(),
        "0 tunnel cancelled, 10 tunnel gone, 10 conn#1 cancelled, 14 conn#1 gone"
    );
    let lines = log.lines();
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:?}");
    let aborted: Vec<_> = lines.iter().filter(|line| line.contains("aborted at")).collect();
    assert_eq!(
        aborted,
        [
            "INFO verger::shutdown: aborted at the end of its drain child=app/tunnel incarnation=1 took=10s",
            "INFO verger::shutdown: aborted at the end of its drain child=app/pool/conn#1 incarnation=1 took=4s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_drains_is_killed_as_any_other_in_a_restart() {
    let drains = deaf("drains").shutdown(Shutdown::Drain(secs(3)));
    let app = Supervisor::builder("app").child(drains).build().unwrap().start().await.unwrap();
    settle().await;
    let began = Instant::now();
    app.restart("drains").await.unwrap();
    assert_eq!(began.elapsed(), secs(3));
    let child = app.which_child("drains").await.unwrap();
    let last = child.last_exit.map(|exit| exit.reason.kind());
    assert_eq!((child.incarnation, last), (2, Some("killed")));
    app.stop("test").await.unwrap();
}
