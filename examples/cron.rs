//! Three periodic children: one by a period, one by a cron expression, and one that is sometimes too slow.
//!
//! Run it, watch the log for a while, and end it with Ctrl-C:
//!
//! ```text
//! cargo run --example cron --features cron
//! ```

use std::io::IsTerminal;
use std::time::Duration;

use tokio::time::sleep;
use verger::periodic::{Missed, Overrun, RunContext};
use verger::{Exit, RunError, Supervisor, cron, every, signals};

/// Runs every two seconds, a little later each time.
async fn poll(run: RunContext) {
    tracing::info!(number = run.number(), late = ?run.late(), "polling");
}

/// Runs at each fifth second of the wall clock in Berlin. Every third run fails, which the log shows.
async fn report(run: RunContext) -> Exit {
    tracing::info!(number = run.number(), "reporting");
    if run.number().is_multiple_of(3) { Err("the printer is out of paper".into()) } else { Ok(()) }
}

/// Runs every three seconds, and takes four: each next run begins when the one before has ended.
async fn compact(run: RunContext) {
    tracing::info!(number = run.number(), "compacting");
    // A run that is cancelled may finish its work within the grace of the child.
    run.run_until_cancelled(sleep(Duration::from_secs(4))).await;
}

fn app() -> verger::SupervisorBuilder {
    Supervisor::builder("app")
        .child(every("poll", Duration::from_secs(2), poll).jitter(Duration::from_millis(500)))
        .child(
            cron("report", "*/5 * * * * *", report)
                .in_tz("Europe/Berlin")
                .missed(Missed::OnceWithin(Duration::from_secs(60))),
        )
        .child(every("compact", Duration::from_secs(3), compact).overrun(Overrun::Queue))
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let log = tracing_subscriber::fmt().with_ansi(std::io::stdout().is_terminal());
    log.log_internal_errors(false).init();
    app().build()?.with_graceful_shutdown(signals()).await
}
