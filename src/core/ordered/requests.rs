//! The requests of callers for children that have an order.
//!
//! # Invariants
//!
//! 1. Every request is answered exactly once: at once if it is refused or nothing has to be waited
//!    for, else when the child has reached the caller's goal.
//! 2. A supervisor that is stopping refuses all requests, which `machine` ensures for both kinds.

use crate::core::{
    ChildAnswer, ChildState, DownState, Effect, Key, Ordered, StepCx, StopReason, Ticket, Timer,
    WaitFor,
};
use crate::lifecycle::Lifecycle;
use crate::policy::StartCause;

impl Ordered {
    /// Starts a child that was just added.
    pub(in crate::core) fn start_new(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.group_start(key).is_none() {
            self.children.launch(key, StartCause::Manual, cx);
        } else {
            self.start_or_await_group(key, cx);
        }
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

    /// Stops a child, and leaves it down. Returns the answer, unless that comes later.
    pub(in crate::core) fn terminate(
        &mut self,
        ticket: Ticket,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        // A range that no longer restarts reports this only when it comes to the child.
        let unreported =
            self.children.state(key) == Some(ChildState::Down(DownState::RestartsWithGroup));
        let comes_back = unreported || self.comes_back(key);
        // The current group operation does not start the child, whatever becomes of the operation.
        if self.group.is_some() {
            self.excluded.insert(key);
        }
        if self.children.entry(key).state.is_live() {
            self.children.stop_for_good(key, cx);
            return self.children.wait(key, ticket, WaitFor::Down);
        }
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

    /// Starts a child that has no task if it is down for good. Returns the answer, unless that comes later.
    pub(in crate::core) fn start_stopped(
        &mut self,
        ticket: Ticket,
        key: Key,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let returns = self.will_be_started(key);
        let entry = self.children.entry(key);
        match entry.state {
            ChildState::Down(_) if !returns => {
                self.children.wait(key, ticket, WaitFor::StartedAgain);
                self.start_again(key, cx);
                None
            }
            ChildState::AwaitingDecision { .. } => Some(ChildAnswer::InvalidState(entry.lifecycle)),
            _ => Some(ChildAnswer::Restarting),
        }
    }

    /// Runs a new incarnation of the child, for a caller that waits for it.
    pub(in crate::core) fn restart(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.excluded.remove(&key);
        let stops_with_group = self.is_in_stopping_group(key);
        let starts_with_group = self.will_be_started(key);
        match self.children.entry(key).state {
            ChildState::Activating | ChildState::Active => match self.group_start(key) {
                None => self.children.begin_stop(key, StopReason::Restart, cx),
                Some(from) => self.restart_group(from, cx.now, None, cx),
            },
            // Its group is about to take it down, and to start it.
            ChildState::Stopping { .. }
            | ChildState::Backoff(_)
            | ChildState::AwaitingDecision { .. }
                if stops_with_group => {}
            ChildState::Stopping { .. } => self.children.start_when_down(key),
            ChildState::Backoff(cause) => {
                self.children.release_messages(key);
                self.children.launch(key, cause, cx);
            }
            ChildState::AwaitingGroup => self.start_group_now(cx.now),
            ChildState::Down(_) if starts_with_group => self.start_group_now(cx.now),
            ChildState::Down(DownState::GivenUp | DownState::Leaked) => self.retry(key, cx),
            ChildState::Down(_) => self.start_again(key, cx),
            // The decision of the failure callback is discarded.
            ChildState::AwaitingDecision { .. } => {
                self.children.launch(key, StartCause::Manual, cx);
            }
            ChildState::Gated(_) => unreachable!("a gated child is its own answer"),
        }
    }

    /// Starts a child that is down, and no sibling. Its failure was not charged, and stopped no sibling.
    fn start_again(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.excluded.remove(&key);
        self.children.set(key, ChildState::Down(DownState::RestartsWithGroup));
        self.start_or_await_group(key, cx);
    }

    /// Starts a child that was given up, and its range, with fresh limits.
    fn retry(&mut self, key: Key, cx: &mut StepCx<'_>) {
        // As part of a group, it is started in order.
        self.children.set(key, ChildState::Down(DownState::RestartsWithGroup));
        self.children.reset_limits(key);
        match self.group_start(key) {
            None => self.children.launch(key, StartCause::Manual, cx),
            Some(from) if self.group.is_some() => self.restart_group(from, cx.now, None, cx),
            Some(from) => self.start_from(from),
        }
    }

    /// Removes a child that is down.
    pub(in crate::core) fn delete(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
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
}
