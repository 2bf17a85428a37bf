//! Traces, what of their order means something, and where two of them part.
//!
//! A trace has the lines of each step: of the start, of the scenario's own steps, of the listing at
//! the end, and of the stop. The words:
//!
//! | line | what happened | in order |
//! | --- | --- | --- |
//! | `start P` | a worker has started | yes |
//! | `try P` | a worker's start came to something else | yes |
//! | `stop P` | a worker has heard that it is to stop | yes |
//! | `end P` | a worker ends by itself | yes |
//! | `kill P` | a worker was killed, or its supervisor was | no |
//! | `init P` | a supervisor starts | no |
//! | `down P why` | a supervisor has ended: `clean`, `killed`, `failed` (to start) | no |
//! | `gave_up P` | a supervisor has had more restarts than its intensity | no |
//! | `reply …`, `list P: …`, `count P: …` | what a caller was told | at the end |
//!
//! Children of a dynamic supervisor stop all at once. What is below a supervisor that is killed
//! hears of it, each by itself, while the rest of the tree goes on.

use serde::{Deserialize, Serialize};

use crate::deviations::{self, Deviation};
use crate::scenario::{Scenario, is_dynamic};

/// What happened, a list of lines for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Vec<String>>,
}

/// What came of a comparison.
#[derive(Debug)]
pub(crate) enum Verdict {
    Same,
    /// They part, but this is known, or it is in these steps alone.
    Known(Vec<&'static Deviation>),
    Differs(Difference),
}

/// The first step in which two traces part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) step: usize,
    pub(crate) otp: Vec<String>,
    pub(crate) verger: Vec<String>,
}

/// The step before the scenario's own: the start.
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

/// The lines of a step, those without an order sorted.
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

/// Sorts what is stopped below one dynamic supervisor by the child it belongs to. `from` is where
/// the part of the lines begins that is looked at.
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
    /// What of the scenario the step is.
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
    fn what_has_no_order_comes_after_what_has_one() {
        let step = lines(&["kill s/w3", "init s/s1", "stop s/w2", "down s/s1 clean", "reply ok"]);
        let sorted = lines(&["stop s/w2", "down s/s1 clean", "init s/s1", "kill s/w3", "reply ok"]);
        assert_eq!(canonical(&step), sorted);
    }

    #[test]
    fn children_of_a_dynamic_supervisor_stop_in_any_order_but_each_in_its_own() {
        let one = lines(&["stop s/w1", "stop s/d1/s2/w2", "stop s/d1/s1/w1", "stop s/d1/s2/w1"]);
        let other = lines(&["stop s/w1", "stop s/d1/s1/w1", "stop s/d1/s2/w2", "stop s/d1/s2/w1"]);
        assert_eq!(canonical(&one), other);
        assert_eq!(canonical(&other), other);
    }

    #[test]
    fn what_is_below_a_killed_supervisor_is_gone_in_any_order_and_way() {
        let one = lines(&["down s/s1 killed", "stop s/s1/w1", "kill s/s1/w2", "start s/w1"]);
        let other = lines(&["start s/w1", "kill s/s1/w2", "down s/s1 killed", "kill s/s1/w1"]);
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(canonical(&one)[0], "start s/w1");
    }
}
