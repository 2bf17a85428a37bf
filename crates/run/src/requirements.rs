//! What processes require: the checks that need all of them.

use std::collections::BTreeMap;

use crate::file::one_of;
use crate::mistake::{Mistake, Places, Problem};
use crate::process::Process;

/// Returns the mistakes in the requirements. `names` also has the processes that have other mistakes.
pub(crate) fn check(
    places: &Places,
    processes: &BTreeMap<String, Process>,
    names: &[&str],
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut checked = Vec::new();
    for (name, process) in processes {
        let path = format!("process.{name}.requires");
        for required in &process.requires {
            if !names.contains(&&**required) {
                let siblings: Vec<_> = names.iter().copied().filter(|it| it != name).collect();
                let instead = match &siblings[..] {
                    [] => "remove the requirement".to_owned(),
                    siblings => format!("write {}", one_of(siblings)),
                };
                let problem = Problem::UnknownRequirement { name: required.clone(), instead };
                mistakes.push(places.mistake(&path, problem));
            }
        }
        if let Some(cycle) = cycle(processes, &mut vec![name], &mut checked) {
            let path = format!("process.{}.requires", cycle[0]);
            mistakes.push(places.mistake(&path, Problem::Cycle(cycle.join(" → "))));
        }
    }
    mistakes
}

/// Returns the first cycle that the requirements of the last process of `chain` lead to. Processes that were `checked`
/// are in no further cycle, so each cycle is found once.
fn cycle<'a>(
    processes: &'a BTreeMap<String, Process>,
    chain: &mut Vec<&'a str>,
    checked: &mut Vec<&'a str>,
) -> Option<Vec<&'a str>> {
    let last = *chain.last()?;
    if checked.contains(&last) {
        return None;
    }
    for required in processes.get(last).into_iter().flat_map(|process| &process.requires) {
        if let Some(start) = chain.iter().position(|it| it == required) {
            checked.extend(&*chain);
            return Some([&chain[start..], &[required]].concat());
        }
        chain.push(required);
        let found = cycle(processes, chain, checked);
        chain.pop();
        if found.is_some() {
            return found;
        }
    }
    checked.push(last);
    None
}
