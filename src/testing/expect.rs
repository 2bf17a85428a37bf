//! The events that a test expects, and the text of expected and of actual events.
//!
//! Both have the same text, so that a line of a failed test's output can be copied into the test.

use std::fmt;

use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{Event, EventKind};

/// An event that a test expects, for [`TestTree::expect`](super::TestTree::expect).
///
/// Convert it from a text, or call one of the functions below. Paths are relative to the root.
///
/// | text | event |
/// | --- | --- |
/// | `db: active -> errored` | [`edge`](Self::edge): the child takes this step of its [`Lifecycle`] |
/// | `db: -> active` | [`entered`](Self::entered): the child enters this state from any other |
/// | `db: active -> errored (panicked)` | [`because`](Self::because): … with this exit reason |
/// | `db: gave up` | [`gave_up`](Self::gave_up): its supervisor gives up on the child |
/// | `db: fell back` | [`fell_back`](Self::fell_back): the child's fallback replaces it |
/// | `db: paused` | [`paused`](Self::paused): the child failed too often, and pauses |
/// | `db: unhealthy` | [`unhealthy`](Self::unhealthy): the child's health check failed too often |
/// | `db: healthy` | [`healthy`](Self::healthy): the unhealthy child passes its health check |
/// | `db: standby` | [`standby`](Self::standby): the child waits for its lease |
/// | `db: lease granted` | [`lease_granted`](Self::lease_granted): the child's lease is granted |
/// | `db: lease lost` | [`lease_lost`](Self::lease_lost): the child's lease is lost |
/// | `db: leaked` | [`leaked`](Self::leaked): the child was aborted and is still running |
/// | `db: leak ended` | [`leak_ended`](Self::leak_ended): the leaked child has ended |
/// | `db: deactivate failed` | [`deactivate_failed`](Self::deactivate_failed) |
/// | `db: removed` | [`removed`](Self::removed): the supervisor removes the child |
/// | `db: called` | [`called`](Self::called): a call that names its caller has changed the child |
///
/// ```
/// use verger::Lifecycle;
/// use verger::testing::Expect;
///
/// let from_text = Expect::from("ingest/mqtt: active -> errored (failed)");
/// let from_calls = Expect::edge("ingest/mqtt", Lifecycle::Active, Lifecycle::Errored).because("failed");
/// assert_eq!(from_text, from_calls);
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
    Plain(&'static str),
    /// A text that can't be read.
    Unreadable,
}

const GAVE_UP: &str = "gave up";
const FELL_BACK: &str = "fell back";
const PAUSED: &str = "paused";
const UNHEALTHY: &str = "unhealthy";
const HEALTHY: &str = "healthy";
const STANDBY: &str = "standby";
const LEASE_GRANTED: &str = "lease granted";
const LEASE_LOST: &str = "lease lost";
const LEAKED: &str = "leaked";
const LEAK_ENDED: &str = "leak ended";
const DEACTIVATE_FAILED: &str = "deactivate failed";
const REMOVED: &str = "removed";
const CALLED: &str = "called";
const PLAIN_EVENTS: [&str; 13] = [
    GAVE_UP,
    FELL_BACK,
    PAUSED,
    UNHEALTHY,
    HEALTHY,
    STANDBY,
    LEASE_GRANTED,
    LEASE_LOST,
    LEAKED,
    LEAK_ENDED,
    DEACTIVATE_FAILED,
    REMOVED,
    CALLED,
];

/// All that [`ExitReason::kind`](crate::ExitReason::kind) returns.
const KINDS: [&str; 13] = [
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
    "timed_out",
];

impl Expect {
    /// Expects the child to take a step of its lifecycle.
    ///
    /// Expecting a step that doesn't exist fails at once; see
    /// [`Lifecycle::can_become`](crate::Lifecycle::can_become).
    #[must_use]
    pub fn edge(path: impl Into<String>, from: Lifecycle, to: Lifecycle) -> Self {
        Self::new(path, What::Edge(from, to))
    }

    /// Expects the child to enter a state, from any other.
    #[must_use]
    pub fn entered(path: impl Into<String>, to: Lifecycle) -> Self {
        Self::new(path, What::Entered(to))
    }

    /// Expects the child's supervisor to give up on it.
    #[must_use]
    pub fn gave_up(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(GAVE_UP))
    }

    /// Expects the child's fallback to replace it, after too many failures.
    #[must_use]
    pub fn fell_back(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(FELL_BACK))
    }

    /// Expects the child to pause, after too many failures.
    #[must_use]
    pub fn paused(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(PAUSED))
    }

    /// Expects the child's health check to fail too often in a row.
    #[must_use]
    pub fn unhealthy(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(UNHEALTHY))
    }

    /// Expects the unhealthy child to pass its health check.
    #[must_use]
    pub fn healthy(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(HEALTHY))
    }

    /// Expects the child to be on standby: its lease isn't granted, or the holder or the problem has changed.
    #[must_use]
    pub fn standby(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(STANDBY))
    }

    /// Expects the child's lease to be granted.
    #[must_use]
    pub fn lease_granted(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(LEASE_GRANTED))
    }

    /// Expects the child's lease to be lost.
    #[must_use]
    pub fn lease_lost(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(LEASE_LOST))
    }

    /// Expects the aborted child to be still running after the leak timeout.
    #[must_use]
    pub fn leaked(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(LEAKED))
    }

    /// Expects the leaked child to end.
    #[must_use]
    pub fn leak_ended(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(LEAK_ENDED))
    }

    /// Expects the child's `deactivate` to fail.
    #[must_use]
    pub fn deactivate_failed(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(DEACTIVATE_FAILED))
    }

    /// Expects the supervisor to remove the child.
    #[must_use]
    pub fn removed(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(REMOVED))
    }

    /// Expects a call that [names its caller](crate::SupervisorHandle::on_behalf_of) to change the child.
    #[must_use]
    pub fn called(path: impl Into<String>) -> Self {
        Self::new(path, What::Plain(CALLED))
    }

    /// Also expects this exit reason: an [`ExitReason::kind`](crate::ExitReason::kind), such as
    /// `panicked`.
    ///
    /// Without this call, an event matches with any reason or none. Expecting a word that isn't a
    /// kind fails at once.
    #[must_use]
    pub fn because(mut self, kind: impl Into<String>) -> Self {
        self.reason = Some(kind.into());
        self
    }

    fn new(path: impl Into<String>, what: What) -> Self {
        Self { path: path.into(), what, reason: None }
    }

    fn read(text: &str) -> Option<Self> {
        // The last colon, because a name may contain one.
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
            let name = PLAIN_EVENTS.into_iter().find(|name| *name == event)?;
            Self::new(path, What::Plain(name))
        };
        expected.reason = reason;
        (!path.is_empty()).then_some(expected)
    }

    /// Returns why no event can match, if that is so.
    pub(super) fn problem(&self) -> Option<String> {
        match self.what {
            What::Edge(from, to) if !from.can_become(to) => {
                let next = Lifecycle::ALL.into_iter().filter(|&to| from.can_become(to));
                Some(format!(
                    "`{self}` can't happen: from `{from}` there is no step to `{to}`, only to {}",
                    quoted(next)
                ))
            }
            What::Unreadable => Some(format!(
                "`{self}` can't be read; write `db: active -> errored`, `db: -> active`, \
                 `db: active -> errored (failed)`, or `db: ` and one of `{}`; the states are {}",
                PLAIN_EVENTS.join("`, `"),
                quoted(Lifecycle::ALL),
            )),
            _ => self.reason.as_deref().filter(|kind| !KINDS.contains(kind)).map(|kind| {
                let kinds = quoted(KINDS);
                format!("`{self}` can't happen: no incarnation ends as `{kind}`, only as {kinds}")
            }),
        }
    }

    pub(super) fn matches(&self, root: &Path, event: &Event) -> bool {
        let what = match (self.what, &event.kind) {
            (What::Edge(from, to), EventKind::Moved { from: was, to: is, .. }) => {
                (from, to) == (*was, *is)
            }
            (What::Entered(to), EventKind::Moved { to: is, .. }) => to == *is,
            (What::Plain(name), kind) => plain(kind) == Some(name),
            _ => false,
        };
        let reason = self.reason.as_deref();
        what && relative(root, &event.path) == self.path
            && reason.is_none_or(|kind| reason_of(&event.kind) == Some(kind))
    }
}

impl From<&str> for Expect {
    /// Converts a text. A text that can't be parsed fails when it is expected.
    fn from(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|| Self::new(text, What::Unreadable))
    }
}

impl From<String> for Expect {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Writes the text that the expectation can be made from.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match self.what {
            What::Edge(from, to) => write!(f, ": {from} -> {to}")?,
            What::Entered(to) => write!(f, ": -> {to}")?,
            What::Plain(name) => write!(f, ": {name}")?,
            What::Unreadable => {}
        }
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// Returns the text of an event, which an [`Expect`] can be made from.
pub(super) fn text_of(root: &Path, event: &Event) -> String {
    let path = relative(root, &event.path);
    let mut text = match (&event.kind, plain(&event.kind)) {
        (EventKind::Moved { from, to, .. }, _) => format!("{path}: {from} -> {to}"),
        (_, name) => format!("{path}: {}", name.unwrap_or_default()),
    };
    if let Some(kind) = reason_of(&event.kind) {
        text += &format!(" ({kind})");
    }
    text
}

/// Returns a path relative to the root.
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

fn plain(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Moved { .. } => None,
        EventKind::GaveUp { .. } => Some(GAVE_UP),
        EventKind::FellBack { .. } => Some(FELL_BACK),
        EventKind::Paused { .. } => Some(PAUSED),
        EventKind::Unhealthy { .. } => Some(UNHEALTHY),
        EventKind::Healthy => Some(HEALTHY),
        EventKind::Standby { .. } => Some(STANDBY),
        EventKind::LeaseGranted { .. } => Some(LEASE_GRANTED),
        EventKind::LeaseLost { .. } => Some(LEASE_LOST),
        EventKind::Leaked => Some(LEAKED),
        EventKind::LeakEnded => Some(LEAK_ENDED),
        EventKind::DeactivateFailed { .. } => Some(DEACTIVATE_FAILED),
        EventKind::Removed => Some(REMOVED),
        EventKind::Called { .. } => Some(CALLED),
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
        | EventKind::Standby { .. }
        | EventKind::LeaseGranted { .. }
        | EventKind::LeaseLost { .. }
        | EventKind::Leaked
        | EventKind::LeakEnded
        | EventKind::Removed
        | EventKind::Called { .. } => None,
    }
}
