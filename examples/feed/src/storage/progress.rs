//! When storage last made progress.
//!
//! The writer and the sources record it while they work, so that a health answer costs them nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Progress(Mutex<Instant>);

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Records that storage has sent receipts, or that it gets its first batch after having none.
    pub(crate) fn made(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the time since then.
    pub(crate) fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}
