//! A tree in this process that fails a lot, with a console on a free port.
//!
//! ```text
//! shop           one_for_one
//! ├─ database    says how many connections it uses
//! ├─ orders      rest_for_one
//! │  ├─ writer   slower than the reader, so that its mailbox fills and drops messages
//! │  └─ reader   loses its connection every few seconds
//! ├─ mailer      panics
//! ├─ exports     takes four seconds to stop
//! ├─ sessions    dynamic: come and go, some of them fail
//! ├─ door        starts the sessions
//! └─ rates       fails at once: the vendor is down
//! ```

use std::net::TcpListener;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use verger::console::Console;
use verger::dead_letter::DeadLetterStore;
use verger::log_lines::LogLines;
use verger::mailbox::{Address, Inbox, Overflow};
use verger::{
    Application, Backoff, Context, DynamicSupervisor, Exit, RunError, Shutdown, Strategy,
    Supervisor, SupervisorBuilder, mailbox_with_capacity, worker, worker_with_mailbox,
};

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::model::Info;

/// How long the console may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(5);

/// How long a command waits, so that there is something to see.
const WARM_UP: Duration = Duration::from_secs(8);

/// How long the stop may take: less than `exports` does.
const ENDS_WITHIN: Duration = Duration::from_millis(500);

/// A running demonstration.
pub(crate) struct Demo {
    stop: oneshot::Sender<()>,
    program: JoinHandle<Result<(), RunError>>,
}

impl Demo {
    /// Waits until something has happened that a command can show.
    pub(crate) async fn warm_up(&self) {
        sleep(WARM_UP).await;
    }

    /// Stops the tree, and waits for its end, but not for children that take long.
    pub(crate) async fn stop(self) {
        _ = self.stop.send(());
        _ = timeout(ENDS_WITHIN, self.program).await;
    }
}

/// Starts the tree and its console.
///
/// # Errors
///
/// If no port is free, or the console doesn't answer.
pub(crate) async fn start(lines: LogLines) -> Result<(Endpoint, Demo), String> {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no port is free: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let token = format!("{:032x}", fastrand::u128(..));
    let letters = DeadLetterStore::ring(500);
    let console = Console::new()
        .allow_actions(true)
        .token(&token)
        .log_lines(&lines)
        .dead_letter_store(&letters);
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move {
        _ = stopped.await;
        "the demonstration is over"
    };
    let program = Application::new(tree(&letters))
        .panic_hook()
        // The live view stops at signals, and then stops this.
        .listen_to_signals(false)
        .stop_on(stopped)
        .console_on(listener, console);
    let demo = Demo { stop, program: tokio::spawn(program.run_to_end()) };
    let endpoint = Endpoint { authority: address.to_string(), token: Some(token) };
    let client = Client::new(endpoint.clone());
    // Answered as soon as the console serves: its port is open already.
    match timeout(STARTS_WITHIN, client.get::<Info>("/api/info")).await {
        Ok(Ok(_)) => Ok((endpoint, demo)),
        Ok(Err(error)) => Err(format!("the demonstration has no console: {error}")),
        Err(_) => Err("the demonstration didn't start in time".into()),
    }
}

fn tree(letters: &DeadLetterStore) -> SupervisorBuilder {
    let backoff = |min| Backoff::exponential(Duration::from_millis(min), Duration::from_secs(15));
    let (writer, mailbox) = mailbox_with_capacity::<Order>(20);
    let orders = Supervisor::builder("orders")
        .strategy(Strategy::RestForOne)
        .unlimited_restarts()
        .child(worker_with_mailbox("writer", mailbox.overflow(Overflow::DropOldest), write))
        .child(worker("reader", move |ctx| read(ctx, writer.clone())).requires("writer"));
    let sessions = DynamicSupervisor::builder("sessions").unlimited_restarts().max_children(50);
    Supervisor::builder("shop")
        .unlimited_restarts()
        .dead_letter_store(letters)
        .child(worker("database", database).version("16.4"))
        .child(orders)
        .child(worker("mailer", mailer).requires("database").backoff(backoff(2_000)))
        .child(worker("exports", exports).shutdown(Shutdown::Timeout(Duration::from_secs(6))))
        .child(sessions)
        .child(worker("door", door))
        .child(worker("rates", rates).backoff(backoff(500)))
}

/// Waits. Returns `None` if the child is cancelled before.
async fn pause(ctx: &Context, length: Duration) -> Option<()> {
    ctx.run_until_cancelled(sleep(length)).await
}

async fn database(ctx: Context) {
    for used in (3..=10).chain((4..=9).rev()).cycle() {
        ctx.set_status(format!("pool {used}/10"));
        if pause(&ctx, Duration::from_secs(2)).await.is_none() {
            return;
        }
    }
}

/// An order of the shop.
#[derive(Debug)]
struct Order {
    number: u32,
}

async fn write(ctx: Context, mut inbox: Inbox<Order>) {
    while let Some(order) = inbox.recv().await {
        tracing::info!(order = order.number, "written");
        if pause(&ctx, Duration::from_millis(400)).await.is_none() {
            return;
        }
    }
}

async fn read(ctx: Context, writer: Address<Order>) -> Exit {
    tracing::info!(broker = "orders.example.com:1883", "connected");
    for number in 0..20 + 10 * (ctx.incarnation() % 3) {
        _ = writer.try_send(Order { number });
        if pause(&ctx, Duration::from_millis(250)).await.is_none() {
            return Ok(());
        }
    }
    tracing::warn!("the broker has closed the connection");
    Err("connection reset by peer".into())
}

async fn rates(ctx: Context) -> Exit {
    tracing::info!(attempt = ctx.incarnation(), "connecting to the vendor");
    _ = pause(&ctx, Duration::from_millis(300)).await;
    Err("HTTP 503 from https://vendor.example.com/v1/rates".into())
}

async fn mailer(ctx: Context) {
    if pause(&ctx, Duration::from_secs(7)).await.is_some() {
        tracing::error!(template = "welcome", "no such template");
        panic!("no template `welcome`");
    }
}

async fn exports(ctx: Context) {
    ctx.set_status("export 17 of 40");
    ctx.cancelled().await;
    tracing::info!("writing what is left");
    sleep(Duration::from_secs(4)).await;
}

async fn door(ctx: Context) -> Exit {
    let sessions = ctx.parent().supervisor("sessions").await?;
    for number in 1_u64.. {
        let session = move |ctx: Context| async move {
            match pause(&ctx, Duration::from_secs(4 + number * 7 % 11)).await {
                Some(()) if number % 4 == 0 => Err("the client has hung up".into()),
                _ => Exit::Ok(()),
            }
        };
        sessions.start_once("session", session).await?;
        if pause(&ctx, Duration::from_secs(2)).await.is_none() {
            break;
        }
    }
    Ok(())
}
