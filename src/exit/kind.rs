//! Kinds of exits.

use crate::string_enum::string_enum;

/// The kind of an [`ExitReason`](crate::ExitReason): its variant without the values in it.
///
/// Displayed, written and read as the words of [`ExitReason::kind`](crate::ExitReason::kind).
///
/// The example of [`kill_child`](crate::SupervisorHandle::kill_child) compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ExitKind {
    /// See [`ExitReason::Normal`](crate::ExitReason::Normal).
    Normal,
    /// See [`ExitReason::Shutdown`](crate::ExitReason::Shutdown).
    Shutdown,
    /// See [`ExitReason::Failed`](crate::ExitReason::Failed).
    Failed,
    /// See [`ExitReason::Panicked`](crate::ExitReason::Panicked).
    Panicked,
    /// See [`ExitReason::ActivationFailed`](crate::ExitReason::ActivationFailed).
    ActivationFailed,
    /// See [`ExitReason::ActivationTimedOut`](crate::ExitReason::ActivationTimedOut).
    ActivationTimedOut,
    /// See [`ExitReason::Hung`](crate::ExitReason::Hung).
    Hung,
    /// See [`ExitReason::Aborted`](crate::ExitReason::Aborted).
    Aborted,
    /// See [`ExitReason::Killed`](crate::ExitReason::Killed).
    Killed,
    /// See [`ExitReason::Escalated`](crate::ExitReason::Escalated).
    Escalated,
    /// See [`ExitReason::Exit`](crate::ExitReason::Exit).
    Exit,
    /// See [`ExitReason::Unhealthy`](crate::ExitReason::Unhealthy).
    Unhealthy,
    /// See [`ExitReason::TimedOut`](crate::ExitReason::TimedOut).
    TimedOut,
}

impl ExitKind {
    /// Whether an exit of this kind is clean. See [`ExitReason::is_clean`].
    ///
    /// [`ExitReason::is_clean`]: crate::ExitReason::is_clean
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Normal | Self::Shutdown)
    }
}

string_enum!(
    ExitKind, "kind of exit":
    Normal = "normal",
    Shutdown = "shutdown",
    Failed = "failed",
    Panicked = "panicked",
    ActivationFailed = "activation_failed",
    ActivationTimedOut = "activation_timed_out",
    Hung = "hung",
    Aborted = "aborted",
    Killed = "killed",
    Escalated = "escalated",
    Exit = "exit",
    Unhealthy = "unhealthy",
    TimedOut = "timed_out",
);
