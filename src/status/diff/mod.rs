//! The differences between two snapshots.
//!
//! It compares children with the same path, fact by fact. Times and fill levels, which change in every
//! snapshot, are left out.
//!
//! # Invariants
//!
//! 1. The order is that of the later snapshot, followed by the removed children in that of the earlier one.
//! 2. A child without a difference isn't in the list, and neither is a fact.
//! 3. Each snapshot is visited once, without recursion; children are found by a hash of their path.

mod compare;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashMap;
use std::time::Duration;

use self::compare::differences;
use super::walk::Visit;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{ChildInfo, Status};
use crate::string_enum::string_enum;

/// The differences between two snapshots of a tree, made by [`Status::diff`].
///
/// `Display` writes one line for each child: `+` for one that was added, `-` for one that was removed, and `~`
/// for one that has changed, with the facts that differ. Long values are cut so that a line has 80 columns,
/// if possible.
///
/// ```text
/// ~ app/db  active → restarting  next none → attempt 1 after 200ms
/// + app/ingest/conn#18  active
/// - app/ingest/conn#17  active
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusDiff {
    /// The [number of the last event](Status::seq) in the earlier snapshot.
    pub from_seq: u64,
    /// The number of the last event in the later snapshot.
    pub to_seq: u64,
    /// The time between the snapshots; zero if the later one has an earlier time.
    pub elapsed: Duration,
    /// The children that differ, in the order of the later snapshot.
    ///
    /// The removed children follow, in the order of the earlier snapshot.
    pub children: Vec<ChildDiff>,
}

/// A child that differs between two snapshots.
///
/// The example of [`ChildChange`] reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildDiff {
    /// The path of the child.
    pub path: Path,
    /// The difference.
    pub change: ChildChange,
}

/// How a child differs between two snapshots.
///
/// Serialised with a field `change`: `added`, `removed` or `changed`.
///
/// ```
/// use verger::status::{ChildChange, Fact};
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let before = app.status().await?;
/// app.restart("db").await?;
/// let diff = before.diff(&app.status().await?);
///
/// let ChildChange::Changed { facts } = &diff.children[0].change else { panic!("{diff}") };
/// assert_eq!(facts[0].fact, Fact::Incarnation);
/// assert_eq!(facts[0].before.as_deref(), Some("1"));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildChange {
    /// Only the later snapshot has the child.
    Added {
        /// Its state in the later snapshot.
        lifecycle: Lifecycle,
    },
    /// Only the earlier snapshot has the child.
    Removed {
        /// Its state in the earlier snapshot.
        lifecycle: Lifecycle,
    },
    /// Both snapshots have the child, with different facts.
    Changed {
        /// The facts that differ, at least one, in the order of [`Fact`].
        facts: Vec<FactChange>,
    },
}

/// A fact of a child that differs between two snapshots.
///
/// The example of [`ChildChange`] reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactChange {
    /// The fact.
    pub fact: Fact,
    /// Its value in the earlier snapshot, as text. `None` if the child had none.
    pub before: Option<String>,
    /// Its value in the later snapshot, as text. `None` if the child has none.
    pub after: Option<String>,
}

/// A fact of a child that two snapshots are compared by.
///
/// Displayed and serialised in snake case, as in `last_exit`.
///
/// The example of [`ChildChange`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// See [`ChildInfo::lifecycle`].
    Lifecycle,
    /// See [`ChildInfo::incarnation`]. It grows by one with each restart. If the numbers are the same, the child
    /// was created and started again in between.
    Incarnation,
    /// See [`ChildInfo::why`].
    Why,
    /// See [`ChildInfo::held`].
    Held,
    /// See [`ChildInfo::waits_for`].
    WaitsFor,
    /// See [`ChildInfo::next`]: the attempt and its delay. The remaining time is left out.
    Next,
    /// See [`ChildInfo::last_exit`].
    LastExit,
    /// See [`ChildInfo::healthy`] and [`ChildInfo::problem`].
    Health,
    /// See [`ChildInfo::status`].
    Status,
    /// See [`ChildInfo::limit`].
    Limit,
    /// See [`ChildInfo::last_call`].
    LastCall,
    /// See [`SupervisorInfo::restarts_in_period`](super::SupervisorInfo::restarts_in_period), with the limit and the period.
    Intensity,
    /// See [`SupervisorInfo::strategy`](super::SupervisorInfo::strategy).
    Strategy,
    /// See [`SupervisorInfo::on_child_failure`](super::SupervisorInfo::on_child_failure).
    OnChildFailure,
    /// See [`ChildInfo::kind`].
    Kind,
    /// See [`ChildInfo::version`].
    Version,
    /// See [`ChildInfo::significant`].
    Significant,
    /// See [`ChildInfo::essential`].
    Essential,
    /// See [`EffectivePolicy::restart`](crate::policy::EffectivePolicy::restart).
    Restart,
    /// See [`EffectivePolicy::backoff`](crate::policy::EffectivePolicy::backoff). Its value has no short text, so the text has its source only.
    Backoff,
    /// See [`EffectivePolicy::intensity`](crate::policy::EffectivePolicy::intensity), the child's own limit.
    ChildIntensity,
    /// See [`EffectivePolicy::consecutive_restarts`](crate::policy::EffectivePolicy::consecutive_restarts).
    ConsecutiveRestarts,
    /// See [`EffectivePolicy::failing_for`](crate::policy::EffectivePolicy::failing_for).
    FailingFor,
    /// See [`EffectivePolicy::on_exhausted`](crate::policy::EffectivePolicy::on_exhausted).
    OnExhausted,
    /// See [`EffectivePolicy::failure_log`](crate::policy::EffectivePolicy::failure_log). Its value has no short text, so the text has its source only.
    FailureLog,
    /// See [`ChildInfo::configured`] and [`SupervisorInfo::configured`](super::SupervisorInfo::configured).
    Configured,
}

string_enum!(
    Fact, "fact":
    Lifecycle = "lifecycle",
    Incarnation = "incarnation",
    Why = "why",
    Held = "held",
    WaitsFor = "waits_for",
    Next = "next",
    LastExit = "last_exit",
    Health = "health",
    Status = "status",
    Limit = "limit",
    LastCall = "last_call",
    Intensity = "intensity",
    Strategy = "strategy",
    OnChildFailure = "on_child_failure",
    Kind = "kind",
    Version = "version",
    Significant = "significant",
    Essential = "essential",
    Restart = "restart",
    Backoff = "backoff",
    ChildIntensity = "child_intensity",
    ConsecutiveRestarts = "consecutive_restarts",
    FailingFor = "failing_for",
    OnExhausted = "on_exhausted",
    FailureLog = "failure_log",
    Configured = "configured",
);

impl Status {
    /// Compares the snapshot with a later one of the same tree.
    ///
    /// Children with the same path are compared. Facts that change in every snapshot are left out. These are
    /// the time in a state, the rest of a delay, and the number of messages in a mailbox.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let before = app.status().await?;
    /// app.terminate_child("db").await?;
    /// app.restart_child("db").await?;
    /// app.start_child(worker("http", async |ctx: Context| ctx.cancelled().await)).await?;
    /// let diff = before.diff(&app.status().await?);
    ///
    /// assert_eq!(diff.to_string(), "~ app/db  incarnation 1 → 2\n+ app/http  active");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline]
    pub fn diff(&self, later: &Self) -> StatusDiff {
        let mut earlier = HashMap::new();
        for Visit { node, .. } in self.walk() {
            earlier.insert(node.child.path.as_str(), node);
        }
        let mut children = Vec::new();
        for Visit { node, .. } in later.walk() {
            let ChildInfo { path, lifecycle, .. } = &node.child;
            let change = match earlier.remove(path.as_str()) {
                None => ChildChange::Added { lifecycle: *lifecycle },
                Some(before) => match differences(before, node) {
                    facts if facts.is_empty() => continue,
                    facts => ChildChange::Changed { facts },
                },
            };
            children.push(ChildDiff { path: path.clone(), change });
        }
        for Visit { node, .. } in self.walk() {
            let ChildInfo { path, lifecycle, .. } = &node.child;
            if earlier.contains_key(path.as_str()) {
                let change = ChildChange::Removed { lifecycle: *lifecycle };
                children.push(ChildDiff { path: path.clone(), change });
            }
        }
        StatusDiff {
            from_seq: self.seq,
            to_seq: later.seq,
            elapsed: later.captured_at.duration_since(self.captured_at).unwrap_or_default(),
            children,
        }
    }
}
