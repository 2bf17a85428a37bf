//! Children that are started by a message rather than with their supervisor.
//!
//! Such a child is down until a message comes for it, and so it is again when it has ended and its
//! trigger leaves it. That a message came is told once; it is kept until an incarnation is started,
//! and counts when the child ends by itself before. A message brings nobody back whom somebody has
//! stopped, or who was given up on.
//!
//! Knows nothing of the messages themselves, nor of where they wait.

use super::Key;
use super::Turn;
use super::children::Children;
use super::dynamic::Dynamic;
use super::ordered::Ordered;
use super::state::{Down, Slot, State, Why};
use crate::policy::{RestartType, StartCause};

impl Children {
    /// Keeps that a message waits for the child, if that may start it, now or later. Returns whether it
    /// may.
    pub(super) fn note_mail(&mut self, key: Key) -> bool {
        let slot = self.slot(key);
        let heeded = slot.options.on_message;
        if heeded {
            slot.ledger().mail = true;
        }
        heeded
    }

    /// Whether the child is kept when its trigger has left it, for a message to start it.
    pub(super) fn outlives(&self, key: Key) -> bool {
        let on_message = self.slots.get(key).is_some_and(|slot| slot.options.on_message);
        on_message && self.restart_type(key) != RestartType::Temporary
    }

    /// Whether the child is down until a message comes for it.
    pub(super) fn awaits_message(&self, key: Key) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.is_startable() && !slot.has_mail())
    }

    fn is_called(&self, key: Key) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.is_startable() && slot.has_mail())
    }
}

impl Ordered {
    /// Starts the child if it is down and a message waits for it, unless its turn will come.
    pub(super) fn open_mail(&mut self, key: Key, turn: &mut Turn<'_>) {
        // Most are not, and this is asked of each child that a range passes.
        if !self.children.is_called(key) {
            return;
        }
        let waits = self.is_finishing() || self.will_be_started(key) || self.is_being_swept(key);
        if !waits {
            self.children.launch(key, StartCause::OnMessage, turn);
        }
    }

    /// Whether a child runs, or will without being asked.
    pub(super) fn comes_back(&self, key: Key) -> bool {
        let Some(slot) = self.children.slots.get(key) else { return false };
        match slot.state {
            State::Stopping { .. } if self.is_being_swept(key) => {
                let kept = self.children.restart_type(key) != RestartType::Temporary;
                kept && self.will_be_started(key)
            }
            State::Down(Down::ByGroup) => self.will_be_started(key),
            State::Down(Down::New) => true,
            _ => slot.comes_back_alone(),
        }
    }
}

impl Dynamic {
    /// Starts the child if it is down and a message waits for it.
    pub(super) fn open_mail(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.children.is_called(key) {
            self.children.launch(key, StartCause::OnMessage, turn);
        }
    }

    /// Whether a child runs, or will without being asked.
    pub(super) fn comes_back(&self, key: Key) -> bool {
        let slot = self.children.slots.get(key);
        slot.is_some_and(|slot| slot.state == State::Down(Down::New) || slot.comes_back_alone())
    }
}

impl Slot {
    /// The same where no group decides on it.
    fn comes_back_alone(&self) -> bool {
        match self.state {
            State::Gated(_)
            | State::Activating
            | State::Active
            | State::Backoff
            | State::Awaiting
            | State::Asking { .. } => true,
            State::Stopping { why, .. } => match why {
                Why::Renew | Why::Itself | Why::Failing { by_hand: false, .. } => true,
                Why::Group | Why::ByHand | Why::Failing { by_hand: true, .. } => false,
            },
            State::Down(_) => self.is_startable(),
        }
    }
}
