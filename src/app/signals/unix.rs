//! The handlers on Unix.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::OsSignal;

/// A handler for each signal of the table.
pub(super) struct Handlers(Vec<(OsSignal, Signal)>);

impl Handlers {
    /// Installs the handlers, within a tokio runtime.
    pub(super) fn install() -> io::Result<Self> {
        let install = |(name, number)| Ok((name, signal(SignalKind::from_raw(number))?));
        OsSignal::unix().map(install).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal. Of several at once, the first of the table comes first.
    pub(super) async fn next(&mut self) -> OsSignal {
        poll_fn(|cx| {
            for (name, signal) in &mut self.0 {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}
