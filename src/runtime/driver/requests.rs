//! Answering the requests of handles: the calls that wait for an answer, and answers that one iteration leaves for the next.
//!
//! One event can end the wait of any number of callers. An iteration sends a bounded number of answers, so that calls and
//! exits need not wait for the rest.
//!
//! # Invariants
//!
//! 1. Answers are sent in the order of the machine's replies.
//! 2. The supervisor ends after its last answer, unless it is dropped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::state::Driver;
use super::view;
use crate::child::ChildSpec;
use crate::core::{self, ChildAnswer, ChildRequest, Key, MachineEvent, NO_TICKET, Ticket};
use crate::error::{BuildError, ControlError, NextStep, known};
use crate::lifecycle::Lifecycle;
use crate::policy::Withheld;
use crate::runtime::attach::{Step, StepView};
use crate::runtime::children::ChildRecord;
use crate::runtime::log;
use crate::runtime::request::{
    Addition, CallNote, ChildName, HandleRequest, NewChild, Pending, Responder, StartOutcome,
    Started, respond,
};
use crate::status::{Counts, EventKind};

impl Driver {
    pub(super) fn handle_request(&mut self, request: HandleRequest, now: Instant) {
        match request {
            HandleRequest::Start(new) => self.start_child(new, now),
            HandleRequest::Act { segment, call, note, request, answer } => {
                match self.children.find(&segment) {
                    Some(key) => self.call(key, (call, note), request, answer, now),
                    None => respond(answer, Err(self.not_there(&segment, request))),
                }
            }
            HandleRequest::Which { segment, answer } => {
                let key = self.children.find(&segment);
                let entry = key.and_then(|key| self.children.entry(key));
                let info = entry.and_then(|entry| self.info(entry, now));
                respond(answer, info.ok_or_else(|| self.not_found(&segment)));
            }
            HandleRequest::Mailbox { segment, answer } => {
                let key = self.children.find(&segment);
                let step = Step::default();
                let mailbox = key.map(|key| view!(self, &step, now).mailbox(key).map(Arc::clone));
                respond(answer, mailbox.ok_or_else(|| self.not_found(&segment)));
            }
            HandleRequest::Spec { segment, answer } => {
                let key = self.children.find(&segment);
                let view = key.and_then(|key| self.machine.view(key, now));
                let blueprint = &self.blueprint;
                let spec = view.map(|view| blueprint.describe(segment.clone(), &view.rules));
                respond(answer, spec.ok_or_else(|| self.not_found(&segment)));
            }
            HandleRequest::Count { answer } => respond(answer, Ok(self.counts())),
            HandleRequest::Page { place, answer } => respond(answer, Ok(self.page(place, now))),
            HandleRequest::Refresh { which, answer } => self.refresh(which, answer, now),
            HandleRequest::Configure { segment, trial, answer } => {
                self.configure(&segment, trial, answer, now);
            }
            HandleRequest::RefreshRules { answer } => self.refresh_rules(answer, now),
            HandleRequest::Recode(recode) => {
                self.pending.push(Pending::Recode(recode));
            }
            HandleRequest::Facts { which, answer } => self.facts(which, answer),
            #[cfg(feature = "lease")]
            HandleRequest::Lease { key, keeper, change } => {
                let step = Step::default();
                let (attachments, view) = self.attached(&step, now);
                if let Some(event) = attachments.lease_changed(key, keeper, change, &view) {
                    self.step(event, now);
                }
            }
            HandleRequest::Turn(turns) => _ = turns.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Passes a request about a child to the machine, which answers it in this step or later.
    fn call(
        &mut self,
        key: Key,
        (name, note): (&'static str, Option<Arc<CallNote>>),
        request: core::ChildRequest,
        answer: Responder<Started>,
        now: Instant,
    ) {
        let Some(child) = self.children.entry(key).map(|entry| entry.name()) else { return };
        if let core::ChildRequest::Find { .. } = request {
            for (key, ticket) in self.calls.sweep() {
                self.step(MachineEvent::CallerGone { ticket, key }, now);
            }
        }
        if let ChildRequest::RESTART | ChildRequest::RESUME = request {
            self.attachments.recent.restarted = Some(key);
        }
        if let Some(note) = &note {
            self.attachments.recent.asked(key, Arc::clone(note));
        }
        let ticket =
            self.calls.insert(Call { key, child, name, note, request: Some(request), answer });
        self.step(MachineEvent::Request { ticket, key, request }, now);
    }

    /// Sends the answers and letters that the iterations before have left, as far as one iteration may.
    pub(super) fn work_off(&mut self, now: Instant) {
        self.backlog.begin();
        self.send_answers(now);
        self.attachments.work_off(now);
    }

    /// Answers a call, now or in a later iteration.
    pub(super) fn reply_in_turn(
        &mut self,
        ticket: Ticket,
        answer: core::ChildAnswer,
        now: Instant,
    ) {
        self.backlog.push_answer(ticket, answer);
        self.send_answers(now);
    }

    fn send_answers(&mut self, now: Instant) {
        while let Some((ticket, answer)) = self.backlog.next_answer() {
            self.reply(ticket, answer, now);
        }
    }

    fn reply(&mut self, ticket: Ticket, answer: core::ChildAnswer, now: Instant) {
        let Some(call) = self.calls.remove(ticket) else { return };
        let seeks = call.seeks();
        let Call { key, child, name, note, request, answer: caller } = call;
        if let (core::ChildAnswer::Started(incarnation), Some(request)) = (&answer, request)
            && seeks
            && !self.children.runs(key, *incarnation)
        {
            // It has ended meanwhile. Its exit was pushed already, and is handled first.
            let segment = child.under(self.shared.path()).name().to_owned();
            let again = HandleRequest::Act { segment, call: name, note, request, answer: caller };
            // If the supervisor ends, this drops the answer, as it does for all calls that are left.
            drop(self.shared.inbox.push_request(again));
            return;
        }
        if let Some(note) = &note {
            self.attachments.recent.answered(key, note);
        }
        let path = || child.under(self.shared.path());
        let result = match answer {
            core::ChildAnswer::Done => Ok(StartOutcome::Done),
            core::ChildAnswer::Ignored => Ok(StartOutcome::Declined),
            core::ChildAnswer::Gated => {
                let entry = self.children.entry(key);
                let requires = entry.map(|entry| self.requires(entry)).unwrap_or_default();
                Ok(StartOutcome::Gated(self.lacks(&requires)))
            }
            core::ChildAnswer::Dormant => Ok(StartOutcome::Dormant),
            core::ChildAnswer::Started(incarnation) => Ok(StartOutcome::Up(incarnation)),
            core::ChildAnswer::Failed(reason) => {
                let next = self.next_step(key, now);
                Err(ControlError::ActivationFailed { path: path(), reason, next })
            }
            core::ChildAnswer::Running => Err(ControlError::Running { path: path() }),
            core::ChildAnswer::Restarting => Err(ControlError::Restarting { path: path() }),
            core::ChildAnswer::InvalidState(state) => {
                Err(ControlError::InvalidState { path: path(), state, call: name })
            }
            core::ChildAnswer::Withheld(why) => {
                let (by, lasting) = self.withheld_by(key, why, now);
                Err(ControlError::Withheld { path: path(), why: why.word(), by, lasting })
            }
            core::ChildAnswer::NotFound => Err(self.not_found(path().name())),
            core::ChildAnswer::Spent => Err(ControlError::Spent { path: path() }),
            core::ChildAnswer::ShuttingDown => Err(self.shutting_down()),
            core::ChildAnswer::MaxChildren(max) => Err(self.max_children(max)),
            core::ChildAnswer::Stopped => Err(ControlError::Stopped { path: path() }),
        };
        // As in OTP, a child that is started by a call isn't logged at `info`.
        let changed = matches!(result, Ok(_) | Err(ControlError::ActivationFailed { .. }));
        if changed && !seeks && !matches!(name, "start_child" | "configure") {
            self.publish_call(key, &child, name, note, now);
        }
        let result = result.map(|outcome| Started { child, outcome });
        respond(caller, result);
    }

    /// Logs and publishes that a call has changed a child.
    fn publish_call(
        &mut self,
        key: Key,
        child: &ChildName,
        call: &'static str,
        note: Option<Arc<CallNote>>,
        now: Instant,
    ) {
        let path = child.under(self.shared.path());
        log::called(&path, call, note.as_deref(), self.remark(key, call));
        if call == "hold" {
            self.attachments.recent.held(key, note.as_ref().map(|note| Arc::clone(&note.by)), now);
        }
        let Some(note) = note else {
            return self.attachments.recent.called_without_note(key, call);
        };
        let incarnation = match self.machine.view(key, now) {
            Some(view) => view.incarnation,
            None => self.attachments.recent.last_incarnation(child).unwrap_or_default(),
        };
        let (by, reason) = (Arc::clone(&note.by), note.reason.clone());
        let kind = || EventKind::Called { call, by, reason };
        self.shared.publish(now, path, incarnation, kind);
        if self.children.entry(key).is_some() {
            self.attachments.recent.called(key, call, note, now);
        }
    }

    /// Returns what a caller may not expect of this call.
    fn remark(&self, key: Key, call: &str) -> Option<&'static str> {
        let leaks = || self.leaked.iter().any(|(leaked, _)| *leaked == key);
        match call {
            "stop_child"
                if self.machine.restarts_groups() && self.children.entry(key).is_some() =>
            {
                Some("a call or a restart of its group starts it again; `hold` keeps it down")
            }
            "restart" | "resume" if leaks() => Some("its leaked incarnation still runs beside it"),
            _ => None,
        }
    }

    /// Returns who withholds a child, and for how long.
    fn withheld_by(&self, key: Key, why: Withheld, now: Instant) -> (Option<Arc<str>>, Duration) {
        let hold = self.attachments.recent.hold(key).filter(|_| why == Withheld::Held);
        let since = || self.machine.view(key, now).map_or(now, |view| view.since);
        let (by, since) = hold.unwrap_or_else(|| (None, since()));
        (by, now.saturating_duration_since(since))
    }

    /// Returns what follows the failed start of a child. The machine has decided on it.
    fn next_step(&self, key: Key, now: Instant) -> NextStep {
        if self.machine.is_ending() {
            return NextStep::SupervisorEnds;
        }
        let Some(view) = self.machine.view(key, now) else { return NextStep::Removed };
        match view.lifecycle {
            Lifecycle::Errored if view.undecided => NextStep::Undecided,
            state @ (Lifecycle::Errored | Lifecycle::Stopped) => NextStep::StaysDown { state },
            _ => {
                let next = view.history.and_then(|history| history.next);
                let after = next.map(|(at, _)| at.saturating_duration_since(now));
                NextStep::Restart { after: after.unwrap_or_default() }
            }
        }
    }

    pub(super) fn not_found(&self, segment: &str) -> ControlError {
        // The caller looks for similar names.
        let path = self.shared.path().join(segment);
        let gone = self.attachments.recent.gone(segment);
        let exit = gone.and_then(|gone| gone.exit.as_ref().map(|(reason, _)| (**reason).clone()));
        ControlError::NotFound { path, similar: Vec::new(), exit }
    }

    /// Returns the answer to a request about a child that doesn't exist.
    fn not_there(&self, segment: &str, request: ChildRequest) -> ControlError {
        let is_start = matches!(request, ChildRequest::RESTART | ChildRequest::RESUME);
        match self.attachments.recent.gone(segment) {
            Some(gone) if is_start && gone.once => {
                ControlError::Spent { path: self.shared.path().join(segment) }
            }
            _ => self.not_found(segment),
        }
    }

    pub(super) fn shutting_down(&self) -> ControlError {
        ControlError::ShuttingDown { path: self.shared.path().clone() }
    }

    fn max_children(&self, max: usize) -> ControlError {
        ControlError::MaxChildren { path: self.shared.path().clone(), max }
    }

    /// Adds a child. If there is one of its name that it is to replace, it is added when that is gone.
    fn start_child(&mut self, new: NewChild, now: Instant) {
        if new.addition == Addition::Replace && self.blueprint.is_dynamic() {
            let (path, call) = (self.shared.path().clone(), "replace_child");
            return respond(new.answer, Err(ControlError::IsDynamic { path, call }));
        }
        let name = new.spec.name();
        let old = self.children.find(name).filter(|_| new.addition == Addition::Replace);
        let Some(old) = old else { return self.add_child(new, None, now) };
        if let Err(error) = self.check_new(&new.spec, true, now) {
            return respond(new.answer, Err(error));
        }
        let Some(place) = self.machine.place_of(old) else { return };
        let (answer, _) = oneshot::channel();
        let call = ("replace_child", new.note.clone());
        self.pending.push(Pending::Replacement { old, place, new });
        self.call(old, call, ChildRequest::Remove, answer, now);
    }

    /// Adds a child, last in start order or in the place of one that was removed.
    pub(super) fn add_child(&mut self, new: NewChild, place: Option<u64>, now: Instant) {
        let NewChild { spec, addition, answer, .. } = new;
        if let Err(error) = self.check_new(&spec, false, now) {
            return respond(answer, Err(error));
        }
        let key = self.add(&spec, place, now);
        let request = ChildRequest::StartNew { keep: addition != Addition::Start };
        let Some(child) = self.children.entry(key).map(ChildRecord::name) else { return };
        if addition != Addition::Declare {
            return self.call(key, ("start_child", None), request, answer, now);
        }
        // The caller doesn't wait for the start.
        respond(answer, Ok(Started { child, outcome: StartOutcome::Done }));
        self.step(MachineEvent::Request { ticket: NO_TICKET, key, request }, now);
    }

    /// Checks what depends on the existing children. `replaces`: one of its name doesn't matter.
    fn check_new(
        &self,
        spec: &ChildSpec,
        replaces: bool,
        now: Instant,
    ) -> Result<(), ControlError> {
        match self.machine.admits() {
            Ok(()) => {}
            Err(core::ChildAnswer::MaxChildren(max)) => return Err(self.max_children(max)),
            Err(_) => return Err(self.shutting_down()),
        }
        let path = || self.shared.path().join(spec.name());
        // A child with this mailbox may have been added since the caller's task has checked it.
        let check_mailbox = || match spec.factory.mailbox().and_then(|mailbox| mailbox.bound_to()) {
            Some(owner) => Err(BuildError::MailboxTaken { path: path(), owner }),
            None => Ok(()),
        };
        if self.blueprint.is_dynamic() {
            return Ok(check_mailbox()?);
        }
        if let Some(view) =
            self.children.find(spec.name()).and_then(|key| self.machine.view(key, now))
            && !replaces
        {
            let running = matches!(
                view.lifecycle,
                Lifecycle::Activating | Lifecycle::Active | Lifecycle::Deactivating
            );
            return Err(ControlError::NameTaken { path: path(), running });
        }
        check_mailbox()?;
        if let Some(name) = spec.requires.iter().find(|name| self.children.find(name).is_none()) {
            let parent = self.shared.path().clone();
            let known = self.known();
            let requirement = name.clone();
            let path = path();
            let error = BuildError::UnknownRequirement { path, parent, requirement, known };
            return Err(error.into());
        }
        if let Some(cycle) = self.cycle(spec) {
            let parent = self.shared.path().clone();
            return Err(BuildError::RequirementCycle { parent, cycle }.into());
        }
        Ok(())
    }

    /// Returns the requirement cycle that a new child would close.
    ///
    /// Siblings may still require a child of that name that was deleted.
    fn cycle(&self, spec: &ChildSpec) -> Option<String> {
        let id = *self.requirements.get(spec.name())?;
        let keys: Vec<_> =
            spec.requires.iter().filter_map(|name| self.children.find(name)).collect();
        let chain = self.machine.chain_to(id, &keys)?;
        let entries = chain.into_iter().filter_map(|key| self.children.entry(key));
        let siblings = entries.map(|entry| &**entry.factory.name());
        let names = std::iter::once(spec.name()).chain(siblings).chain([spec.name()]);
        Some(names.collect::<Vec<_>>().join(" → "))
    }

    /// Returns the names of some children, at most a line of them.
    fn known(&self) -> String {
        let next = |&(_, place): &(Key, u64)| self.machine.next(place);
        let keys = std::iter::successors(self.machine.next(0), next);
        let entries = keys.filter_map(|(key, _)| self.children.entry(key));
        let names = entries.map(|entry| &**entry.factory.name());
        known(names, self.machine.counts().specs() as usize)
    }

    pub(super) fn counts(&self) -> Counts {
        let counts = self.machine.counts();
        let active = [Lifecycle::Activating, Lifecycle::Active, Lifecycle::Deactivating];
        let supervisors = counts.supervisors;
        Counts {
            specs: counts.specs(),
            active: active.into_iter().map(|lifecycle| counts.of(lifecycle)).sum(),
            restarting: counts.of(Lifecycle::Restarting),
            supervisors,
            workers: counts.specs() - supervisors,
        }
    }
}

/// How many answers one iteration sends.
const ANSWERS: usize = 1024;

/// Answers that one iteration leaves for the next.
pub(super) struct Backlog {
    answers: VecDeque<(Ticket, ChildAnswer)>,
    /// How many answers this iteration may still send.
    answers_left: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { answers: VecDeque::new(), answers_left: ANSWERS }
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Begins an iteration.
    pub(super) fn begin(&mut self) {
        self.answers_left = ANSWERS;
    }

    pub(super) fn push_answer(&mut self, ticket: Ticket, answer: ChildAnswer) {
        self.answers.push_back((ticket, answer));
    }

    /// Removes the oldest answer, if this iteration may send it.
    pub(super) fn next_answer(&mut self) -> Option<(Ticket, ChildAnswer)> {
        if self.answers_left == 0 {
            return None;
        }
        let next = self.answers.pop_front()?;
        self.answers_left -= 1;
        Some(next)
    }
}

/// The calls that wait for an answer of the machine.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: FxHashMap<Ticket, Call>,
    next: Ticket,
    /// With how many calls those are dropped whose callers are gone.
    sweep_at: usize,
}

/// With fewer calls than these, none is dropped because its caller is gone.
const KEPT: usize = 64;

/// A call about a child.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) key: Key,
    pub(super) child: ChildName,
    pub(super) name: &'static str,
    pub(super) note: Option<Arc<CallNote>>,
    /// `None` for a change of the configuration.
    pub(super) request: Option<ChildRequest>,
    pub(super) answer: Responder<Started>,
}

impl Call {
    /// Whether the caller seeks the child, and requests nothing else.
    pub(super) fn seeks(&self) -> bool {
        matches!(self.request, Some(ChildRequest::Find { .. }))
    }
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.insert(ticket, call);
        ticket
    }

    /// Drops the calls that seek a child for a caller that is gone, once there are many calls. Returns them.
    ///
    /// Such a call may wait for as long as its child is down, and callers may give up and call again. Each
    /// sweep doubles the number of calls at which the next one is due.
    pub(super) fn sweep(&mut self) -> Vec<(Key, Ticket)> {
        if self.waiting.len() < self.sweep_at.max(KEPT) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        self.waiting.retain(|&ticket, call| {
            let is_gone = call.seeks() && call.answer.is_closed();
            gone.extend(is_gone.then_some((call.key, ticket)));
            !is_gone
        });
        self.sweep_at = 2 * self.waiting.len();
        gone
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Call> {
        self.waiting.remove(&ticket)
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn of_many_calls_those_that_seek_a_child_without_a_caller_are_dropped() {
        let key = Key::of_number(0);
        let (mut calls, mut callers) = (Calls::default(), Vec::new());
        let call = |calls: &mut Calls, request| {
            let child = ChildName { name: "a".into(), serial: None };
            let (answer, caller) = oneshot::channel();
            let call =
                Call { key, child, name: "child", note: None, request: Some(request), answer };
            (calls.insert(call), caller)
        };
        for _ in 0..KEPT / 2 {
            callers.push(call(&mut calls, ChildRequest::Find { wait: true }));
            drop(call(&mut calls, ChildRequest::Stop));
        }
        assert_eq!(calls.sweep(), [], "all callers still wait, or have requested something");
        let gone: Vec<_> = callers.drain(..KEPT / 4).map(|(ticket, _)| (key, ticket)).collect();
        assert_eq!(calls.sweep(), [], "the next sweep is due with twice as many calls");
        while calls.waiting.len() < 2 * KEPT {
            callers.push(call(&mut calls, ChildRequest::Find { wait: true }));
        }
        let mut swept = calls.sweep();
        swept.sort_unstable();
        assert_eq!(swept, gone);
        assert_eq!(calls.waiting.len(), 2 * KEPT - gone.len());
    }
}
