//! Calls the target `config_plans` of the tests with inputs that libFuzzer makes up.

#![no_main]

#[path = "../../../tests/hazards/fuzz/config_plans.rs"]
mod config_plans;

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_plans::run(data));
