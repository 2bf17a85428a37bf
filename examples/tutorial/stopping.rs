//! The service of the tutorial, which now ends in order and loses nothing that it has fetched.
use std::io::IsTerminal;
use std::io::{Error, ErrorKind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tracing_subscriber::fmt::time::uptime;
use verger::mailbox::{Address, Inbox};
use verger::{
    Application, Child, Context, Exit, Supervisor, async_trait, child_with_mailbox, mailbox,
    worker_with, worker_with_mailbox,
};

/// Stands for a request to a weather station. The eighth isn't answered for a minute.
async fn fetch() -> Result<String, Error> {
    static REQUESTS: AtomicU32 = AtomicU32::new(1);
    let n = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let answer = if n == 8 { 60_000 } else { 300 };
    tokio::time::sleep(Duration::from_millis(answer)).await;
    if n == 4 { Err(ErrorKind::ConnectionReset.into()) } else { Ok(format!("{}.5", 10 + n % 10)) }
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

struct Writer {
    readings: Inbox<f64>,
    batch: Vec<f64>,
}

impl Writer {
    fn write(&mut self) {
        tracing::info!("wrote {:?}", std::mem::take(&mut self.batch));
    }
}

#[async_trait]
impl Child for Writer {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        tracing::info!("the file is open");
        Ok(())
    }

    async fn run(&mut self, _ctx: &Context) -> Exit {
        while let Some(celsius) = self.readings.recv().await {
            self.batch.push(celsius);
            if self.batch.len() == 4 {
                self.write();
            }
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.write();
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let log = tracing_subscriber::fmt().with_timer(uptime()).log_internal_errors(false);
    log.with_ansi(std::io::stdout().is_terminal()).init();
    let (to_processor, lines) = mailbox();
    let (to_writer, readings) = mailbox();
    let write = |readings| Writer { readings, batch: Vec::new() };
    let process = move |_ctx, lines| processor(lines, to_writer.clone());
    let fetcher = worker_with("fetcher", to_processor, fetcher);
    let station = Supervisor::builder("station")
        .child(child_with_mailbox("writer", readings, write))
        .child(worker_with_mailbox("processor", lines, process))
        .child(fetcher.shutdown(Duration::from_secs(2)));
    Application::new(station).run().await
}
