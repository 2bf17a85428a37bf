//! Calls, runs and waits that are dropped after any number of polls, before and after they are woken.
//!
//! A call is polled 0, 1, 2, … times, until it resolves. Then the tree works, a call that was polled has
//! been carried out and no other has, and no task is left. Messages and streams are in
//! `cancel_messages.rs`.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use verger::resilience::{CallError, CircuitBreaker, CircuitState, Retry, retry};
use verger::status::EventKind;
use verger::{Application, Context, Exit, Supervisor, worker_with};

use crate::common::settle;
use crate::probe::{
    CALLS, DROPPED, Dropped, OTHER_CALLS, assert_works, idle, in_time, polled, start, states,
    tasks, tree,
};

const SECOND: Duration = Duration::from_secs(1);

// --- Calls of a handle ---------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_dropped_call_was_carried_out_if_it_was_polled_and_leaves_the_tree_as_it_is() {
    for ((name, child, call), when) in
        CALLS.into_iter().flat_map(|it| DROPPED.map(|when| (it, when)))
    {
        let before = tasks();
        for polls in 0.. {
            let probe = format!("{name}, {polls} polls, dropped {when:?}");
            let app = start(tree()).await;
            let unchanged = states(&app).await;

            let answer = polled(call(app.clone(), child), polls, when).await;
            settle().await;

            let has_changed = states(&app).await != unchanged;
            assert_eq!(has_changed, polls > 0 && !child.is_empty(), "{probe}");
            if let Some(answer) = &answer {
                assert_eq!(answer, "ok", "{probe}");
            }
            // A second call is answered, in words.
            in_time(call(app.clone(), child), &probe).await;
            assert_works(&app, &probe).await;
            drop(app);
            settle().await;
            assert_eq!(tasks(), before, "{probe}");
            if answer.is_some() {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_and_a_dropped_subscription_change_nothing_and_a_dropped_stop_goes_on() {
    for ((name, call), when) in
        OTHER_CALLS.into_iter().flat_map(|it| DROPPED.map(|when| (it, when)))
    {
        for polls in 0..4 {
            let probe = format!("{name}, {polls} polls, dropped {when:?}");
            let app = start(tree()).await;
            polled(call(app.clone(), ""), polls, when).await;
            settle().await;

            if name == "stop" && polls > 0 {
                in_time(app.wait(), &probe).await.unwrap();
            } else {
                assert_works(&app, &probe).await;
            }
        }
    }
}

// --- Runs of a tree ------------------------------------------------------------------------------

type Run = fn(Supervisor) -> Pin<Box<dyn Future<Output = ()>>>;

#[tokio::test(start_paused = true)]
async fn a_tree_whose_start_or_run_is_dropped_leaves_no_task() {
    let runs: [(&str, Run); 4] = [
        ("start", |tree| {
            Box::pin(async {
                let app = tree.start().await.unwrap();
                app.stop("it is up").await.unwrap();
            })
        }),
        ("run", |tree| Box::pin(async { tree.run().await.unwrap() })),
        ("with_graceful_shutdown", |tree| {
            let ends = sleep(100 * SECOND);
            Box::pin(async { tree.with_graceful_shutdown(ends).into_future().await.unwrap() })
        }),
        ("run_to_exit_code", |tree| {
            Box::pin(async {
                let app = Application::new(tree).listen_to_signals(false);
                app.exit_grace(Duration::MAX).run().await;
            })
        }),
    ];
    for ((name, run), when) in runs.into_iter().flat_map(|it| DROPPED.map(|when| (it, when))) {
        for polls in 0..10 {
            let probe = format!("{name}, {polls} polls, dropped {when:?}");
            let before = tasks();
            let slow = worker_with("slow", (), async |ctx: Context, ()| -> Exit {
                sleep(SECOND).await;
                ctx.ready();
                ctx.cancelled().await;
                Ok(())
            });
            let slow = slow.readiness(verger::Readiness::Signal);
            let built = Supervisor::builder("app").child(idle("a")).child(slow).child(idle("c"));

            let ended = polled(run(built.build().unwrap()), polls, when).await.is_some();

            settle().await;
            assert_eq!(tasks(), before, "{probe}");
            if ended {
                break;
            }
        }
    }
}

// --- Contexts ------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_child_that_drops_its_waits_is_cancelled_in_time() {
    for (when, polls) in DROPPED.into_iter().flat_map(|when| [0, 1, 2].map(|polls| (when, polls))) {
        let waits = worker_with("waits", (), move |ctx: Context, ()| async move {
            polled(ctx.cancelled(), polls, Dropped::AtOnce).await;
            polled(ctx.token().cancelled(), polls, Dropped::AtOnce).await;
            polled(ctx.run_until_cancelled(sleep(SECOND)), polls, when).await;
            polled(ctx.run_until_cancelled(ctx.cancelled()), polls, Dropped::AtOnce).await;
            ctx.cancelled().await;
        });
        let app = start(tree().child(waits)).await;
        let mut events = app.events();
        sleep(200 * SECOND).await;
        let called = tokio::time::Instant::now();
        app.stop_child("waits").await.unwrap();
        assert_eq!(called.elapsed(), Duration::ZERO, "{polls} polls, {when:?}");
        while let Some(event) = events.try_next() {
            assert!(!matches!(event.kind, EventKind::Leaked), "{event:?}");
        }
        assert_works(&app, "context").await;
    }
}

// --- Calls of services ---------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_dropped_call_of_a_breaker_counts_as_nothing_and_leaves_the_probe_to_the_next() {
    for (when, polls) in DROPPED.into_iter().flat_map(|when| [0, 1, 2].map(|polls| (when, polls))) {
        let breaker = CircuitBreaker::new("service").max_failures(1).reset_after(SECOND);
        for _ in 0..10 {
            let slow = breaker.call(async || {
                sleep(SECOND).await;
                sleep(SECOND).await;
                Err::<(), _>("slow")
            });
            assert_eq!(polled(slow, polls, when).await, None);
        }
        assert_eq!(breaker.state(), CircuitState::Closed);
        breaker.call(async || Err::<(), _>("down")).await.unwrap_err();
        sleep(SECOND).await;
        for _ in 0..10 {
            let probe = breaker.call(async || {
                sleep(SECOND).await;
                sleep(SECOND).await;
                Ok(())
            });
            assert_eq!(polled(probe, polls, when).await, None);
        }
        assert_eq!(breaker.call(async || Ok(1)).await, Ok::<_, CallError<&str>>(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_retry_makes_no_further_attempt() {
    for (when, polls) in DROPPED.into_iter().flat_map(|when| [0, 1, 2, 3].map(|it| (when, it))) {
        let made = Arc::<AtomicU32>::default();
        let policy = Retry::new().attempts(10).delay(SECOND);
        let call = retry(policy, || {
            let made = Arc::clone(&made);
            async move {
                made.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>("down")
            }
        });
        assert_eq!(polled(call, polls, when).await, None);
        sleep(100 * SECOND).await;
        assert_eq!(made.load(Ordering::Relaxed), polls as u32, "dropped {when:?}");
    }
}
