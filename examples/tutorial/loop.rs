//! The service of the tutorial, first without verger: three tasks, each in a loop of its own.
use std::io::IsTerminal;
use std::io::{Error, ErrorKind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::sleep;
use tracing_subscriber::fmt::time::uptime;

/// Stands for a request to a weather station: each fourth fails, and the seventh line is damaged.
async fn fetch() -> Result<String, Error> {
    static REQUESTS: AtomicU32 = AtomicU32::new(1);
    sleep(Duration::from_millis(300)).await;
    match REQUESTS.fetch_add(1, Ordering::Relaxed) {
        7 => Ok("2x.5".to_owned()),
        n if n % 4 == 0 => Err(ErrorKind::ConnectionReset.into()),
        n => Ok(format!("{}.5", 10 + n % 10)),
    }
}

async fn fetcher(lines: Sender<String>) {
    loop {
        match fetch().await {
            Ok(line) => _ = lines.send(line).await,
            Err(error) => {
                tracing::warn!("fetcher: {error}");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn processor(mut lines: Receiver<String>, readings: Sender<f64>) {
    while let Some(line) = lines.recv().await {
        let celsius = line.parse().expect("a number");
        _ = readings.send(celsius).await;
    }
}

async fn writer(mut readings: Receiver<f64>) {
    let mut batch = Vec::new();
    while let Some(celsius) = readings.recv().await {
        batch.push(celsius);
        if batch.len() == 4 {
            tracing::info!("writer: wrote {batch:?}");
            batch.clear();
        }
    }
}

#[tokio::main]
async fn main() {
    let log = tracing_subscriber::fmt().with_timer(uptime()).with_target(false);
    log.with_ansi(std::io::stdout().is_terminal()).init();
    let (line_sender, lines) = mpsc::channel(100);
    let (reading_sender, readings) = mpsc::channel(100);
    tokio::spawn(fetcher(line_sender));
    tokio::spawn(processor(lines, reading_sender));
    tokio::spawn(writer(readings));
    tokio::signal::ctrl_c().await.expect("the signal can be received");
}
