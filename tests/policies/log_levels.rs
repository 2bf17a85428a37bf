//! The log level of a child's exit, as set by the child, and the log lines of its health.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{settle, start};
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
