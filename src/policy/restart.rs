//! Restart types: which ends of a child bring it back.
//!
//! A [`RestartType`] is a table: for each kind of end, what follows. It knows nothing of errors;
//! exceptions to the table are made by a [`Trigger`](super::Trigger). Whether a restart is allowed
//! is up to the restart intensity, when it happens is up to the backoff.
//!
//! # Invariant
//!
//! Only [`Temporary`](RestartType::Temporary) children are forgotten when they have ended.

use super::OnExit;
use super::word::words;
use crate::exit::ExitKind;

/// Which ends of a child are followed by a restart.
///
/// The first three and their meaning are OTP's, `OnStop` is for a child that is to run again and
/// again as long as it ends well, and the rest are systemd's. A child that is asked to stop is
/// never restarted, whatever its type.
///
/// | an end that is | is an [`ExitReason`](crate::ExitReason) |
/// | --- | --- |
/// | clean | `Normal`, `Shutdown` |
/// | an error | `Failed`, `ActivationFailed`, `Escalated` |
/// | violent | `Panicked`, `Aborted`, `Killed` |
/// | too late | `ActivationTimedOut` |
/// | no sign of life | `Hung`, `Unhealthy` |
///
/// | | clean | an error | violent | too late | no sign of life | systemd |
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
/// *Restart* counts and is delayed like a failure, also after a clean end. *Fail* is the end of the
/// supervisor: see [`OnExit::FailSupervisor`]. After all others the child is down, and can be
/// started by hand: *stopped* if its end was clean, *errored* if it has failed. Only a temporary
/// child is forgotten, where systemd would keep it. For one that is kept and never restarted, write
/// `Trigger::from(RestartType::Transient).on_failure(OnExit::Leave)`.
///
/// Written and read in snake case, as in `on_stop`. When read, for example from a configuration
/// file, `always` is `permanent`, `on_failure` is `transient`, and `never` and `no` are `temporary`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RestartType {
    /// Always restarted, also after a clean end, which then counts and is delayed like a failure.
    ///
    /// The default, as in OTP.
    #[default]
    Permanent,
    /// Restarted after a failure. After a clean end it stays stopped, and its spec is kept.
    Transient,
    /// Never restarted. Its spec is forgotten when it ends, and also when its group is restarted.
    Temporary,
    /// Restarted after a clean end. A failure fails the supervisor, and is not charged.
    OnStop,
    /// Restarted after a clean end. After a failure it stays errored.
    OnSuccess,
    /// Restarted after any failure but an error that was returned.
    OnAbnormal,
    /// Restarted after a panic or an abort.
    OnAbort,
    /// Restarted when it hung, that is, when it missed the heartbeats that it had promised, or was
    /// unhealthy.
    OnWatchdog,
}

impl RestartType {
    /// What follows an end of this kind.
    pub(crate) const fn after(self, kind: ExitKind) -> OnExit {
        use OnExit::{FailSupervisor, Leave, Restart};
        // Clean, an error, violent, too late, no sign of life.
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
            ExitKind::ActivationTimedOut => row[3],
            ExitKind::Hung | ExitKind::Unhealthy => row[4],
        }
    }
}

words!(
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

    /// Each kind of end, and where it stands in systemd's table: 0 is a clean exit, 1 an unclean
    /// code, 2 a signal, 3 a time-out, 4 the watchdog.
    const COLUMNS: [(ExitKind, usize); 12] = [
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
    ];

    fn assert_rows<const N: usize>(rows: [(&str, [OnExit; 5]); N]) {
        assert_eq!(COLUMNS.map(|(kind, _)| kind), ExitKind::ALL);
        for (word, row) in rows {
            let restart: RestartType = word.parse().unwrap();
            for (kind, column) in COLUMNS {
                assert_eq!(restart.after(kind), row[column], "{word}, {kind}");
            }
        }
    }

    #[test]
    fn systemd_each_word_restarts_after_the_ends_of_its_row() {
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
    fn a_restart_follows_an_end_as_in_otp_and_a_failure_ends_what_restarts_on_stop() {
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
    fn a_type_is_written_in_one_way_and_read_in_others_too() {
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
            let json = format!("{word:?}");
            assert_eq!(restart.to_string(), word);
            assert_eq!(serde_json::to_string(&restart).unwrap(), json);
            assert_eq!(serde_json::from_str::<RestartType>(&json).unwrap(), restart);
            assert_eq!(word.parse(), Ok(restart));
            for synonym in synonyms {
                assert_eq!(synonym.parse(), Ok(restart));
            }
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let expected = "unknown restart type `Permanent`; write `permanent`, `always`, \
                        `transient`, `on_failure`, `temporary`, `never`, `no`, `on_stop`, \
                        `on_success`, `on_abnormal`, `on_abort` or `on_watchdog`";

        assert_eq!("Permanent".parse::<RestartType>().unwrap_err().to_string(), expected);

        let error = serde_json::from_str::<RestartType>("\"Permanent\"").unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
