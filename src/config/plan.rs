//! A plan: what a configuration would change in a tree, as values that people and programs read.
//!
//! Made by the planner, carried out by `apply`. No decision is made here.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::draft::{Difference, Draft};
use super::{Config, ConfigError};
use crate::path::Path;
use crate::policy::option_table::TakesEffect;
use crate::serde::serialize;
use crate::spec::Supervisor;

/// What a configuration would change in a running tree.
///
/// Made by [`SupervisorHandle::plan`](crate::SupervisorHandle::plan), carried out by
/// [`apply`](crate::SupervisorHandle::apply). Making one changes nothing. It is displayed as one line for each
/// change, and serialised as a list of them:
///
/// ```text
/// ~ app/writer  restart.max_backoff  "30s" → "10s"  at the next failure  feed.toml:12
/// ~ app/writer  config.batch  100 → 200  live  feed.toml:15
/// - app/audit   enabled  true → false  live  feed.toml:18
/// ```
#[derive(Clone)]
#[must_use = "a plan does nothing until it is applied"]
pub struct Plan {
    pub(super) config: Arc<Config>,
    /// The tree whose code replaces that of the running one.
    pub(super) tree: Option<Supervisor>,
    pub(super) forced: bool,
    pub(super) difference: Arc<Difference>,
    pub(super) draft: Arc<Draft>,
}

impl Plan {
    /// Returns the changes, by path.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.draft.changes
    }

    /// Returns `true` if the configuration changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.draft.changes.is_empty()
    }

    /// Whether this configuration has the values of the plan, wherever they are written.
    pub(crate) fn is_of(&self, config: &Config) -> bool {
        self.config.common == config.common && self.config.sections == config.sections
    }

    /// Also sends what hasn't changed, and ends what was set by calls.
    ///
    /// Every child with a configuration checks its value and gets it, as if it had changed; a child that
    /// [restarts on a change](super::ChildConfig::restart_on_change) is restarted. It holds for this plan only.
    pub fn forced(mut self) -> Self {
        self.forced = true;
        self
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no changes");
        }
        f.write_str(&joined(self.changes(), "\n"))
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("changes", &self.changes())
            .field("forced", &self.forced)
            .finish_non_exhaustive()
    }
}

serialize!(|plan: Plan| plan.changes());

/// What applying a [`Plan`] has done.
///
/// The example of [`SupervisorHandle::apply`](crate::SupervisorHandle::apply) displays one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// The changes that were made. They may differ from those of the plan, if the tree has changed since.
    pub changes: Vec<Change>,
    /// How many sections of the file were the same as before, and weren't touched.
    pub unchanged: usize,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes.len() {
            0 => f.write_str("up to date"),
            1 => write!(f, "1 change, {} unchanged", self.unchanged),
            changes => write!(f, "{changes} changes, {} unchanged", self.unchanged),
        }
    }
}

/// Why a plan wasn't applied. Everything is as it was before.
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::SupervisorHandle;
/// use verger::config::{ApplyError, Plan};
///
/// async fn apply(app: &SupervisorHandle, plan: Plan) {
///     match app.apply(plan).await {
///         Ok(applied) => println!("{applied}"),
///         Err(ApplyError::Refused(refusals)) => {
///             for refusal in refusals {
///                 eprintln!("{} keeps its value: {}", refusal.path, refusal.reason);
///             }
///         }
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # drop(apply);
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The configuration has mistakes.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// Children have refused their values.
    #[error("refused by {}", joined(.0, "; "))]
    Refused(Vec<Refusal>),
    /// Children didn't become active with the new values, and everything that was restarted for the plan was
    /// started again with the old ones.
    #[error("rolled back, not active: {}", joined(.0, "; "))]
    RolledBack(Vec<Refusal>),
    /// The configuration can't be read, for a reason that isn't in it.
    #[error("can't read the configuration: {0}")]
    Unreadable(String),
    /// The application doesn't run.
    #[error("the application isn't running")]
    NotRunning,
    /// The tree can't be changed: it shuts down, or has ended.
    #[error(transparent)]
    Control(#[from] crate::ControlError),
}

impl ApplyError {
    /// Returns the result of the reload in one word, for metrics.
    pub(crate) fn result(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Refused(_) => "refused",
            Self::RolledBack(_) => "rolled_back",
            Self::Unreadable(_) | Self::NotRunning | Self::Control(_) => "failed",
        }
    }
}

impl fmt::Debug for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A child that refuses its value, or doesn't work with it.
///
/// The example of [`ApplyError`] reads one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The path of the child.
    pub path: String,
    /// What it says.
    pub reason: String,
    /// Where the value is written, such as `feed.toml:12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Refusal {
    pub(super) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_string(), reason: reason.into(), place: None }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "`{}` ({place}): {}", self.path, self.reason),
            None => write!(f, "`{}`: {}", self.path, self.reason),
        }
    }
}

/// Joins the texts of values.
pub(super) fn joined(values: &[impl fmt::Display], separator: &str) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

impl From<ApplyError> for crate::RunError {
    fn from(error: ApplyError) -> Self {
        Self::Config { problem: error.to_string() }
    }
}

/// One change of a [`Plan`](super::Plan).
///
/// ```
/// use verger::config::{ChangeKind, Effect, Plan};
///
/// /// Returns the children that would be restarted for a new value.
/// fn restarted(plan: &Plan) -> Vec<&str> {
///     let changed = plan.changes().iter().filter(|change| change.kind == ChangeKind::Changed);
///     let restarts = changed.filter(|change| change.effect == Effect::NeedsRestart);
///     restarts.map(|change| change.path.as_str()).collect()
/// }
/// # drop(restarted as fn(&Plan) -> Vec<&str>);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The path of the child, with the root's name; `app/ingest/*` for all children of a supervisor, `common` for
    /// all children.
    pub path: String,
    /// What happens to the child.
    pub kind: ChangeKind,
    /// The key of the value, such as `restart.max_backoff` or `config.batch`. Empty for a child that the code
    /// adds, removes or replaces.
    pub key: String,
    /// The value so far, as it is written in a file. `None`: the file had none, and the code's isn't shown. Both
    /// this one and the new one are `None` if a value of the code differs, or if the value is only sent again.
    /// The values of secrets are written as `[redacted]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new value. `None`: the file has none any more, so the code's counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// When the value counts.
    pub effect: Effect,
    /// Where the new value is written, such as `feed.toml:12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// What a [`Change`] does to its child.
///
/// The example of [`Change`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The child is started: the code has it now, or it is enabled again.
    Added,
    /// The child is stopped: the code doesn't have it any more, or it is disabled.
    Removed,
    /// A value of the child changes.
    Changed,
}

/// When a changed value counts.
///
/// The example of [`Change`] compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// At once, or from the next event on that the value decides. Only a child that is taken out stops for it.
    Live,
    /// When the child fails, or is started for another reason. A backoff that has begun keeps its deadline.
    AtNextFailure,
    /// The child is restarted for it, uncharged.
    NeedsRestart,
}

impl Effect {
    /// Returns when a new value of an option of the table decides.
    pub(crate) fn of(takes_effect: TakesEffect) -> Self {
        match takes_effect {
            TakesEffect::Live => Self::Live,
            TakesEffect::AtNextFailure => Self::AtNextFailure,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::AtNextFailure => "at the next failure",
            Self::NeedsRestart => "needs a restart",
        })
    }
}

impl Change {
    /// Creates a change without values.
    pub(super) fn new(path: &Path, kind: ChangeKind, key: &str, effect: Effect) -> Self {
        let (path, key) = (path.to_string(), key.to_owned());
        Self { path, kind, key, old: None, new: None, effect, place: None }
    }

    /// The end of a policy that a call has set.
    pub(super) fn of_ended_call(path: &Path) -> Self {
        let old = Some("(call)".to_owned());
        Self { old, ..Self::new(path, ChangeKind::Changed, "restart", Effect::AtNextFailure) }
    }

    /// Sorts changes by path and key.
    pub(super) fn sort(changes: &mut [Self]) {
        changes.sort_by(|a, b| (&a.path, &a.key).cmp(&(&b.path, &b.key)));
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, kind, key, old, new, effect, place } = self;
        let sign = match kind {
            ChangeKind::Added => '+',
            ChangeKind::Removed => '-',
            ChangeKind::Changed => '~',
        };
        write!(f, "{sign} {path}")?;
        if !key.is_empty() {
            write!(f, "  {key}")?;
        }
        if old.is_some() || new.is_some() {
            let text =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "(code)".to_owned());
            write!(f, "  {} → {}", text(old), text(new))?;
        }
        write!(f, "  {effect}")?;
        match place {
            Some(place) => write!(f, "  {place}"),
            None => Ok(()),
        }
    }
}
