//! Finds out that the paused clock stands still, so that a test fails instead of hanging.
//!
//! Only a thread outside of the runtime can tell: without the clock no timer of the test ever fires. The
//! thread compares the clock of the runtime with the real one.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

use super::expect::relative;
use crate::child::{BusyWatch, Context};
use crate::clock::{now, real};
use crate::handle::{SupervisorHandle, supervisor_of};

/// How long the clock may stand still by default, in real time.
pub(super) const REAL_PATIENCE: Duration = Duration::from_secs(30);

/// Watches the clock of a tree until it is dropped.
#[derive(Debug)]
pub(super) struct ClockWatch {
    /// The text of the last standstill.
    found: watch::Receiver<Option<String>>,
    pub(super) patience: mpsc::Sender<Duration>,
}

impl ClockWatch {
    /// Watches the clock of this runtime. `None` if no test can pause it, because the runtime has several threads.
    pub(super) fn new(handle: SupervisorHandle) -> Option<Self> {
        let runtime = Handle::current();
        if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return None;
        }
        let (report, found) = watch::channel(None);
        let (patience, changes) = mpsc::channel();
        let busy = BusyWatch::new();
        let thread = std::thread::Builder::new().name("verger-test".to_owned());
        let watching = thread.spawn(move || {
            let _entered = runtime.enter();
            let mut printed = false;
            watch_clock(&changes, || {
                let text = standstill(&busy, &handle);
                // Also for a test that waits for something else, and for a runtime that waits for the closure.
                if !std::mem::replace(&mut printed, true) {
                    let _ = std::io::stderr().write_all(format!("verger: {text}\n").as_bytes());
                }
                let _ = report.send(Some(text));
            });
        });
        // Without a thread, the test may hang as it would have before.
        watching.ok()?;
        Some(Self { found, patience })
    }

    /// Resolves when the clock stands still while this is awaited.
    pub(super) async fn standstill(&self) -> String {
        let mut found = self.found.clone();
        found.mark_unchanged();
        loop {
            if found.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(text) = &*found.borrow_and_update() {
                return text.clone();
            }
        }
    }
}

/// Calls `report` each time the clock has stood still for the patience, until the sender of `changes` is dropped.
fn watch_clock(changes: &mpsc::Receiver<Duration>, mut report: impl FnMut()) {
    let mut patience = REAL_PATIENCE;
    let mut still = Still { clock: now(), since: real() };
    loop {
        match changes.recv_timeout((patience / 8).min(Duration::from_secs(1))) {
            Ok(changed) => patience = changed,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if still.look(now(), real(), patience) {
                    report();
                }
            }
        }
    }
}

/// Since when the clock has not moved.
struct Still {
    clock: Instant,
    since: Instant,
}

impl Still {
    /// Returns whether the clock has stood still for `patience`, which begins again then.
    fn look(&mut self, clock: Instant, real: Instant, patience: Duration) -> bool {
        let is_over = clock == self.clock && real.saturating_duration_since(self.since) >= patience;
        if is_over || clock != self.clock {
            *self = Self { clock, since: real };
        }
        is_over
    }
}

/// Says what keeps the clock, and what to do.
fn standstill(busy: &BusyWatch, handle: &SupervisorHandle) -> String {
    let (root, tree) = (handle.path(), &handle.supervisor.tree);
    let closures = busy.closures();
    let of_tree = closures.iter().map(|closure| &closure.incarnation).filter(|incarnation| {
        let supervisor = supervisor_of(&Context::new(Arc::clone(incarnation)));
        Arc::ptr_eq(&supervisor.tree, tree)
    });
    let mut named: Vec<_> = of_tree
        .map(|incarnation| {
            let path = incarnation.path();
            format!("\n  {} (incarnation {})", relative(&root, &path), incarnation.number)
        })
        .collect();
    named.dedup();
    if named.is_empty() {
        return "the paused clock stands still: a task is never idle, or a closure of \
                `tokio::task::spawn_blocking` runs, which belongs to no child; call \
                `Context::spawn_blocking` instead, which names its child here, or run the test without \
                `start_paused`"
            .to_owned();
    }
    format!(
        "the paused clock stands still while code of these children blocks a thread:{}\nif it waits for the \
         clock, let it wait with `BlockingContext::sleep` or `block_on`; otherwise release what it waits for \
         before the test waits, or run the test without `start_paused`",
        named.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_moves_begins_the_patience_again() {
        let at = |seconds| real_start() + Duration::from_secs(seconds);
        let patience = Duration::from_secs(30);
        let mut still = Still { clock: at(0), since: at(0) };
        assert!(!still.look(at(0), at(29), patience));
        assert!(!still.look(at(1), at(30), patience));
        assert!(!still.look(at(1), at(59), patience));
        assert!(still.look(at(1), at(60), patience));
        assert!(!still.look(at(1), at(89), patience), "it begins again");
        assert!(still.look(at(1), at(90), patience));
    }

    /// One instant for all calls.
    fn real_start() -> Instant {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(real);
        *START
    }
}
