//! The thread that ends the process if the program doesn't.
//!
//! A child that blocks its thread keeps its runtime, and so `main`, from ending, and if all threads of a
//! runtime are blocked, not even a deadline inside of it passes. So the deadline of a termination is kept
//! outside of the runtime, on the clock of the machine.
//!
//! # Invariants
//!
//! 1. A later deadline doesn't replace an earlier one. The end of the application replaces all.
//! 2. Once the deadline has passed, nothing that logs or looks at the tree keeps the process from ending.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::{later, now};
use crate::path::Path;
use crate::subscriber;

/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_millis(500);

/// What the thread is told.
///
/// Times are lengths, because the clock of a runtime may be paused.
enum Message {
    /// Exit with 3 after this time.
    Deadline(Duration),
    /// The application has ended with this code. Exit after this time.
    Finished(Duration, u8),
}

/// See the [module](self). Dropping all clones ends the thread, unless the application has finished.
#[derive(Clone)]
pub(super) struct ExitThread(Sender<Message>);

impl ExitThread {
    /// Starts the thread. `blocked` returns the children that may block a thread.
    pub(super) fn start(blocked: impl Fn() -> Vec<Path> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("verger-exit".to_owned());
        let thread = thread.spawn(move || wait(&receiver, blocked));
        if let Err(error) = thread {
            subscriber::error!(target: "verger::shutdown", error = error.to_string(), "can't start a thread: a blocked stop won't end");
        }
        Self(sender)
    }

    /// Ends the process with exit code 3 after this time, unless the application finishes before.
    pub(super) fn arm(&self, within: Duration) {
        let _ = self.0.send(Message::Deadline(within));
    }

    /// The application has ended. Ends the process with this code after `grace`, whatever still runs.
    pub(super) fn finished(self, code: u8, grace: Duration) {
        if grace < Duration::MAX {
            let _ = self.0.send(Message::Finished(grace, code));
        }
    }
}

fn wait(messages: &Receiver<Message>, blocked: impl Fn() -> Vec<Path> + Send + 'static) {
    let mut due: Option<Instant> = None;
    loop {
        let message = match due {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => messages.recv_timeout(at.saturating_duration_since(now())),
        };
        match message {
            Ok(Message::Deadline(within)) => {
                let at = later(now(), within);
                due = Some(due.map_or(at, |due| due.min(at)));
            }
            Ok(Message::Finished(grace, code)) => {
                #[expect(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
                thread::sleep(grace);
                exit(code, blocked);
            }
            Err(RecvTimeoutError::Timeout) => exit(3, blocked),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Says what still blocks, and ends the process.
fn exit(code: u8, blocked: impl Fn() -> Vec<Path> + Send + 'static) -> ! {
    let (said, hears) = channel();
    // A thread of its own: a full pipe blocks whatever logs into it.
    let last_lines = move || {
        let children: Vec<_> = blocked().iter().map(Path::to_string).collect();
        let children = children.join(", ");
        let problem =
            if children.is_empty() { "it doesn't end by itself" } else { "a thread is blocked" };
        subscriber::error!(target: "verger::shutdown", code, children, "ending the process: {problem}");
        let children = if children.is_empty() { children } else { format!(": {children}") };
        subscriber::write_unless_logged(&format!(
            "ending the process with code {code}: {problem}{children}"
        ));
        let _ = said.send(());
    };
    if thread::Builder::new().spawn(last_lines).is_ok() {
        let _ = hears.recv_timeout(LAST_LINES);
    }
    exit_process(code.into())
}

/// Ends the process immediately, and with it the OS processes that are children.
pub(super) fn exit_process(code: i32) -> ! {
    #[cfg(all(feature = "process", unix))]
    crate::process::kill_all();
    std::process::exit(code)
}
