//! How a supervisor ended, and what that means to its caller and to the supervisor above.

use std::sync::Arc;

use crate::error::{RunError, StartError};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::path::Path;

/// How a supervisor ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It was stopped.
    Stopped,
    /// Its significant children have ended, or a child whose end is the supervisor's own end.
    AutoShutdown,
    /// Either of these, while these children below were aborted and still run.
    Leaked { children: Vec<Path> },
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
    /// Adds the children that leaked below.
    pub(crate) fn leaving(self, children: Vec<Path>) -> Self {
        match self {
            Self::Stopped | Self::AutoShutdown if !children.is_empty() => Self::Leaked { children },
            end => end,
        }
    }

    /// Returns the result of running a root that ended like this.
    pub(crate) fn result(&self, path: &Path) -> Result<(), RunError> {
        let path = path.clone();
        match self {
            Self::GaveUp { cause, .. } => {
                let Cause { child, reason } = Cause::clone(cause);
                Err(RunError::GaveUp { path, child, reason })
            }
            Self::StartFailed { cause, others } => Err(start_failed(cause, others).into()),
            Self::Exit { code: 0, .. } => Ok(()),
            &Self::Exit { ref cause, code } => {
                let Cause { child, reason } = Cause::clone(cause);
                Err(RunError::Exited { path, code, child, reason })
            }
            Self::Aborted => Err(RunError::Aborted { path }),
            Self::Stopped | Self::AutoShutdown => Ok(()),
            Self::Leaked { children } => Err(RunError::Leaked { children: children.clone() }),
        }
    }

    /// Returns the exit that the supervisor above sees, which knows this one only as a child.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Stopped | Self::AutoShutdown | Self::Leaked { .. } => Ok(()),
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
