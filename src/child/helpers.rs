//! What runs beside the task of an incarnation and ends with it: helper tasks, closures on other threads, and
//! the child's own supervisor.
//!
//! Knows which helpers run and how the child's own task has ended. It doesn't know what they do.
//!
//! # Invariants
//!
//! 1. The exit of an incarnation is reported once: when its own task and its last helper have ended.
//! 2. The first failure of a helper is kept until the child takes it, and every other one is returned to the
//!    helper. So are all failures once the child has settled how it ends.
//! 3. Once it is closed, no helper is admitted.
//! 4. Nothing is dropped or aborted while the lock is held.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::cell::StopLevel;
use crate::exit::ExitError;
use crate::panic::catch_panic;
use crate::runtime::SupervisorShared;
use crate::sync::Mutex;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that run, with what aborts them.
    running: HashMap<HelperId, Option<Deferred>>,
    next: HelperId,
    /// What the child is about to fail with.
    failure: Option<ExitError>,
    /// Whether the child's function has returned, or has failed.
    settled: bool,
    own: Option<Arc<SupervisorShared>>,
    /// Whether `own` is being stopped in order.
    own_stops: bool,
    closed: bool,
    /// Reports the exit, while the last helpers are awaited.
    report: Option<Deferred>,
}

/// A call that is made later: it aborts a helper, or reports the exit of the incarnation.
struct Deferred(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deferred")
    }
}

/// Identifies a helper of an incarnation.
pub(super) type HelperId = u64;

impl Helpers {
    /// Admits a helper, which runs until the guard is dropped. `None` if the child has ended.
    pub(super) fn admit(self: Arc<Self>) -> Option<HelperGuard> {
        let id = {
            let mut state = self.state.lock();
            if state.closed {
                return None;
            }
            let id = state.next;
            state.next += 1;
            state.running.insert(id, None);
            id
        };
        Some(HelperGuard { helpers: self, id })
    }

    /// Sets the call that aborts a helper, which is made now if the child has ended.
    pub(super) fn aborted_by(&self, id: HelperId, abort: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            catch_panic(abort);
        } else if let Some(running) = state.running.get_mut(&id) {
            *running = Some(Deferred(Box::new(abort)));
        }
    }

    /// Returns the child's own supervisor, unless it has ended.
    pub(super) fn own(&self) -> Option<Arc<SupervisorShared>> {
        self.state.lock().own().cloned()
    }

    /// Sets the child's own supervisor, in place of one that has ended. Returns `false` if the child has one already, or
    /// has ended.
    pub(super) fn set_own(&self, own: Arc<SupervisorShared>) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.own().is_some() {
            return false;
        }
        let ended = state.own.replace(own);
        drop(state);
        drop(ended);
        true
    }

    /// Returns the child's own supervisor to the one caller that stops it in order.
    pub(super) fn own_to_stop(&self) -> Option<Arc<SupervisorShared>> {
        let mut state = self.state.lock();
        let own = state.own.clone()?;
        (!std::mem::replace(&mut state.own_stops, true)).then_some(own)
    }

    /// Fails the child, which has to be woken then.
    ///
    /// # Errors
    ///
    /// Returns the failure if the child fails or ends already.
    pub(super) fn fail(&self, failure: ExitError) -> Result<(), ExitError> {
        let mut state = self.state.lock();
        if state.settled || state.failure.is_some() {
            return Err(failure);
        }
        state.failure = Some(failure);
        Ok(())
    }

    /// Takes the failure of a helper.
    pub(super) fn take_failure(&self) -> Option<ExitError> {
        self.state.lock().failure.take()
    }

    /// Notes that it is settled how the child ends. Returns a failure that came before.
    pub(super) fn settle(&self) -> Option<ExitError> {
        let mut state = self.state.lock();
        state.settled = true;
        state.failure.take()
    }

    /// Admits no more helpers. Returns a failure that the child hasn't taken.
    pub(super) fn close(&self) -> Option<ExitError> {
        let mut state = self.state.lock();
        (state.closed, state.settled) = (true, true);
        state.failure.take()
    }

    /// Aborts what runs, and calls `report` once that has ended. Returns whether it has been called.
    pub(super) fn finish(&self, report: impl FnOnce() + Send + 'static) -> bool {
        let (aborts, own, report) = {
            let mut state = self.state.lock();
            state.report = Some(Deferred(Box::new(report)));
            let aborts: Vec<_> = state.running.values_mut().filter_map(Option::take).collect();
            (aborts, state.own.take(), state.report_if_last())
        };
        // The wakers of what a helper waits for may be a user's.
        for Deferred(abort) in aborts {
            catch_panic(abort);
        }
        if let Some(own) = own {
            own.stop(StopLevel::Abort);
        }
        let is_last = report.is_some();
        if let Some(Deferred(report)) = report {
            report();
        }
        is_last
    }
}

impl State {
    fn own(&self) -> Option<&Arc<SupervisorShared>> {
        self.own.as_ref().filter(|own| !own.has_ended())
    }

    /// Returns what reports the exit, if nothing is awaited any more.
    fn report_if_last(&mut self) -> Option<Deferred> {
        if self.running.is_empty() { self.report.take() } else { None }
    }
}

/// While it exists, its helper runs.
#[derive(Debug)]
pub(crate) struct HelperGuard {
    helpers: Arc<Helpers>,
    id: HelperId,
}

impl HelperGuard {
    pub(super) fn helpers(&self) -> &Arc<Helpers> {
        &self.helpers
    }

    pub(super) fn id(&self) -> HelperId {
        self.id
    }

    /// Sets the call that aborts the helper, which is made now if the child has ended.
    pub(crate) fn aborted_by(&self, abort: impl FnOnce() + Send + 'static) {
        self.helpers.aborted_by(self.id, abort);
    }
}

impl Drop for HelperGuard {
    fn drop(&mut self) {
        let (abort, report) = {
            let mut state = self.helpers.state.lock();
            (state.running.remove(&self.id), state.report_if_last())
        };
        drop(abort);
        if let Some(Deferred(report)) = report {
            report();
        }
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::sync::model::check;

    #[test]
    fn loom_a_failure_is_taken_once_or_returned() {
        check(|| {
            let helpers = Arc::new(Helpers::default());
            let failing = ["a", "b"].map(|text| {
                let helpers = Arc::clone(&helpers);
                thread::spawn(move || helpers.fail(text.into()).is_ok())
            });

            let taken = [helpers.take_failure(), helpers.settle(), helpers.close()];
            let kept = failing.map(|it| it.join().unwrap());

            let taken = taken.iter().filter(|failure| failure.is_some()).count();
            assert_eq!(kept.iter().filter(|&&kept| kept).count(), taken, "none is lost");
        });
    }

    #[test]
    fn loom_a_helper_is_refused_or_awaited() {
        check(|| {
            let helpers = Arc::new(Helpers::default());
            let first = Arc::clone(&helpers).admit().unwrap();
            let admitting = {
                let helpers = Arc::clone(&helpers);
                thread::spawn(move || drop(helpers.admit()))
            };
            let ending = thread::spawn(move || drop(first));

            helpers.close();
            let reports = Arc::new(Mutex::new(0));
            {
                let reports = Arc::clone(&reports);
                helpers.finish(move || *reports.lock() += 1);
            }
            admitting.join().unwrap();
            ending.join().unwrap();

            assert_eq!(*reports.lock(), 1);
            assert!(Arc::clone(&helpers).admit().is_none());
        });
    }
}
