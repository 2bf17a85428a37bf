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
//! A snapshot has several views. Two snapshots can be compared.
//!
//! | view of a [`Status`] | for |
//! | --- | --- |
//! | `Display` | terminals, logs and `diff`: a tree in 80 columns |
//! | [`svg`](Status::svg) | browsers and documents: a picture of any number of children |
//! | serde's `Serialize` with the feature `serde`, and `json` with the feature `json` | programs: all facts |
//! | [`diff`](Status::diff) | a [`StatusDiff`]: what differs from a later snapshot |
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

// Snapshots and events are values, and the module `handle` takes the snapshots.
//
// | file | what it knows |
// | --- | --- |
// | `child_info`, `supervisor_info`, `program` | the facts of a snapshot |
// | `lease_info`, `schedule_info` | the facts of a lease and of a schedule |
// | `event`, `subscription`, `stream`, `event_log` | events, how they are received, and a list of them |
// | `readiness` | whether a snapshot is ready, and what its problems are |
// | `text`, `json`, `svg` | the views of a snapshot |
// | `serde` | the serialised form of all of these |
// | `diff` | the differences between two snapshots |
// | `walk` | all children of a snapshot in order, without recursion |
// | `words`, `look` | the facts of a child in a few words; its shape and colour |
// | `escape` | texts of users in an SVG |

mod child_info;
mod diff;
mod escape;
mod event;
mod event_log;
#[cfg(feature = "json")]
mod json;
mod lease_info;
mod look;
mod program;
mod readiness;
#[cfg(test)]
mod samples;
mod schedule_info;
#[cfg(feature = "serde")]
mod serde;
mod stream;
mod subscription;
mod supervisor_info;
mod svg;
mod text;
mod walk;
mod words;

use std::time::{Duration, SystemTime};

pub use self::child_info::{
    ChildInfo, ChildKind, LastCall, LastExit, LimitUse, MailboxInfo, NextAttempt,
};
pub use self::diff::{ChildChange, ChildDiff, Fact, FactChange, StatusDiff};
pub use self::event::{Event, EventKind};
#[cfg(feature = "console")]
pub(crate) use self::event_log::cut;
pub use self::event_log::{EventLevel, EventLog, LoggedEvent};
pub use self::lease_info::LeaseInfo;
pub use self::program::{ProgramInfo, Totals};
pub use self::readiness::Problem;
pub use self::schedule_info::{LastRun, RunOutcome, ScheduleInfo};
#[cfg(feature = "console")]
pub(crate) use self::serde::Explained;
pub use self::stream::{StatusChange, StatusStream};
pub use self::subscription::Subscription;
pub use self::supervisor_info::{Counts, GoneChild, SupervisorInfo};
use crate::policy::{
    Backoff, FailureLog, Intensity, OnExhausted, OnLeak, PolicySources, RestartType, Shutdown,
    Trigger,
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
/// | `2/12 in 5m` | two restarts are charged to a limit of 12 in 5 min: the child's own, or on a supervisor that of all its children together |
/// | `12 in 5m for each` | no limit of all children together is written; this is the limit of each worker |
/// | `callback` | the supervisor has an `on_child_failure` callback of its own |
/// | `own policy` | the running child has changed its restart policy |
/// | `config: backoff feed.toml:12` | a configuration file has set the value there, or a `call` |
/// | `UNHEALTHY` | the child's health check fails, or its last runs have failed |
///
/// ```text
/// app  one_for_one 12 in 5m for each  active  up 2h15m  5 children, 1 restarting
/// ├─ db                  permanent    active       up 2h15m  "pool 8/10"
/// ├─ ingest              rest_for_one active       up 2h15m  12 in 6m for each
/// │  ├─ writer           permanent    active       up 38s  restarts=2  2/12 in 5m
/// │  │     last: panicked: writer panicked
/// │  └─ mqtt             permanent    RESTARTING   retry in 4.2s (attempt 4)
/// │        restarts=5  1/12 in 5m  last: activation failed: no start
/// └─ http                permanent    active       up 2h15m
/// ```
///
/// When it is serialised, with the feature `serde`, durations are in milliseconds, and points in time in milliseconds since
/// the Unix epoch, in fields whose names end in `_ms`. The field `policy` is written as in a
/// configuration file: see [`EffectivePolicy`](crate::policy::EffectivePolicy). The field `explanation` of
/// a child is [`ChildInfo::explanation`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The version of the serialised form: [`Status::FORMAT`].
    pub format: u32,
    /// The number of the last event that the whole snapshot includes; see
    /// [`Event::seq`](crate::status::Event::seq). It is 0 as long as there was no subscriber to events.
    pub seq: u64,
    /// When the snapshot was taken.
    pub captured_at: SystemTime,
    /// The program that the tree runs in.
    pub program: ProgramInfo,
    /// Numbers about the tree.
    pub totals: Totals,
    /// The supervisor that the snapshot was taken of, with its children.
    pub root: Node,
}

impl Status {
    /// The version of the serialised form. It grows when a field changes its meaning or is removed; fields may
    /// be added at any time.
    pub const FORMAT: u32 = 1;
}

#[cfg(test)]
impl Status {
    /// Returns a snapshot of this tree, for tests of the views.
    pub(crate) fn sample(root: Node) -> Self {
        let program = ProgramInfo {
            verger: "0.0.0",
            pid: 1,
            started_at: SystemTime::UNIX_EPOCH,
            uptime: Duration::ZERO,
        };
        let (captured_at, totals) = (SystemTime::UNIX_EPOCH, Totals::default());
        Self { format: Self::FORMAT, seq: 0, captured_at, program, totals, root }
    }
}

#[cfg(feature = "console")]
impl Status {
    /// Returns the same snapshot of a part of the tree.
    pub(crate) fn of_part(&self, root: Node) -> Self {
        let Self { format, seq, captured_at, .. } = *self;
        let program = self.program.clone();
        let mut totals = Totals { children: 0, ..self.totals.clone() };
        totals.lifecycle.clear();
        let mut open: Vec<&Node> = root.children.iter().collect();
        while let Some(node) = open.pop() {
            totals.children += 1;
            *totals.lifecycle.entry(node.child.lifecycle).or_default() += 1;
            open.extend(&node.children);
        }
        Self { format, seq, captured_at, program, totals, root }
    }
}

/// A child in a snapshot, with its own children.
///
/// The example of [`status`](crate::status) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Node {
    /// The child.
    pub child: ChildInfo,
    /// The part that only a supervisor has. `None` for a worker, and for a supervisor that isn't running.
    pub supervisor: Option<Box<SupervisorInfo>>,
    /// The children of this child, in start order.
    pub children: Vec<Node>,
}

/// The settings of a child, with every default filled in.
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::PolicySource;
/// use verger::{Context, Shutdown, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let spec = app.child_spec("db").await?;
/// assert_eq!(spec.shutdown, Shutdown::Timeout(Duration::from_secs(5)));
/// assert_eq!(spec.sources.restart, PolicySource::Default);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
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
    pub activation_timeout: Option<Duration>,
    /// See [`ChildSpec::watchdog`](crate::ChildSpec::watchdog).
    pub watchdog: Option<Duration>,
    /// See [`ChildSpec::run_time_limit`](crate::ChildSpec::run_time_limit).
    pub run_time_limit: Option<Duration>,
    /// See [`ChildSpec::on_leak`](crate::ChildSpec::on_leak).
    pub on_leak: OnLeak,
    /// See [`ChildSpec::intensity`](crate::ChildSpec::intensity).
    pub intensity: Option<Intensity>,
    /// See [`ChildSpec::consecutive_restarts`](crate::ChildSpec::consecutive_restarts).
    pub consecutive_restarts: Option<u32>,
    /// See [`ChildSpec::failing_for`](crate::ChildSpec::failing_for).
    pub failing_for: Option<Duration>,
    /// See [`ChildSpec::on_exhausted`](crate::ChildSpec::on_exhausted).
    pub on_exhausted: OnExhausted,
    /// See [`ChildSpec::failure_log`](crate::ChildSpec::failure_log).
    pub failure_log: FailureLog,
    /// The source of each value. What a running child has overridden is in [`ChildInfo::policy`]
    /// only.
    pub sources: PolicySources,
}
