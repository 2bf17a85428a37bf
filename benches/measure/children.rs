//! What is the same for children on both sides.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// What an idle child keeps while it waits.
pub(crate) const KEPT: [u64; 8] = [1; 8];

/// The same for both sides, whatever the machine has.
const WORKERS: usize = 2;

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().expect("a runtime")
}

/// For each of `n`.
pub(crate) fn nanos(took: Duration, n: u64) -> f64 {
    took.as_secs_f64() * 1e9 / n as f64
}

/// Counts children at their first instruction, and tells when the last one was there.
#[derive(Debug)]
pub(crate) struct Starts {
    left: AtomicU64,
    last: Mutex<Option<oneshot::Sender<Instant>>>,
}

impl Starts {
    pub(crate) const fn new() -> Self {
        Self { left: AtomicU64::new(0), last: Mutex::new(None) }
    }

    /// When the next `n` have started.
    pub(crate) fn expect(&self, n: u64) -> oneshot::Receiver<Instant> {
        let (last, all) = oneshot::channel();
        *self.last.lock().expect("no panic") = Some(last);
        self.left.store(n, Ordering::SeqCst);
        all
    }

    pub(crate) fn one(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(last) = self.last.lock().expect("no panic").take()
        {
            let _ = last.send(Instant::now());
        }
    }
}

/// The largest resident set of this process so far. Zero where nobody tells it.
pub(crate) fn peak_bytes() -> u64 {
    memory("VmHWM:")
}

/// The resident set of this process. Zero where nobody tells it.
pub(crate) fn resident_bytes() -> u64 {
    memory("VmRSS:")
}

fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
