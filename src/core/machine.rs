//! The entry points of one supervisor's rules, and what both kinds of supervisor share.
//!
//! A [`Machine`] handles what is the same for both kinds, and leaves the rest to [`Ordered`] or
//! [`Dynamic`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::SLICE;
use super::arena::Key;
use super::child::{ChildState, DownState, StopReason, Timer};
use super::children::Children;
use super::dynamic::Dynamic;
use super::effect::{Decision, Effect, Finish, StepCx};
use super::event::{ChildAnswer, ChildRequest, MachineEvent};
use super::group::After;
use super::ordered::Ordered;
use super::requirements::RequirementId;
use super::view::{ChildCounts, View};
use crate::exit::ExitReason;
use crate::policy::{ChildOptions, OnLeak, Reset, Rules, Withheld};
use crate::policy::{FailureDecision, Resolution};

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
    pub(crate) fn ordered(rules: impl Into<Arc<Rules>>, now: Instant, seed: u64) -> Self {
        Self::Ordered(Ordered::new(rules.into(), now, seed))
    }

    /// Creates the machine of a dynamic supervisor.
    pub(crate) fn dynamic(rules: impl Into<Arc<Rules>>, now: Instant, seed: u64) -> Self {
        Self::Dynamic(Dynamic::new(rules.into(), now, seed))
    }

    /// Handles one event and appends its effects, in order.
    pub(crate) fn on_event(
        &mut self,
        event: MachineEvent,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if each!(self, kind => kind.finished) {
            return;
        }
        let children = self.children();
        let subject = children.subject(&event);
        let cx = &mut StepCx { now, effects };
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
            (MachineEvent::MessagePending { .. }, Some(key)) => {
                if !self.is_ending() && self.children_mut().note_message(key) {
                    each!(self, kind => kind.start_for_message(key, cx));
                }
            }
            (MachineEvent::Health { problem, .. }, Some(key)) => self.on_health(key, problem, cx),
            (MachineEvent::Heartbeat { last, .. }, Some(key)) => {
                // In a supervisor that ends, the child is stopped anyway.
                if !self.is_ending() {
                    self.children_mut().on_heartbeat(key, last, cx);
                }
            }
            (MachineEvent::Checked { passed, .. }, Some(key)) => {
                self.children_mut().on_checked(key, passed, now);
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
            (MachineEvent::Answered { decision, .. }, Some(key)) => {
                self.on_decision(key, Some(decision), cx);
            }
            (MachineEvent::Request { ticket, key, request }, _) => {
                let answer = match self.children().state(key) {
                    None => Some(ChildAnswer::NotFound),
                    Some(_) if self.is_ending() => Some(ChildAnswer::ShuttingDown),
                    Some(_) if request.starts() && self.refuses_start(key).is_some() => {
                        self.refuses_start(key).map(ChildAnswer::Withheld)
                    }
                    Some(_) => match request {
                        ChildRequest::Find { wait } => self.find(ticket, key, wait),
                        ChildRequest::Reset => self.children_mut().reset(key),
                        ChildRequest::Hold => self.children_mut().hold(key, cx),
                        ChildRequest::Release => self.children_mut().release(ticket, key),
                        _ => each!(self, kind => kind.on_request(ticket, key, request, cx)),
                    },
                };
                if let Some(answer) = answer {
                    cx.push(Effect::Reply { ticket, answer });
                }
            }
            (MachineEvent::Configured { ticket, key, options, trial }, _) => {
                let answer = match self.children().state(key) {
                    None => Some(ChildAnswer::NotFound),
                    Some(_) if self.is_ending() => Some(ChildAnswer::ShuttingDown),
                    Some(_) => self.children_mut().configure(key, options, ticket, trial, cx),
                };
                if let (Some(ticket), Some(answer)) = (ticket, answer) {
                    cx.push(Effect::Reply { ticket, answer });
                }
            }
            (MachineEvent::RulesChanged { rules }, _) => self.children_mut().set_rules(rules, cx),
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
        self.answer_seekers(cx);
    }

    fn on_exited(&mut self, key: Key, reason: ExitReason, cx: &mut StepCx<'_>) {
        let children = self.children_mut();
        children.timers.disarm(Timer::Child(key));
        if let ChildState::Stopping { why, .. } = children.entry(key).state {
            let reason = children.report_stopped(key, reason, cx);
            if !self.exits_program(key, &reason, cx) {
                each!(self, kind => kind.on_stopped(key, why, cx));
            }
        } else {
            let (active, reason) = children.report_ended(key, reason, cx);
            if !self.exits_program(key, &reason, cx) {
                each!(self, kind => kind.on_ended(key, active, &reason, cx));
            }
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

    /// The failure callback has decided. `None`: it did not in time.
    fn on_decision(&mut self, key: Key, decision: Option<FailureDecision>, cx: &mut StepCx<'_>) {
        self.children_mut().timers.disarm(Timer::Child(key));
        if each!(self, kind => kind.overrides_callback(key, cx)) {
            return;
        }
        let children = self.children_mut();
        let (active, reason, resolution) = children.take_decision(key, decision, cx);
        match resolution {
            Resolution::Restart => {
                let on_exit = children.on_exit(key, active, &reason);
                each!(self, kind => kind.on_failed(key, active, on_exit, &reason, cx));
            }
            Resolution::GiveUp => {
                children.report_decision(key, &reason, Decision::Decline, cx);
                each!(self, kind => kind.set_down(key, DownState::GivenUp, cx));
            }
            Resolution::Escalate => {
                children.report_decision(key, &reason, Decision::Escalate, cx);
                each!(self, kind => kind.give_up(key, cx));
                let reason = ExitReason::clone(&reason);
                each!(self, kind => kind.finish(Finish::Failed { key, reason }));
            }
        }
    }

    fn on_tick(&mut self, cx: &mut StepCx<'_>) {
        for _ in 0..SLICE {
            let children = self.children_mut();
            let Some((due, timer)) = children.timers.pop(cx.now) else { return };
            children.note_lateness(due, cx.now);
            match timer {
                Timer::Child(key) => self.on_deadline(key, cx),
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
        let ends = self.is_ending();
        let children = self.children_mut();
        match children.entry(key).state {
            // The walk of the supervisor's end stops the child.
            ChildState::Backoff(_) if ends => {}
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
        let options = Arc::clone(&entry.options);
        children.report_stopped(key, ExitReason::Killed, cx);
        if children.rules.on_leak(&options) == OnLeak::Park && !ends {
            each!(self, kind => kind.on_leaked(key, why, cx));
        } else {
            each!(self, kind => kind.on_stopped(key, why, cx));
        }
    }

    /// The result of a health check has changed.
    fn on_health(&mut self, key: Key, problem: Option<Arc<str>>, cx: &mut StepCx<'_>) {
        let ends = self.is_ending();
        let fails = self.children_mut().report_health(key, problem.clone(), cx);
        // In a supervisor that ends, the child is stopped anyway.
        if let Some(problem) = problem.filter(|_| fails && !ends) {
            let reason = ExitReason::Unhealthy(problem.to_string());
            self.children_mut().fail_running(key, reason, false, cx);
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

    /// Returns when the next [`MachineEvent::Tick`] is due. An instant in the past is due at once.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        each!(self, kind => kind.more).or_else(|| self.children().timers.next())
    }

    /// Checks whether a child may be added now.
    ///
    /// # Errors
    ///
    /// The answer to the caller, if not.
    pub(crate) fn admits(&self) -> Result<(), ChildAnswer> {
        match self {
            _ if self.is_ending() => Err(ChildAnswer::ShuttingDown),
            Self::Ordered(_) => Ok(()),
            Self::Dynamic(dynamic) => dynamic.admits(),
        }
    }

    /// Reserves memory for this many more children.
    pub(crate) fn reserve(&mut self, children: usize) {
        self.children_mut().entries.reserve(children);
        if let Self::Ordered(ordered) = self {
            ordered.order.reserve(children);
        }
    }

    /// Adds a child, which is started by [`ChildRequest::Start`](super::ChildRequest::Start) or by the first
    /// [`MachineEvent::Tick`].
    pub(crate) fn add(&mut self, options: Arc<ChildOptions>, now: Instant) -> Key {
        each!(self, kind => kind.add(options, now))
    }

    /// Whether an operation on several children runs, such as a group restart.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.group.is_some())
    }

    /// Gives the children this order, if they have one. Not while an operation on several children runs.
    pub(crate) fn reorder(&mut self, keys: &[Key]) {
        if let Self::Ordered(ordered) = self {
            ordered.reorder(keys);
        }
    }

    /// Returns the requirement that this child provides.
    pub(crate) fn provided_by(&mut self, key: Key) -> RequirementId {
        self.children_mut().provided_by(key)
    }

    /// Sets what a child provides and requires.
    pub(crate) fn link(
        &mut self,
        key: Key,
        provides: Option<RequirementId>,
        requires: Vec<RequirementId>,
    ) {
        self.children_mut().link(key, provides, requires);
    }

    /// Returns a chain from one of `keys` to a child that requires `id`, if there is one. Each child
    /// of the chain requires the next.
    pub(crate) fn chain_to(&self, id: RequirementId, keys: &[Key]) -> Option<Vec<Key>> {
        self.children().requirements.chain_to(id, keys)
    }

    /// Returns the options of a child.
    pub(crate) fn options(&self, key: Key) -> Option<&Arc<ChildOptions>> {
        self.children().entries.get(key).map(|entry| &entry.options)
    }

    pub(crate) fn view(&self, key: Key, now: Instant) -> Option<View> {
        let mut view = self.children().view(key, now)?;
        if let Self::Ordered(ordered) = self
            && let Some(moved) = ordered.group_deadline(key)
            && let Some((at, _)) = view.history.as_mut().and_then(|history| history.next.as_mut())
        {
            *at = moved;
        }
        Some(view)
    }

    /// Whether the child provides what its siblings require of it.
    pub(crate) fn is_met(&self, key: Key) -> bool {
        self.children().state(key).is_some_and(ChildState::is_met)
    }

    /// Whether the child runs, or will without a request of a caller, so that its messages need not be
    /// dead letters.
    ///
    /// `false` if the supervisor ends. A child that is about to end, or is being decided on, is taken
    /// to come back.
    pub(crate) fn returns(&self, key: Key) -> bool {
        !self.is_ending() && each!(self, kind => kind.comes_back(key))
    }

    /// Whether the child is down until a message comes for it, and no message waits.
    pub(crate) fn awaits_message(&self, key: Key) -> bool {
        !self.is_ending() && self.children().awaits_message(key)
    }

    /// The child whose end an ordered stop waits for, or the child that it comes to next if that one is
    /// down already. The stop is that of the supervisor, or of a group that restarts.
    pub(crate) fn stops_now(&self) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_now(),
            // All children stop at once.
            Self::Dynamic(_) => None,
        }
    }

    /// The worker that is cancelled when this child is down. The child is the one that
    /// [stops now](Self::stops_now), or comes after it in the same way.
    ///
    /// The answer stays valid, whatever else happens, until `stops_now` is `None` or all children are
    /// aborted.
    pub(crate) fn stops_after(&self, key: Key) -> Option<Key> {
        match self {
            Self::Ordered(ordered) => ordered.stops_after(key),
            Self::Dynamic(_) => None,
        }
    }

    /// Whether the child has failed and is stopped because of that.
    pub(crate) fn is_failing(&self, key: Key) -> bool {
        let state = self.children().state(key);
        matches!(state, Some(ChildState::Stopping { why: StopReason::Failing { .. }, .. }))
    }

    /// Returns why the child, which is due to start, isn't started, if its configuration or a caller prevents
    /// that.
    pub(super) fn withheld(&self, key: Key) -> Option<Withheld> {
        let entry = self.children().entries.get(key).filter(|entry| entry.is_withheld())?;
        entry.withheld()
    }

    /// Returns why no call starts the child. One that is held would be down afterwards.
    fn refuses_start(&self, key: Key) -> Option<Withheld> {
        let held = self.children().entries.get(key).is_some_and(|entry| entry.held);
        if held { Some(Withheld::OnHold) } else { self.withheld(key) }
    }

    /// Whether the supervisor is ending, or has ended.
    pub(crate) fn is_ending(&self) -> bool {
        each!(self, kind => kind.is_finishing())
    }

    /// Returns the first child at or behind a place in the start order, and the place behind it.
    ///
    /// Places are numbered from 0. A child keeps its place when other children are removed.
    pub(crate) fn next(&self, place: u64) -> Option<(Key, u64)> {
        each!(self, kind => kind.next(place))
    }

    pub(crate) fn counts(&self) -> ChildCounts {
        self.children().counts
    }

    /// Returns how many restarts count at `now`, how many may, and within which period.
    pub(crate) fn intensity(&self, now: Instant) -> (usize, Option<u32>, Duration) {
        self.children().intensity(now)
    }
}

/// What tests can see.
#[cfg(test)]
impl Machine {
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered(_))
    }

    /// Whether nothing is due without an event than the watchdogs of children.
    pub(super) fn only_watches(&self) -> bool {
        let children = self.children();
        let is_watchdog = |timer| match timer {
            Timer::Child(key) => children.state(key) == Some(ChildState::Active),
            _ => false,
        };
        each!(self, kind => kind.more).is_none()
            && children.timers.all().all(|(_, timer)| is_watchdog(timer))
    }

    /// Whether it is still open which children of a group restart.
    pub(super) fn decides_later(&self) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.is_stopping_group())
    }

    /// Whether the child is in a range that is being stopped, and is yet to be stopped.
    pub(super) fn is_to_stop(&self, key: Key) -> bool {
        matches!(self, Self::Ordered(ordered) if ordered.is_in_stopping_group(key))
    }

    /// Whether the last event has left work over.
    #[cfg(test)]
    pub(super) fn has_more(&self) -> bool {
        each!(self, kind => kind.more.is_some())
    }
}
