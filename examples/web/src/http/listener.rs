//! The child that accepts connections, and the children that serve them.
//!
//! A connection is a child, so it has a line in the tree, a limit of their number, and an end that belongs to the
//! stop: tasks that `axum::serve` spawns belong to no child.

use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use verger::{Context, ControlError, Exit};

use super::routes::routes;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long an open request may go on after its connection was cancelled.
const LAST_REQUEST: Duration = Duration::from_secs(5);
/// The grace of a connection: the same, and the time to close it.
pub(crate) const GRACE: Duration = Duration::from_secs(6);
/// The wait after an error such as *too many open files*, which passes when connections close.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until it is cancelled. The socket outlives it, so clients wait while it restarts.
pub(crate) async fn listener(ctx: Context, listener: Arc<TcpListener>) -> Exit {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
    let connections = ctx.parent().supervisor("connections").await?;
    let routes = routes(ctx.config()?);
    info!(address = %listener.local_addr()?, "listening");
    while let Some(accepted) = ctx.run_until_cancelled(listener.accept()).await {
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "accept failed");
                ctx.run_until_cancelled(sleep(PAUSE)).await;
                continue;
            }
        };
        let routes = routes.clone();
        let connection = async move |ctx: Context| -> Exit {
            ctx.set_status(peer.to_string());
            serve(ctx, socket, routes).await
        };
        match connections.start_once("connection", connection).await {
            Ok(_) => {}
            // The socket is closed. The listener goes on.
            Err(error @ ControlError::MaxChildren { .. }) => {
                warn!(%peer, %error, "connection refused");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Serves the requests of one connection. When it is cancelled, it finishes the open one.
async fn serve(ctx: Context, socket: TcpStream, routes: Router) -> Exit {
    // The routes end their streams when this child is cancelled.
    let routes = routes.layer(Extension(ctx.clone()));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(routes))
    );
    let ended = tokio::select! {
        ended = &mut connection => Ok(ended),
        () = ctx.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(LAST_REQUEST, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        // The client has gone, or is no HTTP client. That is no failure of the service.
        Ok(Err(error)) => tracing::debug!(%error, "connection ended"),
        Err(_) => warn!("connection closed, because its request was still open"),
    }
    Ok(())
}
