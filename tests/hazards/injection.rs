//! Texts from outside with line breaks, terminal commands, marks that reverse the direction of writing,
//! NUL, and a million characters: in errors, panics, statuses, causes, names and paths.
//!
//! Each log line, each line of a status and each error of this crate stays one line without such a
//! character. In a status, each line is at most 80 columns wide.

use std::time::Duration;

use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::mailbox::Inbox;
use verger::policy::OnExhausted;
use verger::resilience::{CallError, CircuitBreaker};
use verger::{
    Child, Context, ControlError, Exit, HealthCheck, Supervisor, async_trait, child, mailbox,
    worker, worker_with, worker_with_mailbox,
};

use crate::log::Log;
use crate::probe::{assert_works, idle, start, tree};

const SECOND: Duration = Duration::from_secs(1);

/// Looks like lines of a log, and clears a terminal.
const FORGED: &str = "x\nERROR verger::restart: giving up\r\n\u{1b}[2J\u{7}\0\u{85}\u{9b}2J\u{202e}\u{2028}\u{2029}\u{200b}\u{2066}\u{feff}\ty";

fn is_hostile(c: char) -> bool {
    c.is_control() || FORGED.contains(c) && !c.is_ascii()
}

fn texts() -> [String; 3] {
    [FORGED.to_owned(), FORGED.repeat(1_000), "x".repeat(1 << 20)]
}

fn assert_one_line(text: &str, probe: &str) {
    assert!(!text.contains(is_hostile), "{probe}: {}", text.escape_debug());
}

/// Checks the lines since the last call. Each begins with a level.
fn assert_lines(log: &Log, probe: &str, contains: &str) {
    let lines = log.lines();
    for line in &lines {
        assert_one_line(line, probe);
        let level = line.split(' ').next();
        let levels = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].map(Some);
        assert!(levels.contains(&level), "{probe}: {line}");
    }
    let shown = lines.iter().any(|line| line.contains(contains));
    assert!(shown, "{probe}: no line contains {contains:?}");
}

/// A child that fails in its `deactivate`, or at its start.
struct Fails {
    text: String,
    at_start: bool,
}

#[async_trait]
impl Child for Fails {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        if self.at_start { Err(self.text.as_str().into()) } else { Ok(()) }
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        Err(self.text.as_str().into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_of_a_child_stays_on_its_lines_of_the_log_and_of_the_status() {
    for text in texts() {
        let log = Log::at(LevelFilter::TRACE);
        let fails = |text: &String| {
            worker_with("fails", text.clone(), async |ctx: Context, text: String| -> Exit {
                if ctx.incarnation() == 1 {
                    return Err(text.into());
                }
                panic!("{text}")
            })
        };
        let shows = worker_with("shows", text.clone(), async |ctx: Context, text: String| {
            ctx.set_status(text);
            ctx.cancelled().await;
        });
        let problem = text.clone();
        let check = HealthCheck::new(move |_ctx| {
            let problem = problem.clone();
            async move { Err::<(), _>(problem) }
        });
        let unhealthy = idle("unhealthy").health_check(check.every(SECOND).failures(1));
        let (value, at_start) = (text.clone(), text.clone());
        let answer = text.clone();
        let mid = Supervisor::builder("asking")
            .restarts(0, SECOND)
            .on_child_failure(move |_| Err::<bool, _>(answer.clone()))
            .child(worker_with("asks", text.clone(), async |_ctx, text: String| -> Exit {
                Err(text.into())
            }));
        let mid = mid.into_child().consecutive_restarts(1).on_exhausted(OnExhausted::Park);
        let app = tree()
            .child(fails(&text).consecutive_restarts(2).on_exhausted(OnExhausted::Park))
            .child(shows)
            .child(unhealthy)
            .child(child("late", move || Fails { text: value.clone(), at_start: false }))
            .child(mid);
        let app = start(app).await;
        sleep(60 * SECOND).await;

        let status = app.status().await.unwrap();
        let shown = status.to_string();
        for line in shown.lines() {
            assert_one_line(line, "status");
            assert!(line.chars().count() <= 80, "{line}");
        }
        let children = status.root.children.len();
        assert!(shown.lines().count() <= 4 * (children + 2), "{shown}");
        assert_lines(&log, "children", "child=app/fails");

        app.stop_child("late").await.unwrap();
        assert_lines(&log, "deactivate", "deactivate failed");
        let refused = child("refused", move || Fails { text: at_start.clone(), at_start: true });
        let refused = app.start_child(refused).await.unwrap_err();
        assert!(matches!(refused, ControlError::ActivationFailed { .. }));
        assert_one_line(&refused.to_string(), "start_child");
        assert_one_line(&format!("{refused:?}"), "start_child");
        app.stop(text).await.unwrap();
        assert_lines(&log, "stop", "shutting down");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_in_the_error_of_a_tree_stays_one_line() {
    for text in texts() {
        let log = Log::at(LevelFilter::TRACE);
        let fails = worker_with("fails", text.clone(), async |_ctx, text: String| -> Exit {
            Err(text.into())
        });
        let app = Supervisor::builder("app").child(fails.own_restarts(0, SECOND)).build().unwrap();
        let error = app.run().await.unwrap_err();
        assert_one_line(&error.to_string(), "run");
        assert_one_line(&format!("{error:?}"), "run");

        let (value, cause) = (text.clone(), text.clone());
        let value = child("fails", move || Fails { text: value.clone(), at_start: true });
        let app = Supervisor::builder("app").first_start(verger::policy::FirstStart::Fail);
        let error = app.child(value).build().unwrap().start().await.unwrap_err();
        assert_one_line(&error.to_string(), "start");
        assert_one_line(&format!("{error:?}"), "start");

        let app = Supervisor::builder("app").child(idle("a")).build().unwrap();
        app.with_graceful_shutdown(async move { cause }).await.unwrap();
        assert_lines(&log, "run", "shutting down child=app cause=");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_in_a_dead_letter_stays_on_its_line_of_the_log() {
    for text in texts() {
        let log = Log::at(LevelFilter::TRACE);
        let (address, inbox) = mailbox::<u32>();
        let failure = text.clone();
        let child = worker_with_mailbox("reader", inbox, move |_ctx, mut inbox: Inbox<u32>| {
            let failure = failure.clone();
            async move {
                inbox.recv().await;
                Exit::Err(failure.into())
            }
        });
        let app = start(tree().child(child)).await;
        let mut letters = app.dead_letters();
        address.try_send(1).unwrap();
        sleep(SECOND).await;
        let letter = letters.try_next().unwrap();
        assert_eq!(letter.reason.to_string(), "lost_in_failure");
        assert_lines(&log, "letter", "lost_in_failure");
        assert_works(&app, "letter").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_or_a_path_with_such_a_text_is_refused_in_one_line() {
    let app = start(tree()).await;
    for text in texts() {
        let mut errors = vec![
            Supervisor::builder(text.clone()).build().unwrap_err().to_string(),
            Supervisor::builder("app").child(idle(&text)).build().unwrap_err().to_string(),
            {
                let requires = idle("a").requires(text.clone());
                Supervisor::builder("app").child(requires).build().unwrap_err().to_string()
            },
            {
                let requires = idle("b").requires(text.clone());
                let fallback = idle("a").fallback(requires);
                Supervisor::builder("app").child(fallback).build().unwrap_err().to_string()
            },
            app.start_child(idle(&text)).await.unwrap_err().to_string(),
            app.start_child(idle("a").requires(text.clone())).await.unwrap_err().to_string(),
        ];
        let paths =
            [text.clone(), format!("mid/{text}"), format!("{text}/low"), format!("/{text}")];
        for path in paths {
            errors.push(app.which_child(&path).await.unwrap_err().to_string());
            errors.push(app.stop_child(&path).await.unwrap_err().to_string());
            errors.push(app.supervisor(&path).await.unwrap_err().to_string());
        }
        for error in errors {
            assert_one_line(&error, "error");
        }
    }
    assert_works(&app, "names").await;
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_breaker_stays_on_its_line() {
    for text in texts() {
        let log = Log::at(LevelFilter::TRACE);
        let breaker = CircuitBreaker::new(text).max_failures(1).call_timeout(SECOND);
        let late = breaker.call(async || std::future::pending::<Result<(), &str>>().await).await;
        let open = breaker.call(async || Ok::<(), &str>(())).await;
        assert!(matches!(late, Err(CallError::TimedOut { .. })));
        assert!(matches!(open, Err(CallError::Open { .. })));
        assert_one_line(&late.unwrap_err().to_string(), "late");
        assert_one_line(&open.unwrap_err().to_string(), "open");
        assert_lines(&log, "breaker", "changed");
    }
}

/// The type of a message can't have such a name, but it may be long.
#[tokio::test(start_paused = true)]
async fn a_type_with_a_long_name_stays_on_its_line() {
    type Four<T> = (T, T, T, T);
    let log = Log::at(LevelFilter::TRACE);
    let (address, inbox) = mailbox::<Four<Four<Four<Option<String>>>>>();
    let child = worker_with_mailbox("reader", inbox, async |ctx: Context, _| ctx.cancelled().await);
    let app = start(tree().child(child)).await;
    address.try_send(Default::default()).unwrap();
    app.stop_child("reader").await.unwrap();
    assert_lines(&log, "letter", "dead letter");
    let spec = worker("typed", async |_ctx: Context| -> Exit { Err("typed".into()) });
    app.start_child(spec.consecutive_restarts(1).on_exhausted(OnExhausted::Park)).await.unwrap();
    sleep(SECOND).await;
    assert_lines(&log, "child", "typed");
    assert_works(&app, "types").await;
}
