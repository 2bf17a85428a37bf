//! Asking a callback what becomes of a child that has failed.
//!
//! The child is down and Errored meanwhile, and everything else goes on. An answer counts while the
//! child waits for it: whatever starts, stops or forgets the child before has discarded it. What a
//! restart costs, and whom it takes along, is looked at when the answer is there; the backoff counts
//! from the failure.
//!
//! An incarnation fails once, so it is asked about once, and its number names the question.

use std::time::Duration;

use super::children::{Children, later};
use super::dynamic::Dynamic;
use super::ordered::Ordered;
use super::state::{Down, State, Timer};
use super::{Decision, Effect, Finish, Key, Turn};
use crate::exit::ExitReason;
use crate::failure::{FailureDecision, Resolution};

/// How long an answer may take.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Children {
    /// Whether somebody is to be asked about this end, which calls for a restart, and has not been.
    pub(super) fn is_to_ask(&self, key: Key, reason: &ExitReason) -> bool {
        let asked = || matches!(self.state(key), Some(State::Asking { .. }));
        self.rules.asks && !reason.is_clean() && !asked()
    }

    /// Asks. The child is Errored, and stays so until there is an answer.
    pub(super) fn ask(&mut self, key: Key, active: bool, reason: ExitReason, turn: &mut Turn<'_>) {
        self.set(key, State::Asking { active });
        self.timers.arm(Timer::Child(key), later(turn.now, ANSWER_WITHIN));
        let slot = self.slot(key);
        let incarnation = slot.incarnation;
        let attempt = slot.ledger().streak.saturating_add(1);
        turn.push(Effect::Ask { key, incarnation, attempt, reason });
    }

    /// Takes in what is answered, or that nothing is. Returns whether the child had been Active, how
    /// it failed, and what becomes of it.
    fn hear(
        &mut self,
        key: Key,
        answer: Option<FailureDecision>,
        turn: &mut Turn<'_>,
    ) -> (bool, ExitReason, Resolution) {
        let active = self.state(key) == Some(State::Asking { active: true });
        let incarnation = self.slot(key).incarnation;
        let resolution = match answer {
            Some(FailureDecision { resolution, changes }) => {
                if !changes.is_empty() {
                    turn.push(Effect::Changed { key, changes });
                }
                resolution
            }
            None => {
                turn.push(Effect::Unanswered { key, incarnation });
                Resolution::Escalate
            }
        };
        (active, self.failure(key), resolution)
    }
}

impl Ordered {
    /// A callback has answered, or has not in time.
    pub(super) fn heed(&mut self, key: Key, answer: Option<FailureDecision>, turn: &mut Turn<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        // A group operation is on its way to the child. It decides.
        if self.is_being_swept(key) {
            return self.absorb(key, turn);
        }
        let (active, reason, resolution) = self.children.hear(key, answer, turn);
        match resolution {
            Resolution::Restart => {
                let then = self.children.on_exit(key, active, &reason);
                self.failed(key, active, then, &reason, turn);
            }
            Resolution::GiveUp => {
                self.children.tell_decision(key, &reason, Decision::Decline, turn);
                self.lay_down(key, Down::GivenUp, turn);
            }
            Resolution::Escalate => {
                self.children.tell_decision(key, &reason, Decision::Escalate, turn);
                self.children.enter_stopped(key, turn);
                self.lay_down(key, Down::GivenUp, turn);
                self.finish(Finish::Failed { key, reason });
            }
        }
    }
}

impl Dynamic {
    /// A callback has answered, or has not in time.
    pub(super) fn heed(&mut self, key: Key, answer: Option<FailureDecision>, turn: &mut Turn<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        if self.is_finishing() {
            return self.forget(key, turn);
        }
        let (active, reason, resolution) = self.children.hear(key, answer, turn);
        match resolution {
            Resolution::Restart => {
                let then = self.children.on_exit(key, active, &reason);
                self.failed(key, active, then, &reason, turn);
            }
            Resolution::GiveUp => {
                self.children.tell_decision(key, &reason, Decision::Decline, turn);
                self.lay_down(key, Down::GivenUp, turn);
            }
            Resolution::Escalate => {
                self.children.tell_decision(key, &reason, Decision::Escalate, turn);
                self.forget(key, turn);
                self.finish(Finish::Failed { key, reason });
            }
        }
    }
}
