//! How far a supervisor is, how it ended, and what that means to its caller and to the supervisor above.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::error::{Forced, RunError, StartError};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::CatchWakerPanic;
use crate::path::Path;

/// How a supervisor ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It was stopped.
    Stopped,
    /// Its significant children have ended, or a child whose end is the supervisor's own end.
    AutoShutdown,
    /// It was aborted.
    Aborted,
    GaveUp {
        cause: Box<Cause>,
        /// Whether the supervisor above sees a clean end.
        cleanly: bool,
    },
    /// The program should exit with this code.
    Exit { cause: Box<Cause>, code: u8 },
    StartFailed {
        cause: Box<Cause>,
        /// The children that failed before all were stopped.
        others: Vec<Cause>,
    },
}

/// The child that ended its supervisor, and how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) child: Path,
    pub(crate) reason: ExitReason,
}

impl End {
    /// Returns the result of running a root that ended like this.
    ///
    /// The first cause is the error. Without one, children that were forced are.
    pub(crate) fn result(&self, path: &Path, forced: Forced) -> Result<(), RunError> {
        let path = path.clone();
        match self {
            Self::GaveUp { cause, .. } => {
                let Cause { child, reason } = Cause::clone(cause);
                let Forced { killed, leaked } = forced;
                Err(RunError::GaveUp { path, child, reason, killed, leaked })
            }
            Self::StartFailed { cause, others } => Err(start_failed(cause, others).into()),
            Self::Aborted => Err(RunError::Aborted { path }),
            Self::Stopped | Self::AutoShutdown | Self::Exit { code: 0, .. } => forced.result(),
            &Self::Exit { ref cause, code } => {
                let Cause { child, reason } = Cause::clone(cause);
                let Forced { killed, leaked } = forced;
                Err(RunError::Exited { path, code, child, reason, killed, leaked })
            }
        }
    }

    /// Returns the exit that the supervisor above sees, which knows this one only as a child.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Stopped | Self::AutoShutdown => Ok(()),
            Self::GaveUp { cleanly: true, .. } => Err(ExitError::from_reason(ExitReason::Shutdown)),
            Self::GaveUp { cause, .. } => {
                let (child, source) = (cause.child.clone(), Arc::new(cause.reason.clone()));
                Err(ExitError::from_reason(ExitReason::Escalated { child, source }))
            }
            Self::StartFailed { cause, others } => {
                let error = start_failed(cause, others);
                let error: Box<dyn std::error::Error + Send + Sync> = error.into();
                Err(error.into())
            }
            &Self::Exit { ref cause, code } => {
                let (child, source) = (cause.child.clone(), Arc::new(cause.reason.clone()));
                Err(ExitError::from_reason(ExitReason::Exit { code, child, source }))
            }
            Self::Aborted => Err(ExitError::from_reason(ExitReason::Killed)),
        }
    }
}

fn start_failed(cause: &Cause, others: &[Cause]) -> StartError {
    let Cause { child: path, reason } = cause.clone();
    let others = others.iter().map(|it| (it.child.clone(), it.reason.clone())).collect();
    StartError::ChildFailed { path, reason, others }
}

/// The phase of a supervisor.
#[derive(Clone, Debug)]
pub(crate) enum SupervisorPhase {
    Starting,
    Up,
    Ended { end: End, was_up: bool },
}

/// How far a supervisor is, and a way to wait for the next phase.
#[derive(Debug)]
pub(crate) struct Progress(watch::Sender<State>);

#[derive(Debug)]
struct State {
    phase: SupervisorPhase,
    /// When the supervisor began to stop.
    stopping: Option<Instant>,
    /// The children that were killed since then, and those that had leaked when it had ended.
    forced: Forced,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let state =
            State { phase: SupervisorPhase::Starting, stopping: None, forced: Forced::default() };
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

    /// Notes a child that was killed, if the supervisor stops. Returns whether it does.
    pub(crate) fn note_killed(&self, child: &Path) -> bool {
        let mut stops = false;
        self.0.send_if_modified(|state| {
            stops = state.stopping.is_some();
            if stops {
                state.forced.killed.push(child.clone());
            }
            false
        });
        stops
    }

    pub(crate) fn forced(&self) -> Forced {
        self.0.borrow().forced.clone()
    }

    /// `leaked`: the children that were aborted and still run.
    pub(crate) fn ended(&self, end: End, leaked: Vec<Path>) {
        self.0.send_modify(|state| {
            state.forced.leaked = leaked;
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
