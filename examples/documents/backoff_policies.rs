//! actor-ts, *Backoff policy*: both tables of the document, with and without its random source.
//!
//! The listings of the document:
//!
//! ```ts
//! const policy = exponentialBackoff({ minMs: 200, maxMs: 10_000, randomFactor: 0.2 });
//! policy.delayFor(0); // ~200ms (±20% jitter)
//! policy.delayFor(1); // ~400ms
//! policy.delayFor(2); // ~800ms
//! policy.delayFor(3); // ~1600ms
//! policy.delayFor(4); // ~3200ms
//! policy.delayFor(5); // ~6400ms
//! policy.delayFor(6); // ~10_000 (clamped)
//! policy.delayFor(30); // ~10_000 (still clamped)
//!
//! const policy = linearBackoff({ minMs: 500, maxMs: 5_000, stepMs: 500 });
//! policy.delayFor(0); // ~500ms
//! policy.delayFor(1); // ~1000ms
//! policy.delayFor(2); // ~1500ms
//! policy.delayFor(3); // ~2000ms
//! policy.delayFor(8); // ~4500ms
//! policy.delayFor(9); // ~5000ms (clamped)
//! policy.delayFor(20); // ~5000ms (still clamped)
//!
//! let seed = 0;
//! const deterministicRandom = () => (seed = (seed * 9301 + 49297) % 233280) / 233280;
//! const policy = exponentialBackoff({
//!   minMs: 100, maxMs: 10_000, randomFactor: 0.2, random: deterministicRandom,
//! });
//! // Now `policy.delayFor(n)` is reproducible.
//!
//! let attempt = 0;
//! while (true) {
//!   try { const result = await someRiskyCall(); return result; }
//!   catch (err) {
//!     const delay = policy.delayFor(attempt++);
//!     await new Promise(r => setTimeout(r, delay));
//!     if (attempt >= 5) throw err;
//!   }
//! }
//!
//! // Fibonacci backoff — for fun.
//! function fibBackoff(opts: { maxMs: number }): BackoffPolicy {
//!   return {
//!     delayFor(n: number): number {
//!       let a = 100, b = 100;
//!       for (let i = 0; i < n; i++) { [a, b] = [b, a + b]; }
//!       return Math.min(a, opts.maxMs);
//!     },
//!   };
//! }
//! ```
//!
//! ```text
//! cargo run --example documents_backoff_policies
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::time::Duration;

use verger::Backoff;
use verger::policy::{Curve, Jitter, Random};

#[path = "timeline.rs"]
mod timeline;

use timeline::Timeline;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// `exponentialBackoff({ minMs, maxMs, randomFactor: 0.2 })`. Jitter may exceed the last delay, as in the document.
fn exponential(min: Duration, max: Duration) -> Backoff {
    Backoff::exponential(min, max).jitter(Jitter::Symmetric(0.2)).soft_cap()
}

/// `linearBackoff({ minMs, maxMs, stepMs })`, with the same jitter.
fn linear(min: Duration, max: Duration, step: Duration) -> Backoff {
    Backoff::linear(min, step, max).jitter(Jitter::Symmetric(0.2)).soft_cap()
}

/// `deterministicRandom`.
fn deterministic_random() -> impl Random {
    let mut seed = 0_u32;
    move || {
        seed = (seed * 9301 + 49297) % 233_280;
        f64::from(seed) / 233_280.0
    }
}

/// `fibBackoff`.
struct FibBackoff {
    max: Duration,
}

impl Curve for FibBackoff {
    fn delay(&self, index: u32) -> Duration {
        let (mut a, mut b) = (ms(100), ms(100));
        for _ in 0..index {
            (a, b) = (b, a.saturating_add(b));
        }
        a.min(self.max)
    }
}

/// `policy.delayFor(n)` for each of the numbers.
fn delays(policy: &Backoff, numbers: &[u32], mut random: impl Random) -> Vec<Duration> {
    numbers.iter().filter_map(|number| policy.delay(*number, &mut random)).collect()
}

/// The numbers of the table of `exponentialBackoff`.
pub(crate) fn exponential_table(random: impl Random) -> Vec<Duration> {
    delays(&exponential(ms(200), ms(10_000)), &[0, 1, 2, 3, 4, 5, 6, 30], random)
}

/// The numbers of the table of `linearBackoff`.
pub(crate) fn linear_table(random: impl Random) -> Vec<Duration> {
    delays(&linear(ms(500), ms(5_000), ms(500)), &[0, 1, 2, 3, 8, 9, 20], random)
}

/// The policy with a random source of its own.
pub(crate) fn reproducible() -> Vec<Duration> {
    let policy = exponential(ms(100), ms(10_000));
    delays(&policy, &[0, 1, 2, 3, 4, 5, 6, 7], deterministic_random())
}

pub(crate) fn fibonacci() -> Vec<Duration> {
    let policy = Backoff::custom(FibBackoff { max: ms(5_000) });
    delays(&policy, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], || 0.5)
}

/// The loop of the document around a call that never succeeds.
pub(crate) async fn standalone() -> Vec<String> {
    let log = Timeline::new();
    let policy = exponential(ms(200), ms(5_000));
    let mut attempt = 0;
    loop {
        log.note("someRiskyCall");
        let error = "refused";
        let delay = policy.delay(attempt, &mut || 0.5).unwrap_or_default();
        attempt += 1;
        tokio::time::sleep(delay).await;
        if attempt >= 5 {
            log.note(error);
            return log.lines();
        }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    println!("exponential  {:?}", exponential_table(|| 0.5));
    println!("  earliest   {:?}", exponential_table(|| 0.0));
    println!("linear       {:?}", linear_table(|| 0.5));
    println!("  earliest   {:?}", linear_table(|| 0.0));
    println!("reproducible {:?}", reproducible());
    println!("fibonacci    {:?}", fibonacci());
    println!("{}", standalone().await.join("\n"));
}
