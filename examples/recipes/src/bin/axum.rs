//! An HTTP server of axum as a child.
//!
//! ```text
//! app          one_for_one
//! └─ http      owns the listener; a request that panics doesn't end it
//! ```
//!
//! * A panic of a handler ends its connection and nothing else, because axum runs each connection in a task of its own. No
//!   restart is needed, and none happens.
//! * The child binds the address itself, so its next incarnation finds the port free.
//! * A graceful stop waits until all answers are complete. One that never ends has to end with the token of the child.
//! * If the child is aborted, its listener is closed at once, and open connections go on: their tasks belong to axum.
//!
//! ```text
//! cargo run --bin axum
//! ```

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use futures_util::{StreamExt, stream};
use recipes::until_active;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval};
use verger::{CancellationToken, Context, Exit, Readiness, Supervisor, worker_with};

async fn http(ctx: Context, address: SocketAddr) -> Exit {
    let listener = TcpListener::bind(address).await?;
    ctx.ready();
    let router = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/panic", get(panics))
        .route("/ticks", get(ticks))
        .with_state(ctx.token());
    axum::serve(listener, router).with_graceful_shutdown(ctx.cancelled()).await?;
    Ok(())
}

/// Answers without end. Without `take_until`, a client that listens would delay the stop until the grace is over.
async fn ticks(State(stopped): State<CancellationToken>) -> Body {
    let ticks = stream::unfold(interval(Duration::from_millis(20)), async |mut interval| {
        interval.tick().await;
        Some((Ok::<_, Infallible>("tick\n"), interval))
    });
    Body::from_stream(ticks.take_until(stopped.cancelled_owned()))
}

async fn panics() -> &'static str {
    panic!("a request that no code has foreseen")
}

/// Sends a request.
async fn request(server: SocketAddr, path: &str) -> anyhow::Result<TcpStream> {
    let mut socket = TcpStream::connect(server).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    Ok(socket)
}

/// Sends a request, and returns the whole answer.
async fn answer(server: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut answer = String::new();
    request(server, path).await?.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn show() -> anyhow::Result<String> {
    let server = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let http = worker_with("http", server, http)
        .readiness(Readiness::Signal)
        .shutdown(Duration::from_secs(10));
    let app = Supervisor::builder("app").child(http).build()?.start().await?;

    ensure!(answer(server, "/panic").await?.is_empty(), "a panic has an answer");
    ensure!(answer(server, "/hello").await?.ends_with("hello"), "no answer after the panic");
    ensure!(app.which_child("http").await?.incarnation == 1, "the panic has ended the child");

    app.kill("http").await?;
    until_active(&app, "http", 2).await?;
    ensure!(answer(server, "/hello").await?.ends_with("hello"), "no answer after the restart");

    let mut endless = request(server, "/ticks").await?;
    endless.read_u8().await?;
    let began = Instant::now();
    app.stop("the recipe is over").await?;
    ensure!(began.elapsed() < Duration::from_secs(5), "the stop has waited for an answer");
    let mut rest = String::new();
    endless.read_to_string(&mut rest).await?;
    // The last chunk of an answer that is complete.
    ensure!(rest.ends_with("\r\n0\r\n\r\n"), "the endless answer was cut off: {rest:?}");
    Ok("axum: a panic in a handler cost no restart, a kill one, and the stop ended an endless answer".into())
}

fn main() -> ExitCode {
    recipes::run(show())
}
