//! Traces, the parts of them that are ordered, and the first difference of two.
//!
//! A trace has the lines of each step: of the start, of the scenario's own steps, of the listing at
//! the end, and of the stop. The words:
//!
//! | line | what happened | in order |
//! | --- | --- | --- |
//! | `start P` | a worker has started | yes |
//! | `try P` | a worker's start had another result | yes |
//! | `stop P` | a worker was cancelled | yes |
//! | `end P` | a worker ends by itself | yes |
//! | `kill P` | a worker was killed, or its supervisor was | no |
//! | `init P` | a supervisor starts | no |
//! | `down P why` | a supervisor has ended: `clean`, `killed`, `failed` (to start) | no |
//! | `gave_up P` | a supervisor exceeded its restart intensity | no |
//! | `reply …`, `list P: …`, `count P: …` | a call's answer | at the end |
//!
//! Children of a dynamic supervisor stop in parallel. Descendants of a killed supervisor exit
//! independently while the rest of the tree continues.

use serde::{Deserialize, Serialize};

use crate::deviations::{self, Deviation};
use crate::scenario::{Scenario, is_dynamic};

/// The lines of each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Vec<String>>,
}

/// The result of a comparison.
#[derive(Debug)]
pub(crate) enum Verdict {
    Same,
    /// The traces differ, and the difference is known, or is in these steps alone.
    Known(Vec<&'static Deviation>),
    Differs(Difference),
}

/// The first step in which two traces differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) step: usize,
    pub(crate) otp: Vec<String>,
    pub(crate) verger: Vec<String>,
}

/// The step before the scenario's own steps: the start.
pub(crate) const STEPS_BEFORE: usize = 1;

pub(crate) fn compare(scenario: &Scenario, otp: &Trace, verger: &Trace) -> Verdict {
    let mut known = Vec::new();
    let steps = otp.steps.len().max(verger.steps.len());
    let lines = |trace: &Trace, step: usize| match trace.steps.get(step) {
        Some(lines) => canonical(lines),
        None => vec!["no such step".to_owned()],
    };
    for step in 0..steps {
        let difference = Difference { step, otp: lines(otp, step), verger: lines(verger, step) };
        if difference.otp == difference.verger {
            continue;
        }
        match deviations::explains(scenario, &difference) {
            None => return Verdict::Differs(difference),
            Some(deviation) => {
                known.push(deviation);
                if !deviation.goes_on {
                    break;
                }
            }
        }
    }
    if known.is_empty() { Verdict::Same } else { Verdict::Known(known) }
}

/// Returns the lines of a step, with the unordered ones sorted.
pub(crate) fn canonical(lines: &[String]) -> Vec<String> {
    let killed: Vec<&str> = lines.iter().filter_map(|line| killed(line)).collect();
    let is_orphan = |path: &str| {
        killed.iter().any(|above| path.strip_prefix(above).is_some_and(|it| it.starts_with('/')))
    };
    let (mut ordered, mut unordered, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let (word, path) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "stop" | "kill" if is_orphan(path) => unordered.push(format!("gone {path}")),
            // It may have stopped in order, or with the rest.
            "down" if is_orphan(path.split(' ').next().unwrap_or_default()) => {
                unordered.push(format!("gone {}", path.split(' ').next().unwrap_or_default()));
            }
            "start" | "try" | "stop" | "end" => ordered.push(line.clone()),
            "kill" | "init" | "down" | "gave_up" => unordered.push(line.clone()),
            _ => replies.push(line.clone()),
        }
    }
    for stops in ordered.chunk_by_mut(|a, b| a.starts_with("stop") && b.starts_with("stop")) {
        sort_siblings(stops, 0);
    }
    unordered.sort();
    [ordered, unordered, replies].concat()
}

fn killed(line: &str) -> Option<&str> {
    line.strip_prefix("down ")?.strip_suffix(" killed")
}

/// Sorts the lines of a stop below one dynamic supervisor by child. `from` is where those lines
/// begin.
fn sort_siblings(stops: &mut [String], from: usize) {
    let above = |line: &str| {
        let mut slashes = line.match_indices('/').map(|(at, _)| at).filter(|&at| at > from);
        slashes.find(|&at| is_dynamic(&line[..at])).map(|at| line[..at].to_owned())
    };
    for stops in stops.chunk_by_mut(|a, b| above(a) == above(b)) {
        let Some(above) = above(&stops[0]) else { continue };
        let from = above.len();
        let child = |line: &String| line[from + 1..].split('/').next().map(str::to_owned);
        stops.sort_by_cached_key(child);
        for stops in stops.chunk_by_mut(|a, b| child(a) == child(b)) {
            sort_siblings(stops, from);
        }
    }
}

impl Difference {
    /// Describes the step's part of the scenario.
    pub(crate) fn name(&self, scenario: &Scenario) -> String {
        match self.step.checked_sub(STEPS_BEFORE) {
            None => "the start".to_owned(),
            Some(step) => match scenario.steps.get(step) {
                Some(step) => format!("step {}, {step:?}", self.step),
                None if step == scenario.steps.len() => "the listing at the end".to_owned(),
                None => "the stop".to_owned(),
            },
        }
    }

    pub(crate) fn text(&self, scenario: &Scenario) -> String {
        let column = |lines: &[String]| {
            let lines = lines.iter().map(|line| format!("\n    {line}"));
            lines.collect::<String>()
        };
        let name = self.name(scenario);
        let (otp, verger) = (column(&self.otp), column(&self.verger));
        format!("in {name}\n  OTP:{otp}\n  verger:{verger}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn workers_of_one_supervisor_keep_their_order() {
        let stops = lines(&["stop s/w2", "start s/w1", "reply ok"]);
        assert_eq!(canonical(&stops), stops);
    }

    #[test]
    fn unordered_lines_come_after_ordered_lines() {
        let step = lines(&["kill s/w3", "init s/s1", "stop s/w2", "down s/s1 clean", "reply ok"]);
        let sorted = lines(&["stop s/w2", "down s/s1 clean", "init s/s1", "kill s/w3", "reply ok"]);
        assert_eq!(canonical(&step), sorted);
    }

    #[test]
    fn dynamic_children_stop_in_any_order_and_each_subtree_in_its_own() {
        let one = lines(&["stop s/w1", "stop s/d1/s2/w2", "stop s/d1/s1/w1", "stop s/d1/s2/w1"]);
        let other = lines(&["stop s/w1", "stop s/d1/s1/w1", "stop s/d1/s2/w2", "stop s/d1/s2/w1"]);
        assert_eq!(canonical(&one), other);
        assert_eq!(canonical(&other), other);
    }

    #[test]
    fn descendants_of_a_killed_supervisor_exit_in_any_order_and_way() {
        let one = lines(&["down s/s1 killed", "stop s/s1/w1", "kill s/s1/w2", "start s/w1"]);
        let other = lines(&["start s/w1", "kill s/s1/w2", "down s/s1 killed", "kill s/s1/w1"]);
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(canonical(&one)[0], "start s/w1");
    }
}
