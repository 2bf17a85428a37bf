//! What has happened in a tree under test, from its first event on.
//!
//! The tree's own channels forget what nobody takes out of them in time. So a task takes it out
//! whenever something happens, and whoever looks takes out the rest first.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::expect::{Expect, written};
use crate::clock::now;
use crate::dead_letter::DeadLetter;
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::runtime::Subscription;
use crate::status::{Event, EventKind};
use crate::sync::{Mutex, MutexGuard};

/// More events than this at one instant, and the clock is not going to move on.
const SPINNING: u32 = 100_000;

/// How many events are shown at most when a test has failed.
const SHOWN: usize = 50;

/// Events and letters so far.
pub(super) struct Log {
    root: Path,
    pub(super) events: Vec<Event>,
    pub(super) letters: Vec<DeadLetter>,
    /// The first event that was not expected yet.
    next: usize,
    more_events: Subscription<Event>,
    more_letters: Subscription<DeadLetter>,
}

/// A walk along the events for those that are wanted, in order.
pub(super) struct Search<'a> {
    wanted: &'a [Expect],
    /// Whether others may come in between.
    exactly: bool,
    next: usize,
    taken: Vec<Event>,
}

/// Why something that a test waits for does not come.
#[derive(Debug)]
pub(super) enum Stuck {
    Ended(Result<(), RunError>),
    TimedOut(Duration),
    Spinning,
    /// Something else came.
    Instead(String),
}

/// See the [module](self).
pub(super) struct Recorder {
    handle: SupervisorHandle,
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

impl Recorder {
    pub(super) fn new(handle: SupervisorHandle) -> Self {
        let more_events = handle.events();
        let more_letters = handle.dead_letters().with_suppressed();
        let (events, letters, next) = (Vec::new(), Vec::new(), 0);
        let root = handle.path();
        let log = Log { root, events, letters, next, more_events, more_letters };
        let log = Arc::new(Mutex::new(log));
        let (mut bell, kept) = (handle.events(), Arc::clone(&log));
        #[expect(clippy::disallowed_methods, reason = "aborted when the recorder is dropped")]
        let task = tokio::spawn(async move {
            while bell.next().await.is_some() {
                kept.lock().catch_up();
            }
        });
        Self { handle, log, task }
    }

    /// All that has happened until now.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        let mut log = self.log.lock();
        log.catch_up();
        log
    }

    /// Looks after each event whether `look` finds what it looks for.
    pub(super) async fn until<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&mut Log) -> Option<Result<T, Stuck>> + Send,
    ) -> Result<T, Stuck> {
        let mut bell = self.handle.events();
        let mut over = None;
        let (mut end, mut tired) = (pin!(self.handle.wait()), pin!(tokio::time::sleep(patience)));
        let (mut instant, mut at_once, mut silent) = (now(), 0, false);
        loop {
            let found = look(&mut self.log());
            if let Some(found) = found {
                return found;
            }
            if let Some(end) = over {
                return Err(Stuck::Ended(end));
            }
            tokio::select! {
                biased;
                event = bell.next(), if !silent => {
                    silent = event.is_none();
                    let now = now();
                    at_once = if now == instant { at_once + 1 } else { 0 };
                    instant = now;
                    if at_once > SPINNING {
                        return Err(Stuck::Spinning);
                    }
                }
                result = &mut end => over = Some(result),
                () = &mut tired => return Err(Stuck::TimedOut(patience)),
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

impl Log {
    fn catch_up(&mut self) {
        while let Some(event) = self.more_events.try_next() {
            self.events.push(event);
        }
        while let Some(letter) = self.more_letters.try_next() {
            self.letters.push(letter);
        }
    }

    /// Passes over what has happened so far.
    pub(super) fn forget(&mut self) {
        self.next = self.events.len();
    }

    /// Where the child was last seen; `None`: it was never, or is forgotten.
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

    /// The events that were not expected yet, for somebody who expected others.
    fn unexpected(&self) -> String {
        self.written(self.next)
    }

    /// The last events.
    pub(super) fn tail(&self) -> String {
        self.written(0)
    }

    fn written(&self, from: usize) -> String {
        let Some(first) = self.events.first() else { return "  nothing".to_owned() };
        let events = &self.events[from..];
        let skipped = events.len().saturating_sub(SHOWN);
        let mut lines = Vec::new();
        if skipped > 0 {
            lines.push(format!("  … {skipped} before"));
        }
        for event in &events[skipped..] {
            let at = event.at.duration_since(first.at).unwrap_or_default();
            lines.push(format!("  {:>8}  {}", format!("{at:?}"), written(&self.root, event)));
        }
        match self.more_events.missed() {
            0 => {}
            missed => lines.push(format!("  {missed} events were missed: too many at once")),
        }
        if lines.is_empty() { "  nothing".to_owned() } else { lines.join("\n") }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(log: &Log, wanted: &'a [Expect], exactly: bool) -> Self {
        Self { wanted, exactly, next: log.next, taken: Vec::new() }
    }

    /// Goes on with the events that are new, and when all that are wanted were there, lets the next
    /// search begin after the last of them.
    pub(super) fn look(&mut self, log: &mut Log) -> Option<Result<Vec<Event>, Stuck>> {
        while let Some(wanted) = self.wanted.get(self.taken.len()) {
            let event = log.events.get(self.next)?;
            if wanted.matches(&log.root, event) {
                self.taken.push(event.clone());
            } else if self.exactly {
                return Some(Err(Stuck::Instead(written(&log.root, event))));
            }
            self.next += 1;
        }
        log.next = self.next;
        Some(Ok(std::mem::take(&mut self.taken)))
    }

    /// What to say if it does not come to its end.
    pub(super) fn failure(&self, log: &Log, stuck: &Stuck) -> String {
        let how = if self.exactly { "and nothing else" } else { "in this order" };
        let mut text = format!("expected, {how}:\n");
        for (index, wanted) in self.wanted.iter().enumerate() {
            let mark = if index < self.taken.len() { '✓' } else { '✗' };
            text += &format!("  {mark} {wanted}\n");
        }
        let seen = log.unexpected();
        text + &format!("but {stuck}\nsince the last that was expected before:\n{seen}")
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(Ok(())) => f.write_str("the tree has ended"),
            Self::Ended(Err(error)) => write!(f, "the tree has ended: {error}"),
            Self::TimedOut(patience) => write!(f, "nothing came of it within {patience:?}"),
            Self::Spinning => f.write_str(
                "the clock stands still: a child is restarted for ever, without a backoff and \
                 without a limit",
            ),
            Self::Instead(event) => write!(f, "this came: {event}"),
        }
    }
}
