//! A thread that finds out that the loops of a tree don't turn although they have work.
//!
//! A child that blocks its thread holds up nothing else while the runtime has another worker thread. Once
//! all of them are blocked, no supervisor runs and no timer fires, so no watchdog and no health check can
//! report it. This thread is none of the runtime's.
//!
//! The thread sends the root's loop a request, which the loop handles when it turns. There is one request
//! at a time, so a loop that doesn't turn gets no second one.
//!
//! # Invariants
//!
//! 1. Each time that the loop doesn't turn within the bound is logged once, and so is its end.
//! 2. The time by which this thread itself was late doesn't count. The process was stopped, or the machine
//!    was suspended or is overloaded.
//! 3. The thread ends when the [`SelfCheck`] is dropped, or the root's loop has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::run::Root;
use crate::child::{PollWatch, RunningPoll};
use crate::clock;
use crate::runtime::SupervisorShared;
use crate::runtime::request::HandleRequest;
use crate::subscriber::{error, info};
use crate::sync::{Condvar, Mutex};

/// See the [module](self). Dropping it stops the thread, and doesn't wait for that.
pub(crate) struct SelfCheck {
    shared: Arc<Shared>,
}

/// How often to check, and when to log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfCheckSettings {
    /// How long after an answer the loop is asked to turn again. Default: 1 s.
    pub(crate) period: Duration,
    /// How long the loop may take to turn. Default: 5 s.
    pub(crate) bound: Duration,
}

impl Default for SelfCheckSettings {
    fn default() -> Self {
        Self { period: Duration::from_secs(1), bound: Duration::from_secs(5) }
    }
}

#[derive(Debug, Default)]
struct Shared {
    stopped: Mutex<bool>,
    changed: Condvar,
    stuck: AtomicBool,
}

impl SelfCheck {
    /// Starts the thread. It logs to the subscriber of the thread that calls this. `None`: no thread can be
    /// started, which is logged.
    pub(super) fn start(root: &Root, settings: SelfCheckSettings) -> Option<Self> {
        let (root, shared) = (Arc::clone(&root.shared), Arc::<Shared>::default());
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let check = Check { root, settings, shared: Arc::clone(&shared) };
        let thread = thread::Builder::new().name("verger-check".to_owned());
        let run = move || tracing::dispatcher::with_default(&dispatch, || check.run());
        let log = |problem: &io::Error| {
            error!(target: "verger::lifecycle", error = problem.to_string(), "can't start the thread that checks the loops");
        };
        thread.spawn(run).inspect_err(log).ok()?;
        Some(Self { shared })
    }

    /// Returns a function that tells whether the root's loop has turned within the bound.
    pub(crate) fn turning(&self) -> impl Fn() -> bool + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || !shared.stuck.load(Ordering::Relaxed)
    }
}

impl Drop for SelfCheck {
    fn drop(&mut self) {
        *self.shared.stopped.lock() = true;
        self.shared.changed.notify_all();
    }
}

/// What the thread holds.
struct Check {
    root: Arc<SupervisorShared>,
    settings: SelfCheckSettings,
    shared: Arc<Shared>,
}

impl Check {
    fn run(self) {
        let SelfCheckSettings { period, bound } = self.settings;
        let watch = PollWatch::new();
        let (turns, mut asked) = (Arc::new(AtomicU64::new(0)), 0);
        let mut progress = Progress::new(bound, clock::real());
        loop {
            let turned = turns.load(Ordering::Relaxed) == asked;
            if turned {
                if self.root.inbox.push_request(HandleRequest::Turn(Arc::clone(&turns))).is_err() {
                    return;
                }
                asked += 1;
            }
            let due = progress.next_look(period, clock::real());
            if self.is_stopped_before(due) || self.root.inbox.is_closed() {
                return;
            }
            let now = clock::real();
            let turned = turns.load(Ordering::Relaxed) == asked;
            let finding = progress.observe(turned, due, now);
            self.shared.stuck.store(progress.stuck, Ordering::Relaxed);
            match finding {
                None => {}
                Some(Finding::Stuck) => {
                    let stuck = stuck_text(&watch.running(), bound, now);
                    let supervisor = self.root.path();
                    error!(
                        target: "verger::lifecycle", %supervisor, waited = ?bound, stuck,
                        "the runtime doesn't turn"
                    );
                }
                Some(Finding::TurnsAgain { after }) => {
                    let supervisor = self.root.path();
                    info!(
                        target: "verger::lifecycle", %supervisor, took = ?tenths(after),
                        "the runtime turns again"
                    );
                }
            }
        }
    }

    /// Waits until `due`. Returns whether the thread is to stop.
    fn is_stopped_before(&self, due: Instant) -> bool {
        let mut stopped = self.shared.stopped.lock();
        loop {
            let left = due.saturating_duration_since(clock::real());
            if *stopped || left.is_zero() {
                return *stopped;
            }
            let waited = self.shared.changed.wait_timeout(stopped, left);
            stopped = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

/// Whether the loop turns, decided from instants alone.
struct Progress {
    bound: Duration,
    /// When the loop was asked to turn, later by the time that doesn't count.
    asked: Instant,
    stuck: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Stuck,
    TurnsAgain {
        /// Since the loop was asked to turn.
        after: Duration,
    },
}

impl Progress {
    fn new(bound: Duration, now: Instant) -> Self {
        Self { bound, asked: now, stuck: false }
    }

    /// Returns when to look the next time.
    fn next_look(&self, period: Duration, now: Instant) -> Instant {
        let overdue = self.asked + self.bound;
        let next = now + period;
        if self.stuck || overdue <= now { next } else { next.min(overdue) }
    }

    /// Notes at `now` whether the loop has turned since it was asked. The thread wanted to look at `due`.
    fn observe(&mut self, turned: bool, due: Instant, now: Instant) -> Option<Finding> {
        self.asked += now.saturating_duration_since(due);
        let waited = now.saturating_duration_since(self.asked);
        if turned {
            self.asked = now;
            let was_stuck = std::mem::take(&mut self.stuck);
            return was_stuck.then_some(Finding::TurnsAgain { after: waited });
        }
        let is_new = !self.stuck && waited >= self.bound;
        self.stuck |= is_new;
        is_new.then_some(Finding::Stuck)
    }
}

/// Names the children that hold a thread, each with the time since their poll began.
///
/// A poll that is much shorter than the bound began after the loop was asked to turn, so it holds no thread
/// that the loop waits for.
fn stuck_text(polls: &[RunningPoll], bound: Duration, now: Instant) -> String {
    let polls = polls.iter().map(|poll| (&poll.child, now.saturating_duration_since(poll.since)));
    let long = polls.filter(|&(_, running)| running >= bound / 2);
    let texts: Vec<_> =
        long.map(|(child, running)| format!("{child} for {:?}", tenths(running))).collect();
    if texts.is_empty() { "no child is known".to_owned() } else { texts.join(", ") }
}

/// Rounds down to tenths of a second.
fn tenths(time: Duration) -> Duration {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis - millis % 100)
}

#[cfg(all(test, not(verger_loom)))]
mod tests;
