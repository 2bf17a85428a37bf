//! The requests about what has happened: events, incidents, log lines, samples and dead letters.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::guard::Asked;
use super::incidents::IncidentList;
use super::letters::LetterList;
use super::problem::{HttpProblem, json};
use super::shared::ConsoleShared;
use super::tree::{OfChild, Under};
use crate::log_lines::LogLine;
use crate::path::Path;
use crate::serde::Millis;
use crate::status::{EventLog, LoggedEvent};

type Served = State<Arc<ConsoleShared>>;

/// The most log lines of a part of the tree.
const LINES: usize = 500;

/// Returns the events of the child at this path and below, the oldest first.
pub(super) fn entries(log: &EventLog, under: &Path) -> Vec<LoggedEvent> {
    log.below(under).cloned().collect()
}

/// Returns the path of the part that is requested, which may be gone.
fn part(console: &ConsoleShared, under: Option<String>) -> Result<Path, HttpProblem> {
    Ok(match under {
        Some(under) => console.tree.path_of(&under)?,
        None => console.tree.path(),
    })
}

pub(super) async fn incidents(
    State(console): Served,
    Asked(Under { under }): Asked<Under>,
) -> Result<Response, HttpProblem> {
    let under = part(&console, under)?;
    let snapshot = console.snapshots.fresh(&console.tree).await?;
    let log = console.records.events.lock();
    Ok(json(&IncidentList::new(&snapshot.status, &log, &under)))
}

pub(super) async fn samples(
    State(console): Served,
    Asked(OfChild { path }): Asked<OfChild>,
) -> Result<Response, HttpProblem> {
    Ok(json(&console.samples.of(&console.tree.path_of(&path)?)))
}

pub(super) async fn events(
    State(console): Served,
    Asked(Under { under }): Asked<Under>,
) -> Result<Response, HttpProblem> {
    #[derive(Serialize)]
    struct Body {
        missed: u64,
        /// `None`: nothing was dropped.
        dropped_before_ms: Option<u64>,
        entries: Vec<LoggedEvent>,
    }

    let under = part(&console, under)?;
    let body = {
        let log = console.records.events.lock();
        let dropped_before_ms = log.dropped_before(&under).map(|at| at.millis());
        Body { missed: log.missed(), dropped_before_ms, entries: entries(&log, &under) }
    };
    Ok(json(&body))
}

/// Whose lines are requested: one child's, or a child's and everything below. By default, all.
#[derive(Deserialize)]
pub(super) struct OfAny {
    path: Option<String>,
    under: Option<String>,
}

pub(super) async fn log(
    State(console): Served,
    Asked(OfAny { path, under }): Asked<OfAny>,
) -> Result<Response, HttpProblem> {
    #[derive(Serialize)]
    struct Body {
        lines: Vec<LogLine>,
    }

    let Some(log) = &console.options.log else {
        let text = "this console has no log lines; see `Console::log_lines`";
        return Err(HttpProblem::not_found(text));
    };
    let under = under.map(|under| console.tree.path_of(&under)).transpose()?;
    Ok(match path {
        Some(path) => json(&log.of(console.tree.path_of(&path)?)),
        None => {
            let under = under.unwrap_or_else(|| console.tree.path());
            json(&Body { lines: log.below(under, LINES) })
        }
    })
}

pub(super) async fn dead_letters(State(console): Served) -> Response {
    json(&match &console.options.store {
        Some(store) => LetterList::of_store(store),
        None => console.records.letters.lock().list(),
    })
}
