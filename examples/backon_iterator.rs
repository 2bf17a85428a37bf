//! Delays of other crates as a backoff: any iterator of durations, here two of the crate `backon`.
//!
//! Three children fail at once, again and again. Their supervisor waits as long as their iterators say, and gives a child up
//! when its iterator has ended. Watch `backon-default`: `backon` yields three delays by default, which is meant for one call.
//! A child that is to be restarted for ever needs `without_max_times`. `backon` computes with `f32`, so 1.5 times 100 ms
//! are 150.000006 ms. Prefer [`Backoff::exponential`] and its relatives, which a configuration can change; an iterator is for
//! what they can't express.
//!
//! ```text
//! cargo run --example backon_iterator
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::time::timeout;
use verger::policy::OnExhausted;
use verger::status::EventKind;
use verger::{Backoff, ChildSpec, Context, Exit, Lifecycle, Supervisor, worker};

/// After so many failures, the child that is never given up has been seen long enough.
const ENOUGH: usize = 6;

async fn fails(_ctx: Context) -> Exit {
    Err("connection refused".into())
}

/// Multiplies each delay by 1.5, up to 400 ms.
fn growing() -> ExponentialBuilder {
    let millis = Duration::from_millis;
    let builder = ExponentialBuilder::default().with_factor(1.5);
    builder.with_min_delay(millis(100)).with_max_delay(millis(400))
}

fn child(name: &str, backoff: Backoff) -> ChildSpec {
    worker(name, fails).backoff(backoff)
}

async fn show() -> anyhow::Result<()> {
    // The function is called again after each reset: a child that was well for a while begins with the first delay.
    let primes = Backoff::iter(|| [2, 3, 5, 7, 11].map(Duration::from_secs));
    let endless = Backoff::iter(|| growing().without_max_times().build());
    let default = Backoff::iter(|| growing().build());
    let mut app = Supervisor::builder("app")
        .unlimited_restarts()
        .on_exhausted(OnExhausted::StopChild)
        .child(child("primes", primes))
        .child(child("backon-endless", endless))
        .child(child("backon-default", default))
        .build()?;
    let mut events = app.events();
    let app = app.start().await?;

    let mut delays = BTreeMap::<String, Vec<String>>::new();
    let mut open = 3;
    while open > 0 {
        let event = events.next().await.context("the tree has ended")?;
        let of_child = delays.entry(event.path.name().to_owned()).or_default();
        match event.kind {
            EventKind::Moved { to: Lifecycle::Restarting, wait: Some((_, delay)), .. }
                if of_child.len() < ENOUGH =>
            {
                of_child.push(format!("{delay:?}"));
                if of_child.len() == ENOUGH {
                    of_child.push("and so on".to_owned());
                    open -= 1;
                }
            }
            EventKind::GaveUp { .. } => {
                of_child.push("given up".to_owned());
                open -= 1;
            }
            _ => {}
        }
    }
    for (name, delays) in delays {
        println!("{name}: {}", delays.join(", "));
    }
    Ok(app.stop("the example is over").await?)
}

/// The clock is paused: a wait takes no time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(100), show()).await.context("the example takes too long")?
}
