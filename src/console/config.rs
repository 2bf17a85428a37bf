//! The requests about the configuration: the values that are set, and plans, which are shown before they are
//! applied.
//!
//! # Invariants
//!
//! 1. A plan is applied only if the configuration and its changes are still those that were shown.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::actions::{caller, done};
use super::guard::Permitted;
use super::problem::{HttpProblem, json};
use super::shared::ConsoleShared;
use crate::app::Reloader;
use crate::config::{ApplyError, Change, Config, ConfigSource, Plan};

type Served = State<Arc<ConsoleShared>>;

pub(super) async fn values(State(console): Served) -> Response {
    #[derive(Serialize)]
    struct Body<T> {
        values: Vec<T>,
    }

    json(&Body { values: console.tree.set_values() })
}

/// How long a plan may take, and how long an answer waits for a reload.
const PATIENCE: Duration = Duration::from_secs(8);
/// Who has caused a reload whose client names nobody.
const TRIGGER: &str = "console";
/// The most plans that are kept.
const KEPT: usize = 8;

impl From<ApplyError> for HttpProblem {
    fn from(error: ApplyError) -> Self {
        let text = error.to_string();
        match error {
            ApplyError::Invalid(_) => Self::conflict("invalid", text),
            ApplyError::Refused(_) => Self::conflict("refused", text),
            ApplyError::RolledBack(_) => Self::conflict("rolled_back", text),
            ApplyError::Unreadable(_) => Self::conflict("unreadable", text),
            ApplyError::NotRunning => Self::unavailable("shutting_down", text),
            ApplyError::Control(error) => Self::from(error),
        }
    }
}

/// The content of a request for a plan: a file to compare with the tree, or nothing for the application's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::console) struct Planned {
    file: Option<GivenFile>,
}

/// The text of a configuration file, in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFile {
    name: String,
    toml: String,
}

/// The content of a request for a reload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::console) struct Reload {
    plan: String,
    reason: Option<String>,
    /// The name that the operator has typed.
    by: Option<String>,
}

pub(in crate::console) async fn plan(
    State(console): Served,
    Permitted(Planned { file }, _): Permitted<Planned>,
) -> Result<Response, HttpProblem> {
    #[derive(Serialize)]
    struct Body<'a> {
        /// `None`: the plan can't be applied, because it isn't that of the application's configuration.
        id: Option<&'a str>,
        text: String,
        changes: &'a [Change],
    }

    if let Some(file) = file {
        let plan = within(async { Ok(console.tree.plan(&read(&file)?).await?) }).await?;
        let (text, changes) = (plan.to_string(), plan.changes());
        return Ok(json(&Body { id: None, text, changes }));
    }
    let (_, plan) = planned(&console).await?;
    let id = format!("{:016x}", fastrand::u64(..));
    let body = json(&Body { id: Some(&id), text: plan.to_string(), changes: plan.changes() });
    let mut plans = console.plans.lock();
    plans.push_back((id, plan));
    if plans.len() > KEPT {
        plans.pop_front();
    }
    Ok(body)
}

pub(in crate::console) async fn reload(
    State(console): Served,
    Permitted(Reload { plan, reason, by }, user): Permitted<Reload>,
) -> Result<Response, HttpProblem> {
    let by = caller(user, by.as_deref(), reason.as_deref())?;
    let by = by.unwrap_or_else(|| TRIGGER.to_owned());
    let shown = {
        let plans = console.plans.lock();
        plans.iter().find(|(id, _)| *id == plan).map(|(_, plan)| plan.clone())
    };
    let shown = shown.ok_or_else(|| {
        HttpProblem::not_found("there is no such plan any more; make a new one, and look at it")
    })?;
    let (config, plan) = planned(&console).await?;
    if !shown.is_of(&config) || shown.changes() != plan.changes() {
        let text = "the configuration or the tree has changed since the plan was made; make a new \
                    one, and look at it";
        return Err(HttpProblem::conflict("plan_changed", text));
    }
    let reloader = reloader(&console)?.0;
    // After the timeout the reload goes on: it was sent at the first poll.
    let applied = reloader.request(by, false, Some((plan, reason)));
    let applied = timeout(PATIENCE, applied).await;
    console.snapshots.outdate().await;
    match applied {
        Ok(applied) => Ok(done(format!("reloaded: {}", applied?))),
        Err(_) => {
            let text = format!("still reloading after {}s", PATIENCE.as_secs());
            Ok((StatusCode::ACCEPTED, done(text)).into_response())
        }
    }
}

/// Returns what applies the application's configuration, and where that comes from.
fn reloader(console: &ConsoleShared) -> Result<(&Reloader, &ConfigSource), HttpProblem> {
    console.reloader.as_ref().zip(console.source()).ok_or_else(|| {
        let text = "the console has no configuration to read; see `Application::config_file`";
        HttpProblem::conflict("wrong_state", text)
    })
}

/// Reads the configuration, and returns what it would change.
async fn planned(console: &ConsoleShared) -> Result<(Config, Plan), HttpProblem> {
    let source = reloader(console)?.1;
    within(async {
        let config = source.read().await?;
        let plan = console.tree.plan(&config).await?;
        Ok((config, plan))
    })
    .await
}

async fn within<T>(
    planned: impl Future<Output = Result<T, HttpProblem>>,
) -> Result<T, HttpProblem> {
    timeout(PATIENCE, planned).await.unwrap_or_else(|_| {
        let text = format!("the configuration has not been read within {PATIENCE:?}");
        Err(HttpProblem::unavailable("busy", text))
    })
}

#[cfg(feature = "config-file")]
fn read(file: &GivenFile) -> Result<Config, HttpProblem> {
    Ok(Config::from_toml(&file.toml, &file.name))
}

#[cfg(not(feature = "config-file"))]
fn read(file: &GivenFile) -> Result<Config, HttpProblem> {
    let GivenFile { name, .. } = file;
    let text = format!("{name} can't be read: the program has no feature `config-file`");
    Err(HttpProblem::bad_request(text))
}
