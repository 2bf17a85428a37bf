//! A lively tree with a console: crash loops, a slow stop, a mailbox that fills, children that come and go, and
//! dead letters.
//!
//! ```text
//! cargo run --example console --features console,mailbox                    http://127.0.0.1:7007
//! cargo run --example console --features console,mailbox -- 0               any port
//! cargo run --example console --features console,mailbox -- --children 10000
//! cargo run --example console --features console,mailbox -- --churn 3000    and as many short lives, as fast as it can
//! ```
//!
//! It ends at Ctrl-C, or when an operator stops the tree in the console.

#![expect(clippy::print_stdout, reason = "it says where the console is")]

use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::sleep;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};
use verger::console::Console;
use verger::dead_letter::DeadLetterStore;
use verger::log_lines::LogLines;
use verger::mailbox::{Address, Inbox, Overflow};
use verger::{
    Application, Backoff, Context, DynamicSupervisor, Exit, Shutdown, Supervisor,
    SupervisorBuilder, mailbox_with_capacity, worker, worker_with_mailbox,
};

/// The token of the actions. Leave it out in a real program, so that it is random, and logged.
const TOKEN: &str = "example";

/// A reading of a sensor.
struct Reading(u32);

/// Runs until it is stopped.
async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

/// Connects at once, and sets its status.
async fn db(ctx: Context) {
    for used in (1..=10).cycle() {
        ctx.set_status(format!("pool {used}/10"));
        if ctx.run_until_cancelled(sleep(Duration::from_secs(3))).await.is_none() {
            return;
        }
    }
}

/// Loses its connection every few seconds.
async fn mqtt(ctx: Context) -> Exit {
    tracing::info!(broker = "mqtt.example.com:1883", "connected");
    let session = Duration::from_secs(2 + u64::from(ctx.incarnation() % 5));
    match ctx.run_until_cancelled(sleep(session)).await {
        Some(()) => Err("connection reset by peer".into()),
        None => Ok(()),
    }
}

/// Panics, with a text that a page has to escape.
async fn parser(ctx: Context) -> Exit {
    if ctx.run_until_cancelled(sleep(Duration::from_secs(7))).await.is_some() {
        tracing::warn!(line = "<script>alert(1)</script>", "unexpected input");
        panic!("unexpected `<script>alert(1)</script>` \u{1b}[31mat line 3\nof the input");
    }
    Ok(())
}

/// Fails as soon as it is started.
async fn vendor(_: Context) -> Exit {
    Err("HTTP 503 from https://vendor.example.com/v1/rates".into())
}

/// Takes 15 s to stop.
async fn uploader(ctx: Context) {
    ctx.cancelled().await;
    sleep(Duration::from_secs(15)).await;
}

/// Reads slower than the sensor sends, so that its mailbox fills.
async fn writer(ctx: Context, mut inbox: Inbox<Reading>) {
    while let Some(Some(Reading(value))) = ctx.run_until_cancelled(inbox.recv()).await {
        tracing::debug!(value, "written");
        sleep(Duration::from_millis(400)).await;
    }
}

/// Sends to the writer.
async fn sensor(ctx: Context, writer: Address<Reading>) -> Exit {
    for value in 0.. {
        let _ = writer.try_send(Reading(value));
        if ctx.run_until_cancelled(sleep(Duration::from_millis(350))).await.is_none() {
            break;
        }
    }
    Ok(())
}

/// Accepts a connection every other second. Some of them fail.
async fn listener(ctx: Context) -> Exit {
    for number in 0_u32.. {
        let connection = move |ctx: Context| async move {
            let open = Duration::from_secs(3 + u64::from(number % 7));
            match ctx.run_until_cancelled(sleep(open)).await {
                Some(()) if number % 5 == 4 => Err("broken pipe".into()),
                _ => Exit::Ok(()),
            }
        };
        ctx.parent().supervisor("app/http/conns").await?.start_once("conn", connection).await?;
        if ctx.run_until_cancelled(sleep(Duration::from_secs(2))).await.is_none() {
            break;
        }
    }
    Ok(())
}

/// Fails once, before it starts as many short lives as it is told to, as quickly as it can.
async fn churn(ctx: Context, lives: usize) -> Exit {
    if ctx.incarnation() == 1 {
        return Err("relation \"invoices\" doesn't exist: run the migrations".into());
    }
    let lived = ctx.parent().supervisor("app/churn/lives").await?;
    for number in 0..lives {
        lived.start_once("life", async |_: Context| Exit::Ok(())).await?;
        ctx.set_status(format!("{} of {lives} lives", number + 1));
    }
    ctx.cancelled().await;
    Ok(())
}

fn tree(children: usize, lives: usize, store: &DeadLetterStore) -> SupervisorBuilder {
    let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(20));
    let (address, mailbox) = mailbox_with_capacity(5);
    let mailbox = mailbox.overflow(Overflow::DropOldest);
    let ingest = Supervisor::builder("ingest")
        .restarts(30, Duration::from_secs(60))
        .child(worker("mqtt", mqtt).backoff(backoff.clone()))
        .child(worker("parser", parser).requires("mqtt"))
        .child(worker_with_mailbox("writer", mailbox, writer))
        .child(worker("sensor", move |ctx| sensor(ctx, address.clone())));
    let http = Supervisor::builder("http")
        .child(DynamicSupervisor::builder("conns"))
        .child(worker("listener", listener));
    let jobs = Supervisor::builder("jobs")
        .restarts(20, Duration::from_secs(60))
        .child(worker("uploader", uploader).shutdown(Shutdown::Timeout(Duration::from_secs(20))))
        .child(worker("vendor", vendor).backoff(backoff));
    let crowd = (0..children).fold(Supervisor::builder("crowd"), |crowd, number| {
        crowd.child(worker(format!("idle-{number}"), idle))
    });
    let app = Supervisor::builder("app").dead_letter_store(store);
    let app = app.child(worker("db", db)).child(ingest).child(http).child(jobs);
    let app = if children > 0 { app.child(crowd) } else { app };
    if lives == 0 {
        return app;
    }
    let soon = Backoff::constant(Duration::from_millis(100));
    app.child(
        Supervisor::builder("churn")
            .child(DynamicSupervisor::builder("lives"))
            .child(worker("invoices", move |ctx| churn(ctx, lives)).backoff(soon)),
    )
}

#[tokio::main]
async fn main() -> ExitCode {
    let (mut port, mut children, mut lives) = (7007_u16, 0_usize, 0_usize);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = match argument.as_str() {
            "--children" | "--churn" => arguments.next(),
            _ => Some(argument.clone()),
        };
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            println!("usage: console [PORT] [--children N] [--churn N]");
            return ExitCode::from(2);
        };
        match argument.as_str() {
            "--children" => children = number,
            "--churn" => lives = number,
            _ => port = u16::try_from(number).unwrap_or(0),
        }
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn,console=info".into());
    let lines = LogLines::new();
    tracing_subscriber::registry()
        .with(fmt::layer().with_ansi(std::io::stdout().is_terminal()).with_filter(filter))
        .with(lines.layer())
        .init();

    let listener = match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => listener,
        Err(error) => {
            println!("can't listen on port {port}: {error}; choose another one, or 0");
            return ExitCode::from(2);
        }
    };
    if let Ok(address) = listener.local_addr() {
        println!("console: http://{address}/#token={TOKEN}");
    }
    let store = DeadLetterStore::ring(500);
    let console = Console::new().allow_actions(true).token(TOKEN);
    let console = console.log_lines(&lines).dead_letter_store(&store);
    Application::new(tree(children, lives, &store)).console_on(listener, console).run().await
}
