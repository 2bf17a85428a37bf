//! The rules of a supervisor whose children have an order.
//!
//! A strategy is the range of the start order that a failure restarts. In a range of one child, the
//! child waits by itself. All that concerns several children in order (first start, group restart,
//! parking, shutdown) is one [`GroupOp`].
//!
//! | file | what |
//! | --- | --- |
//! | here | what becomes of a child that has ended: a restart, nothing, or the end of the supervisor |
//! | `requests` | the requests of callers, and the group operations that they begin |
//! | `walk` | the steps of the group operation |

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::{
    After, ChildAnswer, ChildEntry, ChildState, Children, Decision, DownState, Finish, GroupOp,
    GroupPhase, Key, Position, RestartDecision, StartMode, StartOrder, StepCx, StopMode,
    StopReason, WaitFor,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{
    AutoShutdown, ChildRules, FirstStart, OnExhausted, OnExit, Rules, Shutdown, StartCause,
};

mod requests;
mod walk;

/// See the [module](self).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Ordered {
    pub(super) children: Children,
    pub(super) order: StartOrder,
    pub(super) next_pos: Position,
    pub(super) group: Option<GroupOp>,
    /// Children that callers have terminated since the group operation began. It does not start
    /// them.
    pub(super) excluded: BTreeSet<Key>,
    /// The first start has passed the last child.
    pub(super) up: bool,
    pub(super) finished: bool,
    /// Set if the last event has left work over.
    pub(super) more: Option<Instant>,
    /// A significant child has ended for good while a range was being stopped.
    pub(super) recheck_auto_shutdown: bool,
}

impl Ordered {
    pub(super) fn new(rules: Arc<Rules>, children: usize, now: Instant) -> Self {
        let group = Some(GroupOp::first_start(rules.start, now));
        let mut all = Children::new(rules, now);
        all.entries.reserve(children);
        Self {
            children: all,
            order: StartOrder::default(),
            next_pos: 0,
            group,
            excluded: BTreeSet::new(),
            up: false,
            finished: false,
            more: Some(now),
            recheck_auto_shutdown: false,
        }
    }

    pub(super) fn add(
        &mut self,
        rules: Arc<ChildRules>,
        place: Option<Position>,
        cx: &mut StepCx<'_>,
    ) -> Key {
        let pos = place.filter(|&place| self.order.is_free(place)).unwrap_or(self.next_pos);
        // A supervisor with many children declares them one by one, each behind all others.
        let behind = if pos < self.next_pos { self.order.first_from(pos) } else { None };
        self.next_pos = self.next_pos.max(pos + 1);
        let entries = &self.children.entries;
        let order_of = |(_, key)| entries.get(key).map(|entry: &ChildEntry| entry.stop_order);
        let before = self.order.last_before(pos).and_then(order_of).unwrap_or(i8::MAX);
        let behind = behind.and_then(order_of).unwrap_or(i8::MIN);
        let key = self.children.add(rules, pos, cx);
        let entry = self.children.entry(key);
        entry.stop_order = entry.stop_order.min(before).max(behind);
        self.order.insert(pos, key);
        key
    }

    /// Gives the children this order; others keep theirs, behind them. Not while a group operation runs, which
    /// goes by places.
    pub(super) fn reorder(&mut self, keys: &[Key]) {
        debug_assert!(self.group.is_none(), "a group operation has places of its own");
        let first: BTreeSet<_> = keys.iter().copied().collect();
        let all = std::iter::successors(self.next(0), |&(_, place)| self.next(place));
        let rest: Vec<_> = all.map(|(key, _)| key).filter(|key| !first.contains(key)).collect();
        self.order = StartOrder::default();
        let mut before = i8::MAX;
        for &key in keys.iter().chain(&rest) {
            let entry = self.children.entry(key);
            entry.pos = self.next_pos;
            entry.stop_order = entry.rules.spec.stop_order.min(before);
            before = entry.stop_order;
            self.order.insert(self.next_pos, key);
            self.next_pos += 1;
        }
    }

    pub(super) fn next(&self, place: u64) -> Option<(Key, u64)> {
        self.order.first_from(place).map(|(pos, key)| (key, pos + 1))
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finished || self.group.as_ref().is_some_and(GroupOp::is_finishing)
    }

    /// Whether a range is being stopped, so that it is still open which of its children restart.
    pub(super) fn is_stopping_group(&self) -> bool {
        self.group.as_ref().is_some_and(GroupOp::is_stopping)
    }

    /// Whether the child is in a range that is being stopped, and is yet to be stopped.
    pub(super) fn is_in_stopping_group(&self, key: Key) -> bool {
        let Some(op) = &self.group else { return false };
        self.children.entries.get(key).is_some_and(|entry| op.will_stop(entry.pos))
    }

    /// Whether the group operation will come to the child, which is down, and start it.
    pub(super) fn will_be_started(&self, key: Key) -> bool {
        let Some(entry) = self.children.entries.get(key) else { return false };
        let Some(op) = self.group.as_ref().filter(|op| op.restarts()) else { return false };
        match op.phase {
            GroupPhase::Stopping { cursor, .. } if (op.from..cursor).contains(&entry.pos) => {
                entry.pos >= op.start_from
                    && !self.is_excluded(key)
                    && entry.state != ChildState::Down(DownState::Leaked)
                    && (!entry.is_message_startable() || entry.has_pending_message())
            }
            GroupPhase::Stopping { .. } | GroupPhase::Waiting => {
                entry.pos >= op.start_from && entry.is_startable_by_group()
            }
            GroupPhase::Starting { mode: StartMode::AwaitAll, .. } => false,
            GroupPhase::Starting { cursor, .. } => {
                entry.pos >= cursor && entry.is_startable_by_group()
            }
        }
    }

    /// Whether a caller has terminated the child since the group operation began.
    fn is_excluded(&self, key: Key) -> bool {
        self.excluded.contains(&key)
    }

    /// The child that must be down before the next one is cancelled.
    ///
    /// `None` in a range of which all or a part stays down: a child that is started there meanwhile
    /// may have to be stopped first.
    pub(super) fn stops_now(&self) -> Option<Key> {
        let op = self.group.as_ref().filter(|op| match op.after {
            After::Restart => op.start_from <= op.from,
            After::StayDown => false,
            After::Finish(_) => true,
        })?;
        let GroupPhase::Stopping { cursor, mode: StopMode::Cancel } = op.phase else { return None };
        op.last_before(cursor, &self.order).map(|(_, key)| key)
    }

    /// The worker that is cancelled when this child is down.
    pub(super) fn stops_after(&self, key: Key) -> Option<Key> {
        let pos = self.children.entries.get(key)?.pos;
        let (_, next) = self.group.as_ref()?.last_before(pos, &self.order)?;
        let entry = self.children.entries.get(next)?;
        let cancelled = entry.state == ChildState::Active
            && !entry.rules.is_supervisor()
            && entry.rules.shutdown != Shutdown::BrutalKill;
        cancelled.then_some(next)
    }

    /// The deadline of a child that waits for its group, which may be later than its own.
    pub(super) fn group_deadline(&self, key: Key) -> Option<Instant> {
        let awaiting = self.children.state(key) == Some(ChildState::AwaitingGroup);
        self.group.as_ref().filter(|_| awaiting).map(|op| op.until)
    }

    /// Whether the child runs, or will without a request of a caller.
    pub(super) fn comes_back(&self, key: Key) -> bool {
        let Some(entry) = self.children.entries.get(key) else { return false };
        match entry.state {
            ChildState::Stopping { .. } if self.is_in_stopping_group(key) => {
                if self.children.is_dormant_temporary(key) {
                    !self.is_excluded(key)
                } else {
                    !self.children.is_forgotten(key) && self.will_be_started(key)
                }
            }
            ChildState::Down(DownState::RestartsWithGroup) => self.will_be_started(key),
            ChildState::Down(DownState::New) => true,
            _ => entry.comes_back_alone(),
        }
    }

    /// Leaves a child without a task, and answers its callers.
    pub(super) fn set_down(&mut self, key: Key, down: DownState, cx: &mut StepCx<'_>) {
        self.children.set(key, ChildState::Down(down));
        self.children.answer_down(key, cx);
        self.answer_if_staying_down(key, cx);
    }

    /// Answers the callers that wait for a start, unless the group operation will start the child.
    fn answer_if_staying_down(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.note_down(key);
        if self.is_finishing() {
            self.children.answer_all(key, &ChildAnswer::ShuttingDown, cx);
        } else if !self.will_be_started(key) {
            self.children.answer_all(key, &ChildAnswer::Stopped, cx);
        }
    }

    /// Removes a child that is Stopped. Children that require it go on if it ended cleanly.
    fn forget(&mut self, key: Key, ended_well: bool, cx: &mut StepCx<'_>) {
        let down = if ended_well { DownState::Finished } else { DownState::Terminated };
        self.children.set(key, ChildState::Down(down));
        self.children.answer_down(key, cx);
        self.children.answer_all(key, &ChildAnswer::Stopped, cx);
        let answer =
            if self.is_finishing() { ChildAnswer::ShuttingDown } else { ChildAnswer::NotFound };
        if let Some(entry) = self.children.remove(key, &answer, cx) {
            self.order.remove(entry.pos);
        }
    }

    /// Removes a child that a caller removes and that is down, unless that was done.
    pub(in crate::core) fn discard(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if self.children.state(key).is_some() {
            self.children.enter_stopped(key, cx);
            self.forget(key, false, cx);
        }
    }

    /// Removes a child that is Stopped if it is temporary and no message can start it, or leaves it down.
    fn forget_or_set_down(&mut self, key: Key, down: DownState, cx: &mut StepCx<'_>) {
        if self.children.is_forgotten(key) {
            self.forget(key, false, cx);
        } else {
            self.set_down(key, down, cx);
        }
    }

    /// Starts a child that is down if a message waits for it, unless the group operation decides.
    pub(super) fn start_for_message(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let waits = !self.children.is_started_by_message(key)
            || self.is_finishing()
            || self.will_be_started(key)
            || self.is_in_stopping_group(key);
        if !waits {
            self.launch_for_message(key, cx);
        }
    }

    /// Starts a child for the message that waits for it, alone.
    fn launch_for_message(&mut self, key: Key, cx: &mut StepCx<'_>) {
        if let Some((what, reason)) = self.children.launch_for_message(key, cx) {
            let from = self.group_start(key);
            self.on_exhausted(key, from, &reason, what, cx);
        }
    }
}

impl Ordered {
    /// A child has ended that was not stopped.
    pub(in crate::core) fn on_ended(
        &mut self,
        key: Key,
        active: bool,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) {
        if self.is_in_stopping_group(key) {
            self.on_stopped_in_group(key, cx);
        } else {
            self.decide(key, active, reason, cx);
        }
    }

    /// A child that a caller has stopped is gone.
    pub(in crate::core) fn on_terminated(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.enter_stopped(key, cx);
        self.forget_or_set_down(key, DownState::Terminated, cx);
    }

    /// A child has ended inside a range that is being stopped. Its exit is not charged.
    pub(in crate::core) fn on_stopped_in_group(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.enter_stopped(key, cx);
        let down = if self.is_excluded(key) {
            DownState::Terminated
        } else if self.is_finishing() {
            DownState::DownWithSupervisor
        } else if self.children.is_dormant_temporary(key) {
            DownState::Dormant
        } else {
            DownState::RestartsWithGroup
        };
        self.forget_or_set_down(key, down, cx);
    }

    /// A child declines to run. It is Stopped already.
    pub(in crate::core) fn on_ignored(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.answer_all(key, &ChildAnswer::Ignored, cx);
        self.forget_or_set_down(key, DownState::Ignored, cx);
    }

    /// A child was aborted and still runs. It is removed, or parked so that it does not run twice.
    pub(in crate::core) fn on_leaked(&mut self, key: Key, why: StopReason, cx: &mut StepCx<'_>) {
        if why.removes() {
            self.discard(key, cx);
        } else {
            self.set_down(key, DownState::Leaked, cx);
        }
    }

    /// Leaves a child down whose end also ends the supervisor.
    pub(in crate::core) fn give_up(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.enter_stopped(key, cx);
        self.set_down(key, DownState::GivenUp, cx);
    }

    /// Decides on a child that has ended by itself.
    fn decide(&mut self, key: Key, active: bool, reason: &Arc<ExitReason>, cx: &mut StepCx<'_>) {
        self.children.answer_down(key, cx);
        if !active && !reason.is_clean() {
            let awaited = self.children.callers.awaited_start(key);
            self.children.answer_all(key, &ChildAnswer::Failed(ExitReason::clone(reason)), cx);
            if let Some(goal) = awaited {
                self.children.enter_stopped(key, cx);
                return match goal {
                    WaitFor::Started => self.forget(key, false, cx),
                    WaitFor::Configured => self.children.hold_back(key, cx),
                    _ => self.set_down(key, DownState::Terminated, cx),
                };
            }
            let first = !self.up && !self.children.entry(key).has_passed;
            if first && self.children.rules.first_start == FirstStart::Fail {
                self.children.report_decision(key, reason, Decision::FailStart, cx);
                self.give_up(key, cx);
                return self.finish(Finish::StartFailed { key, reason: ExitReason::clone(reason) });
            }
        }
        match self.children.on_exit(key, active, reason, cx) {
            on_exit @ (OnExit::Restart | OnExit::RestartUncharged) => {
                self.on_failed(key, active, on_exit, reason, cx);
            }
            OnExit::Leave => {
                let significant = self.children.entry(key).rules.spec.significant;
                self.leave(key, reason, Decision::Leave, cx);
                if significant {
                    self.check_auto_shutdown();
                }
                self.start_for_message(key, cx);
            }
            OnExit::EndSupervisor => {
                self.leave(key, reason, Decision::EndSupervisor, cx);
                self.finish(Finish::AutoShutdown);
            }
            OnExit::FailSupervisor => {
                self.leave(key, reason, Decision::FailSupervisor, cx);
                self.finish(Finish::Failed { key, reason: ExitReason::clone(reason) });
            }
        }
    }

    /// Leaves a child down that has ended by itself: Stopped if it ended cleanly or is temporary, else
    /// Errored.
    fn leave(
        &mut self,
        key: Key,
        reason: &Arc<ExitReason>,
        decision: Decision,
        cx: &mut StepCx<'_>,
    ) {
        let incarnation = self.children.entry(key).incarnation;
        self.children.answer_all(key, &ChildAnswer::Started(incarnation), cx);
        if self.children.is_dormant_temporary(key) {
            self.children.enter_stopped(key, cx);
        }
        self.children.report_decision(key, reason, decision, cx);
        if self.children.is_forgotten(key) {
            self.children.enter_stopped(key, cx);
            self.forget(key, reason.is_clean(), cx);
        } else if reason.is_clean() {
            self.set_down(key, DownState::Finished, cx);
        } else {
            self.set_down(key, DownState::NotRestarted, cx);
        }
    }

    fn check_auto_shutdown(&mut self) {
        match self.children.rules.auto_shutdown {
            AutoShutdown::AnySignificant => self.finish(Finish::AutoShutdown),
            // Which children restart with the group is known when it is down.
            AutoShutdown::AllSignificant if self.is_stopping_group() => {
                self.recheck_auto_shutdown = true;
            }
            AutoShutdown::AllSignificant if self.all_significant_ended() => {
                self.finish(Finish::AutoShutdown);
            }
            AutoShutdown::AllSignificant | AutoShutdown::Never => {}
        }
    }

    /// Whether the only significant children left are those that callers stop.
    pub(super) fn all_significant_ended(&self) -> bool {
        self.children.significant_remaining == self.children.significant_stopping
    }

    /// Decides on an end that the child's trigger answers with a restart.
    pub(in crate::core) fn on_failed(
        &mut self,
        key: Key,
        active: bool,
        on_exit: OnExit,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) {
        if self.children.callback_decides(key, active, reason, cx) {
            return;
        }
        let decision = self.children.decide_restart(key, active, on_exit, reason, cx);
        match (decision, self.group_start(key)) {
            (RestartDecision::Exhausted(what), from) => {
                self.on_exhausted(key, from, reason, what, cx);
            }
            (RestartDecision::RestartAt(at), None) => self.children.restart(key, at, cx),
            (RestartDecision::PauseUntil(at), None) => {
                self.children.back_off(key, at, StartCause::Restart, cx);
            }
            (RestartDecision::RestartAt(at) | RestartDecision::PauseUntil(at), Some(from)) => {
                self.children.set(key, ChildState::AwaitingGroup);
                self.children.enter(key, Lifecycle::Restarting, None, cx);
                self.restart_group(from, at, Some(key), cx);
            }
        }
    }

    pub(super) fn on_exhausted(
        &mut self,
        key: Key,
        from: Option<Position>,
        reason: &Arc<ExitReason>,
        what: OnExhausted,
        cx: &mut StepCx<'_>,
    ) {
        if !matches!(what, OnExhausted::Park | OnExhausted::Pause(_)) {
            self.children.enter_stopped(key, cx);
        }
        self.set_down(key, DownState::GivenUp, cx);
        match Finish::on_exhausted(what, key, reason) {
            Some(finish) => self.finish(finish),
            None => {
                if let Some(from) = from {
                    self.leave_down(from, cx);
                }
            }
        }
    }

    /// Where the range begins that a failure of this child restarts, if it is more than the child.
    pub(super) fn group_start(&mut self, key: Key) -> Option<Position> {
        let pos = self.children.entry(key).pos;
        let range = self.children.rules.strategy.affected(pos);
        (range.start() != range.end()).then_some(*range.start())
    }
}
