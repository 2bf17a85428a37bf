//! How children start: in which order, when they count as ready, and why they are started at all.
//!
//! These are names for choices, without any rule of their own; the machine acts on them.

use super::word::words;

/// Whether the children of a supervisor start one after the other or all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Each child starts when the one before it has passed: it is active, or down for good.
    ///
    /// The default, and OTP's only way.
    #[default]
    Sequential,
    /// Each child starts as soon as its requirements are met. They still stop one at a time.
    Concurrent,
}

words!(
    Start, "start":
    Sequential = "sequential",
    Concurrent = "concurrent",
);

/// What a supervisor does when a child can't be started the very first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstStart {
    /// Treats it like any failure, so that a service comes up when what it depends on does.
    ///
    /// The default; OTP has no such mode.
    #[default]
    Retry,
    /// Stops what had started, in reverse order, and fails the start with the child and the cause.
    ///
    /// What OTP does.
    Fail,
}

words!(
    FirstStart, "first start":
    Retry = "retry",
    Fail = "fail",
);

/// When a started child counts as active, so that what comes after it may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// As soon as its task is spawned. The default for workers that are functions.
    #[default]
    OnStart,
    /// When it says so: a function by `Context::ready`, a [`Child`](crate::Child) by returning
    /// `Ok` from `activate`, a supervisor when its first start is complete.
    Signal,
}

words!(
    Readiness, "readiness":
    OnStart = "on_start",
    Signal = "signal",
);

/// Why an incarnation was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartCause {
    /// Its supervisor started for the first time.
    Initial,
    /// Somebody asked: `start_child`, `restart_child`, `restart` or `retry`.
    Manual,
    /// The incarnation before it ended, and its restart type says that it comes back.
    Restart,
    /// A sibling failed, and the strategy restarts both.
    Group,
    /// A message came for a child that [starts on one](crate::ChildSpec::start_on_message).
    OnMessage,
}

words!(
    StartCause, "start cause":
    Initial = "initial",
    Manual = "manual",
    Restart = "restart",
    Group = "group",
    OnMessage = "on_message",
);

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn unless_told_otherwise_children_start_in_order_and_are_retried() {
        assert_eq!(Start::default(), Start::Sequential);
        assert_eq!(FirstStart::default(), FirstStart::Retry);
        assert_eq!(Readiness::default(), Readiness::OnStart);
    }
}
