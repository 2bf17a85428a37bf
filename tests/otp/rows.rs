//! Every behaviour of OTP's and Elixir's suites that concerns us has a test, or a reason for none.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::table;

/// The rows that a supervisor without links, upgrades, partitions, tasks and a registry can keep.
const REQUIRED: &[RangeInclusive<u32>] = &[1..=5, 7..=18, 20..=59, 61..=86, 92..=92, 108..=122];

#[test]
#[expect(clippy::print_stdout, reason = "a summary for whoever asks for it with `--nocapture`")]
fn otp_rows() {
    let required: BTreeSet<u32> = REQUIRED.iter().cloned().flatten().collect();
    let tested = tested();
    let entries = || table::UNTESTED.iter().chain(table::PARTLY_UNTESTED);
    for (row, kind, reason) in entries() {
        assert!((1..=124).contains(row), "there is no row {row}");
        assert!(["not applicable", "deviation"].contains(kind), "row {row}: what is `{kind}`?");
        assert!(reason.split_whitespace().count() > 2, "row {row} is listed without a reason");
    }
    let listed: BTreeSet<u32> = entries().map(|&(row, ..)| row).collect();
    assert_eq!(listed.len(), entries().count(), "a row is listed twice");
    for (row, ..) in table::PARTLY_UNTESTED {
        assert!(tested.contains(row), "row {row} has no test at all");
    }

    let known = &tested | &listed;
    let missing: Vec<_> = required.difference(&known).collect();
    assert!(missing.is_empty(), "neither tested nor listed: {missing:?}");
    let tested = required.intersection(&tested).count();
    let listed = required.intersection(&listed).count();
    println!("otp rows: {tested} tested, {listed} listed");
}

/// The rows that have a test: a function `otp_NN_…` beside this file or among the tests of
/// the machine.
fn tested() -> BTreeSet<u32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut rows = BTreeSet::new();
    let beside = root.join("tests/otp").read_dir().unwrap();
    let paths = beside.map(|entry| entry.unwrap().path());
    for path in paths.chain([root.join("src/core/tests/otp_scale.rs")]) {
        if path.extension().is_some_and(|extension| extension == "rs") {
            rows.extend(tests_in(&std::fs::read_to_string(&path).unwrap()));
        }
    }
    rows
}

/// The rows of the tests in one file. A function without a test attribute is no test.
fn tests_in(source: &str) -> BTreeSet<u32> {
    let mut rows = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[") {
            assert!(!line.starts_with("#[ignore"), "a test that is not run: {line}");
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            continue;
        }
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn otp_");
        if let Some((row, _)) = name.and_then(|name| name.split_once('_'))
            && is_test
        {
            rows.extend(row.parse::<u32>());
        }
        is_test = false;
    }
    rows
}

#[test]
fn a_row_counts_as_tested_only_by_a_test() {
    let source = "\
#[test]
fn otp_7_a_rule() {}
#[tokio::test(start_paused = true)]
#[expect(clippy::print_stdout, reason = \"it does\")]
async fn otp_42_a_rule() {}
fn otp_8_no_test() {}
// fn otp_9_a_comment() {}
#[test]
fn otp_rows() {}
";
    assert_eq!(tests_in(source), BTreeSet::from([7, 42]));
}
