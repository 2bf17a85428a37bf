//! What happens in a tree, as it is told to whoever subscribes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::millis;
use crate::path::Path;

/// Something that happened to a child.
///
/// Events of one supervisor come in the order in which they happened. Those of different ones may
/// come in another order than they are numbered in.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// Grows with every event of the tree, from whichever supervisor it comes, while there is
    /// anybody who listens.
    pub seq: u64,
    /// When it happened.
    #[serde(rename = "at_ms", serialize_with = "millis::since_epoch")]
    pub at: SystemTime,
    /// The child.
    pub path: Path,
    /// Which of its runs it was, from 1; 0 before the first.
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
    /// It went from one state of its lifecycle to the next.
    Moved {
        /// Where it was.
        from: Lifecycle,
        /// Where it is.
        to: Lifecycle,
        /// How long it had been there.
        #[serde(rename = "after_ms", serialize_with = "millis::duration")]
        after: Duration,
        /// How the incarnation ended, if this is its end.
        reason: Option<Arc<ExitReason>>,
        /// The attempt that is waited for, from 1, and how long, if it waits.
        #[serde(serialize_with = "millis::wait")]
        wait: Option<(u32, Duration)>,
    },
    /// Its supervisor gave up on it, or fails with it.
    GaveUp {
        /// How it ended, the last time.
        reason: Arc<ExitReason>,
    },
    /// It failed too often, and its fallback takes its place: see
    /// [`ChildSpec::fallback`](crate::ChildSpec::fallback).
    FellBack {
        /// How it ended, the last time.
        reason: Arc<ExitReason>,
    },
    /// It failed too often, and is started again when the pause is over: see
    /// [`OnExhausted::Pause`](crate::OnExhausted::Pause).
    Paused {
        /// How it ended, the last time.
        reason: Arc<ExitReason>,
        /// How long the pause is.
        #[serde(rename = "length_ms", serialize_with = "millis::duration")]
        length: Duration,
    },
    /// Its health check has failed too often in a row: see [`HealthCheck`](crate::HealthCheck).
    Unhealthy {
        /// What was wrong the last time.
        problem: Arc<str>,
    },
    /// Its health check, which had failed too often, was passed again.
    Healthy,
    /// It was aborted and is still there: it blocks its thread.
    Leaked,
    /// It had leaked, and has ended now.
    LeakEnded,
    /// Its `deactivate` failed. That changes nothing for what becomes of it.
    DeactivateFailed {
        /// How.
        reason: Arc<ExitReason>,
    },
    /// It was forgotten.
    Removed,
}
