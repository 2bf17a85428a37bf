//! A chat over TCP: each connection is a child, and their number has a limit.
//!
//! ```text
//! chat            rest_for_one
//! ├─ clients      dynamic, three at most
//! └─ listener     starts clients
//! ```
//!
//! A line from one client is sent to all. The line `panic` makes the client's child panic: its connection is closed, and no
//! other child notices. A fourth client is refused until one of the three has gone.
//!
//! ```text
//! cargo run --example tcp_chat --features service
//! LISTEN=127.0.0.1:7000 cargo run --example tcp_chat --features service    # goes on until Ctrl-C, for `nc 127.0.0.1 7000`
//! ```
//!
//! The length of a line isn't limited here; `examples/feed` shows how.

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::{self, error::RecvError};
use verger::status::EventKind;
use verger::{
    Application, Context, ControlError, DynamicSupervisor, Exit, Strategy, Supervisor, worker_with,
};

const MAX_CLIENTS: usize = 3;
/// How many lines a client may be behind.
const BEHIND: usize = 64;

async fn listener(ctx: Context, (address, said): (SocketAddr, broadcast::Sender<String>)) -> Exit {
    let listener = TcpListener::bind(address).await?;
    ctx.provide(listener.local_addr()?)?;
    let clients = ctx.parent().supervisor("clients").await?;
    while let Some(accepted) = ctx.run_until_cancelled(listener.accept()).await {
        let (socket, peer) = accepted?;
        let said = said.clone();
        let client = async move |ctx: Context| -> Exit {
            ctx.set_status(peer.to_string());
            // A client that doesn't read must not delay a stop.
            ctx.run_until_cancelled(client(socket, said)).await.unwrap_or(Ok(()))
        };
        match clients.start_once("client", client).await {
            Ok(_) => {}
            // The socket is closed, and the listener goes on.
            Err(error @ ControlError::MaxChildren { .. }) => println!("refused: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Serves one client until it goes.
async fn client(socket: TcpStream, said: broadcast::Sender<String>) -> Exit {
    let mut lines = said.subscribe();
    let (read, mut write) = socket.into_split();
    let mut typed = BufReader::new(read).lines();
    write.write_all(b"welcome\n").await?;
    loop {
        tokio::select! {
            line = typed.next_line() => match line? {
                Some(line) if line == "panic" => panic!("a client said so"),
                // An error only means that no client listens.
                Some(line) => drop(said.send(line)),
                None => return Ok(()),
            },
            line = lines.recv() => match line {
                Ok(line) => write.write_all(format!("{line}\n").as_bytes()).await?,
                Err(RecvError::Lagged(missed)) => {
                    return Err(format!("too slow: {missed} lines missed").into());
                }
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}

fn chat(address: SocketAddr) -> verger::SupervisorBuilder {
    let said = broadcast::Sender::new(BEHIND);
    Supervisor::builder("chat")
        .strategy(Strategy::RestForOne)
        .child(DynamicSupervisor::builder("clients").max_children(MAX_CLIENTS))
        .child(worker_with("listener", (address, said), listener))
}

#[tokio::main]
pub(crate) async fn main() -> Result<()> {
    match std::env::var("LISTEN") {
        Ok(address) => Ok(Application::new(chat(address.parse()?)).run_to_end().await?),
        Err(_) => play().await,
    }
}

/// Plays the scene that the header describes.
async fn play() -> Result<()> {
    let chat = chat("127.0.0.1:0".parse()?).build()?.start().await?;
    let address: SocketAddr = chat.service().await?;
    let mut events = chat.events();
    let [mut ann, mut bob, mut cat] =
        [Guest::enter(address).await?, Guest::enter(address).await?, Guest::enter(address).await?];

    ann.say("hello").await?;
    for guest in [&mut ann, &mut bob, &mut cat] {
        ensure!(guest.hears().await? == Some("hello".into()));
    }
    println!("all three hear ann");
    ensure!(Guest::enter(address).await.is_err(), "a fourth client came in");

    bob.say("panic").await?;
    ensure!(bob.hears().await?.is_none());
    loop {
        let event = events.next().await.context("the tree has ended")?;
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            println!("{}: {reason}", event.path);
            break;
        }
    }
    let mut dan = Guest::enter(address).await?;
    dan.say("I am in").await?;
    for guest in [&mut ann, &mut cat, &mut dan] {
        ensure!(guest.hears().await? == Some("I am in".into()));
    }
    println!("dan has the place that is free, and all three hear dan");
    let listener = chat.which_child("listener").await?;
    println!("{}: incarnation {}", listener.path, listener.incarnation);
    Ok(chat.stop("the example is over").await?)
}

/// The other end of a connection.
struct Guest {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Guest {
    /// Connects, and fails if it isn't welcome.
    async fn enter(address: SocketAddr) -> Result<Self> {
        let (read, write) = TcpStream::connect(address).await?.into_split();
        let mut guest = Self { lines: BufReader::new(read).lines(), write };
        ensure!(guest.hears().await? == Some("welcome".into()), "refused");
        Ok(guest)
    }

    async fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.write.write_all(format!("{line}\n").as_bytes()).await?)
    }

    /// Returns the next line, or nothing if the connection was closed.
    async fn hears(&mut self) -> Result<Option<String>> {
        Ok(self.lines.next_line().await?)
    }
}
