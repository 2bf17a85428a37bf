//! Reporting how an incarnation ended, and remembering it.
//!
//! Whether there is a restart, and which siblings restart too, is up to the kinds of supervisor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::{
    AfterFailing, ChildState, Children, Decision, Effect, Ending, Key, PastExit, StepCx,
    StopReason, Timer,
};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::Reset;

impl Children {
    /// Reports the end of an incarnation that was not stopped. Returns whether the child had been
    /// Active, and how it ended.
    pub(in crate::core) fn report_ended(
        &mut self,
        key: Key,
        reason: ExitReason,
        cx: &mut StepCx<'_>,
    ) -> (bool, Arc<ExitReason>) {
        let active = self.state(key) == Some(ChildState::Active);
        let reason = seen(reason, active);
        let ending = Some(Ending::Exit(reason.exit_kind()));
        let lived = self.push_ended(key, &reason, cx);
        if reason.is_clean() {
            self.enter(key, Lifecycle::Deactivating, None, cx);
            self.enter(key, Lifecycle::Stopped, ending, cx);
        } else {
            self.enter(key, Lifecycle::Errored, ending, cx);
        }
        self.remember(key, &reason, lived, cx.now);
        (active, reason)
    }

    /// Reports the end of an incarnation that was stopped. Returns how it ended.
    pub(in crate::core) fn report_stopped(
        &mut self,
        key: Key,
        reason: ExitReason,
        cx: &mut StepCx<'_>,
    ) -> Arc<ExitReason> {
        let ChildState::Stopping { why, aborted } = self.entry(key).state else {
            return Arc::new(reason);
        };
        let reason = Arc::new(match reason {
            ExitReason::Aborted if aborted => ExitReason::Killed,
            reason => reason,
        });
        // The end of a child that has failed was reported when it failed.
        if !matches!(why, StopReason::Failing { .. }) {
            let lived = self.push_ended(key, &reason, cx);
            let ending = match reason.exit_kind() {
                ExitKind::Killed => Ending::Killed(self.entry(key).rules.shutdown.abort_kind()),
                kind => Ending::Exit(kind),
            };
            self.enter(key, Lifecycle::Stopped, Some(ending), cx);
            self.remember(key, &reason, lived, cx.now);
        }
        reason
    }

    /// Reports that a child declines to run. Returns `false` if it was being stopped anyway.
    pub(in crate::core) fn report_declined(&mut self, key: Key, cx: &mut StepCx<'_>) -> bool {
        match self.entry(key).state {
            ChildState::Activating => {}
            ChildState::Active => self.enter(key, Lifecycle::Deactivating, None, cx),
            _ => return false,
        }
        self.timers.disarm(Timer::Child(key));
        self.enter(key, Lifecycle::Stopped, Some(Ending::Declined), cx);
        true
    }

    /// A child fails while its task still runs. The task is ended first, then the failure is decided
    /// on.
    pub(in crate::core) fn fail_running(
        &mut self,
        key: Key,
        reason: ExitReason,
        abort: bool,
        cx: &mut StepCx<'_>,
    ) {
        let active = self.state(key) == Some(ChildState::Active);
        let reason = seen(reason, active);
        let lived = self.push_ended(key, &reason, cx);
        self.enter(key, Lifecycle::Errored, Some(Ending::Exit(reason.exit_kind())), cx);
        self.remember(key, &reason, lived, cx.now);
        let why = StopReason::Failing { active, then: AfterFailing::Decide };
        if abort {
            self.set(key, ChildState::Stopping { why, aborted: false });
            self.abort(key, cx);
        } else {
            self.begin_stop(key, why, cx);
        }
    }

    /// The child's own task has ended, and what is left of the incarnation was aborted. It ends or leaks now.
    pub(in crate::core) fn on_remaining(
        &mut self,
        key: Key,
        reason: Option<ExitReason>,
        cx: &mut StepCx<'_>,
    ) {
        match (self.entry(key).state, reason) {
            (ChildState::Active | ChildState::Activating, Some(reason)) if !reason.is_clean() => {
                self.fail_running(key, reason, true, cx);
            }
            (ChildState::Active | ChildState::Activating, _) => {
                self.enter(key, Lifecycle::Deactivating, None, cx);
                let why = StopReason::OwnRequest;
                self.set(key, ChildState::Stopping { why, aborted: false });
                self.abort(key, cx);
            }
            (ChildState::Stopping { .. }, _) => self.abort(key, cx),
            _ => {}
        }
    }

    /// Reports what becomes of a child that has ended by itself.
    pub(in crate::core) fn report_decision(
        &mut self,
        key: Key,
        reason: &Arc<ExitReason>,
        decision: Decision,
        cx: &mut StepCx<'_>,
    ) {
        let entry = self.entry(key);
        let (incarnation, log) = (entry.incarnation, entry.failure_log());
        let last = entry.history.as_ref().and_then(|history| history.last.as_ref());
        let lived = last.filter(|last| last.incarnation == incarnation).and_then(|last| last.lived);
        let restart_type = self.restart_type(key);
        let reason = Arc::clone(reason);
        cx.push(Effect::Decided { key, incarnation, reason, decision, restart_type, lived, log });
    }

    /// Returns how long the child had been Active, if it was.
    fn push_ended(
        &mut self,
        key: Key,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) -> Option<Duration> {
        let entry = self.entry(key);
        // A step becomes active as it ends: it has lived since its start.
        let is_step = entry.since == cx.now && reason.is_clean();
        let since = entry.started.filter(|_| is_step).unwrap_or(entry.since);
        let lived = cx.now.saturating_duration_since(since);
        let lived = (entry.state == ChildState::Active).then_some(lived);
        let incarnation = entry.incarnation;
        let reason = Arc::clone(reason);
        cx.push(Effect::Ended { key, incarnation, reason, lived });
        lived
    }

    fn remember(
        &mut self,
        key: Key,
        reason: &Arc<ExitReason>,
        lived: Option<Duration>,
        at: Instant,
    ) {
        let entry = self.entry(key);
        let (reason, incarnation) = (Arc::clone(reason), entry.incarnation);
        // A clean end only replaces an earlier failure.
        if entry.history.is_some() || !reason.is_clean() {
            entry.history_mut().last = Some(PastExit { reason, incarnation, at, lived });
        }
    }

    /// How a child failed whose task had to be ended afterwards.
    pub(in crate::core) fn failure(&mut self, key: Key) -> Arc<ExitReason> {
        let last = self.entry(key).history_mut().last.as_ref().map(|last| Arc::clone(&last.reason));
        last.unwrap_or_else(|| Arc::new(ExitReason::Killed))
    }

    /// The child reports that it works.
    pub(in crate::core) fn on_healthy(&mut self, key: Key) {
        self.entry(key).with_history(|history, backoff| {
            if !backoff.resets_on(Reset::Never) {
                history.recover();
                history.tracker.forget_default();
            }
        });
    }

    /// Resets the child's failures if the backoff's reset rule is this one.
    pub(in crate::core) fn recover_on(&mut self, key: Key, rule: Reset) {
        self.entry(key).with_history(|history, backoff| {
            if backoff.resets_on(rule) {
                history.recover();
                // A message that was handled is work that was done. Being ready isn't.
                if rule == Reset::OnAck {
                    history.tracker.forget_default();
                }
            }
        });
    }
}

/// Returns a reason as it is reported: an error before the child was active is a failed activation.
fn seen(reason: ExitReason, active: bool) -> Arc<ExitReason> {
    Arc::new(match reason {
        ExitReason::Failed(error) if !active => ExitReason::ActivationFailed(error),
        reason => reason,
    })
}
