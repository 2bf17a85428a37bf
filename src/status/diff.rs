//! The differences between two snapshots.
//!
//! It compares children with the same path, fact by fact: as values, which are made texts only if they differ. Times and fill levels, which change in every
//! snapshot, are left out.
//!
//! # Invariants
//!
//! 1. The order is that of the later snapshot, followed by the removed children in that of the earlier one.
//! 2. A child without a difference isn't in the list, and neither is a fact.
//! 3. Each snapshot is visited once, without recursion; children are found by a hash of their path.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::words::{self, cut};
use super::{ChildInfo, ChildKind, LastCall, LimitUse, Node, Status, SupervisorInfo, Visit};
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{Effective, EffectivePolicy};
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
    /// See [`ChildInfo::alarming`].
    Alarming,
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
    Alarming = "alarming",
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
    /// app.stop_child("db").await?;
    /// app.resume("db").await?;
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

/// Returns the facts of a child that differ between two snapshots.
#[inline]
fn differences(before: &Node, after: &Node) -> Vec<FactChange> {
    let mut comparison = Comparison { before, after, facts: Vec::new() };
    comparison.state();
    comparison.supervisor();
    comparison.spec();
    comparison.policy();
    comparison.compare(Fact::Configured, words::places, |it| it);
    comparison.facts
}

/// The facts of a child that differ so far.
struct Comparison<'a> {
    before: &'a Node,
    after: &'a Node,
    facts: Vec<FactChange>,
}

impl<'a> Comparison<'a> {
    /// Compares what changes while a child runs.
    #[inline]
    fn state(&mut self) {
        self.child(Fact::Lifecycle, |it| it.lifecycle, |it| Some(it.to_string()));
        // An incarnation of a child that was created again may have the same number.
        let of = |it: &'a ChildInfo| (it.incarnation, it.started_at);
        self.child(Fact::Incarnation, of, |(incarnation, _)| Some(incarnation.to_string()));
        self.child(Fact::Why, |it| it.why, |it| it.map(str::to_owned));
        self.child(Fact::Held, |it| it.held, |it| Some(yes_or_no(it)));
        let waits = |it: &[String]| (!it.is_empty()).then(|| it.join(", "));
        self.child(Fact::WaitsFor, |it| &it.waits_for[..], waits);
        let next = |(attempt, delay)| format!("attempt {attempt} after {}", words::exactly(delay));
        let of = |it: &'a ChildInfo| it.next.map(|it| (it.attempt, it.delay));
        self.child(Fact::Next, of, |it| it.map(next));
        let last = |it: &'a ChildInfo| it.last_exit.as_ref().map(ToString::to_string);
        self.child(Fact::LastExit, last, |it| it);
        let health = |(healthy, problem): (Option<bool>, Option<&str>)| {
            Some(match (healthy?, problem) {
                (true, _) => "healthy".to_owned(),
                (false, None) => "unhealthy".to_owned(),
                (false, Some(problem)) => format!("unhealthy: {problem}"),
            })
        };
        self.child(Fact::Health, |it| (it.healthy, it.problem.as_deref()), health);
        self.child(Fact::Status, |it| it.status.as_deref(), |it| it.map(str::to_owned));
        self.child(Fact::Alarming, |it| it.alarming.as_deref(), |it| it.map(str::to_owned));
        let limit = |it: LimitUse| words::window(it.restarts, it.max_restarts, it.period);
        self.child(Fact::Limit, |it| it.limit, |it| it.map(limit));
        let call = |it: &LastCall| it.with_caller(it.call);
        self.child(Fact::LastCall, |it| it.last_call.as_ref(), |it| it.map(call));
    }

    /// Compares what only a supervisor has.
    #[inline]
    fn supervisor(&mut self) {
        let limit = |it: &'a SupervisorInfo| words::intensity(it);
        self.of_supervisor(Fact::Intensity, limit, |it| it);
        self.of_supervisor(Fact::Strategy, |it| it.strategy, str::to_owned);
        self.of_supervisor(Fact::OnChildFailure, |it| it.on_child_failure, yes_or_no);
    }

    /// Compares what the spec of a child says.
    #[inline]
    fn spec(&mut self) {
        self.child(Fact::Kind, |it| it.kind, |it| Some(kind(it).to_owned()));
        self.child(Fact::Version, |it| it.version.as_deref(), |it| it.map(str::to_owned));
        self.child(Fact::Significant, |it| it.significant, |it| Some(yes_or_no(it)));
        self.child(Fact::Essential, |it| it.essential, |it| Some(yes_or_no(it)));
    }

    /// Compares the policy that applies to the child.
    #[inline]
    fn policy(&mut self) {
        self.part(Fact::Restart, |it| Some(it.restart()), |it| it.restart_type().to_string());
        self.part(Fact::Backoff, |it| Some(it.backoff()), |_| String::new());
        self.part(Fact::ChildIntensity, EffectivePolicy::intensity, |it| it.in_words());
        self.part(Fact::ConsecutiveRestarts, EffectivePolicy::consecutive_restarts, u32::to_string);
        self.part(Fact::FailingFor, EffectivePolicy::failing_for, |&it| words::exactly(it));
        self.part(Fact::OnExhausted, |it| Some(it.on_exhausted()), ToString::to_string);
        self.part(Fact::FailureLog, |it| Some(it.failure_log()), |_| String::new());
    }

    #[inline]
    fn child<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a ChildInfo) -> T,
        text: impl Fn(T) -> Option<String>,
    ) {
        self.compare(fact, |it| of(&it.child), text);
    }

    #[inline]
    fn of_supervisor<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a SupervisorInfo) -> T,
        text: impl Fn(T) -> String,
    ) {
        let of = |it: &'a Node| it.supervisor.as_deref().map(&of);
        self.compare(fact, of, |it| it.map(&text));
    }

    #[inline]
    fn part<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a EffectivePolicy) -> Option<Effective<T>>,
        text: impl Fn(&T) -> String,
    ) {
        let of = |it: &'a Node| it.child.policy.as_ref().and_then(&of);
        let with_source = |Effective { value, source }: Effective<T>| {
            format!("{} ({source})", text(&value)).trim_start().to_owned()
        };
        self.compare(fact, of, |it| it.map(with_source));
    }

    #[inline]
    fn compare<T: PartialEq>(
        &mut self,
        fact: Fact,
        of: impl Fn(&'a Node) -> T,
        text: impl Fn(T) -> Option<String>,
    ) {
        let (before, after) = (of(self.before), of(self.after));
        if before == after {
            return;
        }
        let (before, mut after) = (text(before), text(after));
        if before == after {
            // The values differ in a part that their texts don't have.
            after = after.map(|after| after + ", changed");
        }
        self.facts.push(FactChange { fact, before, after });
    }
}

#[inline]
fn yes_or_no(it: bool) -> String {
    (if it { "yes" } else { "no" }).to_owned()
}

#[inline]
fn kind(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Worker => "worker",
        ChildKind::Supervisor => "supervisor",
    }
}

/// The width of a line, if its values can be cut to fit.
const WIDTH: usize = 80;
/// The widths to which values are cut: the first one with which the line fits.
const VALUES: [usize; 7] = [60, 50, 40, 32, 24, 20, 16];
/// The width to which values are cut if no line fits.
const LONG: usize = 24;

impl StatusDiff {
    /// Returns whether the snapshots have no differences.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }
}

/// The format is described at [`StatusDiff`]. Without differences, it is `no differences`.
impl fmt::Display for StatusDiff {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no differences");
        }
        for (index, child) in self.children.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{child}")?;
        }
        Ok(())
    }
}

/// Writes one line, without a line break.
impl fmt::Display for ChildDiff {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.change {
            ChildChange::Added { lifecycle } => write!(f, "+ {path}  {lifecycle}"),
            ChildChange::Removed { lifecycle } => write!(f, "- {path}  {lifecycle}"),
            ChildChange::Changed { facts } => {
                let line = |room| {
                    let facts = facts.iter().map(|it| it.in_room(room));
                    facts.fold(format!("~ {path}"), |line, fact| line + "  " + &fact)
                };
                let fits = |line: &String| line.chars().count() <= WIDTH;
                f.write_str(&VALUES.into_iter().map(line).find(fits).unwrap_or_else(|| line(LONG)))
            }
        }
    }
}

impl FactChange {
    /// Returns the fact as text, with values of at most `room` characters.
    #[inline]
    fn in_room(&self, room: usize) -> String {
        let shown = |value: &Option<String>| match value {
            None => "none".to_owned(),
            Some(text) if matches!(self.fact, Fact::Status) => {
                format!("\"{}\"", cut(Visible(text), room))
            }
            Some(text) => cut(Visible(text), room),
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        match self.fact {
            Fact::Lifecycle => format!("{before} → {after}"),
            fact => format!("{fact} {before} → {after}"),
        }
    }
}

#[cfg(test)]
mod tests;
