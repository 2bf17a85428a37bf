//! Tasks: each incarnation has one of its own, which is gone at its end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::Id;
use verger::policy::OnExhausted;
use verger::{
    Backoff, BuildError, ChildSpec, Context, DynamicSupervisor, DynamicSupervisorBuilder, Exit,
    Lifecycle, Readiness, RestartType, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle,
    mailbox_with_capacity, worker, worker_with_mailbox,
};

use crate::common::killed;

/// The task of each incarnation, by the name of the child.
type Ids = Arc<Mutex<Vec<(&'static str, Id)>>>;

/// Fails `failures` times, and then waits for its end.
fn failing(name: &'static str, failures: u32, ids: &Ids) -> ChildSpec {
    let ids = Arc::clone(ids);
    let run = move |ctx: Context| {
        ids.lock().unwrap().push((name, tokio::task::id()));
        async move {
            ctx.ready();
            if ctx.incarnation() <= failures {
                tokio::time::sleep(Duration::from_millis(1)).await;
                return Err("connection refused".into());
            }
            ctx.cancelled().await;
            Exit::Ok(())
        }
    };
    worker(name, run).backoff(Backoff::none())
}

async fn start(app: Result<Supervisor, BuildError>) -> SupervisorHandle {
    let app = app.unwrap().start().await.unwrap();
    settle().await;
    app
}

fn supervisor() -> SupervisorBuilder {
    Supervisor::builder("app").restarts(10, Duration::from_secs(60))
}

fn dynamic() -> DynamicSupervisorBuilder {
    DynamicSupervisor::builder("conns").restarts(10, Duration::from_secs(60))
}

async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn ids_of(name: &str, ids: &Ids) -> Vec<Id> {
    let ids = ids.lock().unwrap();
    ids.iter().filter(|(it, _)| *it == name).map(|(_, id)| *id).collect()
}

#[tokio::test(start_paused = true)]
async fn each_incarnation_has_a_task_of_its_own() {
    let ids = Ids::default();
    let app = start(supervisor().child(failing("a", 2, &ids)).build()).await;

    let [first, second, third] = ids_of("a", &ids)[..] else { panic!("it ran three times") };
    assert!(first != second && second != third && third != first);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_cancelled_when_it_has_failed_already_comes_back() {
    let ids = Ids::default();
    let group = supervisor().strategy(Strategy::OneForAll);
    // One is there before the next is started, so that there is time for a wake in vain.
    let [a, b] = ["a", "b"].map(|name| failing(name, 1, &ids).readiness(Readiness::Signal));
    let app = start(group.child(a).child(b).build()).await;

    assert_eq!((ids_of("a", &ids).len(), ids_of("b", &ids).len()), (2, 2));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_killed_child_is_restarted_in_a_new_task() {
    let ids = Ids::default();
    let app = start(supervisor().child(failing("a", 0, &ids)).build()).await;

    app.kill("a").await.unwrap();
    settle().await;

    let [first, second] = ids_of("a", &ids)[..] else { panic!("it ran twice") };
    assert_ne!(first, second);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_killed_after_a_restart_is_restarted() {
    let ids = Ids::default();
    let app = start(supervisor().child(failing("a", 1, &ids)).build()).await;

    app.kill("a").await.unwrap();
    settle().await;

    assert_eq!(app.which_child("a").await.unwrap().incarnation, 3);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_restart_has_no_task() {
    let before = tasks();
    let ids = Ids::default();
    let long = Backoff::constant(Duration::from_secs(3600));
    let conns = start(dynamic().build()).await;
    let calm = tasks();
    conns.start_child(failing("terminated", 1, &ids).backoff(long.clone())).await.unwrap();
    conns.start_child(failing("waiting", 1, &ids).backoff(long)).await.unwrap();
    settle().await;
    assert_eq!(tasks(), calm);

    conns.stop_child("terminated#1").await.unwrap();
    settle().await;
    assert_eq!(tasks(), calm);

    conns.stop("done").await.unwrap();
    drop(conns);
    settle().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_declared_child_that_stays_down_keeps_no_task() {
    let ids = Ids::default();
    let waiting = failing("waiting", 1, &ids).backoff(Backoff::constant(Duration::from_secs(3600)));
    let limited = failing("limited", 2, &ids).consecutive_restarts(1);
    let app = supervisor().child(waiting).child(limited.on_exhausted(OnExhausted::StopChild));
    let app = start(app.child(failing("idle", 0, &ids)).build()).await;
    // Only the one that runs has a task.
    let before = tasks();

    app.stop_child("waiting").await.unwrap();
    settle().await;

    assert_eq!(tasks(), before);
    assert_eq!(app.which_child("limited").await.unwrap().lifecycle, Lifecycle::Stopped);
    app.stop_child("idle").await.unwrap();
    settle().await;
    assert_eq!(tasks(), before - 1, "the supervisor is left");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_final_message_comes_while_it_waits_keeps_no_task() {
    let (address, mailbox) = mailbox_with_capacity::<()>(1);
    let mailbox = mailbox.final_message(|()| true);
    let child =
        worker_with_mailbox("child", mailbox, async |_ctx, _inbox| -> Exit { Err("no".into()) });
    let long = Backoff::constant(Duration::from_secs(3600));
    let app = start(supervisor().child(child.backoff(long)).build()).await;
    let before = tasks();

    address.try_send(()).unwrap();
    settle().await;

    assert_eq!(app.which_child("child").await.unwrap().lifecycle, Lifecycle::Stopped);
    assert_eq!(tasks(), before);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_group_that_stays_down_keeps_no_task() {
    let ids = Ids::default();
    let calm = tasks();
    let group = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let group = group.restarts(0, Duration::from_secs(60)).on_exhausted(OnExhausted::Park);
    let group = group.child(failing("a", 1, &ids)).child(failing("b", 0, &ids));
    let app = start(group.build()).await;

    assert_eq!(tasks(), calm + 1, "the supervisor's own");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_temporary_child_leaves_no_task() {
    let ids = Ids::default();
    let conns = start(dynamic().build()).await;
    let calm = tasks();

    let gone = failing("gone", 1, &ids).restart(RestartType::Temporary);
    conns.start_child(gone).await.unwrap();
    settle().await;

    assert_eq!((ids_of("gone", &ids).len(), tasks()), (1, calm));
    conns.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fallback_gets_a_task_of_its_own() {
    let ids = Ids::default();
    let main = failing("a", 9, &ids).consecutive_restarts(0);
    let app = start(supervisor().child(main.fallback(failing("a", 0, &ids))).build()).await;

    let [first, fallback] = ids_of("a", &ids)[..] else { panic!("each ran once") };
    assert_ne!(first, fallback);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_a_child_in_the_stop_chain_when_all_are_aborted() {
    let held = Arc::new(());
    let deaf = |name, lives| {
        let held = Arc::clone(&held);
        let run = move |_ctx: Context| {
            let held = Arc::clone(&held);
            async move {
                tokio::time::sleep(lives).await;
                drop(held);
            }
        };
        worker(name, run)
    };
    let [second, minute] = [1, 60].map(Duration::from_secs);
    let app = supervisor().stop_deadline(2 * second);
    let app = app.child(deaf("a", minute)).child(deaf("b", 2 * second)).child(deaf("c", minute));
    let app = start(app.build()).await;

    // `c` is cancelled. `b`, the next in the stop chain, ends by itself before that.
    app.stop("done").await.or_else(killed).unwrap();
    drop(app);
    settle().await;

    assert_eq!(Arc::strong_count(&held), 1);
}

/// On one thread, so that the order of polls is that of the run queue.
#[tokio::test(start_paused = true)]
async fn a_child_that_fails_at_once_lets_other_tasks_run_between_two_incarnations() {
    let begun = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&begun);
    let run = move |_: Context| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Exit::Err("connection refused".into()) }
    };
    let spec = worker("fails", run).backoff(Backoff::none());
    let app = Supervisor::builder("app").unlimited_restarts().child(spec);
    let app = app.build().unwrap().start().await.unwrap();
    let mut most = 0;
    for _ in 0..1_000 {
        let before = begun.load(Ordering::Relaxed);
        tokio::task::yield_now().await;
        most = most.max(begun.load(Ordering::Relaxed) - before);
    }
    assert!(begun.load(Ordering::Relaxed) > 100, "the child restarts meanwhile");
    // A yielding task is polled when the run queue was empty once, and tokio takes at most 61 tasks before
    // it looks there.
    assert!(most <= 61, "{most} incarnations ran while another task waited");
    app.stop("the test is over").await.unwrap();
}
