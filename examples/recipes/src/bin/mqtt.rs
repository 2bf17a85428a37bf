//! An MQTT client whose reconnection is the restart of its child.
//!
//! ```text
//! app          one_for_one
//! ├─ server    mosquitto, which is killed
//! └─ mqtt      polls the connection, subscribes, and provides the client
//! ```
//!
//! rumqttc connects again if `poll` is called after an error, at once and without a limit. So `poll` isn't called
//! again here: the error ends the child, and the supervisor has the backoff, the limit, and the line in the log.
//!
//! Lost with an incarnation: what was published and isn't acknowledged by the broker. A message that must not be lost
//! belongs into a mailbox, and is acknowledged there after the broker's acknowledgement.
//!
//! ```text
//! cargo run --bin mqtt
//! ```

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use recipes::{Server, until_active};
use rumqttc::{AsyncClient, Event, MqttOptions, Outgoing, Packet, QoS};
use tokio::sync::watch;
use verger::{Context, Exit, Readiness, Supervisor, worker_with};

async fn mqtt(ctx: Context, (broker, received): (SocketAddr, watch::Sender<u32>)) -> Exit {
    let mut options = MqttOptions::new("recipe", broker.ip().to_string(), broker.port());
    options.set_keep_alive(Duration::from_secs(5));
    let (client, mut connection) = AsyncClient::new(options, 100);
    // Sent once the client is connected. A broker that was restarted knows no subscription.
    client.subscribe("numbers", QoS::AtLeastOnce).await?;
    let mut is_stopping = false;
    loop {
        let event = tokio::select! {
            event = connection.poll() => event?,
            () = ctx.cancelled(), if !is_stopping => {
                // Otherwise the broker takes the end for a failure, and publishes the last will.
                is_stopping = true;
                client.disconnect().await?;
                continue;
            }
        };
        match event {
            Event::Incoming(Packet::SubAck(_)) => {
                ctx.provide(client.clone())?;
                ctx.ready();
            }
            Event::Incoming(Packet::Publish(_)) => received.send_modify(|count| *count += 1),
            Event::Outgoing(Outgoing::Disconnect) => return Ok(()),
            _ => {}
        }
    }
}

async fn show() -> anyhow::Result<String> {
    let broker = Server::mosquitto()?;
    let received = watch::Sender::new(0);
    let mut count = received.subscribe();
    let state = (broker.address(), received);
    let app = Supervisor::builder("app")
        .child(broker.child())
        .child(worker_with("mqtt", state, mqtt).readiness(Readiness::Signal));
    let app = app.build()?.start().await?;
    // Taken anew each time: a client of an incarnation that has ended sends nothing.
    let publish = async || {
        let client: AsyncClient = app.service().await?;
        for number in 0..10 {
            client.publish("numbers", QoS::AtLeastOnce, false, number.to_string()).await?;
        }
        anyhow::Ok(())
    };
    publish().await?;
    count.wait_for(|&count| count == 10).await?;

    app.kill("server").await?;
    until_active(&app, "mqtt", 2).await?;
    publish().await?;
    count.wait_for(|&count| count == 20).await?;

    until_active(&app, "server", 2).await?;
    let exit = app.which_child("mqtt").await?.last_exit;
    ensure!(exit.is_some(), "the broken connection was no failure");
    let received = *count.borrow();
    app.stop("the recipe is over").await?;
    Ok(format!("mqtt: {received} of 20 messages, half of them after the broker was killed"))
}

fn main() -> ExitCode {
    recipes::run(show())
}
