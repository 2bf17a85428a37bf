//! Cancelling and aborting the task of one child, and the deadlines for both.

use std::time::{Duration, Instant};

use crate::clock::later;
use crate::core::{
    AfterFailing, ChildAnswer, ChildState, Children, Effect, Key, StepCx, StopReason, Timer,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::Shutdown;

impl Children {
    /// Sets the deadline of the supervisor's stop. An earlier deadline stays.
    pub(in crate::core) fn stop_within(&mut self, within: Option<Duration>, now: Instant) {
        let Some(within) = within.or(self.rules.stop_deadline) else { return };
        let at = later(now, within);
        let at = self.timers.at(Timer::Total).map_or(at, |earlier| earlier.min(at));
        self.timers.arm(Timer::Total, at);
    }

    /// Cancels a child's task, or aborts it if its shutdown is brutal kill.
    pub(in crate::core) fn begin_stop(&mut self, key: Key, why: StopReason, cx: &mut StepCx<'_>) {
        if let Some(grace) = self.begin_stop_untimed(key, why, cx) {
            self.timers.arm(Timer::Child(key), later(cx.now, grace));
        }
    }

    /// Like [`begin_stop`](Self::begin_stop), without a timer. Returns the grace, at whose end the
    /// caller has to abort the child.
    pub(in crate::core) fn begin_stop_untimed(
        &mut self,
        key: Key,
        why: StopReason,
        cx: &mut StepCx<'_>,
    ) -> Option<Duration> {
        self.timers.disarm(Timer::Child(key));
        // A child that has failed is Errored already.
        if !matches!(why, StopReason::Failing { .. }) {
            self.enter(key, Lifecycle::Deactivating, None, cx);
        }
        self.set(key, ChildState::Stopping { why, aborted: false });
        match self.shutdown(key) {
            Shutdown::BrutalKill => {
                self.abort(key, cx);
                None
            }
            Shutdown::Infinity => {
                cx.push(Effect::Cancel { key });
                None
            }
            Shutdown::Timeout(grace) | Shutdown::Drain(grace) => {
                cx.push(Effect::Cancel { key });
                Some(grace)
            }
        }
    }

    /// Cancels a running child, if that was not done before, because the time for an ordered stop is over.
    pub(in crate::core) fn close(&mut self, key: Key, all: bool, cx: &mut StepCx<'_>) {
        if let ChildState::Active | ChildState::Activating = self.entry(key).state {
            self.begin_stop(key, StopReason::Group, cx);
        }
        if let ChildState::Stopping { aborted: false, .. } = self.entry(key).state {
            cx.push(Effect::Close { key, all });
        }
    }

    /// Aborts a child's task. It exits or leaks now.
    pub(in crate::core) fn abort(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let why = match self.entry(key).state {
            ChildState::Stopping { aborted: true, .. } => return,
            ChildState::Stopping { why, .. } => why,
            _ => {
                self.enter(key, Lifecycle::Deactivating, None, cx);
                StopReason::Group
            }
        };
        self.set(key, ChildState::Stopping { why, aborted: true });
        cx.push(Effect::Abort { key });
        let leak_timeout = self.entry(key).rules.leak_timeout;
        self.timers.arm(Timer::Child(key), later(cx.now, leak_timeout));
    }

    /// Aborts a running child as an outsider would: its supervisor handles this as a failure.
    pub(in crate::core) fn kill(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let ChildState::Stopping { .. } = self.entry(key).state else {
            return self.fail_running(key, ExitReason::Aborted, true, cx);
        };
        self.abort(key, cx);
    }

    /// Kills a child that has a task.
    pub(in crate::core) fn kill_if_running(
        &mut self,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.entry(key);
        if !entry.state.is_live() {
            return Some(ChildAnswer::InvalidState(entry.lifecycle));
        }
        self.kill(key, cx);
        Some(ChildAnswer::Done)
    }

    /// Stops a child that has a task, and leaves it down or removes it when it is gone, whatever it may be stopped for
    /// already.
    pub(in crate::core) fn stop_for_good(&mut self, key: Key, removes: bool, cx: &mut StepCx<'_>) {
        let (stop, then) = match removes {
            true => (StopReason::Removal, AfterFailing::Remove),
            false => (StopReason::Manual, AfterFailing::StayDown),
        };
        if !matches!(self.entry(key).state, ChildState::Stopping { .. }) {
            return self.begin_stop(key, stop, cx);
        }
        self.set_why(key, |why| match why {
            // Another caller has the name free when the child is down.
            why if why.removes() => why,
            StopReason::Failing { active, .. } => StopReason::Failing { active, then },
            _ => stop,
        });
    }

    /// Starts a stopping child when it is gone.
    pub(in crate::core) fn start_when_down(&mut self, key: Key) {
        self.set_why(key, |why| match why {
            StopReason::Failing { active, .. } => {
                StopReason::Failing { active, then: AfterFailing::Start }
            }
            // The lease is sought again.
            StopReason::Lease => StopReason::Lease,
            _ => StopReason::Restart,
        });
    }

    fn set_why(&mut self, key: Key, change: impl FnOnce(StopReason) -> StopReason) {
        if let ChildState::Stopping { why, aborted } = self.entry(key).state {
            self.set(key, ChildState::Stopping { why: change(why), aborted });
        }
    }
}
