//! The cases of OTP's own suite that a scenario can express, with the traces of a real OTP, and the
//! tests of the subtlest remaining rows.
//!
//! The file has a line per case: its name in `supervisor_SUITE`, the number of the behaviour it
//! shows, the scenario, and the trace. A behaviour read in the source or observed has no name.

use std::fs;
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

/// The subtlest rows of the suite and of further observations.
const SUBTLE: [u32; 19] =
    [10, 35, 47, 50, 53, 55, 57, 58, 71, 75, 76, 77, 78, 84, 108, 109, 110, 111, 112];

/// The rows that no scenario can express: the case, the reason, and the file of their tests. A
/// test's name begins with the row.
const ELSEWHERE: &[(u32, &str, &str, &str)] = &[
    (35, "count_restarting_children", "looks while a start hangs", "otp/counts.rs"),
    (57, "simple_one_for_one_restart_ignore", "OTP 25 gets it wrong", "otp/restart.rs"),
    (58, "multiple_restarts", "time has to pass", "otp/restart.rs"),
    (71, "sup_stop_race", "others end during a stop", "otp/stop.rs"),
    (75, "child_unlink", "there are no links", "otp/stop.rs"),
    (76, "hanging_restart_loop", "looks while a start hangs", "otp/loops.rs"),
    (77, "hanging_restart_loop", "looks while a start hangs", "otp/loops.rs"),
    (78, "hanging_restart_loop_rest_for_one", "looks while a start hangs", "otp/loops.rs"),
    (111, "", "looks while a start hangs", "otp/edges.rs"),
];

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

#[test]
fn each_of_the_subtlest_rows_has_a_case_or_a_test() {
    let cases = cases();
    for row in SUBTLE {
        let has_case = cases.iter().any(|case| case.row == row);
        let tests = ELSEWHERE.iter().find(|(elsewhere, ..)| *elsewhere == row);
        assert!(has_case != tests.is_some(), "row {row}");
        if let Some((_, _, _, file)) = tests {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
            let source = fs::read_to_string(path).unwrap();
            assert!(source.contains(&format!("fn otp_{row}_")), "row {row} in {file}");
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
    fs::write(path, text).unwrap();
}
