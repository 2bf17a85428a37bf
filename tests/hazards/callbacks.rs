//! A panic in each place where this crate calls code of the user's.
//!
//! The tree goes on: siblings are not touched, calls are answered, the tree stops in order. A panic that
//! is a child's failure, or that is reported, keeps its text.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::app::StopCause;
use verger::dead_letter::DeadLetterStore;
use verger::resilience::{CallError, CircuitBreaker, CircuitState, Retry, retry};
use verger::{Context, Supervisor, mailbox_with_capacity, worker_with, worker_with_mailbox};

use crate::common::settle;
use crate::hook_places::{Action, PLACES, Place};
use crate::hooks::{self, drive};
use crate::log::Log;
use crate::probe::{self, assert_works, idle, in_time, tasks, tree};

const SECOND: Duration = Duration::from_secs(1);

/// A panic payload whose drop panics, with a payload like itself.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic_any(Bomb);
        }
    }
}

const ACTIONS: [(&str, Action); 2] = [
    ("panics", |place, _| panic!("in {place:?}")),
    ("panics with a payload that panics", |_, _| panic_any(Bomb)),
];

#[tokio::test(start_paused = true)]
async fn a_panic_in_any_callback_ends_no_supervisor_and_touches_no_sibling() {
    // tokio doesn't survive a waker that panics on drop either.
    let places = PLACES.iter().filter(|place| **place != Place::DropWaker);
    for (&place, (what, action)) in places.flat_map(|it| ACTIONS.map(|action| (it, action))) {
        let name = format!("{place:?} {what}");
        let probe = hooks::start(tree(), place, action).await;
        drive(&probe).await;
        assert!(probe.reached() > 0, "{name}: it was not reached");
        assert_works(&probe.world().app, &name).await;
    }
}

/// The places whose panics are failures of a child, or are reported.
const REPORTED: [Place; 13] = [
    Place::Factory,
    Place::Activate,
    Place::Run,
    Place::Deactivate,
    Place::DropValue,
    Place::Function,
    Place::Poll,
    Place::DropFuture,
    Place::CloneState,
    Place::ConvertError,
    Place::OnChildFailure,
    Place::HealthCheck,
    Place::DropHealthCheck,
];

#[tokio::test(start_paused = true)]
async fn a_panic_that_is_reported_keeps_its_text() {
    for place in REPORTED {
        let log = Log::at(LevelFilter::WARN);
        let probe = hooks::start(tree(), place, ACTIONS[0].1).await;
        drive(&probe).await;
        let (lines, text) = (log.lines(), format!("in {place:?}"));
        let shown = lines.iter().any(|line| line.contains(&text) && line.contains("app/hooks"));
        assert!(shown, "{place:?}: {lines:#?}");
        assert_works(&probe.world().app, &text).await;
    }
}

// --- Calls of services ---------------------------------------------------------------------------

/// Awaits a call in a task of its own. Returns the text of its panic.
async fn panic_of<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> String {
    let panic = tokio::spawn(call).await.err().expect("it panics").into_panic();
    panic.downcast_ref::<&str>().copied().expect("a text").to_owned()
}

fn opened(breaker: &CircuitBreaker<&'static str>) -> impl Future<Output = ()> + Send + 'static {
    let breaker = breaker.clone();
    async move {
        breaker.call(async || Err::<(), _>("down")).await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_on_change_affects_no_call() {
    let called = Arc::<AtomicU32>::default();
    let calls = Arc::clone(&called);
    let breaker = CircuitBreaker::new("service").max_failures(1).reset_after(SECOND);
    let breaker = breaker.on_change(move |_, _| {
        calls.fetch_add(1, Ordering::Relaxed);
        panic!("in on_change");
    });
    opened(&breaker).await;
    sleep(SECOND).await;
    // The probe is reported, and so is its failure, while it unwinds.
    let (panics, probe) = (breaker.clone(), "in the call");
    let call = async move {
        drop(panics.call(async || -> Result<(), &str> { panic!("{}", "in the call") }).await)
    };
    let error = tokio::spawn(call).await.unwrap_err().into_panic();
    assert_eq!(*error.downcast::<String>().unwrap(), probe);
    assert_eq!((breaker.state(), called.load(Ordering::Relaxed)), (CircuitState::Open, 3));
    sleep(SECOND).await;
    assert_eq!(breaker.call(async || Ok(1)).await, Ok::<_, CallError<&str>>(1));
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_predicate_of_a_breaker_is_the_callers_and_counts_as_a_failure() {
    type Set = fn(CircuitBreaker<&'static str>) -> CircuitBreaker<&'static str>;
    let sets: [Set; 2] = [
        |breaker| breaker.fails_if(|_| panic!("in a predicate")),
        |breaker| breaker.retry_after(|_| panic!("in a predicate")),
    ];
    for set in sets {
        let breaker = set(CircuitBreaker::new("service").max_failures(1).reset_after(SECOND));
        assert_eq!(panic_of(opened(&breaker)).await, "in a predicate");
        assert_eq!(breaker.state(), CircuitState::Open);
        sleep(SECOND).await;
        assert_eq!(breaker.call(async || Ok(1)).await, Ok::<_, CallError<&str>>(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_callback_of_a_retry_is_the_callers() {
    type Set = fn(Retry<(), &'static str>) -> Retry<(), &'static str>;
    let sets: [Set; 4] = [
        |policy| policy.again_if(|_, _| panic!("in a retry")),
        |policy| policy.retry_after(|_, _| panic!("in a retry")),
        |policy| policy.on_failure(|_, _, _| panic!("in a retry")),
        |policy| policy.random(|| panic!("in a retry")),
    ];
    for (index, set) in sets.into_iter().enumerate() {
        let backoff = verger::Backoff::constant(SECOND).jitter(verger::policy::Jitter::Full);
        let call = retry(set(Retry::with(backoff)), async || Err::<(), _>("down"));
        match tokio::spawn(call).await {
            // A random source that panics returns zero.
            Ok(result) => assert_eq!((index, result.is_err()), (3, true)),
            Err(error) => assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "in a retry"),
        }
    }
}

// --- The end of a tree ---------------------------------------------------------------------------

struct Cause;

impl StopCause for Cause {
    fn cause(&self) -> Cow<'_, str> {
        panic!("in the cause")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_future_of_a_graceful_shutdown_stops_the_tree_in_order() {
    let before = tasks();
    for in_cause in [false, true] {
        let (saw, seen) = std::sync::mpsc::channel();
        let asks = worker_with("asks", saw, async |ctx: Context, saw| {
            ctx.cancelled().await;
            let saw: std::sync::mpsc::Sender<_> = saw;
            saw.send(ctx.stop_reason()).unwrap();
        });
        let app = Supervisor::builder("app").child(idle("a")).child(asks).build().unwrap();
        let shutdown = async move {
            sleep(SECOND).await;
            assert!(in_cause, "in the future");
            Cause
        };
        let run = tokio::spawn(async move { app.with_graceful_shutdown(shutdown).await });
        let error = in_time(run, "run").await.unwrap().unwrap_err();
        let cause = if in_cause { "panicked: in the cause" } else { "panicked: in the future" };
        assert_eq!(
            (error.to_string(), error.exit_code()),
            (format!("`app` was stopped: {cause}"), 1)
        );
        assert_eq!(seen.recv().unwrap().as_deref(), Some(cause));
        settle().await;
        assert_eq!(tasks(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_question_of_an_ask_is_the_callers_and_sends_nothing() {
    let (address, mailbox) = verger::mailbox::<verger::mailbox::Reply<u32>>();
    let asks = address.clone();
    let ask = async move {
        drop(asks.ask(|_reply: verger::mailbox::Reply<u32>| panic!("in the question")).await)
    };
    assert_eq!(panic_of(AssertUnwindSafe(ask)).await, "in the question");
    assert!(address.is_empty());
    drop(mailbox);
}

// --- Messages ------------------------------------------------------------------------------------

/// A message that panics on drop, also during a panic, where a second one ends the process.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("it is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn letters_whose_messages_panic_on_drop_are_dropped_one_by_one() {
    let store = DeadLetterStore::ring(10).retention(SECOND);
    let (address, inbox) = mailbox_with_capacity::<Grenade>(4);
    let never = async |ctx: Context, _inbox| ctx.cancelled().await;
    let never = worker_with_mailbox("never", inbox, never);
    let app = probe::start(tree().dead_letter_store(&store).child(never)).await;
    let letters = app.dead_letters();
    for _ in 0..2 {
        (0..4).for_each(|_| address.try_send(Grenade).unwrap_or_else(std::mem::forget));
        app.stop_child("never").await.unwrap();
        app.otp().restart_child("never").await.unwrap();
        sleep(SECOND).await;
    }
    // The store and the subscription drop several at once.
    assert!(store.entries().is_empty());
    drop(letters);
    (0..4).for_each(|_| address.try_send(Grenade).unwrap_or_else(std::mem::forget));
    drop(store);
    assert_works(&app, "letters").await;
}
