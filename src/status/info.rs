//! What a snapshot shows of the program, of a supervisor, and of a child with its lease and its schedule.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{EffectivePolicy, Intensity, RestartType};
use crate::string_enum::string_enum;

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
    /// How many polls of the child have lasted 5 s or longer. It is known of a tree that is
    /// [watched](crate::SupervisorBuilder::self_check).
    pub long_polls: u64,
    /// How long the polls of the current incarnation have kept threads busy. `None` if that isn't
    /// [measured](crate::SupervisorBuilder::busy_time), for supervisors, and while no incarnation runs.
    pub busy: Option<Box<BusyTime>>,
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
    /// What the child reports to be wrong, though it works; see
    /// [`Context::set_alarming`](crate::Context::set_alarming).
    pub alarming: Option<Arc<str>>,
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
    /// What the child waits for in its own code, if that is a service, a lock or an answer: ``the service `Pool` ``.
    pub awaits: Option<Arc<str>>,
    /// Whether a caller [holds](crate::SupervisorHandle::hold) the child.
    pub held: bool,
    /// The stop that has begun, while the child is [deactivating](Lifecycle::Deactivating).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let deaf = worker("deaf", async |_: Context| std::future::pending::<()>().await);
    /// let deaf = deaf.shutdown(Duration::from_secs(20));
    /// let app = Supervisor::builder("app").child(deaf).build()?.start().await?;
    ///
    /// let operator = app.on_behalf_of("operator", "it hangs");
    /// let stop = tokio::spawn(async move { operator.stop_child("deaf").await });
    /// tokio::time::sleep(Duration::from_secs(5)).await;
    ///
    /// let deaf = app.which_child("deaf").await?;
    /// let stopping = deaf.stopping.unwrap();
    /// assert_eq!(stopping.by.as_deref(), Some("operator"));
    /// assert_eq!(stopping.ends, Some(deaf.since + Duration::from_secs(20)));
    /// # stop.await.unwrap().unwrap();
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub stopping: Option<Box<StopInfo>>,
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
    /// The strategy of a supervisor that doesn't run. A running one has it in [`SupervisorInfo::strategy`].
    pub strategy: Option<&'static str>,
    /// Whether a supervisor runs at the path of the child.
    pub(crate) has_children: bool,
}

/// How long the polls of one incarnation have kept threads busy.
///
/// A poll is one call of the child's code: from one await point at which it waits to the next. Its wall time is
/// measured, so it contains the time for which the code blocks its thread and the time for which the system doesn't run that thread.
/// The polls of [helpers](crate::Context::spawn) are polls of their child. Closures of
/// [`spawn_blocking`](crate::Context::spawn_blocking) and [`blocking`](crate::blocking()) children may block, so the CPU time of their
/// thread is added to `total` when they return: on Unix, with the feature `console` or `metrics`. Tasks of
/// `tokio::spawn`, adopted tasks, and what is dropped at the exit aren't measured.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").busy_time(true).child(db).build()?.start().await?;
///
/// let busy = app.which_child("db").await?.busy.unwrap();
/// assert_eq!((busy.polls, busy.polling), (1, None));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusyTime {
    /// How long all polls that have returned took together, and the CPU time of closures that have.
    pub total: Duration,
    /// How many polls have returned.
    pub polls: u64,
    /// How long the longest of them took.
    pub longest: Duration,
    /// When the last poll of more than 1 s has returned. `None` if there was none.
    pub long_at: Option<SystemTime>,
    /// How long the poll lasts that hasn't returned, the longest if several run at the same time. `None` if none runs.
    pub polling: Option<Duration>,
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
    /// Since when the mailbox is at least 90 % full, if it is: the first snapshot that has found it so.
    pub full_since: Option<SystemTime>,
}

/// A stop of a child that has begun.
///
/// The example of [`ChildInfo::stopping`] reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopInfo {
    /// When the child is aborted if it still runs. `None` if nothing bounds the stop.
    pub ends: Option<SystemTime>,
    /// The caller, if a call has stopped the child that [names its caller](crate::SupervisorHandle::on_behalf_of).
    pub by: Option<Arc<str>>,
    /// Why the child is stopped, if the caller, or the stop of the supervisor, gives a reason.
    pub reason: Option<Arc<str>>,
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
/// let kinds: Vec<_> = app.children().await?.iter().map(|child| child.kind).collect();
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
/// The example of [`kill`](crate::SupervisorHandle::kill) reads one.
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
        let (word, causes) = match why {
            "stopped manually" => ("stopped", &["stop_child", "terminate_child"][..]),
            "held" => ("held", &["hold"][..]),
            "standby" => {
                let cause = self.lease.as_ref().and_then(|lease| lease.cause());
                return Some(cause.map_or(why.into(), |cause| format!("{why}: {cause}").into()));
            }
            _ => return Some(why.into()),
        };
        Some(match self.last_call.as_ref().filter(|call| causes.contains(&call.call)) {
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
            long_polls: 0,
            busy: None,
            limit: None,
            created_at: started_at,
            started_at: Some(started_at),
            since: started_at,
            age: Duration::ZERO,
            last_exit: None,
            next: None,
            status: None,
            alarming: None,
            healthy: None,
            problem: None,
            requires: Arc::default(),
            waits_for: Vec::new(),
            awaits: None,
            held: false,
            stopping: None,
            last_call: None,
            lease: None,
            schedule: None,
            mailbox: None,
            version: None,
            strategy: None,
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

/// The lease that a child needs, as far as its supervisor knows it.
///
/// ```
/// use verger::{ControlError, SupervisorHandle};
///
/// /// Prints why the child isn't active here.
/// async fn standby(app: &SupervisorHandle, child: &str) -> Result<(), ControlError> {
///     match app.which_child(child).await?.lease {
///         Some(lease) if lease.token.is_none() => println!("{:?} has {}", lease.holder, lease.name),
///         _ => println!("{child} waits for no lease"),
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInfo {
    /// The name of the lease.
    pub name: Arc<str>,
    /// The fencing token of the grant. `None` while the child is on standby.
    pub token: Option<u64>,
    /// The present holder of the lease, if the child is on standby and the engine knows it.
    pub holder: Option<Arc<str>>,
    /// Why the engine can't tell whether the lease is free, if that is so.
    pub problem: Option<Arc<str>>,
    /// Since when it can't tell.
    pub failing_since: Option<SystemTime>,
}

impl LeaseInfo {
    pub(crate) fn sought(name: &Arc<str>) -> Self {
        Self {
            name: Arc::clone(name),
            token: None,
            holder: None,
            problem: None,
            failing_since: None,
        }
    }

    pub(crate) fn standby(
        name: &Arc<str>,
        holder: Option<Arc<str>>,
        problem: Option<Arc<str>>,
    ) -> Self {
        Self { holder, problem, ..Self::sought(name) }
    }

    /// Why the lease isn't granted, as far as that is known.
    fn cause(&self) -> Option<String> {
        match (&self.problem, &self.holder) {
            (Some(problem), _) => Some(problem.to_string()),
            (None, Some(holder)) => Some(format!("{holder} has the lease")),
            (None, None) => None,
        }
    }

    pub(crate) fn granted(name: &Arc<str>, token: u64) -> Self {
        Self { token: Some(token), ..Self::sought(name) }
    }
}

/// The schedule of a periodic child (feature `periodic`), and its runs since its supervisor was started.
///
/// The example of the module `periodic` reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// When runs are due, such as `every 10s` or `30 4 * * * in Europe/Berlin`.
    pub plan: Arc<str>,
    /// The planned time of the next run. `None` if it depends on the end of a run, and if no run is planned any more.
    pub next: Option<SystemTime>,
    /// How many runs are running.
    pub running: usize,
    /// How many runs have ended.
    pub runs: u64,
    /// How many of them have failed.
    pub failed: u64,
    /// How many runs in a row have failed, up to the last one and since the child was started or restarted.
    pub failed_in_a_row: u64,
    /// How many planned runs were skipped, because the one before took too long or the child was down. Of the runs of a
    /// cron expression that are missed at once, a thousand are counted.
    pub skipped: u64,
    /// The run that has ended last.
    pub last: Option<LastRun>,
}

/// A run of a periodic child that has ended.
///
/// The example of the module `periodic` reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRun {
    /// The time for which it was planned.
    pub planned: SystemTime,
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Why it failed, if it did.
    pub problem: Option<Arc<str>>,
}

/// How a run of a periodic child ended.
///
/// The example of the module `periodic` compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It returned `()` or `Ok`.
    Done,
    /// It returned an error, panicked, or took longer than its limit. The child
    /// hasn't necessarily failed.
    Failed,
    /// The next run has replaced it.
    Replaced,
    /// It was aborted with its child.
    Aborted,
}

string_enum!(
    RunOutcome, "outcome of a run":
    Done = "done",
    Failed = "failed",
    Replaced = "replaced",
    Aborted = "aborted",
);

/// What a running supervisor has in addition to [`ChildInfo`](crate::status::ChildInfo).
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let supervisor = app.status().await?.root.supervisor.unwrap();
/// assert_eq!(supervisor.strategy, "one_for_one");
/// assert_eq!((supervisor.restarts_in_period, supervisor.counts.active), (0, 1));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// The strategy: `one_for_one`, `one_for_all`, `rest_for_one`, or `dynamic`.
    pub strategy: &'static str,
    /// How many restarts the limit of all children together has granted within its period.
    ///
    /// For a [decaying](crate::policy::Intensity::decaying) intensity: `max_restarts`, less the restarts
    /// that its score still allows at once.
    pub restarts_in_period: usize,
    /// How many restarts it grants within the period. `None`, the default: there is no limit of all together.
    pub max_restarts: Option<u32>,
    /// The period of the intensity; the half-life of a decaying one.
    pub period: Duration,
    /// Whether the next restart that counts would exceed the intensity.
    pub limit_reached: bool,
    /// The limit over time on the restarts of each worker for which none is written, if there is one.
    ///
    /// It is the built-in limit, or the one of the [defaults](crate::SupervisorBuilder::defaults) or of a preset.
    pub child_limit: Option<Intensity>,
    /// How many children have to be active so that the supervisor is ready; see
    /// [`min_ready`](crate::DynamicSupervisorBuilder::min_ready). The serialised form leaves out zero.
    pub min_ready: u32,
    /// How many active children it lacks for that. The serialised form leaves out zero.
    pub lacks_active: u32,
    /// Whether the supervisor has a callback of its own, rather than one that it inherits; see
    /// [`on_child_failure`](crate::SupervisorBuilder::on_child_failure).
    pub on_child_failure: bool,
    /// The values that a configuration file has set, by name, and where: `feed.toml:12`. The line is that of the
    /// file with which the section has changed last.
    pub configured: BTreeMap<&'static str, Arc<str>>,
    /// How many children the supervisor has.
    pub counts: Counts,
    /// The children that were removed within the last minute, at most 32, the latest last.
    pub gone: Vec<GoneChild>,
}

/// How many children a supervisor has, not counting children of its children.
///
/// The example of [`count_children`](crate::OtpCalls::count_children) reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// A child that its supervisor has removed.
///
/// ```
/// use verger::{Exit, Supervisor};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").build()?.start().await?;
/// app.start_once("import", async |_| -> Exit { Err("no such file".into()) }).await?;
/// # tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///
/// let gone = app.status().await?.root.supervisor.unwrap().gone;
/// assert_eq!(gone[0].path.as_str(), "app/import");
/// assert_eq!(gone[0].reason.as_ref().unwrap().to_string(), "failed: no such file");
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GoneChild {
    /// The path that the child had.
    pub path: Path,
    /// The number of its last incarnation; 0 if it was never started.
    pub incarnation: u32,
    /// When it was removed.
    pub at: SystemTime,
    /// How long its last incarnation had been active, if the child was removed as it ended.
    pub lived: Option<Duration>,
    /// How its last incarnation ended, if the child was removed as it ended.
    pub reason: Option<Arc<ExitReason>>,
}

/// The program that a tree runs in.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let program = app.status().await?.program;
/// assert_eq!(program.pid, std::process::id());
/// println!("up for {:?}", program.uptime);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// The version of this crate.
    pub verger: &'static str,
    /// The number of the process.
    pub pid: u32,
    /// When the tree was started.
    pub started_at: SystemTime,
    /// How long ago the tree was started.
    pub uptime: Duration,
}

/// Numbers about a tree.
///
/// The counters never decrease while the tree runs, and count the whole tree, whatever part of it the
/// snapshot is of. A rate, such as restarts a minute, is the difference of two snapshots.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let totals = app.status().await?.totals;
/// assert_eq!((totals.children, totals.failures), (1, 0));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// How many children are in the snapshot, at all levels, without its root.
    pub children: u32,
    /// How many of those are in each state. States without children are left out.
    pub lifecycle: BTreeMap<Lifecycle, u32>,
    /// How many incarnations were started.
    pub starts: u64,
    /// How many of those were not the first of their child.
    pub restarts: u64,
    /// How many incarnations failed.
    pub failures: u64,
    /// How many [dead letters](crate::dead_letter) there were, suppressed ones included.
    pub dead_letters: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind};

    #[test]
    fn a_standby_is_explained_by_the_holder_or_by_the_problem() {
        let mut child = ChildInfo::sample(Path::root("app").join("scheduler"), ChildKind::Worker);
        let name: Arc<str> = "scheduler".into();
        child.why = Some("standby");
        for (lease, explanation) in [
            (None, "standby"),
            (Some(LeaseInfo::sought(&name)), "standby"),
            (
                Some(LeaseInfo::standby(&name, Some("web-2".into()), None)),
                "standby: web-2 has the lease",
            ),
            (
                Some(LeaseInfo::standby(
                    &name,
                    Some("web-2".into()),
                    Some("no answer within 3s".into()),
                )),
                "standby: no answer within 3s",
            ),
        ] {
            child.lease = lease.map(Arc::new);
            assert_eq!(child.explanation().as_deref(), Some(explanation));
        }
    }
}
