//! One run of a child, as its task, its contexts and its supervisor share it.
//!
//! The supervisor asks the child to stop by raising a level in the cell; whoever waits is woken. A
//! [`CancellationToken`] does the same and more, at three times the bytes and with a lock that all
//! children of a supervisor share, so one is made only when somebody asks for it. No other
//! primitive of tokio's keeps a flag, one waker and nothing else: `Notify` forgets the flag,
//! `oneshot` and `watch` allocate, and an atomic waker needs a second cell for the token.
//!
//! # Invariants
//!
//! 1. The level only rises, for whoever has the run: it is made the next one where nobody else has it
//!    but the task and the supervisor.
//! 2. Who was told `Pending` is woken when the level rises, or before that if another takes his
//!    place, and then has to ask again.
//! 3. When the call that raised the level has returned, every token is cancelled, also one that was
//!    made meanwhile.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::parked::{NextRun, Seat, fresh};
use super::seed::Seed;
use crate::core::{Event, Incarnation, Key};
use crate::exit::ExitReason;
use crate::mailbox::{ChildId, LoanHolder, MailboxLoan};
use crate::path::Path;
use crate::policy::{RestartPolicy, RestartType, StartCause};
use crate::properties::Properties;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, Mutex, Ordering};

/// Whom a child talks to.
pub(crate) trait Parent: fmt::Debug + Send + Sync + 'static {
    /// Where the supervisor is.
    fn path(&self) -> Path;

    /// Puts something into the supervisor's inbox. Never blocks.
    fn tell(&self, event: Event);

    /// The same from the task of a child that has ended of its own accord, which may take a whole turn
    /// of the supervisor's there. If the child is to run again at once, and the task is parked, it may
    /// find its next run. Whether it is to give way to the supervisor's task.
    fn tell_in_person(&self, event: Event, _next: &mut Option<NextRun>) -> bool {
        self.tell(event);
        false
    }

    /// Reports a `deactivate` that failed.
    fn deactivate_failed(&self, run: &Run, reason: ExitReason);

    /// For the layer that knows what a parent really is.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// How urgently a child was asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopLevel {
    #[default]
    None,
    /// Finish what you are doing.
    Cancel,
    /// For a supervisor: abort whatever is below.
    Abort,
}

/// What a child can say of itself, a bit each. Saying it again in the same run changes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Ready = 1,
    Healthy = 2,
    StopSelf = 4,
    Acked = 8,
}

/// One run of a child. With eight bytes more or less, a child would take more: see the tests.
pub(crate) struct Run {
    /// Twice behind a pointer, so that each child has a thin one.
    pub(crate) parent: Arc<Arc<dyn Parent>>,
    pub(crate) seed: Arc<Seed>,
    pub(crate) key: Key,
    /// Tells children of one name apart under a dynamic supervisor.
    pub(crate) serial: Option<NonZeroU64>,
    pub(super) incarnation: AtomicU32,
    pub(crate) cause: StartCause,
    /// A [`StopLevel`]. Written under the lock; read without it, because a busy child asks often
    /// whether it is to stop.
    pub(super) level: AtomicU8,
    /// What the child has said of itself, as [`Said`], and what else there is to know, a bit each.
    pub(super) marks: AtomicU16,
    pub(super) cell: Mutex<Cell>,
}

/// It has failed, and is asked to stop for that.
const BLAMED: u16 = 16;
/// It is asked to stop for good, as far as its supervisor knows.
const DISMISSED: u16 = 32;
/// Somebody was given its token.
const TOKEN: u16 = 512;
/// It has a status.
const STATUS: u16 = 1024;
/// It has a span.
const TRACED: u16 = 2048;

#[derive(Default)]
pub(super) struct Cell {
    pub(super) waker: Option<Waker>,
    /// That of the child, but while its task is polled. Boxed, since mostly nobody reads.
    pub(super) span: Option<Box<Span>>,
    /// Boxed, since most runs need none.
    pub(super) extras: Option<Box<Extras>>,
}

#[derive(Default)]
pub(super) struct Extras {
    token: Option<CancellationToken>,
    status: Option<Arc<str>>,
    properties: Properties,
    /// What the task waits with when this run is over, and the next one isn't known.
    pub(super) seat: Seat,
}

impl Run {
    /// `returns`: if it fails, or is asked to stop, another run is expected after it.
    pub(crate) fn new(
        parent: Arc<Arc<dyn Parent>>,
        seed: Arc<Seed>,
        key: Key,
        serial: Option<NonZeroU64>,
        incarnation: Incarnation,
        cause: StartCause,
        returns: bool,
    ) -> Self {
        let cell = Mutex::new(Cell::default());
        let level = AtomicU8::new(StopLevel::None as u8);
        let marks = AtomicU16::new(fresh(returns));
        let incarnation = AtomicU32::new(incarnation);
        Self { parent, seed, key, serial, incarnation, cause, level, marks, cell }
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        // It changes where nobody else can read it: see `again`.
        self.incarnation.load(Ordering::Relaxed)
    }

    /// The child's own part of its path.
    pub(crate) fn segment(&self) -> String {
        self.seed.segment(self.serial)
    }

    /// The same, shared with the seed if it can be.
    pub(crate) fn name(&self) -> Arc<str> {
        match self.serial {
            None => Arc::clone(&self.seed.name),
            Some(_) => self.segment().into(),
        }
    }

    pub(crate) fn path(&self) -> Path {
        self.parent.path().child(&self.seed.name, self.serial)
    }

    /// Returns what it takes to borrow the child's mailbox.
    pub(super) fn loan(self: &Arc<Self>) -> MailboxLoan {
        let holder = Arc::clone(self) as Arc<dyn LoanHolder>;
        MailboxLoan { holder, child: self.child_id(), incarnation: self.incarnation() }
    }

    fn child_id(&self) -> ChildId {
        ChildId::new(&*self.parent, self.key)
    }

    /// How it ended; `None` if it declined. When that was told, whoever it has given its context to is
    /// asked to stop. Whether the task is to give way; it may find its `next` run. Without that, it is
    /// not in a poll.
    #[inline]
    pub(super) fn tell_end(
        self: &Arc<Self>,
        reason: Option<ExitReason>,
        next: Option<&mut Option<NextRun>>,
    ) -> bool {
        // Seen before the supervisor hears of it, and lets go of the run: it and the task have one each.
        let others = Arc::strong_count(self) > 2 || self.has_token();
        let over = self.incarnation();
        let event = self.end(reason);
        let gives_way = match next.filter(|_| self.level() == StopLevel::None) {
            Some(next) => self.parent.tell_in_person(event, next),
            None => {
                self.parent.tell(event);
                false
            }
        };
        // If it is the next run already, they have gone since.
        if others && self.incarnation() == over {
            self.stop_others();
        }
        gives_way
    }

    /// It is over: whoever else has its context is asked to stop.
    pub(crate) fn stop_others(&self) {
        if self.level() == StopLevel::None {
            // It was not asked before it had ended, so what it has left in an inbox it didn't do.
            self.blame();
        }
        self.stop(StopLevel::Cancel);
    }

    fn end(&self, reason: Option<ExitReason>) -> Event {
        let (key, incarnation) = (self.key, self.incarnation());
        match reason {
            Some(reason) => Event::Exited { key, incarnation, reason },
            None => Event::Ignored { key, incarnation },
        }
    }

    pub(crate) fn tell_policy(&self, policy: Option<Arc<RestartPolicy>>) {
        let (key, incarnation) = (self.key, self.incarnation());
        self.parent.tell(Event::Policy { key, incarnation, policy });
    }

    pub(crate) fn tell_health(&self, problem: Option<Arc<str>>) {
        let (key, incarnation) = (self.key, self.incarnation());
        self.parent.tell(Event::Health { key, incarnation, problem });
    }

    /// Tells the supervisor what the child says, the first time: a child that says it for each
    /// message it has handled must not fill the supervisor's inbox.
    pub(crate) fn say(&self, said: Said) {
        let bit = said as u16;
        if self.marks.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return;
        }
        if let Said::Ready = said
            && let Some(mailbox) = self.seed.mailbox()
        {
            mailbox.mark_ready(self.child_id(), self.incarnation());
        }
        let (key, incarnation) = (self.key, self.incarnation());
        self.parent.tell(match said {
            Said::Ready => Event::Ready { key, incarnation },
            Said::Healthy => Event::Healthy { key, incarnation },
            Said::StopSelf => Event::StopSelf { key, incarnation },
            Said::Acked => Event::Acked { key, incarnation },
        });
    }

    /// It is asked to stop because it has failed, or has ended already.
    pub(crate) fn blame(&self) {
        self.marks.fetch_or(BLAMED, Ordering::AcqRel);
    }

    /// It is asked to stop for good.
    pub(crate) fn dismiss(&self) {
        self.marks.fetch_or(DISMISSED, Ordering::AcqRel);
    }

    pub(crate) fn is_dismissed(&self) -> bool {
        self.marks.load(Ordering::Acquire) & DISMISSED != 0
    }

    /// Raises the level, and wakes whoever waits for that.
    pub(crate) fn stop(&self, level: StopLevel) {
        let (waker, token) = {
            // Most have been asked by the one behind them when their supervisor comes to it.
            if level <= self.level() {
                return;
            }
            let mut cell = self.cell.lock();
            if level <= self.level() {
                return;
            }
            self.level.store(level as u8, Ordering::Release);
            let token = cell.extras.as_ref().and_then(|extras| extras.token.clone());
            (cell.waker.take(), token)
        };
        // Outside of the lock: a waker may do anything.
        if let Some(token) = token {
            token.cancel();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn level(&self) -> StopLevel {
        match self.level.load(Ordering::Acquire) {
            0 => StopLevel::None,
            1 => StopLevel::Cancel,
            _ => StopLevel::Abort,
        }
    }

    /// Ready once the level is above `seen`. `None` if another task's waker is kept already: then
    /// the caller has to wait for the token.
    pub(crate) fn poll_level(
        &self,
        seen: StopLevel,
        cx: &mut TaskContext<'_>,
    ) -> Option<Poll<StopLevel>> {
        // Whoever was woken for this hears it without the lock.
        let is_above = || Some(self.level()).filter(|level| *level > seen).map(Poll::Ready);
        if let Some(ready) = is_above() {
            return Some(ready);
        }
        let mut cell = self.cell.lock();
        if let Some(ready) = is_above() {
            return Some(ready);
        }
        match &cell.waker {
            Some(kept) if !kept.will_wake(cx.waker()) => None,
            Some(_) => Some(Poll::Pending),
            None => {
                cell.waker = Some(cx.waker().clone());
                Some(Poll::Pending)
            }
        }
    }

    /// Takes the place of the waker that is kept, and wakes the one that was.
    pub(crate) fn seize_waker(&self, cx: &mut TaskContext<'_>) {
        let old = self.cell.lock().waker.replace(cx.waker().clone());
        if let Some(old) = old {
            old.wake();
        }
    }

    pub(crate) fn token(&self) -> CancellationToken {
        let (token, stopped) = {
            let mut cell = self.cell.lock();
            self.marks.fetch_or(TOKEN, Ordering::AcqRel);
            let extras = cell.extras.get_or_insert_default();
            (extras.token.get_or_insert_default().clone(), self.level() > StopLevel::None)
        };
        // Outside of the lock, as in `stop`, which may not have come to it yet.
        if stopped {
            token.cancel();
        }
        token
    }

    fn has_token(&self) -> bool {
        self.marks.load(Ordering::Acquire) & TOKEN != 0
    }

    pub(crate) fn set_status(&self, text: Arc<str>) {
        self.cell.lock().extras.get_or_insert_default().status = Some(text);
        self.marks.fetch_or(STATUS, Ordering::Release);
    }

    /// Keeps the span that the child is polled in.
    pub(crate) fn set_span(&self, span: Box<Span>) {
        self.cell.lock().span = Some(span);
        if !self.is_traced() {
            self.marks.fetch_or(TRACED, Ordering::Release);
        }
    }

    /// Takes it out. Whoever keeps the run doesn't keep the span open.
    pub(super) fn take_span(&self) -> Option<Box<Span>> {
        self.is_traced().then(|| self.cell.lock().span.take()).flatten()
    }

    fn is_traced(&self) -> bool {
        self.marks.load(Ordering::Acquire) & TRACED != 0
    }

    pub(crate) fn set_properties(&self, properties: Properties) {
        self.cell.lock().extras.get_or_insert_default().properties = properties;
    }

    pub(crate) fn property<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.cell.lock().extras.as_ref()?.properties.get()
    }

    pub(crate) fn status(&self) -> Option<Arc<str>> {
        // Most have none, and a snapshot asks everybody: behind a lock, it would wait for the memory of
        // one child after the other.
        if self.marks.load(Ordering::Acquire) & STATUS == 0 {
            return None;
        }
        self.cell.lock().extras.as_ref()?.status.clone()
    }
}

impl LoanHolder for Run {
    fn is_cancelled_without_failure(&self) -> bool {
        // It is blamed before it is asked.
        self.level() > StopLevel::None && self.marks.load(Ordering::Acquire) & BLAMED == 0
    }

    fn on_ack(&self) {
        self.say(Said::Acked);
    }

    fn on_final_message(&self) {
        let policy = RestartPolicy::new().restart(RestartType::Temporary);
        self.tell_policy(Some(Arc::new(policy)));
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("path", &self.path())
            .field("incarnation", &self.incarnation())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(verger_loom), target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// With its counts, and in glibc's allocator, 112. A task takes 144 there, aligned to 128: so nothing
    /// lies idle between one child's two and the next one's. With eight less, every second place would be
    /// 384 long instead of 256, and both children and stops would show it.
    #[test]
    fn a_run_takes_80_bytes() {
        assert_eq!(size_of::<Run>(), 80);
    }
}

/// A run without a supervisor.
#[cfg(test)]
pub(crate) mod alone {
    use std::time::Instant;

    use super::super::worker;
    use super::*;
    use crate::core::{Dynamic, Machine};
    use crate::policy::Rules;

    #[derive(Debug)]
    struct Nobody;

    impl Parent for Nobody {
        fn path(&self) -> Path {
            Path::root("app")
        }

        fn tell(&self, _event: Event) {}

        fn deactivate_failed(&self, _run: &Run, _reason: ExitReason) {}

        fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
            self
        }
    }

    pub(crate) fn run(incarnation: Incarnation) -> Arc<Run> {
        under(Arc::new(Nobody), incarnation, false)
    }

    /// Another one is expected after it.
    #[cfg(verger_loom)]
    pub(crate) fn returning(incarnation: Incarnation) -> Arc<Run> {
        under(Arc::new(Nobody), incarnation, true)
    }

    pub(crate) fn under(
        parent: Arc<dyn Parent>,
        incarnation: Incarnation,
        returns: bool,
    ) -> Arc<Run> {
        let seed = worker("child", async |_| ()).seed;
        let now = Instant::now();
        let key = Dynamic::new(Rules::default(), now, 0).add(Arc::default(), now);
        let parent = Arc::new(parent);
        Arc::new(Run::new(parent, seed, key, None, incarnation, StartCause::Initial, returns))
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use std::future::poll_fn;

    use loom::thread;

    use super::super::Cancelled;
    use super::alone;
    use super::*;
    use crate::sync::model::{Task, check};

    fn stopping(run: &Arc<Run>, levels: &'static [StopLevel]) -> thread::JoinHandle<()> {
        let run = Arc::clone(run);
        thread::spawn(move || levels.iter().for_each(|&level| run.stop(level)))
    }

    /// Waits for the end like the loop of a supervisor, which hears every level.
    fn heed(run: &Run) {
        let mut heard = StopLevel::None;
        let task = Task::new();
        while heard < StopLevel::Abort {
            task.run(poll_fn(|cx| {
                if run.poll_level(heard, cx).is_none() {
                    run.seize_waker(cx);
                }
                if run.level() > heard { Poll::Ready(()) } else { Poll::Pending }
            }));
            assert!(run.level() > heard, "the level only rises");
            heard = run.level();
        }
    }

    #[test]
    fn loom_who_is_told_pending_is_woken_once_when_the_level_rises() {
        loom::model(|| {
            let run = alone::run(1);
            let stopping = stopping(&run, &[StopLevel::Cancel, StopLevel::Abort]);

            let task = Task::new();
            let waker = task.waker();
            let told = run.poll_level(StopLevel::None, &mut TaskContext::from_waker(&waker));
            stopping.join().unwrap();

            let pending = told.expect("the waker is the only one").is_pending();
            assert_eq!(task.times_woken(), usize::from(pending));
            assert_eq!(run.level(), StopLevel::Abort);
        });
    }

    #[test]
    fn loom_each_of_several_waiters_hears_of_the_stop() {
        loom::model(|| {
            let run = alone::run(1);
            let stopping = stopping(&run, &[StopLevel::Cancel]);
            let other = {
                let run = Arc::clone(&run);
                thread::spawn(move || Task::new().run(Cancelled::new(run)))
            };

            Task::new().run(Cancelled::new(Arc::clone(&run)));
            other.join().unwrap();
            stopping.join().unwrap();
        });
    }

    #[test]
    fn loom_a_waiter_whose_place_is_taken_hears_of_the_stop() {
        check(|| {
            let run = alone::run(1);
            let stopping = stopping(&run, &[StopLevel::Cancel, StopLevel::Abort]);
            let waiter = {
                let run = Arc::clone(&run);
                thread::spawn(move || Task::new().run(Cancelled::new(run)))
            };

            heed(&run);
            waiter.join().unwrap();
            stopping.join().unwrap();
        });
    }

    #[test]
    fn loom_a_token_made_during_a_stop_is_cancelled() {
        loom::model(|| {
            let run = alone::run(1);
            let stopping = stopping(&run, &[StopLevel::Cancel]);

            let token = run.token();
            let child = token.child_token();
            stopping.join().unwrap();

            assert!(token.is_cancelled());
            assert!(child.is_cancelled());
        });
    }
}
