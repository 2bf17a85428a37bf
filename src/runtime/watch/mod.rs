//! The thread that keeps promises about time while children block worker threads.
//!
//! tokio's timers advance while a worker thread is parked on them. A child that blocks this worker stops all timers
//! of the runtime, although other workers are free: they sleep until a task is woken, and only a worker that parks
//! again takes over the timers. Once all workers are blocked, no supervisor runs. The thread `verger-watch` belongs
//! to no runtime. There is one for each process.
//!
//! Five times a second it asks the loop of each root to make progress, which wakes a free worker. If the
//! loop hasn't answered by the next time, an empty task wakes a worker instead. A loop that doesn't answer within
//! the bound is reported as stalled, and so is each poll of a child that lasts long.
//!
//! A root is watched once its tree has something to keep: an [`Application`](crate::Application), a bound on
//! a child or a `stop_deadline`. On a `current_thread` runtime no other thread could help, so only an application
//! is watched there, for its log lines.
//!
//! | file | what |
//! | --- | --- |
//! | here | the thread, and the trees that it watches |
//! | `progress` | whether a loop makes progress, and which polls last long, decided from instants |
//!
//! # Invariants
//!
//! 1. Each time that a loop makes no progress within the bound is logged once, and so is its recovery.
//! 2. Time by which this thread was late is not measured: the process was stopped, or the machine was suspended or
//!    is overloaded.
//! 3. The thread exits once no root that it watches runs. It keeps no supervisor alive.
//! 4. No panic of foreign code ends the thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tracing::{Dispatch, field};

use self::progress::{Finding, LongPoll, LongPolls, LoopProgress};
use super::request::HandleRequest;
use super::shared::SupervisorShared;
use crate::child::awaiting::LongQuestion;
use crate::child::{PollWatch, RunningPoll};
use crate::clock;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::subscriber::{error, info, warn};
use crate::sync::Mutex;

mod progress;

/// How often the thread looks.
const PERIOD: Duration = Duration::from_millis(200);

/// How long a loop may make no progress until it is stalled.
const BOUND: Duration = Duration::from_secs(5);

/// What a tree knows of its watch.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    watched: AtomicBool,
    stalled: AtomicBool,
    long_polls: Mutex<HashMap<Path, u64>>,
    has_long_polls: AtomicBool,
}

impl WatchState {
    /// Returns whether the root's loop has made progress within the bound, as far as that is known.
    pub(crate) fn makes_progress(&self) -> bool {
        !self.stalled.load(Ordering::Relaxed)
    }

    /// Returns how many polls of the child at this path have lasted long.
    pub(crate) fn long_polls(&self, child: &Path) -> u64 {
        if !self.has_long_polls.load(Ordering::Relaxed) {
            return 0;
        }
        self.long_polls.lock().get(child).copied().unwrap_or_default()
    }

    fn count_long_poll(&self, child: &Path) {
        *self.long_polls.lock().entry(child.clone()).or_default() += 1;
        self.has_long_polls.store(true, Ordering::Relaxed);
    }

    /// Forgets a child that was removed.
    pub(super) fn forget(&self, child: impl FnOnce() -> Path) {
        if self.has_long_polls.load(Ordering::Relaxed) {
            self.long_polls.lock().remove(&child());
        }
    }
}

/// Watches the tree of a supervisor, unless that is switched off. Called inside of its runtime.
pub(crate) fn watch_bounds(supervisor: &Arc<SupervisorShared>) {
    // Most calls end here: each child with a bound makes one.
    if supervisor.tree.watch.watched.load(Ordering::Relaxed) {
        return;
    }
    let runtime = Handle::current();
    if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return;
    }
    let mut root = supervisor;
    while let Some(above) = &root.above {
        root = above;
    }
    watch(root, runtime, BOUND);
}

/// Watches an application, on any runtime. Called inside of it.
pub(crate) fn watch_application(root: &Arc<SupervisorShared>) {
    watch(root, Handle::current(), BOUND);
}

/// Lets a worker thread take the supervisor's task that this thread has woken last.
///
/// tokio keeps the task that a poll wakes last for the same worker, and no other one can take it before the poll
/// returns. A child that signals and then blocks would so block its supervisor. A second task replaces the first.
pub(crate) fn release_woken(supervisor: &SupervisorShared) {
    if supervisor.tree.watch.watched.load(Ordering::Relaxed)
        && let Ok(runtime) = Handle::try_current()
    {
        drop(runtime.spawn(std::future::ready(())));
    }
}

/// The roots that the thread hasn't taken over yet. `None`: no thread runs.
static NEW: LazyLock<Mutex<Option<Vec<Watched>>>> = LazyLock::new(Mutex::default);

fn watch(root: &Arc<SupervisorShared>, runtime: Handle, bound: Duration) {
    if !root.blueprint().self_check || root.tree.watch.watched.swap(true, Ordering::Relaxed) {
        return;
    }
    let root = Watched::new(root, runtime, bound);
    let mut new = NEW.lock();
    if let Some(new) = &mut *new {
        return new.push(root);
    }
    let thread = thread::Builder::new().name("verger-watch".to_owned());
    match thread.spawn(run) {
        Ok(_) => *new = Some(vec![root]),
        Err(error) => {
            // The next root tries again.
            drop(new);
            error!(
                target: "verger::lifecycle", error = error.to_string(),
                "can't start the thread that watches for blocked threads"
            );
        }
    }
}

/// A root that is watched.
struct Watched {
    root: Weak<SupervisorShared>,
    runtime: Handle,
    /// The subscriber of the thread that has started the watch.
    dispatch: Dispatch,
    bound: Duration,
    /// From before the thread runs: the first polls are known.
    polls: PollWatch,
    /// How often the loop has answered, and how often it was asked.
    answers: Arc<AtomicU64>,
    asked: u64,
    progress: LoopProgress,
}

impl Watched {
    fn new(root: &Arc<SupervisorShared>, runtime: Handle, bound: Duration) -> Self {
        Self {
            root: Arc::downgrade(root),
            runtime,
            dispatch: tracing::dispatcher::get_default(Clone::clone),
            bound,
            polls: PollWatch::new(),
            answers: Arc::default(),
            asked: 0,
            progress: LoopProgress::new(bound, clock::real()),
        }
    }

    fn has_answered(&self) -> bool {
        self.answers.load(Ordering::Relaxed) == self.asked
    }

    /// Asks the loop to make progress, or wakes a worker. Returns `false` once the root has ended.
    fn wake(&mut self) -> bool {
        let Some(root) = self.root.upgrade().filter(|root| !root.inbox.is_closed()) else {
            return false;
        };
        if self.has_answered() {
            self.asked += 1;
            return root.inbox.push_request(HandleRequest::Turn(Arc::clone(&self.answers))).is_ok();
        }
        // A task of a runtime with one thread would wake nothing else.
        if self.runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            drop(self.runtime.spawn(std::future::ready(())));
        }
        true
    }

    /// Looks whether the loop makes progress. The thread wanted to look at `due`.
    fn look(&mut self, polls: &[RunningPoll], due: Instant, now: Instant) {
        let Some(root) = self.root.upgrade() else { return };
        let finding = self.progress.observe(self.has_answered(), due, now);
        root.tree.watch.stalled.store(self.progress.is_stalled(), Ordering::Relaxed);
        let (child, waited) = (root.path(), self.bound);
        tracing::dispatcher::with_default(&self.dispatch, || match finding {
            None => {}
            Some(Finding::Stalled) => {
                let stuck = stuck_text(polls, waited, now);
                error!(
                    target: "verger::lifecycle", %child, ?waited, stuck,
                    "the runtime is stalled"
                );
            }
            Some(Finding::Recovered { after }) => {
                let took = tenths(after);
                info!(target: "verger::lifecycle", %child, ?took, "the runtime has recovered");
            }
        });
    }

    /// Counts and logs a poll of this tree that lasts long.
    fn report(&self, poll: &RunningPoll, long: LongPoll, now: Instant) {
        let supervisor = &poll.incarnation.parent;
        if long.is_first {
            supervisor.tree.watch.count_long_poll(&poll.child);
            #[cfg(feature = "metrics")]
            supervisor.dead_letters.scope.long_poll(&poll.child);
        }
        // The line about the runtime names the child.
        if long.is_first && self.progress.waited(now) >= self.bound / 2 {
            return;
        }
        let (child, incarnation) = (&poll.child, poll.incarnation.number);
        let lasted = Duration::from_secs(long.lasted.as_secs());
        tracing::dispatcher::with_default(&self.dispatch, || {
            warn!(
                target: "verger::lifecycle", %child, incarnation,
                "a poll of {child} has lasted {lasted:?}: does it block its thread?"
            );
        });
    }
}

/// Watches until no root is left.
fn run() {
    let (mut roots, mut long_polls) = (Vec::<Watched>::new(), LongPolls::default());
    loop {
        let left = {
            let mut new = NEW.lock();
            roots.append(new.get_or_insert_default());
            if roots.is_empty() {
                *new = None;
            }
            roots.len()
        };
        if left == 0 {
            return;
        }
        roots.retain_mut(|root| catch_panic(|| root.wake()).unwrap_or(false));
        let due = clock::real() + PERIOD;
        #[expect(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
        thread::sleep(PERIOD);
        let now = clock::real();
        let Some(Watched { polls, .. }) = roots.first() else { continue };
        let (running, questions) = (polls.running(), polls.long_questions(now));
        catch_panic(|| look(&mut roots, &mut long_polls, running, due, now));
        catch_panic(|| report_questions(&roots, questions));
    }
}

fn look(
    roots: &mut [Watched],
    long_polls: &mut LongPolls,
    polls: Vec<RunningPoll>,
    due: Instant,
    now: Instant,
) {
    for root in &mut *roots {
        root.look(&polls, due, now);
    }
    let known = polls.iter().map(|poll| (poll.child.clone(), poll.since));
    let long = long_polls.observe(known, due, now);
    for (poll, long) in polls.iter().zip(long) {
        let tree = &poll.incarnation.parent.tree;
        let is_of =
            |root: &&Watched| root.root.upgrade().is_some_and(|root| Arc::ptr_eq(&root.tree, tree));
        if let Some(long) = long
            && let Some(root) = roots.iter().find(is_of)
        {
            root.report(poll, long, now);
        }
    }
}

/// Logs questions that have no answer for a long time. Without a child that asks, the log of any tree has the line.
fn report_questions(roots: &[Watched], questions: Vec<LongQuestion>) {
    for LongQuestion { child, of, waited } in questions {
        let is_of = |watched: &&Watched| {
            let (root, child) = (watched.root.upgrade(), child.as_ref());
            root.zip(child).is_some_and(|(root, child)| Arc::ptr_eq(&root.tree, &child.parent.tree))
        };
        let Some(root) = roots.iter().find(is_of).or(roots.first()) else { continue };
        let child = child.map(|child| child.path());
        tracing::dispatcher::with_default(&root.dispatch, || log_question(child, of, waited));
    }
}

/// Logs that an answer is waited for. `of`: the child that is to answer.
pub(crate) fn log_question(child: Option<Path>, of: Option<Path>, waited: Duration) {
    let (child, of) = (child.map(field::display), of.map(field::display));
    warn!(target: "verger::lifecycle", child, of, ?waited, "waiting for an answer");
}

/// Names the children that hold a thread, each with the time since their poll began.
///
/// A poll that is much shorter than the bound began after the loop was asked for progress, so it holds no thread
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
