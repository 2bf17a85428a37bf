//! The signals that stop a program, such as SIGINT and SIGTERM.
//!
//! | file | what it is |
//! | --- | --- |
//! | `table` | the signals: names, numbers, platforms; pure |
//! | `listeners` | what listens for a signal, and what a signal leads to; without threads and clocks |
//! | `thread` | the one thread of the process that receives signals and ends the process |
//! | `stop` | stops an application at a signal |
//! | `late` | names what still runs at a second signal |
//! | `unix`, `windows` | the handlers of one platform |
//!
//! # Invariants
//!
//! 1. No handler is installed and no thread is started before the first call of [`signals`].
//! 2. A future listens from the moment it is made until it is dropped, and no other future changes that.
//! 3. The first signal resolves all futures, also those that are made later. If no future exists at
//!    that moment, the signal ends the process.
//! 4. A signal after the first one ends the process, even if every thread of the runtime is blocked, a
//!    subscriber of `tracing` blocks, or a source of [`Listeners::on_second`] blocks or panics.

mod late;
mod listeners;
mod stop;
mod table;
mod thread;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use self::listeners::Listeners;
use self::listeners::Registration;
pub(super) use self::stop::StopSignals;
pub use self::table::OsSignal;
#[cfg(unix)]
use self::unix::Handlers;
#[cfg(windows)]
use self::windows::Handlers;

/// What listens in this process.
static LISTENERS: LazyLock<Arc<Listeners>> = LazyLock::new(Arc::default);

/// Returns a future that resolves at the first signal that stops the program.
///
/// On Unix these are SIGINT (Ctrl-C) and SIGTERM; on Windows, Ctrl-C, Ctrl-Break, the closing of the
/// console window and the shutdown of the system. The output is the signal. Pass the future to
/// [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown), or await it
/// anywhere.
///
/// The future listens from the moment it is made, whether or not it has been polled. Any number of
/// futures can exist at once; the first signal resolves all of them. A future that is made after the
/// first signal resolves at once, because the program is stopping.
///
/// The first call installs the handlers and starts a thread, `verger-signals`, which both last as long
/// as the process. It needs no tokio runtime. While no future exists, a signal does what it would do
/// without handlers: it ends the process, with exit code 130 (SIGINT) or 143 (SIGTERM).
///
/// If the handlers can't be installed, for example because the process has too many open files, an
/// error is logged once, and no future of this process resolves. Signals then end the process as
/// they would without this crate.
///
/// # The second signal
///
/// After the first signal has resolved a future, the next signal ends the process at once, with exit
/// code 130 or 143, even if every thread of the runtime is blocked and whether or not a future still
/// exists. The same signal within 100 ms of the first is ignored: `timeout`, for example, sends one
/// signal both to the process and to its process group.
///
/// One line names the children that were late, of each [`Application`](crate::Application) and each
/// tree in [`with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown): those that the ordered
/// stop waits for, and those that have leaked. If none is known, for example in the stage *closing*,
/// which cancels all children at once, the root is named. The line is logged as an error with the target
/// `verger::shutdown`:
///
/// ```text
/// ERROR verger::shutdown: second SIGTERM: ending at once still_running="app/db, app/ingest/mqtt"
/// ```
///
/// If no subscriber of `tracing` takes this line, it is written to stderr:
///
/// ```text
/// verger: second SIGTERM: ending at once, still running: app/db, app/ingest/mqtt
/// ```
///
/// So stderr shows it once, and a log in JSON stays JSON. The subscriber has to be
/// the global one, because the line is logged on a thread of its own. The process waits for the line for
/// at most a second, but not for a subscriber that writes later, on another thread: such a log may
/// lose the line.
///
/// # Cancel safety
///
/// No signal is lost if the future is dropped: a signal that has come resolves the next future, and a
/// signal that comes while no future exists ends the process.
///
/// # Examples
///
/// ```no_run
/// # async fn serve() {}
/// # async fn f() {
/// // Listens from here on.
/// let stopped = verger::signals();
/// tokio::select! {
///     signal = stopped => eprintln!("stopped by {signal}"),
///     () = serve() => {}
/// }
/// # }
/// ```
pub fn signals() -> Signals {
    let registration = LISTENERS.future();
    Signals { listening: thread::is_running().then_some(registration) }
}

/// A future that resolves at the first signal that stops the program; made by [`signals`].
///
/// Dropping it changes nothing for the other futures. It may be polled again after it has resolved.
///
/// The example of [`signals`] waits for one.
#[must_use = "futures do nothing unless polled"]
pub struct Signals {
    /// `None` if the handlers can't be installed, which was logged.
    listening: Option<Registration>,
}

impl Future for Signals {
    type Output = OsSignal;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OsSignal> {
        self.listening.as_ref().map_or(Poll::Pending, |listening| listening.poll(cx))
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}
