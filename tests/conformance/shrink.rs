//! Shrinks a failing scenario to a small one that also fails.
//!
//! This module knows how to simplify a scenario, and not what counts as a failure. The caller
//! decides that for many candidates at once, because each decision needs an Erlang.

use crate::scenario::{Auto, End, Grace, Restart, Scenario, Spec, Step, Strategy, Sup};

/// The number of candidates tried at once, the simplest first.
const AT_ONCE: usize = 400;

/// Returns the simplest scenario that can be reached by steps that each fail. `first_failing`
/// returns the index of the first failing candidate.
pub(crate) fn shrink(
    mut scenario: Scenario,
    first_failing: impl Fn(&[Scenario]) -> Option<usize>,
) -> Scenario {
    loop {
        let mut simpler = simpler(&scenario);
        simpler.truncate(AT_ONCE);
        match first_failing(&simpler) {
            Some(index) => scenario = simpler.swap_remove(index),
            None => return scenario,
        }
    }
}

/// Returns simpler scenarios, the simplest first.
fn simpler(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = Vec::new();
    let count = scenario.steps.len();
    let mut chunk = count;
    while chunk > 0 {
        for from in (0..count).step_by(chunk) {
            let mut fewer = scenario.clone();
            fewer.steps.drain(from..(from + chunk).min(count));
            simpler.push(fewer);
        }
        chunk /= 2;
    }
    if scenario.slow_start.is_some() {
        simpler.push(Scenario { slow_start: None, ..scenario.clone() });
    }
    for index in 0..scenario.starts.len() {
        let mut fewer = scenario.clone();
        fewer.starts.remove(index);
        simpler.push(fewer);
    }
    let trees = sups(&scenario.tree);
    simpler.extend(trees.into_iter().map(|tree| Scenario { tree, ..scenario.clone() }));
    for (index, step) in scenario.steps.iter().enumerate() {
        for step in steps(step) {
            let mut other = scenario.clone();
            other.steps[index] = step;
            simpler.push(other);
        }
    }
    for (index, (_, outcomes)) in scenario.starts.iter().enumerate() {
        for at in 0..outcomes.len() {
            let mut fewer = scenario.clone();
            fewer.starts[index].1.remove(at);
            simpler.push(fewer);
        }
    }
    simpler
}

fn sups(sup: &Sup) -> Vec<Sup> {
    let mut simpler = Vec::new();
    let mut other = |change: &dyn Fn(&mut Sup)| {
        let mut other = sup.clone();
        change(&mut other);
        if other != *sup {
            simpler.push(other);
        }
    };
    if sup.strategy != Strategy::SimpleOneForOne {
        for index in 0..sup.children.len() {
            other(&|sup| drop(sup.children.remove(index)));
        }
        other(&|sup| sup.strategy = Strategy::OneForOne);
    }
    other(&|sup| {
        sup.auto_shutdown = Auto::Never;
        sup.children.iter_mut().for_each(|child| child.significant = false);
    });
    for fewer in [0, sup.intensity / 2, sup.intensity.saturating_sub(1)] {
        other(&|sup| sup.intensity = fewer);
    }
    for (index, child) in sup.children.iter().enumerate() {
        for child in specs(child) {
            other(&|sup| sup.children[index] = child.clone());
        }
    }
    simpler
}

fn specs(spec: &Spec) -> Vec<Spec> {
    let mut simpler = vec![
        Spec { restart: Restart::Permanent, significant: false, ..spec.clone() },
        Spec { significant: false, ..spec.clone() },
        Spec { shutdown: Grace::Default, ..spec.clone() },
    ];
    simpler.retain(|it| it != spec);
    let below = spec.sup.iter().flat_map(sups);
    simpler.extend(below.map(|sup| Spec { sup: Some(sup), ..spec.clone() }));
    simpler
}

fn steps(step: &Step) -> Vec<Step> {
    match step {
        Step::Ends(ends) => {
            let without = |index| {
                let mut fewer = ends.clone();
                fewer.remove(index);
                fewer
            };
            let fewer = (0..ends.len()).filter(|_| ends.len() > 1).map(without);
            let plainer = |index: usize| {
                let mut plainer: Vec<_> = ends.clone();
                plainer[index].1 = match plainer[index].1 {
                    End::Panic => End::Error,
                    End::Shutdown | End::StopSelf => End::Normal,
                    end => end,
                };
                plainer
            };
            let plainer = (0..ends.len()).map(plainer).filter(|it| it != ends);
            fewer.chain(plainer).map(Step::Ends).collect()
        }
        Step::NextStarts(path, outcomes) => {
            let without = |index| {
                let mut fewer = outcomes.clone();
                fewer.remove(index);
                Step::NextStarts(path.clone(), fewer)
            };
            (0..outcomes.len()).filter(|_| outcomes.len() > 1).map(without).collect()
        }
        Step::StartChild(path, spec) => {
            specs(spec).into_iter().map(|spec| Step::StartChild(path.clone(), spec)).collect()
        }
        _ => Vec::new(),
    }
}
