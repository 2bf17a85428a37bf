//! How an incarnation ends, and what it costs.
//!
//! Reports the end, charges a failure, draws the wait, and remembers how it ended. Whether there is to
//! be a restart at all, and who is restarted besides, is decided by the machines.

use std::sync::Arc;
use std::time::Instant;

use super::children::{Children, later};
use super::exhausted::Refused;
use super::state::{Slot, State, Timer, Verdict, Why};
use super::{Decision, Effect, Key, Turn};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{OnExit, Reset, RestartWindow, Rules, StartCause};

impl Children {
    /// Reports the end of an incarnation that nobody asked to end. Returns whether it had been Active,
    /// and how it ended.
    pub(super) fn ended(
        &mut self,
        key: Key,
        reason: ExitReason,
        turn: &mut Turn<'_>,
    ) -> (bool, ExitReason) {
        let active = self.state(key) == Some(State::Active);
        let reason = match reason {
            ExitReason::Failed(error) if !active => ExitReason::ActivationFailed(error),
            reason => reason,
        };
        let ending = Some(reason.kind());
        self.tell_end(key, &reason, turn);
        if reason.is_clean() {
            self.enter(key, Lifecycle::Deactivating, None, turn);
            self.enter(key, Lifecycle::Stopped, ending, turn);
        } else {
            self.enter(key, Lifecycle::Errored, ending, turn);
        }
        self.remember(key, &reason);
        (active, reason)
    }

    /// Reports the end of an incarnation that was asked to end.
    pub(super) fn ended_on_request(&mut self, key: Key, reason: &ExitReason, turn: &mut Turn<'_>) {
        let State::Stopping { why, aborted } = self.slot(key).state else { return };
        if matches!(why, Why::Failing { .. }) {
            return;
        }
        let reason = match reason {
            ExitReason::Aborted if aborted => &ExitReason::Killed,
            reason => reason,
        };
        self.tell_end(key, reason, turn);
        self.enter(key, Lifecycle::Stopped, Some(reason.kind()), turn);
        self.remember(key, reason);
    }

    /// Tells how an incarnation ended, before the edges that follow from it.
    fn tell_end(&mut self, key: Key, reason: &ExitReason, turn: &mut Turn<'_>) {
        let slot = self.slot(key);
        let lived = turn.now.saturating_duration_since(slot.since);
        let lived = (slot.state == State::Active).then_some(lived);
        let incarnation = slot.incarnation;
        let reason = Arc::new(reason.clone());
        turn.push(Effect::Ended { key, incarnation, reason, lived });
    }

    /// Tells what becomes of a child that has ended by itself.
    pub(super) fn tell_decision(
        &mut self,
        key: Key,
        reason: &ExitReason,
        decision: Decision,
        turn: &mut Turn<'_>,
    ) {
        let slot = self.slots.get(key).expect("the child that has ended");
        let (incarnation, log) = (slot.incarnation, slot.failure_log(&self.rules));
        let reason = Arc::new(reason.clone());
        turn.push(Effect::Decided { key, incarnation, reason, decision, log });
    }

    /// Reports that a child declines to run, unless it was being stopped anyway.
    pub(super) fn declined(&mut self, key: Key, turn: &mut Turn<'_>) -> bool {
        match self.slot(key).state {
            State::Activating => {}
            State::Active => self.enter(key, Lifecycle::Deactivating, None, turn),
            _ => return false,
        }
        self.timers.disarm(Timer::Child(key));
        self.enter(key, Lifecycle::Stopped, Some("ignored"), turn);
        true
    }

    /// How a child failed whose task had to be ended afterwards.
    pub(super) fn failure(&mut self, key: Key) -> ExitReason {
        self.slot(key).ledger().last.clone().unwrap_or(ExitReason::Killed)
    }

    /// Charges a failure, and draws the wait before the next attempt.
    pub(super) fn charge(
        &mut self,
        key: Key,
        active: bool,
        then: OnExit,
        reason: &ExitReason,
        turn: &mut Turn<'_>,
    ) -> Verdict {
        let uncharged = then == OnExit::RestartUncharged;
        let paused = self.pauses_until(turn.now);
        let slot = self.slots.get_mut(key).expect("the child that failed");
        let limits = slot.limits(&self.rules);
        slot.ledger();
        // It counts from the failure, which may lie before the end of the task.
        let failed = slot.since;
        let random = &mut self.random;
        let asked = self.rules.retry_after(&slot.options, reason);
        let wait = slot.with_ledger(&self.rules, |ledger, backoff| match asked {
            Some(wait) => Some(ledger.fail_and_wait(wait)),
            None => ledger.fail(backoff, random),
        });
        let Some(delay) = wait.flatten() else {
            let refused = Refused { by_supervisor: false, by_child: true };
            return self.refuse(key, failed, refused, reason, turn);
        };
        let ledger = slot.ledger();
        // An outage is not a bug: as long as the child is held back by a delay, a start that
        // fails is no sign of a tree that cannot work, nor is an end that its trigger says isn't.
        // Unless there are to be no restarts at all.
        let calls_for_it = active || matches!(reason, ExitReason::Escalated { .. });
        let charged = (calls_for_it && !uncharged)
            || self.rules.intensity.is_some_and(|it| it.max() == 0)
            || delay.is_zero()
            || self.rules.charge_everything;
        let attempt = ledger.streak;
        let at = later(failed, delay);
        let (verdict, at, delay) = if let Some(until) = paused {
            ledger.held = None;
            let at = at.max(until);
            (Verdict::PauseUntil(at), at, at.saturating_duration_since(failed))
        } else {
            let quota = &mut ledger.quota;
            let by_child = limits.is_some_and(|limits| !quota.admits(&limits, failed, turn.now));
            let in_window = |window: &RestartWindow| window.admits(turn.now);
            let by_supervisor = charged && !self.window.as_ref().is_none_or(in_window);
            if by_child || by_supervisor {
                let refused = Refused { by_supervisor, by_child };
                return self.refuse(key, failed, refused, reason, turn);
            }
            if let Some(window) = self.window.as_mut().filter(|_| charged) {
                window.record(turn.now);
            }
            match limits {
                Some(limits) => quota.record(&limits, failed, turn.now),
                None => quota.clear(),
            }
            (Verdict::RestartAt(at), at, delay)
        };
        ledger.next = Some((at, delay));
        self.tell_decision(key, reason, Decision::Restart { attempt, delay }, turn);
        verdict
    }

    /// Holds a child back until its deadline, or starts it if that has come.
    pub(super) fn back_off(&mut self, key: Key, until: Instant, turn: &mut Turn<'_>) {
        if until <= turn.now {
            return self.launch(key, StartCause::Restart, turn);
        }
        self.set(key, State::Backoff);
        self.enter(key, Lifecycle::Restarting, None, turn);
        self.timers.arm(Timer::Child(key), until);
    }

    /// Keeps how an incarnation ended.
    fn remember(&mut self, key: Key, reason: &ExitReason) {
        let slot = self.slot(key);
        // A clean end is kept only over a failure.
        if slot.ledger.is_some() || !reason.is_clean() {
            slot.ledger().last = Some(reason.clone());
        }
    }

    /// The child says itself that it is well.
    pub(super) fn healthy(&mut self, key: Key) {
        let slot = self.slots.get_mut(key).expect("the child that says so");
        slot.with_ledger(&self.rules, |ledger, backoff| {
            if !backoff.resets_on(Reset::Never) {
                ledger.recover();
            }
        });
    }

    /// The child has become ready, which may be all that it takes.
    pub(super) fn is_ready(&mut self, key: Key) {
        self.recovers_on(key, Reset::OnReady);
    }

    /// The child has acknowledged a message, which may be all that it takes.
    pub(super) fn acknowledged(&mut self, key: Key) {
        self.recovers_on(key, Reset::OnAck);
    }

    fn recovers_on(&mut self, key: Key, rule: Reset) {
        let slot = self.slots.get_mut(key).expect("the child that runs");
        slot.with_ledger(&self.rules, |ledger, backoff| {
            if backoff.resets_on(rule) {
                ledger.recover();
            }
        });
    }

    /// A child fails while its task runs on. The task is ended; then comes the decision.
    pub(super) fn fail_running(
        &mut self,
        key: Key,
        reason: ExitReason,
        at_once: bool,
        turn: &mut Turn<'_>,
    ) {
        let active = self.state(key) == Some(State::Active);
        self.tell_end(key, &reason, turn);
        self.enter(key, Lifecycle::Errored, Some(reason.kind()), turn);
        self.remember(key, &reason);
        let why = Why::Failing { active, by_hand: false };
        if at_once {
            self.set(key, State::Stopping { why, aborted: false });
            self.abort(key, turn);
        } else {
            self.begin_stop(key, why, turn);
        }
    }

    /// Aborts a running child as an outsider would: for its supervisor it is a failure.
    pub(super) fn kill(&mut self, key: Key, turn: &mut Turn<'_>) {
        let State::Stopping { .. } = self.slot(key).state else {
            return self.fail_running(key, ExitReason::Aborted, true, turn);
        };
        self.abort(key, turn);
    }
}

impl Slot {
    /// Forgets earlier failures of a child that has been Active for long enough at `now`.
    pub(super) fn forgive(&mut self, rules: &Rules, now: Instant) {
        // Only then does it matter that a child was well that has never failed.
        if self.ledger.is_none() && !rules.backoff(&self.options).is_at_once(true) {
            return;
        }
        self.ledger();
        let lived = now.saturating_duration_since(self.since);
        self.with_ledger(rules, |ledger, backoff| ledger.forgive(backoff, lived));
    }
}
