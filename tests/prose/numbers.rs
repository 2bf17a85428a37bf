//! `tests/README.md` lists every numbered test, and every line of it has a test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::files::{files, read};

const README: &str = include_str!("../README.md");

/// The sources that numbers come from.
const SOURCES: [&str; 7] = ["seed0", "seed1", "seed2", "seed3", "seed4", "kin", "otp"];

/// The rules that need a test or a reason for having none.
const REQUIRED: [(&str, &[RangeInclusive<u32>]); 3] =
    [("seed4", &[1..=51]), ("kin", &[99..=128, 136..=143, 147..=164]), ("otp", &[1..=5, 7..=124])];

/// The source of a rule and its number there.
type Rule = (&'static str, u32);

/// Returns the rule that a text such as `kin_07_the_rest` begins with, and the rest.
fn rule_of(text: &str) -> Option<(Rule, &str)> {
    SOURCES.iter().find_map(|&source| {
        let numbered = text.strip_prefix(source)?.strip_prefix('_')?;
        let rest = numbered.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let number = numbered[..numbered.len() - rest.len()].parse().ok()?;
        Some(((source, number), rest))
    })
}

/// Returns the rules and their sentences in one section of the README.
fn listed(section: &str) -> BTreeMap<Rule, &'static str> {
    let section = README.split("\n## ").find(|text| text.starts_with(section)).unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("* `"));
    let mut listed = BTreeMap::new();
    let mut last = None;
    for line in lines {
        let (rule, rest) = rule_of(line).unwrap_or_else(|| panic!("no rule: {line}"));
        let sentence = rest.strip_prefix("`: ").unwrap_or_else(|| panic!("no sentence: {line}"));
        assert!(sentence.ends_with('.') && sentence.split(' ').count() > 2, "{line}");
        let in_order = last.is_none_or(|(source, number)| source != rule.0 || number < rule.1);
        assert!(in_order, "not in order: {line}");
        last = Some(rule);
        assert!(listed.insert(rule, sentence).is_none(), "listed twice: {line}");
    }
    listed
}

/// Returns the names of all tests in a source file.
fn tests_in(source: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    source.lines().map(str::trim_start).filter_map(move |line| {
        assert!(!line.starts_with("#[ignore"), "a test that is not run: {line}");
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        std::mem::take(&mut is_test).then(|| name.split('(').next().unwrap_or(name))
    })
}

#[test]
fn the_readme_lists_exactly_the_rules_that_have_a_test() {
    let mut tested = BTreeSet::new();
    for file in ["tests", "src", "macros/src"].into_iter().flat_map(|it| files(it, &["rs"])) {
        // The examples in this file are no tests of a rule.
        if file != "tests/prose/numbers.rs" {
            tested.extend(tests_in(&read(&file)).filter_map(rule_of).map(|(rule, _)| rule));
        }
    }
    let listed: BTreeSet<Rule> = listed("Numbered tests").into_keys().collect();

    let unlisted: Vec<_> = tested.difference(&listed).collect();
    assert!(unlisted.is_empty(), "tested, without a line in `tests/README.md`: {unlisted:?}");
    let untested: Vec<_> = listed.difference(&tested).collect();
    assert!(untested.is_empty(), "in `tests/README.md`, without a test: {untested:?}");
}

#[test]
fn every_required_rule_has_a_test_or_a_reason_for_having_none() {
    let tested = listed("Numbered tests");
    let untested = listed("Rules without a test");
    let partly_tested = listed("Rules tested in part");
    for (rule, reason) in untested.iter().chain(&partly_tested) {
        let kinds = ["Not applicable: ", "Deviation: "];
        let reason = kinds.iter().find_map(|kind| reason.strip_prefix(kind)).unwrap_or_default();
        assert!(reason.split(' ').count() > 2, "{rule:?} has no reason");
        assert_eq!(tested.contains_key(rule), partly_tested.contains_key(rule), "{rule:?}");
    }
    for (source, numbers) in REQUIRED {
        for number in numbers.iter().cloned().flatten() {
            let rule = (source, number);
            let is_known = tested.contains_key(&rule) || untested.contains_key(&rule);
            assert!(is_known, "{rule:?} has neither a test nor a reason for having none");
        }
    }
}

#[test]
fn a_function_counts_as_a_test_only_with_its_attribute() {
    let source = "
        #[test]
        fn first() {}
        #[tokio::test(start_paused = true)]
        #[expect(clippy::print_stdout, reason = \"it does\")]
        async fn second() {}
        fn helper() {}
        // fn comment() {}
    ";
    assert!(tests_in(source).eq(["first", "second"]));
    assert_eq!(rule_of("kin_07_a_rule"), Some((("kin", 7), "_a_rule")));
    assert_eq!(rule_of("kindness_7"), None);
}
