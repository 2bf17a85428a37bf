//! The child that serves `/stats`, `/tree` and `/healthz`.
//!
//! It is a child of the root, whose handle shows the whole tree.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::sleep;
use verger::{Context, Exit, SupervisorHandle};

use crate::app::App;
use crate::storage::batch::Batch;

/// How long a batch may take to be stored for the service to be healthy.
const PATIENCE: Duration = Duration::from_secs(1);

/// The wait after an error of the listening socket.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening socket, which stays open when this incarnation ends.
#[derive(Debug)]
struct Socket(Arc<App>);

impl Listener for Socket {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.0.http.accept().await {
                Ok(accepted) => return accepted,
                // *Too many open files*, for example, which passes when connections close.
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.http.local_addr()
    }
}

/// The state that requests read.
#[derive(Clone, Debug)]
struct View {
    app: Arc<App>,
    tree: SupervisorHandle,
}

pub(crate) async fn http(ctx: Context, app: Arc<App>) -> Exit {
    let socket = Socket(Arc::clone(&app));
    let routes = Router::new()
        .route("/", get("/stats /tree /tree.txt /healthz\n"))
        .route("/stats", get(stats))
        .route("/tree", get(tree))
        .route("/tree.txt", get(tree_text))
        .route("/healthz", get(healthz))
        .with_state(View { app, tree: ctx.parent() });
    let stopped = ctx.token().cancelled_owned();
    axum::serve(socket, routes).with_graceful_shutdown(stopped).await?;
    Ok(())
}

async fn stats(State(View { app, .. }): State<View>) -> Response {
    let senders = app.ledger.senders();
    Json(json!({
        "lines": app.stats.snapshot(),
        "file": { "bytes": senders.file, "ended": senders.file_ended },
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
        Err(error) => unavailable(&error),
    }
}

async fn tree_text(State(View { tree, .. }): State<View>) -> Response {
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match tree.status().await {
        Ok(status) => (plain, format!("{status}\n")).into_response(),
        Err(error) => unavailable(&error),
    }
}

/// Answers 200 if an empty batch gets a receipt from the database in time.
async fn healthz(State(View { app, .. }): State<View>) -> Response {
    let nothing = Arc::new(Batch::Connection(Vec::new()));
    match app.store(nothing, PATIENCE).await {
        Ok(_) => Json(json!({ "healthy": true })).into_response(),
        Err(error) => unavailable(&error),
    }
}

fn unavailable(error: &dyn std::error::Error) -> Response {
    let unwell = json!({ "healthy": false, "reason": error.to_string() });
    (StatusCode::SERVICE_UNAVAILABLE, Json(unwell)).into_response()
}
