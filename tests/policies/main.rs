//! Restart policies: backoff, limits, triggers, callbacks, and where each setting comes from.

mod backoffs;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod limits;
#[path = "../common/log.rs"]
mod log;
mod on_child_failure;
mod on_child_failure_reports;
mod on_exhausted;
mod policy_in_force;
mod presets;
mod restart_policy;
mod trigger;
mod waits;
mod written_policies;
mod written_policies_log;
