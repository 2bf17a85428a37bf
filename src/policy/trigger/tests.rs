use std::io::{self, ErrorKind};
use std::time::Duration;

use super::*;
use crate::path::Path;
use crate::policy::OnExit::{EndSupervisor, FailSupervisor, Leave, Restart, RestartUncharged};

/// An error with a cause.
#[derive(Debug, thiserror::Error)]
#[error("no database")]
struct NoDatabase {
    #[source]
    cause: io::Error,
}

fn io(kind: ErrorKind) -> io::Error {
    kind.into()
}

fn failed(kind: ErrorKind) -> ExitReason {
    ExitReason::Failed(io(kind).into())
}

fn escalated(source: ExitReason) -> ExitReason {
    ExitReason::Escalated { child: Path::root("a"), source: source.into() }
}

/// One exit of each kind.
fn exits() -> [ExitReason; 10] {
    [
        ExitReason::Normal,
        ExitReason::Shutdown,
        failed(ErrorKind::Other),
        ExitReason::Panicked("boom".into()),
        ExitReason::ActivationFailed(io(ErrorKind::Other).into()),
        ExitReason::ActivationTimedOut,
        ExitReason::Hung(Duration::from_secs(30)),
        ExitReason::Aborted,
        ExitReason::Killed,
        escalated(ExitReason::Hung(Duration::from_secs(30))),
    ]
}

fn after(trigger: &Trigger, reason: &ExitReason) -> OnExit {
    trigger.after_exit(reason, true)
}

fn is(kind: ErrorKind) -> impl Fn(&io::Error) -> bool + Send + Sync + 'static {
    move |error| error.kind() == kind
}

const REFUSED: ErrorKind = ErrorKind::ConnectionRefused;
const DENIED: ErrorKind = ErrorKind::PermissionDenied;

/// The answers to all of [`exits`].
fn row(trigger: &Trigger) -> [OnExit; 10] {
    exits().map(|exit| after(trigger, &exit))
}

#[test]
fn without_exceptions_the_restart_type_decides() {
    for restart in TYPES {
        let trigger = Trigger::from(restart);
        assert_eq!(trigger.restart_type(), restart);
        for exit in exits() {
            assert_eq!(
                after(&trigger, &exit),
                restart.after(exit.exit_kind()),
                "{restart}, {exit}"
            );
        }
    }
}

#[test]
fn seed0_23_the_default_is_any() {
    assert_eq!(Trigger::default(), Trigger::any());
    assert_eq!(row(&Trigger::default()), [Restart; 10]);
}

#[test]
fn seed0_33_each_constructor_answers_every_exit() {
    let clean_then =
        |clean, failed| exits().map(|exit| if exit.is_clean() { clean } else { failed });
    assert_eq!(row(&Trigger::any()), clean_then(Restart, Restart));
    assert_eq!(row(&Trigger::failure()), clean_then(EndSupervisor, Restart));
    assert_eq!(row(&Trigger::stop()), clean_then(Restart, FailSupervisor));
    assert_eq!(Trigger::any(), RestartType::Permanent.into());
    assert_eq!(Trigger::stop(), RestartType::OnStop.into());
}

#[test]
fn seed3_33_activation_only_leaves_a_child_that_was_active() {
    for restart in TYPES {
        let trigger = Trigger::from(restart).activation_only();
        for exit in exits() {
            assert_eq!(trigger.after_exit(&exit, true), Leave, "{restart}, {exit}");
            let before = trigger.after_exit(&exit, false);
            assert_eq!(before, restart.after(exit.exit_kind()), "{restart}, {exit}");
        }
    }
    // Exceptions still apply.
    let trigger = Trigger::failure().activation_only().restart_if(is(REFUSED));
    assert_eq!(after(&trigger, &failed(REFUSED)), Restart);
    assert_eq!(after(&trigger, &failed(DENIED)), Leave);
    assert_eq!(after(&trigger, &ExitReason::Normal), EndSupervisor);
}

#[test]
fn the_last_exception_for_a_kind_counts() {
    let trigger = Trigger::from(RestartType::Transient)
        .on(ExitKind::Hung, Leave)
        .on(ExitKind::Panicked, FailSupervisor)
        .on(ExitKind::Hung, EndSupervisor);
    let [normal, shutdown, failed, panicked, refused, late, hung, ..] = row(&trigger);

    assert_eq!(
        [normal, shutdown, failed, refused, late],
        [Leave, Leave, Restart, Restart, Restart]
    );
    assert_eq!([panicked, hung], [FailSupervisor, EndSupervisor]);

    let kept = Trigger::from(RestartType::Transient).on_failure(Leave);
    assert_eq!(row(&kept), [Leave; 10]);
    assert_eq!(
        row(&Trigger::any().on_failure(EndSupervisor))[..3],
        [Restart, Restart, EndSupervisor]
    );
}

#[test]
fn systemd_prevents_before_it_forces_before_it_looks_at_the_rest() {
    let yes = |_: &io::Error| true;
    // The trigger, and the answer to an error.
    let table = [
        (Trigger::from(RestartType::Temporary), Leave),
        (Trigger::from(RestartType::Temporary).on(ExitKind::Failed, EndSupervisor), EndSupervisor),
        (
            Trigger::from(RestartType::Temporary)
                .on(ExitKind::Failed, EndSupervisor)
                .restart_if(yes),
            Restart,
        ),
        (Trigger::any().restart_if(yes).leave_down_if(yes), Leave),
        (Trigger::any().leave_down_if(yes).restart_if(yes), Leave),
        (Trigger::any().restart_if(yes).on_error(yes, FailSupervisor), FailSupervisor),
        // Of several that don't restart, the first call wins.
        (Trigger::any().leave_down_if(yes).on_error(yes, FailSupervisor), Leave),
        (Trigger::any().on_error(yes, FailSupervisor).leave_down_if(yes), FailSupervisor),
        (Trigger::any().leave_down_if(is(DENIED)).on_error(yes, EndSupervisor), EndSupervisor),
        (Trigger::any().leave_down_if(is(DENIED)), Restart),
        // A charged and an uncharged restart are in one group: the first call wins.
        (Trigger::any().on_error(yes, RestartUncharged), RestartUncharged),
        (Trigger::any().on_error(yes, RestartUncharged).leave_down_if(yes), Leave),
        (Trigger::any().on_error(yes, RestartUncharged).restart_if(yes), RestartUncharged),
        (Trigger::any().restart_if(yes).on_error(yes, RestartUncharged), Restart),
    ];
    for (number, (trigger, then)) in table.into_iter().enumerate() {
        assert_eq!(after(&trigger, &failed(REFUSED)), then, "{number}: {trigger:?}");
    }
}

#[test]
fn the_error_and_its_causes_are_searched() {
    let trigger = Trigger::any().leave_down_if(is(REFUSED));
    let deep = || NoDatabase { cause: io(REFUSED) };
    let wrapped = || anyhow::Error::from(deep()).context("start");
    let found = [
        failed(REFUSED),
        ExitReason::ActivationFailed(io(REFUSED).into()),
        ExitReason::Failed(deep().into()),
        ExitReason::Failed(wrapped().into()),
        escalated(failed(REFUSED)),
        escalated(escalated(ExitReason::ActivationFailed(deep().into()))),
    ];
    for reason in found {
        assert_eq!(after(&trigger, &reason), Leave, "{reason}");
    }
    let not_found = [
        failed(DENIED),
        ExitReason::Failed("connection refused".into()),
        ExitReason::Panicked("connection refused".into()),
        escalated(ExitReason::Aborted),
        ExitReason::Normal,
    ];
    for reason in not_found {
        assert_eq!(after(&trigger, &reason), Restart, "{reason}");
    }
    // The predicate is called for each error of the type, not only for the first.
    let outer = io::Error::other(deep());
    assert_eq!(
        after(&Trigger::any().leave_down_if(is(REFUSED)), &ExitReason::Failed(outer.into())),
        Leave
    );
}

#[test]
fn a_predicate_that_panics_does_not_match() {
    let trigger = Trigger::from(RestartType::Transient)
        .leave_down_if(|error: &io::Error| match error.kind() {
            REFUSED => panic!("on purpose"),
            kind => kind == DENIED,
        })
        .on_error(is(REFUSED), EndSupervisor);

    assert_eq!(after(&trigger, &failed(REFUSED)), EndSupervisor, "the next one is called");
    assert_eq!(after(&trigger, &failed(DENIED)), Leave);
}

/// The child's exceptions and those of the defaults, in all combinations.
#[test]
fn a_childs_own_exceptions_come_first_within_each_group() {
    let mut own = Exceptions::default();
    own.on_exit(ExitKind::Panicked, Leave);
    own.on_error(is(REFUSED), Restart);
    own.on_error(is(ErrorKind::TimedOut), Leave);
    let base = Trigger::from(RestartType::Transient)
        .on(ExitKind::Panicked, EndSupervisor)
        .on(ExitKind::Hung, EndSupervisor)
        .on_error(is(DENIED), FailSupervisor)
        .on_error(is(ErrorKind::TimedOut), FailSupervisor);
    let prevented = base.clone().leave_down_if(is(REFUSED));

    let table = [
        (&base, ExitReason::Panicked("boom".into()), Leave),
        (&base, ExitReason::Hung(Duration::from_secs(30)), EndSupervisor),
        (&base, failed(REFUSED), Restart),
        (&base, failed(DENIED), FailSupervisor),
        (&base, failed(ErrorKind::TimedOut), Leave),
        (&base, ExitReason::Normal, Leave),
        // An exception that prevents a restart comes before one that forces it.
        (&prevented, failed(REFUSED), Leave),
    ];
    for (trigger, reason, then) in table {
        let whole = trigger.clone().with(&own);
        assert_eq!(after(&whole, &reason), then, "{reason}");
    }
}

#[test]
fn always_restarts_is_true_if_every_exit_restarts() {
    let yes = |_: &io::Error| true;
    let always = [
        Trigger::any(),
        Trigger::any().restart_if(yes),
        Trigger::stop().on_failure(Restart),
        Trigger::any().on(ExitKind::Hung, Restart),
        Trigger::stop().on_failure(RestartUncharged).on_error(yes, RestartUncharged),
    ];
    for trigger in always {
        assert!(trigger.always_restarts(), "{trigger:?}");
    }
    let not_always = [
        Trigger::stop(),
        Trigger::failure(),
        Trigger::any().leave_down_if(yes),
        Trigger::any().on(ExitKind::Hung, FailSupervisor),
        Trigger::any().activation_only(),
        RestartType::Temporary.into(),
    ];
    for trigger in not_always {
        assert!(!trigger.always_restarts(), "{trigger:?}");
    }
}

#[test]
fn triggers_are_equal_if_they_share_their_predicates() {
    let trigger = Trigger::any().leave_down_if(is(REFUSED));

    assert_eq!(trigger, trigger.clone());
    assert_ne!(trigger, Trigger::any());
    assert_ne!(trigger, Trigger::any().leave_down_if(is(REFUSED)), "closures can't be compared");
    assert_ne!(Trigger::any(), Trigger::any().activation_only());
    assert_ne!(Trigger::any(), Trigger::any().on(ExitKind::Hung, Leave));
}

#[cfg(feature = "serde")]
#[test]
fn a_trigger_is_serialised_with_its_exceptions() {
    let trigger = Trigger::failure().restart_if(is(REFUSED)).on(ExitKind::Hung, FailSupervisor);
    let json = serde_json::json!({
        "type": "transient",
        "on_exit": {
            "normal": "end_supervisor",
            "shutdown": "end_supervisor",
            "hung": "fail_supervisor",
        },
        "on_error": [{ "error": std::any::type_name::<io::Error>(), "then": "restart" }],
    });
    assert_eq!(serde_json::to_value(&trigger).unwrap(), json);
    assert!(format!("{trigger:?}").contains("io::error::Error => Restart"), "{trigger:?}");

    for (then, word) in [
        (Restart, "restart"),
        (RestartUncharged, "restart_uncharged"),
        (Leave, "leave"),
        (EndSupervisor, "end_supervisor"),
        (FailSupervisor, "fail_supervisor"),
    ] {
        assert_eq!(then.to_string(), word);
        assert_eq!(serde_json::to_value(then).unwrap(), word);
        assert_eq!(serde_json::from_value::<OnExit>(word.into()).unwrap(), then);
    }
}

const TYPES: [RestartType; 8] = [
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
    assert_eq!(table.map(|(restart, ..)| restart), TYPES);
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
