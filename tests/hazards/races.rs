//! Rare races: a decline during a restart, a stop during a storm of exits, a late exit after the
//! end of the tree.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::status::{ChildInfo, Event, EventKind, Subscription};
use verger::{
    Backoff, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitError,
    ExitReason, Lifecycle, Readiness, RestartType, RunError, Shutdown, Strategy, Supervisor,
    SupervisorBuilder, SupervisorHandle, async_trait, child, worker, worker_with,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

// --- Declining -----------------------------------------------------------------------------------

/// A child that declines in `run`, or else in `activate`, and may panic on drop.
struct Declines {
    in_run: bool,
    panics: bool,
}

#[async_trait]
impl Child for Declines {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        if self.in_run { Ok(()) } else { Err(ExitError::ignore()) }
    }

    async fn run(&mut self, _ctx: &Context) -> Exit {
        Err(ExitError::ignore())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        Err(ExitError::ignore())
    }
}

impl Drop for Declines {
    fn drop(&mut self) {
        assert!(!self.panics, "dropped badly");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_declines_in_run_has_ended_normally() {
    let declines = child("a", || Declines { in_run: true, panics: false });
    let app = start(Supervisor::builder("app").child(idle("b"))).await;
    let mut events = app.events();
    app.start_child(declines).await.unwrap();
    sleep(secs(1)).await;

    let a = app.which_child("a").await.unwrap();
    assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Stopped, 1));
    while let Some(event) = events.try_next() {
        assert!(!matches!(event.kind, EventKind::DeactivateFailed { .. }), "{event:?}");
    }
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_counts_as_declined_once_it_is_dropped() {
    let app = start(Supervisor::builder("app")).await;
    let faulty = child("a", || Declines { in_run: false, panics: true });

    let answer = app.start_child(faulty).await;

    let Err(ControlError::ActivationFailed { reason, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason.to_string(), "panicked: dropped badly");
    app.stop("done").await.unwrap();
}

// --- Requirement cycles --------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_readded_child_cannot_create_a_requirement_cycle() {
    let app = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let app = app.child(idle("db")).child(idle("pool").requires("db"));
    let app = start(app.child(idle("api").requires("pool"))).await;
    app.stop_child("db").await.unwrap();
    app.otp().delete_child("db").await.unwrap();

    let refused = app.start_child(idle("db").requires("api")).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the children of `app` require each other in a cycle: db → api → pool → db; remove one of \
         these requirements"
    );

    app.start_child(idle("db")).await.unwrap();
    app.kill("api").await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(app.otp().count_children().await.unwrap().active, 3);
    app.stop("done").await.unwrap();
}

// --- Storms --------------------------------------------------------------------------------------

#[tokio::test]
async fn calls_are_answered_during_a_storm_of_exits() {
    const CHILDREN: u32 = 10_000;
    let conns = DynamicSupervisor::builder("conns").build().unwrap().start().await.unwrap();
    let over = Arc::new(Notify::new());
    let conn = worker_with("conn", Arc::clone(&over), async |ctx: Context, over: Arc<Notify>| {
        let over = over.notified();
        ctx.ready();
        over.await;
    });
    let conn = conn.restart(RestartType::Temporary).readiness(Readiness::Signal);
    for _ in 0..CHILDREN {
        conns.start_child(conn.clone()).await.unwrap();
    }

    over.notify_waiters();
    let mut answered_meanwhile = 0;
    loop {
        let left = conns.otp().count_children().await.unwrap().specs;
        answered_meanwhile += u32::from(0 < left && left < CHILDREN);
        if left == 0 {
            break;
        }
    }

    assert!(answered_meanwhile >= 5, "{answered_meanwhile}");
    conns.stop("done").await.unwrap();
}

mod waiting {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_child_is_restarted_during_a_flood_of_calls() {
        const CALLS: usize = 10_000;
        let fails = Arc::new(Notify::new());
        let answered = Arc::new(AtomicUsize::new(0));
        let flaky = {
            let (fails, answered) = (Arc::clone(&fails), Arc::clone(&answered));
            move |ctx: Context| {
                let (fails, answered) = (Arc::clone(&fails), Arc::clone(&answered));
                async move {
                    if ctx.incarnation() == 1 {
                        fails.notified().await;
                        return Err("connection refused".into());
                    }
                    // From here on, exits don't count.
                    answered.fetch_or(1 << 32, Ordering::Relaxed);
                    ctx.cancelled().await;
                    Exit::Ok(())
                }
            }
        };
        let flaky = worker("flaky", flaky).backoff(Backoff::none());
        let app = start(Supervisor::builder("app").child(flaky)).await;
        tokio::task::yield_now().await;

        // All calls are made before the child fails.
        let calls = (0..CALLS).map(|_| {
            let (app, answered) = (app.clone(), Arc::clone(&answered));
            tokio::spawn(async move {
                app.which_child("flaky").await.unwrap();
                let before = |count: usize| (count < 1 << 32).then_some(count + 1);
                let _ = answered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, before);
            })
        });
        let calls: Vec<_> = calls.collect();
        fails.notify_one();
        for call in calls {
            call.await.unwrap();
        }

        // As many as one iteration answers, and once more while the child waits for its own.
        let answered = answered.load(Ordering::Relaxed);
        assert!(answered >> 32 == 1 && answered & 0xffff <= 2 * 64, "{}", answered & 0xffff);
        app.stop("done").await.unwrap();
    }

    #[tokio::test]
    async fn calls_and_exits_are_processed_in_order_of_arrival() {
        let over = Arc::new(Notify::new());
        let job = worker_with("job", Arc::clone(&over), async |_ctx, over: Arc<Notify>| {
            over.notified().await;
        });
        let app =
            start(Supervisor::builder("app").child(job.restart(RestartType::Temporary))).await;
        tokio::task::yield_now().await;

        // The child exits after the call, and before the supervisor's next iteration.
        over.notify_one();
        assert_eq!(app.otp().count_children().await.unwrap().active, 1);
        assert_eq!(app.otp().count_children().await.unwrap().active, 0);
        app.stop("done").await.unwrap();
    }
}

// --- Leaks ---------------------------------------------------------------------------------------

/// Releases a blocked incarnation on drop.
type Release = mpsc::Sender<()>;

/// A child whose first `blocking` incarnations block their thread, each until it is released.
fn blocks_thread(name: &str, blocking: usize) -> (ChildSpec, Vec<Release>) {
    let (releases, mut blocked): (Vec<_>, Vec<_>) = (0..blocking).map(|_| mpsc::channel()).unzip();
    blocked.reverse();
    let blocked = Arc::new(Mutex::new(blocked));
    let spec = worker_with(name, blocked, async |ctx: Context, blocked| -> Exit {
        ctx.ready();
        let blocked: Option<mpsc::Receiver<()>> = blocked.lock().unwrap().pop();
        if let Some(blocked) = blocked {
            tokio::task::block_in_place(|| blocked.recv()).unwrap_err();
        }
        ctx.cancelled().await;
        Ok(())
    });
    let spec = spec.readiness(Readiness::Signal).backoff(Backoff::none());
    (spec.shutdown(Shutdown::BrutalKill), releases)
}

fn short_leak_timeout(name: &str) -> SupervisorBuilder {
    Supervisor::builder(name).leak_timeout(Duration::from_millis(1))
}

async fn next(events: &mut Subscription<Event>, wanted: fn(&EventKind) -> bool) -> u32 {
    loop {
        let event = events.next().await.unwrap();
        if wanted(&event.kind) {
            return event.incarnation;
        }
    }
}

const LEAKED: fn(&EventKind) -> bool = |kind| matches!(kind, EventKind::Leaked);
const LEAK_ENDED: fn(&EventKind) -> bool = |kind| matches!(kind, EventKind::LeakEnded);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_exits_after_its_supervisor_is_not_leaked() {
    let (a, releases) = blocks_thread("a", 1);
    let app = start(short_leak_timeout("app").child(short_leak_timeout("mid").child(a))).await;
    let mut events = app.events();

    app.stop_child("mid").await.unwrap();
    assert_eq!(next(&mut events, LEAKED).await, 1);
    drop(releases);
    assert_eq!(next(&mut events, LEAK_ENDED).await, 1);

    app.stop("done").await.expect("no child has leaked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaked_incarnations_of_one_child_are_distinguished() {
    let (a, mut releases) = blocks_thread("a", 2);
    let app = start(short_leak_timeout("app").child(a)).await;
    let mut events = app.events();
    for incarnation in [1, 2] {
        app.kill("a").await.unwrap();
        assert_eq!(next(&mut events, LEAKED).await, incarnation);
        // An incarnation killed before it blocks wouldn't leak.
        let again = |a: &ChildInfo| a.incarnation > incarnation && a.lifecycle == Lifecycle::Active;
        while !again(&app.which_child("a").await.unwrap()) {}
    }

    drop(releases.remove(0));
    assert_eq!(next(&mut events, LEAK_ENDED).await, 1);

    let end = app.stop("done").await;
    assert!(matches!(&end, Err(RunError::Forced { leaked, .. }) if leaked.len() == 1), "{end:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_blocks_below_a_leaked_supervisor_is_named() {
    let (a, releases) = blocks_thread("a", 1);
    let conns = DynamicSupervisor::builder("conns").leak_timeout(Duration::from_millis(1));
    let conns = conns.into_child().restart(RestartType::Temporary);
    let app = start(short_leak_timeout("app").child(conns)).await;
    // It waits longer than its parents account for, because it was added after their start.
    let patient = Supervisor::builder("mid").leak_timeout(secs(3600)).child(a);
    app.supervisor("conns").await.unwrap().start_child(patient).await.unwrap();
    let mut events = app.events();

    app.kill("conns").await.unwrap();
    loop {
        let event = events.next().await.unwrap();
        if LEAKED(&event.kind) && event.path.name() == "a" {
            break;
        }
    }

    let end = app.stop("done").await;
    let Err(RunError::Forced { leaked: children, .. }) = &end else { panic!("{end:?}") };
    assert_eq!(
        children.iter().map(|path| path.as_str()).collect::<Vec<_>>(),
        ["app/conns/mid#1/a"]
    );
    drop(releases);
}

// --- Graces and runtimes -------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_outlasts_its_grace_was_killed() {
    let deaf = worker("deaf", async |_ctx: Context| std::future::pending::<()>().await);
    let mid = Supervisor::builder("mid").child(deaf.shutdown(Shutdown::Infinity));
    let app = start(Supervisor::builder("app").child(mid.into_child().shutdown(secs(2)))).await;

    app.stop_child("mid").await.unwrap();

    let mid = app.which_child("mid").await.unwrap();
    assert!(
        matches!(mid.last_exit.as_ref().map(|last| &*last.reason), Some(ExitReason::Killed)),
        "{:?}",
        mid.last_exit
    );
    app.stop("done").await.unwrap();
}

#[test]
#[should_panic(expected = "timers are disabled")]
fn a_runtime_without_timers_panics_the_caller() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tree = Supervisor::builder("app").build().unwrap();
    let _ = runtime.block_on(tree.run());
}

#[tokio::test(start_paused = true)]
async fn terminating_a_failed_child_keeps_its_reason() {
    let slow = worker("slow", async |ctx: Context| -> Exit {
        if ctx.incarnation() == 1 {
            ctx.ready();
            sleep(secs(1)).await;
            return Err("the first time".into());
        }
        std::future::pending().await
    });
    let slow = slow.readiness(Readiness::Signal).backoff(Backoff::none());
    let slow = slow.activation_timeout(secs(3)).shutdown(secs(2));
    let app = start(Supervisor::builder("app").child(slow)).await;

    // The child fails at 1 s, reaches its timeout at 4 s, and reacts to its cancellation at 6 s.
    sleep(secs(5)).await;
    assert_eq!(app.which_child("slow").await.unwrap().lifecycle, Lifecycle::Errored);
    let called = tokio::time::Instant::now();
    app.stop_child("slow").await.unwrap();
    assert_eq!(called.elapsed(), secs(1));

    let slow = app.which_child("slow").await.unwrap();
    assert_eq!((slow.lifecycle, slow.why), (Lifecycle::Stopped, Some("stopped manually")));
    assert_eq!(slow.last_exit.unwrap().to_string(), "activation timed out");
    app.stop("enough").await.unwrap();
}
