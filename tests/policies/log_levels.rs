//! The log level of a child's exit, as set by the child, and the log lines of its health.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{killed, settle, start};
use crate::log::Log;
use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::policy::{FailureLog, LogLevel, RestartPolicy};
use verger::{Backoff, Context, Exit, HealthCheck, Supervisor, worker};

/// Returns the lines that contain this text.
fn lines(log: &Log, with: &str) -> Vec<String> {
    let mut lines = log.lines();
    lines.retain(|line| line.contains(with));
    lines
}

#[tokio::test(start_paused = true)]
async fn a_child_can_set_the_log_level_of_its_exit() {
    let log = Log::at(LevelFilter::INFO);
    let child = worker("child", async |ctx: Context| -> Exit {
        let level = match ctx.incarnation() {
            1 => LogLevel::Error,
            2 => LogLevel::Debug,
            3 => return Err("it fails".into()),
            _ => {
                ctx.cancelled().await;
                return Ok(());
            }
        };
        let policy = RestartPolicy::new().failure_log(FailureLog::at(level));
        ctx.set_restart_policy(Some(policy))?;
        Err("it fails".into())
    });
    let app = Supervisor::builder("app").defaults(|child| child.backoff(Backoff::none()));
    let app = start(app.child(child.failure_log(FailureLog::at(LogLevel::Info)))).await;
    settle().await;
    let lines = lines(&log, "restarting");
    assert_eq!(lines.len(), 2, "that of the second isn't read: {lines:#?}");
    let begins = |line: &str, level, incarnation| {
        let incarnation = format!("child=app/child incarnation={incarnation} cause=\"failed");
        line.starts_with(&format!("{level} verger::restart: restarting"))
            && line.contains(&incarnation)
    };
    assert!(begins(&lines[0], "ERROR", 1), "{lines:#?}");
    assert!(begins(&lines[1], "INFO", 3), "{lines:#?}");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_34_an_unhealthy_child_and_its_recovery_are_logged() {
    let log = Log::at(LevelFilter::INFO);
    let calls = Arc::new(AtomicU32::new(0));
    let check = HealthCheck::new(move |_: Context| {
        let well = calls.fetch_add(1, Ordering::Relaxed) == 2;
        async move { if well { Ok(()) } else { Err("no ping") } }
    });
    let child = worker("child", async |ctx: Context| ctx.cancelled().await);
    let app = Supervisor::builder("app").child(child.health_check(check.failures(2)));
    let app = start(app).await;
    sleep(Duration::from_secs(30)).await;
    settle().await;
    let line =
        |level, text| format!("{level} verger::lifecycle: {text} child=app/child incarnation=1");
    assert_eq!(
        lines(&log, "healthy"),
        [line("WARN", "unhealthy") + " problem=\"no ping\"", line("INFO", "healthy again"),]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_restarted_without_a_delay_does_not_flood_the_log() {
    const RESTARTS: u32 = 100_000;
    let log = Log::at(LevelFilter::INFO);
    let spins = worker("spins", async |ctx: Context| -> Exit {
        tokio::task::yield_now().await;
        if ctx.incarnation() > RESTARTS {
            sleep(Duration::from_secs(300)).await;
        }
        if ctx.incarnation() > RESTARTS + 1 {
            ctx.cancelled().await;
        }
        Err("at once".into())
    });
    let app = Supervisor::builder("app").unlimited_restarts();
    let app =
        app.defaults(|child| child.backoff(Backoff::none().reset(verger::policy::Reset::Never)));
    let app = start(app.child(spins)).await;
    sleep(Duration::from_secs(299)).await;
    let lines = log.lines();
    // A warning, ten restarts, ten times active before them, and `up`.
    assert_eq!(lines.len(), 22, "{lines:#?}");
    assert!(lines[0].starts_with("WARN verger::lifecycle: `app/spins` is restarted"), "{lines:#?}");
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("WARN verger::restart: restarting; no more are logged for a while"),
        "{last}"
    );
    assert!(last.contains("attempt=10 delay=0ns") && last.ends_with("pause=300s"), "{last}");

    sleep(Duration::from_secs(2)).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines[0].starts_with("WARN verger::restart: restarting; some before were not logged"),
        "{lines:#?}"
    );
    assert!(lines[0].ends_with(&format!("unlogged={}", RESTARTS - 10)), "{lines:#?}");
    assert!(lines[1].contains("active; some before were not logged child=app/spins"), "{lines:#?}");
    app.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_call_that_changes_a_child_is_a_line() {
    let log = Log::at(LevelFilter::INFO);
    let idle = |name: &str| worker(name, async |ctx: Context| ctx.cancelled().await);
    let fails = worker("fails", async |ctx: Context| -> Exit {
        tokio::task::yield_now().await;
        if ctx.incarnation() < 3 {
            return Err("it fails".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let fails = fails.consecutive_restarts(1).on_exhausted(verger::policy::OnExhausted::Park);
    let pool = verger::DynamicSupervisor::builder("pool");
    let app = start(Supervisor::builder("app").child(idle("a")).child(fails).child(pool)).await;
    settle().await;
    app.restart("a").await.unwrap();
    app.kill("a").await.unwrap();
    settle().await;
    app.resume("a").await.unwrap();
    app.stop_child("a").await.unwrap();
    app.otp().restart_child("a").await.unwrap();
    app.otp().delete_child("a").await.unwrap_err();
    app.stop_child("a").await.unwrap();
    app.otp().delete_child("a").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    app.resume("fails").await.unwrap();
    let pool = app.supervisor("pool").await.unwrap();
    pool.start_child(idle("conn")).await.unwrap();
    pool.stop_child("conn#1").await.unwrap();

    let called: Vec<_> = lines(&log, "changed by a call")
        .iter()
        .map(|line| {
            line.strip_prefix("INFO verger::lifecycle: changed by a call ").unwrap().to_owned()
        })
        .collect();
    let expected = [
        "child=app/a call=\"restart\"",
        "child=app/a call=\"kill\"",
        "child=app/a call=\"resume\"",
        "child=app/a call=\"stop_child\"",
        "child=app/a call=\"restart_child\"",
        "child=app/a call=\"stop_child\"",
        "child=app/a call=\"delete_child\"",
        "child=app/fails call=\"resume\"",
        "child=app/pool/conn#1 call=\"stop_child\"",
    ];
    assert_eq!(called, expected);
    app.stop("done").await.unwrap();
}

/// Rule: an operator who reads only the lines of restarts learns who has killed a child, and why.
#[tokio::test(start_paused = true)]
async fn the_line_about_a_restart_names_who_has_killed_the_child() {
    let log = Log::at(LevelFilter::WARN);
    let second = Duration::from_secs(1);
    let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    let app = start(Supervisor::builder("app").child(db.backoff(Backoff::constant(second)))).await;
    app.on_behalf_of("alice", "it hangs").kill("db").await.unwrap();
    sleep(2 * second).await;
    // A call without a caller isn't hers.
    app.kill("db").await.unwrap();
    sleep(2 * second).await;
    // Neither is a failure.
    app.on_behalf_of("bob", "").kill("db").await.unwrap();
    sleep(2 * second).await;
    let cause = |line: String| {
        line.split("cause=").nth(1).unwrap().split(" attempt").next().unwrap().to_owned()
    };
    let causes: Vec<_> = log.lines().into_iter().map(cause).collect();
    assert_eq!(
        causes,
        [r#""aborted" by="alice" reason="it hangs""#, r#""aborted""#, r#""aborted" by="bob""#]
    );
    app.stop("done").await.unwrap();
}

/// Rule: a restart that isn't logged because there were many is found at `DEBUG`, as every other line is.
#[tokio::test(start_paused = true)]
async fn restarts_during_a_pause_are_logged_at_debug() {
    let log = Log::at(LevelFilter::DEBUG);
    let second = Duration::from_secs(1);
    let fails = worker("fails", async |_: Context| -> Exit { Err("at once".into()) });
    let fails = fails.backoff(Backoff::constant(second));
    let app = start(Supervisor::builder("app").unlimited_restarts().child(fails)).await;
    sleep(11 * second + second / 2).await;
    let levels: Vec<_> = lines(&log, "verger::restart: restarting")
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(levels, [vec!["WARN"; 10], vec!["DEBUG"; 2]].concat());
    app.stop("done").await.unwrap();
}
