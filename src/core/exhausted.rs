//! What follows when a limit refuses a restart, as far as it concerns the child alone.
//!
//! First comes the child's fallback, if it has one; then what its [`OnExhausted`] says. A pause and
//! a fallback end in a start, like a restart that is granted, so the machines treat them as one.
//! What the rest comes to, for the child's range and for the supervisor, is up to the machines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::children::{Children, later};
use super::ledger::Ledger;
use super::state::{Down, State, Verdict};
use super::{Decision, Effect, Key, Turn};
use crate::exit::ExitReason;
use crate::policy::{OnExhausted, RestartWindow};

/// Who refuses a restart. One of them does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    /// The intensity of the supervisor.
    pub(super) by_supervisor: bool,
    /// A limit of the child's own.
    pub(super) by_child: bool,
}

impl Children {
    /// The end of the pause that there is at `now`: until then no failure is charged, and nobody
    /// who fails is restarted.
    pub(super) fn pauses_until(&self, now: Instant) -> Option<Instant> {
        self.paused.filter(|&until| until > now)
    }

    /// Decides about a child that failed at `failed` and may not be restarted.
    pub(super) fn refuse(
        &mut self,
        key: Key,
        failed: Instant,
        refused: Refused,
        reason: &ExitReason,
        turn: &mut Turn<'_>,
    ) -> Verdict {
        self.slot(key).ledger().next = None;
        if self.slot(key).options.fallback.is_some() {
            self.tell_decision(key, reason, Decision::FallBack, turn);
            self.fall_back(key, failed, turn);
            return Verdict::RestartAt(failed);
        }
        let on_exhausted = self.on_exhausted(key);
        if let OnExhausted::Pause(length) = on_exhausted {
            let length = self.spread(key, length);
            return self.pause(key, failed, length, refused, reason, turn);
        }
        self.tell_decision(key, reason, Decision::GiveUp, turn);
        Verdict::Exhausted(on_exhausted)
    }

    fn on_exhausted(&self, key: Key) -> OnExhausted {
        let slot = self.slots.get(key);
        slot.map_or(self.rules.on_exhausted, |slot| slot.on_exhausted(&self.rules))
    }

    /// Another spec takes the place of the child, and counts from none.
    fn fall_back(&mut self, key: Key, failed: Instant, turn: &mut Turn<'_>) {
        // Down as what it was, so that what is counted over all children stays right.
        self.set(key, State::Down(Down::GivenUp));
        let slot = self.slots.get_mut(key).expect("the child that failed");
        let Some(fallback) = slot.options.fallback.as_ref().map(Arc::clone) else { return };
        self.counts.replaced(&slot.options, &fallback);
        slot.options = fallback;
        let ledger = slot.ledger.get_or_insert_default();
        let mut fresh = Ledger::default();
        fresh.last = ledger.last.take();
        fresh.next = Some((failed, Duration::ZERO));
        **ledger = fresh;
        turn.push(Effect::Replaced { key });
    }

    /// The child, or whoever fails, is started again when the pause is over, and counts from none.
    fn pause(
        &mut self,
        key: Key,
        failed: Instant,
        length: Duration,
        refused: Refused,
        reason: &ExitReason,
        turn: &mut Turn<'_>,
    ) -> Verdict {
        let until = later(failed, length);
        if refused.by_supervisor {
            self.reset_window();
            self.paused = Some(until);
        }
        let ledger = self.slot(key).ledger();
        if refused.by_child {
            ledger.quota.clear();
        }
        (ledger.next, ledger.held) = (Some((until, length)), None);
        self.tell_decision(key, reason, Decision::Pause { length }, turn);
        Verdict::PauseUntil(until)
    }

    /// The length of a pause, which the child's jitter makes longer. Drawn once, when it begins.
    fn spread(&mut self, key: Key, length: Duration) -> Duration {
        let slot = self.slots.get(key).expect("the child that failed");
        slot.backoff(&self.rules).spread(length, &mut self.random)
    }

    /// Counts the restarts of all children from none.
    fn reset_window(&mut self) {
        self.window = self.rules.intensity.map(RestartWindow::new);
    }

    /// Forgets what is counted against a child that somebody wants to try again.
    pub(super) fn pardon(&mut self, key: Key) {
        self.reset_window();
        if let Some(ledger) = &mut self.slot(key).ledger {
            ledger.quota.clear();
        }
    }
}
