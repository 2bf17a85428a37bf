//! A walk through all orders of events of one plan, breadth first, so that the first script that breaks
//! an invariant is the shortest.
//!
//! Each state is kept as its fingerprint and the step that first led to it. Whole states are kept only
//! until their steps are taken.
//!
//! From each state the search also continues as if no child failed any more: the machine must come to
//! rest, and once stopped it must end, whether its children obey or ignore a cancel. A continuation
//! depends on the state alone, so it ends at a state from which it was followed before.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::plan::Plan;
use super::state::{ExploredState, PlannedChildren};
use super::step::ExplorationStep;

/// How much was explored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) states: u64,
    pub(super) transitions: u64,
}

/// The way to a state: the state before, and the step from there.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    before: u32,
    step: ExplorationStep,
}

/// A script that breaks an invariant.
#[derive(Debug)]
pub(super) struct CounterExample {
    pub(super) plan: Plan,
    pub(super) steps: Vec<ExplorationStep>,
    pub(super) broken: String,
}

/// How the search continues when no child fails any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Rest,
    Stop { deaf: bool },
}

const ENDINGS: [Ending; 3] =
    [Ending::Rest, Ending::Stop { deaf: false }, Ending::Stop { deaf: true }];

/// More steps than any machine needs to come to rest.
const LONG: usize = 200;

struct Exploration {
    plan: Plan,
    planned: PlannedChildren,
    seen: Seen,
    states: HashSet<u128>,
    arrivals: Vec<Arrival>,
    /// States whose steps are not taken yet.
    open: Vec<(u32, ExploredState)>,
    /// States from which each ending is known to be reached.
    ends: [HashSet<u128>; 3],
}

const ROOT: u32 = u32::MAX;

/// Takes every step from every state that is fewer than `depth` steps from one of the beginnings:
/// a supervisor that has not begun, and one whose children are up.
pub(super) fn explore(plan: &Plan, depth: usize) -> Result<Seen, Box<CounterExample>> {
    let planned = PlannedChildren::of(plan);
    let mut search = Exploration {
        plan: plan.clone(),
        seen: Seen::default(),
        states: HashSet::new(),
        arrivals: Vec::new(),
        open: Vec::new(),
        ends: Default::default(),
        planned,
    };
    search.begin()?;
    for left in (0..depth).rev() {
        for (arrival, state) in std::mem::take(&mut search.open) {
            search.expand(arrival, &state, left > 0)?;
        }
    }
    Ok(search.seen)
}

impl Exploration {
    fn begin(&mut self) -> Result<(), Box<CounterExample>> {
        let mut state = ExploredState::begin(&self.plan, &self.planned);
        let mut arrival = ROOT;
        if !state.machine.is_ordered() {
            state = self.take(arrival, &state, ExplorationStep::Due)?;
            arrival = self.arrive(arrival, ExplorationStep::Due, &state)?.unwrap_or(arrival);
        }
        self.open.push((arrival, state.clone()));
        if !state.machine.is_ordered() {
            for index in 0..self.plan.types.len() {
                let step = ExplorationStep::Add(index as u8);
                state = self.take(arrival, &state, step)?;
                arrival = self.arrive(arrival, step, &state)?.unwrap_or(arrival);
            }
        }
        while let Some(step) = state.next_without_failures(&self.planned, false) {
            state = self.take(arrival, &state, step)?;
            arrival = self.arrive(arrival, step, &state)?.unwrap_or(arrival);
        }
        self.open.push((arrival, state));
        Ok(())
    }

    fn expand(
        &mut self,
        arrival: u32,
        state: &ExploredState,
        goes_on: bool,
    ) -> Result<(), Box<CounterExample>> {
        let mut steps = Vec::new();
        state.steps(&self.planned, &mut steps);
        for step in steps {
            let next = self.take(arrival, state, step)?;
            if let Some(arrival) = self.arrive(arrival, step, &next)?
                && goes_on
            {
                self.open.push((arrival, next));
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        from: u32,
        state: &ExploredState,
        step: ExplorationStep,
    ) -> Result<ExploredState, Box<CounterExample>> {
        self.seen.transitions += 1;
        let mut next = state.clone();
        next.take(step, &self.planned).map_err(|broken| self.found(from, &[step], broken))?;
        Ok(next)
    }

    /// Adds a state and checks it, unless it was reached before.
    fn arrive(
        &mut self,
        before: u32,
        step: ExplorationStep,
        state: &ExploredState,
    ) -> Result<Option<u32>, Box<CounterExample>> {
        let print = state.fingerprint();
        if !self.states.insert(print) {
            return Ok(None);
        }
        self.seen.states += 1;
        self.arrivals.push(Arrival { before, step });
        let arrival = self.arrivals.len() as u32 - 1;
        state.clone().check_echoes().map_err(|broken| self.found(arrival, &[], broken))?;
        for ending in ENDINGS {
            let mut steps = Vec::new();
            if let Err(broken) = self.follow(print, state, ending, &mut steps) {
                return Err(self.found(arrival, &steps, broken));
            }
        }
        Ok(Some(arrival))
    }

    /// Continues to an ending.
    fn follow(
        &mut self,
        print: u128,
        state: &ExploredState,
        ending: Ending,
        steps: &mut Vec<ExplorationStep>,
    ) -> Result<(), String> {
        let which = ENDINGS.iter().position(|&other| other == ending).expect("one of them");
        if self.ends[which].contains(&print) || state.is_over() {
            return Ok(());
        }
        if ending == Ending::Rest && state.is_ending() {
            return Ok(());
        }
        let (mut state, mut path) = (state.clone(), vec![print]);
        while !state.is_over() {
            let step = match ending {
                Ending::Rest => state.next_without_failures(&self.planned, false),
                Ending::Stop { .. } if !state.is_ending() => {
                    Some(ExplorationStep::Stop { hurried: false })
                }
                // A child without a shutdown timeout has to obey at some time.
                Ending::Stop { deaf } => state
                    .next_without_failures(&self.planned, deaf)
                    .or_else(|| state.next_without_failures(&self.planned, false)),
            };
            let Some(step) = step else {
                if ending == Ending::Rest && !state.is_ending() {
                    state.check_rest()?;
                    break;
                }
                return Err("a stopped supervisor ends".to_owned());
            };
            steps.push(step);
            state.take(step, &self.planned)?;
            if steps.len() > LONG {
                return Err("the machine comes to rest, or ends".to_owned());
            }
            let print = state.fingerprint();
            if self.ends[which].contains(&print) {
                break;
            }
            path.push(print);
        }
        self.ends[which].extend(path);
        Ok(())
    }

    fn found(&self, arrival: u32, more: &[ExplorationStep], broken: String) -> Box<CounterExample> {
        let mut steps: Vec<_> = more.iter().rev().copied().collect();
        let mut at = arrival;
        while at != ROOT {
            let Arrival { before, step } = self.arrivals[at as usize];
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Box::new(CounterExample { plan: self.plan.clone(), steps, broken })
    }
}

/// Compares each merged state with the one that it is merged with: the same steps must lead to the same
/// states. Returns how many were compared.
pub(super) fn compare_merged(plan: &Plan, depth: usize) -> u64 {
    let planned = PlannedChildren::of(plan);
    let future = |state: &ExploredState| {
        let mut steps = Vec::new();
        state.steps(&planned, &mut steps);
        let next = steps.into_iter().map(|step| (step, after(state, step, &planned).fingerprint()));
        next.collect::<Vec<_>>()
    };
    let mut open: Vec<ExploredState> = vec![ExploredState::begin(plan, &planned)];
    let (mut futures, mut compared) = (HashMap::new(), 0);
    for _ in 0..depth {
        for state in std::mem::take(&mut open) {
            for (step, print) in future(&state) {
                let next = after(&state, step, &planned);
                let leads_to = future(&next);
                match futures.entry(print) {
                    Entry::Vacant(entry) => {
                        entry.insert(leads_to);
                        open.push(next);
                    }
                    Entry::Occupied(entry) => {
                        assert_eq!(*entry.get(), leads_to, "{plan:?}: after {step:?}");
                        compared += 1;
                    }
                }
            }
        }
    }
    compared
}

fn after(state: &ExploredState, step: ExplorationStep, planned: &PlannedChildren) -> ExploredState {
    let mut next = state.clone();
    next.take(step, planned).expect("no invariant is broken");
    next
}

impl CounterExample {
    /// A test of the simulation that breaks the invariant.
    pub(super) fn script(&self) -> String {
        let (rules, fakes) = self.plan.script();
        let (kind, declared) = if self.plan.dynamic {
            ("dynamic", String::new())
        } else {
            ("ordered", fakes.join(", "))
        };
        let mut lines =
            vec![rules, format!("let mut sim = Simulation::{kind}(rules, [{declared}]);")];
        // The simulation has taken this step already.
        let taken = usize::from(self.plan.dynamic);
        lines.extend(self.steps.iter().skip(taken).map(|step| step.script(&fakes)));
        lines.join("\n")
    }
}
