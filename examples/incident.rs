//! The incident that the chapter *Following one incident* follows through a log: a database fails, until its operator makes
//! room on its disk. The program plays all parts, on a paused clock, so that each run logs the same.
//!
//! ```text
//! cargo run --example incident > app.log
//! LOG=json cargo run --example incident > app.json
//! ```

use std::error::Error;
use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use verger::policy::Jitter;
use verger::{Backoff, Context, Exit, Strategy, Supervisor, worker};

const SECOND: Duration = Duration::from_secs(1);

async fn db(ctx: Context) -> Exit {
    info!("connecting");
    match ctx.incarnation() {
        1 => {
            info!(connections = 8, "connected");
            sleep(42 * SECOND).await;
            warn!(free = "0 B", "checkpoint failed");
            Err("connection reset by peer".into())
        }
        2 | 3 => {
            sleep(SECOND / 4).await;
            Err("no space left on device".into())
        }
        _ => {
            info!(connections = 8, "connected");
            ctx.cancelled().await;
            Ok(())
        }
    }
}

async fn orders(ctx: Context) {
    info!("taking orders");
    ctx.cancelled().await;
}

async fn api(ctx: Context) {
    ctx.cancelled().await;
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let log = tracing_subscriber::fmt()
        .with_timer(Night(Instant::now()))
        .with_ansi(std::io::stdout().is_terminal());
    match std::env::var("LOG").is_ok_and(|it| it == "json") {
        true => log.json().init(),
        false => log.init(),
    }

    let app = Supervisor::builder("app")
        .strategy(Strategy::RestForOne)
        .restarts(4, 60 * SECOND)
        .defaults(|it| it.backoff(Backoff::exponential(SECOND, 30 * SECOND).jitter(Jitter::None)))
        .child(worker("api", api))
        .child(worker("db", db))
        .child(worker("orders", orders));
    let app = app.build()?.start().await?;

    // The third restart is due at 47.5 s, and the limit allows one more.
    sleep(46 * SECOND).await;
    let alice = app.on_behalf_of("alice", "the disk is full, making room");
    alice.hold("db").await?;
    sleep(300 * SECOND).await;
    let alice = app.on_behalf_of("alice", "20 GB free");
    alice.reset("db").await?;
    alice.release("db").await?;

    sleep(60 * SECOND).await;
    app.stop("the example is over").await?;
    Ok(())
}

/// The time in the log: the paused clock, which is set to 3:12 in the night when it starts.
struct Night(Instant);

impl FormatTime for Night {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        let ms = self.0.elapsed().as_millis();
        let (minute, second) = (12 + ms / 60_000, ms / 1_000 % 60);
        write!(to, "2026-11-30T03:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
    }
}
