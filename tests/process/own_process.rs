//! Cases that install something for a whole process, so that each is a process of its own.
//!
//! The test binary runs itself, with an environment variable that selects the case.

use std::process::Command;

/// Runs a case of this test, and returns how often a line is in its stderr.
pub(crate) fn count_lines(test: &str, variable: &str, case: &str, line: &str) -> usize {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, case)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{case}: {stderr}");
    stderr.lines().filter(|it| *it == line).count()
}
