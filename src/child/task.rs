//! The task of one incarnation: runs the child, and reports its exit exactly once.
//!
//! The task reports from `poll`, or at the latest from `Drop`: a child that returns, fails, panics,
//! is aborted, loses its runtime or panics while it is dropped is always reported. So no second task
//! watches the first one.
//!
//! A child with helpers also ends with the first failure of one of them. Its exit is reported once the last
//! of them has ended, and until then that they remain.
//!
//! Each thread has a slot with the incarnation that it polls, and since when. It is known only while a
//! [`PollWatch`] exists. How long polls take is measured only while a tree wants to know it: see `busy`. Without both, a
//! poll costs one load more.
//!
//! # Invariants
//!
//! 1. Without a [`PollWatch`], no thread writes to its slot, takes a lock or reads the clock for it.
//! 2. When a poll returns or panics, the slot is what it was before.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::{Span, field};

use super::awaiting::{AwaitedAnswer, LongQuestion, NotedQuestion};
use super::busy::TimedPoll;
use super::cell::StopLevel;
use super::context::Context;
use super::helpers::Helpers;
use super::incarnation::Incarnation;
use super::spec::{ChildFactory, Phases};
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::{PanicMessage, RecordedPanic, collect, panic_message};
use crate::path::Path;
use crate::start_of::cut;
use crate::subscriber::{error, warn};
use crate::sync::Mutex;
use crate::{clock, named_task, subscriber};

/// Spawns the task of an incarnation, in a span of its own if that is enabled.
///
/// A supervisor has no span, because its log lines contain its path.
pub(crate) fn spawn(
    incarnation: &Arc<Incarnation>,
    factory: &ChildFactory,
    phases: Phases,
) -> AbortHandle {
    let span = if phases.is_supervisor {
        incarnation.mark_supervisor();
        Span::none()
    } else {
        subscriber::info_span!(
            target: "verger::child",
            parent: None,
            "child",
            child = %incarnation.path(),
            incarnation = incarnation.number,
        )
    };
    let mut future = factory.life(Context::new(Arc::clone(incarnation)), phases);
    if !span.is_disabled() {
        future = Box::pin(InSpan::new(future, span));
    }
    let task = ChildTask::new(Arc::clone(incarnation), future);
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
    let task = named_task::spawn(|| incarnation.path().to_string(), task);
    task.abort_handle()
}

/// The boxed future of one incarnation.
pub(crate) type ExitFuture = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// See the [module](self). `None` once the exit was reported.
///
/// The child's future is boxed, so that the task itself fits into the smallest that tokio allocates.
// perf: budgets row "bytes per idle child"
pub(crate) struct ChildTask(Option<Alive>);

/// A future of a child that runs.
pub(super) struct Alive {
    pub(super) incarnation: Arc<Incarnation>,
    pub(super) future: ExitFuture,
}

impl ChildTask {
    pub(super) fn new(incarnation: Arc<Incarnation>, future: ExitFuture) -> Self {
        Self(Some(Alive { incarnation, future }))
    }

    /// Drops the child, and then reports its exit: the next incarnation may need what it holds.
    fn end(&mut self, exit: Exit) {
        let Some(Alive { incarnation, future }) = self.0.take() else { return };
        let exit = log_panics(&incarnation, || drop_after(exit, || drop(future)));
        let helpers = incarnation.close_helpers();
        let failure = helpers.as_ref().and_then(|helpers| helpers.close());
        let reason = reason_of(&incarnation, with_failure(&incarnation, exit, failure));
        // What depends on the incarnation is gone when its exit is known.
        incarnation.cancel_contexts();
        let Some(helpers) = helpers else { return incarnation.report_exit(reason) };
        let (reporting, remaining) = (Arc::clone(&incarnation), reason.clone());
        if !helpers.finish(move || reporting.report_exit(reason)) {
            incarnation.report_remaining(remaining);
        }
    }
}

impl Future for ChildTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(Alive { incarnation, future }) = &mut self.0 else { return Poll::Ready(()) };
        // Before the child is polled, so that a helper which fails from then on wakes it.
        incarnation.register_task(cx.waker());
        let poll = || watched(incarnation, || catch(|| future.as_mut().poll(cx)));
        let mut polled = log_panics(incarnation, poll);
        if let Some(helpers) = incarnation.helpers() {
            polled = beside(incarnation, future, polled, &helpers, cx);
        }
        let Poll::Ready(exit) = polled else { return Poll::Pending };
        self.end(exit);
        Poll::Ready(())
    }
}

/// Ends a child that was polled because a helper has failed, and stops its own supervisor before it ends.
fn beside(
    incarnation: &Incarnation,
    future: &mut ExitFuture,
    polled: Poll<Exit>,
    helpers: &Helpers,
    cx: &mut TaskContext<'_>,
) -> Poll<Exit> {
    let (exit, panicked) = match (polled, helpers.take_failure()) {
        (Poll::Pending, None) => return Poll::Pending,
        (Poll::Pending, Some(failure)) => (Err(failure), false),
        (Poll::Ready(exit), failure) => {
            let panicked = exit.as_ref().is_err_and(ExitError::is_panic);
            (with_failure(incarnation, exit, failure), panicked)
        }
    };
    let exit = with_failure(incarnation, exit, helpers.settle());
    // A child that has panicked stops nothing in order any more.
    let Some(own) = (!panicked).then(|| helpers.own_to_stop()).flatten() else {
        return Poll::Ready(exit);
    };
    let function = std::mem::replace(future, Box::pin(std::future::pending()));
    let exit = log_panics(incarnation, || drop_after(exit, || drop(function)));
    *future = Box::pin(async move {
        own.stop(StopLevel::Cancel);
        own.until_ended().await;
        exit
    });
    future.as_mut().poll(cx)
}

/// Returns the exit of a child, one of whose helpers may have failed meanwhile.
pub(super) fn with_failure(
    incarnation: &Incarnation,
    exit: Exit,
    failure: Option<ExitError>,
) -> Exit {
    match (exit, failure) {
        (Ok(()), Some(failure)) => Err(failure),
        (exit, failure) => {
            if let Some(failure) = failure {
                log_failure(incarnation, failure);
            }
            exit
        }
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        self.end(Err(ExitError::from_reason(ExitReason::Aborted)));
    }
}

/// Polls code of the user's. A panic is an exit.
pub(crate) fn catch(poll: impl FnOnce() -> Poll<Exit>) -> Poll<Exit> {
    let polled = catch_unwind(AssertUnwindSafe(poll));
    polled.unwrap_or_else(|payload| Poll::Ready(Err(panicked(panic_message(payload)))))
}

/// Returns the reason of an exit, or `None` if the child declines to start.
///
/// Only the supervisor's own stop signal makes a clean end a shutdown. An error that looks like a
/// cancellation is a failure.
fn reason_of(incarnation: &Incarnation, exit: Exit) -> Option<ExitReason> {
    match exit {
        Ok(()) if incarnation.cell.level() > StopLevel::None => Some(ExitReason::Shutdown),
        Ok(()) => Some(ExitReason::Normal),
        Err(error) if error.is_ignore() => None,
        Err(error) => Some(error.into_reason()),
    }
}

/// Drops the rest of a child. A panic in that is added to the exit.
pub(crate) fn drop_after(exit: Exit, rest: impl FnOnce()) -> Exit {
    let Err(payload) = catch_unwind(AssertUnwindSafe(rest)) else { return exit };
    let second = panic_message(payload);
    let mut location = None;
    let first = match exit {
        Ok(()) => None,
        Err(error) if error.is_ignore() => None,
        Err(error) => match error.into_reason() {
            ExitReason::Normal | ExitReason::Shutdown | ExitReason::Aborted => None,
            ExitReason::Panicked(first) => {
                location = first.location().map(str::to_owned);
                Some(first.message().to_owned())
            }
            reason => Some(reason.to_string()),
        },
    };
    Err(panicked(match first {
        Some(first) => {
            let message = format!("{first}; then, while dropped: {second}");
            PanicMessage::new(&message, location.as_deref())
        }
        None => second,
    }))
}

pub(crate) fn panicked(panic: PanicMessage) -> ExitError {
    ExitError::from_reason(ExitReason::Panicked(panic))
}

/// Calls code of the child's, and logs its panics if the panic hook is installed.
pub(crate) fn log_panics<T>(incarnation: &Incarnation, inside: impl FnOnce() -> T) -> T {
    let (value, panics) = collect(inside);
    log_recorded(incarnation, panics);
    value
}

/// Logs panics that were collected.
pub(crate) fn log_recorded(
    incarnation: &Incarnation,
    panics: impl IntoIterator<Item = RecordedPanic>,
) {
    for RecordedPanic { panic, backtrace } in panics {
        let child = incarnation.path();
        let Some(line) = incarnation.parent.panic_line(&child) else { continue };
        let (note, incarnation) = (line.note(), incarnation.number);
        let (location, message) = (panic.location(), cut(panic.message().to_owned()));
        let backtrace = backtrace.map(field::display);
        error!(
            target: "verger::panic",
            %child, incarnation, location, panic = message, backtrace, "panicked{note}"
        );
    }
}

/// Logs the failure of a helper that isn't the exit of its child.
pub(crate) fn log_failure(incarnation: &Incarnation, error: ExitError) {
    let (child, incarnation) = (incarnation.path(), incarnation.number);
    let reason = error.into_reason();
    if reason.is_clean() {
        return;
    }
    let cause = reason.to_string();
    warn!(
        target: "verger::lifecycle", %child, incarnation, cause, "a helper has failed"
    );
}

/// A future in the span of its child, which is entered for each of its polls and for its drop.
///
/// A subscriber may panic. `tracing`'s `Instrumented` would then leak the child instead of dropping it.
pub(super) struct InSpan {
    /// `None` once the child has ended.
    future: Option<ExitFuture>,
    span: Span,
}

impl InSpan {
    pub(super) fn new(future: ExitFuture, span: Span) -> Self {
        Self { future: Some(future), span }
    }
}

impl Future for InSpan {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        let Self { future, span } = &mut *self;
        subscriber::in_span(span, || {
            let Some(running) = future else { return Poll::Pending };
            let polled = running.as_mut().poll(cx);
            polled.map(|exit| drop_after(exit, || *future = None))
        })
    }
}

impl Drop for InSpan {
    fn drop(&mut self) {
        let Self { future, span } = self;
        if future.is_some() {
            subscriber::in_span(span, || *future = None);
        }
        subscriber::close(std::mem::replace(span, Span::none()));
    }
}

/// How many observers of polls exist, of each kind: one load tells that there is none.
static OBSERVERS: AtomicU64 = AtomicU64::new(0);

/// What a [`PollWatch`] adds to [`OBSERVERS`].
const WATCH: u64 = 1;

/// What an observer adds that wants to know how long polls take.
const TIMES: u64 = 1 << 32;

/// Some observers of polls, until this is dropped.
#[derive(Debug)]
pub(super) struct Observers(u64);

impl Observers {
    fn new(observers: u64) -> Self {
        OBSERVERS.fetch_add(observers, Ordering::Relaxed);
        Self(observers)
    }

    /// One that wants to know how long polls take.
    pub(super) fn of_times() -> Self {
        Self::new(TIMES)
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        OBSERVERS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Whether a [`PollWatch`] exists.
fn is_watched() -> bool {
    // The first comparison is one instruction, and almost always the only one. perf: bench `instructions`
    is_observed() && !OBSERVERS.load(Ordering::Relaxed).is_multiple_of(TIMES)
}

/// Whether there is any observer.
fn is_observed() -> bool {
    OBSERVERS.load(Ordering::Relaxed) != 0
}

/// The slots of all threads that have polled a child while they were watched.
static SLOTS: LazyLock<Mutex<Vec<Weak<Slot>>>> = LazyLock::new(Mutex::default);

thread_local! {
    static SLOT: Arc<Slot> = {
        let slot = Arc::new(Slot::default());
        let mut slots = SLOTS.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        slot
    };
}

/// Returns the slots of all threads.
fn slots() -> Vec<Arc<Slot>> {
    SLOTS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Returns what the threads poll, and since when.
fn polls() -> impl Iterator<Item = (Arc<Incarnation>, Instant)> {
    slots().into_iter().filter_map(|slot| slot.polled.lock().clone())
}

/// What a thread polls, and the questions that were asked on it.
#[derive(Default)]
struct Slot {
    polled: Mutex<Option<(Arc<Incarnation>, Instant)>>,
    asked: Mutex<Vec<NotedQuestion>>,
}

/// Notes a question that has no answer yet, while a [`PollWatch`] exists.
pub(crate) fn note_question(question: Weak<dyn AwaitedAnswer>) {
    if !is_watched() {
        return;
    }
    let _ = SLOT.try_with(|slot| {
        let polled = slot.polled.lock();
        let asked =
            NotedQuestion::new(question, polled.as_ref().map(|(incarnation, _)| incarnation));
        drop(polled);
        slot.asked.lock().push(asked);
    });
}

/// Calls `poll`, which polls this incarnation.
pub(super) fn watched<T>(incarnation: &Arc<Incarnation>, poll: impl FnOnce() -> T) -> T {
    if !is_observed() {
        return poll();
    }
    let _observed = ObservedPoll::new(incarnation);
    poll()
}

/// A poll that is observed. Fields are dropped in order: the time is without the work of the other one.
struct ObservedPoll<'a> {
    _timed: Option<TimedPoll<'a>>,
    _polled: Option<Polled>,
}

impl<'a> ObservedPoll<'a> {
    #[cold]
    fn new(incarnation: &'a Arc<Incarnation>) -> Self {
        let began = clock::real();
        let polled = is_watched().then(|| Polled::new(incarnation, began));
        let timed = TimedPoll::new(incarnation, began);
        Self { _timed: timed, _polled: polled }
    }
}

/// Restores the thread's slot when it is dropped.
struct Polled {
    slot: Option<Arc<Slot>>,
    before: Option<(Arc<Incarnation>, Instant)>,
}

impl Polled {
    fn new(incarnation: &Arc<Incarnation>, began: Instant) -> Self {
        // A thread that ends has no slot any more.
        let slot = SLOT.try_with(Arc::clone).ok();
        let polled = (Arc::clone(incarnation), began);
        let before = slot.as_ref().and_then(|slot| slot.polled.lock().replace(polled));
        Self { slot, before }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            let polled = std::mem::replace(&mut *slot.polled.lock(), self.before.take());
            // Outside of the lock: it may be the last one.
            drop(polled);
        }
    }
}

/// While it exists, it is known which children are being polled.
pub(crate) struct PollWatch {
    _observers: Observers,
}

/// Whether the task of this incarnation waits for a thread that a poll of another child has blocked for so long.
///
/// `false` if that isn't known, because there is no watch.
pub(crate) fn waits_for_thread(incarnation: &Arc<Incarnation>, blocked: Duration) -> bool {
    if !is_watched() {
        return false;
    }
    let mut polls = polls();
    let is_polled = |polled: &Arc<Incarnation>| Arc::ptr_eq(polled, incarnation);
    let since = clock::real().checked_sub(blocked);
    let mut blocks = false;
    polls.all(|(polled, began)| {
        blocks |= Some(began) <= since;
        !is_polled(&polled)
    }) && blocks
}

/// A poll that has not returned.
#[derive(Debug)]
pub(crate) struct RunningPoll {
    pub(crate) child: Path,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) since: Instant,
}

impl PollWatch {
    pub(crate) fn new() -> Self {
        Self { _observers: Observers::new(WATCH) }
    }

    /// Returns the polls of all threads, the longest first. A poll that began before the watch is not known.
    pub(crate) fn running(&self) -> Vec<RunningPoll> {
        let mut polls: Vec<_> = polls()
            .map(|(incarnation, since)| RunningPoll {
                child: incarnation.path(),
                incarnation,
                since,
            })
            .collect();
        polls.sort_by_key(|poll| poll.since);
        polls
    }

    /// Looks at the questions of all threads. Returns those that are to be logged.
    pub(crate) fn long_questions(&self, now: Instant) -> Vec<LongQuestion> {
        let mut long = Vec::new();
        for slot in slots() {
            // Without the lock: a question may be the last owner of what it knows.
            let mut asked = std::mem::take(&mut *slot.asked.lock());
            asked.retain(NotedQuestion::is_open);
            long.extend(asked.iter_mut().filter_map(|asked| asked.look(now)));
            slot.asked.lock().append(&mut asked);
        }
        long
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::ChildTask;

    #[test]
    fn a_child_task_takes_three_words() {
        assert_eq!(size_of::<ChildTask>(), 24);
    }
}
