//! What the compiler says of mistakes in what the macros are given, and what they accept.
//!
//! Each file in `ui/fail` has one mistake and goes on to use what it is made in, so that its text
//! shows one error and nothing that follows from it. What is not the macros' own text is that of
//! Rust 1.95. `TRYBUILD=overwrite cargo test --test ui` renews the texts; read them as somebody who
//! made the mistake.
#![cfg(feature = "macros")]

/// One test, so that what they all depend on is built only once.
#[test]
fn mistakes_are_told_once_and_what_is_right_does_what_it_says() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/ui/fail/*.rs");
    tests.pass("tests/ui/pass/*.rs");
}
