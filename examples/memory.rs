//! A child that leaks, below a limit of the memory: its subtree is restarted in order before the limit is reached.
//!
//! ```text
//! app
//! ├─ api        isn't affected
//! └─ cache      marked: the memory guard restarts everything below it
//!    ├─ pages   keeps all that it has ever read
//!    └─ index   stops before `pages`, and starts after it
//! ```
//!
//! Let it leak, and watch the log: at three quarters of 64 MiB, `cache` is restarted, and its memory is free again. The
//! limit is the program's own here: what the kernel counts for this process, without files, against a constant. Leave out
//! `.source(..)`, and the limit of the container or of systemd's `MemoryMax` counts. Needs Linux, for its source.
//!
//! ```text
//! cargo run --example memory
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, io};

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::app::memory::{MemoryGuard, MemoryUsage};
use verger::{Application, Context, Exit, Supervisor, worker, worker_with};

const MEBI: u64 = 1 << 20;
const LIMIT: u64 = 64 * MEBI;

/// Reads how much memory the process has that isn't the content of a file.
fn usage() -> io::Result<MemoryUsage> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibi = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let kibi = kibi.ok_or_else(|| io::Error::other("/proc/self/status: no RssAnon in kB"))?;
    Ok(MemoryUsage::new(kibi * 1024, LIMIT))
}

/// What outlives the incarnations of `pages`. After a restart of its supervisor, they are counted from 1 again.
#[derive(Default)]
struct Shared {
    starts: AtomicU32,
    is_over: Notify,
}

/// Leaks after its first start. After the second one, it looks whether the memory is free again.
async fn pages(ctx: Context, shared: Arc<Shared>) -> Exit {
    if shared.starts.fetch_add(1, Ordering::Relaxed) > 0 {
        let is_free = usage()?.ratio() < 0.5;
        println!("pages: begin again; the memory is {}free", if is_free { "" } else { "not " });
        shared.is_over.notify_one();
        ctx.cancelled().await;
        return Ok(());
    }
    println!("pages: begin");
    let mut pages = Vec::new();
    while ctx.run_until_cancelled(sleep(Duration::from_millis(5))).await.is_some() {
        // Not zero, because the kernel doesn't count a page before it is written to.
        pages.push(vec![1_u8; 1 << 20]);
    }
    println!("pages: dropped");
    Ok(())
}

async fn index(ctx: Context) {
    println!("index: opened");
    ctx.cancelled().await;
    println!("index: saved");
}

async fn api(ctx: Context) {
    println!("api #{}: runs", ctx.incarnation());
    ctx.cancelled().await;
    println!("api #{}: stopped", ctx.incarnation());
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let log = tracing_subscriber::fmt().with_env_filter("verger::memory=info");
    log.with_ansi(false).with_writer(std::io::stdout).log_internal_errors(false).init();
    let shared = Arc::new(Shared::default());
    let cache = Supervisor::builder("cache")
        .child(worker_with("pages", Arc::clone(&shared), pages))
        .child(worker("index", index));
    let app = Supervisor::builder("app").child(worker("api", api)).child(cache);
    // By default it looks every 3 s, and acts at 90 %. It restarts `cache` once a minute at most.
    let guard = MemoryGuard::new().source(usage).threshold(0.75);
    Application::new(app)
        .memory(guard.period(Duration::from_millis(20)).restart("cache"))
        .stop_on(async move {
            shared.is_over.notified().await;
            "the example is over"
        })
        .run()
        .await
}
