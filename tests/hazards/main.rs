//! What a child or a caller may do to a tree: panic anywhere, block, leave, or nest too deep.

#[path = "../common/mod.rs"]
mod common;
mod depth;
mod leaks;
#[path = "../common/log.rs"]
mod log;
mod order;
mod panics;
mod races;
mod strays;
mod tasks;
mod teardown;
