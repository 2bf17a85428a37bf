//! Configuration from files and calls: what a plan says, what applying it does, and what is refused.

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "signal")]
mod documents;
mod edges;
mod limits;
#[path = "../common/log.rs"]
mod log;
#[cfg(feature = "macros")]
mod macros;
mod mailboxes;
mod meanwhile;
mod properties;
#[path = "../../src/base/random_cases.rs"]
mod random_cases;
mod reload;
mod seeds;
mod trials;
mod upgrades;
mod values;

use std::time::Duration;

use serde::Deserialize;
use verger::config::Config;
use verger::{Context, Exit, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle};

/// The configuration of a child.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Server {
    port: u16,
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

async fn start_with(builder: SupervisorBuilder, text: &str) -> SupervisorHandle {
    builder.build().unwrap().configured(&config(text)).await.unwrap().start().await.unwrap()
}

/// The lifecycle and the incarnation of a child.
async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

/// Reads a configuration that is written as `app.toml`.
fn config(text: &str) -> Config {
    Config::from_toml(text, "app.toml")
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn idle(ctx: Context) -> Exit {
    ctx.cancelled().await;
    Ok(())
}

/// Applies a configuration. Returns its changes, one line each.
async fn apply(tree: &SupervisorHandle, text: &str) -> Vec<String> {
    let plan = tree.plan(&config(text)).await.unwrap();
    let applied = tree.apply(plan).await.unwrap();
    applied.changes.iter().map(ToString::to_string).collect()
}

/// Plans and applies a configuration. Returns its changes, or the text of the error.
async fn try_apply(tree: &SupervisorHandle, text: &str) -> Result<Vec<String>, String> {
    let plan = tree.plan(&config(text)).await.map_err(|error| error.to_string())?;
    let applied = tree.apply(plan).await.map_err(|error| error.to_string())?;
    Ok(applied.changes.iter().map(ToString::to_string).collect())
}
