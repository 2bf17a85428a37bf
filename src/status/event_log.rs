//! A bounded list of events, in which repeated ones are folded.
//!
//! It is a value that a subscriber fills: it knows no channel and no clock.
//!
//! # Invariants
//!
//! 1. There are at most as many entries as its capacity. The one whose last event is the oldest goes first.
//! 2. Entries are ordered by their last event. Two entries never have the same child and the same kind of event,
//!    unless there was a quiet time of [`QUIET`] between them.
//! 3. Recording an event costs O(log n).
//! 4. An entry takes a bounded number of bytes, however long the text of an error is.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use super::event::{Event, EventKind};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::start_of::cut;

/// After this time, an event of the same kind begins a new entry.
const QUIET: Duration = Duration::from_secs(600);

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
    /// The incarnation of the last of these events.
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
    /// The last of these events as text, without the path. What is longer than 2 KiB ends in `…`.
    pub text: String,
}

/// What an event adds to a list.
pub(crate) struct NewEntry(Folded, LoggedEvent);

/// The kind of an event, as far as it decides which events are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Folded {
    Moved(Lifecycle),
    Called(&'static str),
    Other(std::mem::Discriminant<EventKind>),
}

/// A bounded list of events, in which repeated ones are folded: `×12 in 4m`.
///
/// Fill it from a subscription. Steps that always follow one another, such as *resolved* and *activating*
/// before *active*, are left out.
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
    capacity: usize,
    /// By the number of this record, which grows with each event.
    entries: BTreeMap<u64, (Folded, LoggedEvent)>,
    latest: HashMap<(Path, Folded), u64>,
    next: u64,
    missed: u64,
}

impl EventLog {
    /// Creates an empty list that keeps at most `capacity` entries, and at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let (entries, latest) = (BTreeMap::new(), HashMap::new());
        Self { capacity: capacity.max(1), entries, latest, next: 0, missed: 0 }
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
        let entry = LoggedEvent {
            path: event.path.clone(),
            incarnation: event.incarnation,
            count: 1,
            first_at: event.at,
            last_at: event.at,
            seq: event.seq,
            level: level(&event.kind),
            text: cut(event.kind.to_string()),
        };
        Some(NewEntry(kind, entry))
    }

    /// Adds an entry. Calls no code of the user's.
    pub(crate) fn add(&mut self, NewEntry(kind, mut entry): NewEntry) {
        let key = (entry.path.clone(), kind);
        let at = entry.last_at;
        let is_quiet = |last: SystemTime| at.duration_since(last).is_ok_and(|it| it > QUIET);
        if let Some(place) = self.latest.get(&key)
            && let Some((_, before)) = self.entries.get(place)
            && !is_quiet(before.last_at)
        {
            entry.count = before.count.saturating_add(1);
            entry.first_at = before.first_at;
            self.entries.remove(place);
        }
        self.entries.insert(self.next, (kind, entry));
        self.latest.insert(key, self.next);
        self.next += 1;
        if self.entries.len() > self.capacity
            && let Some((place, (kind, oldest))) = self.entries.pop_first()
        {
            let key = (oldest.path, kind);
            if self.latest.get(&key) == Some(&place) {
                self.latest.remove(&key);
            }
        }
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

    /// Returns the entries. The one with the latest event is the last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LoggedEvent> {
        self.entries.values().map(|(_, entry)| entry)
    }

    /// Returns the entries about the child at `path` and all children below.
    pub fn below(&self, path: &Path) -> impl DoubleEndedIterator<Item = &LoggedEvent> {
        self.entries().filter(|entry| entry.path.is_at_or_below(path.as_str()))
    }
}

/// Returns `None` for a step that always precedes another one.
fn folded(kind: &EventKind) -> Option<Folded> {
    Some(match kind {
        EventKind::Moved { to, .. } => match to {
            Lifecycle::Discovered | Lifecycle::Resolved | Lifecycle::Activating => return None,
            _ => Folded::Moved(*to),
        },
        EventKind::Called { call, .. } => Folded::Called(call),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::exit::ExitReason;
    use crate::start_of::TEXT;

    fn event(seq: u64, path: &str, kind: EventKind) -> Event {
        let at = UNIX_EPOCH + Duration::from_secs(seq);
        Event { seq, at, path: Path::from_text(path.to_owned()), incarnation: 1, kind }
    }

    fn errored(text: &str) -> EventKind {
        EventKind::Moved {
            from: Lifecycle::Active,
            to: Lifecycle::Errored,
            after: Duration::ZERO,
            reason: Some(Arc::new(ExitReason::Failed(text.into()))),
            wait: None,
        }
    }

    fn lines(log: &EventLog) -> Vec<String> {
        let line = |it: &LoggedEvent| {
            let secs = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap().as_secs();
            format!(
                "{} {} ×{} {}–{}",
                it.path,
                it.text,
                it.count,
                secs(it.first_at),
                secs(it.last_at)
            )
        };
        log.entries().map(line).collect()
    }

    #[test]
    fn repeated_events_are_counted_under_the_latest_text() {
        let mut log = EventLog::new(9);
        for seq in 1..=3 {
            log.record(&event(seq, "app/a", errored(&format!("no {seq}"))));
            log.record(&event(seq, "app/b", EventKind::Healthy));
        }
        let expected = ["app/a errored: failed: no 3 ×3 1–3", "app/b healthy again ×3 1–3"];
        assert_eq!(lines(&log), expected);
    }

    #[test]
    fn an_event_after_a_quiet_time_begins_a_new_entry() {
        let mut log = EventLog::new(9);
        for seq in [1, 601, 1_202] {
            log.record(&event(seq, "app/a", EventKind::Healthy));
        }
        let expected = ["app/a healthy again ×2 1–601", "app/a healthy again ×1 1202–1202"];
        assert_eq!(lines(&log), expected);
        log.record(&event(1_203, "app/a", EventKind::Healthy));
        assert_eq!(lines(&log)[1], "app/a healthy again ×2 1202–1203");
    }

    #[test]
    fn the_entry_with_the_oldest_last_event_goes_first() {
        let mut log = EventLog::new(2);
        for (seq, path) in [(1, "app/a"), (2, "app/b"), (3, "app/a"), (4, "app/c"), (5, "app/b")] {
            log.record(&event(seq, path, EventKind::Leaked));
        }
        let text = "leaked: aborted, and still running";
        assert_eq!(lines(&log), [format!("app/c {text} ×1 4–4"), format!("app/b {text} ×1 5–5")]);
        assert_eq!(log.latest.len(), 2, "nothing is kept of what is gone");
    }

    #[test]
    fn a_long_text_is_cut() {
        let mut log = EventLog::new(9);
        log.record(&event(1, "app/a", errored(&"é".repeat(99_999))));
        let text = &log.entries().next().unwrap().text;
        assert!(text.starts_with("errored: failed: éé") && text.ends_with("é…"), "{text}");
        assert!((TEXT - 1..=TEXT).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn a_subtree_is_the_child_and_what_is_below_it() {
        let mut log = EventLog::new(9);
        for path in ["app/a", "app/ab", "app/a/b"] {
            log.record(&event(1, path, EventKind::Leaked));
        }
        let below: Vec<_> = log.below(&Path::from_text("app/a".to_owned())).collect();
        assert_eq!(
            below.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(),
            ["app/a", "app/a/b"]
        );
    }
}
