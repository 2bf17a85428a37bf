//! All events and dead letters of a test tree.
//!
//! The tree's channels are bounded. A task moves events from the channels to the log as they
//! arrive, and each access to the log moves the rest first.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::slice::SliceIndex;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::expect::{Expect, text_of};
use super::faults::unnumbered;
use super::standstill::ClockWatch;
use crate::clock::now;
use crate::dead_letter::DeadLetter;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{Event, EventKind, Subscription};
use crate::suggest;
use crate::sync::{Mutex, MutexGuard};

/// How many events at one instant show that the paused clock no longer advances.
const SPINNING: u32 = 100_000;

/// How many events a failed test shows at most.
const SHOWN: usize = 50;

/// The events and dead letters so far.
pub(super) struct LoggedEvents {
    root: Path,
    pub(super) events: Vec<Event>,
    pub(super) letters: Vec<DeadLetter>,
    /// The index of the first event that no test has expected yet.
    next: usize,
    /// How many events belong to a start that the test has waited for.
    of_start: usize,
    new_events: Subscription<Event>,
    new_letters: Subscription<DeadLetter>,
}

/// A search for expected events, in order.
pub(super) struct Search<'a> {
    wanted: &'a [Expect],
    /// Whether every event must be an expected one.
    exactly: bool,
    next: usize,
    taken: Vec<Event>,
}

/// Why a wait of a test fails.
pub(super) enum Stuck {
    Ended(Result<(), RunError>),
    TimedOut(Duration),
    Spinning,
    /// The paused clock doesn't advance, with the reason.
    Standstill(String),
    /// An event that was not expected, with its text.
    Instead(String),
}

/// Records a tree in an [`LoggedEvents`] until it is dropped.
pub(super) struct Recorder {
    handle: SupervisorHandle,
    log: Arc<Mutex<LoggedEvents>>,
    task: JoinHandle<()>,
    clock: Option<Arc<ClockWatch>>,
}

impl Recorder {
    pub(super) fn new(handle: SupervisorHandle, clock: Option<Arc<ClockWatch>>) -> Self {
        let new_events = handle.events();
        let new_letters = handle.dead_letters().with_suppressed();
        let (events, letters, next, of_start) = (Vec::new(), Vec::new(), 0, 0);
        let root = handle.path();
        let log = LoggedEvents { root, events, letters, next, of_start, new_events, new_letters };
        let log = Arc::new(Mutex::new(log));
        let (mut arrivals, kept) = (handle.events(), Arc::clone(&log));
        #[expect(clippy::disallowed_methods, reason = "aborted when the recorder is dropped")]
        let task = tokio::spawn(async move {
            while arrivals.next().await.is_some() {
                kept.lock().catch_up();
            }
        });
        Self { handle, log, task, clock }
    }

    /// Returns the log with everything that has happened.
    pub(super) fn log(&self) -> MutexGuard<'_, LoggedEvents> {
        let mut log = self.log.lock();
        log.catch_up();
        log
    }

    /// Waits for a future, and gives up if that takes too long.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Stuck> {
        tokio::select! {
            biased;
            result = future => Ok(result),
            () = tokio::time::sleep(patience) => Err(Stuck::TimedOut(patience)),
            text = self.standstill() => Err(Stuck::Standstill(text)),
        }
    }

    async fn standstill(&self) -> String {
        match &self.clock {
            Some(clock) => clock.standstill().await,
            None => std::future::pending().await,
        }
    }

    /// Calls `look` now and after each event, until it returns a result.
    pub(super) async fn until<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&mut LoggedEvents) -> Option<Result<T, Stuck>> + Send,
    ) -> Result<T, Stuck> {
        let mut arrivals = self.handle.events();
        let mut ended = None;
        let (mut end, mut deadline) =
            (pin!(self.handle.wait()), pin!(tokio::time::sleep(patience)));
        let mut standstill = pin!(self.standstill());
        let (mut instant, mut at_once, mut closed) = (now(), 0, false);
        loop {
            let found = look(&mut self.log());
            if let Some(found) = found {
                return found;
            }
            if let Some(end) = ended {
                return Err(Stuck::Ended(end));
            }
            tokio::select! {
                biased;
                event = arrivals.next(), if !closed => {
                    closed = event.is_none();
                    let now = now();
                    at_once = if now == instant { at_once + 1 } else { 0 };
                    instant = now;
                    if at_once > SPINNING {
                        return Err(Stuck::Spinning);
                    }
                }
                result = &mut end => ended = Some(result),
                () = &mut deadline => return Err(Stuck::TimedOut(patience)),
                text = &mut standstill => return Err(Stuck::Standstill(text)),
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl LoggedEvents {
    fn catch_up(&mut self) {
        while let Some(event) = self.new_events.try_next() {
            self.events.push(event);
        }
        while let Some(letter) = self.new_letters.try_next() {
            self.letters.push(letter);
        }
    }

    /// Skips everything that has happened so far.
    pub(super) fn skip(&mut self) {
        self.next = self.events.len();
    }

    /// The start is over: its events are skipped.
    pub(super) fn end_start(&mut self) {
        self.skip();
        self.of_start = self.next;
    }

    /// Returns how often a child was started. A path without a number stands for all children of that name.
    pub(super) fn starts(&self, path: &str) -> usize {
        let is_start = |event: &&Event| {
            let is_meant = event.path.as_str() == path || unnumbered(&event.path) == Some(path);
            is_meant && matches!(event.kind, EventKind::Moved { to: Lifecycle::Activating, .. })
        };
        self.events.iter().filter(is_start).count()
    }

    /// Says that there was no child at this path, and which one may be meant.
    pub(super) fn no_such_child(&self, path: &str) -> String {
        let known = self.events.iter();
        let known = known.map(|event| unnumbered(&event.path).unwrap_or(event.path.as_str()));
        let known: BTreeSet<_> = known.collect();
        if self.starts(path) > 0 {
            return "there is no such child any more".to_owned();
        }
        match suggest::closest(path, &known.into_iter().collect::<Vec<_>>()) {
            Some(close) => format!("there is no such child; did you mean `{close}`?"),
            None => "there is no such child".to_owned(),
        }
    }

    /// Returns the last state of a child; `None` if it never existed or was removed.
    pub(super) fn last_state(&self, path: &str) -> Option<Lifecycle> {
        let events = self.events.iter().rev().filter(|event| event.path.as_str() == path);
        events
            .map(|event| match event.kind {
                EventKind::Moved { to, .. } => Some(Some(to)),
                EventKind::Removed => Some(None),
                _ => None,
            })
            .find_map(|state| state)?
    }

    /// Returns how the child has ended most recently.
    pub(super) fn last_exit(&self, path: &str) -> Option<String> {
        let events = self.events.iter().rev().filter(|event| event.path.as_str() == path);
        let mut reasons = events.filter_map(|event| match &event.kind {
            EventKind::Moved { reason, .. } => reason.as_ref(),
            _ => None,
        });
        reasons.next().map(ToString::to_string)
    }

    /// Returns the text of the last events.
    pub(super) fn tail(&self) -> String {
        self.text_from(0)
    }

    fn text_from(&self, from: usize) -> String {
        self.text_of(from..)
    }

    fn text_of(&self, range: impl SliceIndex<[Event], Output = [Event]>) -> String {
        let Some(first) = self.events.first() else { return "  nothing".to_owned() };
        let events = &self.events[range];
        let skipped = events.len().saturating_sub(SHOWN);
        let mut lines = Vec::new();
        if skipped > 0 {
            lines.push(format!("  … {skipped} before"));
        }
        for event in &events[skipped..] {
            let at = event.at.duration_since(first.at).unwrap_or_default();
            lines.push(format!("  {:>8}  {}", format!("{at:?}"), text_of(&self.root, event)));
        }
        match self.new_events.missed() {
            0 => {}
            missed => lines.push(format!("  {missed} events were missed: too many at once")),
        }
        if lines.is_empty() { "  nothing".to_owned() } else { lines.join("\n") }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(log: &LoggedEvents, wanted: &'a [Expect], exactly: bool) -> Self {
        Self { wanted, exactly, next: log.next, taken: Vec::new() }
    }

    /// Searches the new events. When all expected ones are found, the next search begins after them.
    pub(super) fn look(&mut self, log: &mut LoggedEvents) -> Option<Result<Vec<Event>, Stuck>> {
        while let Some(wanted) = self.wanted.get(self.taken.len()) {
            let event = log.events.get(self.next)?;
            if wanted.matches(&log.root, event) {
                self.taken.push(event.clone());
            } else if self.exactly {
                return Some(Err(Stuck::Instead(text_of(&log.root, event))));
            }
            self.next += 1;
        }
        log.next = self.next;
        Some(Ok(std::mem::take(&mut self.taken)))
    }

    /// Returns the text of a search that fails.
    pub(super) fn failure(&self, log: &LoggedEvents, stuck: &Stuck) -> String {
        let how = if self.exactly { "and nothing else" } else { "in this order" };
        let mut text = format!("expected, {how}:\n");
        for (index, wanted) in self.wanted.iter().enumerate() {
            let mark = if index < self.taken.len() { '✓' } else { '✗' };
            text += &format!("  {mark} {wanted}\n");
        }
        text += &format!("but {stuck}\n");
        let missing = self.wanted.get(self.taken.len());
        let of_start = &log.events[..log.of_start];
        if missing.is_some_and(|it| of_start.iter().any(|event| it.matches(&log.root, event))) {
            let start = log.text_of(..log.of_start);
            text += &format!(
                "in the start it did, which `TestTree::start` skips; to expect it, use `TestTree::spawn` \
                 and `up`:\n{start}\n"
            );
        }
        let seen = log.text_from(log.next);
        text + &format!("since the last event that was expected before:\n{seen}")
    }
}

impl Stuck {
    /// Returns the end of a sentence that says what did not happen.
    pub(super) fn after(&self) -> String {
        match self {
            Self::TimedOut(patience) => format!(" within {patience:?}"),
            stuck => format!(": {stuck}"),
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(Ok(())) => f.write_str("the tree has ended"),
            Self::Ended(Err(error)) => write!(f, "the tree has ended: {error}"),
            Self::TimedOut(patience) => write!(f, "it did not happen within {patience:?}"),
            Self::Spinning => f.write_str(
                "the clock stands still: a child restarts forever, without a backoff and without a \
                 limit",
            ),
            Self::Standstill(text) => f.write_str(text),
            Self::Instead(event) => write!(f, "this happened: {event}"),
        }
    }
}
