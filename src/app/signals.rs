//! The signals that stop a program: SIGINT and SIGTERM.
//!
//! # Invariants
//!
//! 1. No handler is installed before the future is first polled.
//! 2. The first signal resolves the future. The second one ends the process.
//! 3. A thread of its own receives the signals, so that the second one ends the process even if
//!    every thread of the runtime is blocked.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::stop_cause::StopCause;
use crate::panic::CatchWakerPanic;
use crate::subscriber;

/// A signal that repeats within this time is ignored: `timeout`, a shell or a terminal may send one
/// signal both to the process and to its process group.
const ECHO: Duration = Duration::from_millis(100);

/// A signal of the operating system that stops the program.
///
/// The output of [`signals`]. As a [`StopCause`], and when it is displayed, it is the name of the
/// signal: `SIGINT` or `SIGTERM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OsSignal {
    /// SIGINT: a user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, such as systemd or Kubernetes, stops the program.
    ///
    /// Received on Unix only.
    Terminate,
}

impl OsSignal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Returns the exit code of a program that the signal ended: 128 and the signal's number.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl fmt::Display for OsSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl StopCause for OsSignal {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.name())
    }
}

/// Returns a future that resolves at the first SIGINT (Ctrl-C) or SIGTERM.
///
/// Pass it to [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown), or
/// await it anywhere. Its output is the signal.
///
/// A second signal ends the process at once, with exit code 130 or 143, even if every thread of the
/// runtime is blocked. The same signal within 100 ms of the first is ignored: `timeout`, for
/// example, sends one signal both to the process and to its process group.
///
/// The handlers are installed at the first poll, and stay installed. After the future is dropped,
/// for example because the tree ended by itself, the next signal ends the process. If the handlers
/// can't be installed, an error is logged and the future never resolves. On systems other than
/// Unix, only Ctrl-C is received.
///
/// # Cancel safety
///
/// A signal that arrives before the future is dropped, but after its last poll, is lost. It ends
/// neither the future nor the process; the next signal ends the process.
pub fn signals() -> Signals {
    Signals { state: State::New }
}

/// A future that resolves at the first SIGINT or SIGTERM; made by [`signals`].
#[must_use = "futures do nothing unless polled"]
pub struct Signals {
    state: State,
}

enum State {
    New,
    Listening(CatchWakerPanic<oneshot::Receiver<OsSignal>>),
    /// The handlers can't be installed, which was logged.
    Failed,
}

impl Future for Signals {
    type Output = OsSignal;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OsSignal> {
        if let State::New = self.state {
            self.state = match listen() {
                Ok(first) => State::Listening(CatchWakerPanic::new(first)),
                Err(error) => {
                    subscriber::error!(target: "verger::shutdown", %error, "can't listen for signals");
                    State::Failed
                }
            };
        }
        match &mut self.state {
            State::Listening(first) => match Pin::new(first).poll(cx) {
                Poll::Ready(Ok(signal)) => Poll::Ready(signal),
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            State::New | State::Failed => Poll::Pending,
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// Installs the handlers and starts the thread that receives the signals.
fn listen() -> io::Result<oneshot::Receiver<OsSignal>> {
    let (first, received) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runtime = Arc::new(runtime);
    match start(&runtime, first) {
        Ok(()) => Ok(received),
        Err(error) => {
            // Dropping a runtime inside of another one panics.
            if let Some(runtime) = Arc::into_inner(runtime) {
                runtime.shutdown_background();
            }
            Err(error)
        }
    }
}

fn start(runtime: &Arc<Runtime>, first: oneshot::Sender<OsSignal>) -> io::Result<()> {
    let within = runtime.enter();
    let listener = Listener::install()?;
    drop(within);
    let runtime = Arc::clone(runtime);
    let thread = thread::Builder::new().name("verger-signals".to_owned());
    thread.spawn(move || runtime.block_on(receive(first, listener)))?;
    Ok(())
}

/// Sends the first signal, and ends the process at the second.
async fn receive(first: oneshot::Sender<OsSignal>, mut listener: Listener) {
    let signal = listener.next().await;
    // The future was dropped, so the signal does what it would do without a handler.
    if first.send(signal).is_err() {
        std::process::exit(signal.exit_code());
    }
    let different = async {
        loop {
            let next = listener.next().await;
            if next != signal {
                break next;
            }
        }
    };
    let last = match tokio::time::timeout(ECHO, different).await {
        Ok(different) => different,
        Err(_) => listener.next().await,
    };
    std::process::exit(last.exit_code());
}

#[cfg(unix)]
struct Listener {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Listener {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> OsSignal {
        tokio::select! {
            _ = self.interrupt.recv() => OsSignal::Interrupt,
            _ = self.terminate.recv() => OsSignal::Terminate,
        }
    }
}

#[cfg(windows)]
struct Listener(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Listener {
    fn install() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> OsSignal {
        self.0.recv().await;
        OsSignal::Interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_cause_by_its_name() {
        for (signal, name) in [(OsSignal::Interrupt, "SIGINT"), (OsSignal::Terminate, "SIGTERM")] {
            assert_eq!(signal.cause(), name);
            assert_eq!(signal.to_string(), name);
        }
    }
}
