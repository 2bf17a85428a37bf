//! What happens in a simulation: exits, messages, requests and decisions.

use std::sync::Arc;
use std::time::Instant;

use super::fake_child::{Heart, Script};
use super::{Happening, Simulation, TranscriptLine};
use crate::core::verify::recording::Listener;
use crate::core::{
    ChildRequest, ConditionEvent, Declaration, IncarnationNumber, Key, MachineEvent, Ticket,
};
use crate::exit::ExitReason;
use crate::policy::{ChildLayer, ChildRules, FailureDecision, Layers, RestartPolicy};
use crate::properties::Properties;

impl Simulation {
    /// The child's task ends now.
    pub(in crate::core) fn exit(&mut self, name: &str, reason: ExitReason) {
        self.happen(self.key(name), Happening::Exited(reason));
    }

    pub(in crate::core) fn crash(&mut self, name: &str) {
        self.exit(name, Script::Fail.reason());
    }

    /// The child fails, and everything that follows at once happens.
    pub(in crate::core) fn fail(&mut self, name: &str) {
        self.crash(name);
        self.settle();
    }

    pub(in crate::core) fn end(&mut self, name: &str) {
        self.exit(name, ExitReason::Normal);
        self.settle();
    }

    pub(in crate::core) fn ready(&mut self, name: &str) {
        self.happen(self.key(name), Happening::Ready);
        self.settle();
    }

    pub(in crate::core) fn stop(&mut self) {
        self.event(MachineEvent::Stop { within: None });
        self.settle();
    }

    /// Sends an event of the live incarnation.
    pub(in crate::core) fn child_event(
        &mut self,
        name: &str,
        what: fn(Key, IncarnationNumber) -> MachineEvent,
    ) {
        let key = self.key(name);
        self.event(what(key, self.invariants.children[&key].incarnation));
    }

    pub(super) fn happen(&mut self, key: Key, happening: Happening) {
        let incarnation = self.invariants.children[&key].incarnation;
        self.deliver(key, incarnation, happening);
    }

    /// The child's lease is granted, and everything that follows at once happens.
    pub(in crate::core) fn grant(&mut self, name: &str) {
        self.event(MachineEvent::Condition(ConditionEvent::LeaseGranted {
            key: self.key(name),
            changes: Properties::default(),
        }));
        self.settle();
    }

    /// The child's lease is lost, and everything that follows at once happens.
    pub(in crate::core) fn lose(&mut self, name: &str) {
        self.event(MachineEvent::Condition(ConditionEvent::LeaseLost { key: self.key(name) }));
        self.settle();
    }

    /// A message is pending for the child.
    pub(in crate::core) fn send(&mut self, name: &str) {
        self.event(MachineEvent::Condition(ConditionEvent::MessagePending { key: self.key(name) }));
    }

    /// The callback decides on the child, even if it was not called.
    pub(in crate::core) fn decide(&mut self, name: &str, decision: FailureDecision) {
        self.happen(self.key(name), Happening::Answered(decision));
    }

    /// The live incarnation sets its own policy.
    pub(in crate::core) fn policy(&mut self, name: &str, policy: impl Into<Option<RestartPolicy>>) {
        let key = self.key(name);
        let incarnation = self.invariants.children[&key].incarnation;
        let policy = policy.into().map(Arc::new);
        self.event(MachineEvent::Policy { key, incarnation, policy });
    }

    pub(super) fn deliver(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        happening: Happening,
    ) {
        // The callback does not know whether its decision still counts.
        if let Happening::Answered(decision) = happening {
            return self.event(MachineEvent::Condition(ConditionEvent::Answered {
                key,
                incarnation,
                decision,
            }));
        }
        if self.live(key) == Some(incarnation) {
            self.event(match happening {
                Happening::Ready => MachineEvent::Ready { key, incarnation },
                Happening::Ignored => MachineEvent::Ignored { key, incarnation },
                Happening::Exited(reason) => MachineEvent::Exited { key, incarnation, reason },
                Happening::Answered(_) => unreachable!("answered above"),
            });
        }
    }

    /// Sends a request of a caller.
    pub(in crate::core) fn request(&mut self, name: &str, request: ChildRequest) -> Ticket {
        self.request_of(self.key(name), request)
    }

    pub(in crate::core) fn request_of(&mut self, key: Key, request: ChildRequest) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        self.event(MachineEvent::Request { ticket, key, request });
        ticket
    }

    /// The configuration of the child takes it out, or brings it back.
    pub(in crate::core) fn enable(&mut self, name: &str, enabled: bool) {
        self.enable_key(self.key(name), enabled);
    }

    pub(in crate::core) fn enable_key(&mut self, key: Key, enabled: bool) {
        let layer = ChildLayer { enabled: Some(enabled), ..ChildLayer::default() };
        self.configure(key, layer);
    }

    /// The configuration of the child changes.
    pub(in crate::core) fn configure(&mut self, key: Key, layer: ChildLayer) {
        let Some(old) = self.machine.rules_of(key) else { return };
        let layers = Layers { file: Some(Arc::new(layer)), ..Layers::default() };
        let rules = ChildRules::resolve(&old.spec, &old.supervisor, layers);
        self.event(MachineEvent::Declared(Declaration::ChildRules {
            ticket: None,
            key,
            rules,
            trial: false,
        }));
    }

    /// Sends a request, lets everything happen that follows at once, and returns the answer.
    pub(in crate::core) fn call(&mut self, name: &str, request: ChildRequest) -> &str {
        let ticket = self.request(name, request);
        self.settle();
        self.answer(ticket)
    }

    /// The answer to a request, or a dash until it is answered.
    pub(in crate::core) fn answer(&self, ticket: Ticket) -> &str {
        self.answers.get(&ticket).map_or("-", String::as_str)
    }

    /// The child answers with its last heartbeat.
    pub(in crate::core) fn answer_heartbeat(&mut self, name: &str, last: Option<Instant>) {
        let key = self.key(name);
        let incarnation = self.invariants.children[&key].incarnation;
        self.event(MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last }));
    }

    /// The child sends a heartbeat.
    pub(in crate::core) fn beat(&mut self, name: &str) {
        let now = self.now;
        self.fake(name).heart = Heart::Manual(Some(now));
    }

    pub(in crate::core) fn event(&mut self, event: MachineEvent) {
        self.ticks += usize::from(matches!(event, MachineEvent::Tick));
        let line = match &event {
            MachineEvent::Declared(Declaration::Child { links, .. }) => {
                format!("← a child that provides {:?}", links.provides)
            }
            MachineEvent::Declared(Declaration::ChildRules { key, rules, .. }) => {
                format!("← rules of {key:?}, withheld {:?}", rules.withheld())
            }
            event => format!("← {event:?}"),
        };
        self.transcript.push((self.now, TranscriptLine::Other, line));
        let (mut effects, copy) = (Vec::new(), self.recording.is_some().then(|| event.clone()));
        let mut listener = Listener::new(&mut self.user_code);
        let kept =
            self.invariants.watch(&mut self.machine, event, self.now, &mut listener, &mut effects);
        if let (Some(recording), Some(event)) = (&mut self.recording, copy) {
            recording.push(event, self.now, listener, &effects);
        }
        for effect in effects {
            self.apply_effect(effect);
        }
        if let Err(broken) = kept {
            panic!("broken: {broken}\n{}", self.tail());
        }
    }
}
