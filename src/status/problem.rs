//! What is wrong with the children of a snapshot: the one definition, which all views share.
//!
//! It knows the facts of a snapshot and no history, so that the console, the terminal, the metrics and a probe agree about
//! the same snapshot.
//!
//! # Invariants
//!
//! 1. A child that isn't ready has a problem of the kind [`Down`](ProblemKind::Down), and no other child has one.
//! 2. Only problems of the kinds [`Down`](ProblemKind::Down) and [`LacksActive`](ProblemKind::LacksActive) keep a tree from
//!    being ready.
//! 3. The most urgent problem of a child is the first.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime};

use super::words::window;
use super::{ChildInfo, Node, Status, SupervisorInfo};
use crate::human_duration::HumanDuration;
use crate::invisible::Visible;
use crate::path::Path;
use crate::string_enum::string_enum;

/// For how long a failure, or a long poll, is a problem of a child that works again.
const RECENT: Duration = Duration::from_secs(300);
/// How long a poll takes that is a problem.
const LONG_POLL: Duration = Duration::from_secs(1);
/// For how long a mailbox is nearly full until that is a problem.
const FULL_FOR: Duration = Duration::from_secs(10);

/// Something that is wrong with a child.
///
/// Displayed as a line of text: `app/db: restarting, attempt 4 in 3.2s, last: failed: no route`.
///
/// ```
/// use verger::status::ProblemKind;
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// app.stop_child("db").await?;
///
/// let status = app.status().await?;
/// assert!(!status.is_ready());
/// let problem = &status.problems()[0];
/// assert_eq!((problem.path.as_str(), problem.kind), ("app/db", ProblemKind::Down));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The child.
    pub path: Path,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong, in a few words.
    pub problem: String,
    /// The whole cause, if a failure is the cause: `failed: no route`.
    pub cause: Option<String>,
    /// Since when, as far as that is known.
    pub since: Option<SystemTime>,
    /// Whether the tree isn't ready because of it.
    pub essential: bool,
}

/// What kind of problem a child has.
///
/// The example of [`Problem`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The child isn't [ready](ChildInfo::ready): it should be up and isn't, is unhealthy, or a caller has stopped or holds
    /// it.
    Down,
    /// The supervisor has fewer active children than
    /// [`min_ready`](crate::DynamicSupervisorBuilder::min_ready) specifies.
    LacksActive,
    /// The child has reported something [alarming](crate::Context::set_alarming).
    Alarm,
    /// The child is on standby, and its lease can't be asked for.
    LeaseFailing,
    /// The child's mailbox has been at least 90 % full for at least 10 s.
    MailboxFull,
    /// At least 80 % of a limit on restarts is used.
    LimitUsed,
    /// A poll of the child has taken more than 1 s within the last 5 minutes, or one lasts that long that hasn't returned.
    /// Known while polls are [measured](super::BusyTime).
    LongPoll,
    /// The child is ready again, and has failed within the last 5 minutes.
    Failed,
}

string_enum!(
    ProblemKind, "kind of problem":
    Down = "down",
    LacksActive = "lacks_active",
    Alarm = "alarm",
    LeaseFailing = "lease",
    MailboxFull = "mailbox",
    LimitUsed = "limit",
    LongPoll = "long_poll",
    Failed = "failed",
);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.essential { "" } else { " (not essential)" };
        write!(f, "{}: {}{optional}", self.path, self.problem)
    }
}

impl Status {
    /// Returns whether the root and every [essential](crate::ChildSpec::essential) child below it are
    /// [ready](ChildInfo::ready), at every level, and dynamic supervisors have as many active children as
    /// [`min_ready`](crate::DynamicSupervisorBuilder::min_ready) specifies.
    ///
    /// What is below a child that isn't essential doesn't count.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.problems().iter().all(|problem| !problem.essential)
    }

    /// Returns what is wrong with the tree, a supervisor before its children: a problem of each
    /// [kind](ProblemKind) that applies to a child.
    ///
    /// A child that isn't ready, or a supervisor that lacks active children, makes the tree unready if it is essential. The
    /// other kinds are warnings: the tree works.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut left = vec![(&self.root, true)];
        while let Some((node, above)) = left.pop() {
            let first = problems.len();
            node.add_problems(&mut problems);
            let essential = above && node.child.essential;
            problems[first..].iter_mut().for_each(|it| it.essential &= essential);
            left.extend(node.children.iter().rev().map(|child| (child, essential)));
        }
        problems
    }
}

impl Node {
    /// Returns what is wrong with this child, as if everything above were essential.
    #[cfg(feature = "console")]
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.add_problems(&mut problems);
        problems
    }

    /// Adds what is wrong with this child, as if everything above were essential.
    pub(super) fn add_problems(&self, problems: &mut Vec<Problem>) {
        let child = &self.child;
        let limits = self.supervisor.as_deref();
        let found = [
            down(child),
            limits.and_then(lacks_active),
            child
                .alarming
                .as_ref()
                .map(|text| Found::new(ProblemKind::Alarm, Visible(text).to_string())),
            lease(child),
            mailbox(child),
            limit(child, limits),
            long_poll(child),
            failed(child),
        ];
        problems.extend(found.into_iter().flatten().map(|found| Problem {
            path: child.path.clone(),
            essential: child.essential && found.kind.is_essential(),
            kind: found.kind,
            problem: found.problem,
            cause: found.cause,
            since: found.since,
        }));
    }
}

impl ProblemKind {
    fn is_essential(self) -> bool {
        matches!(self, Self::Down | Self::LacksActive)
    }
}

/// A problem, without the child that has it.
struct Found {
    kind: ProblemKind,
    problem: String,
    cause: Option<String>,
    since: Option<SystemTime>,
}

impl Found {
    fn new(kind: ProblemKind, problem: String) -> Self {
        Self { kind, problem, cause: None, since: None }
    }

    fn since(self, since: SystemTime) -> Self {
        Self { since: Some(since), ..self }
    }
}

/// Returns when the snapshot was taken of the child.
fn now(child: &ChildInfo) -> SystemTime {
    child.since.checked_add(child.age).unwrap_or(child.since)
}

fn seconds(time: Duration) -> HumanDuration {
    HumanDuration(Duration::from_secs(time.as_secs()))
}

fn down(child: &ChildInfo) -> Option<Found> {
    if child.ready {
        return None;
    }
    let why = child.explanation().map(|why| Visible(why).to_string());
    // The explanation of a stop begins with the state: `stopped by operator: disk swap`.
    let (mut text, why) = match why {
        Some(why) if why.starts_with(child.lifecycle.word()) => (why, None),
        why => (child.lifecycle.to_string(), why),
    };
    if child.healthy == Some(false) {
        text.push_str(", unhealthy");
    }
    // Writing to a string doesn't fail.
    if let Some(problem) = &child.problem {
        let _ = write!(text, ": {}", Visible(problem));
    }
    if let Some(why) = why {
        let _ = write!(text, ", {why}");
    }
    if let Some(next) = child.next {
        let _ = write!(text, ", attempt {} in {:.1?}", next.attempt, next.remaining);
    }
    if let Some(last) = &child.last_exit {
        let _ = write!(text, ", last: {last}");
    }
    let failure = child.last_exit.as_ref().filter(|last| !last.reason.is_clean());
    let cause = child.problem.as_ref().map(|problem| Visible(problem).to_string());
    let cause = cause.or_else(|| failure.map(|last| Visible(&last.reason).to_string()));
    Some(Found { cause, ..Found::new(ProblemKind::Down, text).since(child.since) })
}

fn lacks_active(supervisor: &SupervisorInfo) -> Option<Found> {
    let SupervisorInfo { min_ready, lacks_active, .. } = supervisor;
    let active = min_ready.saturating_sub(*lacks_active);
    let text = || format!("{active} of {min_ready} children are active");
    (*lacks_active > 0).then(|| Found::new(ProblemKind::LacksActive, text()))
}

/// Why the lease of a child on standby can't be asked for, and for how long. Such a child is ready: a different process
/// may have the lease.
fn lease(child: &ChildInfo) -> Option<Found> {
    let lease = child.lease.as_deref().filter(|lease| child.ready && lease.token.is_none())?;
    let (problem, since) = (lease.problem.as_deref()?, lease.failing_since?);
    let failing = seconds(now(child).duration_since(since).unwrap_or_default());
    let (name, problem) = (Visible(&lease.name), Visible(problem));
    let text = format!("can't ask for the lease `{name}` for {failing}: {problem}");
    Some(Found::new(ProblemKind::LeaseFailing, text).since(since))
}

fn mailbox(child: &ChildInfo) -> Option<Found> {
    let mailbox = child.mailbox?;
    let since = mailbox.full_since?;
    let full = now(child).duration_since(since).ok().filter(|full| *full >= FULL_FOR)?;
    let text = format!("{}/{} messages for {}", mailbox.len, mailbox.capacity, seconds(full));
    Some(Found::new(ProblemKind::MailboxFull, text).since(since))
}

/// At least 80 % of the child's own limit, or of a supervisor's limit for its children, is used.
fn limit(child: &ChildInfo, supervisor: Option<&SupervisorInfo>) -> Option<Found> {
    let own = child.limit.map(|it| (it.restarts, it.max_restarts, it.period));
    let shared = || {
        let it = supervisor?;
        Some((it.restarts_in_period, it.max_restarts?, it.period))
    };
    let (used, max, period) = own.or_else(shared)?;
    if used == 0 || used.saturating_mul(5) < (max as usize).saturating_mul(4) {
        return None;
    }
    let text = format!("restarts used: {}", window(used, max, period));
    Some(Found::new(ProblemKind::LimitUsed, text))
}

fn long_poll(child: &ChildInfo) -> Option<Found> {
    let busy = child.busy.as_ref()?;
    if let Some(polling) = busy.polling.filter(|polling| *polling > LONG_POLL) {
        let text = format!("a poll has lasted {} and hasn't returned", seconds(polling));
        let since = now(child).checked_sub(polling);
        return Some(Found { since, ..Found::new(ProblemKind::LongPoll, text) });
    }
    let ended = busy.long_at?;
    let ago = now(child).duration_since(ended).ok().filter(|ago| *ago <= RECENT)?;
    let longest = HumanDuration(Duration::from_millis(
        u64::try_from(busy.longest.as_millis()).unwrap_or(u64::MAX),
    ));
    let text =
        format!("a poll of more than 1s returned {} ago; the longest took {longest}", seconds(ago));
    Some(Found::new(ProblemKind::LongPoll, text).since(ended))
}

fn failed(child: &ChildInfo) -> Option<Found> {
    let last = child.last_exit.as_ref().filter(|it| child.ready && !it.reason.is_clean())?;
    let ago = now(child).duration_since(last.at).ok().filter(|ago| *ago <= RECENT)?;
    let cause = Visible(&last.reason).to_string();
    let text = format!("{} ago: {cause}", seconds(ago));
    Some(Found { cause: Some(cause), ..Found::new(ProblemKind::Failed, text).since(last.at) })
}
