//! Two workers: one ticks, one fails again and again, and waits longer each time.
use std::{io::IsTerminal, time::Duration};
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
    // Colours only on a terminal. A log line that a full disk refuses doesn't panic its task.
    let log = tracing_subscriber::fmt().with_ansi(std::io::stdout().is_terminal());
    log.log_internal_errors(false).init();
    let app =
        Supervisor::builder("app").child(worker("ticker", ticker)).child(worker("flaky", flaky));
    app.build()?.with_graceful_shutdown(signals()).await
}
