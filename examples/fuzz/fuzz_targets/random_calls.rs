//! Calls the target `random_calls` of the tests with inputs that libFuzzer makes up.

#![no_main]

#[path = "../../../tests/hazards/fuzz/random_calls.rs"]
mod random_calls;

libfuzzer_sys::fuzz_target!(|data: &[u8]| random_calls::run(data));
