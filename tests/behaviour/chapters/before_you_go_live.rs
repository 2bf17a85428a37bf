//! The chapter *Before you go live*: each setting, and the log line that shows why it matters.

use std::sync::mpsc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::app::memory::{MemoryGuard, MemoryUsage};
use verger::policy::Jitter;
use verger::{
    Application, Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Readiness,
    RunError, Supervisor, blocking, worker, worker_with,
};

use crate::application::assert_code;
use crate::common::{settle, start};
use crate::log::Log;

const PAGE: &str = include_str!("../../../book/src/before-you-go-live.md");

const SECOND: Duration = Duration::from_secs(1);

/// Checks that the section with this number shows exactly these lines.
#[track_caller]
fn shows(section: u32, lines: &[String]) {
    let (_, rest) = PAGE.split_once(&format!("\n## {section}. ")).expect("the section");
    let (text, _) = rest.split_once("\n## ").expect("the next section");
    let blocks = text.split("\n```text\n").skip(1);
    let shown: Vec<_> =
        blocks.flat_map(|rest| rest.split_once("\n```").unwrap().0.lines()).collect();
    assert_eq!(shown, lines, "left: the page, right: the log");
}

/// Returns the lines that contain one of these texts.
fn with(log: &Log, texts: &[&str]) -> Vec<String> {
    let mut lines = log.lines();
    lines.retain(|line| texts.iter().any(|text| line.contains(text)));
    lines
}

fn failing(name: &str, text: &'static str) -> ChildSpec {
    worker(name, async move |_: Context| -> Exit { Err(text.into()) })
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

#[tokio::test(start_paused = true)]
async fn sessions_have_a_number_and_a_limit() {
    let log = Log::at(LevelFilter::ERROR);
    let backoff = Backoff::exponential(SECOND / 5, 30 * SECOND).jitter(Jitter::None);
    let sessions = DynamicSupervisor::builder("sessions")
        .max_children(2)
        .defaults(|child| child.own_restarts(3, 60 * SECOND).backoff(backoff));
    let app = start(Supervisor::builder("app").child(sessions)).await;
    let sessions = app.supervisor("sessions").await.unwrap();
    sessions.start_child(failing("session", "connection reset")).await.unwrap();
    sessions.start_child(idle("session")).await.unwrap();
    let error = sessions.start_child(idle("session")).await.unwrap_err();
    assert!(matches!(error, ControlError::MaxChildren { max: 2, .. }), "{error}");
    sleep(10 * SECOND).await;
    shows(1, &log.lines());
    assert_eq!(sessions.children().await.unwrap().len(), 1, "the sibling");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn full_jitter_spreads_out_what_failed_together() {
    let log = Log::at(LevelFilter::WARN);
    let backoff = Backoff::exponential(SECOND, 30 * SECOND);
    let one = failing("one", "broker away").backoff(backoff.clone().jitter(Jitter::None));
    let two = failing("two", "broker away");
    let two = two.backoff(backoff.jitter(Jitter::Full).random(|| 0.25));
    let app = start(Supervisor::builder("app").child(one).child(two)).await;
    settle().await;
    shows(2, &log.lines());
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_too_small_is_not_ready() {
    let senders = DynamicSupervisor::builder("senders").min_ready(2);
    let app = Supervisor::builder("app").child(senders);
    let app = start(app.child(
        failing("metrics", "no route").essential(false).backoff(Backoff::constant(30 * SECOND)),
    ))
    .await;
    app.supervisor("senders").await.unwrap().start_child(idle("sender")).await.unwrap();
    settle().await;
    let status = app.status().await.unwrap();
    assert!(!status.is_ready());
    let problems: Vec<_> = status.problems().iter().map(ToString::to_string).collect();
    shows(3, &problems);
    app.supervisor("senders").await.unwrap().start_child(idle("sender")).await.unwrap();
    assert!(app.status().await.unwrap().is_ready());
    app.stop("done").await.unwrap();
}

/// Runs a program that is stopped when it is up, and returns its warnings and the line about its stop.
async fn announced(app: Application) -> Vec<String> {
    let log = Log::at(LevelFilter::INFO);
    // Without this, the process would end soon after the program has.
    let app = app.exit_grace(Duration::MAX);
    assert_code(app.listen_to_signals(false).stop_on(settle()).run().await, 0);
    with(&log, &["time for a stop", "WARN"])
}

#[tokio::test(start_paused = true)]
async fn the_sum_of_the_graces_is_announced() {
    let slow = |name| idle(name).shutdown(15 * SECOND);
    let app = Supervisor::builder("app").child(slow("export")).child(slow("mail"));
    shows(4, &announced(Application::new(app)).await);
}

#[tokio::test(start_paused = true)]
async fn a_service_manager_that_waits_less_is_a_warning() {
    let app = Application::new(Supervisor::builder("app").child(idle("api")));
    shows(5, &announced(app.stop_limit(10 * SECOND)).await[1..]);
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_gives_up_exits_with_a_code_that_restarts_the_process() {
    let log = Log::at(LevelFilter::ERROR);
    let backoff = Backoff::exponential(SECOND / 5, 30 * SECOND).jitter(Jitter::None);
    let app = Supervisor::builder("app").child(failing("db", "no such table").backoff(backoff));
    let error = app.build().unwrap().run().await.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    shows(6, &log.lines());
    let stopped = RunError::from(Supervisor::builder("").build().unwrap_err());
    assert_eq!(stopped.exit_code(), 2);
}

#[tokio::test(start_paused = true)]
async fn connections_that_exit_normally_are_logged_at_debug() {
    let log = Log::at(LevelFilter::DEBUG);
    let app =
        start(Supervisor::builder("app").child(DynamicSupervisor::builder("connections"))).await;
    let connections = app.supervisor("connections").await.unwrap();
    connections.start_once("connection", async |_: Context| {}).await.unwrap();
    let fails = async |_: Context| -> Exit { Err("broken pipe".into()) };
    connections.start_once("connection", fails).await.unwrap();
    settle().await;
    shows(7, &with(&log, &["ended normally", "not restarted"]));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_memory_stops_the_tree_in_order() {
    let log = Log::at(LevelFilter::INFO);
    let guard = MemoryGuard::new().source(|| Ok(MemoryUsage::new(95 << 20, 100 << 20)));
    let app = Application::new(Supervisor::builder("app").child(idle("api"))).memory(guard);
    let error = app.listen_to_signals(false).run_to_end().await.unwrap_err();
    assert_eq!(error.exit_code(), 4);
    shows(8, &with(&log, &["shutting down"]));
}

/// Uses real time, because a paused clock waits for the thread. The grace and the leak timeout are the only timers.
#[tokio::test]
async fn a_blocking_function_that_does_not_look_has_leaked() {
    let log = Log::at(LevelFilter::ERROR);
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Arc::new(std::sync::Mutex::new(released));
    let hash = blocking("hash", move |_| -> Exit {
        let _ = released.lock().unwrap().recv();
        Ok(())
    });
    let soon = Duration::from_millis(1);
    let app = Supervisor::builder("app").leak_timeout(soon).child(hash.shutdown(soon));
    start(app).await.stop("done").await.unwrap_err();
    shows(9, &log.lines());
    drop(release);
}

#[cfg(feature = "service")]
#[tokio::test(start_paused = true)]
async fn a_requirement_is_waited_for_and_a_value_below_a_sibling_needs_one() {
    let mut lines = Vec::new();
    let database = |delay: Duration| {
        let run = async |ctx: Context, delay| -> Exit {
            sleep(delay).await;
            ctx.provide(String::from("pool"))?;
            ctx.ready();
            ctx.cancelled().await;
            Ok(())
        };
        let database = worker_with("database", delay, run).readiness(Readiness::Signal);
        Supervisor::builder("storage").child(database)
    };
    let api = || {
        worker("api", async |ctx: Context| -> Exit {
            let pool = ctx.service::<String>().await?;
            assert_eq!(pool.as_str(), "pool");
            ctx.cancelled().await;
            Ok(())
        })
    };

    let log = Log::at(LevelFilter::WARN);
    let concurrent = Supervisor::builder("app").start(verger::policy::Start::Concurrent);
    let slow = concurrent.child(database(11 * SECOND)).child(api().requires("storage"));
    let app = start(slow).await;
    lines.extend(with(&log, &["waiting for a requirement"]));
    app.stop("done").await.unwrap();

    let app = start(Supervisor::builder("app").child(database(Duration::ZERO)).child(api())).await;
    settle().await;
    lines.extend(with(&log, &["out of scope"]));
    app.stop("done").await.unwrap();
    shows(10, &lines);
}
