use std::error::Error;
use std::time::Duration;
use std::{io, num};

use super::*;
use crate::panic::PanicMessage;
use crate::path::Path;

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused")
}

/// An error with a text and a cause.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Because {
    text: &'static str,
    #[source]
    cause: Box<dyn Error + Send + Sync>,
}

fn because(text: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Because {
    Because { text, cause: cause.into() }
}

#[test]
fn the_question_mark_converts_all_common_errors() {
    fn std_error() -> Exit {
        Ok(Err(refused())?)
    }
    fn parse_error() -> Exit {
        "80a".parse::<u16>()?;
        Ok(())
    }
    fn str() -> Exit {
        Err("not yet")?
    }
    fn string() -> Exit {
        Err(format!("not before {}", 5))?
    }
    fn anyhow() -> Exit {
        Err(anyhow::Error::from(refused()).context("no database"))?
    }
    fn boxed() -> Exit {
        Err(Box::<dyn Error + Send + Sync>::from("boxed"))?
    }
    fn our_own() -> Exit {
        str()?;
        Ok(())
    }

    let table = [
        (std_error as fn() -> Exit, "connection refused"),
        (parse_error, "invalid digit found in string"),
        (str, "not yet"),
        (string, "not before 5"),
        (anyhow, "no database: connection refused"),
        (boxed, "boxed"),
        (our_own, "not yet"),
    ];
    for (worker, message) in table {
        assert_eq!(worker().unwrap_err().to_string(), message);
    }
}

#[test]
fn an_error_keeps_its_type() {
    let error = ExitError::from(refused());
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);

    assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused));
    assert!(error.downcast_ref::<num::ParseIntError>().is_none());
    assert!(error.clone().downcast_ref::<io::Error>().is_some(), "a clone is the same error");
    assert_eq!(error.as_error().map(ToString::to_string).unwrap(), "connection refused");
    assert!(!error.is_ignore());
}

#[test]
fn ignore_is_not_an_error() {
    let error = ExitError::ignore();

    assert!(error.is_ignore());
    assert!(error.as_error().is_none());
    assert!(error.downcast_ref::<io::Error>().is_none());
    assert_eq!(error.to_string(), "declined to start");
}

#[test]
fn display_writes_each_cause_once() {
    let table = [
        (because("start", because("config", "no file")), "start: config: no file"),
        // They write their cause themselves.
        (because("config: no file", "no file"), "config: no file"),
        (because("a: b: c", because("b: c", "c")), "a: b: c"),
        (because("a: b", because("b", "c")), "a: b: c"),
        (because("no file", because("no file", "no file")), "no file"),
        (
            because("not read (config: no file): add it", because("config", "no file")),
            "not read (config: no file): add it",
        ),
        // The cause isn't there, it only looks like it.
        (because("error 11", "1"), "error 11: 1"),
        (because("no file here", "no file"), "no file here: no file"),
        (because("silent cause", ""), "silent cause"),
    ];
    for (error, message) in table {
        let error = ExitError::from(error);
        assert_eq!(error.to_string(), message);
        assert_eq!(format!("{error:?}"), message);
    }
}

/// One of each reason, with what is true for it.
fn reasons() -> [(ExitReason, &'static str, bool, &'static str); 15] {
    let app = Path::root("app");
    let failed = ExitReason::Failed(because("no database", refused()).into());
    let pool = ExitReason::Escalated { child: app.join("db").join("pool"), source: failed.into() };
    [
        (ExitReason::Normal, "normal", true, "ended normally"),
        (ExitReason::Shutdown, "shutdown", true, "shut down"),
        (ExitReason::Failed(refused().into()), "failed", false, "failed: connection refused"),
        (ExitReason::Panicked("boom".into()), "panicked", false, "panicked: boom"),
        (
            ExitReason::Panicked(PanicMessage::new("boom", Some("src/a.rs:10:5"))),
            "panicked",
            false,
            "panicked at src/a.rs:10:5: boom",
        ),
        (
            ExitReason::ActivationFailed("no port".into()),
            "activation_failed",
            false,
            "activation failed: no port",
        ),
        (ExitReason::ActivationTimedOut, "activation_timed_out", false, "activation timed out"),
        (ExitReason::Hung(Duration::from_secs(30)), "hung", false, "hung: no heartbeat for 30s"),
        (ExitReason::Aborted, "aborted", false, "aborted"),
        (ExitReason::Killed, "killed", false, "killed"),
        (
            pool.clone(),
            "escalated",
            false,
            "escalated: child app/db/pool: failed: no database: connection refused",
        ),
        (
            ExitReason::Escalated { child: app.join("db"), source: pool.into() },
            "escalated",
            false,
            "escalated: child app/db: escalated: child app/db/pool: failed: no database: \
             connection refused",
        ),
        (
            ExitReason::Exit {
                code: 3,
                child: app.join("db"),
                source: ExitReason::Hung(Duration::from_secs(30)).into(),
            },
            "exit",
            false,
            "exit 3: child app/db: hung: no heartbeat for 30s",
        ),
        (ExitReason::Unhealthy("no ping".into()), "unhealthy", false, "unhealthy: no ping"),
        (
            ExitReason::TimedOut(Duration::from_secs(300)),
            "timed_out",
            false,
            "ran for longer than 5m",
        ),
    ]
}

#[test]
fn only_normal_and_shutdown_are_clean() {
    for (reason, kind, clean, _) in reasons() {
        assert_eq!(reason.is_clean(), clean, "{kind}");
    }
}

#[test]
fn a_reason_is_displayed_with_its_causes() {
    for (reason, kind, _, message) in reasons() {
        assert_eq!(reason.kind(), kind);
        assert_eq!(reason.exit_kind().to_string(), kind);
        assert_eq!(reason.to_string(), message);
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_reason_is_serialised_as_its_kind_and_its_message() {
    for (reason, kind, _, message) in reasons() {
        let json = serde_json::json!({ "kind": kind, "message": message });
        assert_eq!(serde_json::to_value(&reason).unwrap(), json);
    }
}

#[test]
fn all_lists_each_kind_at_its_discriminant() {
    for (number, &kind) in ExitKind::ALL.iter().enumerate() {
        assert_eq!(kind as usize, number, "{kind}");
    }
    let mut kinds = reasons().map(|(reason, ..)| reason.exit_kind()).to_vec();
    kinds.dedup();
    assert_eq!(kinds, ExitKind::ALL);
}

#[test]
fn a_thousand_escalations_can_be_displayed() {
    let mut reason = ExitReason::Hung(Duration::from_secs(30));
    for _ in 0..1_000 {
        reason = ExitReason::Escalated { child: Path::root("a"), source: reason.into() };
    }

    assert_eq!(
        reason.to_string(),
        "escalated: child a: ".repeat(1_000) + "hung: no heartbeat for 30s"
    );
}

#[test]
fn a_worker_returns_unit_or_a_result() {
    assert!(().into_exit().is_ok());
    assert!(Ok::<_, ExitError>(()).into_exit().is_ok());
    assert!(Ok::<_, io::Error>(()).into_exit().is_ok());

    let returned: [Exit; 5] = [
        Err(refused()).into_exit(),
        Err("connection refused").into_exit(),
        Err("connection refused".to_owned()).into_exit(),
        Err(anyhow::Error::from(refused())).into_exit(),
        Err(ExitError::from(refused())).into_exit(),
    ];
    for exit in returned {
        assert_eq!(exit.unwrap_err().to_string(), "connection refused");
    }
    assert!(Err(ExitError::ignore()).into_exit().is_err_and(|error| error.is_ignore()));
}

#[test]
fn the_exit_reason_of_a_supervisor_is_passed_up_unchanged() {
    for (reason, kind, _, message) in reasons() {
        let error = ExitError::from_reason(reason);
        assert_eq!(error.to_string(), message);
        assert!(error.as_error().is_none(), "{kind}");
        let received = error.into_reason();
        assert_eq!((received.kind(), received.to_string()), (kind, message.to_owned()));
    }
    assert_eq!(ExitError::from("no").into_reason().to_string(), "failed: no");
}

#[test]
fn errors_and_reasons_are_send_and_sync() {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<ExitError>();
    shareable::<ExitReason>();
}
