//! How an incarnation starts, or what keeps it from that.
//!
//! When a child is started, and why, is decided by the machines.

use std::time::{Duration, Instant};

use super::callers::Want;
use super::children::{Children, later};
use super::ledger::Ledger;
use super::state::{State, Timer};
use super::{ChildAnswer, Effect, Key, Report, RequirementId, Turn};
use crate::lifecycle::Lifecycle;
use crate::policy::{Reset, StartCause};

impl Children {
    /// Starts a child that has no task, or gates it.
    ///
    /// Who doesn't say himself when he is ready is Active as soon as he is started, and gets there in
    /// one go: edge by edge, with a look at the child for each, was 450 instructions of a restart.
    pub(super) fn launch(&mut self, key: Key, cause: StartCause, turn: &mut Turn<'_>) {
        self.timers.disarm(Timer::Child(key));
        if let Some((lacking, _)) = self.requirements.lacks(key) {
            return self.gate(key, lacking, cause, turn);
        }
        let slot = self.slots.get_mut(key).expect("the child that starts");
        let signals = slot.options.signals;
        let (to, state) = if signals {
            (Lifecycle::Activating, State::Activating)
        } else {
            (Lifecycle::Active, State::Active)
        };
        let recovers = !signals && self.rules.backoff(&slot.options).resets_on(Reset::OnReady);
        let held = slot.ledger.as_mut().and_then(|ledger| ledger.begin(cause, recovers, turn.now));
        let (from, last) = (slot.lifecycle, slot.incarnation);
        debug_assert!(from.can_become(Lifecycle::Resolved), "{from} became resolved");
        let after = turn.age.saturating_sub(slot.since);
        let incarnation = last.saturating_add(1);
        (slot.lifecycle, slot.since, slot.incarnation) = (to, turn.age, incarnation);
        let old = std::mem::replace(&mut slot.state, state);
        let significant = slot.options.significant;
        let timeout = signals.then(|| self.rules.activation_timeout(&slot.options)).flatten();
        self.count(key, old, state, significant);
        self.counts.moved(from, to);

        let tell = |incarnation, from, to, after, turn: &mut Turn<'_>| {
            let after = Duration::from_nanos(after);
            turn.push(Effect::Report(Report { key, incarnation, from, to, after, ending: None }));
        };
        tell(last, from, Lifecycle::Resolved, after, turn);
        tell(incarnation, Lifecycle::Resolved, Lifecycle::Activating, 0, turn);
        if let Some(until) = held {
            turn.push(Effect::HoldMessages { key, until });
        }
        turn.push(Effect::Start { key, incarnation, cause });
        if let Some(timeout) = timeout {
            self.timers.arm(Timer::Child(key), later(turn.now, timeout));
        }
        if !signals {
            tell(incarnation, Lifecycle::Activating, Lifecycle::Active, 0, turn);
            self.answer(key, |want| want != Want::Down, &ChildAnswer::Started(incarnation), turn);
        }
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
    fn begin(&mut self, cause: StartCause, recovers: bool, now: Instant) -> Option<Instant> {
        (self.next, self.policy, self.mail) = (None, None, false);
        self.held = self.held.filter(|&until| cause == StartCause::Restart && until > now);
        if recovers {
            self.recover();
        }
        self.held
    }
}
