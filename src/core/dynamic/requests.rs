//! The requests of callers for children that have no order.
//!
//! # Invariants
//!
//! 1. Every request is answered exactly once: at once if it is refused or nothing has to be waited
//!    for, else when the child has reached the caller's goal.
//! 2. A supervisor that is stopping refuses all requests but those that stop a child, which `machine` ensures for both
//!    kinds.

use crate::core::{
    ChildAnswer, ChildState, DownState, Dynamic, Key, StepCx, StopReason, Ticket, WaitFor,
};
use crate::policy::StartCause;

impl Dynamic {
    /// Starts a child that was just added.
    pub(in crate::core) fn start_new(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.launch(key, StartCause::Manual, cx);
    }

    /// Refuses to start a child that has no task, as OTP does for children that have no order.
    pub(in crate::core) fn start_stopped(
        &mut self,
        _ticket: Ticket,
        key: Key,
        _cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        Some(match entry.state {
            ChildState::Backoff(_) => ChildAnswer::Restarting,
            _ => ChildAnswer::InvalidState(entry.lifecycle),
        })
    }

    /// Runs a new incarnation of the child, for a caller that waits for it.
    pub(in crate::core) fn restart(&mut self, key: Key, cx: &mut StepCx<'_>) {
        match self.children.entry(key).state {
            ChildState::Activating | ChildState::Active => {
                self.children.begin_stop(key, StopReason::Restart, cx);
            }
            ChildState::Stopping { .. } => self.children.start_when_down(key),
            ChildState::Backoff(cause) => {
                self.children.release_messages(key);
                self.children.launch(key, cause, cx);
            }
            ChildState::Down(down) => {
                // A failure that is not restarted was not charged.
                if matches!(down, DownState::GivenUp | DownState::Leaked) {
                    self.children.reset_limits(key);
                }
                self.children.launch(key, StartCause::Manual, cx);
            }
            // The decision of the failure callback is discarded.
            ChildState::AwaitingDecision { .. } => {
                self.children.launch(key, StartCause::Manual, cx);
            }
            ChildState::Gated(_) => unreachable!("a gated child is its own answer"),
            ChildState::AwaitingGroup => unreachable!("these children have no group"),
        }
    }

    /// Stops a child, and removes it. Returns the answer, unless that comes later.
    pub(in crate::core) fn terminate(
        &mut self,
        ticket: Ticket,
        key: Key,
        removes: bool,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        match self.children.entry(key).state {
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. } => {
                self.children.stop_for_good(key, removes, cx);
                self.children.wait(key, ticket, WaitFor::Down)
            }
            _ => {
                self.forget(key, cx);
                Some(ChildAnswer::Done)
            }
        }
    }

    /// Removes a child that is down.
    pub(in crate::core) fn delete(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        Some(match entry.state {
            ChildState::Down(_) | ChildState::AwaitingDecision { .. } => {
                self.forget(key, cx);
                ChildAnswer::Done
            }
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. } => {
                ChildAnswer::Running
            }
            ChildState::Backoff(_) => ChildAnswer::Restarting,
            _ => ChildAnswer::InvalidState(entry.lifecycle),
        })
    }
}
