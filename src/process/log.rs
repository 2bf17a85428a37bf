//! The log of the output of a process: a bounded queue, from which lines are logged on a thread that may block.
//!
//! # Invariants
//!
//! 1. At most [`MAX_BYTES`] of lines wait to be logged.
//! 2. A process waits for a log that makes progress, however slow it is. If the log hasn't taken a line for
//!    [`PATIENCE`], lines are dropped and counted until it takes one again.
//! 3. The subscriber of the program is called without a lock, and never on a thread of the runtime's tasks.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::Dispatch;

use crate::named_task;
use crate::path::Path;
use crate::subscriber::{self, info, warn};
use crate::sync::Mutex;

/// The most bytes of lines that wait. A line counts as at least [`OVERHEAD`].
const MAX_BYTES: usize = 256 * 1024;
const OVERHEAD: usize = 64;

/// How long a process waits for a log that takes no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many lines are taken from the queue at once.
const BATCH: usize = 16;

/// A stream of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

/// See the [module](self).
pub(super) struct LineLog(Arc<Shared>);

struct Shared {
    child: Path,
    incarnation: u32,
    state: Mutex<State>,
    /// Notified when lines were taken, and when the last was logged.
    taken: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Stream, String)>,
    bytes: usize,
    dropped: u64,
    /// Whether the log has taken no line for too long.
    is_stuck: bool,
    /// Whether a thread logs.
    logs: bool,
}

impl LineLog {
    pub(super) fn new(child: Path, incarnation: u32) -> Self {
        let (state, taken) = (Mutex::default(), Notify::new());
        Self(Arc::new(Shared { child, incarnation, state, taken }))
    }

    /// Queues a line. Waits while the queue is full, but not for ever.
    pub(super) async fn push(&self, stream: Stream, line: String) {
        let shared = &self.0;
        if !subscriber::admits(tracing::Level::INFO) {
            return;
        }
        let size = line.len().max(OVERHEAD);
        loop {
            let mut taken = pin!(shared.taken.notified());
            // From here on, what is taken is noticed.
            taken.as_mut().enable();
            {
                let mut state = shared.state.lock();
                if state.bytes + size <= MAX_BYTES {
                    state.bytes += size;
                    state.lines.push_back((stream, line));
                    if !std::mem::replace(&mut state.logs, true) {
                        drop(state);
                        self.log();
                    }
                    return;
                }
                if state.is_stuck {
                    state.dropped += 1;
                    return;
                }
            }
            if timeout(PATIENCE, taken).await.is_err() {
                shared.state.lock().is_stuck = true;
            }
        }
    }

    /// Waits until all lines are logged, but not for ever.
    pub(super) async fn flush(&self) {
        loop {
            let mut taken = pin!(self.0.taken.notified());
            taken.as_mut().enable();
            if !self.0.state.lock().logs || timeout(PATIENCE, taken).await.is_err() {
                return;
            }
        }
    }

    /// Logs on a thread until the queue is empty.
    fn log(&self) {
        let shared = Arc::clone(&self.0);
        // Perhaps one for this thread only, as in a test.
        let dispatch = tracing::dispatcher::get_default(Dispatch::clone);
        let log = move || tracing::dispatcher::with_default(&dispatch, || shared.log());
        drop(named_task::spawn_blocking(|| format!("{} (log)", self.0.child), log));
    }
}

impl Shared {
    fn log(&self) {
        while let Some((lines, dropped)) = self.take() {
            let (child, incarnation) = (&self.child, self.incarnation);
            for (stream, line) in lines {
                info!(target: "verger::process", %child, incarnation, %stream, line, "output");
            }
            if dropped > 0 {
                warn!(
                    target: "verger::process", %child, incarnation, count = dropped,
                    "the log was too slow: lines were dropped"
                );
            }
        }
        self.taken.notify_waiters();
    }

    /// Takes lines, and how many were dropped after them. `None` if there are none, and then this thread is over.
    fn take(&self) -> Option<(Vec<(Stream, String)>, u64)> {
        let mut state = self.state.lock();
        let count = state.lines.len().min(BATCH);
        let lines: Vec<_> = state.lines.drain(..count).collect();
        state.bytes -= lines.iter().map(|(_, line)| line.len().max(OVERHEAD)).sum::<usize>();
        // Those were dropped while the queue was full, so after its last line.
        let dropped = if state.lines.is_empty() { std::mem::take(&mut state.dropped) } else { 0 };
        state.is_stuck = false;
        if lines.is_empty() && dropped == 0 {
            state.logs = false;
            return None;
        }
        drop(state);
        self.taken.notify_waiters();
        Some((lines, dropped))
    }
}
