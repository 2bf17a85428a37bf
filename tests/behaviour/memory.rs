//! A memory guard that stops a tree.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use verger::app::memory::{MemoryGuard, MemoryUsage};
use verger::{Context, Supervisor, worker};

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
    tree.with_graceful_shutdown(guard.watch().unwrap()).await.unwrap();
    // 50 % at the second look, 70, 80 and 90 % at the fourth, fifth and sixth.
    assert_eq!(start.elapsed(), Duration::from_secs(6));
    assert_eq!(
        log.lines(),
        [
            "INFO verger::lifecycle: active child=app/idle incarnation=1",
            "INFO verger::lifecycle: up supervisor=app",
            "WARN verger::memory: can't read the memory usage error=\"no such group\" retry_after=1s",
            "INFO verger::shutdown: shutting down supervisor=app cause=\"memory at 90 % of 100 MiB\"",
            "INFO verger::shutdown: stopped supervisor=app",
        ]
    );
}
