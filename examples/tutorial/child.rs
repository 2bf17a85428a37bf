//! The service of the tutorial under a supervisor: what fails is restarted.
use std::io::IsTerminal;
use std::io::{Error, ErrorKind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tracing_subscriber::fmt::time::uptime;
use verger::mailbox::{Address, Inbox};
use verger::{
    Context, Exit, RunError, Supervisor, mailbox, signals, worker_with, worker_with_mailbox,
};

/// Stands for a request to a weather station: each fourth fails, and the seventh line is damaged.
async fn fetch() -> Result<String, Error> {
    static REQUESTS: AtomicU32 = AtomicU32::new(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    match REQUESTS.fetch_add(1, Ordering::Relaxed) {
        7 => Ok("2x.5".to_owned()),
        n if n % 4 == 0 => Err(ErrorKind::ConnectionReset.into()),
        n => Ok(format!("{}.5", 10 + n % 10)),
    }
}

async fn fetcher(_ctx: Context, lines: Address<String>) -> Exit {
    loop {
        lines.send(fetch().await?).await?;
    }
}

async fn processor(mut lines: Inbox<String>, readings: Address<f64>) -> Exit {
    while let Some(line) = lines.recv().await {
        let celsius = line.parse().expect("a number");
        readings.send(celsius).await?;
    }
    Ok(())
}

async fn writer(_ctx: Context, mut readings: Inbox<f64>) {
    let mut batch = Vec::new();
    while let Some(celsius) = readings.recv().await {
        batch.push(celsius);
        if batch.len() == 4 {
            tracing::info!("wrote {batch:?}");
            batch.clear();
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let log = tracing_subscriber::fmt().with_timer(uptime()).log_internal_errors(false);
    log.with_ansi(std::io::stdout().is_terminal()).init();
    let (to_processor, lines) = mailbox();
    let (to_writer, readings) = mailbox();
    let process = move |_ctx, lines| processor(lines, to_writer.clone());
    let station = Supervisor::builder("station")
        .child(worker_with_mailbox("writer", readings, writer))
        .child(worker_with_mailbox("processor", lines, process))
        .child(worker_with("fetcher", to_processor, fetcher));
    station.build()?.with_graceful_shutdown(signals()).await
}
