//! The subtlest rows of OTP's own suite have a recorded case in `tests/conformance` or a numbered test.

use crate::files::read;

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

#[test]
fn each_of_the_subtlest_rows_has_a_case_or_a_test() {
    let cases = read("tests/conformance/cases.jsonl");
    let cases = cases.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let cases: Vec<_> = cases.map(|case| case["row"].as_u64()).collect();
    for row in SUBTLE {
        let has_case = cases.contains(&Some(row.into()));
        let tests = ELSEWHERE.iter().find(|(elsewhere, ..)| *elsewhere == row);
        assert!(has_case != tests.is_some(), "row {row}");
        if let Some((_, _, _, file)) = tests {
            let source = read(&format!("tests/{file}"));
            assert!(source.contains(&format!("fn otp_{row}_")), "row {row} in {file}");
        }
    }
}
