//! The service of the tutorial with a console, and with a saboteur that breaks it.
use std::io::IsTerminal;
use std::io::{Error, ErrorKind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use tracing_subscriber::fmt::time::uptime;
use verger::console::Console;
use verger::mailbox::{Address, Inbox};
use verger::{
    Application, Context, Exit, RestartType, Strategy, Supervisor, mailbox, worker, worker_with,
    worker_with_mailbox,
};

/// Stands for a request to a weather station: each twentieth fails.
async fn fetch() -> Result<String, Error> {
    static REQUESTS: AtomicU32 = AtomicU32::new(1);
    sleep(Duration::from_millis(300)).await;
    match REQUESTS.fetch_add(1, Ordering::Relaxed) {
        n if n % 20 == 0 => Err(ErrorKind::ConnectionReset.into()),
        n => Ok(format!("{}.5", 10 + n % 10)),
    }
}

async fn fetcher(ctx: Context, lines: Address<String>) -> Exit {
    while let Some(line) = ctx.run_until_cancelled(fetch()).await {
        let line = line?;
        ctx.set_status(format!("last line {line}"));
        lines.send(line).await?;
    }
    Ok(())
}

async fn processor(mut lines: Inbox<String>, readings: Address<f64>) -> Exit {
    while let Some(line) = lines.recv().await {
        readings.send(line.parse()?).await?;
    }
    Ok(())
}

async fn writer(ctx: Context, mut readings: Inbox<f64>) {
    let mut written = 0;
    while readings.recv().await.is_some() {
        written += 1;
        ctx.set_status(format!("{written} written"));
    }
}

/// Kills the processor after four seconds, looks at the tree, and is done.
async fn saboteur(ctx: Context) -> Exit {
    sleep(Duration::from_secs(4)).await;
    ctx.parent().kill("pipeline/processor").await?;
    sleep(Duration::from_millis(50)).await;
    let tree = ctx.parent().status().await?;
    tracing::info!("the tree at this moment:\n{tree}");
    Ok(())
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
    let station = Supervisor::builder("station")
        .child(worker_with_mailbox("writer", readings, writer))
        .child(pipeline)
        .child(worker("saboteur", saboteur).restart(RestartType::Temporary));
    let console = Console::new().allow_actions(true);
    Application::new(station).console("127.0.0.1:7007", console).run().await
}
