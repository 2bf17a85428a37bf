//! What the service answers.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures_util::{FutureExt, Stream, stream};
use tokio::sync::broadcast;
use tokio::time::timeout;
use verger::Context;
use verger::config::ConfigWatch;

use super::config::ListenerConfig;
use crate::storage::notes::{self, Note};
use crate::storage::pool::{Pool, PoolError};

/// How long a request waits for the pool while the database restarts.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many notes a client of `/events` may be behind.
const BEHIND: usize = 64;

#[derive(Clone)]
struct Shared {
    config: ConfigWatch<ListenerConfig>,
    added: broadcast::Sender<Note>,
}

pub(super) fn routes(config: ConfigWatch<ListenerConfig>) -> Router {
    let shared = Shared { config, added: broadcast::channel(BEHIND).0 };
    Router::new()
        .route("/", get("GET /notes, POST /notes, GET /events, POST /panic\n"))
        .route("/notes", get(latest).post(add))
        .route("/events", get(events))
        .route("/panic", post(break_it))
        .layer(from_fn(observe))
        .with_state(shared)
}

async fn latest(Extension(ctx): Extension<Context>) -> Result<Json<Vec<Note>>, Failure> {
    let notes = pool(&ctx).await?.run(|database| notes::latest(database)).await?;
    Ok(Json(notes))
}

async fn add(
    State(mut shared): State<Shared>,
    Extension(ctx): Extension<Context>,
    text: String,
) -> Result<(StatusCode, Json<Note>), Failure> {
    if text.len() > shared.config.get().max_note {
        return Err(Failure::TooLong);
    }
    let note = pool(&ctx).await?.run(move |database| notes::add(database, text)).await?;
    // Without a client of `/events`, this is an error.
    let _ = shared.added.send(note.clone());
    Ok((StatusCode::CREATED, Json(note)))
}

/// Sends each new note, until the client goes or the connection is cancelled.
async fn events(
    State(shared): State<Shared>,
    Extension(ctx): Extension<Context>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let added = shared.added.subscribe();
    let notes = stream::unfold((ctx, added), async |(ctx, mut added)| {
        // Without this, an open client would keep the connection open until its grace is over.
        let event = match ctx.run_until_cancelled(added.recv()).await? {
            Ok(note) => Event::default().event("note").data(note.text),
            Err(broadcast::error::RecvError::Lagged(_)) => Event::default().event("missed"),
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        Some((Ok(event), (ctx, added)))
    });
    Sse::new(notes).keep_alive(KeepAlive::default())
}

async fn break_it(State(mut shared): State<Shared>) -> StatusCode {
    assert!(!shared.config.get().break_it, "broken on purpose");
    StatusCode::NOT_FOUND
}

/// Counts requests, and answers 500 if a handler panics. The panic is logged with the path of the connection.
async fn observe(request: Request, next: Next) -> Response {
    let response = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let response = response.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response());
    let status = response.status().as_str().to_owned();
    metrics::counter!("web_requests_total", "status" => status).increment(1);
    response
}

/// Returns the pool, and waits for it while the database restarts.
async fn pool(ctx: &Context) -> Result<Pool, Failure> {
    match timeout(PATIENCE, ctx.service()).await {
        Ok(Ok(pool)) => Ok(pool),
        Ok(Err(_)) | Err(_) => Err(Failure::Unavailable("the database isn't open".into())),
    }
}

/// Why a request has no result.
#[derive(Debug)]
enum Failure {
    TooLong,
    Unavailable(String),
    Internal,
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Busy(_) => Self::Unavailable(error.to_string()),
            PoolError::Failed(error) => {
                tracing::error!(%error, "statement failed");
                Self::Internal
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            Self::Unavailable(reason) => {
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], reason + "\n")
                    .into_response()
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
