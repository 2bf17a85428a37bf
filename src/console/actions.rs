//! The requests that change the tree.
//!
//! Knows which call each action makes. It doesn't know whether an action applies: the tree decides that.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::guard::Permitted;
use super::problem::{HttpProblem, json};
use super::shared::{ConsoleShared, NAME};
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::status::{Node, Status};

type Served = State<Arc<ConsoleShared>>;

/// How long an answer waits for the end of a call.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it takes to find out what a call waits for.
const LOOK: Duration = Duration::from_secs(1);
/// The caller of an action whose client names none.
const BY: &str = "operator";
/// The most characters of a reason.
const REASON: usize = 200;
/// The most children that are named.
const NAMED: usize = 3;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Restart,
    Stop,
    Resume,
    Reset,
    Hold,
    Release,
    Kill,
    StopTree,
}

impl Action {
    /// Returns what it has done, and what it does while it lasts.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Restart => ("restarted", "restarting"),
            Self::Stop => ("stopped", "stopping"),
            Self::Resume => ("resumed", "resuming"),
            Self::Reset => ("reset the counters of", "resetting the counters of"),
            Self::Hold => ("held", "holding"),
            Self::Release => ("released", "releasing"),
            Self::Kill => ("killed", "killing"),
            Self::StopTree => ("stopped", "stopping"),
        }
    }
}

/// The content of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    action: Action,
    path: Option<String>,
    reason: Option<String>,
    /// The name that the operator has typed.
    by: Option<String>,
    /// For `stop_tree`: the name of the root.
    confirm: Option<String>,
}

/// Returns who makes a call: the user whom a proxy has named, or the name that was typed.
///
/// # Errors
///
/// If the name or the reason is too long.
pub(super) fn caller(
    user: Option<String>,
    typed: Option<&str>,
    reason: Option<&str>,
) -> Result<Option<String>, HttpProblem> {
    let typed = typed.unwrap_or_default().trim();
    for (what, text, most) in [("by", typed, NAME), ("reason", reason.unwrap_or_default(), REASON)]
    {
        let length = text.chars().count();
        if length > most {
            let text = format!("`{what}` has {length} characters; write at most {most}");
            return Err(HttpProblem::bad_request(text));
        }
    }
    Ok(match user {
        Some(user) => Some(format!("{user} (header)")),
        None => (!typed.is_empty()).then(|| format!("{} (typed)", Visible(typed))),
    })
}

#[derive(Serialize)]
struct Done {
    ok: bool,
    text: String,
}

pub(super) fn done(text: impl Into<String>) -> Response {
    json(&Done { ok: true, text: text.into() })
}

pub(super) async fn act(
    State(console): Served,
    Permitted(order, user): Permitted<Order>,
) -> Result<Response, HttpProblem> {
    let by = caller(user, order.by.as_deref(), order.reason.as_deref())?;
    let by = by.unwrap_or_else(|| BY.to_owned());
    let root = console.tree.path();
    let path = match (&order.path, order.action) {
        (None, Action::StopTree) => root.clone(),
        (Some(path), _) => console.tree.path_of(path)?,
        (None, _) => return Err(HttpProblem::bad_request("`path` is missing")),
    };
    if matches!(order.action, Action::StopTree) {
        if path != root {
            let text = format!("`stop_tree` stops `{root}`; use `stop` for a child");
            return Err(HttpProblem::bad_request(text));
        }
        if order.confirm.as_deref() != Some(root.as_str()) {
            let text = format!("write `{root}` as `confirm` to stop the whole tree");
            return Err(HttpProblem::bad_request(text));
        }
    }
    let (past, present) = order.action.words();
    // After the timeout the call goes on: it was sent at the first poll.
    let called = timeout(PATIENCE, call(&console, &order, &path, by)).await;
    console.snapshots.outdate().await;
    match called {
        Ok(called) => called.map(|()| done(format!("{past} {path}"))),
        Err(_) => {
            let mut text = format!("still {present} {path} after {}s", PATIENCE.as_secs());
            if let Some(waits) = waits_for(&console.tree, &path).await {
                // A child that waits for nothing else is on its way itself.
                let own = waits.strip_prefix(&format!("{path}, which "));
                let more = own.map_or(format!("waits for {waits}"), str::to_owned);
                text.push_str(&format!("; it {more}"));
            }
            Ok((StatusCode::ACCEPTED, done(text)).into_response())
        }
    }
}

async fn call(
    console: &ConsoleShared,
    order: &Order,
    path: &Path,
    by: String,
) -> Result<(), HttpProblem> {
    let reason = order.reason.as_deref().filter(|reason| !reason.is_empty());
    let tree = console.tree.on_behalf_of(&*by, reason.unwrap_or_default());
    // The empty path is the root.
    let path = if *path == console.tree.path() { "" } else { path.as_str() };
    let called: Result<(), ControlError> = match order.action {
        Action::Restart => tree.restart(path).await.map(drop),
        Action::Stop => tree.stop_child(path).await,
        Action::Resume => tree.resume(path).await.map(drop),
        Action::Kill => tree.kill(path).await.map(drop),
        Action::Reset => tree.reset(path).await,
        Action::Hold => tree.hold(path).await,
        Action::Release => tree.release(path).await,
        Action::StopTree => return stop_tree(&tree, by, reason).await,
    };
    called.map_err(HttpProblem::from)
}

/// Stops the tree, and waits until it has ended.
async fn stop_tree(
    tree: &SupervisorHandle,
    by: String,
    reason: Option<&str>,
) -> Result<(), HttpProblem> {
    let cause = match reason {
        Some(reason) => format!("{by}: {reason}"),
        None => by,
    };
    tree.stop(cause).await.map_err(|error| HttpProblem::conflict("failed", error.to_string()))
}

/// Names the children that start or stop at the path or below.
async fn waits_for(tree: &SupervisorHandle, path: &Path) -> Option<String> {
    let status = timeout(LOOK, async {
        match *path == tree.path() {
            true => tree.status().await.ok(),
            false => tree.supervisor(path.as_str()).await.ok()?.status().await.ok(),
        }
    });
    let mut waits = match status.await.ok()? {
        Some(Status { root, .. }) => unsettled(&root),
        None => unsettled(&timeout(LOOK, tree.node(path)).await.ok()?.ok()?),
    };
    let more = waits.len().saturating_sub(NAMED);
    waits.truncate(NAMED);
    if more > 0 {
        waits.push(format!("{more} more"));
    }
    (!waits.is_empty()).then(|| waits.join(", "))
}

/// Returns the lowest children that are on their way up or down.
fn unsettled(node: &Node) -> Vec<String> {
    let is_moving = |node: &Node| {
        matches!(node.child.lifecycle, Lifecycle::Activating | Lifecycle::Deactivating)
    };
    let is_awaited = |node: &&Node| is_moving(node) && !node.children.iter().any(is_moving);
    let awaited = node.nodes().filter(is_awaited).map(|node| &node.child);
    awaited.map(|child| format!("{}, which is {}", child.path, child.lifecycle)).collect()
}

/// The content of a request for a replay.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replay {
    id: u64,
}

pub(super) async fn replay(
    State(console): Served,
    Permitted(Replay { id }, _): Permitted<Replay>,
) -> Result<Response, HttpProblem> {
    let Some(store) = &console.options.store else {
        let text = "this console has no store of dead letters; see `Console::dead_letter_store`";
        return Err(HttpProblem::conflict("wrong_state", text));
    };
    let Some(entry) = store.entry(id) else {
        return Err(HttpProblem::not_found(format!("there is no dead letter {id} any more")));
    };
    let replayed = store.replay(entry.id);
    replayed.map_err(|error| HttpProblem::conflict("wrong_state", error.to_string()))?;
    Ok(done(format!("replayed dead letter {id} to {}", entry.letter.target)))
}
