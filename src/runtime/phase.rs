//! How far a supervisor is, and a way to wait for the next phase.
//!
//! A `watch` channel would do the same with more memory for each supervisor. perf: budgets row
//! "10×10×10×10: build, stop"

use std::pin::pin;
use std::sync::OnceLock;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

use super::outcome::End;
use crate::panic::CatchWakerPanic;
use crate::sync::Mutex;

/// The phase of a supervisor.
#[derive(Clone, Debug)]
pub(crate) enum SupervisorPhase {
    Starting,
    Up,
    Ended { end: End, was_up: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Progress {
    phase: Mutex<SupervisorPhase>,
    /// When the supervisor has begun to end.
    stopping: OnceLock<Instant>,
    entered: Notify,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let phase = Mutex::new(SupervisorPhase::Starting);
        Self { phase, stopping: OnceLock::new(), entered: Notify::new() }
    }

    pub(crate) fn phase(&self) -> SupervisorPhase {
        self.phase.lock().clone()
    }

    pub(crate) fn stopping(&self, now: Instant) {
        if self.stopping.set(now).is_ok() {
            self.entered.notify_waiters();
        }
    }

    /// Waits until the supervisor has begun to end.
    #[cfg(feature = "console")]
    pub(crate) async fn until_stopping(&self) {
        loop {
            let entered = pin!(self.entered.notified());
            if self.stopping_since().is_some()
                || matches!(self.phase(), SupervisorPhase::Ended { .. })
            {
                return;
            }
            CatchWakerPanic::new(entered).await;
        }
    }

    pub(crate) fn stopping_since(&self) -> Option<Instant> {
        self.stopping.get().copied()
    }

    pub(crate) fn up(&self) {
        *self.phase.lock() = SupervisorPhase::Up;
        self.entered.notify_waiters();
    }

    pub(crate) fn ended(&self, end: End) {
        {
            let mut phase = self.phase.lock();
            let was_up = matches!(*phase, SupervisorPhase::Up);
            *phase = SupervisorPhase::Ended { end, was_up };
        }
        self.entered.notify_waiters();
    }

    /// Waits until the supervisor has ended.
    pub(crate) async fn until_ended(&self) -> End {
        match self.reached(|phase| matches!(phase, SupervisorPhase::Ended { .. })).await {
            SupervisorPhase::Ended { end, .. } => end,
            SupervisorPhase::Starting | SupervisorPhase::Up => {
                unreachable!("only `Ended` is waited for")
            }
        }
    }

    /// Waits until the phase satisfies `is_such`.
    pub(crate) async fn reached(
        &self,
        is_such: impl Fn(&SupervisorPhase) -> bool,
    ) -> SupervisorPhase {
        consume_budget().await;
        loop {
            // Created before the phase is read, so that no change is missed in between.
            let entered = pin!(self.entered.notified());
            let phase = self.phase();
            if is_such(&phase) {
                return phase;
            }
            CatchWakerPanic::new(entered).await;
        }
    }
}
