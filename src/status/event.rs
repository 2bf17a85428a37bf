//! Events: what happens to the children of a tree, as subscribers receive it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::path::Path;

/// Something that happened to a child.
///
/// Subscribe with [`SupervisorHandle::events`](crate::SupervisorHandle::events). Events of one
/// supervisor arrive in the order in which they happened. Events of different supervisors may
/// arrive in a different order than their [`seq`](Self::seq).
///
/// The example of [`SupervisorHandle::events`](crate::SupervisorHandle::events) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The number of this event. It grows with every event of the tree while there is a subscriber.
    pub seq: u64,
    /// The time of the event.
    pub at: SystemTime,
    /// The path of the child.
    pub path: Path,
    /// The number of the child's incarnation, from 1; 0 before the first start.
    pub incarnation: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a child.
///
/// The example of [`SupervisorHandle::events`](crate::SupervisorHandle::events) matches one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The child moved from one state of its lifecycle to the next.
    Moved {
        /// The state that the child left.
        from: Lifecycle,
        /// The state that the child entered.
        to: Lifecycle,
        /// How long the child was in the state that it left.
        after: Duration,
        /// How the incarnation ended, if this event is its end.
        reason: Option<Arc<ExitReason>>,
        /// The next attempt, from 1, and the delay before it, if the child waits for a restart.
        wait: Option<(u32, Duration)>,
    },
    /// The supervisor gave up on the child, or fails because of it.
    GaveUp {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
    },
    /// The child failed too often, and its fallback replaces it: see
    /// [`ChildSpec::fallback`](crate::ChildSpec::fallback).
    FellBack {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
    },
    /// The child failed too often, and is started again after a pause: see
    /// [`OnExhausted::Pause`](crate::policy::OnExhausted::Pause).
    Paused {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
        /// The length of the pause.
        length: Duration,
    },
    /// The child's health check failed too often in a row, see [`HealthCheck`](crate::HealthCheck), or so did the runs
    /// of a periodic child, see `Every::unhealthy_after`.
    Unhealthy {
        /// The problem that the last check reported, or why the last run has failed.
        problem: Arc<str>,
    },
    /// The child was unhealthy, and its health check passed, or a run succeeded.
    Healthy,
    /// The child is on standby: its lease isn't granted, or nothing is known of it.
    Standby {
        /// The name of the lease.
        lease: Arc<str>,
        /// The holder of the lease, if the engine knows it.
        holder: Option<Arc<str>>,
        /// Why the engine can't tell, if that is so.
        problem: Option<Arc<str>>,
    },
    /// The child's lease was granted.
    LeaseGranted {
        /// The name of the lease.
        lease: Arc<str>,
        /// The number of the grant, which only grows.
        token: u64,
    },
    /// The child's lease was lost, so the child is stopped. This is no failure.
    LeaseLost {
        /// The name of the lease.
        lease: Arc<str>,
        /// How it was lost.
        reason: Arc<str>,
    },
    /// The child was aborted and is still running, because it blocks its thread.
    Leaked,
    /// The child had leaked, and has ended.
    LeakEnded,
    /// The child's `deactivate` failed. This does not affect what its supervisor does next.
    DeactivateFailed {
        /// How `deactivate` failed.
        reason: Arc<ExitReason>,
    },
    /// The supervisor removed the child.
    Removed,
    /// A call that [names its caller](crate::SupervisorHandle::on_behalf_of) has changed the child. The event is
    /// published when the call is answered. Other calls are only logged.
    Called {
        /// The name of the method of [`SupervisorHandle`](crate::SupervisorHandle).
        call: &'static str,
        /// The caller, such as `operator`.
        by: Arc<str>,
        /// The reason, if the caller gave one.
        reason: Option<Arc<str>>,
    },
}

/// One line: `app/db errored: failed: no route`. Characters that can't be seen are escaped.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.path)?;
        self.kind.fmt(f)
    }
}

/// One line without the child, such as `errored: failed: no route`. Characters that can't be seen are escaped.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { to: Lifecycle::Restarting, wait: Some((attempt, delay)), .. } => {
                write!(f, "restarting in {delay:?} (attempt {attempt})")
            }
            // `Shutdown` is left out: the state says that the supervisor has stopped the child.
            Self::Moved { to, reason: Some(reason), .. }
                if !matches!(**reason, ExitReason::Shutdown) =>
            {
                write!(f, "{to}: {}", Visible(reason))
            }
            Self::Moved { to, .. } => to.fmt(f),
            Self::GaveUp { reason } => write!(f, "given up: {}", Visible(reason)),
            Self::FellBack { reason } => write!(f, "fell back: {}", Visible(reason)),
            Self::Paused { reason, length } => {
                write!(f, "paused for {length:?}: {}", Visible(reason))
            }
            Self::Unhealthy { problem } => write!(f, "unhealthy: {}", Visible(problem)),
            Self::Healthy => f.write_str("healthy again"),
            Self::Standby { holder: Some(holder), problem: None, .. } => {
                write!(f, "on standby: {} has the lease", Visible(holder))
            }
            Self::Standby { problem: Some(problem), .. } => {
                write!(f, "on standby: {}", Visible(problem))
            }
            Self::Standby { .. } => f.write_str("on standby"),
            Self::LeaseGranted { token, .. } => write!(f, "lease granted (token {token})"),
            Self::LeaseLost { reason, .. } => write!(f, "lease lost: {}", Visible(reason)),
            Self::Leaked => f.write_str("leaked: aborted, and still running"),
            Self::LeakEnded => f.write_str("leaked task has ended"),
            Self::DeactivateFailed { reason } => {
                write!(f, "deactivate failed: {}", Visible(reason))
            }
            Self::Removed => f.write_str("removed"),
            Self::Called { call, by, reason } => {
                write!(f, "{call} called by {}", Visible(by))?;
                match reason {
                    Some(reason) => write!(f, ": {}", Visible(reason)),
                    None => Ok(()),
                }
            }
        }
    }
}
