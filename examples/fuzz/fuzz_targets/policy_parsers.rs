//! Calls the target `policy_parsers` of the tests with inputs that libFuzzer makes up.

#![no_main]

#[path = "../../../tests/hazards/fuzz/policy_parsers.rs"]
mod policy_parsers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy_parsers::run(data));
