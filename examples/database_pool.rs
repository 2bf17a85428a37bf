//! A pool of database connections: one breaks, and later all, with the database.
//!
//! ```text
//! app          one_for_one
//! ├─ pool      one_for_one   all connections start concurrently
//! │  ├─ conn-1
//! │  ┆
//! │  └─ conn-6
//! └─ api                     queries the database again and again
//! ```
//!
//! A connection that breaks alone is restarted alone. When the database is down, each connection has
//! its own backoff, and jitter spreads out their attempts. Meanwhile a query returns an error at once,
//! and the user of the pool keeps running.
//!
//! ```text
//! cargo run --example database_pool
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use verger::policy::{Jitter, Reset, Start};
use verger::status::{Event, EventKind, Subscription};
use verger::{Backoff, Context, Lifecycle, Readiness, Supervisor, SupervisorBuilder, worker_with};

const SIZE: u32 = 6;

#[derive(Debug, thiserror::Error)]
enum DatabaseError {
    #[error("can't connect")]
    Unreachable(#[source] io::Error),
    #[error("lost the connection")]
    Lost(#[from] io::Error),
}

/// The error of a query.
#[derive(Debug, thiserror::Error)]
enum QueryError {
    /// The query was not sent.
    #[error("no connection is free")]
    Unavailable,
    /// The query was sent, and may have been executed.
    #[error("the connection broke before the answer came")]
    Interrupted,
}

struct Query {
    text: String,
    answer: oneshot::Sender<String>,
}

/// The idle connections. A broken one is removed when a query tries it.
#[derive(Clone)]
struct Pool {
    database: SocketAddr,
    idle: Arc<Mutex<Vec<mpsc::Sender<Query>>>>,
}

impl Pool {
    async fn query(&self, text: &str) -> Result<String, QueryError> {
        let (answer, answered) = oneshot::channel();
        let mut query = Query { text: text.to_owned(), answer };
        loop {
            let idle = self.idle.lock().expect("the lock is never poisoned").pop();
            match idle.ok_or(QueryError::Unavailable)?.send(query).await {
                Ok(()) => return answered.await.map_err(|_| QueryError::Interrupted),
                Err(broken) => query = broken.0,
            }
        }
    }
}

async fn connection(ctx: Context, pool: Pool) -> Result<(), DatabaseError> {
    let socket = TcpStream::connect(pool.database).await.map_err(DatabaseError::Unreachable)?;
    let mut database = BufStream::new(socket);
    // The database identifies its clients by name.
    ask(&mut database, ctx.path().name()).await?;
    ctx.ready();
    ctx.run_until_cancelled(serve(database, pool)).await.unwrap_or(Ok(()))
}

async fn serve(mut database: BufStream<TcpStream>, pool: Pool) -> Result<(), DatabaseError> {
    let (itself, mut queries) = mpsc::channel::<Query>(1);
    loop {
        pool.idle.lock().expect("the lock is never poisoned").push(itself.clone());
        tokio::select! {
            Some(query) = queries.recv() => {
                let answer = ask(&mut database, &query.text).await?;
                // The caller may have dropped its query.
                let _ = query.answer.send(answer);
            }
            // An idle database sends nothing, so this is the end of the connection.
            unasked = receive(&mut database) => drop(unasked?),
        }
    }
}

async fn ask(database: &mut BufStream<TcpStream>, query: &str) -> io::Result<String> {
    send(database, query).await?;
    receive(database).await
}

/// The counters of all queries.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    answered: u32,
    unavailable: u32,
    interrupted: u32,
}

async fn api(ctx: Context, (pool, tally): (Pool, watch::Sender<Tally>)) {
    while ctx.run_until_cancelled(sleep(Duration::from_millis(5))).await.is_some() {
        let result = pool.query("SELECT 1").await;
        tally.send_modify(|tally| match result {
            Ok(_) => tally.answered += 1,
            Err(QueryError::Unavailable) => tally.unavailable += 1,
            Err(QueryError::Interrupted) => tally.interrupted += 1,
        });
    }
}

fn app(pool: Pool, tally: watch::Sender<Tally>) -> SupervisorBuilder {
    let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(5))
        .jitter(Jitter::Full)
        .reset(Reset::OnReady);
    let mut connections = Supervisor::builder("pool")
        .start(Start::Concurrent)
        // When the database goes down, the failure of each connection counts.
        .restarts(3 * SIZE, Duration::from_secs(60))
        .defaults(|connection| {
            connection.backoff(backoff).activation_timeout(Duration::from_secs(2))
        });
    for number in 1..=SIZE {
        let connection = worker_with(format!("conn-{number}"), pool.clone(), connection);
        connections = connections.child(connection.readiness(Readiness::Signal));
    }
    Supervisor::builder("app").child(connections).child(worker_with("api", (pool, tally), api))
}

async fn show() -> anyhow::Result<()> {
    let database = Database::start("127.0.0.1:0".parse()?).await?;
    let pool = Pool { database: database.address, idle: Arc::default() };
    let tally = watch::Sender::new(Tally::default());
    let app = app(pool, tally.clone()).build()?.start().await?;
    let connections = app.supervisor("pool").await?;
    let mut events = app.events();
    let until = async |enough: &dyn Fn(&Tally) -> bool| {
        tally.subscribe().wait_for(|tally| enough(tally)).await.map(drop)
    };
    until(&|tally| tally.answered >= 10).await?;

    database.break_one("conn-3");
    until_active(&mut events, 1).await?;
    let incarnations: Vec<_> =
        connections.children().await?.iter().map(|child| child.incarnation).collect();
    println!("conn-3 broke; the incarnations are now {incarnations:?}");
    ensure!(incarnations == [1, 1, 2, 1, 1, 1], "not only conn-3 was replaced");

    let address = database.address;
    database.stop().await;
    println!("the database is gone");
    until(&|tally| tally.unavailable >= 10).await?;
    let database = Database::start(address).await?;
    until_active(&mut events, SIZE).await?;
    let arrivals = database.arrivals();
    println!("the database is back; the connections came after, in ms, {arrivals:?}");
    ensure!(arrivals[0] + 10 <= arrivals[arrivals.len() - 1], "they came back as a herd");

    let before = tally.borrow().answered;
    until(&|tally| tally.answered >= before + 10).await?;
    let tally = *tally.borrow();
    let api = app.which_child("api").await?;
    println!("the api runs as incarnation {}, its queries: {tally:?}", api.incarnation);
    ensure!(api.incarnation == 1, "the api didn't survive it");
    Ok(app.stop("the example is over").await?)
}

/// Waits until `count` connections are active again, and prints their delays.
async fn until_active(events: &mut Subscription<Event>, mut count: u32) -> anyhow::Result<()> {
    while count > 0 {
        let event = events.next().await.context("the tree has ended")?;
        let EventKind::Moved { to, wait, .. } = event.kind else { continue };
        count -= u32::from(to == Lifecycle::Active);
        if let Some((attempt, wait)) = wait {
            println!("{}: attempt {attempt} in {} ms", event.path.name(), wait.as_millis());
        }
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}

// --- The database --------------------------------------------------------------------------------

struct Database {
    address: SocketAddr,
    server: JoinHandle<()>,
    /// The session of each client, by name, and when it connected, since the start.
    sessions: Arc<Mutex<HashMap<String, (AbortHandle, Duration)>>>,
}

impl Database {
    async fn start(at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let (address, started) = (listener.local_addr()?, Instant::now());
        let sessions = Arc::<Mutex<HashMap<_, _>>>::default();
        let running = Arc::clone(&sessions);
        let server = tokio::spawn(async move {
            // Dropped with the server, which ends all sessions.
            let mut tasks = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let mut client = BufStream::new(socket);
                let Ok(name) = receive(&mut client).await else { continue };
                let session = (tasks.spawn(answer(client)), started.elapsed());
                running.lock().expect("the lock is never poisoned").insert(name, session);
            }
        });
        Ok(Self { address, server, sessions })
    }

    fn break_one(&self, name: &str) {
        self.sessions.lock().expect("the lock is never poisoned")[name].0.abort();
    }

    async fn stop(self) {
        self.server.abort();
        let _ = self.server.await;
    }

    /// Returns when each client connected, in milliseconds.
    fn arrivals(&self) -> Vec<u128> {
        let sessions = self.sessions.lock().expect("the lock is never poisoned");
        let mut arrivals: Vec<_> = sessions.values().map(|(_, at)| at.as_millis()).collect();
        arrivals.sort_unstable();
        arrivals
    }
}

async fn answer(mut client: BufStream<TcpStream>) -> io::Result<()> {
    loop {
        send(&mut client, "1").await?;
        receive(&mut client).await?;
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
