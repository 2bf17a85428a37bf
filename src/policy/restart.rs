//! Restart types: which exits of a child are followed by a restart.
//!
//! A [`RestartType`] is a table from kinds of exits to answers. Exceptions to the table are made by a
//! [`Trigger`](super::Trigger).
//!
//! # Invariant
//!
//! Only [`Temporary`](RestartType::Temporary) children are removed when they have ended, unless a message
//! may start them again.

use super::OnExit;
use crate::exit::ExitKind;
use crate::string_enum::string_enum;

/// Which exits of a child are followed by a restart.
///
/// `Permanent`, `Transient` and `Temporary` are OTP's. `OnStop` is for a child that runs again and
/// again as long as it succeeds. The others are systemd's. A child that was cancelled is never
/// restarted, regardless of its type.
///
/// | exit | [`ExitReason`](crate::ExitReason) |
/// | --- | --- |
/// | clean | `Normal`, `Shutdown` |
/// | error | `Failed`, `ActivationFailed`, `Escalated` |
/// | violent | `Panicked`, `Aborted`, `Killed` |
/// | timeout | `ActivationTimedOut`, `TimedOut` |
/// | watchdog | `Hung`, `Unhealthy` |
///
/// | | clean | error | violent | timeout | watchdog | systemd |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | `Permanent` | restart | restart | restart | restart | restart | `always` |
/// | `Transient` | – | restart | restart | restart | restart | `on-failure` |
/// | `Temporary` | – | – | – | – | – | `no` |
/// | `OnStop` | restart | fail | fail | fail | fail | |
/// | `OnSuccess` | restart | – | – | – | – | `on-success` |
/// | `OnAbnormal` | – | – | restart | restart | restart | `on-abnormal` |
/// | `OnAbort` | – | – | restart | – | – | `on-abort` |
/// | `OnWatchdog` | – | – | – | – | restart | `on-watchdog` |
///
/// *Restart* is charged and delayed like a restart after a failure, even after a clean exit. *Fail*
/// ends the supervisor: see [`OnExit::FailSupervisor`]. After every other exit the child is down, and
/// a call can start it: *stopped* after a clean exit, *errored* after a failure. Only a temporary
/// child is removed. systemd would keep it; to keep a child that is never restarted, use
/// `Trigger::from(RestartType::Transient).on_failure(OnExit::Leave)`.
///
/// Displayed and written in snake case, as in `on_stop`. In a file, `always` is also `permanent`,
/// `on_failure` is `transient`, and `never` and `no` are `temporary`.
///
/// ```
/// use verger::RestartType;
///
/// assert_eq!("on_failure".parse(), Ok(RestartType::Transient));
/// assert_eq!(RestartType::Transient.to_string(), "transient");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RestartType {
    /// Restarts the child after every exit, even a clean one. The default, as in OTP.
    #[default]
    Permanent,
    /// Restarts the child after a failure. After a clean exit it is stopped, and its spec is kept.
    Transient,
    /// Never restarts the child. Its spec is removed when it exits or its group restarts, unless
    /// [a message may start it again](crate::ChildSpec::start_on_message).
    Temporary,
    /// Restarts the child after a clean exit. A failure fails the supervisor, and isn't charged.
    OnStop,
    /// Restarts the child after a clean exit. After a failure it stays errored.
    OnSuccess,
    /// Restarts the child after every failure except a returned error.
    OnAbnormal,
    /// Restarts the child after a panic or an abort.
    OnAbort,
    /// Restarts the child when it hung (it missed its heartbeats) or was unhealthy.
    OnWatchdog,
}

impl RestartType {
    /// Returns what follows an exit of this kind.
    pub(crate) const fn after(self, kind: ExitKind) -> OnExit {
        use OnExit::{FailSupervisor, Leave, Restart};
        // Clean, error, violent, timeout, watchdog.
        let row = match self {
            Self::Permanent => [Restart, Restart, Restart, Restart, Restart],
            Self::Transient => [Leave, Restart, Restart, Restart, Restart],
            Self::Temporary => [Leave, Leave, Leave, Leave, Leave],
            Self::OnStop => {
                [Restart, FailSupervisor, FailSupervisor, FailSupervisor, FailSupervisor]
            }
            Self::OnSuccess => [Restart, Leave, Leave, Leave, Leave],
            Self::OnAbnormal => [Leave, Leave, Restart, Restart, Restart],
            Self::OnAbort => [Leave, Leave, Restart, Leave, Leave],
            Self::OnWatchdog => [Leave, Leave, Leave, Leave, Restart],
        };
        match kind {
            ExitKind::Normal | ExitKind::Shutdown => row[0],
            ExitKind::Failed
            | ExitKind::ActivationFailed
            | ExitKind::Escalated
            | ExitKind::Exit => row[1],
            ExitKind::Panicked | ExitKind::Aborted | ExitKind::Killed => row[2],
            ExitKind::ActivationTimedOut | ExitKind::TimedOut => row[3],
            ExitKind::Hung | ExitKind::Unhealthy => row[4],
        }
    }
}

string_enum!(
    RestartType, "restart type":
    Permanent = "permanent" | "always",
    Transient = "transient" | "on_failure",
    Temporary = "temporary" | "never" | "no",
    OnStop = "on_stop",
    OnSuccess = "on_success",
    OnAbnormal = "on_abnormal",
    OnAbort = "on_abort",
    OnWatchdog = "on_watchdog",
);

#[cfg(test)]
pub(crate) mod tests {
    use super::OnExit::{FailSupervisor, Leave, Restart};
    use super::*;

    pub(crate) const ALL: [RestartType; 8] = [
        RestartType::Permanent,
        RestartType::Transient,
        RestartType::Temporary,
        RestartType::OnStop,
        RestartType::OnSuccess,
        RestartType::OnAbnormal,
        RestartType::OnAbort,
        RestartType::OnWatchdog,
    ];

    /// Each kind of exit, and its column in the table: 0 is a clean exit, 1 an error, 2 a signal, 3 a
    /// timeout, 4 the watchdog.
    const COLUMNS: [(ExitKind, usize); 13] = [
        (ExitKind::Normal, 0),
        (ExitKind::Shutdown, 0),
        (ExitKind::Failed, 1),
        (ExitKind::Panicked, 2),
        (ExitKind::ActivationFailed, 1),
        (ExitKind::ActivationTimedOut, 3),
        (ExitKind::Hung, 4),
        (ExitKind::Aborted, 2),
        (ExitKind::Killed, 2),
        (ExitKind::Escalated, 1),
        (ExitKind::Exit, 1),
        (ExitKind::Unhealthy, 4),
        (ExitKind::TimedOut, 3),
    ];

    fn assert_rows<const N: usize>(rows: [(&str, [OnExit; 5]); N]) {
        assert_eq!(COLUMNS.map(|(kind, _)| kind), *ExitKind::ALL);
        for (word, row) in rows {
            let restart: RestartType = word.parse().unwrap();
            for (kind, column) in COLUMNS {
                assert_eq!(restart.after(kind), row[column], "{word}, {kind}");
            }
        }
    }

    #[test]
    fn systemd_each_word_restarts_after_the_exits_of_its_row() {
        assert_rows([
            ("no", [Leave, Leave, Leave, Leave, Leave]),
            ("always", [Restart, Restart, Restart, Restart, Restart]),
            ("on_success", [Restart, Leave, Leave, Leave, Leave]),
            ("on_failure", [Leave, Restart, Restart, Restart, Restart]),
            ("on_abnormal", [Leave, Leave, Restart, Restart, Restart]),
            ("on_abort", [Leave, Leave, Restart, Leave, Leave]),
            ("on_watchdog", [Leave, Leave, Leave, Leave, Restart]),
        ]);
    }

    #[test]
    fn the_restart_types_of_otp_and_on_stop() {
        assert_rows([
            ("permanent", [Restart; 5]),
            ("transient", [Leave, Restart, Restart, Restart, Restart]),
            ("temporary", [Leave; 5]),
            ("on_stop", [Restart, FailSupervisor, FailSupervisor, FailSupervisor, FailSupervisor]),
        ]);
    }

    #[test]
    fn permanent_is_the_default() {
        assert_eq!(RestartType::default(), RestartType::Permanent);
    }

    #[test]
    fn a_type_has_one_written_form_and_synonyms() {
        let table: [(RestartType, &str, &[&str]); 8] = [
            (RestartType::Permanent, "permanent", &["always"]),
            (RestartType::Transient, "transient", &["on_failure"]),
            (RestartType::Temporary, "temporary", &["never", "no"]),
            (RestartType::OnStop, "on_stop", &[]),
            (RestartType::OnSuccess, "on_success", &[]),
            (RestartType::OnAbnormal, "on_abnormal", &[]),
            (RestartType::OnAbort, "on_abort", &[]),
            (RestartType::OnWatchdog, "on_watchdog", &[]),
        ];
        assert_eq!(table.map(|(restart, ..)| restart), ALL);
        for (restart, word, synonyms) in table {
            assert_eq!(restart.to_string(), word);
            assert_eq!(word.parse(), Ok(restart));
            for synonym in synonyms {
                assert_eq!(synonym.parse(), Ok(restart));
            }
        }
    }

    #[test]
    fn an_unknown_word_is_an_error_that_lists_the_known_words() {
        let expected = "unknown restart type `Permanent`; write `permanent`, `always`, \
                        `transient`, `on_failure`, `temporary`, `never`, `no`, `on_stop`, \
                        `on_success`, `on_abnormal`, `on_abort` or `on_watchdog`";
        assert_eq!("Permanent".parse::<RestartType>().unwrap_err().to_string(), expected);
    }
}
