//! Starting an incarnation, or waiting for what it requires or for a caller that holds the child.
//!
//! Which child is started when, and for which cause, is up to the kinds of supervisor. A hold suspends starts: a held child that
//! runs keeps running, and once it is down it is gated, like a child that its configuration withholds. Failures are charged and
//! delayed as usual.
//!
//! # Invariants
//!
//! 1. A held child is started by nothing: no backoff that ends, no group, no message and no call.
//! 2. A release starts the child if it is gated and all its requirements are met. A child that is down for another reason
//!    stays down.

use std::time::Duration;

use crate::clock::later;
use crate::core::{
    ChildAnswer, ChildEntry, ChildState, Children, Effect, Key, LeaseState, RequirementId, StepCx,
    Ticket, Timer, WaitFor,
};
use crate::lifecycle::Lifecycle;
use crate::policy::{Reset, StartCause};

impl Children {
    /// Starts a child that has no task, or gates it.
    pub(in crate::core) fn launch(&mut self, key: Key, cause: StartCause, cx: &mut StepCx<'_>) {
        self.timers.disarm(Timer::Child(key));
        if self.entry(key).withheld().is_some() {
            return self.gate(key, cause, cx);
        }
        if let Some((lacking, _)) = self.requirements.lacks(key) {
            self.requirements.wait(key, lacking);
            if lacking == RequirementId::Lease(key) {
                self.seek_lease(key, cx);
            }
            return self.gate(key, cause, cx);
        }
        self.enter(key, Lifecycle::Resolved, None, cx);
        let entry = self.entry(key);
        entry.incarnation = entry.incarnation.saturating_add(1);
        entry.started = Some(cx.now);
        let (incarnation, signals) = (entry.incarnation, entry.rules.spec.facts.signals);
        if let Some(history) = &mut entry.history {
            (history.next, history.policy) = (None, None);
        }
        let held = self.on_start(key, cause, cx.now);
        self.set(key, ChildState::Activating);
        self.enter(key, Lifecycle::Activating, None, cx);
        cx.push(Effect::Start { key, incarnation, cause, held });
        if !signals {
            self.on_ready(key, cx);
        } else if let Some(timeout) = self.activation_timeout(key) {
            self.timers.arm(Timer::Child(key), later(cx.now, timeout));
        }
    }

    fn activation_timeout(&self, key: Key) -> Option<Duration> {
        self.entries.get(key).and_then(|entry| entry.rules.activation_timeout)
    }

    pub(in crate::core) fn on_ready(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.timers.disarm(Timer::Child(key));
        self.set(key, ChildState::Active);
        self.enter(key, Lifecycle::Active, None, cx);
        self.on_active(key, cx.now);
        self.recover_on(key, Reset::OnReady);
        let incarnation = self.entry(key).incarnation;
        self.answer_up(key, &ChildAnswer::Started(incarnation), cx);
        self.answer_seekers(key, &ChildAnswer::Started(incarnation), cx);
    }

    /// Leaves a child alone that is up, or on its way up. Returns the answer for the caller, unless that comes
    /// later.
    pub(in crate::core) fn keep_running(
        &mut self,
        ticket: Ticket,
        key: Key,
    ) -> Option<ChildAnswer> {
        let entry = self.entry(key);
        match entry.state {
            ChildState::Active => Some(ChildAnswer::Started(entry.incarnation)),
            _ => self.wait(key, ticket, WaitFor::Renewed),
        }
    }

    /// Makes a child wait for what it lacks.
    pub(super) fn gate(&mut self, key: Key, cause: StartCause, cx: &mut StepCx<'_>) {
        if let Some(history) = &mut self.entry(key).history {
            history.next = None;
        }
        if self.entry(key).lifecycle != Lifecycle::Discovered {
            self.enter(key, Lifecycle::Resolved, None, cx);
            self.enter(key, Lifecycle::Discovered, None, cx);
        }
        self.set(key, ChildState::Gated(cause));
        if self.entry(key).withheld().is_some() {
            self.answer_down(key, cx);
            self.note_down(key);
        }
        // The requirement may never be met, so callers do not wait for it.
        if self.is_blocked_for_good(key) {
            self.answer_up(key, &ChildAnswer::Gated, cx);
        }
    }

    /// Whether no event inside the supervisor will meet what a gated child waits for.
    ///
    /// A group operation may still start the provider, but starts this child after it.
    pub(in crate::core) fn is_blocked_for_good(&self, key: Key) -> bool {
        self.is_blocked(key, |_| false)
    }

    /// Whether no event inside the supervisor will meet what a gated child waits for. `returns`: whether
    /// a group operation will start a child that is down.
    pub(in crate::core) fn is_blocked(&self, key: Key, returns: impl Fn(Key) -> bool) -> bool {
        let mut key = key;
        let is_withheld = |key| self.entries.get(key).is_some_and(ChildEntry::is_withheld);
        if is_withheld(key) {
            return true;
        }
        while let Some((_, provider)) = self.requirements.lacks(key) {
            if self.lease(key).is_some_and(|lease| lease != LeaseState::Granted) {
                return true;
            }
            match provider.and_then(|provider| self.state(provider).map(|state| (provider, state)))
            {
                None => return true,
                Some((provider, ChildState::Down(_) | ChildState::AwaitingGroup)) => {
                    return !returns(provider);
                }
                Some((provider, ChildState::Gated(_))) if is_withheld(provider) => return true,
                Some((provider, ChildState::Gated(_))) => key = provider,
                Some(_) => return false,
            }
        }
        false
    }
}

impl Children {
    /// Keeps the child from being started.
    pub(in crate::core) fn hold(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let was_withheld = self.entry(key).withheld().is_some();
        self.entry(key).held = true;
        self.note_down(key);
        if !was_withheld {
            self.withhold(key, cx);
        }
        Some(ChildAnswer::Done)
    }

    /// Ends a hold. Returns the answer, unless that comes later.
    pub(in crate::core) fn release(&mut self, ticket: Ticket, key: Key) -> Option<ChildAnswer> {
        let was_held = std::mem::take(&mut self.entry(key).held);
        let entry = self.entry(key);
        match entry.state {
            ChildState::Gated(_) if was_held && entry.withheld().is_none() => {
                // It may take long until the requirement is met.
                if !self.admit(key) {
                    return Some(ChildAnswer::Gated);
                }
                self.wait(key, ticket, WaitFor::Renewed)
            }
            _ => Some(ChildAnswer::Done),
        }
    }

    /// Resets the restart limits that count the child's failures, and its failures in a row.
    pub(in crate::core) fn reset(&mut self, key: Key) -> Option<ChildAnswer> {
        self.reset_limits(key);
        if let Some(history) = &mut self.entry(key).history {
            history.recover();
        }
        Some(ChildAnswer::Done)
    }
}
