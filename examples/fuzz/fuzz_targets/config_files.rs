//! Calls the target `config_files` of the tests with inputs that libFuzzer makes up.

#![no_main]

#[path = "../../../tests/hazards/fuzz/config_files.rs"]
mod config_files;

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_files::run(data));
