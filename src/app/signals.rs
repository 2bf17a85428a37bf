//! The signals that ask a program to stop.
//!
//! The first one is a wish, and resolves the future. The second is an order: it ends the process.
//! Both are heard by a thread of their own, so that the second is obeyed even if every thread of the
//! runtime is blocked, whenever that began.

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

/// A signal that comes again within this time is the same one: `timeout`, a shell or a terminal may
/// send it to the process and to the group it is in. Nobody types that fast.
const ECHO: Duration = Duration::from_millis(100);

/// Which signal it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Interrupt,
    #[cfg(unix)]
    Terminate,
}

impl Kind {
    /// What a shell makes of a program that was ended by the signal: 128 and its number.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            #[cfg(unix)]
            Self::Terminate => 143,
        }
    }
}

/// A future that resolves at the first SIGINT (Ctrl-C) or SIGTERM.
///
/// For [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown). A second
/// signal ends the process at once, with exit code 130 or 143, even if the first could not be taken
/// notice of because every thread of the runtime is blocked. The same signal again within 100 ms is
/// no second one: `timeout`, for example, sends it to the process and to its group.
///
/// Listens from the first poll on, for good: once the future was dropped, because the tree ended by
/// itself, the next signal ends the process as it would have without it. If the handlers can't be
/// installed, that is logged, and the future never resolves. On systems other than Unix, only Ctrl-C
/// is heard.
pub fn signals() -> Signals {
    Signals { state: State::New }
}

/// See [`signals`].
#[must_use = "futures do nothing unless polled"]
pub struct Signals {
    state: State,
}

enum State {
    New,
    Listening(oneshot::Receiver<()>),
    /// It can't listen, and has said so.
    Deaf,
}

impl Future for Signals {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let State::New = self.state {
            self.state = match listen() {
                Ok(first) => State::Listening(first),
                Err(error) => {
                    tracing::error!(target: "verger::shutdown", %error, "can't listen for signals");
                    State::Deaf
                }
            };
        }
        match &mut self.state {
            State::Listening(first) => match Pin::new(first).poll(cx) {
                Poll::Ready(Ok(())) => Poll::Ready(()),
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            State::New | State::Deaf => Poll::Pending,
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// Starts the thread that tells of the first signal and ends the process at the second. When this
/// returns, signals are caught.
fn listen() -> io::Result<oneshot::Receiver<()>> {
    let (first, told) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runtime = Arc::new(runtime);
    match start(&runtime, first) {
        Ok(()) => Ok(told),
        Err(error) => {
            // A runtime must not be dropped where another one runs.
            if let Some(runtime) = Arc::into_inner(runtime) {
                runtime.shutdown_background();
            }
            Err(error)
        }
    }
}

fn start(runtime: &Arc<Runtime>, first: oneshot::Sender<()>) -> io::Result<()> {
    let within = runtime.enter();
    let listener = Listener::install()?;
    drop(within);
    let runtime = Arc::clone(runtime);
    let thread = thread::Builder::new().name("verger-signals".to_owned());
    thread.spawn(move || runtime.block_on(hear(first, listener)))?;
    Ok(())
}

async fn hear(first: oneshot::Sender<()>, mut listener: Listener) {
    let kind = listener.next().await;
    // If nobody waits for it any more, it does what it would have done without us.
    if first.send(()).is_err() {
        std::process::exit(kind.exit_code());
    }
    let other = async {
        loop {
            let next = listener.next().await;
            if next != kind {
                break next;
            }
        }
    };
    let last = match tokio::time::timeout(ECHO, other).await {
        Ok(other) => other,
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

    async fn next(&mut self) -> Kind {
        tokio::select! {
            _ = self.interrupt.recv() => Kind::Interrupt,
            _ = self.terminate.recv() => Kind::Terminate,
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

    async fn next(&mut self) -> Kind {
        self.0.recv().await;
        Kind::Interrupt
    }
}
