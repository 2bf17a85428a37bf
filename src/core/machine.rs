//! The entry points of one supervisor's rules, and what both kinds of supervisor share.
//!
//! A [`Machine`] handles what is the same for both kinds, and leaves the rest to [`Ordered`] or
//! [`Dynamic`].
//!
//! # Invariants
//!
//! 1. A new child and a new order start and stop nothing: they take effect with the next event.

use std::sync::Arc;
use std::time::Instant;

#[cfg(test)]
use super::Links;
#[cfg(test)]
use super::user_code::NoUserCode;
use super::{
    After, AfterFailing, ChildAnswer, ChildEntry, ChildRequest, ChildState, Children, Decision,
    Declaration, DownState, Dynamic, Effect, Finish, IfRunning, IfWaiting, Key, MachineEvent,
    Ordered, SLICE, StepCx, StopReason, Ticket, Timer, UserCode, WaitFor,
};
use crate::exit::ExitReason;
#[cfg(test)]
use crate::policy::{ChildOptions, ChildRules};
use crate::policy::{OnLeak, Reset, Rules, StartCause, Withheld};

/// The rules of one supervisor: events in, effects out.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) enum Machine {
    /// The children have an order, and a strategy restarts them.
    Ordered(Ordered),
    /// Many equal children without an order.
    Dynamic(Dynamic),
}

/// Evaluates an expression for the machine's kind.
macro_rules! each {
    ($machine:expr, $kind:ident => $value:expr) => {
        match $machine {
            Machine::Ordered($kind) => $value,
            Machine::Dynamic($kind) => $value,
        }
    };
}

pub(super) use each;

impl Machine {
    /// Creates the machine of a supervisor that starts its children in order, at the first
    /// [`MachineEvent::Tick`].
    ///
    /// `children` is how many are declared next.
    pub(crate) fn ordered(rules: impl Into<Arc<Rules>>, children: usize, now: Instant) -> Self {
        Self::Ordered(Ordered::new(rules.into(), children, now))
    }

    /// Creates the machine of a dynamic supervisor.
    pub(crate) fn dynamic(rules: impl Into<Arc<Rules>>, now: Instant) -> Self {
        Self::Dynamic(Dynamic::new(rules.into(), now))
    }

    /// Handles one event and appends its effects, in order.
    pub(crate) fn on_event(
        &mut self,
        event: MachineEvent,
        now: Instant,
        user_code: &mut dyn UserCode,
        effects: &mut Vec<Effect>,
    ) {
        if each!(self, kind => kind.finished) {
            return;
        }
        let children = self.children();
        let subject = children.subject(&event);
        let cx = &mut StepCx { now, user_code, effects };
        match (event, subject) {
            (MachineEvent::Ready { .. }, Some(key)) => {
                if self.children().state(key) == Some(ChildState::Activating) {
                    self.children_mut().on_ready(key, cx);
                }
            }
            (MachineEvent::Ignored { .. }, Some(key)) => {
                if self.children_mut().report_declined(key, cx) {
                    each!(self, kind => kind.on_ignored(key, cx));
                } else {
                    self.on_exited(key, ExitReason::Shutdown, cx);
                }
            }
            (MachineEvent::Exited { reason, .. }, Some(key)) => self.on_exited(key, reason, cx),
            (MachineEvent::Remaining { reason, .. }, Some(key)) => {
                // In a supervisor that ends, the child is stopped and aborted anyway.
                if !self.is_ending() {
                    self.children_mut().on_remaining(key, reason, cx);
                }
            }
            (MachineEvent::Healthy { .. }, Some(key)) => self.children_mut().on_healthy(key),
            (MachineEvent::Acked { .. }, Some(key)) => {
                self.children_mut().recover_on(key, Reset::OnAck)
            }
            (MachineEvent::StopSelf { .. }, Some(key)) => {
                let state = self.children().state(key);
                if matches!(state, Some(ChildState::Active | ChildState::Activating)) {
                    self.children_mut().begin_stop(key, StopReason::OwnRequest, cx);
                }
            }
            (MachineEvent::Policy { policy, .. }, Some(key)) => {
                self.children_mut().set_policy(key, policy);
            }
            (MachineEvent::Request { ticket, key, request }, _) => {
                let answer = match self.children().state(key) {
                    None => Some(ChildAnswer::NotFound),
                    Some(state) if self.is_ending() => {
                        self.join_stop(ticket, key, state, request, cx)
                    }
                    Some(_) => match request {
                        ChildRequest::StartNew { keep } => self.start_new(ticket, key, keep, cx),
                        ChildRequest::Start { running, waiting } => {
                            self.start(ticket, key, running, waiting, cx)
                        }
                        ChildRequest::Find { wait } => self.find(ticket, key, wait),
                        ChildRequest::Reset => self.children_mut().reset(key),
                        ChildRequest::Hold => self.children_mut().hold(key, cx),
                        ChildRequest::Release => self.children_mut().release(ticket, key),
                        ChildRequest::Terminate | ChildRequest::Stop => {
                            each!(self, kind => kind.terminate(ticket, key, false, cx))
                        }
                        ChildRequest::Remove => {
                            each!(self, kind => kind.terminate(ticket, key, true, cx))
                        }
                        ChildRequest::Kill => self.children_mut().kill_if_running(key, cx),
                        ChildRequest::Delete => each!(self, kind => kind.delete(key, cx)),
                    },
                };
                if let Some(answer) = answer {
                    cx.push(Effect::Reply { ticket, answer });
                }
            }
            (MachineEvent::CallerGone { ticket, key }, _) => {
                return self.children_mut().callers.stop_seeking(key, ticket);
            }
            (MachineEvent::Declared(declaration), _) => {
                if !self.declare(declaration, cx) {
                    return;
                }
            }
            (MachineEvent::Condition(event), _) => {
                if !self.on_condition(event, cx) {
                    return;
                }
            }
            (MachineEvent::Tick, _) => self.on_tick(cx),
            (MachineEvent::Stop { within }, _) => {
                each!(self, kind => kind.finish(Finish::Stopped));
                self.children_mut().stop_within(within, now);
            }
            (MachineEvent::Close { all }, _) => {
                each!(self, kind => kind.finish(Finish::Stopped));
                // A supervisor that is closed at once was never stopped in order.
                self.children_mut().stop_within(None, now);
                each!(self, kind => kind.close(all));
            }
            (MachineEvent::AbortAll, _) => {
                each!(self, kind => kind.finish(Finish::Aborted));
                each!(self, kind => kind.abort_all());
            }
            // The event names an incarnation that is over.
            (_, None) => return,
        }
        each!(self, kind => kind.settle(cx));
        self.settle_leases(cx);
        self.answer_callers(cx);
    }

    /// Answers the callers of the children that the event has left down for good.
    fn answer_callers(&mut self, cx: &mut StepCx<'_>) {
        if self.is_ending() {
            return self.children_mut().refuse_seekers(cx);
        }
        let (sought, recheck_gated) = self.children_mut().callers.take_recheck();
        if sought.is_empty() && !recheck_gated {
            return;
        }
        if recheck_gated {
            for key in self.awaited_and_blocked() {
                self.children_mut().answer_up(key, &ChildAnswer::Gated, cx);
            }
        }
        self.answer_seekers(sought, recheck_gated, cx);
    }

    fn awaited_and_blocked(&self) -> Vec<Key> {
        let returns = |key| each!(self, kind => kind.will_be_started(key));
        let children = self.children();
        let mut keys = children.callers.awaited_up();
        keys.retain(|&key| {
            let is_gated = matches!(children.state(key), Some(ChildState::Gated(_)));
            is_gated && children.is_blocked(key, returns)
        });
        keys
    }

    fn on_exited(&mut self, key: Key, reason: ExitReason, cx: &mut StepCx<'_>) {
        let children = self.children_mut();
        children.timers.disarm(Timer::Child(key));
        if let ChildState::Stopping { why, .. } = children.entry(key).state {
            let reason = children.report_stopped(key, reason, cx);
            if !self.exits_program(key, &reason, cx) {
                self.on_stopped(key, why, cx);
            }
        } else {
            let (active, reason) = children.report_ended(key, reason, cx);
            if !self.exits_program(key, &reason, cx) {
                each!(self, kind => kind.on_ended(key, active, &reason, cx));
            }
        }
    }

    /// A stopped child is gone.
    fn on_stopped(&mut self, key: Key, why: StopReason, cx: &mut StepCx<'_>) {
        match why {
            _ if self.is_to_stop(key) => each!(self, kind => kind.on_stopped_in_group(key, cx)),
            StopReason::Group => each!(self, kind => kind.on_stopped_in_group(key, cx)),
            StopReason::Manual
            | StopReason::Removal
            | StopReason::Failing { then: AfterFailing::StayDown | AfterFailing::Remove, .. } => {
                each!(self, kind => kind.on_terminated(key, cx));
            }
            StopReason::Restart | StopReason::Failing { then: AfterFailing::Start, .. } => {
                self.children_mut().answer_down(key, cx);
                self.children_mut().launch(key, StartCause::Manual, cx);
            }
            StopReason::Lease => self.children_mut().launch(key, StartCause::Lease, cx),
            StopReason::OwnRequest => {
                each!(self, kind => kind.on_ended(key, true, &Arc::new(ExitReason::Normal), cx));
            }
            StopReason::Failing { active, then: AfterFailing::Decide } => {
                let reason = self.children_mut().failure(key);
                each!(self, kind => kind.on_ended(key, active, &reason, cx));
            }
        }
        if why.removes() {
            each!(self, kind => kind.discard(key, cx));
        }
    }

    /// Ends the supervisor if the child has ended with an exit code. Returns whether it has.
    fn exits_program(&mut self, key: Key, reason: &Arc<ExitReason>, cx: &mut StepCx<'_>) -> bool {
        let Some(code) = reason.exit_code().filter(|_| !self.is_ending()) else { return false };
        self.children_mut().report_decision(key, reason, Decision::Exit, cx);
        each!(self, kind => kind.give_up(key, cx));
        let reason = ExitReason::clone(reason);
        each!(self, kind => kind.finish(Finish::Exit { key, reason, code }));
        true
    }

    fn on_tick(&mut self, cx: &mut StepCx<'_>) {
        for _ in 0..SLICE {
            let children = self.children_mut();
            let Some((due, timer)) = children.timers.pop(cx.now) else { return };
            children.on_due(due, cx.now);
            match timer {
                Timer::Child(key) => self.on_deadline(key, cx),
                // The walk of the supervisor's end stops the child.
                Timer::RunTime(_) if self.is_ending() => {}
                Timer::RunTime(key) => self.children_mut().on_run_time_over(key, cx),
                Timer::Total => each!(self, kind => kind.abort_all()),
                Timer::Grace(grace) => {
                    if let Self::Dynamic(dynamic) = self {
                        dynamic.on_grace_over(grace);
                    }
                }
                // The group operation checks its deadline when it settles.
                Timer::Group => {}
            }
        }
    }

    /// A child's deadline is due.
    fn on_deadline(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let (ends, is_to_stop) = (self.is_ending(), self.is_to_stop(key));
        let children = self.children_mut();
        match children.entry(key).state {
            // The walk of the supervisor's end stops the child.
            ChildState::Backoff(_) if ends => {}
            ChildState::Backoff(_) if is_to_stop => {
                if let Self::Ordered(ordered) = self {
                    ordered.absorb(key, cx);
                }
            }
            ChildState::Backoff(cause) => children.launch(key, cause, cx),
            ChildState::Activating => {
                children.fail_running(key, ExitReason::ActivationTimedOut, false, cx);
            }
            ChildState::AwaitingDecision { .. } => self.on_decision(key, None, cx),
            ChildState::Stopping { aborted: false, .. } => children.abort(key, cx),
            ChildState::Stopping { why, .. } => self.on_leak(key, why, cx),
            ChildState::Active if !ends => children.check_heartbeat(key, cx),
            ChildState::Down(_)
            | ChildState::Gated(_)
            | ChildState::Active
            | ChildState::AwaitingGroup => {}
        }
    }

    /// A child was aborted and still runs. It is treated as gone, or parked.
    fn on_leak(&mut self, key: Key, why: StopReason, cx: &mut StepCx<'_>) {
        let ends = self.is_ending();
        let children = self.children_mut();
        let entry = children.entry(key);
        cx.push(Effect::Leaked { key, incarnation: entry.incarnation });
        let parks = entry.rules.on_leak == OnLeak::Park;
        children.end_lease(key, false, cx);
        children.report_stopped(key, ExitReason::Killed, cx);
        if parks && !ends {
            each!(self, kind => kind.on_leaked(key, why, cx));
        } else {
            self.on_stopped(key, why, cx);
        }
    }

    /// Whether the supervisor ends because the first start of a child has failed.
    pub(crate) fn start_has_failed(&self) -> bool {
        let Self::Ordered(ordered) = self else { return false };
        let after = ordered.group.as_ref().map(|op| &op.after);
        matches!(after, Some(After::Finish(Finish::StartFailed { .. })))
    }

    pub(super) fn children(&self) -> &Children {
        each!(self, kind => &kind.children)
    }

    pub(super) fn children_mut(&mut self) -> &mut Children {
        each!(self, kind => &mut kind.children)
    }

    /// Returns why the child, which is due to start, isn't started, if its configuration or a caller prevents
    /// that.
    pub(super) fn withheld(&self, key: Key) -> Option<Withheld> {
        let entry = self.children().entries.get(key).filter(|entry| entry.is_withheld())?;
        entry.withheld()
    }

    /// Handles a request in a supervisor that is stopping, which refuses all but those that stop the child. Returns the
    /// answer, unless that comes later.
    fn join_stop(
        &mut self,
        ticket: Ticket,
        key: Key,
        state: ChildState,
        request: ChildRequest,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        match request {
            ChildRequest::Kill => self.children_mut().kill_if_running(key, cx),
            // The stop of the supervisor comes to the child in its order.
            ChildRequest::Stop | ChildRequest::Remove if state.is_live() => {
                self.children_mut().wait(key, ticket, WaitFor::Down)
            }
            ChildRequest::Stop | ChildRequest::Remove => Some(ChildAnswer::Done),
            _ => Some(ChildAnswer::ShuttingDown),
        }
    }

    /// Starts a child that was just declared. Returns the answer, unless that comes later.
    fn start_new(
        &mut self,
        ticket: Ticket,
        key: Key,
        keep: bool,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let entry = self.children_mut().entry(key);
        match entry.state {
            ChildState::Down(DownState::New) => {}
            ChildState::Down(DownState::Dormant) => return Some(ChildAnswer::Dormant),
            _ => return Some(ChildAnswer::InvalidState(entry.lifecycle)),
        }
        let goal = if keep { WaitFor::Renewed } else { WaitFor::Started };
        self.children_mut().wait(key, ticket, goal);
        each!(self, kind => kind.start_new(key, cx));
        None
    }

    /// Starts a child for a caller, unless something outside of the supervisor withholds it. Returns the answer,
    /// unless that comes later.
    fn start(
        &mut self,
        ticket: Ticket,
        key: Key,
        running: IfRunning,
        waiting: IfWaiting,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let state = self.children().state(key);
        let is_up = matches!(state, Some(ChildState::Active | ChildState::Activating));
        if is_up && running == IfRunning::Keep {
            return self.children_mut().keep_running(ticket, key);
        }
        let children = self.children();
        let is_spent = |entry: &ChildEntry| entry.rules.spec.facts.once && entry.incarnation > 0;
        if running != IfRunning::Refuse && children.entries.get(key).is_some_and(is_spent) {
            return Some(ChildAnswer::Spent);
        }
        if matches!(state, Some(ChildState::Stopping { why, .. }) if why.removes()) {
            return Some(ChildAnswer::NotFound);
        }
        if let Some(withheld) = self.refuses_start(key) {
            return Some(ChildAnswer::Withheld(withheld));
        }
        match state? {
            ChildState::Activating | ChildState::Active | ChildState::Stopping { .. }
                if running == IfRunning::Refuse =>
            {
                Some(ChildAnswer::Running)
            }
            state if !state.is_live() && waiting == IfWaiting::Refuse => {
                each!(self, kind => kind.start_stopped(ticket, key, cx))
            }
            // What it lacks may never come.
            ChildState::Gated(_) => Some(ChildAnswer::Gated),
            _ => {
                self.children_mut().wait(key, ticket, WaitFor::Renewed);
                each!(self, kind => kind.restart(key, cx));
                None
            }
        }
    }

    /// Returns why no call starts the child. Also refuses a restart of a held child, which would stay down.
    fn refuses_start(&self, key: Key) -> Option<Withheld> {
        let children = self.children();
        if children.entries.get(key).is_some_and(|entry| entry.held) {
            return Some(Withheld::Held);
        }
        let standby = children.is_on_standby(key).then_some(Withheld::Standby);
        self.withheld(key).or(standby)
    }

    /// Whether the child is yet to be stopped, with its group or its supervisor.
    pub(super) fn is_to_stop(&self, key: Key) -> bool {
        match self {
            Self::Ordered(ordered) => ordered.is_in_stopping_group(key),
            Self::Dynamic(dynamic) => dynamic.is_finishing(),
        }
    }

    /// Whether the supervisor is ending, or has ended.
    pub(crate) fn is_ending(&self) -> bool {
        each!(self, kind => kind.is_finishing())
    }
}

/// What tests can see.
#[cfg(test)]
impl Machine {
    /// Declares a child that requires nothing. Returns its key.
    pub(super) fn add(&mut self, spec: impl Into<Arc<ChildOptions>>, now: Instant) -> Key {
        let rules = ChildRules::of(&spec.into(), &self.children().rules);
        let (key, links) = (self.next_key(), Links::default());
        let declaration = MachineEvent::Declared(Declaration::Child { rules, links, place: None });
        self.on_event(declaration, now, &mut NoUserCode, &mut Vec::new());
        key
    }

    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered(_))
    }

    /// Whether nothing is due without an event than the watchdogs and the run-time limits of children.
    pub(super) fn only_watches(&self) -> bool {
        let children = self.children();
        let is_watchdog = |timer| match timer {
            Timer::Child(key) => children.state(key) == Some(ChildState::Active),
            Timer::RunTime(_) => true,
            _ => false,
        };
        each!(self, kind => kind.more).is_none()
            && children.timers.all().all(|(_, timer)| is_watchdog(timer))
    }

    /// Whether it is still open which children of a group restart.
    pub(super) fn decides_later(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.is_stopping_group())
    }

    /// Whether the group operation will start the child.
    pub(super) fn will_start_with_group(&self, key: Key) -> bool {
        each!(self, kind => kind.will_be_started(key))
    }

    /// Whether the last event has left work over.
    #[cfg(test)]
    pub(super) fn has_more(&self) -> bool {
        each!(self, kind => kind.more.is_some())
    }
}

impl Machine {
    /// Takes in a declaration. Returns whether something may follow from it now.
    pub(super) fn declare(&mut self, declaration: Declaration, cx: &mut StepCx<'_>) -> bool {
        match declaration {
            Declaration::Child { rules, links, place } => {
                let key = match self {
                    Self::Ordered(ordered) => ordered.add(rules, place, cx),
                    // Its children have no order.
                    Self::Dynamic(dynamic) => dynamic.add(rules, cx),
                };
                if !links.is_empty() {
                    self.children_mut().link(key, links);
                }
                return false;
            }
            Declaration::Links { key, links } => {
                if self.children().state(key).is_some() {
                    self.children_mut().link(key, links);
                }
            }
            Declaration::Order(keys) => {
                if let Self::Ordered(ordered) = self {
                    ordered.reorder(&keys);
                }
                return false;
            }
            Declaration::ChildRules { ticket, key, rules, trial } => {
                let answer = match self.children().state(key) {
                    None => Some(ChildAnswer::NotFound),
                    Some(_) if self.is_ending() => Some(ChildAnswer::ShuttingDown),
                    Some(_) => self.children_mut().configure(key, rules, ticket, trial, cx),
                };
                if let (Some(ticket), Some(answer)) = (ticket, answer) {
                    cx.push(Effect::Reply { ticket, answer });
                }
            }
            Declaration::Rules(rules) => self.children_mut().set_rules(rules, cx),
        }
        true
    }
}
