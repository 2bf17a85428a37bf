//! Built-in clients, which stand for external senders in a demonstration.
//!
//! A client sends its lines over TCP, as external senders do. When its connection breaks, it sends
//! the lines without an answer again over a new one. A broken connection is not a failure of the
//! client.
//!
//! The clients of [`kills`](crate::kills) have the same [`Conversation`], from another process.
//!
//! The names of the built-in clients are reserved for connections from their [`Sockets`].

pub(crate) mod text;

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::debug;
use verger::{Context, Exit};

use crate::app::App;
use crate::ingest::pace::Pace;
use crate::ledger::Ledger;

/// How many lines each client sends.
pub(crate) const LINES: u64 = 1_000;

/// How many lines a client sends before it waits for an answer.
pub(crate) const WINDOW: usize = 50;

/// How long an answer may take before the client reconnects.
const PATIENCE: Duration = Duration::from_secs(30);

/// The wait before a new connection.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// The beginning of their names, which no other sender may use.
pub(crate) const PREFIX: &str = "builtin-";

/// The local addresses of the built-in clients' sockets. No other socket of this machine can have
/// one of them.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Mutex<HashSet<SocketAddr>>);

/// The address of an open socket of a built-in client.
struct Entry<'a>(&'a Sockets, SocketAddr);

impl Sockets {
    pub(crate) fn contains(&self, address: SocketAddr) -> bool {
        self.lock().contains(&address)
    }

    fn enter(&self, address: SocketAddr) -> Entry<'_> {
        self.lock().insert(address);
        Entry(self, address)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Returns the name of the client with this index, which is the source of its lines.
pub(crate) fn name(index: usize) -> String {
    format!("{PREFIX}{}", index + 1)
}

/// Returns the index of the client with this name, whether or not it is part of this run.
pub(crate) fn index(name: &str) -> Option<usize> {
    let number = name.strip_prefix(PREFIX)?.parse::<usize>().ok()?;
    number.checked_sub(1).filter(|&index| self::name(index) == name)
}

pub(crate) async fn client(ctx: Context, app: Arc<App>, index: usize) -> Exit {
    let address = reachable(app.listen.local_addr()?);
    while app.ledger.client_answered(index) < LINES {
        match ctx.run_until_cancelled(converse(&ctx, &app, index, address)).await {
            None => break,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                debug!(client = index + 1, %error, "connecting again");
                ctx.run_until_cancelled(sleep(PAUSE)).await;
            }
        }
    }
    Ok(())
}

/// Connects, and sends the lines without an answer.
async fn converse(ctx: &Context, app: &App, index: usize, address: SocketAddr) -> io::Result<()> {
    let mut socket = TcpStream::connect(address).await?;
    // Dropped before the socket, so that the address is never that of a later one.
    let _entry = app.builtin.enter(socket.local_addr()?);
    let (name, rate) = (name(index), app.options.rate);
    let conversation = Conversation { name, index, rate, ledger: &app.ledger };
    conversation.run(ctx, &mut socket, |_answered| LINES).await
}

/// What a client says on a connection: the lines that were not acknowledged on earlier ones.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    /// The source of the lines.
    pub(crate) name: String,
    /// The index that determines the texts.
    pub(crate) index: usize,
    /// Lines per second; 0 is no limit.
    pub(crate) rate: u32,
    /// Where the acknowledgements are recorded.
    pub(crate) ledger: &'a Ledger,
}

impl Conversation<'_> {
    /// Sends the lines without an answer, up to the line that `last` returns for the number of
    /// acknowledged lines.
    pub(crate) async fn run(
        &self,
        ctx: &Context,
        socket: &mut TcpStream,
        mut last: impl FnMut(u64) -> u64,
    ) -> io::Result<()> {
        let Self { ref name, index, rate, ledger } = *self;
        socket.set_nodelay(true)?;
        let (receiver, mut sender) = socket.split();
        let mut answers = BufReader::new(receiver);
        let mut pace = Pace::new(rate);
        loop {
            let answered = ledger.client_answered(index);
            let end = last(answered).min(answered + pace.stride(WINDOW) as u64);
            let window = answered + 1..=end;
            if window.is_empty() {
                return Ok(());
            }
            pace.wait(window.clone().count()).await;
            let mut lines = Vec::new();
            for n in window.clone() {
                lines.extend_from_slice(format!("{name}/{n} ").as_bytes());
                lines.append(&mut text::text(index, n));
                lines.push(b'\n');
            }
            sender.write_all(&lines).await?;
            for n in window {
                let expected = format!("ok {name}/{n}\n");
                timeout(PATIENCE, expect_answer(&mut answers, &expected)).await??;
                ledger.client_acknowledged(index, n);
            }
            ctx.set_status(format!("{end} answered"));
        }
    }
}

/// Reads one answer, and checks that it is the expected one.
async fn expect_answer(
    answers: &mut (impl AsyncBufReadExt + Unpin),
    expected: &str,
) -> io::Result<()> {
    let mut answer = String::new();
    match answers.read_line(&mut answer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ if answer == expected => Ok(()),
        _ => Err(io::Error::other(format!("answered `{}`", answer.trim_end()))),
    }
}

/// Returns the address to connect to; loopback if the listener is bound to all addresses.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_index_and_no_other_name_is() {
        assert!((0..300).all(|i| index(&name(i)) == Some(i)));
        for other in ["file", "builtin-", "builtin-0", "builtin-01", "builtin-1x", "built-1"] {
            assert_eq!(index(other), None, "{other}");
        }
    }
}
