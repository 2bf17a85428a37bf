//! Supervision trees for tokio.

mod exit;
mod lifecycle;
mod machine;
mod path;
mod policy;

pub use crate::exit::{Exit, ExitError, ExitReason, Outcome};
pub use crate::lifecycle::Lifecycle;
pub use crate::path::{NameProblem, Path};
pub use crate::policy::{
    AutoShutdown, Backoff, BackoffProblem, FirstStart, OnExhausted, OnLeak, Preset, Readiness,
    RestartType, Shutdown, Start, StartCause, Strategy, UnknownRestartType,
};
