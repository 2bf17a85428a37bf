//! A consumer of a message broker that is shut down and started again.
//!
//! The consumer subscribes in `activate`, so it is active once it can receive messages. While the
//! broker is down, the consumer is started again and again, with growing delays. Failures before it
//! is active don't count as restarts, so an outage may take any time. The broker keeps each message
//! until the consumer has acknowledged it, so none is lost.
//!
//! ```text
//! cargo run --example broker
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use verger::status::EventKind;
use verger::{Backoff, Context, Lifecycle, Supervisor, child, worker};

/// A set of message numbers that tasks can wait on.
type Messages = watch::Sender<BTreeSet<u32>>;

#[derive(Debug, thiserror::Error)]
enum BrokerError {
    #[error("can't connect")]
    Unreachable(#[source] io::Error),
    #[error("lost the connection")]
    Lost(#[from] io::Error),
    #[error("the broker said {0:?}")]
    Protocol(String),
}

struct Consumer {
    broker: SocketAddr,
    /// Set by `activate` of each incarnation.
    subscription: Option<BufStream<TcpStream>>,
    /// Shared by all incarnations, as a database would be.
    done: Messages,
}

#[worker(activation_timeout = "2s")]
impl Consumer {
    async fn activate(&mut self) -> Result<(), BrokerError> {
        let socket = TcpStream::connect(self.broker).await.map_err(BrokerError::Unreachable)?;
        let broker = self.subscription.insert(BufStream::new(socket));
        send(broker, "SUBSCRIBE").await?;
        match receive(broker).await? {
            answer if answer == "SUBSCRIBED" => Ok(()),
            other => Err(BrokerError::Protocol(other)),
        }
    }

    async fn run(&mut self, ctx: &Context) -> Result<(), BrokerError> {
        let broker = self.subscription.as_mut().expect("`activate` has subscribed");
        while let Some(line) = ctx.run_until_cancelled(receive(broker)).await {
            let line = line?;
            let number = line.strip_prefix("MESSAGE ").and_then(|number| number.parse().ok());
            let number = number.ok_or(BrokerError::Protocol(line))?;
            sleep(Duration::from_millis(5)).await;
            // A message comes twice if its acknowledgement is lost.
            self.done.send_if_modified(|done| done.insert(number));
            send(broker, &format!("DONE {number}")).await?;
            // Resets the backoff, so that the next outage begins with the shortest delay.
            ctx.report_healthy();
        }
        Ok(())
    }
}

async fn show() -> anyhow::Result<()> {
    let (held, done) = (Messages::new((1..=40).collect()), Messages::default());
    let (address, broker) = start_broker("127.0.0.1:0".parse()?, &held).await?;

    let backoff =
        Backoff::exponential(Duration::from_millis(50), Duration::from_secs(5)).jitter(0.5);
    let database = done.clone();
    let consumer = move || Consumer { broker: address, subscription: None, done: database.clone() };
    let app = Supervisor::builder("app").child(child("consumer", consumer).backoff(backoff));
    let app = app.build()?.start().await?;
    let mut events = app.events();

    let done_at_least =
        async |count| done.subscribe().wait_for(|done| done.len() >= count).await.map(drop);
    done_at_least(10).await?;
    broker.abort();
    let _ = broker.await;
    held.send_modify(|held| held.extend(41..=60));
    println!("the broker is down, and holds {} messages", held.borrow().len());

    let mut waits = Vec::new();
    while waits.len() < 4 {
        let event = events.next().await.context("the tree has ended")?;
        match event.kind {
            EventKind::Moved { reason: Some(reason), .. } => println!("consumer: {reason}"),
            EventKind::Moved { wait: Some((attempt, delay)), .. } => {
                println!("consumer: attempt {attempt} in {} ms", delay.as_millis());
                waits.push(delay);
            }
            _ => {}
        }
    }
    ensure!(waits.is_sorted(), "the waits don't grow: {waits:?}");

    let (_, _broker) = start_broker(address, &held).await?;
    println!("the broker is back");
    done_at_least(60).await?;
    held.subscribe().wait_for(|held| held.is_empty()).await?;

    let consumer = app.which_child("consumer").await?;
    ensure!(consumer.lifecycle == Lifecycle::Active, "the consumer is {}", consumer.lifecycle);
    ensure!(*done.borrow() == (1..=60).collect(), "some are lost: {:?}", done.borrow());
    println!("60 of 60 messages are done, by {} incarnations", consumer.incarnation);
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}

// --- The broker ----------------------------------------------------------------------------------

/// The messages outlive the broker, as if they were on a disk. Its connections end with it.
async fn start_broker(at: SocketAddr, held: &Messages) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let (listener, held) = (TcpListener::bind(at).await?, held.clone());
    let address = listener.local_addr()?;
    let broker = tokio::spawn(async move {
        let mut sessions = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            sessions.spawn(deliver(BufStream::new(socket), held.clone()));
        }
    });
    Ok((address, broker))
}

async fn deliver(mut consumer: BufStream<TcpStream>, held: Messages) -> anyhow::Result<()> {
    ensure!(receive(&mut consumer).await? == "SUBSCRIBE");
    send(&mut consumer, "SUBSCRIBED").await?;
    let mut waiting = held.subscribe();
    loop {
        let first = waiting.wait_for(|held| !held.is_empty()).await?.first().copied();
        let number = first.context("it is not empty")?;
        send(&mut consumer, &format!("MESSAGE {number}")).await?;
        ensure!(receive(&mut consumer).await? == format!("DONE {number}"));
        held.send_if_modified(|held| held.remove(&number));
    }
}

async fn send(socket: &mut BufStream<TcpStream>, line: &str) -> io::Result<()> {
    socket.write_all(format!("{line}\n").as_bytes()).await?;
    socket.flush().await
}

async fn receive(socket: &mut BufStream<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    match socket.read_line(&mut line).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}
