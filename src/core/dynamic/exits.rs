//! What becomes of a child that has ended: a restart, its removal, or the end of the supervisor.

use std::sync::Arc;

use crate::core::{
    ChildAnswer, Decision, DownState, Dynamic, Finish, Key, RestartDecision, StepCx, StopReason,
    WaitFor,
};
use crate::exit::ExitReason;
use crate::policy::{OnExhausted, OnExit, StartCause};

impl Dynamic {
    /// A child is gone that is stopped with all others.
    pub(in crate::core) fn on_stopped_in_group(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.forget(key, cx);
    }

    /// A child that a caller has stopped is gone.
    pub(in crate::core) fn on_terminated(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.forget(key, cx);
    }

    /// A child declines to run. It is Stopped already.
    pub(in crate::core) fn on_ignored(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.children.answer_all(key, &ChildAnswer::Ignored, cx);
        self.forget(key, cx);
    }

    /// A child was aborted and still runs, and is parked so that it does not run twice.
    pub(in crate::core) fn on_leaked(&mut self, key: Key, why: StopReason, cx: &mut StepCx<'_>) {
        if why.is_manual() {
            self.forget(key, cx);
        } else {
            self.set_down(key, DownState::Leaked, cx);
        }
    }

    /// Removes a child whose end also ends the supervisor.
    pub(in crate::core) fn give_up(&mut self, key: Key, cx: &mut StepCx<'_>) {
        self.forget(key, cx);
    }

    /// Decides on a child that has ended by itself.
    pub(in crate::core) fn on_ended(
        &mut self,
        key: Key,
        active: bool,
        reason: &Arc<ExitReason>,
        cx: &mut StepCx<'_>,
    ) {
        if !active && !reason.is_clean() {
            let awaited = self.children.callers.awaited_start(key);
            self.children.answer_all(key, &ChildAnswer::Failed(ExitReason::clone(reason)), cx);
            match awaited {
                Some(WaitFor::Configured) => {
                    self.children.enter_stopped(key, cx);
                    return self.children.hold_back(key, cx);
                }
                Some(_) => return self.forget(key, cx),
                None => {}
            }
        }
        let on_exit = self.children.on_exit(key, active, reason, cx);
        if self.is_finishing() || !on_exit.restarts() {
            return self.leave(key, on_exit, reason, cx);
        }
        self.on_failed(key, active, on_exit, reason, cx);
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
        match self.children.decide_restart(key, active, on_exit, reason, cx) {
            RestartDecision::RestartAt(at) => self.children.restart(key, at, cx),
            RestartDecision::PauseUntil(at) => {
                self.children.back_off(key, at, StartCause::Restart, cx);
            }
            RestartDecision::Exhausted(what) => self.on_exhausted(key, reason, what, cx),
        }
    }

    /// Leaves a child down that has exceeded a limit, removes it, or ends the supervisor.
    pub(super) fn on_exhausted(
        &mut self,
        key: Key,
        reason: &Arc<ExitReason>,
        what: OnExhausted,
        cx: &mut StepCx<'_>,
    ) {
        match what {
            OnExhausted::Park | OnExhausted::Pause(_) => {
                self.set_down(key, DownState::GivenUp, cx);
            }
            OnExhausted::StopChild => {
                self.children.enter_stopped(key, cx);
                self.set_down(key, DownState::GivenUp, cx);
            }
            OnExhausted::Remove | OnExhausted::Escalate | OnExhausted::Exit(_) => {
                self.forget(key, cx);
            }
        }
        if let Some(finish) = Finish::on_exhausted(what, key, reason) {
            self.finish(finish);
        }
    }

    /// Removes a child that has ended by itself, unless a message may start it. If the supervisor ends
    /// already, nothing else follows from the child's end.
    fn leave(&mut self, key: Key, on_exit: OnExit, reason: &Arc<ExitReason>, cx: &mut StepCx<'_>) {
        let over = self.is_finishing();
        let incarnation = self.children.entry(key).incarnation;
        self.children.answer_up(key, &ChildAnswer::Started(incarnation), cx);
        let decision = match on_exit {
            OnExit::Leave => Some(Decision::Leave),
            OnExit::EndSupervisor => Some(Decision::EndSupervisor).filter(|_| !over),
            OnExit::FailSupervisor => Some(Decision::FailSupervisor).filter(|_| !over),
            OnExit::Restart | OnExit::RestartUncharged => None,
        };
        let on_message = self.children.entry(key).rules.spec.on_message;
        let kept =
            on_exit == OnExit::Leave && !over && on_message && !self.children.is_forgotten(key);
        if kept && self.children.is_dormant_temporary(key) {
            self.children.enter_stopped(key, cx);
        }
        if let Some(decision) = decision {
            self.children.report_decision(key, reason, decision, cx);
        }
        if kept {
            let down =
                if reason.is_clean() { DownState::Finished } else { DownState::NotRestarted };
            self.set_down(key, down, cx);
            return self.start_for_message(key, cx);
        }
        self.forget(key, cx);
        match on_exit {
            OnExit::EndSupervisor => self.finish(Finish::AutoShutdown),
            OnExit::FailSupervisor => {
                self.finish(Finish::Failed { key, reason: ExitReason::clone(reason) })
            }
            OnExit::Leave | OnExit::Restart | OnExit::RestartUncharged => {}
        }
    }
}
