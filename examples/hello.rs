//! Two workers: one ticks, one fails again and again, and waits longer each time.
use std::time::Duration;
use verger::{Context, Exit, RunError, Supervisor, signals, worker};

async fn ticker(ctx: Context) {
    while ctx.run_until_cancelled(tokio::time::sleep(Duration::from_secs(1))).await.is_some() {
        tracing::info!("tick");
    }
}

async fn flaky(ctx: Context) -> Exit {
    ctx.run_until_cancelled(tokio::time::sleep(Duration::from_secs(3) * ctx.incarnation())).await;
    Err("connection refused".into())
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    // By default, a log line that can't be written, as on a full disk, panics the logging task.
    tracing_subscriber::fmt().log_internal_errors(false).init();
    let app =
        Supervisor::builder("app").child(worker("ticker", ticker)).child(worker("flaky", flaky));
    app.build()?.with_graceful_shutdown(signals()).await
}
