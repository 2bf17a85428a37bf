//! The service of the tutorial with a configuration file, which is read again at SIGHUP.
use std::io::IsTerminal;
use std::io::{Error, ErrorKind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use tracing_subscriber::fmt::time::uptime;
use verger::config::ChildConfig;
use verger::mailbox::{Address, Inbox};
use verger::{
    Application, Context, Exit, Strategy, Supervisor, mailbox, worker_with, worker_with_mailbox,
};

/// Stands for a request to a weather station: each fourth fails.
async fn fetch() -> Result<String, Error> {
    static REQUESTS: AtomicU32 = AtomicU32::new(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    match REQUESTS.fetch_add(1, Ordering::Relaxed) {
        n if n % 4 == 0 => Err(ErrorKind::ConnectionReset.into()),
        n => Ok(format!("{}.5", 10 + n % 10)),
    }
}

async fn fetcher(ctx: Context, lines: Address<String>) -> Exit {
    while let Some(line) = ctx.run_until_cancelled(fetch()).await {
        lines.send(line?).await?;
    }
    Ok(())
}

async fn processor(mut lines: Inbox<String>, readings: Address<f64>) -> Exit {
    while let Some(line) = lines.recv().await {
        readings.send(line.parse()?).await?;
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriterConfig {
    batch: usize,
}

async fn writer(ctx: Context, mut readings: Inbox<f64>) -> Exit {
    let mut config = ctx.config::<WriterConfig>()?;
    let mut batch = Vec::new();
    while let Some(celsius) = readings.recv().await {
        batch.push(celsius);
        if batch.len() >= config.get().batch {
            tracing::info!("wrote {batch:?}");
            batch.clear();
        }
    }
    Ok(())
}

async fn at_least_one(new: Arc<WriterConfig>) -> Exit {
    if new.batch == 0 { Err("`batch` is 0; write at least 1".into()) } else { Ok(()) }
}

#[tokio::main]
async fn main() -> ExitCode {
    let log = tracing_subscriber::fmt().with_timer(uptime()).log_internal_errors(false);
    log.with_ansi(std::io::stdout().is_terminal()).init();
    let (to_processor, lines) = mailbox();
    let (to_writer, readings) = mailbox();
    let process = move |_ctx, lines| processor(lines, to_writer.clone());
    let pipeline = Supervisor::builder("pipeline")
        .strategy(Strategy::RestForOne)
        .child(worker_with_mailbox("processor", lines, process))
        .child(worker_with("fetcher", to_processor, fetcher));
    let config = ChildConfig::<WriterConfig>::new().validate(at_least_one);
    let station = Supervisor::builder("station")
        .child(worker_with_mailbox("writer", readings, writer).config(config))
        .child(pipeline);
    let file = std::env::args().nth(1).unwrap_or_else(|| "station.toml".to_owned());
    Application::new(station).config_file(file).run().await
}
