//! The signals that stop a program, such as SIGINT and SIGTERM.
//!
//! | file | what it is |
//! | --- | --- |
//! | `listeners` | what listens for a signal, and what a signal leads to; without threads and clocks |
//! | `thread` | the one thread of the process that receives signals and ends the process |
//! | `unix`, `windows` | the handlers of one platform |
//!
//! # Invariants
//!
//! 1. No handler is installed and no thread is started before the first call of [`signals`].
//! 2. A future listens from the moment it is made until it is dropped, and no other future changes that.
//! 3. The first signal resolves all futures, also those that are made later. If no future exists at
//!    that moment, the signal ends the process.
//! 4. SIGHUP has no effect here while a [`HangupClaim`] exists, or if it was ignored when the handlers were installed.
//! 5. A signal after the first one ends the process, even if every thread of the runtime is blocked, a
//!    subscriber of `tracing` blocks, or a source of [`Listeners::on_second`] blocks or panics.

mod listeners;
mod thread;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use self::listeners::{Listeners, SignalRegistration};
#[cfg(unix)]
use self::unix::Handlers;
#[cfg(windows)]
use self::windows::Handlers;
use crate::app::companion::{Companion, RunStart};
use crate::app::run::{StopCause, long_polls};
use crate::child::PollWatch;
use crate::path::Path;
use crate::runtime::SupervisorShared;

/// What listens in this process.
static LISTENERS: LazyLock<Arc<Listeners>> = LazyLock::new(Arc::default);

/// Returns a future that resolves at the first signal that stops the program.
///
/// On Unix these are SIGINT (Ctrl-C), SIGTERM and SIGHUP (a terminal was closed); on Windows, Ctrl-C, Ctrl-Break, the closing of the
/// console window and the shutdown of the system. The output is the signal. Pass the future to
/// [`Supervisor::with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown), or await it
/// anywhere.
///
/// The future listens from the moment it is made, whether or not it has been polled. Any number of
/// futures can exist at the same time; the first signal resolves all of them. A future that is made after the
/// first signal resolves immediately, because the program is stopping.
///
/// SIGHUP is left alone if it was ignored when the first future was made (on Linux), as `nohup` does, and while it
/// reloads the configuration of an [`Application`](crate::Application).
///
/// The first call installs the handlers and starts a thread, `verger-signals`, which both last as long
/// as the process. It needs no tokio runtime. While no future exists, a signal does what it would do
/// without handlers: it ends the process, with exit code 129 (SIGHUP), 130 (SIGINT) or 143 (SIGTERM).
///
/// If the handlers can't be installed, for example because the process has too many open files, an
/// error is logged once, and no future of this process resolves. Signals then end the process as
/// they would without this crate.
///
/// # The second signal
///
/// After the first signal has resolved a future, the next signal ends the process immediately, with exit
/// code 129, 130 or 143, even if every thread of the runtime is blocked and whether or not a future still
/// exists. Signals within 100 ms of the first are ignored, because they are taken for the same one: `timeout`, for
/// example, sends one signal both to the process and to its process group, and some launchers send a different one.
///
/// One line names the children that were late, of each [`Application`](crate::Application) and each
/// tree in [`with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown): those that the ordered
/// stop waits for, those that have leaked, and those that have blocked a thread for more than a second, as far as
/// [`Application::run`](crate::Application::run) watches for that. If none is known, for example in the stage *closing*,
/// which cancels all children at the same time, the root is named. The line is logged as an error with the target
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
    listening: Option<SignalRegistration>,
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

/// A signal of the operating system that stops the program.
///
/// The output of [`signals`](crate::signals). As a [`StopCause`], and when it is displayed, it is the
/// name of the signal, such as `SIGTERM`.
///
/// | signal | name | received on | exit code of a second one |
/// | --- | --- | --- | ---: |
/// | `Hangup` | `SIGHUP` | Unix | 129 |
/// | `Interrupt` | `SIGINT` | Unix, Windows | 130 |
/// | `Terminate` | `SIGTERM` | Unix | 143 |
/// | `Break` | `CTRL_BREAK` | Windows | 149 |
/// | `Close` | `CTRL_CLOSE` | Windows | 143 |
/// | `Shutdown` | `CTRL_SHUTDOWN` | Windows | 143 |
///
/// ```
/// use verger::app::OsSignal;
/// use verger::signals;
///
/// # async fn f() {
/// match signals().await {
///     OsSignal::Interrupt => println!("stopped by Ctrl-C"),
///     signal => println!("stopped by {signal}"),
/// }
/// # }
/// # drop(f);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OsSignal {
    /// SIGHUP: the terminal of the program was closed.
    ///
    /// Received on Unix only.
    Hangup,
    /// SIGINT: a user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, such as systemd or Kubernetes, stops the program.
    ///
    /// Received on Unix only.
    Terminate,
    /// A user pressed Ctrl-Break.
    ///
    /// Received on Windows only.
    Break,
    /// The console window of the program was closed.
    ///
    /// Received on Windows only, which ends the program a few seconds later in any case.
    Close,
    /// The system shuts down.
    ///
    /// Received on Windows only, by services, which have little time left.
    Shutdown,
}

/// A row of the table.
struct Row {
    signal: OsSignal,
    name: &'static str,
    /// The number in C's `signal.h`. On Windows, what asks a program to terminate is a SIGTERM.
    number: i32,
    #[cfg_attr(windows, expect(dead_code, reason = "Windows has a function for each signal"))]
    unix: bool,
}

const fn row(signal: OsSignal, name: &'static str, number: i32, unix: bool) -> Row {
    Row { signal, name, number, unix }
}

const TABLE: [Row; 6] = [
    row(OsSignal::Hangup, "SIGHUP", 1, true),
    row(OsSignal::Interrupt, "SIGINT", 2, true),
    row(OsSignal::Terminate, "SIGTERM", 15, true),
    row(OsSignal::Break, "CTRL_BREAK", 21, false),
    row(OsSignal::Close, "CTRL_CLOSE", 15, false),
    row(OsSignal::Shutdown, "CTRL_SHUTDOWN", 15, false),
];

impl OsSignal {
    /// Returns the signals of Unix, with their numbers.
    #[cfg(unix)]
    fn unix() -> impl Iterator<Item = (Self, i32)> {
        TABLE.iter().filter(|row| row.unix).map(|row| (row.signal, row.number))
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.signal == self).expect("every signal has a row")
    }

    fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the exit code of a program that the signal ended: 128 and the signal's number.
    fn exit_code(self) -> i32 {
        128 + self.row().number
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

/// How many claims exist.
static HANGUP_CLAIMS: AtomicUsize = AtomicUsize::new(0);

/// Until it is dropped, SIGHUP stops no tree of this process.
///
/// For a program that handles SIGHUP itself, for example with `tokio::signal::unix`. An [`Application`](crate::Application)
/// whose configuration is reloaded by signals has a claim of this kind.
///
/// ```
/// use verger::HangupClaim;
///
/// // SIGHUP reopens the log file of this program.
/// let claim = HangupClaim::new();
/// # drop(claim);
/// ```
#[must_use = "SIGHUP stops the tree again when it is dropped"]
#[derive(Debug)]
pub struct HangupClaim(());

impl HangupClaim {
    /// Claims SIGHUP.
    #[expect(clippy::new_without_default, reason = "a claim that nobody keeps has no effect")]
    pub fn new() -> Self {
        HANGUP_CLAIMS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for HangupClaim {
    fn drop(&mut self) {
        HANGUP_CLAIMS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a signal stops nothing, because it is claimed.
fn is_claimed(signal: OsSignal) -> bool {
    signal == OsSignal::Hangup && HANGUP_CLAIMS.load(Ordering::Relaxed) > 0
}

/// What signals lead to beside the stop of the tree; the program has the future that stops it.
#[derive(Default)]
pub(super) struct StopSignals(Vec<SignalRegistration>);

impl Companion for StopSignals {
    fn start(&mut self, run: &mut RunStart<'_>) {
        let root = Arc::clone(&run.root.shared);
        self.0.push(LISTENERS.on_second(Arc::new(move || still_running(&root))));
        // A signal that stops something else in the process says nothing about this tree.
        if run.program.on.iter().any(|(future, _)| *future == TypeId::of::<Signals>()) {
            let calls = run.on_signal.drain(..);
            let register = |call: Box<_>| LISTENERS.on_first(Arc::new(move |_| call()));
            self.0.extend(calls.map(register));
        }
    }
}

/// Returns what the stop of a tree waits for: the children that block a thread, as far as that is watched, and the
/// children that its supervisors wait for. If no child is known, the root.
fn still_running(root: &SupervisorShared) -> Vec<Path> {
    let mut paths = long_polls(&PollWatch::new());
    paths.extend(root.still_running());
    if paths.is_empty() {
        paths.push(root.path().clone());
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::OsSignal::*;
    use super::*;

    #[test]
    fn every_signal_has_its_row() {
        let all = [Hangup, Interrupt, Terminate, Break, Close, Shutdown];
        let codes = all.map(|signal| (signal.name(), signal.exit_code()));
        let expected = [
            ("SIGHUP", 129),
            ("SIGINT", 130),
            ("SIGTERM", 143),
            ("CTRL_BREAK", 149),
            ("CTRL_CLOSE", 143),
            ("CTRL_SHUTDOWN", 143),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_signal_is_a_cause_by_its_name() {
        for Row { signal, name, .. } in TABLE {
            assert_eq!(signal.cause(), name);
            assert_eq!(signal.to_string(), name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_signals_of_unix_are_these() {
        let unix: Vec<_> = OsSignal::unix().collect();
        assert_eq!(unix, [(Hangup, 1), (Interrupt, 2), (Terminate, 15)]);
    }
}
