//! The errors for mistakes in what the macros are given, and the programs that they accept.
//!
//! Each file in `ui/fail` has one mistake and goes on to use the item with the mistake, so that its
//! text shows that one error and none that follows from it. The compiler's own texts are those of
//! Rust 1.95. `TRYBUILD=overwrite cargo test --test ui` renews the texts; read each as a user who made
//! the mistake. The programs in `ui/config` need the feature `config`, and those in `ui/config/without` show what
//! its absence leads to. Those in `ui/cron` need the feature `cron`.
#![cfg(feature = "macros")]

/// One test, so that the dependencies are built once.
#[test]
fn mistakes_are_reported_once_and_correct_programs_run() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/ui/fail/*.rs");
    tests.pass("tests/ui/pass/*.rs");
    if cfg!(feature = "cron") {
        tests.pass("tests/ui/cron/*.rs");
    }
    if cfg!(feature = "config") {
        tests.compile_fail("tests/ui/config/fail/*.rs");
        tests.pass("tests/ui/config/pass/*.rs");
    } else {
        tests.compile_fail("tests/ui/config/without/*.rs");
    }
}
