//! How far a supervisor is, for those who wait for it to get there.
//!
//! A `watch` channel does the same with 360 bytes of its own, most of them lists of waiters, of
//! which there is hardly ever one: at the root.

use tokio::sync::Notify;

use super::end::End;
use crate::sync::Mutex;

/// How far a supervisor is.
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

    /// Waits for a phase such as this; at once, if it is in one.
    pub(crate) async fn reached(&self, is_such: impl Fn(&Phase) -> bool) -> Phase {
        loop {
            // First of all: it hears of each phase that is entered from here on.
            let entered = self.entered.notified();
            let phase = self.phase();
            if is_such(&phase) {
                return phase;
            }
            entered.await;
        }
    }
}
