//! One state: a machine, its invariants, and the current time.
//!
//! Lists the possible steps and takes them. Knows nothing of how the state was reached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::plan::{Flavour, Plan};
use super::step::{BEAT, ChildIndex, End, Step, Word};
use crate::core::verify::REQUESTS;
use crate::core::verify::fingerprint::Fingerprint;
use crate::core::verify::invariants::{
    ChildRecord, Declaration, Invariants, QuestionState, Violation, is_ending,
};
use crate::core::verify::simulation::{FakeChild, Script};
use crate::core::{ChildRequest, Key, Machine, MachineEvent, RequirementId};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::Resolution;
use crate::policy::RestartType;

/// The children of a plan, by number.
#[derive(Debug)]
pub(super) struct Cast {
    declarations: Vec<Arc<Declaration>>,
    /// The children that each requires, by number.
    requires: Vec<Vec<usize>>,
    /// A restart may be delayed.
    waits: bool,
    /// A child may end the program.
    exits: bool,
    /// An error may ask for a delay.
    told: bool,
    /// A failure callback decides.
    asks: bool,
}

impl Cast {
    pub(super) fn of(plan: &Plan) -> Self {
        let fakes = plan.fakes();
        let number = |name: &String| fakes.iter().position(|fake| fake.name() == name);
        let requires = |fake: &FakeChild| fake.requires.iter().filter_map(number).collect();
        Self {
            declarations: fakes.iter().map(FakeChild::declaration).collect(),
            requires: fakes.iter().map(requires).collect(),
            waits: plan.waits,
            exits: plan.flavour == Flavour::Exits,
            told: matches!(plan.flavour, Flavour::Told | Flavour::Held),
            asks: plan.rules().has_failure_callback,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) machine: Machine,
    pub(super) invariants: Invariants,
    pub(super) now: Instant,
    /// The requirement that each child provides, by number.
    provided: Vec<Option<RequirementId>>,
    tickets: u64,
}

impl Scene {
    /// A supervisor that has not begun, with the children that are declared.
    pub(super) fn begin(plan: &Plan, cast: &Cast) -> Self {
        let now = Instant::now();
        let (rules, count) = (plan.rules(), cast.declarations.len());
        let machine = match plan.dynamic {
            true => Machine::dynamic(rules, now, 7),
            false => Machine::ordered(rules, now, 7),
        };
        let invariants = Invariants::of(&machine);
        let mut scene = Self { machine, invariants, now, provided: vec![None; count], tickets: 0 };
        if !plan.dynamic {
            for declaration in &cast.declarations {
                scene.insert(declaration);
            }
            for index in 0..count {
                scene.link(index, cast);
            }
        }
        scene
    }

    fn insert(&mut self, declaration: &Arc<Declaration>) {
        let key = self.machine.add(Arc::clone(&declaration.options), self.now);
        self.invariants.added(key, Arc::clone(declaration), self.now);
    }

    fn link(&mut self, index: usize, cast: &Cast) {
        let key =
            |index: usize, invariants: &Invariants| invariants.key(&cast.declarations[index].name);
        for &required in &cast.requires[index] {
            let provider = key(required, &self.invariants).expect("it was declared before");
            self.provided[required].get_or_insert_with(|| self.machine.provided_by(provider));
        }
        let requires = cast.requires[index].iter().filter_map(|&required| self.provided[required]);
        let requires: Vec<_> = requires.collect();
        if let Some(key) = key(index, &self.invariants)
            && (self.provided[index].is_some() || !requires.is_empty())
        {
            self.machine.link(key, self.provided[index], requires);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.invariants.finished.is_some()
    }

    pub(super) fn is_ending(&self) -> bool {
        is_ending(&self.machine)
    }

    /// The child, unless it is removed.
    fn child(&self, index: ChildIndex, cast: &Cast) -> Option<(Key, &ChildRecord)> {
        let key = self.invariants.key(&cast.declarations[usize::from(index)].name)?;
        let child = &self.invariants.children[&key];
        (!child.forgotten).then_some((key, child))
    }

    /// Lists all that can happen next.
    pub(super) fn steps(&self, cast: &Cast, steps: &mut Vec<Step>) {
        steps.clear();
        if self.is_over() {
            return;
        }
        for index in 0..cast.declarations.len() as ChildIndex {
            match self.child(index, cast) {
                Some((_, child)) => self.steps_of(index, child, cast, steps),
                None if self.machine.admits().is_ok() => steps.push(Step::Add(index)),
                None => {}
            }
        }
        let due = self.machine.next_deadline().is_some_and(|at| at <= self.now);
        if !due {
            steps.push(Step::Pass(1));
            steps.extend(self.until_one_expires().map(Step::Pass));
        }
        steps.push(Step::Due);
        steps.push(Step::Stop { hurried: false });
        steps.push(Step::Stop { hurried: true });
        steps.push(Step::AbortAll);
    }

    fn steps_of(&self, index: ChildIndex, child: &ChildRecord, cast: &Cast, steps: &mut Vec<Step>) {
        if child.live {
            let ends: &[End] = match (child.cancelled || child.aborted, child.aborted) {
                (_, true) if cast.exits => &[End::Aborted, End::Exit],
                (_, true) => &[End::Aborted],
                (true, _) if cast.exits => &[End::Shutdown, End::Exit],
                (true, _) => &[End::Shutdown, End::Failed],
                _ if cast.exits => &[End::Normal, End::Failed, End::Exit],
                _ if cast.told => &[End::Normal, End::Failed, End::Busy],
                _ if cast.waits => &[End::Normal, End::Failed, End::Escalated],
                _ => &[End::Normal, End::Failed],
            };
            steps.extend(ends.iter().map(|&end| Step::Exited(index, end)));
            steps.push(Step::Ignored(index));
            steps.push(Step::StopSelf(index));
            if child.lifecycle != Lifecycle::Active && child.declaration.options.signals {
                steps.push(Step::Ready(index));
            }
            if child.declaration.options.fails_unhealthy {
                steps.push(Step::Unhealthy(index));
            }
            if cast.waits {
                steps.push(Step::Healthy(index));
            }
            if child.declaration.options.delays_delivery {
                steps.push(Step::Acked(index));
            }
            if cast.asks {
                let types = [RestartType::Temporary, RestartType::Permanent].map(Word::Type);
                let words = types.into_iter().chain([Word::Once]);
                steps.extend(words.map(|word| Step::Policy(index, word)));
            }
        }
        if child.question != QuestionState::None {
            let answers = [Resolution::Restart, Resolution::GiveUp, Resolution::Escalate];
            steps.extend(answers.map(|answer| Step::ChildAnswer(index, answer)));
        }
        if child.declaration.options.on_message {
            steps.push(Step::Wanted(index));
        }
        steps.extend(REQUESTS.map(|request| Step::Ask(index, request)));
    }

    /// In how many beats the oldest restart no longer counts, unless something is due before.
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
    pub(super) fn next_if_well(&self, cast: &Cast, deaf: bool) -> Option<Step> {
        for index in 0..cast.declarations.len() as ChildIndex {
            match self.child(index, cast) {
                Some((_, child)) if child.live => {
                    if (child.cancelled || child.aborted) && !deaf {
                        return Some(Step::Exited(index, End::Shutdown));
                    }
                    if child.lifecycle == Lifecycle::Activating {
                        return Some(Step::Ready(index));
                    }
                }
                Some((_, child)) if child.question != QuestionState::None => {
                    return Some(Step::ChildAnswer(index, Resolution::Restart));
                }
                _ => {}
            }
        }
        self.machine.next_deadline().map(|_| Step::Due)
    }

    /// Takes a step. A panic breaks an invariant too.
    pub(super) fn take(&mut self, step: Step, cast: &Cast) -> Result<(), Violation> {
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_or_panic(step, cast)));
        taken.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("no panic: {}", text.unwrap_or("of an unknown kind")))
        })
    }

    fn take_or_panic(&mut self, step: Step, cast: &Cast) -> Result<(), Violation> {
        let of = |index| {
            let (key, child) = self.child(index, cast).expect("a child that is there");
            (key, child.incarnation)
        };
        let event = match step {
            Step::Ready(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Ready { key, incarnation }
            }
            Step::Ignored(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Ignored { key, incarnation }
            }
            Step::Exited(index, end) => {
                let (key, incarnation) = of(index);
                MachineEvent::Exited { key, incarnation, reason: end.reason() }
            }
            Step::Healthy(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Healthy { key, incarnation }
            }
            Step::StopSelf(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::StopSelf { key, incarnation }
            }
            Step::Acked(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Acked { key, incarnation }
            }
            Step::Wanted(index) => MachineEvent::MessagePending { key: of(index).0 },
            Step::Unhealthy(index) => {
                let (key, incarnation) = of(index);
                MachineEvent::Health { key, incarnation, problem: Some("ill".into()) }
            }
            Step::Policy(index, word) => {
                let (key, incarnation) = of(index);
                let policy = Some(Arc::new(word.policy()));
                MachineEvent::Policy { key, incarnation, policy }
            }
            Step::ChildAnswer(index, resolution) => {
                let (key, incarnation) = of(index);
                MachineEvent::Answered { key, incarnation, decision: resolution.into() }
            }
            Step::Ask(index, request) => {
                let (key, _) = of(index);
                self.ask(key, request)
            }
            Step::Add(index) => {
                self.insert(&cast.declarations[usize::from(index)]);
                self.link(index.into(), cast);
                let (key, _) = self.child(index, cast).expect("the child that was added");
                self.ask(key, ChildRequest::Start)
            }
            Step::Pass(beats) => {
                self.now += BEAT * u32::from(beats);
                return Ok(());
            }
            Step::Due => {
                self.now = self.machine.next_deadline().map_or(self.now, |at| at.max(self.now));
                MachineEvent::Tick
            }
            Step::Stop { hurried } => MachineEvent::Stop { within: hurried.then_some(BEAT) },
            Step::AbortAll => MachineEvent::AbortAll,
        };
        self.invariants.watch(&mut self.machine, event, self.now, &mut Vec::new())
    }

    fn ask(&mut self, key: Key, request: ChildRequest) -> MachineEvent {
        self.tickets += 1;
        MachineEvent::Request { ticket: self.tickets, key, request }
    }

    /// Checks that events of incarnations that are over change nothing.
    pub(super) fn check_echoes(&mut self) -> Result<(), Violation> {
        let before = self.fingerprint();
        self.invariants.check_echoes(&mut self.machine, self.now)?;
        match before == self.fingerprint() {
            true => Ok(()),
            false => Err("what an incarnation says that is over changes nothing".to_owned()),
        }
    }

    pub(super) fn check_rest(&self) -> Result<(), Violation> {
        self.invariants.check_rest(&self.machine)
    }

    /// Equal for two scenes with the same future.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut print = Fingerprint::new(self.now);
        print.machine(&self.machine);
        self.invariants.print(&mut print);
        print.read()
    }
}

impl End {
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
