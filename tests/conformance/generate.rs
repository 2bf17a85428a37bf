//! Random scenarios, each from a seed.
//!
//! The generator tracks declared children, and not which of them run, so steps also hit children
//! that don't exist. Many steps come in pairs that belong together, such as a start that will fail
//! after an exit.
//!
//! The generator avoids what OTP 25 gets wrong: `ignore` when a child of a `simple_one_for_one` is
//! restarted, auto-shutdown of one, and `which_child`.

use fastrand::Rng;

use crate::scenario::{
    Auto, End, Grace, Outcome, Restart, Scenario, SlowStart, Spec, Step, Strategy, Sup, is_dynamic,
    is_worker, join, split,
};

const DEPTH: u32 = 3;
const CHILDREN: usize = 6;
const STEPS: usize = 40;

pub(crate) fn scenario(seed: u64) -> Scenario {
    let mut generator = Generator::new(seed);
    let mut tree = generator.sup("s", 1);
    let mut starts = generator.first_starts();
    let slow_start = generator.slow_start(&mut tree, &mut starts);
    generator.steps();
    let Generator { mut steps, .. } = generator;
    steps.truncate(STEPS);
    Scenario { tree, starts, slow_start, steps }
}

struct Generator {
    rng: Rng,
    steps: Vec<Step>,
    workers: Vec<String>,
    /// All declared supervisors and children, as first declared.
    sups: Vec<(String, Sup)>,
    dynamic_children: Vec<String>,
    /// Names for added children.
    next_name: u32,
}

/// Returns an entry of `table`, weighted by its number.
fn weighted<T: Copy>(rng: &mut Rng, table: &[(u32, T)]) -> T {
    let mut left = rng.u32(..table.iter().map(|(weight, _)| weight).sum::<u32>());
    for &(weight, entry) in table {
        if left < weight {
            return entry;
        }
        left -= weight;
    }
    unreachable!("the weights add up")
}

impl Generator {
    fn new(seed: u64) -> Self {
        let rng = Rng::with_seed(seed);
        let (steps, workers, sups, dynamic_children) = Default::default();
        Self { rng, steps, workers, sups, dynamic_children, next_name: CHILDREN as u32 + 1 }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    // --- Trees -----------------------------------------------------------------------------------

    fn sup(&mut self, path: &str, depth: u32) -> Sup {
        if let Some((_, sup)) = self.sups.iter().find(|(known, _)| known == path) {
            return sup.clone();
        }
        let dynamic = is_dynamic(path);
        let strategy = if dynamic {
            Strategy::SimpleOneForOne
        } else {
            use Strategy::{OneForAll, OneForOne, RestForOne};
            weighted(&mut self.rng, &[(1, OneForOne), (1, OneForAll), (1, RestForOne)])
        };
        let ends = u32::from(!dynamic);
        let auto = [(4, Auto::Never), (2 * ends, Auto::Any), (3 * ends, Auto::All)];
        let auto_shutdown = weighted(&mut self.rng, &auto);
        // Soon after the root has given up, nothing is left to test.
        let weak = u32::from(depth > 1);
        let intensities = [(1, 0), (1 + weak, 1), (1 + weak, 2), (3, 3), (2, 4), (5 - weak, 5)];
        let intensity = weighted(&mut self.rng, &intensities);
        let count = match depth {
            _ if dynamic => 1,
            1 => self.rng.usize(1..=CHILDREN),
            _ => self.rng.usize(0..=CHILDREN - depth as usize),
        };
        let mut sup = Sup { strategy, intensity, auto_shutdown, children: Vec::new() };
        for number in 1..=count {
            let deep = u32::from(depth < DEPTH);
            let kind = weighted(&mut self.rng, &[(6, 'w'), (2 * deep, 's'), (deep, 'd')]);
            // A template isn't a child: its name is never used.
            let id = format!("{kind}{number}");
            let spec = self.spec(path, id, &sup, depth);
            sup.children.push(spec);
        }
        self.sups.push((path.to_owned(), sup.clone()));
        sup
    }

    fn spec(&mut self, parent: &str, id: String, above: &Sup, depth: u32) -> Spec {
        let path = join(parent, &id);
        let worker = is_worker(&path);
        let restarts = [(5, Restart::Permanent), (3, Restart::Transient), (2, Restart::Temporary)];
        let restart = weighted(&mut self.rng, &restarts);
        let eligible = above.auto_shutdown != Auto::Never && restart != Restart::Permanent;
        let significant = eligible && self.chance(60);
        let brutal = if worker { 2 } else { 1 };
        let graces = [
            (14, Grace::Default),
            (2, Grace::Timeout),
            (2, Grace::Infinity),
            (brutal, Grace::Brutal),
        ];
        let shutdown = weighted(&mut self.rng, &graces);
        let template = is_dynamic(parent);
        if worker && !template {
            self.workers.push(path.clone());
        }
        let known = (self.sups.len(), self.workers.len());
        let sup = (!worker).then(|| self.sup(&path, depth + 1));
        if template {
            self.sups.truncate(known.0);
            self.workers.truncate(known.1);
        }
        Spec { id, restart, significant, shutdown, sup }
    }

    /// Chooses the results of first starts. A failure would end most scenarios before they begin.
    fn first_starts(&mut self) -> Vec<(String, Vec<Outcome>)> {
        let mut starts = Vec::new();
        for path in self.workers.clone() {
            if self.chance(10) {
                use Outcome::{Error, Ignore, Ok, Panic};
                let first =
                    weighted(&mut self.rng, &[(6, Ok), (3, Ignore), (1, Error), (1, Panic)]);
                let mut outcomes = vec![first];
                outcomes.extend(self.outcomes(&path));
                starts.push((path, outcomes));
            }
        }
        starts
    }

    /// Makes the last child of the root start so slowly that a sibling ends meanwhile, whose restart
    /// may fail.
    ///
    /// verger restarts the sibling while the last child starts, and OTP afterwards. So that both come to
    /// the same, no child is started behind the slow one, and the root doesn't give up.
    fn slow_start(
        &mut self,
        tree: &mut Sup,
        starts: &mut Vec<(String, Vec<Outcome>)>,
    ) -> Option<SlowStart> {
        let (last, before) = tree.children.split_last_mut()?;
        let mut siblings: Vec<_> = before.iter_mut().filter(|spec| spec.sup.is_none()).collect();
        if last.sup.is_some() || siblings.is_empty() || !self.chance(10) {
            return None;
        }
        let sibling = siblings.swap_remove(self.rng.usize(..siblings.len()));
        (sibling.restart, sibling.significant) = (Restart::Permanent, false);
        let (worker, sibling) = (join("s", &last.id), join("s", &sibling.id));
        let mut outcomes = self.outcomes(&sibling);
        outcomes.truncate(3);
        outcomes.insert(0, Outcome::Ok);
        *starts = vec![(sibling.clone(), outcomes)];
        (tree.intensity, tree.auto_shutdown) = (5, Auto::Never);
        tree.children.iter_mut().for_each(|spec| spec.significant = false);
        use End::{Error, Normal, Panic, Shutdown};
        let end = weighted(&mut self.rng, &[(1, Normal), (1, Shutdown), (3, Error), (2, Panic)]);
        Some(SlowStart { worker, sibling, end })
    }

    fn outcomes(&mut self, path: &str) -> Vec<Outcome> {
        let ignores = u32::from(!is_dynamic(split(path).0));
        let table = [
            (2, Outcome::Ok),
            (4, Outcome::Error),
            (2, Outcome::Panic),
            (2 * ignores, Outcome::Ignore),
        ];
        let count = weighted(&mut self.rng, &[(5, 1), (3, 2), (1, 3), (1, 5)]);
        (0..count).map(|_| weighted(&mut self.rng, &table)).collect()
    }

    // --- Steps -----------------------------------------------------------------------------------

    fn steps(&mut self) {
        let count = self.rng.usize(1..=STEPS);
        while self.steps.len() < count {
            let step: fn(&mut Self) = weighted(
                &mut self.rng,
                &[
                    (26, Self::end),
                    (6, Self::burst),
                    (10, Self::failing_start),
                    (4, Self::kill),
                    (2, Self::stop),
                    (8, Self::start_child),
                    (9, Self::start_dynamic),
                    (14, Self::manual),
                    (5, Self::look),
                    (8, Self::start),
                ],
            );
            step(self);
        }
    }

    fn worker(&mut self) -> Option<String> {
        self.rng.choice(&self.workers).cloned()
    }

    fn any_sup(&mut self) -> (String, Sup) {
        self.rng.choice(&self.sups).cloned().expect("there is the root")
    }

    fn any_child(&mut self) -> Option<String> {
        let sups = self.sups.iter().map(|(path, _)| path).filter(|path| *path != "s");
        let paths: Vec<_> = sups.chain(&self.workers).chain(&self.dynamic_children).collect();
        self.rng.choice(paths).cloned()
    }

    fn ending(&mut self) -> End {
        use End::{Error, Normal, Panic, Shutdown, StopSelf};
        let table = [(25, Normal), (10, Shutdown), (10, StopSelf), (35, Error), (20, Panic)];
        weighted(&mut self.rng, &table)
    }

    fn end(&mut self) {
        let Some(path) = self.worker() else { return };
        let end = self.ending();
        self.steps.push(Step::Ends(vec![(path, end)]));
    }

    /// Several children of one supervisor exit before it processes the first exit.
    fn burst(&mut self) {
        let Some(one) = self.worker() else { return };
        let siblings = self.workers.iter().filter(|path| split(path).0 == split(&one).0);
        let mut siblings: Vec<_> = siblings.cloned().collect();
        self.rng.shuffle(&mut siblings);
        siblings.truncate(self.rng.usize(2..=3));
        let parent = self.sups.iter().find(|(path, _)| *path == split(&one).0);
        let strategy = parent.map(|(_, sup)| sup.strategy);
        // In the other order, verger is known to differ.
        if strategy == Some(Strategy::RestForOne) && self.chance(85) {
            siblings.sort();
        }
        // A child that stops itself hasn't ended before its request is processed.
        let ends = siblings.into_iter().map(|path| match self.ending() {
            End::StopSelf => (path, End::Normal),
            end => (path, end),
        });
        let ends = ends.collect();
        self.steps.push(Step::Ends(ends));
    }

    fn failing_start(&mut self) {
        let Some(path) = self.worker() else { return };
        let outcomes = self.outcomes(&path);
        self.steps.push(Step::NextStarts(path.clone(), outcomes));
        // A sibling's exit may be what restarts the child.
        let culprit = if self.chance(70) { Some(path) } else { self.worker() };
        let end = self.ending();
        self.steps.extend(culprit.map(|path| Step::Ends(vec![(path, end)])));
    }

    fn kill(&mut self) {
        let child = if self.chance(50) { self.worker() } else { self.any_child() };
        let path = child.filter(|_| !self.chance(3)).unwrap_or_else(|| "s".to_owned());
        self.steps.push(Step::Kill(path));
    }

    fn stop(&mut self) {
        let (path, _) = self.any_sup();
        self.steps.push(Step::Stop(path));
    }

    fn start(&mut self) {
        self.steps.push(Step::Start);
    }

    fn start_child(&mut self) {
        let (parent, above) = self.any_sup();
        if is_dynamic(&parent) {
            return self.start_dynamic();
        }
        let depth = parent.split('/').count() as u32;
        let old = self.any_child().filter(|path| split(path).0 == parent);
        let id = match old {
            Some(path) => split(&path).1.to_owned(),
            None => {
                let deep = u32::from(depth < DEPTH);
                let kind = weighted(&mut self.rng, &[(6, 'w'), (deep, 's'), (deep, 'd')]);
                format!("{kind}{}", self.name())
            }
        };
        let mut spec = self.spec(&parent, id, &above, depth);
        if self.chance(5) {
            // Refused, unless it is legal.
            spec.significant = true;
        }
        self.workers.sort();
        self.workers.dedup();
        self.steps.push(Step::StartChild(parent, spec));
    }

    fn name(&mut self) -> u32 {
        self.next_name += 1;
        self.next_name - 1
    }

    fn start_dynamic(&mut self) {
        let dynamic = self.sups.iter().filter(|(path, _)| is_dynamic(path));
        let dynamic: Vec<_> = dynamic.cloned().collect();
        let Some((parent, sup)) = self.rng.choice(dynamic) else { return };
        let template = sup.children[0].clone();
        let path = join(&parent, &format!("{}{}", &template.id[..1], self.name()));
        match &template.sup {
            None => {
                if self.chance(15) {
                    let first = weighted(
                        &mut self.rng,
                        &[
                            (1, Outcome::Ok),
                            (1, Outcome::Error),
                            (1, Outcome::Panic),
                            (2, Outcome::Ignore),
                        ],
                    );
                    let mut outcomes = vec![first];
                    outcomes.extend(self.outcomes(&path));
                    self.steps.push(Step::NextStarts(path.clone(), outcomes));
                }
                self.workers.push(path.clone());
            }
            Some(sup) => self.declare(&path, sup),
        }
        self.dynamic_children.push(path.clone());
        self.steps.push(Step::StartDynamic(path));
    }

    /// Declares a supervisor from a template, and all its descendants.
    fn declare(&mut self, path: &str, sup: &Sup) {
        self.sups.push((path.to_owned(), sup.clone()));
        if is_dynamic(path) {
            return;
        }
        for spec in &sup.children {
            let path = join(path, &spec.id);
            match &spec.sup {
                Some(sup) => self.declare(&path, sup),
                None => self.workers.push(path),
            }
        }
    }

    fn manual(&mut self) {
        let Some(path) = self.any_child() else { return };
        let dynamic = is_dynamic(split(&path).0);
        let calls: [fn(String) -> Step; 3] =
            [Step::TerminateChild, Step::RestartChild, Step::DeleteChild];
        for call in calls {
            let step = call(path.clone());
            let first = matches!(step, Step::TerminateChild(_));
            // For a dynamic child that is gone, verger's answer is known to differ.
            let percent = match (first, dynamic) {
                (true, false) => 100,
                (true, true) => 25,
                (false, false) => 60,
                (false, true) => 3,
            };
            if self.chance(percent) {
                self.steps.push(step);
            }
            if self.chance(30) {
                self.start_dynamic_or_end();
            }
        }
    }

    fn start_dynamic_or_end(&mut self) {
        if self.chance(20) { self.start_dynamic() } else { self.end() }
    }

    fn look(&mut self) {
        let step = match (self.rng.u32(..3), self.any_child()) {
            (0, Some(path)) if !is_dynamic(split(&path).0) || self.chance(25) => {
                Step::ChildSpec(path)
            }
            (1, _) => Step::WhichChildren(self.any_sup().0),
            _ => Step::CountChildren(self.any_sup().0),
        };
        self.steps.push(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_scenario() {
        for seed in 0..50 {
            assert_eq!(scenario(seed), scenario(seed));
        }
        assert_ne!(scenario(1), scenario(2));
    }

    #[test]
    fn a_scenario_survives_writing_and_reading() {
        for seed in 0..200 {
            let text = serde_json::to_string(&scenario(seed)).unwrap();
            assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario(seed));
        }
    }

    #[test]
    fn scenarios_stay_within_their_bounds() {
        fn check(sup: &Sup, depth: u32) {
            assert!(depth <= DEPTH && sup.children.len() <= CHILDREN && sup.intensity <= 5);
            for child in sup.children.iter().filter_map(|spec| spec.sup.as_ref()) {
                check(child, depth + 1);
            }
        }
        for seed in 0..500 {
            let scenario = scenario(seed);
            check(&scenario.tree, 1);
            assert!((1..=STEPS).contains(&scenario.steps.len()), "seed {seed}");
        }
    }
}
