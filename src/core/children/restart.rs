//! What a failure costs, the delay before the next attempt, and what follows when a limit refuses the restart.
//!
//! A failure that the trigger does not answer with a restart costs nothing and has no delay, unless a
//! message starts the child again. That start waits like a restart, and only the child's own limits
//! count it.
//!
//! When a limit refuses a restart, the child's fallback comes first, if it has one, then its [`OnExhausted`]. A pause and a
//! fallback end in a start, so the kinds of supervisor treat them like a granted restart. What the other
//! cases mean for the child's group and for the supervisor is up to the kinds.
//!
//! # Invariants
//!
//! 1. Every delay counts from the failure, which may lie before the end of the task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::later;
use crate::core::{
    ChildState, Children, Decision, DownState, ExceededLimit, FailureHistory, Key, RestartDecision,
    StepCx, Timer, exceeded_window,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    EffectivePolicy, OnExhausted, OnExit, PolicySource, RestartWindow, StartCause,
};

impl Children {
    /// Draws the delay after a failure, and charges the failure if the limits allow a restart.
    ///
    /// A start that fails is an outage rather than a bug while a delay holds the child back, so it is
    /// not charged; nor is an exit that the trigger exempts. A panic is a bug whenever it occurs. A limit of
    /// zero restarts overrides all of this.
    pub(in crate::core) fn decide_restart(
        &mut self,
        key: Key,
        active: bool,
        on_exit: OnExit,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) -> RestartDecision {
        let exempt = on_exit == OnExit::RestartUncharged;
        let is_bug = matches!(**reason, ExitReason::Escalated { .. } | ExitReason::Panicked(_));
        let is_fault = (active || is_bug) && !exempt;
        let forbidden = self.rules.intensity.is_some_and(|it| it.max() == 0);
        let always = is_fault || forbidden || self.rules.count_failed_starts;
        self.decide_attempt(key, |delay| always || delay.is_zero(), reason, cx)
    }

    /// Draws the delay, and counts the failure if the limits allow another attempt. `is_charged`: whether the
    /// supervisor counts an attempt with this delay.
    pub(in crate::core) fn decide_attempt(
        &mut self,
        key: Key,
        is_charged: impl FnOnce(Duration) -> bool,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) -> RestartDecision {
        let paused = self.pauses_until(cx.now);
        let entry = self.entries.get_mut(key).expect("the child that failed");
        let limits = entry.limits();
        let failed = entry.since;
        entry.history_mut().first_failure.get_or_insert(failed);
        let asked = match entry.rules.retry_after.is_empty() {
            true => None,
            false => cx.user_code.retry_after(key, &entry.rules.retry_after, reason),
        };
        let user_code = &mut *cx.user_code;
        let wait = entry.with_history(|history, backoff| match asked {
            Some(wait) => Some(history.fail_and_wait(wait)),
            None => history.fail(backoff, |position| user_code.delay(key, backoff, position)),
        });
        let Some(delay) = wait.flatten() else {
            let restarts = entry.history_mut().consecutive_failures.saturating_sub(1);
            let limit = ExceededLimit::Delays { restarts };
            let by = RefusedBy { supervisor: false, child: true, limit };
            return self.on_refused(key, failed, by, reason, cx);
        };
        if paused.is_some() {
            self.release_messages(key);
        }
        let history = self.entries.get_mut(key).expect("the child that failed").history_mut();
        let charged = is_charged(delay);
        let limits = limits.map(|limits| limits.counting(charged));
        let attempt = history.consecutive_failures;
        let at = later(failed, delay);
        let (decision, at, delay) = if let Some(until) = paused {
            let at = at.max(until);
            (RestartDecision::PauseUntil(at), at, at.saturating_duration_since(failed))
        } else {
            let tracker = &mut history.tracker;
            let by_child = limits.and_then(|limits| tracker.exceeded(&limits, failed, cx.now));
            let window = self.window.as_ref().filter(|_| charged);
            let by_supervisor = window
                .and_then(|window| exceeded_window(window, cx.now))
                .map(|(intensity, restarts)| ExceededLimit::Supervisor { intensity, restarts });
            if let Some(limit) = by_child.or(by_supervisor) {
                let (supervisor, child) = (by_supervisor.is_some(), by_child.is_some());
                let by = RefusedBy { supervisor, child, limit };
                return self.on_refused(key, failed, by, reason, cx);
            }
            if let Some(window) = self.window.as_mut().filter(|_| charged) {
                window.record(cx.now);
            }
            match limits {
                Some(limits) => tracker.record_restart(&limits, failed, cx.now),
                None => tracker.clear(),
            }
            (RestartDecision::RestartAt(at), at, delay)
        };
        history.next = Some((at, delay));
        self.report_decision(key, reason, Decision::Restart { attempt, delay }, cx);
        decision
    }

    /// Starts a child that restarts by itself at `at`, or its delayed delivery.
    pub(in crate::core) fn restart(&mut self, key: Key, at: Instant, cx: &mut StepCx<'_>) {
        let start = self.on_restart(key, at, cx.now);
        self.back_off(key, start, StartCause::Restart, cx);
    }

    /// Starts a child at `until`, or now if that is past.
    pub(in crate::core) fn back_off(
        &mut self,
        key: Key,
        until: Instant,
        cause: StartCause,
        cx: &mut StepCx<'_>,
    ) {
        if until <= cx.now {
            return self.launch(key, cause, cx);
        }
        self.set(key, ChildState::Backoff(cause));
        self.enter(key, Lifecycle::Restarting, None, cx);
        self.timers.arm(Timer::Child(key), until);
    }
}

/// Which limits refuse a restart: at least one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedBy {
    /// The intensity of the supervisor.
    pub(super) supervisor: bool,
    /// A limit of the child itself.
    pub(super) child: bool,
    /// The limit that the log names.
    pub(super) limit: ExceededLimit,
}

impl Children {
    /// The end of the current pause. Until then no failure is charged, and no child that fails is
    /// restarted.
    pub(in crate::core) fn pauses_until(&self, now: Instant) -> Option<Instant> {
        self.paused.filter(|&until| until > now)
    }

    /// Decides on a child that failed at `failed` and may not be restarted.
    pub(super) fn on_refused(
        &mut self,
        key: Key,
        failed: Instant,
        by: RefusedBy,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) -> RestartDecision {
        self.entry(key).history_mut().next = None;
        if self.entry(key).rules.fallback.is_some() {
            self.report_decision(key, reason, Decision::FallBack, cx);
            self.use_fallback(key, failed, cx);
            return RestartDecision::RestartAt(failed);
        }
        let entry = self.entries.get(key).expect("the child that failed");
        match entry.on_exhausted() {
            OnExhausted::Pause(length) => {
                // Drawn once, when the pause begins.
                let length = cx.user_code.spread(key, entry.backoff(), length);
                self.pause(key, failed, length, by, reason, cx)
            }
            on_exhausted => {
                // The removal of a child doesn't reset the limit of all.
                let on_exhausted = match on_exhausted {
                    OnExhausted::Remove if !by.child => OnExhausted::Escalate,
                    other => other,
                };
                let failing = self.entry(key).history_mut().failing(failed, cx.now);
                let (limit, source) = (by.limit, self.limit_source(key, by.limit));
                let decision = Decision::GiveUp { limit, source, failing, then: on_exhausted };
                self.report_decision(key, reason, decision, cx);
                RestartDecision::Exhausted(on_exhausted)
            }
        }
    }

    /// Returns where a limit of the child was written.
    fn limit_source(&self, key: Key, limit: ExceededLimit) -> PolicySource {
        let entry = self.entries.get(key).expect("the child that failed");
        let own = entry.own_policy().map(Arc::clone);
        let policy = EffectivePolicy::new(Arc::clone(&entry.rules), own).sources();
        match limit {
            ExceededLimit::Supervisor { .. } => self.rules.intensity_from,
            ExceededLimit::Own { .. } => policy.intensity,
            ExceededLimit::Consecutive { .. } => policy.consecutive_restarts,
            ExceededLimit::FailingFor { .. } => policy.failing_for,
            ExceededLimit::Delays { .. } => policy.backoff,
        }
    }

    /// Replaces the child's spec by its fallback, with an empty history.
    fn use_fallback(&mut self, key: Key, failed: Instant, cx: &mut StepCx<'_>) {
        // Taken down with its old rules, so that what is counted over all children stays right.
        self.set(key, ChildState::Down(DownState::GivenUp));
        let Some(fallback) = self.entry(key).rules.fallback.clone() else { return };
        self.set_child_rules(key, fallback, cx);
        self.release_messages(key);
        let history = self.entry(key).history_mut();
        let mut fresh = FailureHistory::default();
        fresh.last = history.last.take();
        fresh.next = Some((failed, Duration::ZERO));
        *history = fresh;
    }

    /// Restarts the child when the pause is over, and resets the limits that have refused it. If the
    /// supervisor's limit has, all children pause.
    fn pause(
        &mut self,
        key: Key,
        failed: Instant,
        length: Duration,
        by: RefusedBy,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) -> RestartDecision {
        let until = later(failed, length);
        if by.supervisor {
            self.reset_window();
            self.paused = Some(until);
        }
        let history = self.entry(key).history_mut();
        if by.child {
            history.tracker.clear();
            history.first_failure = None;
        }
        history.next = Some((until, length));
        self.release_messages(key);
        self.report_decision(key, reason, Decision::Pause { length }, cx);
        RestartDecision::PauseUntil(until)
    }

    /// Resets the limits that apply to a child which a caller retries.
    pub(in crate::core) fn reset_limits(&mut self, key: Key) {
        self.reset_window();
        if let Some(history) = &mut self.entry(key).history {
            history.tracker.clear();
            history.first_failure = None;
        }
    }

    fn reset_window(&mut self) {
        self.window = self.rules.intensity.map(RestartWindow::new);
    }
}
