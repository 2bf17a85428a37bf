//! How a supervisor ended, and what that means for whoever waits for it.

use std::sync::Arc;

use crate::error::{RunError, StartError};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::path::Path;

/// How a supervisor ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It was asked to stop.
    Stopped,
    /// Its significant children have ended, or one whose end was to be its own.
    AutoShutdown,
    /// Either of them, with these left below it, which were aborted and were still there.
    Leaked {
        children: Vec<Path>,
    },
    /// It was aborted.
    Aborted,
    GaveUp {
        cause: Box<Cause>,
        /// It wants its own supervisor to see a clean end.
        cleanly: bool,
    },
    /// The program is to end with this code.
    Exit {
        cause: Box<Cause>,
        code: u8,
    },
    StartFailed {
        cause: Box<Cause>,
    },
}

/// The child whose end was that of its supervisor, and how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) child: Path,
    pub(crate) reason: ExitReason,
}

impl End {
    /// The same, with these left below it.
    pub(crate) fn leaving(self, children: Vec<Path>) -> Self {
        match self {
            Self::Stopped | Self::AutoShutdown if !children.is_empty() => Self::Leaked { children },
            end => end,
        }
    }

    /// What it means at the root.
    pub(crate) fn result(&self, path: &Path) -> Result<(), RunError> {
        let path = path.clone();
        match self {
            Self::GaveUp { cause, .. } => {
                let Cause { child, reason } = Cause::clone(cause);
                Err(RunError::GaveUp { path, child, reason })
            }
            Self::StartFailed { cause } => Err(start_failed(cause).into()),
            // The code is what was asked for, whatever else there is to say.
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

    /// What it means for the supervisor above, which knows this one only as a child.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Stopped | Self::AutoShutdown | Self::Leaked { .. } => Ok(()),
            Self::GaveUp { cleanly: true, .. } => Err(ExitError::from_reason(ExitReason::Shutdown)),
            Self::GaveUp { cause, .. } => {
                let (child, source) = (cause.child.clone(), Arc::new(cause.reason.clone()));
                Err(ExitError::from_reason(ExitReason::Escalated { child, source }))
            }
            Self::StartFailed { cause } => {
                let error: Box<dyn std::error::Error + Send + Sync> = start_failed(cause).into();
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

fn start_failed(cause: &Cause) -> StartError {
    let Cause { child: path, reason } = cause.clone();
    StartError::ChildFailed { path, reason }
}
