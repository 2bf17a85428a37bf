//! A weather station as components: structs are supervisors, functions and a type are workers.
//!
//! ```text
//! station          one_for_one    ends with the shift
//! ├─ archive       rest_for_one   the writer starts the uploads
//! │  ├─ uploads    dynamic        one for each batch of readings
//! │  └─ writer
//! ├─ sensors       one_for_one    send to the service that the writer provides
//! │  ├─ north
//! │  └─ south                     its line drops once
//! └─ shift         significant    ends after four seconds
//! ```
//!
//! With `-- --builder`, the builder makes the same tree: see `components/by_builder.rs`.

#[path = "components/by_builder.rs"]
pub(crate) mod by_builder;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::info;
use verger::service::Service;
use verger::{
    ChildSpec, Context, DynamicSupervisor, Exit, RunError, SupervisorBuilder, signals, supervisor,
    worker,
};

#[supervisor(auto_shutdown = "any_significant", max_restarts = 3, period = "10s")]
struct Station {
    #[supervisor]
    archive: Archive,
    #[supervisor(requires = "archive")]
    sensors: Sensors,
    #[child(significant)]
    shift: ChildSpec,
}

#[supervisor(strategy = "rest_for_one")]
struct Archive {
    #[dynamic(max_children = self.max_uploads)]
    uploads: DynamicSupervisor,
    #[child(requires = "uploads", activation_timeout = "5s")]
    writer: Writer,
    max_uploads: usize,
}

#[supervisor(backoff(linear, base = "400ms", max = "5s", jitter = 0))]
struct Sensors {
    #[child]
    north: ChildSpec,
    #[child(shutdown = "brutal_kill")]
    south: ChildSpec,
}

/// Where the sensors send to. The writer provides it.
#[derive(Clone)]
struct Readings(mpsc::Sender<f64>);

/// Collects readings, and starts an upload for each full batch.
#[derive(Clone, Default)]
struct Writer {
    /// Empty at the start of each incarnation.
    batch: Vec<f64>,
}

#[worker(shutdown = "2s")]
impl Writer {
    async fn activate(&self) {
        sleep(Duration::from_millis(200)).await;
        info!("the disk is mounted");
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let uploads = ctx.parent().supervisor("uploads").await?;
        let (sender, mut readings) = mpsc::channel(16);
        ctx.provide(Readings(sender))?;
        while let Some(Some(reading)) = ctx.run_until_cancelled(readings.recv()).await {
            self.batch.push(reading);
            if self.batch.len() == 10 {
                uploads.start_child(upload(std::mem::take(&mut self.batch))).await?;
            }
            ctx.set_status(format!("{} of 10 readings", self.batch.len()));
        }
        Ok(())
    }

    async fn deactivate(&self) {
        info!("{} readings are left over", self.batch.len());
    }
}

/// Uploads one batch, which takes half a second.
#[worker(restart = "temporary")]
async fn upload(batch: Vec<f64>) {
    sleep(Duration::from_millis(500)).await;
    info!("uploaded {} readings, the last is {} °C", batch.len(), batch[batch.len() - 1]);
}

/// Passes the readings of a line to the writer, whichever incarnation of it runs.
#[worker(restart = "transient")]
async fn sensor(ctx: Context, mut readings: Service<Readings>, line: Line) -> Exit {
    while let Some(reading) = ctx.run_until_cancelled(line.read()).await {
        let (reading, Readings(writer)) = (reading?, readings.get().await?);
        // The writer may have ended by now. Its next incarnation gets the next reading.
        _ = writer.send(reading).await;
    }
    Ok(())
}

/// Prints the tree when its time is over.
#[worker(restart = "transient")]
#[expect(clippy::print_stdout, reason = "the output is visible without a log")]
async fn shift(ctx: Context, length: Duration) -> Exit {
    if ctx.run_until_cancelled(sleep(length)).await.is_some() {
        println!("{}", ctx.parent().status().await?);
    }
    Ok(())
}

/// A line to a sensor, which outlives the incarnations that read from it.
#[derive(Clone)]
struct Line {
    reads: Arc<AtomicU32>,
    drops_at: Option<u32>,
}

impl Line {
    fn new(drops_at: Option<u32>) -> Self {
        Self { reads: Arc::default(), drops_at }
    }

    async fn read(&self) -> Result<f64, &'static str> {
        sleep(Duration::from_millis(150)).await;
        match self.reads.fetch_add(1, Ordering::Relaxed) {
            number if Some(number) == self.drops_at => Err("the line dropped"),
            number => Ok(18.0 + f64::from(number) / 4.0),
        }
    }
}

pub(crate) fn by_macro() -> SupervisorBuilder {
    let (uploads, writer, max_uploads) = (DynamicSupervisor, Writer::default(), 4);
    let (north, south) = (Line::new(None), Line::new(Some(7)));
    let station = Station {
        archive: Archive { uploads, writer, max_uploads },
        sensors: Sensors { north: sensor(north), south: sensor(south) },
        shift: shift(Duration::from_secs(4)),
    };
    station.builder()
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let log = tracing_subscriber::fmt().with_ansi(std::io::stdout().is_terminal());
    log.log_internal_errors(false).init();
    let builder = std::env::args().any(|arg| arg == "--builder");
    let station = if builder { by_builder::station() } else { by_macro() };
    station.build()?.with_graceful_shutdown(signals()).await
}
