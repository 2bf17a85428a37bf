//! What a failure costs and how long the delay is, calculated a second time, simply.
//!
//! These checks use exits, decisions and the rules. They use neither groups nor the machine's counters.
//!
//! # Invariants
//!
//! 1. An end is decided once, by the child's trigger, and once more if that leaves a failed child down
//!    and a message starts it. That start waits like a restart, and the supervisor's limit ignores it.
//! 2. A charged restart is granted if and only if the limits of the supervisor and of the child have
//!    room for it. A granted restart is recorded by all limits, a refused one by none. In a pause
//!    nothing counts, and no child is restarted before its end.
//! 3. The delay is the one that the error sets, or else the next one of the backoff's curve. The
//!    curve resets after the child was active for long enough (since its health check passes, if the child
//!    fails otherwise), or has reported that it is healthy.
//! 4. The machine shows as many restarts and failures as there were.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{DeclaredChild, Invariants, Violation, ensure};
use crate::core::{Decision, Key, Machine};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FirstStart, OnExhausted, OnExit, Reset, Revival};

impl Invariants {
    pub(super) fn decided(
        &mut self,
        key: Key,
        reason: &ExitReason,
        decision: Decision,
        now: Instant,
    ) -> Result<(), Violation> {
        let (ordered, up, is_ending) = (self.ordered, self.up, self.ending);
        let rules = Arc::clone(&self.rules);
        self.undecided.take_if(|of| *of == key);
        let child = self.child(key);
        let by_message = child.not_restarted && child.must_start_on_message();
        let again = std::mem::replace(&mut child.decided, true);
        ensure(again == by_message, "an end is decided once, and once more for each message")?;
        if by_message {
            let at_once = rules.revival == Revival::AtOnce && child.is_dormant_temporary();
            ensure(!at_once, "a start that doesn't wait is charged to no limit")?;
            return self.check_attempt(key, reason, decision, None, now);
        }
        if decision == Decision::Exit {
            self.ending = true;
            return ensure(reason.exit_code().is_some(), "only an exit policy ends the program");
        }
        let allowed = reason.exit_code().is_none() || is_ending;
        ensure(allowed, "an exit policy ends the program, unless it is ending")?;
        ensure(child.group_stop_from.is_none(), "an end in a range that is being stopped is free")?;
        let clean = reason.is_clean();
        let first = ordered && !up && rules.first_start == FirstStart::Fail;
        if first && !child.has_passed && !clean {
            self.ending = true;
            return ensure(decision == Decision::FailStart, "a first start is not tried again");
        }
        let then = child.on_exit(reason);
        let right = match decision {
            Decision::Leave => then == OnExit::Leave,
            Decision::EndSupervisor => then == OnExit::EndSupervisor,
            Decision::FailSupervisor => then == OnExit::FailSupervisor,
            Decision::FailStart => false,
            Decision::Restart { .. }
            | Decision::GiveUp { .. }
            | Decision::FallBack
            | Decision::Pause { .. }
            | Decision::Decline
            | Decision::Escalate
            | Decision::Exit => then.restarts(),
        };
        ensure(right, "the decision is that of the child's trigger")?;
        child.returns = then.restarts();
        child.not_restarted = decision == Decision::Leave;
        child.has_passed |= child.not_restarted && clean;
        child.set_down &= !child.not_restarted;
        if !child.returns {
            self.ending |= then != OnExit::Leave;
            return Ok(());
        }
        match decision {
            Decision::Decline | Decision::Escalate => {
                return self.check_resolution(key, clean, decision);
            }
            _ => self.check_resolution(key, clean, decision)?,
        }
        self.check_attempt(key, reason, decision, Some(then), now)
    }

    /// Checks what another attempt costs and when it is due. `None`: a message starts the child, which its
    /// trigger has left down.
    fn check_attempt(
        &mut self,
        key: Key,
        reason: &ExitReason,
        decision: Decision,
        then: Option<OnExit>,
        now: Instant,
    ) -> Result<(), Violation> {
        let (ordered, rules) = (self.ordered, Arc::clone(&self.rules));
        let child = self.child(key);
        let backoff = child.backoff().clone();
        let retry_after = child.rules.retry_after.delay(reason);
        let drawn = [0.0, 1.0]
            .map(|unit| backoff.delay(child.drawn, &mut || unit).expect("a curve without an end"));
        let [least, most] = retry_after.map_or(drawn, |wait| [wait; 2]);
        child.consecutive_failures += 1;
        child.drawn += u32::from(retry_after.is_none());
        let (consecutive_failures, since, was_active) =
            (child.consecutive_failures, child.since, child.was_active);
        let free = match then {
            Some(OnExit::RestartUncharged) => true,
            _ => {
                let is_bug =
                    matches!(reason, ExitReason::Escalated { .. } | ExitReason::Panicked(_));
                !was_active && !is_bug
            }
        };
        let counts = then.is_some()
            && (!free
                || rules.intensity.is_some_and(|intensity| intensity.max() == 0)
                || least.is_zero()
                || rules.count_failed_starts);
        let limits = child.limits().counting(counts);
        let (on_exhausted, has_fallback) = (child.on_exhausted(), child.rules.fallback.is_some());
        let paused = self.paused.filter(|&until| until > now);
        let by_child = !self.child(key).own_grants.fit(&limits, since, now);
        let by_supervisor = counts && !self.granted.fit(rules.intensity, now);
        let refused = paused.is_none() && (by_child || by_supervisor);
        let falls_back = refused && has_fallback;
        let right = match decision {
            Decision::Restart { .. } => !refused,
            Decision::FallBack => falls_back,
            Decision::GiveUp { .. } | Decision::Pause { .. } => refused && !falls_back,
            Decision::Leave
            | Decision::EndSupervisor
            | Decision::FailSupervisor
            | Decision::FailStart
            | Decision::Decline
            | Decision::Escalate
            | Decision::Exit => false,
        };
        ensure(right, "it is restarted unless a limit is reached, and only then given up")?;
        self.child(key).not_restarted &= !matches!(decision, Decision::GiveUp { .. });
        match decision {
            Decision::Restart { attempt, delay } => {
                ensure(attempt == consecutive_failures, "a restart has the number of the attempt")?;
                let rest = paused.map_or(Duration::ZERO, |until| until - since);
                let waits = least.max(rest)..=most.max(rest);
                ensure(waits.contains(&delay), "a delay is that of the curve, or of the pause")?;
                if paused.is_none() {
                    self.child(key).own_grants.record(&limits, since, now);
                }
                if paused.is_none() && counts {
                    self.granted.record(rules.intensity, now);
                }
                self.note_delay(key, since, delay, paused.is_some(), now);
            }
            Decision::Pause { length } => {
                let OnExhausted::Pause(configured) = on_exhausted else {
                    return Err("only a supervisor with `Pause` pauses".to_owned());
                };
                let drawn = [0.0, 1.0].map(|unit| backoff.spread(configured, &mut || unit));
                let right = (drawn[0]..=drawn[1]).contains(&length);
                ensure(right, "a pause is as long as configured, plus its jitter")?;
                if by_supervisor {
                    self.granted.clear();
                    self.paused = Some(since + length);
                }
                if by_child {
                    self.child(key).own_grants.clear();
                }
                self.child(key).held = None;
                self.restart_due_at(key, since + length);
            }
            Decision::FallBack => {
                let child = self.child(key);
                child.own_grants.clear();
                (child.consecutive_failures, child.drawn, child.held) = (0, 0, None);
                self.restart_due_at(key, since);
                self.child(key).not_restarted = false;
            }
            Decision::GiveUp { .. } => match on_exhausted {
                OnExhausted::Park | OnExhausted::StopChild => self.begin_group_stop(key, false),
                OnExhausted::Remove if by_child => {
                    if ordered {
                        self.begin_group_stop(key, false);
                    }
                }
                OnExhausted::Escalate | OnExhausted::Remove | OnExhausted::Exit(_) => {
                    self.ending = true;
                }
                OnExhausted::Pause(_) => {
                    return Err("a child of a pausing supervisor is not given up".to_owned());
                }
            },
            Decision::Leave
            | Decision::EndSupervisor
            | Decision::FailSupervisor
            | Decision::FailStart
            | Decision::Decline
            | Decision::Escalate
            | Decision::Exit => {}
        }
        Ok(())
    }

    /// Notes that the child restarts at `at`, and its group with it unless a message starts it.
    pub(super) fn restart_due_at(&mut self, key: Key, at: Instant) {
        self.child(key).due = Some(at);
        if !self.child(key).not_restarted {
            self.begin_group_stop(key, false);
        }
    }

    /// Notes that the fallback replaces the child.
    pub(super) fn replaced(&mut self, key: Key) -> Result<(), Violation> {
        let child = self.child(key);
        let Some(rules) = child.rules.fallback.clone() else {
            return Err("only a child with a fallback is replaced".to_owned());
        };
        child.declaration = Arc::new(DeclaredChild {
            name: Arc::clone(&child.declaration.name),
            options: Arc::clone(&rules.spec),
            requires: child.declaration.requires.clone(),
        });
        (child.rules, child.replaced) = (rules, true);
        Ok(())
    }

    /// Notes that a child has left a state.
    pub(super) fn note_left(&mut self, key: Key, from: Lifecycle, since: Instant, now: Instant) {
        let child = self.child(key);
        let resets_after = child.backoff().resets_after();
        let healthy = child.healthy_for(since, now);
        if from == Lifecycle::Active && resets_after.is_some_and(|enough| healthy >= enough) {
            (child.consecutive_failures, child.drawn) = (0, 0);
            child.own_grants.reset();
        }
    }

    /// Notes that a child has entered a state.
    pub(super) fn note_entered(&mut self, key: Key, to: Lifecycle) {
        let child = self.child(key);
        if to == Lifecycle::Active && child.backoff().resets_on(Reset::OnReady) {
            (child.consecutive_failures, child.drawn) = (0, 0);
            child.own_grants.reset();
        }
    }

    pub(super) fn check_costs(&mut self, machine: &Machine, now: Instant) -> Result<(), Violation> {
        let intensity = self.rules.intensity;
        let granted = self.granted.count(intensity, now);
        ensure(machine.intensity(now).0 == granted, "restarts are counted")?;
        if intensity.is_some_and(|intensity| intensity.decay().is_none() && !intensity.tumbles()) {
            let window = machine.children().window.as_ref();
            let kept = window.into_iter().flat_map(|window| window.granted(now));
            let exact = kept.eq(self.granted.at().iter().copied());
            ensure(exact, "restarts count from when they were granted")?;
        }
        for (key, child) in self.present() {
            let history = machine.view(key, now).and_then(|view| view.history);
            let attempt = history.map_or(0, |history| history.attempt);
            let resets_after = child.backoff().resets_after();
            let well = child.lifecycle == Lifecycle::Active
                && resets_after.is_some_and(|enough| child.healthy_for(child.since, now) >= enough);
            let consecutive_failures = if well { 0 } else { child.consecutive_failures };
            ensure(attempt == consecutive_failures, "failures in a row are counted")?;
        }
        Ok(())
    }
}
