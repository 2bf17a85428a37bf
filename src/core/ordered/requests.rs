//! The requests of callers for children that have an order.
//!
//! # Invariants
//!
//! 1. Every request is answered exactly once: at once if it is refused or nothing has to be waited
//!    for, else when the child has reached the caller's goal.
//! 2. A supervisor that is stopping refuses all requests, which `machine` ensures for both kinds.

use super::Ordered;
use crate::core::arena::Key;
use crate::core::callers::WaitFor;
use crate::core::child::{ChildState, DownState, StopReason, Timer};
use crate::core::effect::{Effect, StepCx};
use crate::core::event::{ChildAnswer, ChildRequest, Ticket};
use crate::core::group::GroupOp;
use crate::lifecycle::Lifecycle;
use crate::policy::StartCause;

impl Ordered {
    /// Handles a request about a child of a supervisor that isn't stopping. Returns the answer, unless
    /// it comes later.
    pub(in crate::core) fn on_request(
        &mut self,
        ticket: Ticket,
        key: Key,
        request: ChildRequest,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        match request {
            ChildRequest::Start => self.start_added(ticket, key, cx),
            ChildRequest::Terminate => self.terminate(ticket, key, cx),
            ChildRequest::RestartStopped => self.restart_stopped(ticket, key, cx),
            ChildRequest::RestartRunning => self.restart_running(ticket, key, cx),
            ChildRequest::Kill => self.kill(key, cx),
            ChildRequest::Delete => self.delete(key, cx),
            ChildRequest::Retry => self.retry(ticket, key, cx),
            ChildRequest::Wake => self.wake(key, cx),
            ChildRequest::Find { .. }
            | ChildRequest::Reset
            | ChildRequest::Hold
            | ChildRequest::Release => unreachable!("`machine` answers it for both kinds"),
        }
    }

    fn start_added(
        &mut self,
        ticket: Ticket,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        match entry.state {
            ChildState::Down(DownState::New) => {}
            ChildState::Down(DownState::Dormant) => return Some(ChildAnswer::Dormant),
            _ => return Some(ChildAnswer::InvalidState(entry.lifecycle)),
        }
        self.children.wait(key, ticket, WaitFor::Started);
        if self.group_start(key).is_none() {
            self.children.launch(key, StartCause::Manual, cx);
        } else {
            self.start_or_await_group(key, cx);
        }
        None
    }

    /// Starts a child that is down, unless the group operation will come to it. Then the operation
    /// starts it, or leaves it down.
    fn start_or_await_group(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.will_be_started(key) || self.is_in_stopping_group(key) {
            self.answer_if_staying_down(key, cx);
        } else {
            self.children.launch(key, StartCause::Manual, cx);
        }
    }

    fn terminate(&mut self, ticket: Ticket, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        // A range that no longer restarts reports this only when it comes to the child.
        let unreported =
            self.children.state(key) == Some(ChildState::Down(DownState::RestartsWithGroup));
        let comes_back = unreported || self.comes_back(key);
        // The current group operation does not start the child, whatever becomes of the operation.
        if self.group.is_some() {
            self.excluded.insert(key);
        }
        match self.children.entry(key).state {
            ChildState::Down(_)
            | ChildState::Gated(_)
            | ChildState::Backoff(_)
            | ChildState::AwaitingGroup
            | ChildState::AwaitingDecision { .. } => {
                self.abandon_group_restart(key);
                self.children.timers.disarm(Timer::Child(key));
                let entry = self.children.entry(key);
                let edge_reports_it = entry.lifecycle != Lifecycle::Stopped;
                if let Some(history) = &mut entry.history {
                    history.next = None;
                }
                self.children.enter_stopped(key, cx);
                if self.children.is_forgotten(key) {
                    self.forget(key, false, cx);
                } else {
                    self.set_down(key, DownState::Terminated, cx);
                    if comes_back && !edge_reports_it {
                        cx.push(Effect::StaysDown { key });
                    }
                }
                Some(ChildAnswer::Done)
            }
            ChildState::Activating | ChildState::Active => {
                self.children.begin_stop(key, StopReason::Manual, cx);
                self.children.wait(key, ticket, WaitFor::Down)
            }
            ChildState::Stopping { .. } => {
                self.children.stop_for_good(key);
                self.children.wait(key, ticket, WaitFor::Down)
            }
        }
    }

    fn restart_stopped(
        &mut self,
        ticket: Ticket,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let returns = self.will_be_started(key);
        let entry = self.children.entry(key);
        let (state, lifecycle) = (entry.state, entry.lifecycle);
        match state {
            ChildState::Down(_) if returns => Some(ChildAnswer::Restarting),
            ChildState::Down(_) => {
                self.start_again(ticket, key, WaitFor::StartedAgain, cx);
                None
            }
            ChildState::Gated(_) | ChildState::Backoff(_) | ChildState::AwaitingGroup => {
                Some(ChildAnswer::Restarting)
            }
            ChildState::AwaitingDecision { .. } => Some(ChildAnswer::InvalidState(lifecycle)),
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. } => {
                Some(ChildAnswer::Running)
            }
        }
    }

    /// Starts a child that is down, and no sibling.
    fn start_again(&mut self, ticket: Ticket, key: Key, goal: WaitFor, cx: &mut StepCx<'_>) {
        self.excluded.remove(&key);
        self.children.wait(key, ticket, goal);
        self.children.set(key, ChildState::Down(DownState::RestartsWithGroup));
        self.start_or_await_group(key, cx);
    }

    fn restart_running(
        &mut self,
        ticket: Ticket,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        let (state, lifecycle) = (entry.state, entry.lifecycle);
        match state {
            ChildState::Activating | ChildState::Active => {
                match self.group_start(key) {
                    None => self.children.begin_stop(key, StopReason::Restart, cx),
                    Some(from) => self.restart_group(from, cx.now, None, cx),
                }
                self.children.wait(key, ticket, WaitFor::Renewed)
            }
            ChildState::Stopping { why, .. }
                if !self.children.returns(key, why)
                    || self.is_excluded(key)
                    || (why == StopReason::Group
                        && !self.group.as_ref().is_some_and(GroupOp::restarts)) =>
            {
                Some(ChildAnswer::InvalidState(lifecycle))
            }
            ChildState::Stopping { .. }
            | ChildState::Gated(_)
            | ChildState::Backoff(_)
            | ChildState::AwaitingGroup => Some(ChildAnswer::Restarting),
            ChildState::Down(_) | ChildState::AwaitingDecision { .. } => {
                Some(ChildAnswer::InvalidState(lifecycle))
            }
        }
    }

    fn kill(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        match entry.state {
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. } => {
                self.children.kill(key, cx);
                Some(ChildAnswer::Done)
            }
            ChildState::Down(_)
            | ChildState::Gated(_)
            | ChildState::Backoff(_)
            | ChildState::AwaitingGroup
            | ChildState::AwaitingDecision { .. } => {
                Some(ChildAnswer::InvalidState(entry.lifecycle))
            }
        }
    }

    fn delete(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let returns = self.will_be_started(key);
        let entry = self.children.entry(key);
        match entry.state {
            ChildState::Down(_) if returns => Some(ChildAnswer::Restarting),
            // The decision of the failure callback is discarded.
            ChildState::Down(_) | ChildState::AwaitingDecision { .. } => {
                self.children.enter_stopped(key, cx);
                self.forget(key, false, cx);
                Some(ChildAnswer::Done)
            }
            ChildState::Gated(_) | ChildState::Backoff(_) | ChildState::AwaitingGroup => {
                Some(ChildAnswer::Restarting)
            }
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. } => {
                Some(ChildAnswer::Running)
            }
        }
    }

    fn retry(&mut self, ticket: Ticket, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        let lifecycle = entry.lifecycle;
        if entry.state == ChildState::Down(DownState::NotRestarted)
            && lifecycle == Lifecycle::Errored
        {
            // Its failure was not charged, and stopped no sibling.
            self.start_again(ticket, key, WaitFor::Renewed, cx);
            return None;
        }
        if !matches!(entry.state, ChildState::Down(DownState::GivenUp | DownState::Leaked)) {
            return Some(ChildAnswer::InvalidState(lifecycle));
        }
        self.excluded.remove(&key);
        // As part of a group, it is started in order.
        self.children.set(key, ChildState::Down(DownState::RestartsWithGroup));
        self.children.wait(key, ticket, WaitFor::Renewed);
        self.children.reset_limits(key);
        match self.group_start(key) {
            None => self.children.launch(key, StartCause::Manual, cx),
            Some(from) if self.group.is_some() => self.restart_group(from, cx.now, None, cx),
            Some(from) => self.start_from(from),
        }
        None
    }

    fn wake(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let entry = self.children.entry(key);
        match entry.state {
            ChildState::Backoff(cause) => {
                self.children.timers.disarm(Timer::Child(key));
                self.children.release_messages(key);
                self.children.launch(key, cause, cx);
                Some(ChildAnswer::Done)
            }
            ChildState::AwaitingGroup => {
                self.start_group_now(cx.now);
                Some(ChildAnswer::Done)
            }
            _ => Some(ChildAnswer::InvalidState(entry.lifecycle)),
        }
    }
}
