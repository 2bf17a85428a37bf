//! The requests that read the tree as it is now.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::guard::Asked;
use super::history::entries;
use super::problem::{HttpProblem, json, json_bytes, json_text};
use super::shared::ConsoleShared;
use super::snapshots::Snapshot;
use super::stream::NodeAlone;
use crate::log_lines::ChildLines;
use crate::path::Path;
use crate::status::{ChildSpecInfo, LoggedEvent, Node, Status};

type Served = State<Arc<ConsoleShared>>;

/// A picture has a style sheet of its own, and may do nothing else.
const PICTURE_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";

/// The part of the tree that is requested.
#[derive(Deserialize)]
pub(super) struct Under {
    pub(super) under: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct OfChild {
    pub(super) path: String,
}

pub(super) async fn info(State(console): Served, headers: HeaderMap) -> Response {
    #[derive(Serialize)]
    struct Info {
        root: Path,
        actions: bool,
        reload: bool,
        log: bool,
        replay: bool,
        verger: &'static str,
        needs_token: bool,
        read_token: bool,
        /// The user that a proxy has named.
        identity: Option<String>,
    }

    json(&Info {
        root: console.tree.path(),
        actions: console.options.actions,
        reload: console.source().is_some(),
        log: console.options.log.is_some(),
        replay: console.options.store.is_some(),
        verger: env!("CARGO_PKG_VERSION"),
        needs_token: true,
        read_token: console.options.read_token.is_some(),
        identity: console.options.user(&headers),
    })
}

pub(super) async fn status(
    State(console): Served,
    Asked(Under { under }): Asked<Under>,
) -> Result<Response, HttpProblem> {
    look(&console, under, Snapshot::json, |it| json_text(it).into()).await.map(json_bytes)
}

pub(super) async fn text(
    State(console): Served,
    Asked(Under { under }): Asked<Under>,
) -> Result<Response, HttpProblem> {
    let text = |status: &Status| status.to_string() + "\n";
    view(&console, under, "text/plain; charset=utf-8", text).await
}

pub(super) async fn svg(
    State(console): Served,
    Asked(Under { under }): Asked<Under>,
) -> Result<Response, HttpProblem> {
    let mut picture = view(&console, under, "image/svg+xml", Status::svg).await?;
    let policy = HeaderValue::from_static(PICTURE_POLICY);
    picture.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(picture)
}

/// Renders the tree or a part of it.
async fn view(
    console: &Arc<ConsoleShared>,
    under: Option<String>,
    content_type: &'static str,
    view: fn(&Status) -> String,
) -> Result<Response, HttpProblem> {
    let text = look(console, under, move |it| view(&it.status).into(), move |it| view(it).into());
    Ok(([(CONTENT_TYPE, content_type)], text.await?).into_response())
}

/// Renders a snapshot, or the part of it below a path, on a thread that may block.
async fn look(
    console: &Arc<ConsoleShared>,
    under: Option<String>,
    whole: impl FnOnce(&Snapshot) -> Bytes + Send + 'static,
    part: impl FnOnce(&Status) -> Bytes + Send + 'static,
) -> Result<Bytes, HttpProblem> {
    let snapshot = console.snapshots.fresh(&console.tree).await?;
    let path = under.map(|under| console.tree.path_of(&under)).transpose()?;
    let rendered = spawn_blocking(move || {
        let root = &snapshot.status.root;
        match path.filter(|path| *path != root.child.path) {
            None => Ok(whole(&snapshot)),
            Some(path) => match node_at(root, &path) {
                Some(root) => Ok(part(&snapshot.status.of_part(root.clone()))),
                None => Err(path),
            },
        }
    });
    match rendered.await {
        Ok(Ok(rendered)) => Ok(rendered),
        Ok(Err(path)) => Err(console.tree.not_found(path).into()),
        Err(_) => Err(HttpProblem::unavailable("failed", "the snapshot can't be rendered")),
    }
}

fn node_at<'a>(root: &'a Node, path: &Path) -> Option<&'a Node> {
    let mut node = root;
    while node.child.path != *path {
        let on_the_way = |node: &&Node| path.is_at_or_below(node.child.path.as_str());
        node = node.children.iter().find(on_the_way)?;
    }
    Some(node)
}

pub(super) async fn child(
    State(console): Served,
    Asked(OfChild { path }): Asked<OfChild>,
) -> Result<Response, HttpProblem> {
    #[derive(Serialize)]
    struct Body<'a> {
        child: NodeAlone<'a>,
        /// `None` for the root.
        spec: Option<ChildSpecInfo>,
        events: Vec<LoggedEvent>,
        log: Option<ChildLines>,
    }

    let path = console.tree.path_of(&path)?;
    let node = console.tree.node(&path).await?;
    let spec = match path == console.tree.path() {
        true => None,
        false => Some(console.tree.child_spec(path.as_str()).await?),
    };
    let events = entries(&console.records.events.lock(), &path);
    let log = console.options.log.as_ref().map(|lines| lines.of(&path));
    Ok(json(&Body { child: NodeAlone::from(&node), spec, events, log }))
}

pub(super) async fn stream(State(console): Served) -> Result<Response, HttpProblem> {
    let messages = console.records.streams.open(&console.tree, &console.snapshots)?;
    let headers = [(CONTENT_TYPE, "text/event-stream")];
    Ok((headers, Body::from_stream(messages)).into_response())
}
