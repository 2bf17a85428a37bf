//! What changes of one incarnation: its stop level, the task that waits for it, and its status.
//!
//! A [`CancellationToken`] for each child would wake the task as well. The cell holds a level and one
//! waker, and all that few incarnations have is boxed. perf: budgets row "bytes"
//!
//! # Invariants
//!
//! 1. The level never falls.
//! 2. A pending poll is woken when the level rises or its waker is replaced; it must then poll again.
//! 3. When the call that raises the level returns, every token is cancelled, including one that is
//!    created at the same time.
//! 4. No waker is called, and no value of the child is dropped, while the lock is held.
//! 5. When the call that raises the level returns, every guard was dropped that was held before it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::helpers::Helpers;
use crate::panic::{catch_panic, wake};
use crate::properties::Properties;
use crate::sync::{AtomicU8, Mutex, Ordering};

/// How urgently a child is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopLevel {
    #[default]
    None,
    /// Finish the current work and return.
    Cancel,
    /// For a supervisor: cancel all that is left below at once, in the order of the stop orders.
    Close,
    /// For a supervisor: cancel all that is left below at once.
    CloseAll,
    /// For a supervisor: abort everything below.
    Abort,
}

/// See the [module](self).
pub(crate) struct IncarnationCell {
    /// A [`StopLevel`]. Written under the lock, and read without it.
    level: AtomicU8,
    pub(super) locked: Mutex<Locked>,
}

#[derive(Default)]
pub(super) struct Locked {
    waker: Option<Waker>,
    pub(super) extras: Option<Box<Extras>>,
}

/// What few incarnations have.
#[derive(Default)]
pub(super) struct Extras {
    token: Option<CancellationToken>,
    status: Option<Arc<str>>,
    alarming: Option<Arc<str>>,
    properties: Properties,
    last_heartbeat: Option<Instant>,
    /// How many guards hold that the child waits on purpose.
    waiting: usize,
    /// Values that are dropped when the level rises, in the order in which they were held.
    pub(super) guards: BTreeMap<u64, Box<dyn Any + Send>>,
    helpers: Option<Arc<Helpers>>,
    /// What the child waits for, in the order in which the waits began.
    waits: BTreeMap<u64, Arc<str>>,
}

impl IncarnationCell {
    pub(super) fn new(properties: Option<Properties>) -> Self {
        let with = |properties| Box::new(Extras { properties, ..Extras::default() });
        let extras = properties.map(with);
        let locked = Mutex::new(Locked { waker: None, extras });
        Self { level: AtomicU8::new(StopLevel::None as u8), locked }
    }

    pub(crate) fn level(&self) -> StopLevel {
        match self.level.load(Ordering::Acquire) {
            0 => StopLevel::None,
            1 => StopLevel::Cancel,
            2 => StopLevel::Close,
            3 => StopLevel::CloseAll,
            _ => StopLevel::Abort,
        }
    }

    /// Raises the level, cancels the token and wakes the waiting task. A lower level changes nothing.
    pub(crate) fn raise(&self, level: StopLevel) {
        // Most children of an ordered stop were cancelled by the stop chain already.
        if level <= self.level() {
            return;
        }
        let (waker, token, guards) = {
            let mut locked = self.locked.lock();
            if level <= self.level() {
                return;
            }
            self.level.store(level as u8, Ordering::Release);
            let waker = locked.waker.take();
            let extras = locked.extras.as_mut();
            let token = extras.as_ref().and_then(|extras| extras.token.clone());
            (waker, token, extras.map(|extras| std::mem::take(&mut extras.guards)))
        };
        // Outside of the lock: a waker may run foreign code, and so may the drop of a guard.
        for guard in guards.into_iter().flat_map(BTreeMap::into_values) {
            catch_panic(|| drop(guard));
        }
        if let Some(token) = token {
            catch_panic(|| token.cancel());
        }
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Resolves once the level is above `seen`.
    ///
    /// Returns `None` if the waker of a different task is registered already: the caller then waits
    /// for the [token](Self::token).
    pub(crate) fn poll_above(
        &self,
        seen: StopLevel,
        cx: &mut Context<'_>,
    ) -> Option<Poll<StopLevel>> {
        let mut locked = self.locked.lock();
        let level = self.level();
        if level > seen {
            return Some(Poll::Ready(level));
        }
        match &locked.waker {
            Some(kept) if !kept.will_wake(cx.waker()) => None,
            Some(_) => Some(Poll::Pending),
            None => {
                locked.waker = Some(cx.waker().clone());
                Some(Poll::Pending)
            }
        }
    }

    /// Resolves once the level is above `seen`. Replaces the registered waker, and wakes it.
    pub(crate) fn poll_above_replacing(
        &self,
        seen: StopLevel,
        cx: &mut Context<'_>,
    ) -> Poll<StopLevel> {
        let replaced = {
            let mut locked = self.locked.lock();
            let level = self.level();
            if level > seen {
                return Poll::Ready(level);
            }
            if locked.waker.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            locked.waker.replace(cx.waker().clone())
        };
        if let Some(replaced) = replaced {
            wake(replaced);
        }
        Poll::Pending
    }

    /// Registers the child's own task, unless a waker is registered already.
    ///
    /// It is woken when the level rises, and by [`wake`](Self::wake).
    pub(super) fn register(&self, waker: &Waker) {
        let mut locked = self.locked.lock();
        if self.level() == StopLevel::None {
            locked.waker.get_or_insert_with(|| waker.clone());
        }
    }

    /// Wakes the registered task, unless the level has risen, which has woken it.
    pub(super) fn wake(&self) {
        let waker = self.locked.lock().waker.clone();
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Returns a token that is cancelled when the level rises.
    pub(crate) fn token(&self) -> CancellationToken {
        let (token, stopped) = {
            let mut locked = self.locked.lock();
            let extras = locked.extras.get_or_insert_default();
            let token = extras.token.get_or_insert_default().clone();
            (token, self.level() > StopLevel::None)
        };
        // Outside of the lock. A concurrent `raise` may not have reached its own `cancel` yet.
        if stopped {
            token.cancel();
        }
        token
    }

    /// Returns the helpers of the incarnation, which are created by the first call.
    pub(super) fn helpers(&self) -> Arc<Helpers> {
        let mut locked = self.locked.lock();
        Arc::clone(locked.extras.get_or_insert_default().helpers.get_or_insert_default())
    }

    pub(super) fn set_status(&self, text: Arc<str>) {
        let mut locked = self.locked.lock();
        locked.extras.get_or_insert_default().status = Some(text);
    }

    pub(super) fn status(&self) -> Option<Arc<str>> {
        self.locked.lock().extras.as_ref()?.status.clone()
    }

    pub(super) fn set_alarming(&self, text: Option<Arc<str>>) {
        let mut locked = self.locked.lock();
        if text.is_some() || locked.extras.is_some() {
            locked.extras.get_or_insert_default().alarming = text;
        }
    }

    pub(super) fn alarming(&self) -> Option<Arc<str>> {
        self.locked.lock().extras.as_ref()?.alarming.clone()
    }

    /// Notes what the child waits for. Returns the number of the wait.
    pub(super) fn begin_wait(&self, what: Arc<str>) -> u64 {
        let mut locked = self.locked.lock();
        let waits = &mut locked.extras.get_or_insert_default().waits;
        let number = waits.last_key_value().map_or(0, |(last, _)| last + 1);
        waits.insert(number, what);
        number
    }

    pub(super) fn end_wait(&self, number: u64) {
        if let Some(extras) = &mut self.locked.lock().extras {
            extras.waits.remove(&number);
        }
    }

    /// Returns what the child has waited for the longest.
    pub(crate) fn awaits(&self) -> Option<Arc<str>> {
        let locked = self.locked.lock();
        let (_, what) = locked.extras.as_ref()?.waits.first_key_value()?;
        Some(Arc::clone(what))
    }

    /// Notes a heartbeat.
    ///
    /// The lock is one that the child takes whenever it waits for its cancellation, too.
    pub(super) fn beat(&self, now: Instant) {
        self.locked.lock().extras.get_or_insert_default().last_heartbeat = Some(now);
    }

    /// Notes that the child waits on purpose, once more.
    pub(super) fn begin_waiting(&self) {
        self.locked.lock().extras.get_or_insert_default().waiting += 1;
    }

    /// Undoes one [`begin_waiting`](Self::begin_waiting). This is a heartbeat.
    pub(super) fn end_waiting(&self, now: Instant) {
        let mut locked = self.locked.lock();
        let extras = locked.extras.get_or_insert_default();
        extras.waiting = extras.waiting.saturating_sub(1);
        extras.last_heartbeat = Some(now);
    }

    /// Returns the instant of the last heartbeat, if there was any. It is `now` while the child waits on
    /// purpose.
    pub(crate) fn last_heartbeat(&self, now: Instant) -> Option<Instant> {
        let locked = self.locked.lock();
        let extras = locked.extras.as_ref()?;
        if extras.waiting > 0 { Some(now) } else { extras.last_heartbeat }
    }

    pub(super) fn property<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.locked.lock().extras.as_ref()?.properties.get()
    }
}

/// Identifies a guard among the guards that a cell holds.
#[cfg(any(feature = "config", feature = "service"))]
pub(crate) type GuardId = u64;

/// Guards: values that an incarnation keeps until it is cancelled.
#[cfg(any(feature = "config", feature = "service"))]
impl IncarnationCell {
    /// Keeps the guard until the level rises, and drops it then.
    ///
    /// Returns `None`, and drops the guard, if the level has risen already.
    pub(crate) fn hold(&self, guard: Box<dyn Any + Send>) -> Option<GuardId> {
        let mut locked = self.locked.lock();
        if self.level() > StopLevel::None {
            drop(locked);
            catch_panic(|| drop(guard));
            return None;
        }
        let guards = &mut locked.extras.get_or_insert_default().guards;
        let id = guards.last_key_value().map_or(0, |(last, _)| last + 1);
        guards.insert(id, guard);
        Some(id)
    }

    /// Returns a guard that is held.
    #[cfg(feature = "service")]
    pub(crate) fn release(&self, id: GuardId) -> Option<Box<dyn Any + Send>> {
        self.locked.lock().extras.as_mut()?.guards.remove(&id)
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use std::future::poll_fn;

    use loom::thread;

    use super::*;
    use crate::sync::model::{Task, check};

    fn raising(
        cell: &Arc<IncarnationCell>,
        levels: &'static [StopLevel],
    ) -> thread::JoinHandle<()> {
        let cell = Arc::clone(cell);
        thread::spawn(move || levels.iter().for_each(|&level| cell.raise(level)))
    }

    /// Waits like `Cancelled`: registers its waker, or waits for the token if it can't.
    fn cancelled(cell: &IncarnationCell) {
        let token = Task::new().run(poll_fn(|cx| match cell.poll_above(StopLevel::None, cx) {
            Some(poll) => poll.map(|_| None),
            None => Poll::Ready(Some(cell.token())),
        }));
        if let Some(token) = token {
            Task::new().run(std::pin::pin!(token.cancelled_owned()));
        }
    }

    #[test]
    fn loom_a_pending_poll_is_woken_once_when_the_level_rises() {
        loom::model(|| {
            let cell = Arc::new(IncarnationCell::new(None));
            let raising = raising(&cell, &[StopLevel::Cancel, StopLevel::Abort]);

            let task = Task::new();
            let waker = task.waker();
            let poll = cell.poll_above(StopLevel::None, &mut Context::from_waker(&waker));
            raising.join().unwrap();

            let pending = poll.expect("no other waker is registered").is_pending();
            assert_eq!(task.times_woken(), usize::from(pending));
            assert_eq!(cell.level(), StopLevel::Abort);
        });
    }

    #[test]
    fn loom_a_registered_task_sees_what_was_done_before_its_wake() {
        loom::model(|| {
            let cell = Arc::new(IncarnationCell::new(None));
            let done = Arc::new(AtomicU8::new(0));
            let doing = {
                let (cell, done) = (Arc::clone(&cell), Arc::clone(&done));
                thread::spawn(move || {
                    done.store(1, Ordering::Release);
                    cell.wake();
                })
            };

            let task = Task::new();
            let waker = task.waker();
            cell.register(&waker);
            let seen = done.load(Ordering::Acquire) == 1;
            doing.join().unwrap();

            assert!(seen || task.times_woken() == 1);
        });
    }

    #[test]
    fn loom_each_of_several_waiting_tasks_is_woken() {
        loom::model(|| {
            let cell = Arc::new(IncarnationCell::new(None));
            let raising = raising(&cell, &[StopLevel::Cancel]);
            let other = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || cancelled(&cell))
            };

            cancelled(&cell);
            other.join().unwrap();
            raising.join().unwrap();
        });
    }

    #[test]
    fn loom_a_task_whose_waker_is_replaced_is_woken() {
        check(|| {
            let cell = Arc::new(IncarnationCell::new(None));
            let raising = raising(&cell, &[StopLevel::Cancel, StopLevel::Abort]);
            let waiting = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || cancelled(&cell))
            };

            // Like the loop of a supervisor, which sees every level.
            let (task, mut seen) = (Task::new(), StopLevel::None);
            while seen < StopLevel::Abort {
                let level = task.run(poll_fn(|cx| cell.poll_above_replacing(seen, cx)));
                assert!(level > seen, "the level only rises");
                seen = level;
            }
            waiting.join().unwrap();
            raising.join().unwrap();
        });
    }

    #[test]
    fn loom_a_token_that_is_created_during_a_stop_is_cancelled() {
        loom::model(|| {
            let cell = Arc::new(IncarnationCell::new(None));
            let raising = raising(&cell, &[StopLevel::Cancel]);

            let token = cell.token();
            let child = token.child_token();
            raising.join().unwrap();

            assert!(token.is_cancelled());
            assert!(child.is_cancelled());
        });
    }
}
