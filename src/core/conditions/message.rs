//! Children that are started by a message rather than with their supervisor, and messages that a backoff delays.
//!
//! A child that a message starts is down until a message waits for it, and again when it has exited and its trigger
//! does not restart it. A temporary one is kept like any other, so that a message can start it again; but
//! a restart of its group leaves it *dormant*, as before its first message. It is Stopped then, even
//! after a failure. Rules that forget temporary children remove it when it exits.
//!
//! That a message waits is reported once. It is remembered until an incarnation starts, even while the child
//! still runs. A message does not start a child that was terminated or given up on, and is forgotten then.
//! A child that has failed is started when its backoff is over, unless its supervisor's rules for temporary children
//! say otherwise.
//!
//! A child whose delivery is delayed starts immediately instead of waiting, and its messages wait in its
//! place. This applies only where the child restarts alone: a group waits, and so does a pause.
//!
//! Knows nothing of the messages themselves, nor of where they wait.
//!
//! # Invariants
//!
//! 1. A child with a delayed delivery has one start for each delay: if it fails while its messages are
//!    held back, it is restarted when they would have been delivered.

use std::sync::Arc;
use std::time::Instant;

use crate::clock::later;
use crate::core::{ChildState, Children, DownState, Key, RestartDecision, StepCx};
use crate::exit::ExitReason;
use crate::policy::{OnExhausted, Revival, StartCause};

impl Children {
    /// Remembers that a message waits for the child. Returns whether messages start it.
    pub(super) fn note_message(&mut self, key: Key) -> bool {
        let entry = self.entry(key);
        let ignored = matches!(entry.state, ChildState::Down(down) if down.ignores_messages());
        let noted = entry.rules.spec.on_message && !ignored;
        if let Some(conditions) = entry.conditions.as_mut().filter(|_| noted) {
            conditions.message_pending = true;
            // Its exits are shown from now on, even clean ones.
            entry.history_mut();
        }
        noted
    }

    /// Whether the child is down until a message comes for it.
    pub(in crate::core) fn awaits_message(&self, key: Key) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.is_message_startable() && !entry.has_pending_message())
    }

    /// Starts a child for the message that waits for it, or when its backoff is over. Returns what has
    /// refused the start of a child that had failed, and how it had failed.
    pub(in crate::core) fn launch_for_message(
        &mut self,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<(OnExhausted, Arc<ExitReason>)> {
        let at_once = self.rules.revival == Revival::AtOnce && self.is_dormant_temporary(key);
        if at_once || self.state(key) != Some(ChildState::Down(DownState::NotRestarted)) {
            self.launch(key, StartCause::OnMessage, cx);
            return None;
        }
        let reason = self.failure(key);
        match self.decide_attempt(key, |_| false, &reason, cx) {
            RestartDecision::RestartAt(at) | RestartDecision::PauseUntil(at) => {
                // A fallback may have replaced the child, which no message starts.
                let own = self.is_started_by_message(key);
                let cause = if own { StartCause::OnMessage } else { StartCause::Restart };
                self.back_off(key, at, cause, cx);
                None
            }
            RestartDecision::Exhausted(what) => Some((what, reason)),
        }
    }

    /// Delays the child's messages instead of its start at `at`, if its rules request that. Returns when it starts.
    pub(super) fn delay_messages(&mut self, key: Key, at: Instant, now: Instant) -> Instant {
        let entry = self.entry(key);
        let failed = entry.since;
        let delays = entry.rules.spec.delays_delivery;
        let Some(conditions) = entry.conditions.as_mut().filter(|_| delays) else { return at };
        let Some(held) = conditions.held.filter(|&held| held > now) else {
            conditions.held = Some(at);
            return now;
        };
        conditions.held = Some(later(held, at.saturating_duration_since(failed)));
        entry.history_mut().next = Some((held, held.saturating_duration_since(failed)));
        held
    }
}
