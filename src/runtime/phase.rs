//! How far a supervisor is, and a way to wait for the next phase.

use std::pin::pin;
use std::time::Instant;

use tokio::sync::watch;

use super::outcome::End;
use crate::panic::CatchWakerPanic;

/// The phase of a supervisor.
#[derive(Clone, Debug)]
pub(crate) enum SupervisorPhase {
    Starting,
    Up,
    Ended { end: End, was_up: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Progress(watch::Sender<State>);

#[derive(Debug)]
struct State {
    phase: SupervisorPhase,
    /// When the supervisor began to stop.
    stopping: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let state = State { phase: SupervisorPhase::Starting, stopping: None };
        Self(watch::Sender::new(state))
    }

    pub(crate) fn phase(&self) -> SupervisorPhase {
        self.0.borrow().phase.clone()
    }

    pub(crate) fn stopping(&self, now: Instant) {
        self.0.send_if_modified(|state| {
            let is_first = state.stopping.is_none();
            state.stopping.get_or_insert(now);
            is_first
        });
    }

    /// Waits until the supervisor has begun to stop.
    pub(crate) async fn until_stopping(&self) {
        let is_stopping = |state: &State| {
            state.stopping.is_some() || matches!(state.phase, SupervisorPhase::Ended { .. })
        };
        self.until(is_stopping).await;
    }

    pub(crate) fn stopping_since(&self) -> Option<Instant> {
        self.0.borrow().stopping
    }

    pub(crate) fn up(&self) {
        self.0.send_modify(|state| state.phase = SupervisorPhase::Up);
    }

    pub(crate) fn ended(&self, end: End) {
        self.0.send_modify(|state| {
            let was_up = matches!(state.phase, SupervisorPhase::Up);
            state.phase = SupervisorPhase::Ended { end, was_up };
        });
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
        self.until(|state| is_such(&state.phase)).await
    }

    async fn until(&self, is_such: impl Fn(&State) -> bool) -> SupervisorPhase {
        let mut changes = self.0.subscribe();
        let reached = pin!(changes.wait_for(is_such));
        let reached = CatchWakerPanic::new(reached).await.expect("the sender is borrowed");
        reached.phase.clone()
    }
}
