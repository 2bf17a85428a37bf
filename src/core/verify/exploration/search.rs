//! A walk through all orders of events of one plan, breadth first, so that the first script that breaks
//! an invariant is the shortest.
//!
//! Each state is kept as its fingerprint and the step that first led to it. Whole scenes are kept only
//! while their steps are yet to be taken.
//!
//! From each state the search also continues as if no child failed any more: the machine must come to
//! rest, and once stopped it must end, whether its children obey or ignore a cancel. A continuation
//! depends on the state alone, so it ends at a state from which it was followed before.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::plan::Plan;
use super::scene::{Cast, Scene};
use super::step::Step;

/// How much was explored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) states: u64,
    pub(super) transitions: u64,
}

/// The way to a state: the state before, and the step from there.
#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    step: Step,
}

/// A script that breaks an invariant.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) plan: Plan,
    pub(super) steps: Vec<Step>,
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

struct Search {
    plan: Plan,
    cast: Cast,
    seen: Seen,
    states: HashSet<u128>,
    nodes: Vec<Node>,
    /// States whose steps are still to be taken.
    open: Vec<(u32, Scene)>,
    /// States from which each ending is known to be reached.
    ends: [HashSet<u128>; 3],
}

const ROOT: u32 = u32::MAX;

/// Takes every step from every state that is fewer than `depth` steps from one of the beginnings:
/// a supervisor that has not begun, and one whose children are up.
pub(super) fn explore(plan: &Plan, depth: usize) -> Result<Seen, Box<Found>> {
    let cast = Cast::of(plan);
    let mut search = Search {
        plan: plan.clone(),
        seen: Seen::default(),
        states: HashSet::new(),
        nodes: Vec::new(),
        open: Vec::new(),
        ends: Default::default(),
        cast,
    };
    search.begin()?;
    for left in (0..depth).rev() {
        for (node, scene) in std::mem::take(&mut search.open) {
            search.expand(node, &scene, left > 0)?;
        }
    }
    Ok(search.seen)
}

impl Search {
    fn begin(&mut self) -> Result<(), Box<Found>> {
        let mut scene: Scene = Scene::begin(&self.plan, &self.cast);
        let mut node = ROOT;
        if !scene.machine.is_ordered() {
            scene = self.take(node, &scene, Step::Due)?;
            node = self.arrive(node, Step::Due, &scene)?.unwrap_or(node);
        }
        self.open.push((node, scene.clone()));
        if !scene.machine.is_ordered() {
            for index in 0..self.plan.types.len() {
                let step = Step::Add(index as u8);
                scene = self.take(node, &scene, step)?;
                node = self.arrive(node, step, &scene)?.unwrap_or(node);
            }
        }
        while let Some(step) = scene.next_if_well(&self.cast, false) {
            scene = self.take(node, &scene, step)?;
            node = self.arrive(node, step, &scene)?.unwrap_or(node);
        }
        self.open.push((node, scene));
        Ok(())
    }

    fn expand(&mut self, node: u32, scene: &Scene, goes_on: bool) -> Result<(), Box<Found>> {
        let mut steps = Vec::new();
        scene.steps(&self.cast, &mut steps);
        for step in steps {
            let next = self.take(node, scene, step)?;
            if let Some(node) = self.arrive(node, step, &next)?
                && goes_on
            {
                self.open.push((node, next));
            }
        }
        Ok(())
    }

    fn take(&mut self, from: u32, scene: &Scene, step: Step) -> Result<Scene, Box<Found>> {
        self.seen.transitions += 1;
        let mut next = scene.clone();
        next.take(step, &self.cast).map_err(|broken| self.found(from, &[step], broken))?;
        Ok(next)
    }

    /// Adds a state and checks it, unless it was reached before.
    fn arrive(
        &mut self,
        before: u32,
        step: Step,
        scene: &Scene,
    ) -> Result<Option<u32>, Box<Found>> {
        let print = scene.fingerprint();
        if !self.states.insert(print) {
            return Ok(None);
        }
        self.seen.states += 1;
        self.nodes.push(Node { before, step });
        let node = self.nodes.len() as u32 - 1;
        scene.clone().check_echoes().map_err(|broken| self.found(node, &[], broken))?;
        for ending in ENDINGS {
            let mut steps = Vec::new();
            if let Err(broken) = self.follow(print, scene, ending, &mut steps) {
                return Err(self.found(node, &steps, broken));
            }
        }
        Ok(Some(node))
    }

    /// Continues to an ending.
    fn follow(
        &mut self,
        print: u128,
        scene: &Scene,
        ending: Ending,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let which = ENDINGS.iter().position(|&other| other == ending).expect("one of them");
        if self.ends[which].contains(&print) || scene.is_over() {
            return Ok(());
        }
        if ending == Ending::Rest && scene.is_ending() {
            return Ok(());
        }
        let (mut scene, mut path) = (scene.clone(), vec![print]);
        while !scene.is_over() {
            let step = match ending {
                Ending::Rest => scene.next_if_well(&self.cast, false),
                Ending::Stop { .. } if !scene.is_ending() => Some(Step::Stop { hurried: false }),
                // A child without a shutdown timeout has to obey at some time.
                Ending::Stop { deaf } => scene
                    .next_if_well(&self.cast, deaf)
                    .or_else(|| scene.next_if_well(&self.cast, false)),
            };
            let Some(step) = step else {
                if ending == Ending::Rest && !scene.is_ending() {
                    scene.check_rest()?;
                    break;
                }
                return Err("it ends when it is told to".to_owned());
            };
            steps.push(step);
            scene.take(step, &self.cast)?;
            if steps.len() > LONG {
                return Err("it comes to rest, or to its end".to_owned());
            }
            let print = scene.fingerprint();
            if self.ends[which].contains(&print) {
                break;
            }
            path.push(print);
        }
        self.ends[which].extend(path);
        Ok(())
    }

    fn found(&self, node: u32, more: &[Step], broken: String) -> Box<Found> {
        let mut steps: Vec<_> = more.iter().rev().copied().collect();
        let mut at = node;
        while at != ROOT {
            let Node { before, step } = self.nodes[at as usize];
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Box::new(Found { plan: self.plan.clone(), steps, broken })
    }
}

/// Compares each merged state with the one that it is merged with: the same steps must lead to the same
/// states. Returns how many were compared.
pub(super) fn compare_merged(plan: &Plan, depth: usize) -> u64 {
    let cast = Cast::of(plan);
    let future = |scene: &Scene| {
        let mut steps = Vec::new();
        scene.steps(&cast, &mut steps);
        let next = steps.into_iter().map(|step| (step, after(scene, step, &cast).fingerprint()));
        next.collect::<Vec<_>>()
    };
    let mut open: Vec<Scene> = vec![Scene::begin(plan, &cast)];
    let (mut futures, mut compared) = (HashMap::new(), 0);
    for _ in 0..depth {
        for scene in std::mem::take(&mut open) {
            for (step, print) in future(&scene) {
                let next = after(&scene, step, &cast);
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

fn after(scene: &Scene, step: Step, cast: &Cast) -> Scene {
    let mut next = scene.clone();
    next.take(step, cast).expect("no promise is broken");
    next
}

impl Found {
    /// A test of the simulation that breaks the invariant.
    pub(super) fn script(&self) -> String {
        let (rules, fakes) = self.plan.script();
        let (kind, there) = if self.plan.dynamic {
            ("dynamic", String::new())
        } else {
            ("ordered", fakes.join(", "))
        };
        let mut lines = vec![rules, format!("let mut sim = Simulation::{kind}(rules, [{there}]);")];
        // The simulation has taken this step already.
        let taken = usize::from(self.plan.dynamic);
        lines.extend(self.steps.iter().skip(taken).map(|step| step.script(&fakes)));
        lines.join("\n")
    }
}
