//! The conditions of a child: a lease, a watchdog, a run-time limit, a health check that restarts it, a failure
//! callback, starts by messages and delayed deliveries.
//!
//! Few children have one. [`Conditions`] is the record of such a child: what its conditions remember of it. The rest of
//! the core calls this file, which looks for the record first, and passes the call to the conditions that it concerns.
//! This file knows the condition behind each event and each call. It doesn't know what a condition decides.
//!
//! | file | what |
//! | --- | --- |
//! | `lease` | children that run only while their lease is granted |
//! | `watchdog` | children that have to send heartbeats |
//! | `run_time` | children that may be active for a limited time |
//! | `health` | the results of health checks |
//! | `callback` | the failure callback |
//! | `message` | children that messages start, and messages that a backoff delays |
//!
//! # Invariants
//!
//! 1. A child has a record exactly while its rules request a condition, or its supervisor has a failure callback. The
//!    fallback of a child needs the lease that the child needs.
//! 2. Without a record, a failure, a start, a stop and an exit of a child enter no other file of this folder, and every
//!    answer about it is constant.
//! 3. An event changes nothing if the incarnation that it names is over, or if nobody waits for what it reports.

mod callback;
mod health;
mod lease;
mod message;
mod run_time;
mod watchdog;

use std::time::{Duration, Instant};

pub(crate) use self::callback::ANSWER_WITHIN;
pub(super) use self::lease::LeaseState;
use self::watchdog::LATE;
pub(super) use self::watchdog::Stall;
use super::{
    ChildEntry, ChildState, Children, ConditionEffect, ConditionEvent as Event, DownState, Effect,
    Key, Machine, StepCx, Timer, each,
};
use crate::exit::ExitReason;
use crate::policy::{ChildRules, RestartType, Revival, StartCause};

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Conditions {
    /// `None`: the child needs no lease.
    pub(super) lease: Option<LeaseState>,
    /// Since when the health check of the current incarnation passes, if its failure would be the child's.
    healthy_since: Option<Instant>,
    /// A message waits for the child, and no incarnation was started since.
    pub(super) message_pending: bool,
    /// Until when messages are held back from the current incarnation, or from the next one if that is a restart.
    pub(super) held: Option<Instant>,
}

/// Whether the rules of a child request a condition.
fn requests_condition(rules: &ChildRules) -> bool {
    let spec = &rules.spec;
    spec.lease_grace.is_some()
        || spec.fails_unhealthy
        || spec.on_message
        || spec.delays_delivery
        || rules.watchdog.is_some()
        || rules.run_time_limit.is_some()
}

impl Machine {
    /// Handles an event of a condition. Returns whether it may have changed something.
    pub(super) fn on_condition(&mut self, event: Event, cx: &mut StepCx<'_>) -> bool {
        // In a supervisor that ends, the child is stopped anyway.
        let (ends, children) = (self.is_ending(), self.children());
        match event {
            Event::Health { key, incarnation, problem } if children.runs(key, incarnation) => {
                self.on_health(key, problem, cx);
            }
            Event::Checked { key, incarnation, passed } if children.runs(key, incarnation) => {
                self.children_mut().on_checked(key, passed, cx.now);
            }
            Event::Heartbeat { key, incarnation, last } if children.runs(key, incarnation) => {
                if !ends {
                    self.children_mut().on_heartbeat(key, last, cx);
                }
            }
            Event::Answered { key, incarnation, decision }
                if children.awaits_decision(key, incarnation) =>
            {
                self.on_decision(key, Some(decision), cx);
            }
            Event::MessagePending { key } if children.state(key).is_some() => {
                if !ends && self.children_mut().note_message(key) {
                    each!(self, kind => kind.start_for_message(key, cx));
                }
            }
            Event::LeaseGranted { key, changes }
                if children.lease(key) == Some(LeaseState::Sought) =>
            {
                self.children_mut().on_lease_granted(key, changes, cx);
            }
            Event::LeaseLost { key } if children.lease(key) == Some(LeaseState::Granted) => {
                self.children_mut().on_lease_lost(key, cx);
            }
            _ => return false,
        }
        true
    }

    /// Ends the leases that their children no longer have a use for.
    pub(super) fn settle_leases(&mut self, cx: &mut StepCx<'_>) {
        for key in std::mem::take(&mut self.children_mut().unchecked_leases) {
            let starts = each!(self, kind => kind.will_be_started(key));
            self.children_mut().settle_lease(key, starts, cx);
        }
    }
}

/// What happens to children, for their conditions.
impl Children {
    /// The child is declared, or has new rules in place of the `old` ones.
    pub(super) fn on_rules(&mut self, key: Key, old: Option<&ChildRules>, cx: &mut StepCx<'_>) {
        let has_callback = self.rules.has_failure_callback;
        let entry = self.entry(key);
        let requested = has_callback || requests_condition(&entry.rules);
        if !requested && entry.conditions.is_none() {
            return;
        }
        entry.conditions.get_or_insert_default();
        if entry.state == ChildState::Active {
            let (since, watchdog) = (entry.since, entry.rules.watchdog);
            if old.is_some_and(|old| old.watchdog != watchdog) {
                self.arm_watchdog(key, cx.now);
            }
            self.arm_run_time_limit(key, since);
        }
        self.update_lease(key, cx);
        if !requested {
            self.entry(key).conditions = None;
        }
    }

    /// An incarnation of the child starts. Returns until when it receives no message.
    pub(super) fn on_start(
        &mut self,
        key: Key,
        cause: StartCause,
        now: Instant,
    ) -> Option<Instant> {
        let conditions = self.entry(key).conditions.as_mut()?;
        (conditions.message_pending, conditions.healthy_since) = (false, None);
        let is_restart = cause == StartCause::Restart;
        conditions.held = conditions.held.filter(|&until| is_restart && until > now);
        conditions.held
    }

    /// The child has become Active.
    pub(super) fn on_active(&mut self, key: Key, now: Instant) {
        if self.entry(key).conditions.is_some() {
            self.arm_watchdog(key, now);
            self.arm_run_time_limit(key, now);
        }
    }

    /// The child has changed its state.
    pub(super) fn on_state(&mut self, key: Key, old: ChildState, new: ChildState) {
        let Some(conditions) = &mut self.entry(key).conditions else { return };
        if let ChildState::Down(down) = new {
            conditions.message_pending &= !down.ignores_messages();
        }
        if old == ChildState::Active {
            self.timers.disarm(Timer::RunTime(key));
        }
        if let ChildState::Down(_) | ChildState::Gated(_) | ChildState::Stopping { .. } = new {
            self.recheck_lease(key);
        }
    }

    /// The child has failed, and its trigger answers that with a restart. Returns whether the failure callback decides
    /// on it first.
    pub(super) fn callback_decides(
        &mut self,
        key: Key,
        active: bool,
        reason: &ExitReason,
        cx: &mut StepCx<'_>,
    ) -> bool {
        self.entry(key).conditions.is_some() && self.ask_callback(key, active, reason, cx)
    }

    /// The child restarts alone, and its delay is over at this instant. Returns when it starts.
    pub(super) fn on_restart(&mut self, key: Key, at: Instant, now: Instant) -> Instant {
        if self.entry(key).conditions.is_some() { self.delay_messages(key, at, now) } else { at }
    }

    /// The next incarnation of the child receives its messages immediately.
    pub(super) fn release_messages(&mut self, key: Key) {
        if let Some(conditions) = &mut self.entry(key).conditions {
            conditions.held = None;
        }
    }

    /// The child may have no use for its lease any more, which is checked at the end of the step.
    pub(super) fn recheck_lease(&mut self, key: Key) {
        if self.lease(key).is_some() {
            self.unchecked_leases.push(key);
        }
    }

    /// Gives up the lease of the child. `release`: another holder may have it immediately.
    pub(super) fn end_lease(&mut self, key: Key, release: bool, cx: &mut StepCx<'_>) {
        if self.lease(key).is_some_and(|state| state != LeaseState::Idle) {
            self.set_lease(key, LeaseState::Idle);
            cx.push(Effect::Condition(ConditionEffect::EndLease { key, release }));
        }
    }

    /// A deadline is handled now.
    pub(super) fn on_due(&mut self, due: Instant, now: Instant) {
        let late = now.saturating_duration_since(due);
        if late > LATE {
            self.note_stall(due, late, now);
        }
    }
}

/// Questions about one child.
impl ChildEntry {
    /// How long the child, which is Active, has been healthy at `now`: since then, or since its health check
    /// passes, if it fails otherwise.
    pub(super) fn healthy_for(&self, now: Instant) -> Duration {
        let since = match &self.conditions {
            Some(conditions) if self.rules.spec.fails_unhealthy => conditions.healthy_since,
            _ => Some(self.since),
        };
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Whether a message starts the child, which is down.
    pub(super) fn is_message_startable(&self) -> bool {
        let idle = matches!(
            self.state,
            ChildState::Down(DownState::Dormant | DownState::Finished | DownState::NotRestarted)
        );
        idle && self.conditions.is_some() && self.rules.spec.on_message
    }

    /// Whether a message waits for the child that no incarnation was started for.
    pub(super) fn has_pending_message(&self) -> bool {
        self.conditions.as_ref().is_some_and(|conditions| conditions.message_pending)
    }
}

/// Questions about children by key.
impl Children {
    /// Returns what is known of the child's lease, if it needs one.
    pub(super) fn lease(&self, key: Key) -> Option<LeaseState> {
        self.entries.get(key)?.conditions.as_ref()?.lease
    }

    /// Whether the child waits for its lease and for nothing else.
    pub(super) fn is_on_standby(&self, key: Key) -> bool {
        self.lease(key) == Some(LeaseState::Sought)
            && matches!(self.state(key), Some(ChildState::Gated(_)))
            && self.entries.get(key).is_some_and(|entry| entry.withheld().is_none())
    }

    /// Whether a waiting message starts the child, which is down.
    pub(super) fn is_started_by_message(&self, key: Key) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.is_message_startable() && entry.has_pending_message())
    }

    /// Whether the child is temporary, and is kept when it is down, for a message to start it.
    pub(super) fn is_dormant_temporary(&self, key: Key) -> bool {
        let Some(entry) = self.entries.get(key) else { return false };
        entry.conditions.is_some()
            && entry.rules.spec.on_message
            && self.rules.revival != Revival::Never
            && entry.rules.restart_type() == RestartType::Temporary
    }
}
