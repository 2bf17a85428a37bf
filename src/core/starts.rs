//! How an incarnation starts, or what keeps it from that.
//!
//! When a child is started, and why, is decided by the machines.

use std::time::{Duration, Instant};

use super::callers::Want;
use super::children::{Children, later};
use super::ledger::Ledger;
use super::state::{State, Timer};
use super::{ChildAnswer, Effect, Key, RequirementId, Turn};
use crate::lifecycle::Lifecycle;
use crate::policy::StartCause;

impl Children {
    /// Starts a child that has no task, or gates it.
    pub(super) fn launch(&mut self, key: Key, cause: StartCause, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        if let Some((lacking, _)) = self.requirements.lacks(key) {
            return self.gate(key, lacking, cause, turn);
        }
        self.enter(key, Lifecycle::Resolved, None, turn);
        let slot = self.slot(key);
        slot.incarnation = slot.incarnation.saturating_add(1);
        let (incarnation, signals) = (slot.incarnation, slot.options.signals);
        let held = slot.ledger.as_mut().and_then(|ledger| ledger.begin(cause, turn.now));
        self.set(key, State::Activating);
        self.enter(key, Lifecycle::Activating, None, turn);
        if let Some(until) = held {
            turn.push(Effect::HoldMessages { key, until });
        }
        turn.push(Effect::Start { key, incarnation, cause });
        if !signals {
            self.activated(key, turn);
        } else if let Some(timeout) = self.activation_timeout(key) {
            self.timers.arm(Timer::Child(key), later(turn.now, timeout));
        }
    }

    fn activation_timeout(&self, key: Key) -> Option<Duration> {
        self.slots.get(key).and_then(|slot| self.rules.activation_timeout(&slot.options))
    }

    /// Lets a child wait for what it lacks.
    fn gate(&mut self, key: Key, lacking: RequirementId, cause: StartCause, turn: &mut Turn<'_>) {
        self.requirements.wait(key, lacking);
        if let Some(ledger) = &mut self.slot(key).ledger {
            ledger.next = None;
        }
        if self.slot(key).lifecycle != Lifecycle::Discovered {
            self.enter(key, Lifecycle::Resolved, None, turn);
            self.enter(key, Lifecycle::Discovered, None, turn);
        }
        self.set(key, State::Gated(cause));
        // Nobody is kept waiting for what may never come.
        if self.waits_in_vain(key) {
            self.answer(key, |want| want != Want::Down, &ChildAnswer::Gated, turn);
        }
    }

    /// Whether what a gated child waits for will not come by itself.
    pub(super) fn waits_in_vain(&self, key: Key) -> bool {
        let mut key = key;
        while let Some((_, provider)) = self.requirements.lacks(key) {
            match provider.and_then(|provider| self.state(provider).map(|state| (provider, state)))
            {
                None => return true,
                // It may come later in the order, and has to wait for its turn.
                Some((_, State::Down(_) | State::Awaiting)) => return true,
                Some((provider, State::Gated(_))) => key = provider,
                Some(_) => return false,
            }
        }
        false
    }

    pub(super) fn activated(&mut self, key: Key, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        self.set(key, State::Active);
        self.enter(key, Lifecycle::Active, None, turn);
        self.is_ready(key);
        let incarnation = self.slot(key).incarnation;
        self.answer(key, |want| want != Want::Down, &ChildAnswer::Started(incarnation), turn);
    }
}

impl Ledger {
    /// Forgets what was the last incarnation's own. Returns until when the messages of this one are
    /// held; only if it is a restart that would have waited.
    fn begin(&mut self, cause: StartCause, now: Instant) -> Option<Instant> {
        (self.next, self.policy, self.mail) = (None, None, false);
        self.held = self.held.filter(|&until| cause == StartCause::Restart && until > now);
        self.held
    }
}
