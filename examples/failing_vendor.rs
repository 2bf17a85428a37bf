//! A vendor that answers 500 for a while, 400 to a wrong request, and finally nothing but 500.
//!
//! ```text
//! app          one_for_one   at most five restarts within a minute
//! ├─ orders                  a 500 ends it, and it is restarted
//! └─ report                  a 400 ends it, and it is not restarted
//! ```
//!
//! A worker returns an error, and its supervisor decides what follows. A 500 may pass, so the worker
//! is restarted. A 400 is a bug of the client, and would be the same after a restart. If the 500
//! doesn't pass, the restart limit is reached, and the program ends and prints the cause.
//!
//! ```text
//! cargo run --example failing_vendor
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use verger::policy::Trigger;
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, Context, ExitReason, Lifecycle, RestartType, RunError, Supervisor, SupervisorBuilder,
    worker_with,
};

#[derive(Debug, thiserror::Error)]
enum VendorError {
    #[error("the vendor refuses our request with {0}")]
    Refused(u16),
    #[error("the vendor fails with {0}")]
    Fails(u16),
    #[error("can't reach the vendor")]
    Unreachable(#[from] io::Error),
}

async fn orders(ctx: Context, vendor: SocketAddr) -> Result<(), VendorError> {
    while let Some(answer) = ctx.run_until_cancelled(get(vendor, "/orders")).await {
        answer?;
        ctx.report_healthy();
        ctx.run_until_cancelled(sleep(Duration::from_millis(10))).await;
    }
    Ok(())
}

async fn report(ctx: Context, vendor: SocketAddr) -> Result<(), VendorError> {
    let sent = ctx.run_until_cancelled(get(vendor, "/report?day=31st+of+June")).await;
    sent.unwrap_or(Ok(()))
}

fn app(vendor: SocketAddr) -> SupervisorBuilder {
    let backoff = Backoff::exponential(Duration::from_millis(20), Duration::from_secs(5));
    let unless_refused = Trigger::from(RestartType::Transient)
        .leave_down_if(|error: &VendorError| matches!(error, VendorError::Refused(_)));
    Supervisor::builder("app")
        .restarts(5, Duration::from_secs(60))
        .defaults(|child| child.backoff(backoff.jitter(0.2)).restart(unless_refused))
        .child(worker_with("orders", vendor, orders))
        .child(worker_with("report", vendor, report))
}

async fn show() -> anyhow::Result<()> {
    let (address, vendor) = start_vendor().await?;
    let app = app(address).build()?.start().await?;
    let log = tokio::spawn(print_events(app.events()));
    let mut states = app.subscribe_status().await?;
    let answered = async |path, status, at_least| {
        let enough = |vendor: &Vendor| vendor.count(path, status) >= at_least;
        vendor.subscribe().wait_for(enough).await.map(drop)
    };
    answered("/orders", 200, 3).await?;

    vendor.send_modify(|vendor| vendor.failures = 3);
    answered("/orders", 500, 3).await?;
    let before = vendor.borrow().count("/orders", 200);
    answered("/orders", 200, before + 3).await?;
    let orders = app.which_child("orders").await?;
    println!("orders: {} after {} restarts", orders.lifecycle, orders.restarts);

    while let Some(change) = states.next().await {
        if (change.path.name(), change.lifecycle) == ("report", Some(Lifecycle::Errored)) {
            break;
        }
    }
    let report = app.which_child("report").await?;
    println!("report: {} after {} restarts", report.lifecycle, report.restarts);
    ensure!(report.lifecycle == Lifecycle::Errored, "the report was restarted");
    ensure!(vendor.borrow().count("/report", 400) == 1, "the report was sent again");

    println!("the vendor is broken for good");
    vendor.send_modify(|vendor| vendor.failures = u32::MAX);
    let ended = app.wait().await;
    log.await?;
    // A `main` that returns the error prints the same.
    let Err(error) = ended else { bail!("the program has ended well") };
    println!("the program ends: {error}");
    ensure!(
        vendor.borrow().count("/orders", 500) == 6,
        "the orders were not restarted exactly five times"
    );
    // The error is the value that the worker returned.
    let RunError::GaveUp { reason: ExitReason::Failed(error), .. } = error else { bail!(error) };
    ensure!(
        matches!(error.downcast_ref(), Some(VendorError::Fails(500))),
        "the error is not the worker's"
    );
    Ok(())
}

/// Prints failures and restarts.
async fn print_events(mut events: Subscription<Event>) {
    while let Some(event) = events.next().await {
        let name = event.path.name();
        match event.kind {
            EventKind::Moved { wait: Some((attempt, wait)), .. } => {
                println!("{name}: attempt {attempt} in {} ms", wait.as_millis());
            }
            EventKind::Moved { reason: Some(reason), .. } => println!("{name}: {reason}"),
            EventKind::GaveUp { .. } => println!("{name}: given up"),
            _ => {}
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}

/// A minimal HTTP client.
async fn get(vendor: SocketAddr, path: &str) -> Result<(), VendorError> {
    let mut socket = TcpStream::connect(vendor).await?;
    socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: vendor\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status.ok_or(io::ErrorKind::InvalidData).map_err(io::Error::from)? {
        200..300 => Ok(()),
        status @ 400..500 => Err(VendorError::Refused(status)),
        status => Err(VendorError::Fails(status)),
    }
}

// --- The vendor ----------------------------------------------------------------------------------

#[derive(Default)]
struct Vendor {
    /// How many of the next requests fail.
    failures: u32,
    /// The number of answers, by path and status.
    answers: BTreeMap<(String, u16), u32>,
}

impl Vendor {
    fn answer(&mut self, request: &str) -> u16 {
        let path = request.split([' ', '?']).nth(1).unwrap_or_default();
        let status = if path == "/report" {
            400
        } else if self.failures > 0 {
            self.failures -= 1;
            500
        } else {
            200
        };
        *self.answers.entry((path.to_owned(), status)).or_default() += 1;
        status
    }

    fn count(&self, path: &str, status: u16) -> u32 {
        self.answers.get(&(path.to_owned(), status)).copied().unwrap_or_default()
    }
}

async fn start_vendor() -> io::Result<(SocketAddr, watch::Sender<Vendor>)> {
    let (listener, vendor) = (TcpListener::bind("127.0.0.1:0").await?, watch::Sender::default());
    let (address, state) = (listener.local_addr()?, vendor.clone());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(respond(BufStream::new(socket), state.clone()));
        }
    });
    Ok((address, vendor))
}

async fn respond(
    mut socket: BufStream<TcpStream>,
    vendor: watch::Sender<Vendor>,
) -> io::Result<()> {
    let (mut request, mut line) = (String::new(), String::new());
    socket.read_line(&mut request).await?;
    while socket.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let mut status = 0;
    vendor.send_modify(|vendor| status = vendor.answer(&request));
    let answer = format!("HTTP/1.1 {status} as it is\r\ncontent-length: 0\r\n\r\n");
    socket.write_all(answer.as_bytes()).await?;
    socket.flush().await
}
