//! Snapshots and events of a running tree.
//!
//! | call | returns |
//! | --- | --- |
//! | [`SupervisorHandle::status`](crate::SupervisorHandle::status) | a [`Status`]: a snapshot of a supervisor and everything below |
//! | [`children`](crate::SupervisorHandle::children), [`which_child`](crate::SupervisorHandle::which_child) | a [`ChildInfo`] for each child of one supervisor, or for one child |
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
//! app.stop_child("db").await?;
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
// | this one | snapshots, and the order of their children |
// | `problem` | what is wrong, and what keeps a tree from being ready |
// | `info` | the facts of a snapshot |
// | `event`, `event_log` | events, how they are received, and a list of them |
// | `text`, `svg` | the views of a snapshot |
// | `serde` | the serialised form of all of these |
// | `diff` | the differences between two snapshots |
// | `words` | the facts of a child in a few words |
//
// Invariants of a walk through a snapshot:
//
// 1. No recursion: the stack of the caller doesn't grow with the depth of the tree.
// 2. A child is numbered after its supervisor and before its own children, without gaps, from 0.

mod diff;
mod event;
mod event_log;
mod info;
mod problem;
#[cfg(test)]
mod samples;
#[cfg(feature = "serde")]
pub(crate) mod serde;
mod svg;
mod text;
mod words;

use std::slice;
use std::time::{Duration, SystemTime};

pub use self::diff::{ChildChange, ChildDiff, Fact, FactChange, StatusDiff};
pub use self::event::{Event, EventKind, StatusChange, StatusStream, Subscription};
pub use self::event_log::{EventLevel, EventLog, LoggedEvent};
pub use self::info::{
    BusyTime, ChildInfo, ChildKind, Counts, GoneChild, LastCall, LastExit, LastRun, LeaseInfo,
    LimitUse, MailboxInfo, NextAttempt, ProgramInfo, RunOutcome, ScheduleInfo, StopInfo,
    SupervisorInfo, Totals,
};
pub use self::problem::{Problem, ProblemKind};
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

    /// Returns the same snapshot of a part of the tree.
    pub(crate) fn of_part(&self, root: Node) -> Self {
        let Self { format, seq, captured_at, .. } = *self;
        let program = self.program.clone();
        let mut totals = Totals { children: 0, ..self.totals.clone() };
        totals.lifecycle.clear();
        for node in root.nodes().skip(1) {
            totals.children += 1;
            *totals.lifecycle.entry(node.child.lifecycle).or_default() += 1;
        }
        Self { format, seq, captured_at, program, totals, root }
    }

    /// Returns the root and all children below it, each before its own children.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.root.nodes()
    }

    /// Visits the root and all children below it.
    #[inline]
    fn walk(&self) -> Walk<'_> {
        self.root.walk()
    }
}

#[cfg(feature = "json")]
impl Status {
    /// Returns the snapshot as indented JSON with a final line break.
    ///
    /// The fields are those that `serde` writes. Durations are in milliseconds, and points in time
    /// in milliseconds since the Unix epoch, in fields whose names end in `_ms`. Values that aren't
    /// known are `null`. The `policy` of a child is written as in a configuration file, each part
    /// with its `source`: see [`EffectivePolicy`](crate::policy::EffectivePolicy).
    #[must_use]
    pub fn json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("all keys are strings and no field fails to serialise") + "\n"
    }
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

/// A child, and its place in the tree.
struct Visit<'a> {
    node: &'a Node,
    /// The number of supervisors above.
    depth: usize,
    /// How many children have been visited before.
    number: usize,
    /// The supervisor; `None` for the root.
    above: Option<Above>,
}

/// The supervisor of a child that is visited.
struct Above {
    number: usize,
    /// Whether the child is the last one of this supervisor.
    is_last: bool,
}

/// For each level above the next child, the number of the supervisor and its children that aren't visited yet.
#[derive(Clone)]
struct Walk<'a> {
    root: Option<&'a Node>,
    open: Vec<(usize, slice::Iter<'a, Node>)>,
    visited: usize,
}

impl Node {
    /// Returns this child and all children below it, each before its own children.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Self> + Clone {
        self.walk().map(|visit| visit.node)
    }

    /// Visits this child and all children below it.
    #[inline]
    fn walk(&self) -> Walk<'_> {
        Walk { root: Some(self), open: Vec::new(), visited: 0 }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Visit<'a>;

    #[inline]
    fn next(&mut self) -> Option<Visit<'a>> {
        let (node, above) = match self.root.take() {
            Some(root) => (root, None),
            None => loop {
                let (number, children) = self.open.last_mut()?;
                if let Some(node) = children.next() {
                    let is_last = children.as_slice().is_empty();
                    break (node, Some(Above { number: *number, is_last }));
                }
                self.open.pop();
            },
        };
        let (depth, number) = (self.open.len(), self.visited);
        self.open.push((number, node.children.iter()));
        self.visited += 1;
        Some(Visit { node, depth, number, above })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind, Node, samples};

    #[test]
    fn each_child_is_visited_after_its_supervisor_and_before_its_own_children() {
        let service = samples::service();
        let visits = service.walk().map(|it| {
            let above = it.above.map_or("-".to_owned(), |above| {
                let last = if above.is_last { " last" } else { "" };
                format!("{}{last}", above.number)
            });
            format!("{} {} {} {above}", it.number, it.depth, it.node.child.path)
        });

        assert_eq!(
            visits.collect::<Vec<_>>(),
            [
                "0 0 app -",
                "1 1 app/db 0",
                "2 1 app/ingest 0",
                "3 2 app/ingest/writer 2",
                "4 2 app/ingest/mqtt 2 last",
                "5 1 app/cache 0",
                "6 1 app/feed 0",
                "7 1 app/migrate 0",
                "8 1 app/http 0",
                "9 1 app/search 0",
                "10 1 app/old 0",
                "11 1 app/report 0 last",
            ]
        );
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_tree_may_be_a_thousand_levels_deep() {
        let child = ChildInfo::sample(Path::root("app"), ChildKind::Supervisor);
        let node = |children| Node { child: child.clone(), supervisor: None, children };
        let root = (1..1_000).fold(node(Vec::new()), |below, _| node(vec![below]));
        let json = Status::sample(root).json();

        assert_eq!(json.matches("\"path\": \"app\"").count(), 1_000);
    }
}
