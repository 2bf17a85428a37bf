//! The signals that ask a program to stop.
//!
//! The first one is a wish, and resolves the future. The second is an order: it ends the process,
//! from a thread of its own, so that it is obeyed even if every thread of the runtime is blocked.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

type Received = Pin<Box<dyn Future<Output = io::Result<Kind>> + Send>>;

/// Which signal it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Interrupt,
    Terminate,
}

impl Kind {
    /// What a shell makes of a program that was ended by the signal: 128 and its number.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// A future that resolves at the first SIGINT (Ctrl-C) or SIGTERM.
///
/// For [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown). From then
/// on a second signal ends the process at once, with exit code 130 or 143.
///
/// If the handlers can't be installed, that is logged, and the future never resolves. On systems
/// other than Unix, only Ctrl-C is heard.
pub fn signals() -> Signals {
    Signals { received: None }
}

/// See [`signals`].
#[must_use = "futures do nothing unless polled"]
pub struct Signals {
    received: Option<Received>,
}

impl Future for Signals {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let received = self.received.get_or_insert_with(|| Box::pin(receive()));
        match received.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(_)) => {
                expect_second();
                Poll::Ready(())
            }
            Poll::Ready(Err(error)) => {
                tracing::error!(target: "verger::shutdown", %error, "can't listen for signals");
                self.received = Some(Box::pin(std::future::pending()));
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

#[cfg(unix)]
async fn receive() -> io::Result<Kind> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(Kind::Interrupt),
        _ = terminate.recv() => Ok(Kind::Terminate),
    }
}

#[cfg(not(unix))]
async fn receive() -> io::Result<Kind> {
    tokio::signal::ctrl_c().await.map(|()| Kind::Interrupt)
}

/// Ends the process at the next signal.
fn expect_second() {
    let listen = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(kind) = runtime.and_then(|runtime| runtime.block_on(receive())) {
            std::process::exit(kind.exit_code());
        }
    };
    let spawned = std::thread::Builder::new().name("verger-signals".to_owned()).spawn(listen);
    if let Err(error) = spawned {
        tracing::error!(target: "verger::shutdown", %error, "can't listen for a second signal");
    }
}
