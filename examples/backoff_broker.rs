//! A client of a broker that is down for ten seconds, while its users keep asking.
//!
//! ```text
//! app          one_for_one   at most one restart within a minute
//! └─ client                  passes the users' questions to the broker
//! ```
//!
//! The mailbox keeps the questions while the client is down. The client connects before it is ready.
//! A failure before that counts neither as a restart nor as a delivery of a message, so an outage may
//! take any time. The client acknowledges a question after the answer. The question that it was
//! processing when the connection broke is therefore sent to the broker again.
//!
//! ```text
//! cargo run --release --example backoff_broker --features mailbox
//! ```
//!
//! `OUTAGE_MS=300` makes the outage shorter.

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};
use verger::mailbox::{Address, Inbox, Reply};
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, Context, Lifecycle, Readiness, Supervisor, mailbox_with_capacity, worker_with_mailbox,
};

/// How many users ask, and how often each of them does, with or without an answer.
const ASKERS: usize = 4;
const PACE: Duration = Duration::from_millis(20);

/// A question without an answer after this time counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
enum BrokerError {
    #[error("can't connect")]
    Unreachable(#[source] io::Error),
    #[error("lost the connection")]
    Lost(#[from] io::Error),
    #[error("the broker said {0:?}")]
    Protocol(String),
}

struct Question {
    text: String,
    reply: Reply<String>,
}

async fn client(
    ctx: Context,
    mut inbox: Inbox<Question>,
    broker: SocketAddr,
) -> Result<(), BrokerError> {
    let socket = TcpStream::connect(broker).await.map_err(BrokerError::Unreachable)?;
    let mut broker = BufStream::new(socket);
    ctx.ready();
    while let Some(question) = inbox.deliver().await {
        let id = question.id();
        if question.attempt() > 1 {
            println!("client: asks the broker again: {}", question.text);
        }
        send(&mut broker, &format!("{id} {}", question.text)).await?;
        let line = receive(&mut broker).await?;
        let answer = line.strip_prefix(&format!("{id} ")).map(str::to_owned);
        // In this order, a failure in between repeats the question. In the other order, it would
        // lose the answer.
        question.reply.send(answer.ok_or(BrokerError::Protocol(line))?);
        question.ack();
    }
    Ok(())
}

/// The counters of all users.
#[derive(Clone, Copy, Default)]
struct Tally {
    asked: usize,
    answered: usize,
    lost: usize,
}

async fn show(outage: Duration) -> anyhow::Result<()> {
    let (at, broker) = start_broker("127.0.0.1:0".parse()?).await?;
    let backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(2));
    // Enough for the questions of the longest outage that the service tolerates.
    let (address, mailbox) = mailbox_with_capacity(100_000);
    let client = worker_with_mailbox("client", mailbox, move |ctx, inbox| client(ctx, inbox, at))
        .readiness(Readiness::Signal)
        .activation_timeout(Duration::from_secs(2))
        .backoff(backoff.jitter(0.2));
    let app = Supervisor::builder("app").restarts(1, Duration::from_secs(60)).child(client);
    let app = app.build()?.start().await?;
    let log = tokio::spawn(print_events(app.events()));

    let (tally, over) = (watch::Sender::<Tally>::default(), watch::Sender::new(false));
    let mut askers = JoinSet::new();
    for asker in 0..ASKERS {
        askers.spawn(ask(asker, address.clone(), tally.clone(), over.subscribe()));
    }
    let mut tallies = tally.subscribe();
    tallies.wait_for(|tally| tally.answered >= 100).await?;

    let began = Instant::now();
    broker.abort();
    let _ = broker.await;
    let before = *tally.borrow();
    println!("outage: the broker is gone after {} answers", before.answered);
    sleep(outage).await;
    let (_, _broker) = start_broker(at).await?;
    let outage = began.elapsed();
    let Tally { asked, answered, .. } = *tally.borrow();
    println!("outage: the broker is back; {} answers are due", asked - answered);
    ensure!(asked > before.asked, "no user has asked during the outage");

    // All questions so far, and some more.
    tallies.wait_for(|tally| tally.answered + tally.lost >= asked + 100).await?;
    over.send_replace(true);
    while let Some(asker) = askers.join_next().await {
        asker??;
    }
    let client = app.which_child("client").await?;
    println!("client: {} as incarnation {}", client.lifecycle, client.incarnation);
    app.stop("the example is over").await?;
    log.await?;

    let Tally { asked, answered, lost } = *tally.borrow();
    println!("asked={asked} answered={answered} lost={lost} outage_ms={}", outage.as_millis());
    ensure!(client.lifecycle == Lifecycle::Active, "the client is {}", client.lifecycle);
    ensure!(asked == answered && lost == 0, "not every question was answered");
    Ok(())
}

/// Asks until `over` is set, and then waits for the missing answers.
async fn ask(
    asker: usize,
    address: Address<Question>,
    tally: watch::Sender<Tally>,
    mut over: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (mut pace, mut due) = (interval(PACE), JoinSet::new());
    let mut is_over = std::pin::pin!(over.wait_for(|&over| over));
    for number in 0.. {
        tokio::select! {
            _ = &mut is_over => break,
            _ = pace.tick() => {}
        }
        tally.send_modify(|tally| tally.asked += 1);
        let (address, tally) = (address.clone(), tally.clone());
        due.spawn(async move {
            let text = format!("question {number} of {asker}");
            let expected = text.to_uppercase();
            let answer = address.ask_within(PATIENCE, |reply| Question { text, reply }).await;
            tally.send_modify(|tally| match &answer {
                Ok(answer) if *answer == expected => tally.answered += 1,
                Ok(_) | Err(_) => tally.lost += 1,
            });
            answer
        });
    }
    while let Some(answer) = due.join_next().await {
        if let Err(error) = answer? {
            println!("lost: {error}");
        }
    }
    Ok(())
}

/// Prints the events of the client.
async fn print_events(mut events: Subscription<Event>) {
    while let Some(Event { kind, .. }) = events.next().await {
        let EventKind::Moved { to, reason, wait, .. } = kind else { continue };
        match (reason, wait) {
            (Some(reason), _) => println!("client: {reason}"),
            (None, Some((attempt, wait))) => {
                println!("client: down, attempt {attempt} in {} ms", wait.as_millis());
            }
            (None, None) if to == Lifecycle::Active => println!("client: ready"),
            (None, None) => {}
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let outage = std::env::var("OUTAGE_MS").map_or(Ok(10_000), |outage| outage.parse());
    let outage = Duration::from_millis(outage.context("OUTAGE_MS is no number")?);
    timeout(outage + Duration::from_secs(20), show(outage))
        .await
        .context("the example takes too long")?
}

// --- The broker ----------------------------------------------------------------------------------

/// Stands for a different machine: it is not supervised, and its connections end with it.
async fn start_broker(at: SocketAddr) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind(at).await?;
    let address = listener.local_addr()?;
    let broker = tokio::spawn(async move {
        let mut sessions = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            sessions.spawn(respond(BufStream::new(socket)));
        }
    });
    Ok((address, broker))
}

/// Answers each line in upper case. A line begins with the number of the request.
async fn respond(mut client: BufStream<TcpStream>) -> io::Result<()> {
    loop {
        let request = receive(&mut client).await?;
        send(&mut client, &request.to_uppercase()).await?;
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
