//! Children and callers that panic, block, leak, race, or nest too deep.

mod blocked_stops;
#[path = "../common/mod.rs"]
mod common;
mod depth;
mod foreign;
mod fuzz;
mod leaks;
#[path = "../common/log.rs"]
mod log;
mod order;
mod panics;
mod races;
mod strays;
mod tasks;
mod teardown;
