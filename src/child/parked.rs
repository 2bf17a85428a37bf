//! A task between two runs: its child is over, and it waits for the next one.
//!
//! A child that fails is mostly started again, and a task is dear to make and to throw away: aligned
//! memory, and an entry in a list that all tasks share. That was a seventh of the instructions of a
//! restart, and a quarter of the time when ten thousand children fail at once. So the task of a
//! child that is expected back stays where it is, and is handed the next run through the one that is
//! over. The child itself was dropped before; the supervisor lets the task go when it knows that
//! there will be no other run. A task that takes the supervisor's turn itself, and is to go on in it, is
//! given the next run there, and comes to no seat. Mostly that is the one that is over, once more.
//!
//! # Invariants
//!
//! 1. A run that was handed over, or given, is begun, or is reported as aborted; one that could not be
//!    handed over is given back.
//! 2. A task that was aborted is handed nothing: the abort was meant for the run before.
//! 3. The waker of the task that waits has a place of its own. Others may still wait for the run that
//!    is over to be asked to stop, who have kept its context.

use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};

use super::run::{Run, StopLevel};
use super::seed::Seed;
use crate::contain::contained;
use crate::core::IncarnationNumber;
use crate::exit::ExitReason;
use crate::policy::StartCause;
use crate::sync::Ordering;

/// If the run fails, or was asked to stop, another is expected.
const RETURNS: u16 = 64;
/// The child is over, and its task stays for another run. Cleared when the task goes, under the lock.
const PARKED: u16 = 128;
/// The supervisor knows that it is over.
const RESTS: u16 = 256;

/// The marks of a run that nothing has happened to.
pub(super) const fn fresh(returns: bool) -> u16 {
    if returns { RETURNS } else { 0 }
}

/// The run that a task begins next, be it its first. If it is dropped instead, whatever has come in
/// between, the run is reported as aborted: its supervisor takes it for one that runs.
#[derive(Debug)]
pub(crate) struct NextRun(Option<Arc<Run>>);

impl NextRun {
    pub(crate) fn new(run: Arc<Run>) -> Self {
        Self(Some(run))
    }

    /// Somebody begins it, or takes it back: nothing is reported any more.
    pub(crate) fn begin(&mut self) -> Option<Arc<Run>> {
        self.0.take()
    }
}

impl Drop for NextRun {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            // To close it may panic, so that comes last.
            let _span = run.take_span();
            run.tell_end(Some(ExitReason::Aborted), None);
        }
    }
}

/// What a task that is parked waits with.
#[derive(Default)]
pub(super) enum Seat {
    /// It does not wait, or not yet.
    #[default]
    Empty,
    Waits(Waker),
    Handed(NextRun),
}

impl Run {
    /// Makes it the next run of the same child, in the same task, if nobody has it but that and the
    /// supervisor, whose turn the task is taking. So there is no memory to be asked for, and nothing
    /// to be counted: a ninth of a restart. Whether it is.
    pub(crate) fn again(
        self: &Arc<Self>,
        seed: &Arc<Seed>,
        incarnation: IncarnationNumber,
        cause: StartCause,
        returns: bool,
    ) -> bool {
        let alike = cause == self.cause && Arc::ptr_eq(seed, &self.seed);
        if !alike || Arc::strong_count(self) > 2 {
            return false;
        }
        let waker = {
            let mut cell = self.cell.lock();
            // What it was given is dropped where a panic is that of the child.
            if cell.extras.is_some() || cell.span.is_some() {
                return false;
            }
            self.incarnation.store(incarnation, Ordering::Relaxed);
            self.level.store(StopLevel::None as u8, Ordering::Release);
            self.marks.store(fresh(returns), Ordering::Release);
            cell.waker.take()
        };
        if let Some(waker) = waker {
            contained(|| drop(waker));
        }
        true
    }

    /// This one is the last of its task.
    pub(crate) fn expect_no_return(&self) {
        self.marks.fetch_and(!RETURNS, Ordering::AcqRel);
    }

    /// Says that the task stays, if it is to. Comes before the exit is told; afterwards the task looks
    /// what it has been handed.
    pub(super) fn park(&self, reason: &ExitReason) -> bool {
        let returns = self.marks.load(Ordering::Acquire) & RETURNS != 0;
        let parks = returns && !matches!(reason, ExitReason::Normal);
        if parks {
            self.marks.fetch_or(PARKED, Ordering::AcqRel);
        }
        parks
    }

    /// What the parked task is to do, if that is known already.
    pub(super) fn take_next(&self, cx: &mut TaskContext<'_>) -> Option<NextRun> {
        let mut cell = self.cell.lock();
        let seat = &mut cell.extras.get_or_insert_default().seat;
        match std::mem::take(seat) {
            Seat::Handed(next) => Some(next),
            Seat::Waits(_) | Seat::Empty => {
                *seat = Seat::Waits(cx.waker().clone());
                None
            }
        }
    }

    /// The task is dropped. Returns what it was to do.
    pub(super) fn leave(&self) -> Option<NextRun> {
        if self.marks.load(Ordering::Acquire) & PARKED == 0 {
            return None;
        }
        let mut cell = self.cell.lock();
        self.marks.fetch_and(!PARKED, Ordering::AcqRel);
        let seat = std::mem::take(&mut cell.extras.as_mut()?.seat);
        drop(cell);
        match seat {
            Seat::Handed(next) => Some(next),
            Seat::Waits(_) | Seat::Empty => None,
        }
    }

    /// The supervisor has heard of the end. Whether the task waits for another run; if it does and
    /// there will be none, it has to be aborted.
    pub(crate) fn rest(&self) -> Rest {
        let marks = self.marks.fetch_or(RESTS, Ordering::AcqRel);
        match (marks & PARKED != 0, marks & RETURNS != 0) {
            (true, true) => Rest::Waits,
            (true, false) => Rest::InVain,
            (false, _) => Rest::Gone,
        }
    }

    /// Whether the supervisor has heard of the end.
    pub(crate) fn rests(&self) -> bool {
        self.marks.load(Ordering::Acquire) & RESTS != 0
    }

    /// Lets the task that waits begin another run.
    ///
    /// # Errors
    ///
    /// Gives it back if the task is gone, or has been handed one.
    pub(crate) fn hand_over(&self, next: NextRun) -> Result<(), NextRun> {
        let mut cell = self.cell.lock();
        if self.marks.load(Ordering::Acquire) & PARKED == 0 {
            return Err(next);
        }
        let seat = &mut cell.extras.get_or_insert_default().seat;
        if let Seat::Handed(_) = seat {
            return Err(next);
        }
        let before = std::mem::replace(seat, Seat::Handed(next));
        drop(cell);
        if let Seat::Waits(waker) = before {
            waker.wake();
        }
        Ok(())
    }
}

/// What has become of the task of a child that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Gone,
    Waits,
    /// It waits for a run that won't come.
    InVain,
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::any::Any;
    use std::task::{Poll, Wake};

    use tracing::Span;

    use super::super::{Parent, alone};
    use super::*;
    use crate::core::MachineEvent;
    use crate::path::Path;
    use crate::sync::Mutex;

    const CAUSE: StartCause = StartCause::Initial;

    /// The second of two who have it.
    fn with_task() -> (Arc<Run>, Arc<Run>) {
        let run = alone::run(1);
        (Arc::clone(&run), run)
    }

    fn is_again(run: &Arc<Run>) -> bool {
        let again = run.again(&Arc::clone(&run.seed), 2, CAUSE, true);
        assert_eq!(run.incarnation(), if again { 2 } else { 1 });
        again
    }

    #[test]
    fn a_run_that_the_task_and_the_supervisor_have_alone_is_the_next_one_without_any_trace() {
        let (task, run) = with_task();
        run.blame();
        run.dismiss();
        run.stop(StopLevel::Cancel);
        assert_eq!(run.rest(), Rest::Gone);

        assert!(is_again(&run));

        assert_eq!(task.level(), StopLevel::None);
        assert!(!task.is_dismissed());
        assert!(!task.rests());
        assert!(task.park(&ExitReason::Aborted), "another one is expected after it");
        assert_eq!(run.rest(), Rest::Waits);
    }

    #[test]
    fn a_run_that_was_the_last_one_of_its_task_expects_no_other_again() {
        let (_task, run) = with_task();
        assert!(run.again(&Arc::clone(&run.seed), 2, CAUSE, false));
        assert!(!run.park(&ExitReason::Aborted));
    }

    #[test]
    fn a_run_that_somebody_has_kept_or_that_was_given_something_is_not_the_next_one() {
        let (_task, run) = with_task();
        let kept = Arc::clone(&run);
        assert!(!is_again(&run), "a context of it");
        drop(kept);
        run.token();
        assert!(!is_again(&run), "a token of it");

        let (_task, run) = with_task();
        run.set_status("lag".into());
        assert!(!is_again(&run), "what it has said would be the next one's");

        let (_task, run) = with_task();
        run.set_span(Box::new(Span::none()));
        assert!(!is_again(&run), "a span of its own");

        let (_task, run) = with_task();
        let other = alone::run(1);
        assert!(!run.again(&other.seed, 2, CAUSE, true), "made from another seed");
        assert!(!run.again(&Arc::clone(&run.seed), 2, StartCause::Restart, true));
        assert_eq!(run.incarnation(), 1);
        assert!(is_again(&run));
    }

    #[test]
    fn a_waker_of_the_run_before_that_panics_when_it_is_dropped_is_heard_of_by_nobody() {
        struct Heavy;

        impl Wake for Heavy {
            fn wake(self: Arc<Self>) {}
        }

        impl Drop for Heavy {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }

        let (_task, run) = with_task();
        let waker = Waker::from(Arc::new(Heavy));
        let mut cx = TaskContext::from_waker(&waker);
        assert_eq!(run.poll_level(StopLevel::None, &mut cx), Some(Poll::Pending));
        drop(waker);

        assert!(is_again(&run));
        let mut cx = TaskContext::from_waker(Waker::noop());
        assert_eq!(run.poll_level(StopLevel::None, &mut cx), Some(Poll::Pending), "none is left");
    }

    /// A supervisor whose child takes its turn. Somebody lets go of the child's context meanwhile.
    #[derive(Debug, Default)]
    struct Visited(Mutex<Option<[Arc<Run>; 2]>>);

    impl Parent for Visited {
        fn path(&self) -> Path {
            Path::root("app")
        }

        fn tell(&self, _event: MachineEvent) {}

        fn tell_in_person(&self, _event: MachineEvent, _next: &mut Option<NextRun>) -> bool {
            let [run, keeper] = self.0.lock().take().expect("it is told once");
            drop(keeper);
            assert!(is_again(&run));
            false
        }

        fn deactivate_failed(&self, _run: &Run, _reason: ExitReason) {}

        fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
            self
        }
    }

    #[test]
    fn the_next_run_is_not_asked_to_stop_for_who_kept_the_one_before() {
        let supervisor = Arc::new(Visited::default());
        let run = alone::under(Arc::clone(&supervisor) as _, 1, true);
        *supervisor.0.lock() = Some([Arc::clone(&run), Arc::clone(&run)]);

        run.tell_end(Some(ExitReason::Aborted), Some(&mut None));

        assert_eq!(run.incarnation(), 2);
        assert_eq!(run.level(), StopLevel::None);
    }

    #[test]
    fn the_span_of_a_run_that_is_not_begun_is_closed_whoever_keeps_the_run() {
        let run = alone::run(1);
        run.set_span(Box::new(Span::none()));
        drop(NextRun::new(Arc::clone(&run)));
        assert!(run.take_span().is_none());
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use loom::thread;

    use super::super::alone::{returning, run};
    use super::*;
    use crate::sync::model::{Task, check};

    /// What the task does when it is over, and what it finds when it is woken.
    fn park_and_wait(before: &Run) -> Option<NextRun> {
        let task = Task::new();
        task.run(std::future::poll_fn(|cx| {
            // A task is polled more often than it was woken for this.
            if before.marks.load(Ordering::Acquire) & PARKED == 0 {
                assert!(before.park(&ExitReason::Aborted));
            }
            match before.take_next(cx) {
                Some(next) => std::task::Poll::Ready(Some(next)),
                None => std::task::Poll::Pending,
            }
        }))
    }

    /// What the supervisor does.
    fn handing_over(
        before: &Arc<Run>,
        after: &Arc<Run>,
        first: fn(&Run),
    ) -> thread::JoinHandle<()> {
        let (before, run) = (Arc::clone(before), Arc::clone(after));
        thread::spawn(move || {
            let mut next = NextRun::new(run);
            first(&before);
            // It hears of the end only when the task has parked.
            while let Err(back) = before.hand_over(next) {
                next = back;
                thread::yield_now();
            }
        })
    }

    #[test]
    fn loom_a_task_that_waits_begins_what_it_is_handed() {
        check(|| {
            let (before, after) = (returning(1), run(2));
            let supervisor = handing_over(&before, &after, |run| run.stop(StopLevel::Cancel));

            let mut next = park_and_wait(&before).expect("it is handed over");
            supervisor.join().unwrap();

            assert!(next.begin().is_some_and(|run| Arc::ptr_eq(&run, &after)));
            let mut cx = TaskContext::from_waker(std::task::Waker::noop());
            assert!(before.take_next(&mut cx).is_none(), "nothing comes twice");
        });
    }

    #[test]
    fn loom_what_is_handed_to_a_task_that_goes_is_reported_by_it_or_given_back() {
        loom::model(|| {
            let (before, after) = (returning(1), run(2));
            assert!(before.park(&ExitReason::Aborted));
            let going = {
                let before = Arc::clone(&before);
                thread::spawn(move || before.leave().is_some())
            };

            let given_back = before.hand_over(NextRun::new(after)).is_err();

            assert_ne!(going.join().unwrap(), given_back);
        });
    }

    #[test]
    fn loom_a_task_that_waits_is_woken_whoever_waits_for_the_run_that_is_over() {
        check(|| {
            let (before, after) = (returning(1), run(2));
            let supervisor = handing_over(&before, &after, |_| ());
            let keeper = {
                let before = Arc::clone(&before);
                thread::spawn(move || {
                    let waker = Task::new().waker();
                    before.seize_waker(&mut TaskContext::from_waker(&waker));
                })
            };

            assert!(park_and_wait(&before).is_some());
            supervisor.join().unwrap();
            keeper.join().unwrap();
        });
    }
}
