//! How a process has ended, whether that is a failure, and the signals by name. Pure.

use std::error::Error;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::process::Signal;

use crate::invisible::Visible;

/// The most bytes of the last lines in the text of a failure.
const MAX_TEXT: usize = 1_000;

/// The error of a child whose process has failed: its exit code or signal, and the last lines of its stderr.
///
/// It is the error in [`ExitReason::Failed`](crate::ExitReason::Failed), or in
/// [`ActivationFailed`](crate::ExitReason::ActivationFailed) before the process was ready. So
/// [`restart_if`](crate::ChildSpec::restart_if), [`leave_down_if`](crate::ChildSpec::leave_down_if) and
/// [`on_error`](crate::ChildSpec::on_error) can decide by it.
///
/// `Display` writes `exited with code 3` or `killed by SIGKILL (9)`. The last lines of stderr are its
/// [`source`](Error::source), so that they follow it wherever a whole chain of causes is written. That text has
/// at most the last 1,000 bytes; [`stderr`](Self::stderr) has all lines that are kept.
///
/// ```
/// use std::process::Command;
///
/// use verger::command;
/// use verger::process::ProcessExit;
///
/// let import = command("import", || Command::new("/usr/local/bin/import"))
///     .into_child()
///     // Its way to say that the input is invalid, which the next attempt won't change.
///     .leave_down_if(|exit: &ProcessExit| exit.code() == Some(65));
/// # drop(import);
/// ```
#[derive(Clone, Debug)]
pub struct ProcessExit {
    status: ExitStatus,
    last: LastLines,
}

impl ProcessExit {
    pub(super) fn new(status: ExitStatus, stderr: Vec<String>) -> Self {
        Self { status, last: LastLines(stderr.into()) }
    }

    /// Returns the exit code, or `None` if a signal has ended the process.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the number of the signal that has ended the process, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Returns the status as the operating system reports it.
    #[must_use]
    pub fn status(&self) -> ExitStatus {
        self.status
    }

    /// Returns the last lines of stderr, oldest first, as many as
    /// [`kept_lines`](super::CommandSpec::kept_lines) says.
    ///
    /// Each has at most 1 KiB. There is none if stderr isn't [captured](super::Output::Capture).
    #[must_use]
    pub fn stderr(&self) -> &[String] {
        &self.last.0
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => write!(f, "exited with code {code}")?,
            (None, Some(number)) => match name(number) {
                Some(name) => write!(f, "killed by {name} ({number})")?,
                None => write!(f, "killed by signal {number}")?,
            },
            (None, None) => write!(f, "ended with {}", self.status)?,
        }
        if self.status.core_dumped() {
            f.write_str(" (core dumped)")?;
        }
        Ok(())
    }
}

impl Error for ProcessExit {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        (!self.last.0.is_empty()).then_some(&self.last)
    }
}

/// The last lines of stderr, as the cause of a failure.
#[derive(Clone, Debug)]
struct LastLines(Arc<[String]>);

impl fmt::Display for LastLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.join(" | ");
        let from = last_bytes(&text, MAX_TEXT);
        if from > 0 {
            f.write_str("…")?;
        }
        write!(f, "{}", Visible(&text[from..]))
    }
}

impl Error for LastLines {}

/// Returns where the last bytes of a text begin, without a part of a character.
fn last_bytes(text: &str, bytes: usize) -> usize {
    let from = text.len().saturating_sub(bytes);
    (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

/// Which ends of a process are no failure.
#[derive(Clone, Debug)]
pub(super) struct Successes {
    pub(super) codes: Vec<i32>,
    pub(super) signals: Vec<StopSignal>,
    /// The signal that the process gets when it is stopped.
    pub(super) stop_signal: StopSignal,
}

impl Successes {
    /// Returns whether this end is no failure. `stopped`: the process was sent its stop signal.
    pub(super) fn include(&self, status: ExitStatus, stopped: bool) -> bool {
        let stop_signal = self.stop_signal.to_signal().as_raw();
        match (status.code(), status.signal()) {
            (Some(0), _) => true,
            // What a shell returns for a program that the signal has ended, and some programs themselves.
            (Some(code), _) if stopped && code == 128 + stop_signal => true,
            (Some(code), _) => self.codes.contains(&code),
            (None, Some(signal)) if stopped && signal == stop_signal => true,
            (None, Some(signal)) => self.signals.iter().any(|it| it.to_signal().as_raw() == signal),
            (None, None) => false,
        }
    }
}

/// A signal that stops a process, or with which a process may end in order.
///
/// For other signals, such as `SIGRTMIN + 3`, put a wrapper in front of the program that translates one of these.
///
/// ```
/// use std::process::Command;
///
/// use verger::command;
/// use verger::process::{Output, StopSignal};
///
/// let proxy = command("proxy", || Command::new("nginx"))
///     .stop_signal(StopSignal::Quit)
///     .success_signals([StopSignal::Quit])
///     .stdout(Output::Null);
/// # drop(proxy);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopSignal {
    /// `SIGTERM`, the default.
    Term,
    /// `SIGINT`, as Ctrl-C sends it. PostgreSQL's *fast* shutdown.
    Int,
    /// `SIGQUIT`. The orderly stop of nginx and PHP-FPM.
    Quit,
    /// `SIGHUP`.
    Hup,
    /// `SIGUSR1`.
    Usr1,
    /// `SIGUSR2`.
    Usr2,
    /// `SIGWINCH`. The orderly stop of Apache httpd.
    Winch,
}

impl StopSignal {
    pub(super) fn to_signal(self) -> Signal {
        match self {
            Self::Term => Signal::TERM,
            Self::Int => Signal::INT,
            Self::Quit => Signal::QUIT,
            Self::Hup => Signal::HUP,
            Self::Usr1 => Signal::USR1,
            Self::Usr2 => Signal::USR2,
            Self::Winch => Signal::WINCH,
        }
    }

    /// Returns the name of the signal, such as `SIGTERM`.
    #[must_use]
    pub fn name(self) -> &'static str {
        name(self.to_signal().as_raw()).expect("each of them has a name")
    }
}

/// Returns the name of a signal, or `None` for one without, such as a real-time signal.
pub(super) fn name(number: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 22] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::WINCH, "SIGWINCH"),
        (Signal::IO, "SIGIO"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExitError;

    fn code(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn signal(signal: i32) -> ExitStatus {
        ExitStatus::from_raw(signal)
    }

    #[test]
    fn the_text_is_the_code_or_the_signal_and_then_the_last_lines() {
        let text = |status, lines: &[&str]| {
            let lines = lines.iter().map(|&line| line.to_owned()).collect();
            ExitError::from(ProcessExit::new(status, lines)).to_string()
        };
        assert_eq!(text(code(3), &[]), "exited with code 3");
        assert_eq!(text(signal(9), &[]), "killed by SIGKILL (9)");
        assert_eq!(text(signal(11 | 0x80), &[]), "killed by SIGSEGV (11) (core dumped)");
        assert_eq!(text(signal(40), &[]), "killed by signal 40");
        assert_eq!(
            text(code(1), &["one", "two\u{1b}[2J"]),
            "exited with code 1: one | two\\u{1b}[2J"
        );
        let long = text(code(1), &["x", &"ä".repeat(501)]);
        assert_eq!(long, format!("exited with code 1: …{}", "ä".repeat(500)));
    }

    #[test]
    fn only_zero_is_a_success_unless_more_is_said_or_the_process_was_stopped() {
        let mut successes =
            Successes { codes: Vec::new(), signals: Vec::new(), stop_signal: StopSignal::Term };
        let table = [
            (code(0), true, true),
            (code(1), false, false),
            (code(143), false, true),
            (signal(15), false, true),
            (signal(9), false, false),
            (signal(2), false, false),
        ];
        for (status, alone, stopped) in table {
            assert_eq!(successes.include(status, false), alone, "{status}");
            assert_eq!(successes.include(status, true), stopped, "{status}, stopped");
        }

        successes.codes = vec![1];
        successes.signals = vec![StopSignal::Int];
        assert!(successes.include(code(1), false));
        assert!(successes.include(signal(2), false));
        assert!(!successes.include(code(2), false));
        assert!(!successes.include(signal(15), false));
    }

    #[test]
    fn each_stop_signal_has_its_name() {
        let names = [
            (StopSignal::Term, "SIGTERM"),
            (StopSignal::Int, "SIGINT"),
            (StopSignal::Quit, "SIGQUIT"),
            (StopSignal::Hup, "SIGHUP"),
            (StopSignal::Usr1, "SIGUSR1"),
            (StopSignal::Usr2, "SIGUSR2"),
            (StopSignal::Winch, "SIGWINCH"),
        ];
        for (signal, name) in names {
            assert_eq!(signal.name(), name);
        }
        assert_eq!(name(9), Some("SIGKILL"));
        assert_eq!(name(40), None);
    }
}
