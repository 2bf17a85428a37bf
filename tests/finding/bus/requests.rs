//! Requests: one handler answers, and every call ends.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::bus::{Bus, BusError, CallError, Request};
use verger::{Backoff, ChildSpec, Context, Exit, ExitError, RestartType, worker};

use super::{Double, Journal, described, member, start};
use crate::common::settle;
use crate::log::Log;

/// Registers a handler that answers after a second.
fn answer(bus: &Bus) -> Result<verger::bus::Registration, BusError> {
    bus.answer(|request: Arc<Double>| async move {
        sleep(Duration::from_secs(1)).await;
        request.0.checked_mul(2).ok_or(ExitError::from("too large"))
    })
}

fn answerer(name: &str) -> ChildSpec {
    member(name, |ctx| drop(answer(&ctx.bus()).unwrap()))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_or_fails_with_a_letter() {
    let app = start([answerer("a")]).await;
    let mut letters = app.dead_letters();
    assert_eq!(app.bus().call(Double(21), None).await.unwrap(), 42);

    let error = app.bus().call(Double(u32::MAX), 2 * SECOND).await.unwrap_err();
    let text = "the handler of `finding::bus::Double` in `app/a` did not answer: failed: too large";
    assert_eq!(error.to_string(), text);
    let other = app.bus().channel("other").unwrap();
    let error = other.call(Double(1), SECOND).await.unwrap_err();
    let text = "no handler answers `finding::bus::Double` on the channel `other`; register a \
                handler with `answer`";
    assert_eq!(error.to_string(), text);
    app.bus().emit(Double(1));
    let expected = [
        "handler_error app/a Double: failed: too large",
        "no_handler app Double",
        "no_handler app Double",
    ];
    assert_eq!(described(&mut letters), expected, "a request that is emitted is an event");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_handler_fails_the_call_and_not_the_child() {
    let a = member("a", |ctx| {
        let answered = ctx.bus().answer(|request: Arc<Double>| {
            assert!(request.0 != 1, "one");
            async move {
                assert!(request.0 != 2, "two");
                Exit::Ok(()).map(|()| request.0)
            }
        });
        answered.unwrap();
    });
    let app = start([a]).await;
    for (number, panic) in [(1, "panicked: one"), (2, "panicked: two")] {
        match app.bus().call(Double(number), None).await.unwrap_err() {
            CallError::HandlerFailed { handler, reason, .. } => {
                assert_eq!((handler.as_str(), reason.to_string()), ("app/a", panic.to_owned()));
            }
            error => panic!("{error}"),
        }
    }
    assert_eq!(app.bus().call(Double(3), None).await.unwrap(), 3);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_child_answers_at_a_time_and_its_next_incarnation_takes_over() {
    let first = worker("first", async |ctx: Context| -> Exit {
        answer(&ctx.bus())?;
        ctx.run_until_cancelled(sleep(10 * SECOND)).await;
        Err("again".into())
    });
    let (report, mut reports) = mpsc::unbounded_channel();
    let second = member("second", move |ctx| {
        let refused = answer(&ctx.bus()).unwrap_err();
        let other = answer(&ctx.bus().channel("other").unwrap());
        report.send((refused, other.is_ok())).unwrap();
    });
    let app = start([first.backoff(Backoff::constant(SECOND)), second]).await;
    let (refused, other) = reports.recv().await.unwrap();
    let text =
        "`app/first` already answers `finding::bus::Double`; stop it first, or use another channel";
    assert_eq!(refused.to_string(), text);
    assert!(
        matches!(refused, BusError::AlreadyAnswered { owner, .. } if owner.as_str() == "app/first")
    );
    assert!(other, "on another channel it is free");

    sleep(12 * SECOND).await;
    assert_eq!(app.which_child("first").await.unwrap().incarnation, 2);
    assert_eq!(app.bus().call(Double(4), None).await.unwrap(), 8);
    app.stop_child("first").await.unwrap();
    app.start_child(answerer("third")).await.unwrap();
    settle().await;
    assert_eq!(app.bus().call(Double(5), None).await.unwrap(), 10);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_can_replace_its_own_handler() {
    let a = member("a", |ctx| {
        let first = answer(&ctx.bus()).unwrap();
        let second = ctx.bus().answer(|_: Arc<Double>| async { Exit::Ok(()).map(|()| 1) });
        assert!(second.unwrap().is_active());
        first.unregister();
    });
    let app = start([a]).await;
    assert_eq!(app.bus().call(Double(5), None).await.unwrap(), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_room_within_its_time_limit() {
    let a = member("a", |ctx| drop(answer(&ctx.bus().capacity(1)).unwrap()));
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    let began = Instant::now();
    // One is in hand, one is queued, and the others wait for room.
    let calls: Vec<_> = (1..=4)
        .map(|number| {
            let bus = app.bus();
            tokio::spawn(async move {
                let limit = 2 * SECOND + Duration::from_millis(500);
                (bus.call(Double(number), limit).await.ok(), began.elapsed().as_millis())
            })
        })
        .collect();
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap());
    }
    assert_eq!(ends, [(Some(2), 1000), (Some(4), 2000), (None, 2500), (None, 2500)]);
    settle().await;
    assert_eq!(described(&mut letters), ["timeout app/a Double", "timeout app/a Double"]);
    assert_eq!(app.bus().call(Double(9), None).await.unwrap(), 18);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_cancels_the_handler_and_makes_no_letter() {
    let journal = Journal::default();
    let seen = journal.clone();
    let a = member("a", move |ctx| {
        let seen = seen.clone();
        let answered = ctx.bus().answer(move |request: Arc<Double>| {
            seen.note(format!("began {}", request.0));
            let seen = seen.clone();
            async move {
                sleep(SECOND).await;
                seen.note(format!("ended {}", request.0));
                Exit::Ok(()).map(|()| 0)
            }
        });
        answered.unwrap();
    });
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    let calls = [1, 2, 3].map(|number| {
        let bus = app.bus();
        tokio::spawn(async move { bus.call(Double(number), None).await })
    });
    settle().await;
    calls[0].abort();
    calls[1].abort();
    sleep(5 * SECOND).await;
    assert_eq!(journal.taken(), ["began 1", "began 3", "ended 3"]);
    assert!(described(&mut letters).is_empty());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_end_with_the_child_that_answers_them() {
    let a = answerer("a").restart(RestartType::Temporary);
    let app = start([a]).await;
    let mut letters = app.dead_letters();
    let calls = [1, 2].map(|number| {
        let bus = app.bus();
        tokio::spawn(async move { bus.call(Double(number), None).await.unwrap_err().to_string() })
    });
    settle().await;
    app.kill("a").await.unwrap();
    let [first, second] = calls;
    let text = "the handler of `finding::bus::Double` in `app/a` did not answer: aborted";
    assert_eq!(first.await.unwrap(), text);
    let text = "`app/a` no longer answers `finding::bus::Double`; register a handler with `answer`";
    assert_eq!(second.await.unwrap(), text);
    let expected = ["handler_error app/a Double: aborted", "no_handler app/a Double"];
    assert_eq!(described(&mut letters), expected);
    app.stop("enough").await.unwrap();
    assert!(matches!(
        app.bus().call(Double(3), None).await,
        Err(CallError::NoHandler { handler: None, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_calls_itself_ends_by_the_time_limit() {
    let (report, mut reports) = mpsc::unbounded_channel();
    let a = member("a", move |ctx| {
        let (bus, report) = (ctx.bus(), report.clone());
        let answered = ctx.bus().answer(move |request: Arc<Double>| {
            let (bus, report) = (bus.clone(), report.clone());
            async move {
                let inner = bus.call(Double(request.0 + 1), SECOND).await;
                report.send(inner.unwrap_err().to_string()).unwrap();
                Exit::Ok(()).map(|()| 7)
            }
        });
        answered.unwrap();
    });
    let app = start([a]).await;
    assert_eq!(app.bus().call(Double(1), None).await.unwrap(), 7);
    let text = "the handler of `finding::bus::Double` in `app/a` did not answer within 1s";
    assert_eq!(reports.recv().await.unwrap(), text);
    assert!(reports.try_recv().is_err(), "the inner request was never handled");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_can_fail_the_call_and_the_child() {
    let a = member("a", |ctx| drop(answer(&ctx.bus().errors_fail_child()).unwrap()));
    let app = start([a.backoff(Backoff::constant(SECOND))]).await;
    let error = app.bus().call(Double(u32::MAX), None).await.unwrap_err();
    assert!(error.to_string().ends_with("failed: too large"), "{error}");
    sleep(2 * SECOND).await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 2);
    app.stop("enough").await.unwrap();
}

/// A request whose answer panics while it is dropped.
struct Explode;

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

impl Request for Explode {
    type Reply = Bomb;
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_drop_panics_ends_no_handler() {
    let a = member("a", |ctx| {
        ctx.bus().answer(|_: Arc<Explode>| async { Ok::<_, ExitError>(Bomb) }).unwrap();
    });
    let app = start([a]).await;
    for _ in 0..2 {
        let bus = app.bus();
        let call = tokio::spawn(async move { bus.call(Explode, None).await.map(std::mem::forget) });
        call.await.unwrap().unwrap();
        let bus = app.bus();
        let call = tokio::spawn(async move { bus.call(Explode, None).await.map(std::mem::forget) });
        tokio::task::yield_now().await;
        call.abort();
        settle().await;
    }
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_limit_is_shown_immediately_and_logged_once_it_takes_long() {
    let log = Log::at(LevelFilter::WARN);
    let silent = member("a", |ctx| {
        let answer = async |_: Arc<Double>| pending::<Result<u32, ExitError>>().await;
        drop(ctx.bus().answer(answer).unwrap());
    });
    let asks = worker("b", async |ctx: Context| {
        let _ = ctx.run_until_cancelled(ctx.bus().call(Double(1), None)).await;
    });
    let app = start([silent, asks]).await;
    settle().await;
    let awaits = app.which_child("b").await.unwrap().awaits;
    assert_eq!(awaits.as_deref(), Some("an answer of app/a"));
    sleep(9 * SECOND).await;
    assert_eq!(log.lines(), [""; 0]);
    sleep(32 * SECOND).await;
    let line = |waited: &str| {
        format!(
            "WARN verger::lifecycle: waiting for an answer child=app/b of=app/a waited={waited}"
        )
    };
    assert_eq!(log.lines(), [line("10s"), line("40s")]);
    app.stop("enough").await.unwrap();
}
