//! `examples/hello.rs` without verger. `measure.py` builds it beside the example.

use std::error::Error;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

async fn ticker(stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(Duration::from_secs(1))).await.is_some() {
        tracing::info!("tick");
    }
}

async fn flaky(stop: CancellationToken, run: u32) -> Result<(), Box<dyn Error + Send + Sync>> {
    stop.run_until_cancelled(sleep(Duration::from_secs(3) * run)).await;
    Err("connection refused".into())
}

async fn restart_flaky(stop: CancellationToken) {
    let mut delay = Duration::from_millis(200);
    for run in 1.. {
        let exit = tokio::spawn(flaky(stop.clone(), run)).await;
        if stop.is_cancelled() {
            return;
        }
        tracing::warn!(run, ?delay, ?exit, "restarting flaky");
        stop.run_until_cancelled(sleep(delay)).await;
        delay = (delay * 2).min(Duration::from_secs(30));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().log_internal_errors(false).init();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(ticker(stop.clone()));
    tasks.spawn(restart_flaky(stop.clone()));
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    timeout(Duration::from_secs(5), tasks.join_all()).await?;
    Ok(())
}
