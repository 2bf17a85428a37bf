//! A vendor that answers `429 Too Many Requests`, and clients that respect its `Retry-After`.
//!
//! All calls go through one circuit breaker, which refuses calls after a 429 until the time in
//! `Retry-After` is over. The poller is a child that fails with the 429. It is restarted after that
//! time, without counting against the restart limit; a permanent error leaves it down. Single calls
//! use `retry`.
//!
//! ```text
//! cargo run --example rate_limited --features resilience
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use verger::policy::OnExit;
use verger::resilience::{CallError, CircuitBreaker, Retry, retry};
use verger::{Backoff, Context, Readiness, RestartType, Supervisor, worker_with};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum VendorError {
    #[error("the vendor wants us to wait for {0:?}")]
    TooManyRequests(Duration),
    #[error("the vendor answered {0}")]
    Status(u16),
    #[error("can't reach the vendor")]
    Unreachable(#[from] io::Error),
}

impl VendorError {
    /// The time in the vendor's `Retry-After`.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests(wait) => Some(*wait),
            Self::Status(_) | Self::Unreachable(_) => None,
        }
    }
}

/// How long to wait before the next call, if the error contains it.
fn wait(error: &CallError<VendorError>) -> Option<Duration> {
    match error {
        CallError::Failed(error) => error.retry_after(),
        CallError::Open { retry_in, .. } => Some(*retry_in),
        _ => None,
    }
}

/// Whether the vendor refused the call because of its rate limit.
fn is_refused(error: &CallError<VendorError>) -> bool {
    use CallError::{Failed, HalfOpen, Open};
    matches!(error, Open { .. } | HalfOpen { .. } | Failed(VendorError::TooManyRequests(_)))
}

/// Whether a later call may succeed.
fn is_passing(error: &CallError<VendorError>) -> bool {
    !matches!(error, CallError::Failed(VendorError::Status(_)))
}

#[derive(Clone)]
struct Client {
    vendor: SocketAddr,
    breaker: CircuitBreaker<VendorError>,
}

impl Client {
    fn new(vendor: SocketAddr) -> Self {
        let breaker = CircuitBreaker::new("vendor")
            .max_failures(1)
            .fails_if(|error| matches!(error, VendorError::TooManyRequests(_)))
            .retry_after(VendorError::retry_after);
        Self { vendor, breaker }
    }

    async fn call(&self, path: &str) -> Result<(), CallError<VendorError>> {
        self.breaker.call(|| get(self.vendor, path)).await
    }
}

async fn poller(ctx: Context, client: Client) -> Result<(), CallError<VendorError>> {
    for polls in 1_u32.. {
        let Some(result) = ctx.run_until_cancelled(client.call("/prices")).await else { break };
        result?;
        ctx.ready();
        ctx.report_healthy();
        ctx.set_status(format!("{polls} polls"));
        ctx.run_until_cancelled(sleep(Duration::from_millis(10))).await;
    }
    Ok(())
}

async fn show() -> anyhow::Result<()> {
    let (vendor, seconds) = start_vendor().await?;
    let before = Instant::now();
    while before.elapsed() < SECOND {
        let _ = get(vendor, "/prices").await;
        sleep(Duration::from_millis(5)).await;
    }
    let hammered = std::mem::take(&mut *seconds.lock().expect("the lock is never poisoned"));
    println!("without verger, by second: {hammered:?}");

    let client = Client::new(vendor);
    // For errors without a `Retry-After`.
    let backoff = Backoff::exponential(SECOND / 20, 10 * SECOND).jitter(0.1);
    let poller = worker_with("poller", client.clone(), poller)
        .readiness(Readiness::Signal)
        .backoff(backoff.clone())
        .retry_after(wait)
        .restart(RestartType::OnAbnormal)
        // Rate limits don't count against the restart limit.
        .on_error(is_refused, OnExit::RestartUncharged)
        .restart_if(is_passing);
    let app = Supervisor::builder("app").restarts(1, 60 * SECOND).child(poller);
    let app = app.build()?.start().await?;

    for order in 1..=3 {
        // Long enough for the poller to reach the vendor's rate limit.
        sleep(SECOND / 2).await;
        let policy = Retry::with(backoff.clone())
            .attempts(5)
            .retry_after(|error, _attempt| wait(error))
            .again_if(|error, _attempt| is_passing(error))
            .on_failure(move |error, attempt, wait| {
                let wait = wait.unwrap_or_default().as_millis();
                println!("order {order}, attempt {attempt}: {error}; the next in {wait} ms");
            });
        let path = format!("/orders/{order}");
        retry(policy, || client.call(&path)).await?;
    }
    let poller = app.which_child("poller").await?;
    let supervised = seconds.lock().expect("the lock is never poisoned").clone();
    println!("3 of 3 orders are placed; the poller runs as incarnation {}", poller.incarnation);
    println!("with verger, by second: {supervised:?}");
    let most = |seconds: &[Second]| seconds.iter().map(|second| second.refused).max();
    ensure!(most(&supervised) <= Some(3), "the vendor refused more than three calls in a second");
    ensure!(
        most(&hammered) > most(&supervised),
        "the vendor refused as many calls as without verger"
    );
    ensure!((2..=9).contains(&poller.incarnation), "the poller doesn't respect `Retry-After`");
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(30), show()).await.context("the example takes too long")?
}

/// A minimal HTTP client.
async fn get(vendor: SocketAddr, path: &str) -> Result<(), VendorError> {
    let mut socket = TcpStream::connect(vendor).await?;
    socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: vendor\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status.ok_or(io::ErrorKind::InvalidData).map_err(io::Error::from)? {
        200 => Ok(()),
        429 => {
            let after = answer.lines().find_map(|line| line.strip_prefix("retry-after: "));
            let seconds = after.and_then(|after| after.parse().ok()).unwrap_or(1);
            Err(VendorError::TooManyRequests(Duration::from_secs(seconds)))
        }
        other => Err(VendorError::Status(other)),
    }
}

// --- The vendor ----------------------------------------------------------------------------------

/// The vendor's counters of one second.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    served: u32,
    refused: u32,
}

/// Starts a vendor that serves ten requests per second, and refuses all further ones.
async fn start_vendor() -> io::Result<(SocketAddr, Arc<Mutex<Vec<Second>>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, seconds) = (listener.local_addr()?, Arc::<Mutex<Vec<Second>>>::default());
    let counted = Arc::clone(&seconds);
    tokio::spawn(async move {
        let mut since = None::<Instant>;
        while let Ok((socket, _)) = listener.accept().await {
            let answer = {
                let mut seconds = counted.lock().expect("the lock is never poisoned");
                if seconds.is_empty() || since.is_none_or(|since| since.elapsed() >= SECOND) {
                    since = Some(Instant::now());
                    seconds.push(Second::default());
                }
                let second = seconds.last_mut().expect("one was pushed");
                let refuse = second.served == 10;
                *if refuse { &mut second.refused } else { &mut second.served } += 1;
                if refuse { "429 Too Many Requests\r\nretry-after: 1" } else { "200 OK" }
            };
            tokio::spawn(respond(socket, answer));
        }
    });
    Ok((address, seconds))
}

async fn respond(socket: TcpStream, answer: &str) -> io::Result<()> {
    let mut socket = BufStream::new(socket);
    let mut line = String::new();
    while socket.read_line(&mut line).await? > 2 {
        line.clear();
    }
    socket.write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await?;
    socket.flush().await
}
