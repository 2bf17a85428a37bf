//! How far a supervisor is, and a way to wait for the next phase.
//!
//! A `watch` channel would do the same with more memory for each supervisor. perf: budgets row
//! "10×10×10×10: build, stop"

use tokio::sync::Notify;

use super::outcome::End;
use crate::sync::Mutex;

/// The phase of a supervisor.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Starting,
    Up,
    Ended { end: End, was_up: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Progress {
    phase: Mutex<Phase>,
    entered: Notify,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { phase: Mutex::new(Phase::Starting), entered: Notify::new() }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.lock().clone()
    }

    pub(crate) fn up(&self) {
        *self.phase.lock() = Phase::Up;
        self.entered.notify_waiters();
    }

    pub(crate) fn ended(&self, end: End) {
        {
            let mut phase = self.phase.lock();
            let was_up = matches!(*phase, Phase::Up);
            *phase = Phase::Ended { end, was_up };
        }
        self.entered.notify_waiters();
    }

    /// Waits until the phase satisfies `is_such`.
    pub(crate) async fn reached(&self, is_such: impl Fn(&Phase) -> bool) -> Phase {
        loop {
            // Created before the phase is read, so that no change is missed in between.
            let entered = self.entered.notified();
            let phase = self.phase();
            if is_such(&phase) {
                return phase;
            }
            entered.await;
        }
    }
}
