//! One state: a machine, its invariants, and the current time.
//!
//! Lists the possible steps and takes them. How the state was reached makes no difference.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::plan::{Flavour, Plan};
use super::step::{BEAT, ChildIndex, ExplorationStep, OwnPolicy, TaskExit};
use crate::core::verify::REQUESTS;
use crate::core::verify::fingerprint::Fingerprint;
use crate::core::verify::invariants::{
    ChildAccount, DeclaredChild, Invariants, LeaseAccount, PendingDecision, Violation, is_ending,
};
use crate::core::verify::simulation::{FakeChild, Script};
use crate::core::{
    ChildRequest, ConditionEvent, Declaration, Key, Links, Machine, MachineEvent, RequirementId,
    UserCalls,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildRules, Resolution, RestartType};
use crate::properties::Properties;

/// The children of a plan, by number.
#[derive(Debug)]
pub(super) struct PlannedChildren {
    declarations: Vec<Arc<DeclaredChild>>,
    /// The children that each requires, by number.
    requires: Vec<Vec<usize>>,
    /// A restart may be delayed.
    waits: bool,
    /// A child may end the program.
    exits: bool,
    /// An error may set the delay.
    retries_after: bool,
    /// A failure callback decides.
    callback: bool,
}

impl PlannedChildren {
    pub(super) fn of(plan: &Plan) -> Self {
        let fakes = plan.fakes();
        let number = |name: &String| fakes.iter().position(|fake| fake.name() == name);
        let requires = |fake: &FakeChild| fake.requires.iter().filter_map(number).collect();
        Self {
            declarations: fakes.iter().map(FakeChild::declaration).collect(),
            requires: fakes.iter().map(requires).collect(),
            waits: plan.waits,
            exits: plan.flavour == Flavour::Exits,
            retries_after: matches!(plan.flavour, Flavour::RetryAfter | Flavour::DelayedDelivery),
            callback: plan.rules().has_failure_callback,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct ExploredState {
    pub(super) machine: Machine,
    pub(super) invariants: Invariants,
    pub(super) now: Instant,
    tickets: u64,
}

impl ExploredState {
    /// A supervisor that has not begun, with the children that are declared.
    pub(super) fn begin(plan: &Plan, planned: &PlannedChildren) -> Self {
        let now = Instant::now();
        let rules = plan.rules();
        let machine = match plan.dynamic {
            true => Machine::dynamic(rules, now),
            false => Machine::ordered(rules, 0, now),
        };
        let invariants = Invariants::of(&machine);
        let mut state = Self { machine, invariants, now, tickets: 0 };
        if !plan.dynamic {
            for index in 0..planned.declarations.len() {
                state.insert(index, planned);
            }
        }
        state
    }

    fn insert(&mut self, index: usize, planned: &PlannedChildren) {
        let declaration = &planned.declarations[index];
        let key = self.machine.next_key();
        let rules = ChildRules::of(&declaration.options, &self.machine.children().rules);
        let name = |index| RequirementId::Name(u32::try_from(index).expect("few children"));
        let requires = planned.requires[index].iter().map(|&required| {
            let provider = self.invariants.key(&planned.declarations[required].name);
            (name(required), provider.expect("it was declared before"))
        });
        let requires = requires.collect();
        // A name exists once a child requires it.
        let is_required = planned.requires.iter().flatten().any(|&required| required == index);
        let provides = is_required.then(|| name(index));
        let links = Links { provides, requires };
        self.invariants.added(key, Arc::clone(declaration), self.now);
        let declared =
            self.watch(MachineEvent::Declared(Declaration::Child { rules, links, place: None }));
        declared.expect("nothing follows from a declaration");
    }

    fn watch(&mut self, event: MachineEvent) -> Result<(), Violation> {
        let mut user_code = UserCalls::new(None, 7);
        let effects = &mut Vec::new();
        self.invariants.watch(&mut self.machine, event, self.now, &mut user_code, effects)
    }

    pub(super) fn is_over(&self) -> bool {
        self.invariants.finished.is_some()
    }

    pub(super) fn is_ending(&self) -> bool {
        is_ending(&self.machine)
    }

    /// The child, unless it is removed.
    fn child(&self, index: ChildIndex, planned: &PlannedChildren) -> Option<(Key, &ChildAccount)> {
        let key = self.invariants.key(&planned.declarations[usize::from(index)].name)?;
        let child = &self.invariants.children[&key];
        (!child.removed).then_some((key, child))
    }

    /// Lists all that can happen next.
    pub(super) fn steps(&self, planned: &PlannedChildren, steps: &mut Vec<ExplorationStep>) {
        steps.clear();
        if self.is_over() {
            return;
        }
        for index in 0..planned.declarations.len() as ChildIndex {
            match self.child(index, planned) {
                Some((_, child)) => self.steps_of(index, child, planned, steps),
                None if self.machine.admits().is_ok() => steps.push(ExplorationStep::Add(index)),
                None => {}
            }
        }
        let due = self.machine.next_deadline().is_some_and(|at| at <= self.now);
        if !due {
            steps.push(ExplorationStep::Pass(1));
            steps.extend(self.until_one_expires().map(ExplorationStep::Pass));
        }
        steps.push(ExplorationStep::Due);
        steps.push(ExplorationStep::Stop { hurried: false });
        steps.push(ExplorationStep::Stop { hurried: true });
        let all = self.machine.is_ending();
        steps.push(ExplorationStep::Close { all });
        steps.push(ExplorationStep::AbortAll);
    }

    fn steps_of(
        &self,
        index: ChildIndex,
        child: &ChildAccount,
        planned: &PlannedChildren,
        steps: &mut Vec<ExplorationStep>,
    ) {
        if child.live {
            let ends: &[TaskExit] = match (child.cancelled || child.aborted, child.aborted) {
                (_, true) if planned.exits => &[TaskExit::Aborted, TaskExit::Exit],
                (_, true) => &[TaskExit::Aborted],
                (true, _) if planned.exits => &[TaskExit::Shutdown, TaskExit::Exit],
                (true, _) => &[TaskExit::Shutdown, TaskExit::Failed],
                _ if planned.exits => &[TaskExit::Normal, TaskExit::Failed, TaskExit::Exit],
                _ if planned.retries_after => &[TaskExit::Normal, TaskExit::Failed, TaskExit::Busy],
                _ if planned.waits => &[TaskExit::Normal, TaskExit::Failed, TaskExit::Escalated],
                _ => &[TaskExit::Normal, TaskExit::Failed],
            };
            steps.extend(ends.iter().map(|&end| ExplorationStep::Exited(index, end)));
            steps.push(ExplorationStep::Ignored(index));
            steps.push(ExplorationStep::StopSelf(index));
            if child.lifecycle != Lifecycle::Active && child.declaration.options.facts.signals {
                steps.push(ExplorationStep::Ready(index));
            }
            if child.declaration.options.fails_unhealthy {
                steps.push(ExplorationStep::Unhealthy(index));
            }
            if child.heartbeat_due {
                steps.extend([ExplorationStep::Beats(index), ExplorationStep::Silent(index)]);
            }
            if planned.waits {
                steps.push(ExplorationStep::Healthy(index));
            }
            if child.declaration.options.delays_delivery {
                steps.push(ExplorationStep::Acked(index));
            }
            if planned.callback {
                let types = [RestartType::Temporary, RestartType::Permanent].map(OwnPolicy::Type);
                let policies = types.into_iter().chain([OwnPolicy::Once]);
                steps.extend(policies.map(|policy| ExplorationStep::Policy(index, policy)));
            }
        }
        match child.lease {
            LeaseAccount::Idle | LeaseAccount::Leaked => {}
            LeaseAccount::Sought => steps.push(ExplorationStep::Granted(index)),
            LeaseAccount::Granted => steps.push(ExplorationStep::Lost(index)),
        }
        if child.pending_decision != PendingDecision::None {
            let answers = [Resolution::Restart, Resolution::GiveUp, Resolution::Escalate];
            steps.extend(answers.map(|answer| ExplorationStep::Decide(index, answer)));
        }
        if child.declaration.options.on_message {
            steps.push(ExplorationStep::MessagePending(index));
        }
        steps.extend(REQUESTS.map(|request| ExplorationStep::Request(index, request)));
    }

    /// The beats until the oldest restart no longer counts, unless a deadline is due before.
    fn until_one_expires(&self) -> Option<u8> {
        let window = self.machine.children().window.as_ref()?;
        let oldest = window.granted(self.now).next()?;
        let end = oldest + window.period() + BEAT;
        let earlier = self.machine.next_deadline().is_some_and(|at| at < end);
        let beats = (end - self.now).as_millis() / BEAT.as_millis();
        u8::try_from(beats).ok().filter(|&beats| beats > 1 && !earlier)
    }

    /// The next step if no child fails any more: cancelled children end, starting children become ready,
    /// and deadlines are due. `None` if nothing follows.
    pub(super) fn next_without_failures(
        &self,
        planned: &PlannedChildren,
        deaf: bool,
    ) -> Option<ExplorationStep> {
        for index in 0..planned.declarations.len() as ChildIndex {
            match self.child(index, planned) {
                Some((_, child)) if child.live => {
                    if (child.cancelled || child.aborted) && !deaf {
                        return Some(ExplorationStep::Exited(index, TaskExit::Shutdown));
                    }
                    if child.lifecycle == Lifecycle::Activating {
                        return Some(ExplorationStep::Ready(index));
                    }
                    if child.heartbeat_due && child.lifecycle == Lifecycle::Active {
                        return Some(ExplorationStep::Beats(index));
                    }
                }
                Some((_, child)) if child.pending_decision != PendingDecision::None => {
                    return Some(ExplorationStep::Decide(index, Resolution::Restart));
                }
                _ => {}
            }
        }
        let rests = self.machine.only_watches();
        self.machine.next_deadline().filter(|_| !rests).map(|_| ExplorationStep::Due)
    }

    /// Takes a step. A panic breaks an invariant too.
    pub(super) fn take(
        &mut self,
        step: ExplorationStep,
        planned: &PlannedChildren,
    ) -> Result<(), Violation> {
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_or_panic(step, planned)));
        taken.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("no panic: {}", text.unwrap_or("of an unknown kind")))
        })
    }

    fn take_or_panic(
        &mut self,
        step: ExplorationStep,
        planned: &PlannedChildren,
    ) -> Result<(), Violation> {
        let of = |index| {
            let (key, child) = self.child(index, planned).expect("a child that exists");
            (key, child.incarnation)
        };
        let event = match step {
            ExplorationStep::Ready(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Ready { key, incarnation }
            }
            ExplorationStep::Ignored(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Ignored { key, incarnation }
            }
            ExplorationStep::Exited(index, end) => {
                let (key, incarnation) = of(index);
                MachineEvent::Exited { key, incarnation, reason: end.reason() }
            }
            ExplorationStep::Healthy(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Healthy { key, incarnation }
            }
            ExplorationStep::StopSelf(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::StopSelf { key, incarnation }
            }
            ExplorationStep::Acked(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Acked { key, incarnation }
            }
            ExplorationStep::Granted(index) => {
                MachineEvent::Condition(ConditionEvent::LeaseGranted {
                    key: of(index).0,
                    changes: Properties::default(),
                })
            }
            ExplorationStep::Lost(index) => {
                MachineEvent::Condition(ConditionEvent::LeaseLost { key: of(index).0 })
            }
            ExplorationStep::MessagePending(index) => {
                MachineEvent::Condition(ConditionEvent::MessagePending { key: of(index).0 })
            }
            ExplorationStep::Unhealthy(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Condition(ConditionEvent::Health {
                    key,
                    incarnation,
                    problem: Some("ill".into()),
                })
            }
            ExplorationStep::Beats(index) | ExplorationStep::Silent(index) => {
                let (key, incarnation) = of(index);
                let last = matches!(step, ExplorationStep::Beats(_)).then_some(self.now);
                MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last })
            }
            ExplorationStep::Policy(index, policy) => {
                let (key, incarnation) = of(index);
                let policy = Some(Arc::new(policy.policy()));
                MachineEvent::Policy { key, incarnation, policy }
            }
            ExplorationStep::Decide(index, resolution) => {
                let (key, incarnation) = of(index);
                MachineEvent::Condition(ConditionEvent::Answered {
                    key,
                    incarnation,
                    decision: resolution.into(),
                })
            }
            ExplorationStep::Request(index, request) => {
                let (key, _) = of(index);
                self.request(key, request)
            }
            ExplorationStep::Add(index) => {
                self.insert(index.into(), planned);
                let (key, _) = self.child(index, planned).expect("the child that was added");
                self.request(key, ChildRequest::StartNew { keep: false })
            }
            ExplorationStep::Pass(beats) => {
                self.now += BEAT * u32::from(beats);
                return Ok(());
            }
            ExplorationStep::Due => {
                self.now = self.machine.next_deadline().map_or(self.now, |at| at.max(self.now));
                MachineEvent::Tick
            }
            ExplorationStep::Stop { hurried } => {
                MachineEvent::Stop { within: hurried.then_some(BEAT) }
            }
            ExplorationStep::Close { all } => MachineEvent::Close { all },
            ExplorationStep::AbortAll => MachineEvent::AbortAll,
        };
        self.watch(event)
    }

    fn request(&mut self, key: Key, request: ChildRequest) -> MachineEvent {
        self.tickets += 1;
        MachineEvent::Request { ticket: self.tickets, key, request }
    }

    /// Checks that events of incarnations that are over change nothing.
    pub(super) fn check_echoes(&mut self) -> Result<(), Violation> {
        let before = self.fingerprint();
        self.invariants.check_echoes(&mut self.machine, self.now)?;
        match before == self.fingerprint() {
            true => Ok(()),
            false => Err("an event of an incarnation that is over changes nothing".to_owned()),
        }
    }

    pub(super) fn check_rest(&self) -> Result<(), Violation> {
        self.invariants.check_rest(&self.machine)
    }

    /// Equal for two states with the same future.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut print = Fingerprint::new(self.now);
        print.machine(&self.machine);
        self.invariants.print(&mut print);
        print.read()
    }
}

impl TaskExit {
    fn reason(self) -> ExitReason {
        match self {
            Self::Normal => ExitReason::Normal,
            Self::Failed => Script::Fail.reason(),
            Self::Busy => Script::Busy.reason(),
            Self::Escalated => Script::Escalate.reason(),
            Self::Exit => Script::Exit.reason(),
            Self::Shutdown => ExitReason::Shutdown,
            Self::Aborted => ExitReason::Aborted,
        }
    }
}
