//! The answers to an exit of a child.

use crate::string_enum::string_enum;

/// What a supervisor does when a child exits by itself.
///
/// Displayed and written in snake case, as in `end_supervisor`.
///
/// The example of [`Trigger`](crate::policy::Trigger) sets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExit {
    /// Restarts the child, after its backoff and within the restart limits.
    Restart,
    /// Restarts the child without charging the built-in restart limit or that of its supervisor.
    ///
    /// Use it for an exit that isn't a bug however often it happens, such as a response
    /// `429 Too Many Requests`. Limits that are written for the child still count the restart.
    ///
    /// Only the delay keeps such a restart from becoming a busy loop. The restart is therefore
    /// charged if its delay is zero, or if
    /// [`count_failed_starts`](crate::SupervisorBuilder::count_failed_starts) is set. A limit of zero
    /// restarts doesn't allow it. The same holds for errors before a child is active.
    RestartUncharged,
    /// Leaves the child down.
    ///
    /// A [`Temporary`](crate::RestartType::Temporary) child, or a child of a dynamic supervisor, is
    /// removed, unless [a message may start it again](crate::ChildSpec::start_on_message). Every other child is kept: *stopped* after a clean exit and *errored* after a
    /// failure, until a call starts it or its group restarts.
    Leave,
    /// Ends the supervisor as `Normal`, after it has stopped the other children in reverse order.
    ///
    /// This is what an [`AutoShutdown`](crate::policy::AutoShutdown) does.
    EndSupervisor,
    /// Fails the supervisor, after it has stopped the other children in reverse order.
    ///
    /// The supervisor ends as `Escalated` with the reason of the exit. No restart is charged. It is
    /// a failure even under presets in which giving up is a clean exit.
    FailSupervisor,
}

impl OnExit {
    /// Whether the child is restarted, charged or not.
    pub(crate) const fn restarts(self) -> bool {
        matches!(self, Self::Restart | Self::RestartUncharged)
    }
}

string_enum!(
    OnExit, "answer to an exit":
    Restart = "restart",
    RestartUncharged = "restart_uncharged",
    Leave = "leave",
    EndSupervisor = "end_supervisor",
    FailSupervisor = "fail_supervisor",
);
