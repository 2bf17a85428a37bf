//! Retries and circuit breakers.

mod breakers;
mod retries;

use std::io;
use std::time::Duration;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Most errors can't be cloned.
#[derive(Debug, thiserror::Error)]
#[error("no prices")]
struct NoPrices(#[source] io::Error);
