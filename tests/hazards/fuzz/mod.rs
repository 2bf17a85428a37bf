//! Targets of the fuzzers, and the inputs that they have found so far.
//!
//! A target is a function of bytes that panics if a rule is broken. The fuzzers in `examples/fuzz` call
//! it with inputs that they make up. The tests here call it with the inputs in `corpus/`, so that what a
//! fuzzer has found once is checked by every test run.
//!
//! A file in `corpus/` has one input per line, in hexadecimal digits. Lines that begin with `#` are
//! comments. The README of `examples/fuzz` says how an input gets there.
//!
//! # Invariants
//!
//! 1. A target names no other module of the tests, because the fuzzers include its file by its path.
//! 2. A target depends on its input only, apart from how threads interleave. Calls share no state but a
//!    runtime, which has no tasks between two calls.
//! 3. A task of a tree doesn't assert, because its supervisor would handle the panic. It records the
//!    broken rule, and the target asserts at the end that none was recorded.

mod config_files;
mod config_plans;
mod mailbox_scripts;
mod policy_parsers;
mod random_calls;

use std::panic::catch_unwind;

/// Calls a target with each input of a corpus.
fn replay(corpus: &str, run: fn(&[u8])) {
    let mut inputs = 0;
    for (index, line) in corpus.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let input = decode(line);
        assert!(catch_unwind(|| run(&input)).is_ok(), "line {} breaks a rule: {line}", index + 1);
        inputs += 1;
    }
    assert!(inputs > 0, "the corpus is empty");
}

fn decode(line: &str) -> Vec<u8> {
    let digits: Vec<_> = line.chars().map(|digit| digit.to_digit(16).expect(line)).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "an odd number of digits: {line}");
    pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).unwrap()).collect()
}

#[test]
fn the_corpus_of_random_calls_breaks_no_rule() {
    replay(include_str!("corpus/random_calls.hex"), random_calls::run);
}

#[test]
fn the_corpus_of_mailbox_scripts_breaks_no_rule() {
    replay(include_str!("corpus/mailbox_scripts.hex"), mailbox_scripts::run);
}

#[test]
fn the_corpus_of_config_files_breaks_no_rule() {
    replay(include_str!("corpus/config_files.hex"), config_files::run);
}

#[test]
fn the_corpus_of_config_plans_breaks_no_rule() {
    replay(include_str!("corpus/config_plans.hex"), config_plans::run);
}

#[test]
fn the_corpus_of_policy_parsers_breaks_no_rule() {
    replay(include_str!("corpus/policy_parsers.hex"), policy_parsers::run);
}
