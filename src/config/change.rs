//! The changes of a plan, one by one, as people and programs read them.

use std::fmt;

use serde::Serialize;

use crate::path::Path;
use crate::policy::TakesEffect;

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
