//! Snapshots and events of a running tree.
//!
//! | call | returns |
//! | --- | --- |
//! | [`SupervisorHandle::status`](crate::SupervisorHandle::status) | a [`Status`]: a snapshot of a supervisor and everything below |
//! | [`which_children`](crate::SupervisorHandle::which_children), [`which_child`](crate::SupervisorHandle::which_child) | a [`ChildInfo`] for each child of one supervisor, or for one child |
//! | [`child_spec`](crate::SupervisorHandle::child_spec) | a [`ChildSpecInfo`]: the settings of a child |
//! | [`events`](crate::SupervisorHandle::events) | a [`Subscription`] to each [`Event`] from now on |
//! | [`subscribe_status`](crate::SupervisorHandle::subscribe_status) | a [`StatusStream`]: the current state of each child, then each change |
//!
//! A snapshot is displayed as a tree of text, and serialised by `serde`. With the feature `json`, it
//! also has a method `json`.
//!
//! ```
//! use verger::status::{EventKind, Status};
//! use verger::{Context, Lifecycle, Supervisor, worker};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = worker("db", async |ctx: Context| ctx.cancelled().await);
//! let app = Supervisor::builder("app").child(db).build()?.start().await?;
//!
//! let status: Status = app.status().await?;
//! assert_eq!(status.root.children[0].child.lifecycle, Lifecycle::Active);
//! println!("{status}");
//!
//! let mut events = app.events();
//! app.terminate_child("db").await?;
//! let event = events.next().await.expect("the supervisor runs");
//! assert_eq!(event.path.as_str(), "app/db");
//! assert!(matches!(event.kind, EventKind::Moved { to: Lifecycle::Deactivating, .. }));
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

// Snapshots and events are values. `text` and `json` are views of `Status`. The module `handle` takes the
// snapshots.

mod event;
#[cfg(feature = "json")]
mod json;
mod readiness;
mod stream;
mod subscription;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

pub use self::event::{Event, EventKind};
pub use self::readiness::Problem;
pub use self::stream::{StatusChange, StatusStream};
pub use self::subscription::Subscription;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::millis;
use crate::path::Path;
use crate::policy::{
    Backoff, EffectivePolicy, FailureLog, Intensity, OnExhausted, OnLeak, PolicySources,
    RestartType, Shutdown, Trigger,
};

/// A snapshot of a tree, or of the part of it below one supervisor.
///
/// Taken by [`SupervisorHandle::status`](crate::SupervisorHandle::status). Each supervisor is read
/// separately, a few children at a time, so that a snapshot doesn't block it. Parts of a busy tree
/// may be from slightly different moments.
///
/// `Display` writes a tree that is at most 80 columns wide, readable without colours, and suited to
/// `diff`. Each child has one line. Facts that don't fit continue on the lines below it.
///
/// | text | meaning |
/// | --- | --- |
/// | `+3` before a name | three levels of guides are left out |
/// | `callback` | the supervisor has an `on_child_failure` callback of its own |
/// | `own policy` | the running child has changed its restart policy |
/// | `config: backoff feed.toml:12` | a configuration file has set the value there, or a `call` |
/// | `UNHEALTHY` | the child's health check fails |
///
/// ```text
/// app  one_for_one 0/5 in 7m  active  up 2h15m  5 children, 1 restarting
/// ├─ db                  permanent    active       up 2h15m  "pool 8/10"
/// ├─ ingest              rest_for_one active       up 2h15m  3/5 in 1m
/// │  ├─ writer           permanent    active       up 38s  restarts=2
/// │  │     last: panicked: writer panicked
/// │  └─ mqtt             permanent    RESTARTING   retry in 4.2s (attempt 4)
/// │        restarts=5  last: activation failed: no start
/// └─ http                permanent    active       up 2h15m
/// ```
///
/// When it is serialised, durations are in milliseconds, and points in time in milliseconds since
/// the Unix epoch, in fields whose names end in `_ms`. The field `policy` is written as in a
/// configuration file: see [`EffectivePolicy`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The number of the last event that the whole snapshot includes; see
    /// [`Event::seq`](crate::status::Event::seq). It is 0 as long as there was no subscriber to events.
    pub seq: u64,
    /// When the snapshot was taken.
    #[serde(rename = "captured_at_ms", serialize_with = "millis::since_epoch")]
    pub captured_at: SystemTime,
    /// The supervisor that the snapshot was taken of, with its children.
    pub root: Node,
}

/// A child in a snapshot, with its own children.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Node {
    /// The child.
    #[serde(flatten)]
    pub child: ChildInfo,
    /// The part that only a supervisor has. `None` for a worker, and for a supervisor that isn't running.
    pub supervisor: Option<Box<SupervisorInfo>>,
    /// The children of this child, in start order.
    pub children: Vec<Node>,
}

/// The state of one child.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The path of the child.
    pub path: Path,
    /// Whether the child is a worker or a supervisor.
    pub kind: ChildKind,
    /// After which exits the child is restarted, not counting the exceptions in its policy.
    pub restart: RestartType,
    /// The policy that applies if the child exits now, with the source of each value. `None` for
    /// the root, which has no supervisor.
    pub policy: Option<EffectivePolicy>,
    /// The values that a configuration file or a call has set, by name, and where: `feed.toml:12`, or `call`. The
    /// line is that of the file with which the section has changed last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub configured: BTreeMap<&'static str, Arc<str>>,
    /// Whether the exit of the child may end its supervisor (auto-shutdown).
    pub significant: bool,
    /// Whether the tree is ready only if this child is; see [`ChildSpec::essential`](crate::ChildSpec::essential).
    pub essential: bool,
    /// Whether the child does what is expected of it: it is active and not unhealthy, has ended normally, has
    /// declined to start, or waits for its first message.
    pub ready: bool,
    /// The state of the child's lifecycle.
    pub lifecycle: Lifecycle,
    /// Why the child is down, in a few words, if the lifecycle alone doesn't show it.
    pub why: Option<&'static str>,
    /// The number of the child's incarnation, from 1; 0 before the first start.
    pub incarnation: u32,
    /// How many incarnations there were before this one.
    pub restarts: u32,
    /// How many failures the backoff counts: those since the child was last healthy.
    pub failures: u32,
    /// When the child entered the state of its lifecycle.
    #[serde(rename = "since_ms", serialize_with = "millis::since_epoch")]
    pub since: SystemTime,
    /// How long the child has been in the state of its lifecycle.
    #[serde(rename = "for_ms", serialize_with = "millis::duration")]
    pub age: Duration,
    /// How the last finished incarnation ended, once an incarnation has failed.
    pub last_exit: Option<ExitReason>,
    /// The next attempt to start the child, if it waits for one.
    pub next: Option<NextAttempt>,
    /// The text that the child has set; see [`Context::set_status`](crate::Context::set_status).
    pub status: Option<String>,
    /// The result of the [health check](crate::HealthCheck). `None` if the child isn't active, has
    /// no health check, or hasn't been checked yet.
    pub healthy: Option<bool>,
    /// The child's mailbox, if it has one.
    pub mailbox: Option<MailboxInfo>,
    /// The version of the child; see [`ChildSpec::version`](crate::ChildSpec::version).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Arc<str>>,
    /// Whether a supervisor runs at the path of the child.
    #[serde(skip)]
    pub(crate) has_children: bool,
}

/// The fill level of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MailboxInfo {
    /// How many messages the mailbox holds, including those received and not yet acknowledged.
    pub len: usize,
    /// How many messages the mailbox can hold.
    pub capacity: usize,
}

/// Whether a child is a worker or a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildKind {
    /// The child does work.
    Worker,
    /// The child supervises children of its own.
    Supervisor,
}

/// An attempt to start a child that is waiting for its backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NextAttempt {
    /// The number of the attempt since the child was last healthy, from 1.
    pub attempt: u32,
    /// The delay that was drawn for this attempt.
    #[serde(rename = "delay_ms", serialize_with = "millis::duration")]
    pub delay: Duration,
    /// How much of the delay is left.
    #[serde(rename = "remaining_ms", serialize_with = "millis::duration")]
    pub remaining: Duration,
}

/// What a running supervisor has in addition to [`ChildInfo`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// The strategy: `one_for_one`, `one_for_all`, `rest_for_one`, or `dynamic`.
    pub strategy: &'static str,
    /// How many restarts count against the intensity now.
    ///
    /// For a [decaying](crate::policy::Intensity::decaying) intensity: `max_restarts`, less the restarts
    /// that its score still allows at once.
    pub restarts_in_period: usize,
    /// How many restarts are allowed within the period; `None` if there is no limit.
    pub max_restarts: Option<u32>,
    /// The period of the intensity; the half-life of a decaying one.
    #[serde(rename = "period_ms", serialize_with = "millis::duration")]
    pub period: Duration,
    /// The limit on the restarts of each child that has none of its own, if there is one.
    ///
    /// Children of a [`DynamicSupervisor`](crate::DynamicSupervisor) have one by default. Otherwise, the
    /// [defaults](crate::SupervisorBuilder::defaults) or a preset set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_limit: Option<Intensity>,
    /// Whether the supervisor has a callback of its own, rather than one that it inherits; see
    /// [`on_child_failure`](crate::SupervisorBuilder::on_child_failure).
    pub on_child_failure: bool,
    /// The values that a configuration file has set, by name, and where: `feed.toml:12`. The line is that of the
    /// file with which the section has changed last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub configured: BTreeMap<&'static str, Arc<str>>,
    /// How many children the supervisor has.
    pub counts: Counts,
}

/// How many children a supervisor has, not counting children of its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// All children, running or not.
    pub specs: u32,
    /// Children that have a task, in any state of their lifecycle.
    pub active: u32,
    /// Children that wait for a restart.
    pub restarting: u32,
    /// Children that are supervisors, running or not.
    pub supervisors: u32,
    /// Children that are workers, running or not.
    pub workers: u32,
}

/// The settings of a child, with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChildSpecInfo {
    /// The name of the child.
    pub name: String,
    /// Whether the child is a worker or a supervisor.
    pub kind: ChildKind,
    /// See [`ChildSpec::restart`](crate::ChildSpec::restart).
    pub restart: RestartType,
    /// The restart type with all its exceptions.
    pub trigger: Trigger,
    /// See [`ChildSpec::shutdown`](crate::ChildSpec::shutdown).
    pub shutdown: Shutdown,
    /// See [`ChildSpec::backoff`](crate::ChildSpec::backoff).
    pub backoff: Backoff,
    /// See [`ChildSpec::significant`](crate::ChildSpec::significant).
    pub significant: bool,
    /// See [`ChildSpec::essential`](crate::ChildSpec::essential).
    pub essential: bool,
    /// See [`ChildSpec::activation_timeout`](crate::ChildSpec::activation_timeout).
    #[serde(rename = "activation_timeout_ms", serialize_with = "millis::optional")]
    pub activation_timeout: Option<Duration>,
    /// See [`ChildSpec::watchdog`](crate::ChildSpec::watchdog).
    #[serde(rename = "watchdog_ms", serialize_with = "millis::optional")]
    pub watchdog: Option<Duration>,
    /// See [`ChildSpec::on_leak`](crate::ChildSpec::on_leak).
    pub on_leak: OnLeak,
    /// See [`ChildSpec::intensity`](crate::ChildSpec::intensity).
    pub intensity: Option<Intensity>,
    /// See [`ChildSpec::consecutive_restarts`](crate::ChildSpec::consecutive_restarts).
    pub consecutive_restarts: Option<u32>,
    /// See [`ChildSpec::failing_for`](crate::ChildSpec::failing_for).
    #[serde(rename = "failing_for_ms", serialize_with = "millis::optional")]
    pub failing_for: Option<Duration>,
    /// See [`ChildSpec::on_exhausted`](crate::ChildSpec::on_exhausted).
    pub on_exhausted: OnExhausted,
    /// See [`ChildSpec::failure_log`](crate::ChildSpec::failure_log).
    pub failure_log: FailureLog,
    /// The source of each value. What a running child has overridden is in [`ChildInfo::policy`]
    /// only.
    pub sources: PolicySources,
}

#[cfg(test)]
impl ChildInfo {
    /// Returns an active child, for tests of the views.
    pub(crate) fn sample(path: Path, kind: ChildKind) -> Self {
        Self {
            path,
            kind,
            restart: RestartType::Permanent,
            policy: None,
            configured: BTreeMap::new(),
            significant: false,
            essential: true,
            ready: true,
            lifecycle: Lifecycle::Active,
            why: None,
            incarnation: 1,
            restarts: 0,
            failures: 0,
            since: SystemTime::UNIX_EPOCH,
            age: Duration::ZERO,
            last_exit: None,
            next: None,
            status: None,
            healthy: None,
            mailbox: None,
            version: None,
            has_children: false,
        }
    }
}
