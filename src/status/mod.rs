//! What a tree looks like at one moment, as values.
//!
//! The text and JSON views of it are in `observe`; who gathers it is in `supervisor`.

use std::time::{Duration, SystemTime};

mod event;
#[cfg(feature = "json")]
mod json;
mod text;

pub use self::event::{Event, EventKind};
use serde::Serialize;

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
/// Each supervisor is asked for itself, in slices, so that nobody is held up; parts of a busy tree
/// may be of slightly different moments.
///
/// `Display` writes it as a tree of at most 80 columns, to be read without colours and compared by
/// `diff`. A child has a line, and others below it for what has no room there; `+3` in front of one
/// stands for three levels that are not drawn, `callback` for a supervisor that decides on failures by
/// one of its own, `own policy` for a child that has said itself how it is restarted, and
/// `UNHEALTHY` for one whose health check says so.
///
/// ```text
/// app  one_for_one 0/5 in 1m  active  up 2h15m  5 children, 1 restarting
/// ├─ db                  permanent    active       up 2h15m  "pool 8/10"
/// ├─ ingest              rest_for_one active       up 2h15m  3/5 in 1m
/// │  ├─ writer           permanent    active       up 38s  restarts=2
/// │  │     last: panicked: writer panicked
/// │  └─ mqtt             permanent    RESTARTING   retry in 4.2s (attempt 4)
/// │        restarts=5  last: activation failed: no start
/// └─ http                permanent    active       up 2h15m
/// ```
///
/// Serialised, durations are in milliseconds, and points in time in milliseconds since the Unix
/// epoch, in fields whose names end in `_ms`. What is under `policy` is as it is written in a file:
/// see [`EffectivePolicy`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The last event that is contained in all of this, 0 while nobody listens to events; see
    /// [`Event::seq`](crate::Event::seq).
    pub seq: u64,
    /// When it was taken.
    #[serde(rename = "captured_at_ms", serialize_with = "millis::since_epoch")]
    pub captured_at: SystemTime,
    /// The supervisor it was asked of, and all below it.
    pub root: Node,
}

/// A child, and what is below it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Node {
    /// The child.
    #[serde(flatten)]
    pub child: ChildInfo,
    /// What it is as a supervisor, if it is one and runs. Boxed, since most children are workers.
    pub supervisor: Option<Box<SupervisorInfo>>,
    /// What is below it, in start order.
    pub children: Vec<Node>,
}

/// What can be seen of one child.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Where it is.
    pub path: Path,
    /// What it is.
    pub kind: ChildKind,
    /// Which of its ends restart it, exceptions aside.
    pub restart: RestartType,
    /// What its end is answered with if it comes now, and who said so. `None` for the root, which
    /// has nobody above it.
    pub policy: Option<EffectivePolicy>,
    /// Whether its end may end its supervisor.
    pub significant: bool,
    /// Where it is in its lifecycle.
    pub lifecycle: Lifecycle,
    /// Why it is down, in a few words, where the lifecycle alone does not tell.
    pub why: Option<&'static str>,
    /// The number of its run, from 1; 0 before the first.
    pub incarnation: u32,
    /// How many runs there were before this one.
    pub restarts: u32,
    /// How often it has failed since it was last healthy, as its backoff sees it.
    pub failures: u32,
    /// Since when it is where it is in its lifecycle.
    #[serde(rename = "since_ms", serialize_with = "millis::since_epoch")]
    pub since: SystemTime,
    /// For how long.
    #[serde(rename = "for_ms", serialize_with = "millis::duration")]
    pub age: Duration,
    /// How the last run ended that is over, once one has failed.
    pub last_exit: Option<ExitReason>,
    /// The next attempt, if it waits for one.
    pub next: Option<NextAttempt>,
    /// What the child says of itself; see [`Context::set_status`](crate::Context::set_status).
    pub status: Option<String>,
    /// Whether it is well, if it is active, is [checked](crate::HealthCheck), and was found to be so
    /// or otherwise.
    pub healthy: Option<bool>,
    /// Its mailbox, if it has one.
    pub mailbox: Option<MailboxInfo>,
}

/// What can be seen of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MailboxInfo {
    /// How many messages there are, with those that the child has in hand and has not acknowledged.
    pub len: usize,
    /// How many there may be.
    pub capacity: usize,
}

/// What a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildKind {
    /// It does work.
    Worker,
    /// It supervises children of its own.
    Supervisor,
}

/// An attempt that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NextAttempt {
    /// Which one since the child was last healthy, from 1.
    pub attempt: u32,
    /// The wait that was drawn for it.
    #[serde(rename = "delay_ms", serialize_with = "millis::duration")]
    pub delay: Duration,
    /// What is left of the wait.
    #[serde(rename = "remaining_ms", serialize_with = "millis::duration")]
    pub remaining: Duration,
}

/// What can be seen of a supervisor besides what it is as a child.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// `one_for_one`, `one_for_all`, `rest_for_one`, or `dynamic`.
    pub strategy: &'static str,
    /// Restarts that count just now. Of a [decaying](crate::Intensity::decaying) intensity, as many
    /// of the restarts that may come at once as its score leaves no room for.
    pub restarts_in_period: usize,
    /// How many may; `None`: any number.
    pub max_restarts: Option<u32>,
    /// In what time; of a decaying intensity, its half-life.
    #[serde(rename = "period_ms", serialize_with = "millis::duration")]
    pub period: Duration,
    /// Whether it decides on failures by a callback of its own; see
    /// [`on_child_failure`](crate::SupervisorBuilder::on_child_failure). One from above is not meant.
    pub on_child_failure: bool,
    /// How many children there are.
    pub counts: Counts,
}

/// How many children a supervisor has, not counting those below them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// All of them, running or not.
    pub specs: u32,
    /// Those that have a task.
    pub active: u32,
    /// Those that wait for a restart.
    pub restarting: u32,
    /// Those that are supervisors, running or not.
    pub supervisors: u32,
    /// Those that are not.
    pub workers: u32,
}

/// How a child is treated, every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChildSpecInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ChildKind,
    /// See [`ChildSpec::restart`](crate::ChildSpec::restart).
    pub restart: RestartType,
    /// The same, with all exceptions to it.
    pub trigger: Trigger,
    /// See [`ChildSpec::shutdown`](crate::ChildSpec::shutdown).
    pub shutdown: Shutdown,
    /// See [`ChildSpec::backoff`](crate::ChildSpec::backoff).
    pub backoff: Backoff,
    /// See [`ChildSpec::significant`](crate::ChildSpec::significant).
    pub significant: bool,
    /// See [`ChildSpec::activation_timeout`](crate::ChildSpec::activation_timeout).
    #[serde(rename = "activation_timeout_ms", serialize_with = "millis::optional")]
    pub activation_timeout: Option<Duration>,
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
    /// Who said which of it. What a running child says itself isn't here, but in
    /// [`ChildInfo::policy`].
    pub sources: PolicySources,
}

#[cfg(test)]
impl ChildInfo {
    /// An active child, for tests of the views.
    pub(crate) fn sample(path: Path, kind: ChildKind) -> Self {
        Self {
            path,
            kind,
            restart: RestartType::Permanent,
            policy: None,
            significant: false,
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
        }
    }
}
