//! Events: what happens to the children of a tree, as subscribers receive it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::millis;
use crate::path::Path;

/// Something that happened to a child.
///
/// Subscribe with [`SupervisorHandle::events`](crate::SupervisorHandle::events). Events of one
/// supervisor arrive in the order in which they happened. Events of different supervisors may
/// arrive in a different order than their [`seq`](Self::seq).
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The number of this event. It grows with every event of the tree while there is a subscriber.
    pub seq: u64,
    /// The time of the event.
    #[serde(rename = "at_ms", serialize_with = "millis::since_epoch")]
    pub at: SystemTime,
    /// The path of the child.
    pub path: Path,
    /// The number of the child's incarnation, from 1; 0 before the first start.
    pub incarnation: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened to a child.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The child moved from one state of its lifecycle to the next.
    Moved {
        /// The state that the child left.
        from: Lifecycle,
        /// The state that the child entered.
        to: Lifecycle,
        /// How long the child was in the state that it left.
        #[serde(rename = "after_ms", serialize_with = "millis::duration")]
        after: Duration,
        /// How the incarnation ended, if this event is its end.
        reason: Option<Arc<ExitReason>>,
        /// The next attempt, from 1, and the delay before it, if the child waits for a restart.
        #[serde(serialize_with = "millis::wait")]
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
        #[serde(rename = "length_ms", serialize_with = "millis::duration")]
        length: Duration,
    },
    /// The child's health check failed too often in a row: see [`HealthCheck`](crate::HealthCheck).
    Unhealthy {
        /// The problem that the last check reported.
        problem: Arc<str>,
    },
    /// The child was unhealthy, and its health check passed.
    Healthy,
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
}
