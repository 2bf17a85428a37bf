//! How loudly a child is logged that says so itself, and what is logged of its health.
//!
//! By themselves, because every test here listens to the log: one that doesn't may keep others from
//! hearing a line that it was the first to come by.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{settle, start};
use tokio::time::sleep;
use verger::{
    Backoff, Context, Exit, FailureLog, HealthCheck, LogLevel, RestartPolicy, Supervisor, worker,
};

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    /// Hears what is logged on this thread, from now on.
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::INFO)
            .without_time()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The lines in which there is this.
    fn lines(&self, with: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().filter(|line| line.contains(with));
        lines.map(|line| line.trim_start().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_may_say_how_loudly_its_end_is_logged() {
    let log = Buffer::default();
    let _guard = log.listen();
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
    let lines = log.lines("restarting");
    assert_eq!(lines.len(), 2, "that of the second isn't read: {lines:#?}");
    let begins = |line: &str, level, incarnation| {
        let incarnation = format!("child=app/child incarnation={incarnation} cause=failed");
        line.starts_with(&format!("{level} verger::restart: restarting"))
            && line.contains(&incarnation)
    };
    assert!(begins(&lines[0], "ERROR", 1), "{lines:#?}");
    assert!(begins(&lines[1], "INFO", 3), "{lines:#?}");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_34_that_a_child_is_unhealthy_is_logged_and_that_it_is_well_again() {
    let log = Buffer::default();
    let _guard = log.listen();
    let asked = Arc::new(AtomicU32::new(0));
    let check = HealthCheck::new(move |_: Context| {
        let well = asked.fetch_add(1, Ordering::Relaxed) == 2;
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
        log.lines("healthy"),
        [line("WARN", "unhealthy") + " problem=\"no ping\"", line("INFO", "healthy again"),]
    );
    app.stop("done").await.unwrap();
}
