//! What a snapshot shows of one child.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::lease_info::LeaseInfo;
use super::schedule_info::ScheduleInfo;
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{EffectivePolicy, RestartType};

/// The state of one child.
///
/// The example of [`which_child`](crate::SupervisorHandle::which_child) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The path of the child.
    pub path: Path,
    /// Whether the child is a worker or a supervisor.
    pub kind: ChildKind,
    /// Whether the child is part of the tree as it was built, rather than added while it runs.
    pub declared: bool,
    /// Where in the program the child is described.
    pub defined_at: Option<&'static Location<'static>>,
    /// After which exits the child is restarted, not counting the exceptions in its policy.
    pub restart: RestartType,
    /// The policy that applies if the child exits now, with the source of each value. `None` for
    /// the root, which has no supervisor.
    pub policy: Option<EffectivePolicy>,
    /// The values that a configuration file or a call has set, by name, and where: `feed.toml:12`, or `call`. The
    /// line is that of the file with which the section has changed last.
    pub configured: BTreeMap<&'static str, Arc<str>>,
    /// Whether the exit of the child may end its supervisor (auto-shutdown).
    pub significant: bool,
    /// Whether the tree is ready only if this child is; see [`ChildSpec::essential`](crate::ChildSpec::essential).
    pub essential: bool,
    /// Whether the child does what is expected of it.
    ///
    /// A ready child is active and not unhealthy, has ended normally, has declined to start, waits for its first
    /// message, or is kept out by its configuration. One that a caller has stopped or holds isn't ready while it is
    /// down.
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
    /// How much of the child's own limit on restarts is used, if it has one.
    pub limit: Option<LimitUse>,
    /// When the child was added to its supervisor, which may itself have been restarted.
    pub created_at: SystemTime,
    /// When the current or last incarnation was started. `None` before the first start.
    pub started_at: Option<SystemTime>,
    /// When the child entered the state of its lifecycle.
    pub since: SystemTime,
    /// How long the child has been in the state of its lifecycle.
    pub age: Duration,
    /// How the last finished incarnation ended, once an incarnation has failed.
    pub last_exit: Option<LastExit>,
    /// The next attempt to start the child, if it waits for one.
    pub next: Option<NextAttempt>,
    /// The text that the child has set; see [`Context::set_status`](crate::Context::set_status).
    pub status: Option<String>,
    /// The result of the [health check](crate::HealthCheck), and `false` while too many
    /// runs in a row of a periodic child have failed. `None` if the child
    /// isn't active. Also `None` if it has no health check or hasn't been checked yet, unless its runs fail.
    pub healthy: Option<bool>,
    /// Why the child isn't healthy: what its health check has reported, or how its runs have failed.
    pub problem: Option<Arc<str>>,
    /// The siblings that the child requires.
    pub requires: Arc<[String]>,
    /// Those of them that keep the child from being started.
    pub waits_for: Vec<String>,
    /// Whether a caller [holds](crate::SupervisorHandle::hold) the child.
    pub held: bool,
    /// The last call that has changed the child and [named its caller](crate::SupervisorHandle::on_behalf_of),
    /// since its supervisor was started. `None` if a later call without a caller has taken it back or repeated it.
    pub last_call: Option<LastCall>,
    /// The lease that the child has, or is on standby for.
    pub lease: Option<Arc<LeaseInfo>>,
    /// The schedule of a periodic child (feature `periodic`), once that was started.
    pub schedule: Option<Box<ScheduleInfo>>,
    /// The child's mailbox, if it has one.
    pub mailbox: Option<MailboxInfo>,
    /// The version of the child; see [`ChildSpec::version`](crate::ChildSpec::version).
    pub version: Option<Arc<str>>,
    /// Whether a supervisor runs at the path of the child.
    pub(crate) has_children: bool,
}

/// The fill level of a mailbox.
///
/// The example of the module `mailbox` reads one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxInfo {
    /// How many messages the mailbox holds, including those received and not yet acknowledged.
    pub len: usize,
    /// How many messages the mailbox can hold.
    pub capacity: usize,
}

/// Whether a child is a worker or a supervisor.
///
/// ```
/// use verger::status::ChildKind;
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ingest = Supervisor::builder("ingest");
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(ingest).child(db).build()?.start().await?;
///
/// let kinds: Vec<_> = app.which_children().await?.iter().map(|child| child.kind).collect();
/// assert_eq!(kinds, [ChildKind::Supervisor, ChildKind::Worker]);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChildKind {
    /// The child does work.
    Worker,
    /// The child supervises children of its own.
    Supervisor,
}

/// An attempt to start a child that is waiting for its backoff.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, Context, Exit, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// async fn refused(_ctx: Context) -> Exit {
///     Err("connection refused".into())
/// }
///
/// let minute = Duration::from_secs(60);
/// let db = worker("db", refused).backoff(Backoff::constant(minute));
/// let app = Supervisor::builder("app").child(db.own_restarts(5, 60 * minute)).build()?.start().await?;
/// tokio::time::sleep(minute / 2).await;
///
/// let db = app.which_child("db").await?;
/// assert_eq!(db.next.unwrap().attempt, 1);
/// assert!(db.next.unwrap().remaining > Duration::ZERO);
/// assert_eq!(db.limit.unwrap().max_restarts, 5);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextAttempt {
    /// When the attempt is due.
    pub at: SystemTime,
    /// The number of the attempt since the child was last healthy, from 1.
    pub attempt: u32,
    /// The delay that was drawn for this attempt.
    pub delay: Duration,
    /// How much of the delay is left.
    pub remaining: Duration,
}

/// How an incarnation of a child ended.
///
/// Displayed as its [reason](Self::reason).
///
/// The example of [`kill_child`](crate::SupervisorHandle::kill_child) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LastExit {
    /// The number of the incarnation.
    pub incarnation: u32,
    /// When it ended.
    pub at: SystemTime,
    /// How long the child had been active, or `None` if it hadn't been.
    pub lived: Option<Duration>,
    /// Why it ended.
    pub reason: Arc<ExitReason>,
}

impl fmt::Display for LastExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

/// How much of a limit on restarts is used.
///
/// The example of [`NextAttempt`] reads one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUse {
    /// How many restarts count now.
    pub restarts: usize,
    /// How many are allowed within the period.
    pub max_restarts: u32,
    /// The period, or the half-life of a [decaying](crate::policy::Intensity::decaying) limit.
    pub period: Duration,
    /// Whether the next restart would be refused.
    pub reached: bool,
}

/// A call that has changed a child and named its caller.
///
/// Made by the handle that [`on_behalf_of`](crate::SupervisorHandle::on_behalf_of) returns.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// app.on_behalf_of("operator", "disk swap").restart("db").await?;
///
/// let call = app.which_child("db").await?.last_call.unwrap();
/// assert_eq!((call.call, &*call.by), ("restart", "operator"));
/// assert_eq!(call.reason.as_deref(), Some("disk swap"));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastCall {
    /// The name of the method of [`SupervisorHandle`](crate::SupervisorHandle).
    pub call: &'static str,
    /// The caller, such as `operator`.
    pub by: Arc<str>,
    /// The reason, if the caller gave one.
    pub reason: Option<Arc<str>>,
    /// When the call was answered.
    pub at: SystemTime,
}

impl LastCall {
    /// `stopped by operator: disk swap`, with the word `stopped`.
    pub(super) fn with_caller(&self, word: &str) -> String {
        let by = &self.by;
        match &self.reason {
            Some(reason) => format!("{word} by {by}: {reason}"),
            None => format!("{word} by {by}"),
        }
    }
}

impl ChildInfo {
    /// Why the child is down, in a few words: [`why`](Self::why), with the caller that has stopped or held the child, or
    /// the present holder of its lease.
    ///
    /// A serialised [`Status`](super::Status) has it as the field `explanation`.
    ///
    /// `stopped by operator: disk swap`, `standby: web-2/4711-5f2c08aa:app/scheduler has the lease`.
    #[must_use]
    pub fn explanation(&self) -> Option<Cow<'static, str>> {
        let why = self.why?;
        let (word, cause) = match why {
            "stopped manually" => ("stopped", "terminate_child"),
            "held" => ("held", "hold"),
            "standby" => {
                let cause = self.lease.as_ref().and_then(|lease| lease.cause());
                return Some(cause.map_or(why.into(), |cause| format!("{why}: {cause}").into()));
            }
            _ => return Some(why.into()),
        };
        Some(match self.last_call.as_ref().filter(|call| call.call == cause) {
            Some(call) => call.with_caller(word).into(),
            None => why.into(),
        })
    }

    /// Returns an active child of which nothing is known but that it was started at this time.
    pub(crate) fn active(path: Path, kind: ChildKind, started_at: SystemTime) -> Self {
        Self {
            path,
            kind,
            declared: true,
            defined_at: None,
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
            limit: None,
            created_at: started_at,
            started_at: Some(started_at),
            since: started_at,
            age: Duration::ZERO,
            last_exit: None,
            next: None,
            status: None,
            healthy: None,
            problem: None,
            requires: Arc::default(),
            waits_for: Vec::new(),
            held: false,
            last_call: None,
            lease: None,
            schedule: None,
            mailbox: None,
            version: None,
            has_children: false,
        }
    }
}

#[cfg(test)]
impl LastExit {
    /// Returns the exit of a first incarnation, for tests of the views.
    pub(crate) fn sample(reason: ExitReason) -> Self {
        let (at, lived, reason) = (SystemTime::UNIX_EPOCH, None, Arc::new(reason));
        Self { incarnation: 1, at, lived, reason }
    }
}

#[cfg(test)]
impl ChildInfo {
    /// Returns an active child, for tests of the views.
    pub(crate) fn sample(path: Path, kind: ChildKind) -> Self {
        Self::active(path, kind, SystemTime::UNIX_EPOCH)
    }
}
