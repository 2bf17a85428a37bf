//! The cases of OTP's own suite that a scenario can express, with the traces of a real OTP.
//!
//! The file has a line per case: its name in `supervisor_SUITE`, the number of the behaviour it
//! shows, the scenario, and the trace. A behaviour read in the source or observed has no name.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::compare::{Trace, Verdict, canonical, compare};
use crate::otp::Otp;
use crate::scenario::Scenario;
use crate::verger;

#[derive(Clone, Serialize, Deserialize)]
struct Case {
    case: String,
    row: u32,
    scenario: Scenario,
    trace: Trace,
}

impl Case {
    fn name(&self) -> String {
        format!(
            "row {}, {}: {}",
            self.row,
            self.case,
            serde_json::to_string(&self.scenario).unwrap()
        )
    }
}

fn cases() -> Vec<Case> {
    let lines = include_str!("cases.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn otps_own_cases_have_the_recorded_traces() {
    for case in cases() {
        match compare(&case.scenario, &case.trace, &verger::run(&case.scenario)) {
            Verdict::Same => {}
            Verdict::Known(deviations) => panic!("{}: {deviations:?}", case.name()),
            Verdict::Differs(it) => panic!("{}\n{}", case.name(), it.text(&case.scenario)),
        }
    }
}

/// Asserts that the installed OTP reproduces the recorded traces.
pub(crate) fn check(otp: &Otp) {
    let cases = cases();
    let scenarios: Vec<_> = cases.iter().map(|case| case.scenario.clone()).collect();
    for (case, trace) in cases.iter().zip(otp.run(&scenarios)) {
        let steps = |trace: &Trace| trace.steps.iter().map(|it| canonical(it)).collect::<Vec<_>>();
        assert_eq!(steps(&case.trace), steps(&trace), "{}", case.name());
    }
}

pub(crate) fn record(otp: &Otp, path: &Path) {
    let mut cases = cases();
    let scenarios: Vec<_> = cases.iter().map(|case| case.scenario.clone()).collect();
    let mut text = String::new();
    for (case, trace) in cases.iter_mut().zip(otp.run(&scenarios)) {
        case.trace = trace;
        text += &serde_json::to_string(case).unwrap();
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
}
