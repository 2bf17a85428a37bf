//! What becomes of a child that has ended: a restart, nothing, or the end of the supervisor.

use std::sync::Arc;

use crate::core::{
    ChildAnswer, ChildState, Decision, DownState, Finish, Key, Ordered, Position, RestartDecision,
    StepCx, StopReason, WaitFor,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{AutoShutdown, FirstStart, OnExhausted, OnExit, StartCause};

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

    /// A child was aborted and still runs, and is parked so that it does not run twice.
    pub(in crate::core) fn on_leaked(&mut self, key: Key, _why: StopReason, cx: &mut StepCx<'_>) {
        self.set_down(key, DownState::Leaked, cx);
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
