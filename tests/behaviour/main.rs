//! What a tree does, as its users see it through the public API.

mod application;
mod bad_input;
mod calls;
mod chapters;
mod child_specs;
#[path = "../common/mod.rs"]
mod common;
mod dead_letters;
mod health_checks;
mod kin;
#[path = "../common/log.rs"]
mod log;
#[cfg(feature = "log-lines")]
mod log_lines;
mod long_waits;
mod memory;
#[cfg(all(feature = "metrics", feature = "periodic"))]
mod metrics;
mod names;
mod one_stop;
mod readiness;
#[cfg(feature = "metrics")]
mod recorder;
mod requires;
mod seeds;
mod spans;
mod status;
mod status_changes;
mod status_facts;
mod stop_times;
mod testing;
mod watchdog;
