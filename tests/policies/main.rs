//! Restart policies: backoff, limits, triggers, callbacks, and where each setting comes from.

mod backoffs;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod documents;
mod effective_policy;
mod fatal;
mod limits;
#[path = "../common/log.rs"]
mod log;
mod log_levels;
mod log_storms;
mod on_child_failure;
mod on_child_failure_reports;
mod on_exhausted;
mod outages;
mod policy_files;
mod presets;
mod restart_policy;
mod retry_after;
mod trigger;

use std::time::Duration;

use tokio::time::Instant;
use verger::{RunError, SupervisorBuilder};

/// Runs a tree that gives up. Returns after which time, and the error.
async fn gives_up_after(app: SupervisorBuilder) -> (Duration, RunError) {
    let began = Instant::now();
    let error = app.build().unwrap().run().await.unwrap_err();
    (began.elapsed(), error)
}
