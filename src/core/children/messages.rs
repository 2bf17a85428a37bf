//! Children that are started by a message rather than with their supervisor.
//!
//! Such a child is down until a message waits for it, and again when it has ended and its trigger
//! does not restart it. A temporary one is kept like any other, so that a message can start it again; but
//! a restart of its group leaves it *dormant*, as before its first message. It is Stopped then, also
//! after a failure. Rules that forget temporary children remove it at its end.
//!
//! That a message waits is reported once. It is remembered until an incarnation starts, also if the child
//! still runs. A message does not start a child that was terminated or given up on, and is forgotten then.
//! A child that has failed is started when its backoff is over.
//!
//! Knows nothing of the messages themselves, nor of where they wait.

use std::sync::Arc;

use super::Children;
use crate::core::arena::Key;
use crate::core::child::{ChildState, DownState, RestartDecision};
use crate::core::effect::StepCx;
use crate::exit::ExitReason;
use crate::policy::{OnExhausted, RestartType, StartCause};

impl Children {
    /// Remembers that a message waits for the child. Returns whether messages start it.
    pub(in crate::core) fn note_message(&mut self, key: Key) -> bool {
        let entry = self.entry(key);
        let ignored = matches!(entry.state, ChildState::Down(down) if down.ignores_messages());
        let noted = entry.rules.spec.on_message && !ignored;
        if noted {
            entry.history_mut().message_pending = true;
        }
        noted
    }

    /// Whether the child is kept, for a message to start it, when its trigger does not restart it.
    pub(in crate::core) fn is_kept_for_messages(&self, key: Key) -> bool {
        let on_message = self.entries.get(key).is_some_and(|entry| entry.rules.spec.on_message);
        on_message && (!self.rules.forgets_temporary || !self.is_temporary(key))
    }

    /// Whether the child is removed when it has ended, or is stopped for good.
    pub(in crate::core) fn is_forgotten(&self, key: Key) -> bool {
        self.is_temporary(key) && !self.is_kept_for_messages(key)
    }

    /// Whether the child is temporary, and kept for a message to start it.
    pub(in crate::core) fn is_dormant_temporary(&self, key: Key) -> bool {
        self.is_temporary(key) && self.is_kept_for_messages(key)
    }

    fn is_temporary(&self, key: Key) -> bool {
        self.restart_type(key) == RestartType::Temporary
    }

    /// Whether the child is down until a message comes for it.
    pub(in crate::core) fn awaits_message(&self, key: Key) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.is_message_startable() && !entry.has_pending_message())
    }

    /// Whether a waiting message starts the child, which is down.
    pub(in crate::core) fn is_started_by_message(&self, key: Key) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.is_message_startable() && entry.has_pending_message())
    }

    /// Starts a child for the message that waits for it, or when its backoff is over. Returns what has
    /// refused the start of a child that had failed, and how it had failed.
    pub(in crate::core) fn launch_for_message(
        &mut self,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<(OnExhausted, Arc<ExitReason>)> {
        if self.state(key) != Some(ChildState::Down(DownState::NotRestarted)) {
            self.launch(key, StartCause::OnMessage, cx);
            return None;
        }
        let reason = self.failure(key);
        match self.decide_message_start(key, &reason, cx) {
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
}
