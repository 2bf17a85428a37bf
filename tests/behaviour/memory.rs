//! A memory guard that stops a tree.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use verger::app::memory::{MemoryGuard, MemoryUsage};
use verger::{Application, Context, RunError, Supervisor, worker};

use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn a_guard_stops_the_tree_and_logs_a_source_that_fails_once() {
    let log = Log::at(LevelFilter::INFO);
    let looks = AtomicU64::new(0);
    let source = move || match looks.fetch_add(1, Ordering::Relaxed) {
        0 | 2 => Err(io::Error::other("no such group")),
        look => Ok(MemoryUsage::new((40 + look * 10) << 20, 100 << 20)),
    };
    let guard = MemoryGuard::new().source(source).period(Duration::from_secs(1));
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let tree = Supervisor::builder("app").child(idle).build().unwrap();

    let start = Instant::now();
    let error = tree.with_graceful_shutdown(guard.watch().unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "`app` was stopped: memory at 90 % of 100 MiB");
    // 50 % at the second look, 70, 80 and 90 % at the fourth, fifth and sixth.
    assert_eq!(start.elapsed(), Duration::from_secs(6));
    assert_eq!(
        log.lines(),
        [
            "INFO verger::lifecycle: active child=app/idle incarnation=1",
            "INFO verger::lifecycle: active child=app",
            "WARN verger::memory: can't read the memory usage error=\"no such group\" retry_after=1s",
            "INFO verger::shutdown: stage begins cause=\"memory at 90 % of 100 MiB\" stage=\"polite\" length=20s",
            "INFO verger::shutdown: shutting down child=app cause=\"memory at 90 % of 100 MiB\"",
            "INFO verger::shutdown: stopped child=app",
        ]
    );
}

/// A guard that sees 95 % after this many looks, each a second apart.
fn full_after(looks: u64) -> MemoryGuard {
    let seen = AtomicU64::new(0);
    let source = move || {
        let used = if seen.fetch_add(1, Ordering::Relaxed) + 1 == looks { 95 } else { 50 };
        Ok(MemoryUsage::new(used << 20, 100 << 20))
    };
    MemoryGuard::new().source(source).period(Duration::from_secs(1))
}

#[tokio::test(start_paused = true)]
async fn an_application_stops_because_of_its_memory_and_children_see_the_cause() {
    let idle = worker("idle", async |ctx: Context| {
        ctx.cancelled().await;
        assert_eq!(ctx.stop_reason().as_deref(), Some("memory at 95 % of 100 MiB"));
    });
    let start = Instant::now();
    let app = Application::new(Supervisor::builder("app").child(idle)).listen_to_signals(false);
    let error = app.memory(full_after(3)).run_to_end().await.unwrap_err();
    assert!(matches!(error, RunError::StoppedFor { code: 4, .. }), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_guard_may_restart_a_part_of_the_tree_instead() {
    let log = Log::at(LevelFilter::WARN);
    let idle = |name: &str| worker(name, async |ctx: Context| ctx.cancelled().await);
    let leaky = Supervisor::builder("leaky").child(idle("cache"));
    let app = Supervisor::builder("app").child(leaky).child(idle("other"));
    let (started, handle) = tokio::sync::oneshot::channel();
    let app = Application::new(app)
        .listen_to_signals(false)
        .memory(full_after(3).restart("leaky"))
        .on_start(|tree| drop(started.send(tree)))
        .stop_on(tokio::time::sleep(Duration::from_secs(10)));
    let run = tokio::spawn(app.run_to_end());
    let tree = handle.await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let incarnations = async |path| tree.which_child(path).await.unwrap().incarnation;
    assert_eq!((incarnations("leaky").await, incarnations("other").await), (2, 1));
    run.await.unwrap().unwrap();
    assert_eq!(
        log.lines(),
        [
            "WARN verger::memory: restarting because of the memory usage child=leaky usage=\"95 % of 100 MiB\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_guard_is_refused_before_anything_starts() {
    let app =
        Application::new(Supervisor::builder("app")).memory(MemoryGuard::new().threshold(90.0));
    let error = app.run_to_end().await.unwrap_err();
    assert!(matches!(error, RunError::MemoryGuard { .. }));
    assert_eq!(error.exit_code(), 2);
}
