//! A NATS client, which reconnects by itself: no child is restarted when its server is.
//!
//! ```text
//! app            one_for_one
//! ├─ server      nats-server, which is killed
//! ├─ nats        owns the client, and shows in its status whether that is connected
//! └─ subscriber  counts messages
//! ```
//!
//! The client subscribes again after it has reconnected, and then sends what was published meanwhile. A restart of the
//! children would lose both: the subscription until it is made again, and the messages that the old client holds.
//! The supervisor acts in two cases: the first connection fails, or the client was closed.
//!
//! ```text
//! cargo run --bin nats
//! ```

use std::future::ready;
use std::process::ExitCode;

use anyhow::ensure;
use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt;
use recipes::{Server, until_active};
use tokio::sync::watch;
use verger::{Context, Exit, Readiness, Supervisor, worker_with};

/// Owns the client. A server that is away at the start fails the activation, which is repeated with backoff.
async fn nats(ctx: Context, (url, connected): (String, watch::Sender<bool>)) -> Exit {
    let shown = ctx.clone();
    let options = ConnectOptions::new().event_callback(move |event| {
        match event {
            Event::Connected => connected.send_replace(true),
            Event::Disconnected => connected.send_replace(false),
            _ => false,
        };
        shown.set_status(event.to_string());
        ready(())
    });
    let client = options.connect(url).await?;
    ctx.provide(client.clone())?;
    ctx.ready();
    ctx.cancelled().await;
    // Sends what is queued.
    client.drain().await?;
    Ok(())
}

async fn subscriber(ctx: Context, received: watch::Sender<u32>) -> Exit {
    let client: Client = ctx.service().await?;
    let mut numbers = client.subscribe("numbers").await?;
    ctx.ready();
    while let Some(message) = ctx.run_until_cancelled(numbers.next()).await {
        message.ok_or("the client was closed")?;
        received.send_modify(|count| *count += 1);
    }
    Ok(())
}

async fn show() -> anyhow::Result<String> {
    let server = Server::nats()?;
    let url = format!("nats://{}", server.address());
    let (connected, received) = (watch::Sender::new(false), watch::Sender::new(0));
    let (mut is_connected, mut count) = (connected.subscribe(), received.subscribe());
    let app = Supervisor::builder("app")
        .child(server.child())
        .child(worker_with("nats", (url, connected), nats).readiness(Readiness::Signal))
        .child(worker_with("subscriber", received, subscriber).readiness(Readiness::Signal));
    let app = app.build()?.start().await?;
    let client: Client = app.service().await?;
    let publish = async || {
        for number in 0..10 {
            client.publish("numbers", number.to_string().into()).await?;
        }
        anyhow::Ok(())
    };
    publish().await?;
    count.wait_for(|&count| count == 10).await?;

    is_connected.wait_for(|&it| it).await?;
    // So that the server is away until it is released.
    app.hold("server").await?;
    app.kill("server").await?;
    is_connected.wait_for(|&it| !it).await?;
    publish().await?;
    app.release("server").await?;
    count.wait_for(|&count| count == 20).await?;

    until_active(&app, "server", 2).await?;
    for child in ["nats", "subscriber"] {
        ensure!(app.which_child(child).await?.incarnation == 1, "`{child}` was restarted");
    }
    let received = *count.borrow();
    app.stop("the recipe is over").await?;
    Ok(format!("nats: {received} of 20 messages, half of them sent without a server, no restart"))
}

fn main() -> ExitCode {
    recipes::run(show())
}
