//! Each decision is one log line with every input of the decision.
//!
//! OTP writes several lines with fields for each. verger emits events with fields, and their
//! subscriber decides on length and size limits.

use crate::common::{End, FakeChildren, NextStart, killed, settle, start};
use crate::journal::{ignores_cancellation, seconds};
use crate::log::Log;
use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::policy::{FailureLog, Intensity, Jitter, LogLevel, OnExhausted, Preset};
use verger::status::EventKind;
use verger::{
    Backoff, DynamicSupervisor, RestartType, Shutdown, Strategy, Supervisor, SupervisorBuilder,
    worker,
};

fn app() -> SupervisorBuilder {
    let builder = Supervisor::builder("app");
    builder.defaults(|child| child.backoff(Backoff::constant(seconds(2))))
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_restart_is_one_line_with_every_input_of_the_decision() {
    let log = Log::at(LevelFilter::INFO);
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a"))).await;
    assert_eq!(
        log.lines(),
        [
            "INFO verger::lifecycle: active child=app/a incarnation=1",
            "INFO verger::lifecycle: active child=app",
        ]
    );

    fakes.next_starts("a", [NextStart::Error]);
    sleep(seconds(3)).await;
    fakes.end("a", End::Error).await;
    assert_eq!(
        log.lines(),
        ["WARN verger::restart: restarting child=app/a incarnation=1 cause=\"failed: a failed\" \
          attempt=1 delay=2s limit=\"1/12 in 5m\" lived=3s"]
    );

    sleep(seconds(2)).await;
    settle().await;
    assert_eq!(
        log.lines(),
        ["WARN verger::restart: restarting child=app/a incarnation=2 \
          cause=\"activation failed: no start\" attempt=2 delay=2s limit=\"1/12 in 5m\""]
    );

    sleep(seconds(2)).await;
    settle().await;
    assert_eq!(log.lines(), ["INFO verger::lifecycle: active child=app/a incarnation=3"]);

    tree.stop("enough").await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "INFO verger::shutdown: shutting down child=app cause=\"enough\"",
            "INFO verger::shutdown: stopped child=app",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_restart_without_a_delay_is_the_same_line() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = FakeChildren::new();
        let builder = app().strategy(strategy).preset(Preset::otp());
        let builder = builder.defaults(|child| child.backoff(Backoff::none()));
        let tree = start(builder.child(fakes.child("a"))).await;
        let log = Log::at(LevelFilter::WARN);

        sleep(seconds(1)).await;
        fakes.end("a", End::Panic).await;

        assert_eq!(
            log.lines(),
            ["WARN verger::restart: restarting child=app/a incarnation=1 \
              cause=\"panicked: a panicked\" attempt=1 delay=0ns limit=\"1/1 in 5s\" lived=1s"],
            "{strategy}"
        );
        tree.stop("enough").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_permanent_childs_normal_end_is_logged_like_any_restart() {
    for (backoff, delay) in [(Backoff::none(), "0ns"), (Backoff::constant(seconds(2)), "2s")] {
        let fakes = FakeChildren::new();
        let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
        let log = Log::at(LevelFilter::WARN);

        sleep(seconds(1)).await;
        fakes.end("a", End::Normal).await;

        let line = format!(
            "WARN verger::restart: restarting child=app/a incarnation=1 cause=\"ended normally\" \
             attempt=1 delay={delay} limit=\"1/12 in 5m\" lived=1s"
        );
        assert_eq!(log.lines(), [line]);
        tree.stop("enough").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn otp_92_children_that_end_for_good_are_logged_with_their_reason() {
    let fakes = FakeChildren::new();
    let temporary = fakes.child("temporary").restart(RestartType::Temporary);
    let transient = fakes.child("transient").restart(RestartType::Transient);
    let tree = start(app().child(temporary).child(transient)).await;
    let log = Log::at(LevelFilter::INFO);
    sleep(seconds(1)).await;

    fakes.end("temporary", End::Error).await;
    fakes.end("transient", End::Normal).await;

    assert_eq!(
        log.lines(),
        [
            "WARN verger::restart: not restarted child=app/temporary incarnation=1 \
             cause=\"failed: temporary failed\" lived=1s",
            "INFO verger::lifecycle: ended normally child=app/transient incarnation=1 lived=1s",
        ]
    );
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_92_giving_up_is_an_error_with_supervisor_child_and_cause() {
    let fakes = FakeChildren::new();
    let tree = start(app().restarts(0, seconds(5)).child(fakes.child("a"))).await;
    let log = Log::at(LevelFilter::WARN);
    sleep(seconds(1)).await;
    fakes.end("a", End::Error).await;
    assert_eq!(
        log.lines(),
        ["ERROR verger::restart: giving up child=app/a incarnation=1 \
          cause=\"failed: a failed\" lived=1s failing=0ns restarts=0 limit=\"0 in 5s for all children\" \
          source=supervisor then=escalate \
          hint=\"if the program can do without it, give it on_exhausted(OnExhausted::Pause(..))\""]
    );
    tree.wait().await.unwrap_err();

    let parks = DynamicSupervisor::builder("parks").on_exhausted(OnExhausted::Park);
    let gives_up = DynamicSupervisor::builder("gives-up");
    const HINT: &str = " hint=\"if the program can do without it, give it \
                        on_exhausted(OnExhausted::Pause(..))\"";
    // The removal of a child doesn't change the limit of all.
    for (builder, then, hint) in [(parks, "park", ""), (gives_up, "escalate", HINT)] {
        let tree = builder.restarts(0, seconds(5)).build().unwrap().start().await.unwrap();
        tree.start_child(fakes.child("a")).await.unwrap();
        let (mut events, mut letters) = (tree.events(), tree.dead_letters());
        sleep(seconds(1)).await;
        log.lines();

        fakes.end("a", End::Error).await;

        let path = tree.path();
        let line = format!(
            "ERROR verger::restart: giving up child={path}/a#1 incarnation=1 \
             cause=\"failed: a failed\" lived=1s failing=0ns restarts=0 limit=\"0 in 5s for all children\" \
             source=supervisor then={then}{hint}"
        );
        assert_eq!(log.lines(), [line]);
        let letter = letters.try_next().unwrap();
        assert_eq!(letter.error.unwrap().to_string(), "failed: a failed", "{path}");
        assert_eq!(letter.incarnation, 1, "{path}");
        let gave_up = std::iter::from_fn(|| events.try_next()).find_map(|event| match event.kind {
            EventKind::GaveUp { reason } => Some((event.incarnation, reason.to_string())),
            _ => None,
        });
        assert_eq!(gave_up.unwrap(), (1, "failed: a failed".to_owned()), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn giving_up_names_the_limit_and_how_often_it_was_hit() {
    let minute = seconds(60);
    let fakes = FakeChildren::new();
    let child = || fakes.child("a").backoff(Backoff::none());
    let app = |child| app().on_exhausted(OnExhausted::Park).child(child);
    let cases = [
        (
            app(child()).restarts(1, minute),
            "restarts=1 limit=\"1 in 1m for all children\" source=supervisor",
        ),
        (
            app(child().intensity(Intensity::sliding(1, minute))).unlimited_restarts(),
            "restarts=1 limit=\"1 in 1m\" source=spec",
        ),
        (
            app(child().consecutive_restarts(1)).unlimited_restarts(),
            "restarts=1 limit=\"1 consecutive\" source=spec",
        ),
    ];
    for (builder, hit) in cases {
        let tree = start(builder).await;
        let log = Log::at(LevelFilter::ERROR);
        for _ in 0..2 {
            sleep(seconds(1)).await;
            fakes.end("a", End::Error).await;
        }
        let line = "ERROR verger::restart: giving up child=app/a incarnation=2 \
                    cause=\"failed: a failed\" lived=1s failing=1s";
        assert_eq!(log.lines(), [format!("{line} {hit} then=park")]);
        tree.stop("enough").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn giving_up_on_a_permanent_child_that_returned_asks_for_its_restart_type() {
    let fakes = FakeChildren::new();
    let app = app().restarts(0, seconds(5)).on_exhausted(OnExhausted::Park);
    let tree = start(app.child(fakes.child("a"))).await;
    let log = Log::at(LevelFilter::ERROR);
    sleep(seconds(1)).await;
    fakes.end("a", End::Normal).await;
    assert_eq!(
        log.lines(),
        ["ERROR verger::restart: giving up child=app/a incarnation=1 \
          cause=\"ended normally\" lived=1s failing=0ns restarts=0 limit=\"0 in 5s for all children\" \
          source=supervisor then=park hint=\"did you mean restart type transient?\""]
    );
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_stopped_at_a_shutdown_is_shown_as_stopped_with_its_supervisor() {
    let fakes = FakeChildren::new();
    let deaf = ignores_cancellation("deaf").shutdown(seconds(3));
    let tree = start(app().child(deaf).child(fakes.child("a"))).await;
    let stopping = tree.clone();
    let stop = tokio::spawn(async move { stopping.stop("enough").await });
    sleep(seconds(1)).await;
    let child = tree.which_child("a").await.unwrap();
    assert_eq!(child.why, Some("stopped with its supervisor"));
    stop.await.unwrap().or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_manual_retry_is_not_logged_as_a_restart() {
    let fakes = FakeChildren::new();
    let builder = app().restarts(0, seconds(5)).on_exhausted(OnExhausted::Park);
    let tree = start(builder.child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    let log = Log::at(LevelFilter::WARN);

    tree.resume("a").await.unwrap();

    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 2);
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_configured_brutal_kill_logs_no_warning() {
    let tree = start(app().child(ignores_cancellation("a").shutdown(Shutdown::BrutalKill))).await;
    let log = Log::at(LevelFilter::DEBUG);
    tree.otp().terminate_child("a").await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "DEBUG verger::lifecycle: state changed child=app/a incarnation=1 from=active to=deactivating",
            "DEBUG verger::shutdown: stopped child=app/a incarnation=1 ending=\"killed\" took=0ns",
            "INFO verger::lifecycle: changed by a call child=app/a call=\"terminate_child\"",
        ]
    );
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_92_an_aborted_child_is_logged_with_its_grace() {
    let tree = start(app().child(ignores_cancellation("deaf").shutdown(seconds(3)))).await;
    let log = Log::at(LevelFilter::INFO);

    tree.stop("enough").await.or_else(killed).unwrap();

    assert_eq!(
        log.lines(),
        [
            "INFO verger::shutdown: shutting down child=app cause=\"enough\"",
            "WARN verger::shutdown: killed child=app/deaf incarnation=1 took=3s",
            "INFO verger::shutdown: stopped child=app",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_childs_log_lines_are_in_a_span_with_its_path_and_incarnation() {
    let log = Log::at(LevelFilter::INFO);
    let talks = worker("talks", async |ctx| {
        tracing::info!(target: "talks", "hello");
        sleep(seconds(1)).await;
        tracing::info!(target: "talks", "still here");
        ctx.cancelled().await;
        tracing::info!(target: "talks", "good bye");
    });
    let talks = talks.backoff(Backoff::constant(seconds(1)));
    let below = Supervisor::builder("below").child(talks);
    let tree = start(app().child(below)).await;
    sleep(seconds(1)).await;
    settle().await;
    tree.kill("below/talks").await.unwrap();
    sleep(seconds(1)).await;
    settle().await;
    tree.stop("enough").await.unwrap();

    let mut lines = log.lines();
    lines.retain(|line| line.contains(" talks: "));
    let line = |incarnation: u32, text: &str| {
        format!("INFO child{{child=app/below/talks incarnation={incarnation}}}: talks: {text}")
    };
    let first = [line(1, "hello"), line(1, "still here")];
    let second = [line(2, "hello"), line(2, "still here"), line(2, "good bye")];
    assert_eq!(lines, [&first[..], &second[..]].concat());
}

#[tokio::test(start_paused = true)]
async fn otp_92_a_supervisors_log_lines_name_it_and_have_no_span() {
    let log = Log::at(LevelFilter::INFO);
    let fakes = FakeChildren::new();
    let tree = start(app().child(Supervisor::builder("below").child(fakes.child("x")))).await;
    assert_eq!(
        log.lines(),
        [
            "INFO verger::lifecycle: active \
             child=app/below/x incarnation=1",
            "INFO verger::lifecycle: active child=app/below incarnation=1",
            "INFO verger::lifecycle: active child=app",
        ]
    );
    tree.stop("enough").await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "INFO verger::shutdown: shutting down child=app cause=\"enough\"",
            "INFO verger::shutdown: shutting down child=app/below cause=\"enough\"",
            "INFO verger::shutdown: stopped \
             child=app/below",
            "INFO verger::shutdown: stopped child=app",
        ]
    );
}

/// Rule 48: a child that a caller starts isn't logged at info.
#[tokio::test(start_paused = true)]
async fn otp_92_a_child_that_a_caller_starts_logs_no_line_at_info() {
    let fakes = FakeChildren::new();
    let ordered = start(app()).await;
    let dynamic = DynamicSupervisor::builder("pool").build().unwrap().start().await.unwrap();
    let log = Log::at(LevelFilter::INFO);
    for (tree, name) in [(&ordered, "a"), (&dynamic, "b")] {
        tree.start_child(fakes.child(name)).await.unwrap();
        let function = worker("f", async |ctx| {
            ctx.cancelled().await;
        });
        tree.start_child(function).await.unwrap();
    }
    assert_eq!(log.lines(), [""; 0]);

    // Unlike in OTP, the calls themselves are logged, because they explain why a child was down.
    ordered.otp().terminate_child("a").await.unwrap();
    ordered.otp().restart_child("a").await.unwrap();
    let call = "INFO verger::lifecycle: changed by a call child=app/a call=";
    let calls = ["terminate_child", "restart_child"].map(|name| format!("{call}\"{name}\""));
    assert_eq!(log.lines(), calls);

    // A child that its supervisor restarts is logged.
    fakes.end("a", End::Error).await;
    sleep(seconds(2)).await;
    settle().await;
    let active = "INFO verger::lifecycle: active child=app/a incarnation=3";
    let lines = log.lines();
    assert_eq!((lines.len(), &*lines[1]), (2, active), "{lines:?}");

    let log = Log::at(LevelFilter::DEBUG);
    ordered.start_child(fakes.child("c")).await.unwrap();
    let lines = log.lines();
    let active = "DEBUG verger::lifecycle: active child=app/c incarnation=1";
    assert_eq!(lines.last().unwrap(), active, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn kin_71_repeated_failures_are_logged_at_a_higher_level_until_the_child_recovers() {
    let log = Log::at(LevelFilter::INFO);
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(seconds(1)).reset_after(seconds(60));
    let child = fakes.child("a").backoff(backoff);
    let child = child.failure_log(FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3));
    let tree = start(app().unlimited_restarts().child(child)).await;
    let fail = async |life| {
        sleep(life).await;
        fakes.end("a", End::Error).await;
        sleep(seconds(1)).await;
        settle().await;
    };
    let levels = || {
        let lines = log.lines().into_iter().filter(|line| line.contains(": restarting "));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for _ in 0..5 {
        fail(seconds(0)).await;
    }
    assert_eq!(levels(), ["INFO", "INFO", "INFO", "ERROR", "ERROR"]);

    fail(seconds(59)).await;
    assert_eq!(levels(), ["ERROR"], "the run was too short for a reset");

    fail(seconds(60)).await;
    for _ in 0..3 {
        fail(seconds(0)).await;
    }
    assert_eq!(levels(), ["INFO", "INFO", "INFO", "ERROR"], "the count starts again");
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed0_56_children_killed_together_are_logged_with_their_own_run_time() {
    let log = Log::at(LevelFilter::WARN);
    let fakes = FakeChildren::new();
    let child = |name| fakes.child(name).backoff(Backoff::constant(seconds(1)));
    let tree = start(app().child(child("a")).child(child("b"))).await;
    sleep(seconds(2)).await;
    let (a, b) = tokio::join!(tree.kill("a"), tree.kill("b"));
    a.and(b).unwrap();
    settle().await;
    let line = |name| {
        format!(
            "WARN verger::restart: restarting child=app/{name} incarnation=1 cause=\"aborted\" \
             attempt=1 delay=1s limit=\"1/12 in 5m\" lived=2s"
        )
    };
    assert_eq!(log.lines(), ["a", "b"].map(line));
    tree.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed0_56_a_decision_is_logged_with_child_cause_delay_count_and_run_time() {
    let log = Log::at(LevelFilter::WARN);
    let fakes = FakeChildren::new();
    let child = fakes
        .child("a")
        .backoff(Backoff::exponential(seconds(1), seconds(60)).jitter(Jitter::None));
    let tree = start(app().unlimited_restarts().child(child)).await;
    sleep(seconds(2)).await;
    fakes.end("a", End::Error).await;
    sleep(seconds(3)).await;
    settle().await;
    tree.kill("a").await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "WARN verger::restart: restarting child=app/a incarnation=1 cause=\"failed: a failed\" \
             attempt=1 delay=1s lived=2s",
            "WARN verger::restart: restarting child=app/a incarnation=2 cause=\"aborted\" attempt=2 \
             delay=2s lived=2s",
        ]
    );
    tree.stop("enough").await.unwrap();
}
