//! The requests of callers for children that have no order.
//!
//! # Invariants
//!
//! 1. Every request is answered exactly once: at once if it is refused or nothing has to be waited
//!    for, else when the child has reached the caller's goal.
//! 2. A supervisor that is stopping refuses all requests, which `machine` ensures for both kinds.

use super::Dynamic;
use crate::core::arena::Key;
use crate::core::callers::WaitFor;
use crate::core::child::{ChildState, DownState, StopReason};
use crate::core::effect::StepCx;
use crate::core::event::{ChildAnswer, ChildRequest, Ticket};
use crate::lifecycle::Lifecycle;
use crate::policy::StartCause;

impl Dynamic {
    /// Handles a request about a child of a supervisor that isn't stopping. Returns the answer, unless
    /// it comes later.
    pub(in crate::core) fn on_request(
        &mut self,
        ticket: Ticket,
        key: Key,
        request: ChildRequest,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        let (state, lifecycle) = (entry.state, entry.lifecycle);
        match (request, state) {
            (ChildRequest::Start, ChildState::Down(DownState::New)) => {
                let waits = self.children.wait(key, ticket, WaitFor::Started);
                self.children.launch(key, StartCause::Manual, cx);
                waits
            }
            (ChildRequest::Start, ChildState::Down(DownState::Dormant)) => {
                Some(ChildAnswer::Dormant)
            }
            (ChildRequest::Terminate, ChildState::Activating | ChildState::Active) => {
                self.children.begin_stop(key, StopReason::Manual, cx);
                self.children.wait(key, ticket, WaitFor::Down)
            }
            (ChildRequest::Terminate, ChildState::Stopping { .. }) => {
                self.children.stop_for_good(key);
                self.children.wait(key, ticket, WaitFor::Down)
            }
            (ChildRequest::Terminate, _)
            | (ChildRequest::Delete, ChildState::Down(_) | ChildState::AwaitingDecision { .. }) => {
                self.forget(key, cx);
                Some(ChildAnswer::Done)
            }
            (ChildRequest::RestartRunning, ChildState::Stopping { why, .. })
                if !self.children.returns(key, why) =>
            {
                Some(ChildAnswer::InvalidState(lifecycle))
            }
            (ChildRequest::RestartRunning, ChildState::Activating | ChildState::Active) => {
                self.children.begin_stop(key, StopReason::Restart, cx);
                self.children.wait(key, ticket, WaitFor::Renewed)
            }
            (
                ChildRequest::Kill,
                ChildState::Activating | ChildState::Active | ChildState::Stopping { .. },
            ) => {
                self.children.kill(key, cx);
                Some(ChildAnswer::Done)
            }
            (
                ChildRequest::Retry,
                ChildState::Down(
                    down @ (DownState::GivenUp | DownState::Leaked | DownState::NotRestarted),
                ),
            ) if down != DownState::NotRestarted || lifecycle == Lifecycle::Errored => {
                // A failure that is not restarted was not charged.
                if down != DownState::NotRestarted {
                    self.children.reset_limits(key);
                }
                let waits = self.children.wait(key, ticket, WaitFor::Renewed);
                self.children.launch(key, StartCause::Manual, cx);
                waits
            }
            (ChildRequest::Wake, ChildState::Backoff(cause)) => {
                self.children.release_messages(key);
                self.children.launch(key, cause, cx);
                Some(ChildAnswer::Done)
            }
            (
                ChildRequest::RestartStopped | ChildRequest::Delete,
                ChildState::Activating | ChildState::Active | ChildState::Stopping { .. },
            ) => Some(ChildAnswer::Running),
            (
                ChildRequest::RestartStopped | ChildRequest::RestartRunning | ChildRequest::Delete,
                ChildState::Backoff(_),
            )
            | (ChildRequest::RestartRunning, ChildState::Stopping { .. }) => {
                Some(ChildAnswer::Restarting)
            }
            _ => Some(ChildAnswer::InvalidState(lifecycle)),
        }
    }
}
