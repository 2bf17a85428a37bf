//! Beginning a group operation, and merging it with the current one.
//!
//! There is at most one group operation. What begins while it runs merges with it:
//!
//! * an operation that finishes the supervisor is never changed;
//! * one that stops or waits takes the smaller beginning and the later deadline;
//! * one that starts begins again, at the range of the child that failed.
//!
//! # Invariants
//!
//! 1. A caller that waits for a start waits for at most one restart of the child's group.

use crate::core::{
    After, ChildAnswer, ChildState, Closing, DownState, Finish, GroupOp, GroupPhase, Key, Ordered,
    Position, StepCx, StopMode, Timer,
};
use std::time::Instant;

impl Ordered {
    /// Ends the supervisor, unless that has begun already.
    pub(in crate::core) fn finish(&mut self, finish: Finish) {
        if !self.is_finishing() {
            self.replace(0, StopMode::Cancel, After::Finish(finish));
        }
    }

    /// Cancels the children that are left at once, if the supervisor ends.
    pub(in crate::core) fn close(&mut self, all: bool) {
        let closing = Some(if all { Closing::All } else { Closing::LowestOrder });
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
