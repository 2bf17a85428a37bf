//! The signals by name.

use rustix::process::Signal;

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
