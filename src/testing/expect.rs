//! What a test expects to happen, and how that and what did happen are written.
//!
//! Both are written alike, so that a line of a failed test's output can be copied into the test.

use std::fmt;

use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{Event, EventKind};

/// An event that a test expects, for [`TestTree::expect`](super::TestTree::expect).
///
/// Made from text, or by the functions here. Paths are relative to the root.
///
/// | text | event |
/// | --- | --- |
/// | `db: active -> errored` | [`edge`](Self::edge): it took this step of its [`Lifecycle`] |
/// | `db: -> active` | [`entered`](Self::entered): it came there from anywhere |
/// | `db: active -> errored (panicked)` | [`because`](Self::because): and its run ended like this |
/// | `db: gave up` | [`gave_up`](Self::gave_up): its supervisor gave up on it |
/// | `db: unhealthy` | [`unhealthy`](Self::unhealthy): its health check has failed too often |
/// | `db: healthy` | [`healthy`](Self::healthy): it was unhealthy, and has passed its check |
/// | `db: leaked` | [`leaked`](Self::leaked): it was aborted and is still there |
/// | `db: leak ended` | [`leak_ended`](Self::leak_ended): it had leaked, and has ended now |
/// | `db: deactivate failed` | [`deactivate_failed`](Self::deactivate_failed) |
/// | `db: removed` | [`removed`](Self::removed): it was forgotten |
///
/// ```
/// use verger::Lifecycle;
/// use verger::testing::Expect;
///
/// let written = Expect::from("ingest/mqtt: active -> errored (failed)");
/// let made = Expect::edge("ingest/mqtt", Lifecycle::Active, Lifecycle::Errored).because("failed");
/// assert_eq!(written, made);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    path: String,
    what: What,
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Edge(Lifecycle, Lifecycle),
    Entered(Lifecycle),
    Happened(&'static str),
    /// It can't happen, for this reason.
    Never(Never),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Never {
    NoSuchEdge(Lifecycle, Lifecycle),
    Unreadable,
}

const GAVE_UP: &str = "gave up";
const FELL_BACK: &str = "fell back";
const PAUSED: &str = "paused";
const UNHEALTHY: &str = "unhealthy";
const HEALTHY: &str = "healthy";
const LEAKED: &str = "leaked";
const LEAK_ENDED: &str = "leak ended";
const DEACTIVATE_FAILED: &str = "deactivate failed";
const REMOVED: &str = "removed";
const HAPPENINGS: [&str; 9] = [
    GAVE_UP,
    FELL_BACK,
    PAUSED,
    UNHEALTHY,
    HEALTHY,
    LEAKED,
    LEAK_ENDED,
    DEACTIVATE_FAILED,
    REMOVED,
];

/// All that [`ExitReason::kind`](crate::ExitReason::kind) returns.
const KINDS: [&str; 12] = [
    "normal",
    "shutdown",
    "failed",
    "panicked",
    "activation_failed",
    "activation_timed_out",
    "hung",
    "aborted",
    "killed",
    "escalated",
    "exit",
    "unhealthy",
];

impl Expect {
    /// The child takes a step of its lifecycle. Some don't exist, see
    /// [`Lifecycle::can_become`](crate::Lifecycle::can_become): to expect one of those fails at
    /// once.
    #[must_use]
    pub fn edge(path: impl Into<String>, from: Lifecycle, to: Lifecycle) -> Self {
        let exists = from.can_become(to);
        let never = What::Never(Never::NoSuchEdge(from, to));
        Self::new(path, if exists { What::Edge(from, to) } else { never })
    }

    /// The child comes to a state, from whichever other.
    #[must_use]
    pub fn entered(path: impl Into<String>, to: Lifecycle) -> Self {
        Self::new(path, What::Entered(to))
    }

    /// The child's supervisor gives up on it.
    #[must_use]
    pub fn gave_up(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(GAVE_UP))
    }

    /// The child has failed too often, and its fallback takes its place.
    #[must_use]
    pub fn fell_back(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(FELL_BACK))
    }

    /// The child has failed too often, and pauses.
    #[must_use]
    pub fn paused(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(PAUSED))
    }

    /// The child's health check has failed too often in a row.
    #[must_use]
    pub fn unhealthy(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(UNHEALTHY))
    }

    /// The child was unhealthy, and has passed its health check.
    #[must_use]
    pub fn healthy(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(HEALTHY))
    }

    /// The child was aborted, and is still there when the leak timeout has passed.
    #[must_use]
    pub fn leaked(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(LEAKED))
    }

    /// The child had leaked, and has ended now.
    #[must_use]
    pub fn leak_ended(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(LEAK_ENDED))
    }

    /// The child's `deactivate` fails.
    #[must_use]
    pub fn deactivate_failed(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(DEACTIVATE_FAILED))
    }

    /// The child is forgotten.
    #[must_use]
    pub fn removed(path: impl Into<String>) -> Self {
        Self::new(path, What::Happened(REMOVED))
    }

    /// And the event says that the child has ended like this: an
    /// [`ExitReason::kind`](crate::ExitReason::kind), such as `panicked`. Without, any reason will
    /// do, or none. A word that isn't one of these fails at once.
    #[must_use]
    pub fn because(mut self, kind: impl Into<String>) -> Self {
        self.reason = Some(kind.into());
        self
    }

    fn new(path: impl Into<String>, what: What) -> Self {
        Self { path: path.into(), what, reason: None }
    }

    fn read(text: &str) -> Option<Self> {
        // A name may contain a colon; what comes after the path does not.
        let (path, event) = text.rsplit_once(": ")?;
        let (event, reason) = match event.trim().strip_suffix(')') {
            Some(event) => {
                let (event, reason) = event.rsplit_once(" (")?;
                (event, Some(reason.to_owned()))
            }
            None => (event, None),
        };
        let event = event.trim();
        let mut expected = if let Some(to) = event.strip_prefix("->") {
            Self::entered(path, state(to)?)
        } else if let Some((from, to)) = event.split_once("->") {
            Self::edge(path, state(from)?, state(to)?)
        } else {
            let happening = HAPPENINGS.into_iter().find(|happening| *happening == event)?;
            Self::new(path, What::Happened(happening))
        };
        expected.reason = reason;
        (!path.is_empty()).then_some(expected)
    }

    /// Why no event is ever this one.
    pub(super) fn problem(&self) -> Option<String> {
        let What::Never(never) = self.what else {
            let unknown = self.reason.as_deref().filter(|kind| !KINDS.contains(kind));
            return unknown.map(|kind| {
                let kinds = quoted(KINDS);
                format!("`{self}` can't happen: no run ends as `{kind}`, only as {kinds}")
            });
        };
        Some(match never {
            Never::NoSuchEdge(from, to) => {
                let next = Lifecycle::ALL.into_iter().filter(|&to| from.can_become(to));
                format!(
                    "`{self}` can't happen: from `{from}` there is no step to `{to}`, only to {}",
                    quoted(next)
                )
            }
            Never::Unreadable => format!(
                "`{self}` can't be read; write `db: active -> errored`, `db: -> active`, \
                 `db: active -> errored (failed)`, or `db: ` and one of `{}`; the states are {}",
                HAPPENINGS.join("`, `"),
                quoted(Lifecycle::ALL),
            ),
        })
    }

    pub(super) fn matches(&self, root: &Path, event: &Event) -> bool {
        let what = match (self.what, &event.kind) {
            (What::Edge(from, to), EventKind::Moved { from: was, to: is, .. }) => {
                (from, to) == (*was, *is)
            }
            (What::Entered(to), EventKind::Moved { to: is, .. }) => to == *is,
            (What::Happened(happening), kind) => happened(kind) == Some(happening),
            _ => false,
        };
        let reason = self.reason.as_deref();
        what && relative(root, &event.path) == self.path
            && reason.is_none_or(|kind| reason_of(&event.kind) == Some(kind))
    }
}

impl From<&str> for Expect {
    /// Text that can't be read is told so when it is expected.
    fn from(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|| Self::new(text, What::Never(Never::Unreadable)))
    }
}

impl From<String> for Expect {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// The same text as it is made from.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match self.what {
            What::Edge(from, to) | What::Never(Never::NoSuchEdge(from, to)) => {
                write!(f, ": {from} -> {to}")?;
            }
            What::Entered(to) => write!(f, ": -> {to}")?,
            What::Happened(happening) => write!(f, ": {happening}")?,
            What::Never(Never::Unreadable) => {}
        }
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// An event as one would expect it.
pub(super) fn written(root: &Path, event: &Event) -> String {
    let path = relative(root, &event.path);
    let mut text = match (&event.kind, happened(&event.kind)) {
        (EventKind::Moved { from, to, .. }, _) => format!("{path}: {from} -> {to}"),
        (_, happening) => format!("{path}: {}", happening.unwrap_or_default()),
    };
    if let Some(kind) = reason_of(&event.kind) {
        text += &format!(" ({kind})");
    }
    text
}

/// A path as a handle of the root takes it.
pub(super) fn relative<'a>(root: &Path, path: &'a Path) -> &'a str {
    let below = path.as_str().strip_prefix(root.as_str());
    below.and_then(|below| below.strip_prefix('/')).unwrap_or(path.as_str())
}

fn quoted(words: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn state(word: &str) -> Option<Lifecycle> {
    Lifecycle::ALL.into_iter().find(|state| state.to_string() == word.trim())
}

fn happened(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Moved { .. } => None,
        EventKind::GaveUp { .. } => Some(GAVE_UP),
        EventKind::FellBack { .. } => Some(FELL_BACK),
        EventKind::Paused { .. } => Some(PAUSED),
        EventKind::Unhealthy { .. } => Some(UNHEALTHY),
        EventKind::Healthy => Some(HEALTHY),
        EventKind::Leaked => Some(LEAKED),
        EventKind::LeakEnded => Some(LEAK_ENDED),
        EventKind::DeactivateFailed { .. } => Some(DEACTIVATE_FAILED),
        EventKind::Removed => Some(REMOVED),
    }
}

fn reason_of(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Moved { reason, .. } => reason.as_ref().map(|reason| reason.kind()),
        EventKind::GaveUp { reason }
        | EventKind::FellBack { reason }
        | EventKind::Paused { reason, .. }
        | EventKind::DeactivateFailed { reason } => Some(reason.kind()),
        EventKind::Unhealthy { .. }
        | EventKind::Healthy
        | EventKind::Leaked
        | EventKind::LeakEnded
        | EventKind::Removed => None,
    }
}
