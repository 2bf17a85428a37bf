//! Calls the target `mailbox_scripts` of the tests with inputs that libFuzzer makes up.

#![no_main]

#[path = "../../../tests/hazards/fuzz/mailbox_scripts.rs"]
mod mailbox_scripts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailbox_scripts::run(data));
