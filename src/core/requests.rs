//! What callers may ask for, and what they are told.
//!
//! Every request is answered exactly once: at once if it is refused or there is nothing to wait
//! for, else when the child has come to where the caller wants it. A supervisor that is stopping
//! refuses all of them.

use super::callers::Want;
use super::ordered::Ordered;
use super::state::{Down, State, Timer, Why};
use super::{ChildAnswer, ChildRequest, Effect, Key, Ticket, Turn};
use crate::lifecycle::Lifecycle;
use crate::policy::{RestartType, StartCause};

impl Ordered {
    pub(super) fn request(
        &mut self,
        ticket: Ticket,
        key: Key,
        request: ChildRequest,
        turn: &mut Turn<'_>,
    ) {
        let refusal = match self.children.state(key) {
            None => Some(ChildAnswer::NotFound),
            Some(_) if self.is_finishing() => Some(ChildAnswer::ShuttingDown),
            Some(_) => None,
        };
        if let Some(answer) = refusal {
            return turn.push(Effect::Reply { ticket, answer });
        }
        let answer = match request {
            ChildRequest::Start => self.start_added(ticket, key, turn),
            ChildRequest::Terminate => self.terminate(ticket, key, turn),
            ChildRequest::RestartStopped => self.restart_stopped(ticket, key, turn),
            ChildRequest::RestartRunning => self.restart_running(ticket, key, turn),
            ChildRequest::Kill => self.kill(key, turn),
            ChildRequest::Delete => self.delete(key, turn),
            ChildRequest::Retry => self.retry(ticket, key, turn),
            ChildRequest::Wake => self.wake(key, turn),
        };
        if let Some(answer) = answer {
            turn.push(Effect::Reply { ticket, answer });
        }
    }

    fn start_added(
        &mut self,
        ticket: Ticket,
        key: Key,
        turn: &mut Turn<'_>,
    ) -> Option<ChildAnswer> {
        let slot = self.children.slot(key);
        match slot.state {
            State::Down(Down::New) => {}
            State::Down(Down::Dormant) => return Some(ChildAnswer::Dormant),
            _ => return Some(ChildAnswer::InvalidState(slot.lifecycle)),
        }
        self.children.wait(key, ticket, Want::Started);
        if self.group(key).is_none() {
            self.children.launch(key, StartCause::Manual, turn);
        } else {
            self.start_in_turn(key, turn);
        }
        None
    }

    /// Starts a child that is down, unless a group operation will come to it: then it waits for its
    /// turn like the others, or is told that it stays down.
    fn start_in_turn(&mut self, key: Key, turn: &mut Turn<'_>) {
        if self.will_be_started(key) || self.is_being_swept(key) {
            self.turn_away(key, turn);
        } else {
            self.children.launch(key, StartCause::Manual, turn);
        }
    }

    /// Whether the child was stopped by hand since the sweep began.
    pub(super) fn is_dismissed(&self, key: Key) -> bool {
        self.dismissed.contains(&key)
    }

    /// The child is not to be started by the sweep that there is, whatever becomes of that. One
    /// that ends the supervisor starts nobody.
    fn dismiss(&mut self, key: Key) {
        if self.sweep.is_some() {
            self.dismissed.insert(key);
        }
    }

    fn recall(&mut self, key: Key) {
        self.dismissed.remove(&key);
    }

    fn terminate(&mut self, ticket: Ticket, key: Key, turn: &mut Turn<'_>) -> Option<ChildAnswer> {
        let comes_back = self.comes_back(key);
        self.dismiss(key);
        match self.children.slot(key).state {
            State::Down(_)
            | State::Gated(_)
            | State::Backoff
            | State::Awaiting
            | State::Asking { .. } => {
                self.abandon(key);
                self.children.timers.disarm(Timer::Child(key));
                let slot = self.children.slot(key);
                let told = slot.lifecycle != Lifecycle::Stopped;
                if let Some(ledger) = &mut slot.ledger {
                    ledger.next = None;
                }
                self.children.enter_stopped(key, turn);
                if self.children.restart_type(key) == RestartType::Temporary {
                    self.forget(key, false, turn);
                } else {
                    self.lay_down(key, Down::ByHand, turn);
                    if comes_back && !told {
                        turn.push(Effect::StaysDown { key });
                    }
                }
                Some(ChildAnswer::Done)
            }
            State::Activating | State::Active => {
                self.children.begin_stop(key, Why::ByHand, turn);
                self.children.wait(key, ticket, Want::Down)
            }
            State::Stopping { .. } => {
                self.children.stop_for_good(key);
                self.children.wait(key, ticket, Want::Down)
            }
        }
    }

    fn restart_stopped(
        &mut self,
        ticket: Ticket,
        key: Key,
        turn: &mut Turn<'_>,
    ) -> Option<ChildAnswer> {
        let returns = self.will_be_started(key);
        let slot = self.children.slot(key);
        let (state, lifecycle) = (slot.state, slot.lifecycle);
        match state {
            State::Down(_) if returns => Some(ChildAnswer::Restarting),
            State::Down(_) => {
                self.start_again(ticket, key, Want::StartedAgain, turn);
                None
            }
            State::Gated(_) | State::Backoff | State::Awaiting => Some(ChildAnswer::Restarting),
            State::Asking { .. } => Some(ChildAnswer::InvalidState(lifecycle)),
            State::Activating | State::Active | State::Stopping { .. } => {
                Some(ChildAnswer::Running)
            }
        }
    }

    /// Starts a child that is down, and nobody besides.
    fn start_again(&mut self, ticket: Ticket, key: Key, want: Want, turn: &mut Turn<'_>) {
        self.recall(key);
        self.children.wait(key, ticket, want);
        self.children.set(key, State::Down(Down::ByGroup));
        self.start_in_turn(key, turn);
    }

    fn restart_running(
        &mut self,
        ticket: Ticket,
        key: Key,
        turn: &mut Turn<'_>,
    ) -> Option<ChildAnswer> {
        let slot = self.children.slot(key);
        let (state, lifecycle) = (slot.state, slot.lifecycle);
        match state {
            State::Activating | State::Active => {
                match self.group(key) {
                    None => self.children.begin_stop(key, Why::Renew, turn),
                    Some(from) => self.regroup(from, turn.now, None, turn),
                }
                self.children.wait(key, ticket, Want::Renewed)
            }
            State::Stopping { why, .. }
                if !self.children.returns(key, why)
                    || self.is_dismissed(key)
                    || (why == Why::Group && !self.group_returns()) =>
            {
                Some(ChildAnswer::InvalidState(lifecycle))
            }
            State::Stopping { .. } | State::Gated(_) | State::Backoff | State::Awaiting => {
                Some(ChildAnswer::Restarting)
            }
            State::Down(_) | State::Asking { .. } => Some(ChildAnswer::InvalidState(lifecycle)),
        }
    }

    fn kill(&mut self, key: Key, turn: &mut Turn<'_>) -> Option<ChildAnswer> {
        let slot = self.children.slot(key);
        match slot.state {
            State::Activating | State::Active | State::Stopping { .. } => {
                self.children.kill(key, turn);
                Some(ChildAnswer::Done)
            }
            State::Down(_)
            | State::Gated(_)
            | State::Backoff
            | State::Awaiting
            | State::Asking { .. } => Some(ChildAnswer::InvalidState(slot.lifecycle)),
        }
    }

    fn delete(&mut self, key: Key, turn: &mut Turn<'_>) -> Option<ChildAnswer> {
        let returns = self.will_be_started(key);
        let slot = self.children.slot(key);
        match slot.state {
            State::Down(_) if returns => Some(ChildAnswer::Restarting),
            // Whatever is being decided about it is not wanted any more.
            State::Down(_) | State::Asking { .. } => {
                self.children.enter_stopped(key, turn);
                self.forget(key, false, turn);
                Some(ChildAnswer::Done)
            }
            State::Gated(_) | State::Backoff | State::Awaiting => Some(ChildAnswer::Restarting),
            State::Activating | State::Active | State::Stopping { .. } => {
                Some(ChildAnswer::Running)
            }
        }
    }

    fn retry(&mut self, ticket: Ticket, key: Key, turn: &mut Turn<'_>) -> Option<ChildAnswer> {
        let slot = self.children.slot(key);
        let lifecycle = slot.lifecycle;
        if slot.state == State::Down(Down::Left) {
            // It has used up nothing, and took nobody with it.
            self.start_again(ticket, key, Want::Renewed, turn);
            return None;
        }
        if !matches!(slot.state, State::Down(Down::GivenUp | Down::Leaked)) {
            return Some(ChildAnswer::InvalidState(lifecycle));
        }
        self.recall(key);
        // In a group it waits for its turn like the others.
        self.children.set(key, State::Down(Down::ByGroup));
        self.children.wait(key, ticket, Want::Renewed);
        self.children.pardon(key);
        match self.group(key) {
            None => self.children.launch(key, StartCause::Manual, turn),
            Some(from) if self.sweep.is_some() => self.regroup(from, turn.now, None, turn),
            Some(from) => self.start_from(from),
        }
        None
    }

    fn wake(&mut self, key: Key, turn: &mut Turn<'_>) -> Option<ChildAnswer> {
        let slot = self.children.slot(key);
        match slot.state {
            State::Backoff => {
                self.children.timers.disarm(Timer::Child(key));
                self.children.release_traffic(key);
                self.children.launch(key, StartCause::Restart, turn);
                Some(ChildAnswer::Done)
            }
            State::Awaiting => {
                self.hurry(turn.now);
                Some(ChildAnswer::Done)
            }
            _ => Some(ChildAnswer::InvalidState(slot.lifecycle)),
        }
    }
}
