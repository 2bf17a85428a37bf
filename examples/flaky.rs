//! A child whose `activate` fails seven times of ten, beside a child that isn't affected.
//!
//! ```text
//! app            one_for_one   at most two restarts within a minute
//! ├─ clock                     ticks from the start
//! └─ connection                fails in `activate` until the server accepts it
//! ```
//!
//! The supervisor starts `connection` again after each failure, and waits longer each time. A
//! failure before the child is active doesn't count as a restart, so the limit is never reached.
//! The random numbers are seeded: each run shows the same attempts.
//!
//! ```text
//! cargo run --example flaky
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use tokio::time::{sleep, timeout};
use verger::{Backoff, Child, Context, Exit, Supervisor, async_trait, child, worker_with};

/// The probability that the server refuses a connection.
const REFUSED: f64 = 0.7;
/// With this seed, the server refuses the first four connections.
const SEED: u64 = 5;

/// A connection to a server that refuses most attempts.
struct Connection {
    /// Shared by all incarnations, so that each of them draws the next number.
    random: Arc<Mutex<Rng>>,
}

#[async_trait]
impl Child for Connection {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        let refused = self.random.lock().expect("the lock is never poisoned").f64() < REFUSED;
        println!(
            "connection: attempt {}: {}",
            ctx.incarnation(),
            if refused { "refused" } else { "accepted" }
        );
        if refused { Err("connection refused".into()) } else { Ok(()) }
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

async fn clock(ctx: Context, ticks: Arc<AtomicU32>) {
    while ctx.run_until_cancelled(sleep(Duration::from_millis(10))).await.is_some() {
        ticks.fetch_add(1, Ordering::Relaxed);
    }
}

async fn show() -> anyhow::Result<()> {
    let ticks = Arc::new(AtomicU32::new(0));
    let random = Arc::new(Mutex::new(Rng::with_seed(SEED)));
    let connection = child("connection", move || Connection { random: Arc::clone(&random) });
    let backoff = Backoff::exponential(Duration::from_millis(20), Duration::from_secs(1));
    let app = Supervisor::builder("app")
        .restarts(2, Duration::from_secs(60))
        .child(worker_with("clock", Arc::clone(&ticks), clock))
        .child(connection.backoff(backoff));

    // Resolves when the last child is active.
    let app = app.build()?.start().await?;

    let status = app.status().await?;
    println!("{status}");
    let [clock, connection] = &*status.root.children else { unreachable!("two children") };
    let counted = status.root.supervisor.as_ref().map(|supervisor| supervisor.restarts_in_period);
    ensure!(connection.child.restarts > 2, "the first attempts did not fail");
    ensure!(counted == Some(0), "a failure before the child was active counted as a restart");
    ensure!(clock.child.restarts == 0, "the clock was restarted");
    ensure!(ticks.load(Ordering::Relaxed) > 0, "the clock did not tick meanwhile");
    println!("active after {} failures", connection.child.restarts);
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}
