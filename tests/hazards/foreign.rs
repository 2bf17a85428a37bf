//! Values of the user's that panic when they are dropped, errors without an end, and texts that aren't
//! one line. None of it reaches a supervisor.

use std::error::Error;
use std::fmt;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{self, Wake, Waker};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::level_filters::LevelFilter;
use verger::mailbox::{Inbox, WhileDown};
use verger::policy::{Curve, OnExit};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, HealthCheck, Lifecycle,
    RestartType, RunError, Supervisor, SupervisorHandle, mailbox, mailbox_with_capacity, worker,
    worker_with, worker_with_mailbox,
};

use crate::common::settle;
use crate::log::Log;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A value that panics when it is dropped, and whose panic has such a value as its payload.
#[derive(Clone)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::panic_any(Bomb);
        }
    }
}

/// A child whose spec owns a value that panics when it is dropped.
fn armed(name: &str) -> ChildSpec {
    let bomb = Arc::new(Bomb);
    worker(name, move |ctx: Context| {
        let _bomb = &bomb;
        async move { ctx.cancelled().await }
    })
}

async fn with_sibling() -> SupervisorHandle {
    let sibling = worker("sibling", async |ctx: Context| ctx.cancelled().await);
    Supervisor::builder("app").child(sibling).build().unwrap().start().await.unwrap()
}

/// The supervisor runs, and so does its first child.
async fn assert_untouched(app: SupervisorHandle) {
    let sibling = app.which_child("sibling").await.unwrap();
    assert_eq!((sibling.lifecycle, sibling.incarnation), (Lifecycle::Active, 1));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rejected_spec_whose_captures_panic_ends_nothing() {
    let app = with_sibling().await;
    let refused = app.start_child(armed("sibling")).await.unwrap_err();
    assert!(matches!(refused, ControlError::NameTaken { running: true, .. }), "{refused}");
    assert_untouched(app).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_spec_whose_captures_panic_ends_nothing() {
    let app = with_sibling().await;
    app.start_child(armed("armed")).await.unwrap();
    app.stop_child("armed").await.unwrap();
    app.otp().delete_child("armed").await.unwrap();
    assert_untouched(app).await;
}

#[tokio::test(start_paused = true)]
async fn a_temporary_child_whose_captures_panic_ends_nothing() {
    let app = with_sibling().await;
    app.start_child(armed("armed").restart(RestartType::Temporary)).await.unwrap();
    app.kill("armed").await.unwrap();
    sleep(secs(1)).await;
    let gone = app.which_child("armed").await.unwrap_err();
    assert!(matches!(gone, ControlError::NotFound { .. }), "{gone}");
    assert_untouched(app).await;

    let conns = DynamicSupervisor::builder("conns").build().unwrap().start().await.unwrap();
    let conn = conns.start_child(armed("conn")).await.unwrap();
    conns.stop_child(conn.path().name()).await.unwrap();
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 0);
    conns.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn predicates_and_callbacks_whose_captures_panic_end_nothing() {
    let app = with_sibling().await;
    let bombs = [(); 3].map(|()| Arc::new(Bomb));
    let [restarts, waits, checks] = bombs;
    let check = HealthCheck::new(move |_ctx| {
        let _bomb = &checks;
        async { Ok::<_, fmt::Error>(()) }
    });
    let spec = worker("armed", async |ctx: Context| ctx.cancelled().await)
        .on_error(move |_error: &fmt::Error| Arc::strong_count(&restarts) > 9, OnExit::Restart)
        .retry_after(move |_error: &fmt::Error| {
            let _bomb = &waits;
            None
        })
        .health_check(check);
    app.start_child(spec).await.unwrap();
    app.stop_child("armed").await.unwrap();
    app.otp().delete_child("armed").await.unwrap();
    assert_untouched(app).await;
}

/// A curve that panics when it is dropped.
struct ArmedCurve(Arc<Bomb>);

impl Curve for ArmedCurve {
    fn delay(&self, _index: u32) -> Duration {
        Duration::from_secs(Arc::strong_count(&self.0) as u64)
    }
}

#[tokio::test(start_paused = true)]
async fn curves_and_options_of_mailboxes_whose_captures_panic_end_nothing() {
    let app = with_sibling().await;
    let [curve, last, reply] = [(); 3].map(|()| Arc::new(Bomb));
    let (_, inbox) = mailbox::<u32>();
    let inbox = inbox
        .final_message(move |_| Arc::strong_count(&last) > 9)
        .while_down(WhileDown::reply(move |_| drop(Arc::clone(&reply))));
    let spec = worker_with_mailbox("armed", inbox, async |ctx: Context, _inbox| -> Exit {
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    app.start_child(spec.backoff(Backoff::custom(ArmedCurve(curve)))).await.unwrap();
    sleep(secs(10)).await;
    assert_eq!(app.which_child("armed").await.unwrap().incarnation, 2);
    app.stop_child("armed").await.unwrap();
    app.otp().delete_child("armed").await.unwrap();
    assert_untouched(app).await;
}

#[tokio::test(start_paused = true)]
async fn a_random_factory_that_panics_is_as_good_as_none() {
    let child = worker("fails", async |ctx: Context| -> Exit {
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app").random(|| -> fn() -> f64 { panic!("no numbers") });
    let app = app.child(child).build().unwrap().start().await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(app.which_child("fails").await.unwrap().incarnation, 2);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_health_check_that_panics_with_a_payload_that_panics_goes_on() {
    let check = HealthCheck::new(|_ctx| -> std::future::Ready<()> { std::panic::panic_any(Bomb) });
    let child = worker("checked", async |ctx: Context| ctx.cancelled().await)
        .backoff(Backoff::none())
        .health_check(check.every(secs(1)).failures(2).restarts());
    let app = Supervisor::builder("app").unlimited_restarts().child(child);
    let app = app.build().unwrap().start().await.unwrap();
    sleep(Duration::from_millis(6_500)).await;
    assert_eq!(app.which_child("checked").await.unwrap().incarnation, 4);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_panics_with_such_a_payload_and_is_such_a_value_is_restarted() {
    let fails = worker_with("fails", (), async |ctx: Context, ()| -> Exit {
        let _bomb = Bomb;
        if ctx.incarnation() < 3 {
            std::panic::panic_any(Bomb);
        }
        ctx.cancelled().await;
        Ok(())
    });
    let app = Supervisor::builder("app").child(fails.backoff(Backoff::none()));
    let app = app.build().unwrap().start().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(app.which_child("fails").await.unwrap().incarnation, 3);
    app.stop("done").await.unwrap_or_else(|error| panic!("{error}"));
}

/// A waker that panics.
struct Alarm;

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

/// Polls a future once with such a waker. It is pending then.
fn poll_with_alarm<T>(future: Pin<&mut impl Future<Output = T>>) {
    let waker = Waker::from(Arc::new(Alarm));
    assert!(future.poll(&mut task::Context::from_waker(&waker)).is_pending());
}

#[tokio::test(start_paused = true)]
async fn wakers_that_panic_end_nothing() {
    let (address, inbox) = mailbox_with_capacity::<u32>(1);
    let waits = worker_with_mailbox("waits", inbox, async |ctx: Context, mut inbox: Inbox<u32>| {
        poll_with_alarm(pin!(inbox.recv()));
        let (mut first, mut token) = (pin!(ctx.cancelled()), pin!(ctx.token().cancelled_owned()));
        poll_with_alarm(first.as_mut());
        poll_with_alarm(token.as_mut());
        pending::<()>().await;
    });
    let app = with_sibling().await;
    app.start_child(waits.shutdown(secs(1))).await.unwrap();
    settle().await;
    address.try_send(1).unwrap();
    let mut sends = pin!(address.send(2));
    poll_with_alarm(sends.as_mut());
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    let (mut event, mut letter) = (pin!(events.next()), pin!(letters.next()));
    poll_with_alarm(event.as_mut());
    poll_with_alarm(letter.as_mut());
    let mut call = pin!(app.which_child("sibling"));
    poll_with_alarm(call.as_mut());
    settle().await;
    assert_eq!(call.await.unwrap().lifecycle, Lifecycle::Active);

    app.stop_child("waits").await.unwrap();
    assert_untouched(app.clone()).await;
}

/// Lets a task wait for a future, between two polls of such futures with wakers that panic.
async fn between_alarms<F>(mut future: impl FnMut() -> F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let alarm = |future: F| {
        // It waits for as long as the test.
        let mut future = Box::leak(Box::new(Box::pin(future)));
        poll_with_alarm(Pin::new(&mut future));
    };
    alarm(future());
    let task = tokio::spawn(future());
    settle().await;
    alarm(future());
    task
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_keeps_no_other_task_from_being_woken() {
    let seen: Arc<Mutex<Vec<Context>>> = Arc::default();
    let fails = worker_with("fails", Arc::clone(&seen), async |ctx: Context, seen| -> Exit {
        seen.lock().unwrap().push(ctx);
        sleep(secs(1)).await;
        Err("once".into())
    });
    let app = Supervisor::builder("app").child(fails.own_restarts(0, secs(60)));
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    let events = between_alarms(|| {
        let mut events = app.events();
        async move { events.next().await.map(drop) }
    });
    let events = events.await;
    let letters = between_alarms(|| {
        let mut letters = app.dead_letters();
        async move { letters.next().await.map(drop) }
    });
    let letters = letters.await;
    let ends = between_alarms(|| {
        let app = app.clone();
        async move { app.wait().await.err().map(drop) }
    });
    let ends = ends.await;
    let ctx = seen.lock().unwrap()[0].clone();
    let cancelled = between_alarms(|| {
        let ctx = ctx.clone();
        async move {
            ctx.cancelled().await;
            Some(())
        }
    });
    let cancelled = cancelled.await;

    for task in [events, letters, ends, cancelled] {
        assert_eq!(timeout(secs(9), task).await.expect("it is woken").unwrap(), Some(()));
    }
}

/// An error that is its own cause.
#[derive(Debug)]
struct Ouroboros;

impl fmt::Display for Ouroboros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is the cause of itself")
    }
}

impl Error for Ouroboros {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

/// An error with a million causes.
#[derive(Debug)]
struct Deep(u32, Option<Box<Deep>>);

impl fmt::Display for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", self.0)
    }
}

impl Error for Deep {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_ref().map(|cause| &**cause as _)
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_its_own_cause_is_a_failure_like_any_other() {
    let fails = worker("fails", async |_ctx| -> Exit { Err(Ouroboros.into()) })
        .on_error(|_error: &fmt::Error| true, OnExit::Leave)
        .retry_after(|_error: &fmt::Error| Some(secs(9)))
        .own_restarts(1, secs(60));
    let app = Supervisor::builder("app").child(fails).build().unwrap().start().await.unwrap();
    let error = app.wait().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`app` gave up on `app/fails`: failed: it is the cause of itself"
    );
}

#[tokio::test(start_paused = true)]
async fn of_very_many_causes_the_first_hundred_are_shown() {
    let fails = worker("fails", async |_ctx| -> Exit {
        let levels = (0..500).rev();
        let deep = levels.fold(None, |cause, level| Some(Box::new(Deep(level, cause))));
        Err((*deep.unwrap()).into())
    });
    let app = Supervisor::builder("app").child(fails.own_restarts(0, secs(60)));
    let app = app.build().unwrap().start().await.unwrap();
    let text = app.wait().await.unwrap_err().to_string();
    assert!(text.starts_with("`app` gave up on `app/fails`: failed: level 0: level 1: "), "{text}");
    assert!(text.ends_with(": level 99: level 100"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_text_of_several_lines_forges_no_line() {
    let log = Log::at(LevelFilter::WARN);
    let text = "no\nERROR verger::restart: giving up \u{1b}[2J\u{7}\u{202e}";
    let fails = worker("fails", move |_ctx| async move { Exit::Err(text.into()) });
    let app = Supervisor::builder("app").child(fails.own_restarts(0, secs(60)));
    let app = app.build().unwrap().start().await.unwrap();
    let error = app.wait().await.unwrap_err();
    let shown = "failed: no\\nERROR verger::restart: giving up \\u{1b}[2J\\u{7}\\u{202e}";
    assert_eq!(error.to_string(), format!("`app` gave up on `app/fails`: {shown}"));
    assert!(matches!(error, RunError::GaveUp { .. }));
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&format!("cause=\"{shown}\"")), "{lines:?}");
}
