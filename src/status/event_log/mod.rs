//! A bounded history of events, in which repeated ones are folded and no child forgets because of another.
//!
//! It is a value that a subscriber fills: it knows no channel and no clock. `kept` decides which entries are kept, and
//! this file what an event says.

mod kept;

use std::sync::Arc;
use std::time::SystemTime;

use self::kept::KeptEntries;
use super::event::{Event, EventKind};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::start_of::start_with_mark;

/// The most bytes of the text of an entry.
const TEXT: usize = 4 * 1024;

/// How much attention an event needs.
///
/// ```
/// use verger::status::{EventLevel, EventLog};
///
/// /// Prints the failures, and nothing about children that work as intended.
/// fn failures(log: &EventLog) {
///     for entry in log.entries().filter(|entry| entry.level >= EventLevel::Warn) {
///         println!("{}: {}", entry.path, entry.text);
///     }
/// }
///
/// failures(&EventLog::new(100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventLevel {
    /// The child works as intended.
    Info,
    /// The child failed, and its supervisor handles the failure.
    Warn,
    /// The child failed for good, or can't be stopped.
    Error,
}

/// Events of one child and of one kind.
///
/// The example of [`EventLog`] reads some.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// The path of the child.
    pub path: Path,
    /// The incarnation of the last of these events; 0 if they are the lives of dynamic children.
    pub incarnation: u32,
    /// How many events these are.
    pub count: u64,
    /// The time of the first of these events.
    pub first_at: SystemTime,
    /// The time of the last of these events.
    pub last_at: SystemTime,
    /// The number of the last of these events.
    pub seq: u64,
    /// How much attention they need.
    pub level: EventLevel,
    /// What has happened, as a word: the state that the child has entered, such as `errored`, or the name of the event, such
    /// as `gave_up` or `called`. `lives` is about dynamic children of the supervisor at [`path`](Self::path).
    pub event: &'static str,
    /// The last of these events as text, without the path. A text that exceeds 4 KiB ends in `…`.
    pub text: String,
}

/// What an event adds to a list.
pub(crate) struct NewEntry(Folded, LoggedEvent);

/// The kind of an event, as far as it decides which events are folded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Folded {
    Moved(Lifecycle),
    /// Two callers who do the same both stay in the history.
    Called {
        call: &'static str,
        by: Arc<str>,
        reason: Option<Arc<str>>,
    },
    /// The starts, or the ends, of dynamic children.
    Lives {
        start: bool,
    },
    #[cfg(feature = "console")]
    Noted(String),
    Other(std::mem::Discriminant<EventKind>),
}

/// A bounded history of events, in which repeated ones are folded: `×12 in 4m`.
///
/// Fill it from a subscription. Steps that always follow one another, such as *resolved* and *activating*
/// before *active*, are left out.
///
/// The last 20 entries of each child are kept, of up to 2,000 children, and beyond those as many of the whole tree as the
/// capacity. So a child that fails often doesn't push out the one failure of another. Dynamic children, such as `conn#7`, have no reserve:
/// their starts and normal ends are counted for their supervisor, in one entry for every 10 s, of the last five minutes. All
/// entries together take at most 4 MiB: beyond that, the child with the most entries loses its oldest.
/// [`dropped_before`](Self::dropped_before) tells what is missing.
///
/// ```
/// use verger::status::EventLog;
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let mut app = Supervisor::builder("app").child(db).build()?;
/// // Before the start, so that the first start is included.
/// let mut events = app.events();
/// let app = app.start().await?;
/// app.on_behalf_of("operator", "").restart("db").await?;
///
/// let mut log = EventLog::new(100);
/// while let Some(event) = events.try_next() {
///     log.record(&event);
/// }
/// let lines: Vec<_> = log.entries().map(|it| format!("{} {} ×{}", it.path, it.text, it.count)).collect();
/// assert_eq!(lines, ["app/db deactivating ×1", "app/db stopped ×1", "app/db active ×2", "app/db restart called by operator ×1"]);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EventLog {
    kept: KeptEntries,
    missed: u64,
}

impl EventLog {
    /// Creates an empty history that keeps at most `capacity` entries beside those that each child has in reserve.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { kept: KeptEntries::new(capacity), missed: 0 }
    }

    /// Adds an event.
    pub fn record(&mut self, event: &Event) {
        if let Some(entry) = Self::entry(event) {
            self.add(entry);
        }
    }

    /// Returns the entry for an event, unless that says nothing beside those around it. Calls the `Display` of
    /// users' errors.
    pub(crate) fn entry(event: &Event) -> Option<NewEntry> {
        let kind = folded(&event.kind)?;
        let logged = |path: Path, event_word, text| LoggedEvent {
            path,
            incarnation: event.incarnation,
            count: 1,
            first_at: event.at,
            last_at: event.at,
            seq: event.seq,
            level: level(&event.kind),
            event: event_word,
            text,
        };
        let Some(supervisor) = declared_part(&event.path) else {
            let entry = logged(event.path.clone(), word(&event.kind), cut(event.kind.to_string()));
            return Some(NewEntry(kind, entry));
        };
        // Of a dynamic child that lives and ends as intended, only the number tells anything.
        let (start, text) = match &event.kind {
            EventKind::Moved { to: Lifecycle::Active, .. } => (true, "children started"),
            EventKind::Moved { to: Lifecycle::Stopped, .. } => (false, "children exited normally"),
            EventKind::Moved { to: Lifecycle::Deactivating, .. } | EventKind::Removed => {
                return None;
            }
            _ => {
                let text = cut(event.kind.to_string());
                return Some(NewEntry(kind, logged(event.path.clone(), word(&event.kind), text)));
            }
        };
        let entry = LoggedEvent { incarnation: 0, ..logged(supervisor, "lives", text.to_owned()) };
        Some(NewEntry(Folded::Lives { start }, entry))
    }

    /// Returns an entry about something that isn't an event of a child, such as a reload.
    #[cfg(feature = "console")]
    pub(crate) fn note(
        path: Path,
        at: SystemTime,
        level: EventLevel,
        event: &'static str,
        text: String,
    ) -> NewEntry {
        let text = cut(text);
        let kind = Folded::Noted(text.clone());
        let (first_at, last_at) = (at, at);
        let entry = LoggedEvent {
            path,
            incarnation: 0,
            count: 1,
            first_at,
            last_at,
            seq: 0,
            level,
            event,
            text,
        };
        NewEntry(kind, entry)
    }

    /// Adds an entry. Calls no code of the user's.
    pub(crate) fn add(&mut self, NewEntry(kind, entry): NewEntry) {
        self.kept.add(kind, entry);
    }

    /// Sets how many events the subscriber has missed so far; see
    /// [`Subscription::missed`](crate::status::Subscription::missed).
    pub fn set_missed(&mut self, missed: u64) {
        self.missed = missed;
    }

    /// Returns how many events are missing because the subscriber lagged behind.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the time of the latest entry about the child at `path`, or about a child below, that was dropped for lack of
    /// room. `None`: all of them are here, except the lives of dynamic children, which are kept for five minutes.
    #[must_use]
    pub fn dropped_before(&self, path: &Path) -> Option<SystemTime> {
        self.kept.dropped_before(path)
    }

    /// Returns the entries. The one with the latest event is the last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LoggedEvent> {
        self.kept.entries()
    }

    /// Returns the entries about the child at `path` and all children below.
    pub fn below(&self, path: &Path) -> impl DoubleEndedIterator<Item = &LoggedEvent> {
        self.entries().filter(|entry| entry.path.is_at_or_below(path.as_str()))
    }
}

/// Cuts a text to [`TEXT`] bytes.
fn cut(text: String) -> String {
    if text.len() <= TEXT { text } else { start_with_mark(text, TEXT) }
}

/// Returns the path of the nearest supervisor of a dynamic child that isn't dynamic itself; `None` for a child that
/// isn't dynamic.
fn declared_part(path: &Path) -> Option<Path> {
    let (above, _) = path.as_str().split_once('#')?;
    let (supervisor, _) = above.rsplit_once('/')?;
    Some(Path::from_text(supervisor.to_owned()))
}

/// Returns `None` for a step that always precedes another one.
fn folded(kind: &EventKind) -> Option<Folded> {
    Some(match kind {
        EventKind::Moved { to, .. } => match to {
            Lifecycle::Discovered | Lifecycle::Resolved | Lifecycle::Activating => return None,
            _ => Folded::Moved(*to),
        },
        EventKind::Called { call, by, reason } => {
            Folded::Called { call, by: Arc::clone(by), reason: reason.clone() }
        }
        _ => Folded::Other(std::mem::discriminant(kind)),
    })
}

fn level(kind: &EventKind) -> EventLevel {
    match kind {
        EventKind::Moved { to: Lifecycle::Errored | Lifecycle::Restarting, .. }
        | EventKind::FellBack { .. }
        | EventKind::Unhealthy { .. }
        | EventKind::LeaseLost { .. }
        | EventKind::Standby { problem: Some(_), .. }
        | EventKind::DeactivateFailed { .. } => EventLevel::Warn,
        EventKind::Paused { .. } | EventKind::GaveUp { .. } | EventKind::Leaked => {
            EventLevel::Error
        }
        EventKind::Moved { .. }
        | EventKind::Healthy
        | EventKind::LeakEnded
        | EventKind::Standby { problem: None, .. }
        | EventKind::LeaseGranted { .. }
        | EventKind::Called { .. }
        | EventKind::Removed => EventLevel::Info,
    }
}

fn word(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Moved { to, .. } => to.word(),
        EventKind::GaveUp { .. } => "gave_up",
        EventKind::FellBack { .. } => "fell_back",
        EventKind::Paused { .. } => "paused",
        EventKind::Unhealthy { .. } => "unhealthy",
        EventKind::Healthy => "healthy",
        EventKind::Standby { .. } => "standby",
        EventKind::LeaseGranted { .. } => "lease_granted",
        EventKind::LeaseLost { .. } => "lease_lost",
        EventKind::Leaked => "leaked",
        EventKind::LeakEnded => "leak_ended",
        EventKind::DeactivateFailed { .. } => "deactivate_failed",
        EventKind::Removed => "removed",
        EventKind::Called { .. } => "called",
    }
}

#[cfg(test)]
mod tests;
