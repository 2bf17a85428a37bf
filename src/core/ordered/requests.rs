//! The requests of callers for children that have an order, and the group operations that they and failures begin.
//!
//! There is at most one group operation. What begins while it runs merges with it:
//!
//! * an operation that finishes the supervisor is never changed;
//! * one that stops or waits takes the smaller beginning and the later deadline;
//! * one that starts begins again, at the range of the child that failed.
//!
//! # Invariants
//!
//! 1. Every request is answered exactly once: immediately if it is refused or nothing has to be waited
//!    for, else when the child has reached the caller's goal.
//! 2. A supervisor that is stopping refuses all requests but those that stop a child, which `machine` ensures for both
//!    kinds.
//! 3. A caller that waits for a start waits for at most one restart of the child's group.

use std::time::Instant;

use crate::core::{
    After, ChildAnswer, ChildState, CloseScope, DownState, Effect, Finish, GroupOp, GroupPhase,
    Key, Ordered, Position, StepCx, StopMode, StopReason, Ticket, Timer, WaitFor,
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

    /// Stops a child, and leaves it down or removes it. Returns the answer, unless that comes later.
    pub(in crate::core) fn terminate(
        &mut self,
        ticket: Ticket,
        key: Key,
        removes: bool,
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
            self.children.stop_for_good(key, removes, cx);
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
        if removes || self.children.is_forgotten(key) {
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

impl Ordered {
    /// Ends the supervisor, unless that has begun already.
    pub(in crate::core) fn finish(&mut self, finish: Finish) {
        if !self.is_finishing() {
            self.replace(0, StopMode::Cancel, After::Finish(finish));
        }
    }

    /// Cancels the children that are left at once, if the supervisor ends.
    pub(in crate::core) fn close(&mut self, all: bool) {
        let closing = Some(if all { CloseScope::All } else { CloseScope::LowestOrder });
        let phase = self.stopping_all(StopMode::CancelOrder(None));
        if let Some(op) = &mut self.group
            && op.closing < closing
            && !matches!(op.phase, GroupPhase::Stopping { mode: StopMode::Abort, .. })
        {
            (op.closing, op.phase) = (closing, phase);
        }
    }

    /// Aborts all children that are left, if the supervisor ends.
    pub(in crate::core) fn abort_all(&mut self) {
        let phase = self.stopping_all(StopMode::Abort);
        if let Some(op) = &mut self.group {
            op.phase = phase;
        }
    }

    /// Stops a range and leaves it down.
    pub(super) fn leave_down(&mut self, from: Position, cx: &mut StepCx<'_>) {
        let from = match &self.group {
            Some(op) if !op.is_starting() => op.from.min(from),
            _ => from,
        };
        let awaited = self.awaited_child();
        self.replace(from, StopMode::Cancel, After::StayDown);
        self.absorb_no_longer_awaited(awaited, cx);
    }

    /// Starts the children that are down from `from` on, and stops none.
    pub(super) fn start_from(&mut self, from: Position) {
        self.replace(from, StopMode::Skip, After::Restart);
    }

    fn replace(&mut self, from: Position, mode: StopMode, after: After) {
        self.children.timers.disarm(Timer::Group);
        let until = self.group.take().map_or(self.children.began, |op| op.until);
        let phase = self.stopping_all(mode);
        let (failed_child, closing) = (None, None);
        self.group =
            Some(GroupOp { from, start_from: from, phase, until, failed_child, closing, after });
    }

    /// Stops the range that begins at `from` and starts it again at `until`, merging with the
    /// current operation.
    pub(super) fn restart_group(
        &mut self,
        from: Position,
        until: Instant,
        failed_child: Option<Key>,
        cx: &mut StepCx<'_>,
    ) {
        let awaited = self.awaited_child();
        let phase = self.stopping_all(StopMode::Cancel);
        let interrupts = failed_child.is_some()
            && self.group.as_ref().is_some_and(|op| op.restarts() && op.is_starting());
        match &mut self.group {
            Some(op) if op.is_finishing() => return,
            Some(op) if op.restarts() && !op.is_starting() => {
                // From the end again, unless the same children restart and are stopping already.
                let cancels =
                    matches!(op.phase, GroupPhase::Stopping { mode: StopMode::Cancel, .. });
                if !cancels || from < op.from.max(op.start_from) {
                    op.phase = phase;
                }
                op.from = op.from.min(from);
                op.start_from = op.start_from.min(from);
                op.until = op.until.max(until);
                op.failed_child = failed_child.or(op.failed_child);
            }
            op => {
                let (mut stop_from, mut start_from) = (from, from);
                match op {
                    Some(op) if op.is_starting() => start_from = op.start_from.min(from),
                    Some(op) => stop_from = op.from.min(from),
                    None => {}
                }
                if !self.up {
                    start_from = 0;
                }
                let (from, after) = (stop_from, After::Restart);
                let closing = None;
                *op =
                    Some(GroupOp { from, start_from, phase, until, failed_child, closing, after });
            }
        }
        self.children.timers.disarm(Timer::Group);
        self.absorb_no_longer_awaited(awaited, cx);
        if interrupts {
            self.answer_interrupted(cx);
        }
    }

    /// A failure has interrupted a start, which begins again. Answers the callers that wait for a child
    /// of it: if its siblings keep failing, the start never comes to the child.
    fn answer_interrupted(&mut self, cx: &mut StepCx<'_>) {
        let Some(from) = self.group.as_ref().map(|op| op.from.min(op.start_from)) else { return };
        for key in self.children.callers.awaited_up() {
            if self.children.entries.get(key).is_some_and(|entry| entry.pos >= from) {
                self.children.answer_up(key, &ChildAnswer::Restarting, cx);
            }
        }
    }

    /// Ends the wait of the group now.
    pub(super) fn start_group_now(&mut self, now: Instant) {
        if let Some(op) = &mut self.group {
            op.until = now;
        }
    }

    /// The child that the group waits for will not restart. Its siblings stay down.
    pub(super) fn abandon_group_restart(&mut self, failed_child: Key) {
        let phase = self.stopping_all(StopMode::Cancel);
        let Some(op) = &mut self.group else { return };
        if op.failed_child == Some(failed_child) && !op.is_finishing() && !op.is_starting() {
            op.failed_child = None;
            op.after = After::StayDown;
            // From the end again, to mark the children that are down already.
            op.phase = phase;
            self.children.timers.disarm(Timer::Group);
        }
    }

    /// The beginning of the stop of all current children. A child that is added later is neither
    /// stopped nor marked.
    fn stopping_all(&self, mode: StopMode) -> GroupPhase {
        GroupPhase::Stopping { cursor: self.next_pos, mode }
    }

    fn awaited_child(&self) -> Option<Key> {
        self.group.as_ref().and_then(|op| op.failed_child)
    }

    /// A group waits for the delay of one child. A child that it waited for before this operation is
    /// down like its siblings: there is no task to stop, and no restart of its own will come.
    fn absorb_no_longer_awaited(&mut self, before: Option<Key>, cx: &mut StepCx<'_>) {
        let (Some(key), Some(op)) = (before, &self.group) else { return };
        let Some(entry) = self.children.entries.get(key) else { return };
        let waits = entry.state == ChildState::AwaitingGroup && entry.pos >= op.from;
        if waits && op.failed_child != before {
            self.absorb(key, cx);
        }
    }

    /// Makes a child that was about to start by itself part of its group, and down.
    pub(in crate::core) fn absorb(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.timers.disarm(Timer::Child(key));
        self.children.enter_stopped(key, cx);
        if let Some(history) = &mut self.children.entry(key).history {
            history.next = None;
        }
        self.set_down(key, DownState::RestartsWithGroup, cx);
    }
}
