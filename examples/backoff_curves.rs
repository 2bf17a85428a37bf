//! The delays of every preset before each restart.
//!
//! Prints one line for each preset: its name, and the first twelve delays of a child that fails at
//! once, without jitter. The delays are measured: a supervisor runs under a paused clock.
//!
//! ```text
//! cargo run --example backoff_curves
//! ```
//!
//! If there is a folder `book/src`, the example also writes the plots and the table of the book.
//!
//! Three presets are special. `elfo` restarts no child unless its spec says so. The delays of `xebia`
//! are random, so the example shows the longest. For `suture`, it shows the pause after restarts without
//! a delay. The limits of all other presets are removed, so that they don't give up.

#![expect(clippy::print_stdout, reason = "it is what this is for")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::policy::{Jitter, Preset};
use verger::{ChildSpec, Context, ExitError, Readiness, RestartType, Supervisor, worker};

#[path = "backoff_curves/plot.rs"]
mod plot;

const WAITS: usize = 12;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for preset in Preset::all() {
        let name = preset.name();
        let waits = waits(preset).await?;
        let shown: Vec<_> = waits.iter().map(|wait| plot::short(*wait)).collect();
        println!("{name} {}", shown.join(" "));
        rows.push((name, waits));
    }
    let book = Path::new("book/src");
    if book.is_dir() {
        plot::write(book, &rows)?;
    }
    Ok(())
}

/// Returns the delays of a child that fails as soon as it is started.
async fn waits(preset: Preset) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let app = Supervisor::builder("app").random(|| || 0.999);
    let child = failing(&preset, Arc::clone(&starts));
    let app = match preset.name() {
        "suture" => app.preset(preset).child(child),
        "signalpy" | "systemd" => {
            app.preset(preset).child(child.own_restarts(1_000, Duration::from_millis(1)))
        }
        _ => app.preset(preset).unlimited_restarts().child(child),
    };
    app.build()?.with_graceful_shutdown(sleep(Duration::from_secs(100_000))).await?;
    let starts = starts.lock().expect("the lock is never poisoned");
    Ok(starts.windows(2).map(|pair: &[Instant]| pair[1] - pair[0]).collect())
}

/// Returns a child that records its starts, and fails until there are twelve delays.
fn failing(preset: &Preset, starts: Arc<Mutex<Vec<Instant>>>) -> ChildSpec {
    let run = move |ctx: Context| {
        let count = {
            let mut starts = starts.lock().expect("the lock is never poisoned");
            starts.push(Instant::now());
            starts.len()
        };
        async move {
            if count <= WAITS {
                return Err(ExitError::from("no luck"));
            }
            ctx.ready();
            ctx.cancelled().await;
            Ok(())
        }
    };
    let backoff = preset.backoff().clone().jitter(Jitter::None);
    let child = worker("child", run).backoff(backoff);
    // SignalPy supervises only the start of a child.
    match preset.name() {
        "signalpy" => child.readiness(Readiness::Signal),
        "elfo" => child.restart(RestartType::Transient),
        _ => child,
    }
}
