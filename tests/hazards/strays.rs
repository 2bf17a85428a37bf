//! Dropped handles, contexts of earlier incarnations, and early requests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::mailbox::Reply;
use verger::policy::Jitter;
use verger::{
    Backoff, Context, ControlError, Exit, Lifecycle, Readiness, Supervisor, SupervisorHandle,
    mailbox, worker, worker_with, worker_with_mailbox,
};

use crate::common::{FakeChildren, NextStart, killed, settle};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_stops_nothing() {
    let ticks = Arc::new(AtomicU32::new(0));
    let clock = worker_with("clock", Arc::clone(&ticks), async |_ctx, ticks| -> Exit {
        loop {
            sleep(secs(1)).await;
            ticks.fetch_add(1, Ordering::Relaxed);
        }
    });
    let app = Supervisor::builder("app").child(clock).build().unwrap().start().await.unwrap();
    let second = app.clone();
    let mid = app.events();
    drop((app, second, mid));
    sleep(Duration::from_millis(10_500)).await;
    assert_eq!(ticks.load(Ordering::Relaxed), 10);
}

/// A child that keeps the contexts of all its incarnations, and fails on demand.
fn keeper(kept: &Arc<Mutex<Vec<Context>>>) -> verger::ChildSpec {
    let spec = worker_with("keeper", Arc::clone(kept), async |ctx: Context, kept| -> Exit {
        kept.lock().unwrap().push(ctx.clone());
        ctx.run_until_cancelled(sleep(secs(10))).await.ok_or("stopped")?;
        Err("its time is over".into())
    });
    spec.readiness(Readiness::Signal)
}

#[tokio::test(start_paused = true)]
async fn calls_through_the_context_of_an_earlier_incarnation_are_ignored() {
    let kept = Arc::default();
    let backoff = Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None);
    let tree = Supervisor::builder("app").start(verger::policy::Start::Concurrent);
    let tree = tree.child(keeper(&kept).backoff(backoff)).build().unwrap();
    let starting = tokio::spawn(tree.start());
    sleep(secs(11)).await;
    settle().await;
    let [first, second] = <[Context; 2]>::try_from(kept.lock().unwrap().clone()).unwrap();
    let app = first.parent();
    let seen = async |app: &SupervisorHandle| app.which_child("keeper").await.unwrap();
    assert_eq!((first.incarnation(), second.incarnation()), (1, 2));

    first.ready();
    first.set_status("from the grave");
    first.report_healthy();
    first.stop_self();
    settle().await;
    let child = seen(&app).await;
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Activating, 2));
    assert_eq!(child.status, None);
    assert!(!second.is_cancelled());

    // The second consecutive failure waits twice as long: no healthy incarnation has reported.
    sleep(secs(10)).await;
    settle().await;
    assert_eq!(seen(&app).await.next.unwrap().delay, secs(2));
    sleep(secs(2)).await;
    settle().await;
    second.ready();
    settle().await;
    assert_eq!(seen(&app).await.lifecycle, Lifecycle::Activating);
    let third = kept.lock().unwrap()[2].clone();
    third.ready();
    settle().await;
    assert_eq!(seen(&app).await.lifecycle, Lifecycle::Active);
    assert!(starting.await.unwrap().is_ok());
    third.stop_self();
    settle().await;
    assert!(third.is_cancelled());
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_childs_own_tasks_are_cancelled_however_it_ended() {
    type End = fn(u32) -> Exit;
    let ends: [End; 3] = [|_| Err("refused".into()), |_| panic!("broken"), |_| Ok(())];
    for end in ends {
        let notified = Arc::new(AtomicU32::new(0));
        let shared = (Arc::clone(&notified), end);
        let child = worker_with("child", shared, async |ctx: Context, (notified, end)| {
            let (token, context) = (ctx.token(), ctx.clone());
            for heard in 0..2 {
                let (notified, token, context) =
                    (Arc::clone(&notified), token.clone(), context.clone());
                tokio::spawn(async move {
                    match heard {
                        0 => token.cancelled().await,
                        _ => context.cancelled().await,
                    }
                    notified.fetch_add(1, Ordering::Relaxed);
                });
            }
            drop((token, context));
            sleep(secs(1)).await;
            end(ctx.incarnation())
        });
        let app = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
        sleep(Duration::from_millis(999)).await;
        assert_eq!(notified.load(Ordering::Relaxed), 0);
        sleep(Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(notified.load(Ordering::Relaxed), 2);

        // The next incarnation hasn't ended.
        sleep(Duration::from_millis(500)).await;
        app.kill("child").await.unwrap();
        settle().await;
        assert_eq!(notified.load(Ordering::Relaxed), 4, "it was aborted");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_the_end_of_its_own_tree_is_aborted_after_its_grace() {
    let waiting = worker("waiting", async |ctx: Context| -> Exit {
        sleep(secs(1)).await;
        Ok(ctx.parent().stop("for myself").await?)
    });
    let began = Instant::now();
    Supervisor::builder("app").child(waiting).build().unwrap().run().await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), secs(1 + 5));
}

#[tokio::test(start_paused = true)]
async fn requests_are_served_while_the_tree_starts() {
    let fakes = FakeChildren::new();
    fakes.next_starts("slow", [NextStart::Hang]);
    let handle: Arc<Mutex<Option<SupervisorHandle>>> = Arc::default();
    let first = worker_with("first", Arc::clone(&handle), async |ctx: Context, handle| -> Exit {
        *handle.lock().unwrap() = Some(ctx.parent());
        ctx.cancelled().await;
        Ok(())
    });
    let tree = Supervisor::builder("app").child(first).child(fakes.child("slow"));
    let began = Instant::now();
    let starting = tokio::spawn(tree.child(fakes.child("last")).build().unwrap().start());
    settle().await;
    let app = handle.lock().unwrap().clone().unwrap();

    let states = async |app: &SupervisorHandle| {
        let children = app.children().await.unwrap();
        let states = children.iter().map(|child| format!("{} {}", child.path, child.lifecycle));
        states.collect::<Vec<_>>()
    };
    let starting_up = ["app/first active", "app/slow activating", "app/last discovered"];
    assert_eq!(states(&app).await, starting_up);
    assert_eq!(app.status().await.unwrap().root.child.lifecycle, Lifecycle::Activating);
    assert_eq!(app.otp().count_children().await.unwrap().active, 2);
    assert_eq!(app.child_spec("last").await.unwrap().name, "last");
    app.restart("first").await.unwrap();
    app.start_child(fakes.child("added")).await.unwrap();
    let error = app.start_child(fakes.child("last")).await.unwrap_err();
    assert!(matches!(error, ControlError::NameTaken { running: false, .. }), "{error}");
    assert!(!starting.is_finished());

    app.stop_child("slow").await.unwrap();
    assert!(starting.await.unwrap().is_ok(), "siblings do not wait for a manually stopped child");
    let up = ["app/first active", "app/slow stopped", "app/last active", "app/added active"];
    assert_eq!(states(&app).await, up);
    assert_eq!(began.elapsed(), secs(5), "the grace of the child that did not hear");
    app.stop("done").await.unwrap();
}

/// Calls `call` many times, and returns how often a second task ran meanwhile.
async fn yields<T>(mut call: impl AsyncFnMut() -> T) -> u32 {
    let polls = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&polls);
    let other = tokio::spawn(async move {
        loop {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..10_000 {
        call().await;
    }
    other.abort();
    polls.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_loop_over_calls_that_need_no_answer_lets_other_tasks_run() {
    let (address, inbox) = mailbox::<Reply<u32>>();
    let child = worker_with_mailbox("child", inbox, async |ctx: Context, _| ctx.cancelled().await);
    let app = Supervisor::builder("app").child(Supervisor::builder("below"));
    let app = app.child(child).build().unwrap().start().await.unwrap();
    // tokio lets a task take 128 steps in a poll.
    const MANY: u32 = 10_000 / 128 / 2;
    assert!(yields(async || app.which_child("").await.unwrap_err()).await > MANY);
    assert!(yields(async || app.supervisor("").await.unwrap_err()).await > MANY);
    assert!(yields(async || app.supervisor("below").await.unwrap()).await > 0);
    assert!(yields(async || app.start_child(worker("", idle)).await.unwrap_err()).await > MANY);
    app.stop("done").await.unwrap();
    assert!(yields(async || app.wait().await.unwrap()).await > MANY);
    assert!(yields(async || app.which_child("below").await.unwrap_err()).await > MANY);
    assert!(yields(async || address.ask(|reply| reply).await.unwrap_err()).await > MANY);
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}
