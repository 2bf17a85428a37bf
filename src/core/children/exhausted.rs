//! What follows when a limit refuses a restart, as far as it concerns the child alone.
//!
//! The child's fallback comes first, if it has one, then its [`OnExhausted`]. A pause and a fallback
//! end in a start, so the kinds of supervisor treat them like a granted restart. What the other
//! cases mean for the child's group and for the supervisor is up to the kinds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::{
    ChildState, Children, Decision, DownState, ExceededLimit, FailureHistory, Key, RestartDecision,
    StepCx,
};
use crate::exit::ExitReason;
use crate::policy::{EffectivePolicy, OnExhausted, PolicySource, RestartWindow, later};

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
