//! The signals that stop a program, as a table.

use std::borrow::Cow;
use std::fmt;

use crate::app::stop_cause::StopCause;

/// A signal of the operating system that stops the program.
///
/// The output of [`signals`](crate::signals). As a [`StopCause`], and when it is displayed, it is the
/// name of the signal, such as `SIGTERM`.
///
/// | signal | name | received on | exit code of a second one |
/// | --- | --- | --- | ---: |
/// | `Interrupt` | `SIGINT` | Unix, Windows | 130 |
/// | `Terminate` | `SIGTERM` | Unix | 143 |
/// | `Break` | `CTRL_BREAK` | Windows | 149 |
/// | `Close` | `CTRL_CLOSE` | Windows | 143 |
/// | `Shutdown` | `CTRL_SHUTDOWN` | Windows | 143 |
///
/// ```
/// use verger::{OsSignal, signals};
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
    #[cfg_attr(not(test), expect(dead_code, reason = "Windows has a function for each signal"))]
    windows: bool,
}

const fn row(signal: OsSignal, name: &'static str, number: i32, unix: bool, windows: bool) -> Row {
    Row { signal, name, number, unix, windows }
}

const TABLE: [Row; 5] = [
    row(OsSignal::Interrupt, "SIGINT", 2, true, true),
    row(OsSignal::Terminate, "SIGTERM", 15, true, false),
    row(OsSignal::Break, "CTRL_BREAK", 21, false, true),
    row(OsSignal::Close, "CTRL_CLOSE", 15, false, true),
    row(OsSignal::Shutdown, "CTRL_SHUTDOWN", 15, false, true),
];

impl OsSignal {
    /// Returns the signals of Unix, with their numbers.
    #[cfg(unix)]
    pub(super) fn unix() -> impl Iterator<Item = (Self, i32)> {
        TABLE.iter().filter(|row| row.unix).map(|row| (row.signal, row.number))
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.signal == self).expect("every signal has a row")
    }

    fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the exit code of a program that the signal ended: 128 and the signal's number.
    pub(super) fn exit_code(self) -> i32 {
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

#[cfg(test)]
mod tests {
    use super::OsSignal::*;
    use super::*;

    #[test]
    fn every_signal_has_its_row() {
        let all = [Interrupt, Terminate, Break, Close, Shutdown];
        let codes = all.map(|signal| (signal.name(), signal.exit_code()));
        let expected = [
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

    #[test]
    fn seed4_41_ctrl_c_and_ctrl_break_stop_a_program_on_windows() {
        let windows: Vec<_> =
            TABLE.iter().filter(|row| row.windows).map(|row| row.signal).collect();
        assert_eq!(windows, [Interrupt, Break, Close, Shutdown]);
        let unix: Vec<_> = TABLE.iter().filter(|row| row.unix).map(|row| row.signal).collect();
        assert_eq!(unix, [Interrupt, Terminate]);
    }
}
