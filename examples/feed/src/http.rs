//! The child that serves `/stats`, `/tree` and `/healthz`.
//!
//! It is a child of the root, whose handle shows the whole tree. Each connection is a child of
//! `requests` and serves one request, so that a client that says nothing takes little and is closed
//! when room is needed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpStream;
use verger::{Context, Exit, SupervisorHandle};

use crate::app::App;
use crate::limits::MAX_HEAD;
use crate::room::Seat;
use crate::storage::sink::Sink;

/// How long storage may owe a receipt for the service to be healthy.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state that requests read.
#[derive(Clone, Debug)]
struct View {
    app: Arc<App>,
    tree: SupervisorHandle,
    sink: Sink,
}

pub(crate) async fn http(ctx: Context, app: Arc<App>) -> Exit {
    let tree = ctx.parent();
    let sink = ctx.service().await?;
    let requests = tree.supervisor("requests").await?;
    let routes = Router::new()
        .route("/", get("/stats /tree /tree.txt /healthz\n"))
        .route("/stats", get(stats))
        .route("/tree", get(self::tree))
        .route("/tree.txt", get(tree_text))
        .route("/healthz", get(healthz))
        .with_state(View { app: Arc::clone(&app), tree, sink });
    app.requests
        .accept(&ctx, &app.http, &requests, move |ctx, socket, seat| {
            serve(ctx, socket, seat, routes.clone())
        })
        .await
}

async fn serve(ctx: Context, socket: TcpStream, _seat: Seat, routes: Router) -> Exit {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(routes));
    if let Some(Err(error)) = ctx.run_until_cancelled(connection).await {
        tracing::debug!(%error, "request failed");
    }
    Ok(())
}

async fn stats(State(View { app, .. }): State<View>) -> Response {
    let senders = app.ledger.senders();
    Json(json!({
        "lines": app.stats.snapshot(),
        "file": { "bytes": senders.file.offset, "ended": senders.file_ended },
        "clients": { "answered": senders.clients },
        "chaos": app.options.chaos.then(|| app.chaos.struck()),
        "seed": app.options.seed,
    }))
    .into_response()
}

async fn tree(State(View { tree, .. }): State<View>) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    match tree.status().await {
        Ok(status) => (json, status.json()).into_response(),
        Err(error) => unavailable(&error.to_string()),
    }
}

async fn tree_text(State(View { tree, .. }): State<View>) -> Response {
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match tree.status().await {
        Ok(status) => (plain, format!("{status}\n")).into_response(),
        Err(error) => unavailable(&error.to_string()),
    }
}

/// Answers 200 if storage owes no receipt for longer than [`PATIENCE`]. It sends storage nothing.
async fn healthz(State(View { sink, .. }): State<View>) -> Response {
    let owed = sink.owed();
    if owed <= PATIENCE {
        Json(json!({ "healthy": true })).into_response()
    } else {
        unavailable(&format!("storage has stored nothing for {owed:.1?}, and lines are waiting"))
    }
}

fn unavailable(reason: &str) -> Response {
    let unwell = json!({ "healthy": false, "reason": reason });
    (StatusCode::SERVICE_UNAVAILABLE, Json(unwell)).into_response()
}
