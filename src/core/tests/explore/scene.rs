//! One state: a machine, who watches it, and what time it is.
//!
//! Says which steps are possible and takes them. Knows nothing of how it was reached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::super::super::fingerprint::Fingerprint;
use super::super::super::simulator::{Kid, Play};
use super::super::super::witness::{Broken, Child, Nature, Question, Witness, is_ending};
use super::super::super::{ChildRequest, Key, Machine, MachineEvent, RequirementId};
use super::super::REQUESTS;
use super::plan::{Flavour, Plan};
use super::step::{BEAT, End, Step, Who, Word};
use crate::exit::ExitReason;
use crate::failure::Resolution;
use crate::lifecycle::Lifecycle;
use crate::policy::RestartType;

/// The children of a plan, by number.
#[derive(Debug)]
pub(super) struct Cast {
    natures: Vec<Arc<Nature>>,
    /// Whom each requires, by number.
    requires: Vec<Vec<usize>>,
    /// Whether a restart may wait.
    waits: bool,
    /// Whether one of them may say that the program is to end.
    exits: bool,
    /// Whether an error may ask for a wait.
    told: bool,
    /// Whether somebody is asked about failures.
    asks: bool,
}

impl Cast {
    pub(super) fn of(plan: &Plan) -> Self {
        let kids = plan.kids();
        let number = |name: &String| kids.iter().position(|kid| kid.name() == name);
        let requires = |kid: &Kid| kid.requires.iter().filter_map(number).collect();
        Self {
            natures: kids.iter().map(Kid::nature).collect(),
            requires: kids.iter().map(requires).collect(),
            waits: plan.waits,
            exits: plan.flavour == Flavour::Exits,
            told: matches!(plan.flavour, Flavour::Told | Flavour::Held),
            asks: plan.rules().asks,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) machine: Machine,
    pub(super) witness: Witness,
    pub(super) now: Instant,
    /// What is required of each child, by number.
    provided: Vec<Option<RequirementId>>,
    tickets: u64,
}

impl Scene {
    /// A supervisor that has not begun, with the children that are declared.
    pub(super) fn begin(plan: &Plan, cast: &Cast) -> Self {
        let now = Instant::now();
        let (rules, count) = (plan.rules(), cast.natures.len());
        let machine = match plan.dynamic {
            true => Machine::dynamic(rules, now, 7),
            false => Machine::ordered(rules, now, 7),
        };
        let witness = Witness::of(&machine);
        let mut scene = Self { machine, witness, now, provided: vec![None; count], tickets: 0 };
        if !plan.dynamic {
            for nature in &cast.natures {
                scene.insert(nature);
            }
            for who in 0..count {
                scene.link(who, cast);
            }
        }
        scene
    }

    fn insert(&mut self, nature: &Arc<Nature>) {
        let key = self.machine.add(Arc::clone(&nature.options), self.now);
        self.witness.added(key, Arc::clone(nature), self.now);
    }

    fn link(&mut self, who: usize, cast: &Cast) {
        let key = |who: usize, witness: &Witness| witness.key(&cast.natures[who].name);
        for &required in &cast.requires[who] {
            let provider = key(required, &self.witness).expect("it was declared before");
            self.provided[required].get_or_insert_with(|| self.machine.provided_by(provider));
        }
        let requires = cast.requires[who].iter().filter_map(|&required| self.provided[required]);
        let requires: Vec<_> = requires.collect();
        if let Some(key) = key(who, &self.witness)
            && (self.provided[who].is_some() || !requires.is_empty())
        {
            self.machine.link(key, self.provided[who], requires);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.witness.finished.is_some()
    }

    pub(super) fn is_ending(&self) -> bool {
        is_ending(&self.machine)
    }

    /// The child that is there, if it is.
    fn child(&self, who: Who, cast: &Cast) -> Option<(Key, &Child)> {
        let key = self.witness.key(&cast.natures[usize::from(who)].name)?;
        let child = &self.witness.children[&key];
        (!child.forgotten).then_some((key, child))
    }

    /// All that can happen next.
    pub(super) fn steps(&self, cast: &Cast, steps: &mut Vec<Step>) {
        steps.clear();
        if self.is_over() {
            return;
        }
        for who in 0..cast.natures.len() as Who {
            match self.child(who, cast) {
                Some((_, child)) => self.steps_of(who, child, cast, steps),
                None if self.machine.admits().is_ok() => steps.push(Step::Add(who)),
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

    fn steps_of(&self, who: Who, child: &Child, cast: &Cast, steps: &mut Vec<Step>) {
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
            steps.extend(ends.iter().map(|&end| Step::Exited(who, end)));
            steps.push(Step::Ignored(who));
            steps.push(Step::StopSelf(who));
            if child.lifecycle != Lifecycle::Active && child.nature.options.signals {
                steps.push(Step::Ready(who));
            }
            if child.nature.options.fails_unhealthy {
                steps.push(Step::Unhealthy(who));
            }
            if cast.waits {
                steps.push(Step::Healthy(who));
            }
            if child.nature.options.delays_traffic {
                steps.push(Step::Acked(who));
            }
            if cast.asks {
                let types = [RestartType::Temporary, RestartType::Permanent].map(Word::Type);
                let words = types.into_iter().chain([Word::Once]);
                steps.extend(words.map(|word| Step::Policy(who, word)));
            }
        }
        if child.question != Question::None {
            let answers = [Resolution::Restart, Resolution::GiveUp, Resolution::Escalate];
            steps.extend(answers.map(|answer| Step::ChildAnswer(who, answer)));
        }
        if child.nature.options.on_message {
            steps.push(Step::Wanted(who));
        }
        steps.extend(REQUESTS.map(|request| Step::Ask(who, request)));
    }

    /// In how many beats the oldest restart no longer counts, if nothing is due before.
    fn until_one_expires(&self) -> Option<u8> {
        let window = self.machine.children().window.as_ref()?;
        let oldest = window.granted(self.now).next()?;
        let end = oldest + window.period() + BEAT;
        let earlier = self.machine.next_deadline().is_some_and(|at| at < end);
        let beats = (end - self.now).as_millis() / BEAT.as_millis();
        u8::try_from(beats).ok().filter(|&beats| beats > 1 && !earlier)
    }

    /// What follows if nobody fails any more: whoever was asked to end does so, whoever starts is
    /// ready, and every deadline comes. Nothing, if nothing follows.
    pub(super) fn next_if_well(&self, cast: &Cast, deaf: bool) -> Option<Step> {
        for who in 0..cast.natures.len() as Who {
            match self.child(who, cast) {
                Some((_, child)) if child.live => {
                    if (child.cancelled || child.aborted) && !deaf {
                        return Some(Step::Exited(who, End::Shutdown));
                    }
                    if child.lifecycle == Lifecycle::Activating {
                        return Some(Step::Ready(who));
                    }
                }
                Some((_, child)) if child.question != Question::None => {
                    return Some(Step::ChildAnswer(who, Resolution::Restart));
                }
                _ => {}
            }
        }
        self.machine.next_deadline().map(|_| Step::Due)
    }

    /// Takes a step. A panic is a broken promise too.
    pub(super) fn take(&mut self, step: Step, cast: &Cast) -> Result<(), Broken> {
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_or_panic(step, cast)));
        taken.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("no panic: {}", text.unwrap_or("of an unknown kind")))
        })
    }

    fn take_or_panic(&mut self, step: Step, cast: &Cast) -> Result<(), Broken> {
        let of = |who| {
            let (key, child) = self.child(who, cast).expect("a child that is there");
            (key, child.incarnation)
        };
        let event = match step {
            Step::Ready(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::Ready { key, incarnation }
            }
            Step::Ignored(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::Ignored { key, incarnation }
            }
            Step::Exited(who, end) => {
                let (key, incarnation) = of(who);
                MachineEvent::Exited { key, incarnation, reason: end.reason() }
            }
            Step::Healthy(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::Healthy { key, incarnation }
            }
            Step::StopSelf(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::StopSelf { key, incarnation }
            }
            Step::Acked(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::Acked { key, incarnation }
            }
            Step::Wanted(who) => MachineEvent::MessagePending { key: of(who).0 },
            Step::Unhealthy(who) => {
                let (key, incarnation) = of(who);
                MachineEvent::Health { key, incarnation, problem: Some("ill".into()) }
            }
            Step::Policy(who, word) => {
                let (key, incarnation) = of(who);
                let policy = Some(Arc::new(word.policy()));
                MachineEvent::Policy { key, incarnation, policy }
            }
            Step::ChildAnswer(who, resolution) => {
                let (key, incarnation) = of(who);
                MachineEvent::Answered { key, incarnation, decision: resolution.into() }
            }
            Step::Ask(who, request) => {
                let (key, _) = of(who);
                self.ask(key, request)
            }
            Step::Add(who) => {
                self.insert(&cast.natures[usize::from(who)]);
                self.link(who.into(), cast);
                let (key, _) = self.child(who, cast).expect("the child that was added");
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
        self.witness.watch(&mut self.machine, event, self.now, &mut Vec::new())
    }

    fn ask(&mut self, key: Key, request: ChildRequest) -> MachineEvent {
        self.tickets += 1;
        MachineEvent::Request { ticket: self.tickets, key, request }
    }

    /// Whoever is over says again all that he could say, and changes nothing.
    pub(super) fn check_echoes(&mut self) -> Result<(), Broken> {
        let before = self.fingerprint();
        self.witness.check_echoes(&mut self.machine, self.now)?;
        match before == self.fingerprint() {
            true => Ok(()),
            false => Err("what an incarnation says that is over changes nothing".to_owned()),
        }
    }

    pub(super) fn check_rest(&self) -> Result<(), Broken> {
        self.witness.check_rest(&self.machine)
    }

    /// The same for two scenes from which the same can follow.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut print = Fingerprint::new(self.now);
        self.machine.print(&mut print);
        self.witness.print(&mut print);
        print.read()
    }
}

impl End {
    fn reason(self) -> ExitReason {
        match self {
            Self::Normal => ExitReason::Normal,
            Self::Failed => Play::Fail.reason(),
            Self::Busy => Play::Busy.reason(),
            Self::Escalated => Play::Escalate.reason(),
            Self::Exit => Play::Exit.reason(),
            Self::Shutdown => ExitReason::Shutdown,
            Self::Aborted => ExitReason::Aborted,
        }
    }
}
