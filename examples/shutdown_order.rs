//! A stop in stages, with a child that takes too long and one that ignores its cancellation.
//!
//! ```text
//! app            one_for_one   in start order; they stop from the bottom to the top
//! ├─ log                       has a stop order, so it stops last
//! ├─ db
//! ├─ export                    ignores its cancellation, and has no grace of its own
//! ├─ mail                      needs a minute, and has a grace of 300 ms
//! └─ api                       finishes its requests
//! ```
//!
//! Start it, and press Ctrl-C. The drain comes first, then one child after the other, each within its grace. `export`
//! holds the others up until the stage is over; then all that is left is cancelled at once. The exit code is 3, because
//! two children had to be aborted. Press Ctrl-C twice to end it at once; the code is 130 then.
//!
//! ```text
//! cargo run --example shutdown_order; echo "exit code $?"
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use verger::app::{Stage, StopStages, hook};
use verger::{Application, Context, Shutdown, Supervisor, SupervisorBuilder, worker};

const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

async fn log(ctx: Context) {
    ctx.cancelled().await;
    println!("log: flushed");
}

async fn db(ctx: Context) {
    ctx.cancelled().await;
    println!("db: closed");
}

/// Never looks at its context. An abort ends it at its `await`.
async fn export(_ctx: Context) {
    pending().await
}

async fn mail(ctx: Context) {
    ctx.cancelled().await;
    println!("mail: one more minute");
    sleep(Duration::from_secs(60)).await;
}

async fn api(ctx: Context) {
    ctx.cancelled().await;
    println!("api: finishes its requests, because of {}", ctx.stop_reason().unwrap_or_default());
    sleep(ms(100)).await;
    println!("api: done");
}

/// Where the readiness is already down, so that a load balancer sends no further requests.
async fn drain(cause: Arc<str>) {
    println!("drain: {cause}");
}

fn tree() -> SupervisorBuilder {
    Supervisor::builder("app")
        .child(worker("log", log).stop_order(100))
        .child(worker("db", db))
        .child(worker("export", export).shutdown(Shutdown::Infinity))
        .child(worker("mail", mail).shutdown(ms(300)))
        .child(worker("api", api))
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let log = tracing_subscriber::fmt().with_env_filter("verger::shutdown=info").with_ansi(false);
    log.with_writer(std::io::stdout).log_internal_errors(false).init();
    // Short, so that the example is. The defaults are 20 s and 5 s, and a load balancer needs a drain of some seconds.
    let stages = [Stage::Polite(ms(3_000)), Stage::Closing(ms(1_500))];
    Application::new(tree())
        .stages(StopStages::new(stages).drain(ms(500)))
        .stop_limit(Duration::from_secs(30))
        .on_start(|app| {
            // A task of its own, because `on_start` must not wait.
            drop(tokio::spawn(async move {
                if app.until_started().await {
                    println!("started; press Ctrl-C");
                }
            }));
        })
        .before_stop(hook("drain", drain).within(ms(500)))
        .after_stop(hook("last", async |_| println!("the last hook")).within(ms(500)))
        .run()
        .await
}
