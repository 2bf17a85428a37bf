//! Tasks with results: their values, and what becomes of them when they or their supervisor end.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tracing::level_filters::LevelFilter;
use verger::status::{Event, EventKind, Subscription};
use verger::task::{Task, TaskError, TaskSupervisor};
use verger::{
    Backoff, Context, ControlError, Exit, ExitReason, Lifecycle, RestartType, RunError, Shutdown,
    Supervisor, SupervisorHandle, worker, worker_with,
};

use crate::common::settle;
use crate::log::Log;

const SECOND: Duration = Duration::from_secs(1);

/// A value whose drop is counted.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts a tree with these tasks and nothing else.
async fn start(tasks: &TaskSupervisor) -> SupervisorHandle {
    Supervisor::builder("app").child(tasks.spec()).build().unwrap().start().await.unwrap()
}

/// Returns the names of the children of these tasks.
async fn listed(tasks: &TaskSupervisor) -> Vec<String> {
    let children = tasks.handle().await.unwrap().children().await.unwrap();
    children.iter().map(|child| child.path.name().to_owned()).collect()
}

/// Returns the exits so far that are failures.
fn failures(events: &mut Subscription<Event>) -> Vec<String> {
    let mut failures = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind
            && !reason.is_clean()
        {
            failures.push(format!("{}: {reason}", event.path));
        }
    }
    failures
}

#[tokio::test(start_paused = true)]
async fn otp_95_a_linked_task_replies_and_is_gone_then_and_is_listed_while_it_runs() {
    let tasks = TaskSupervisor::new("tasks");
    let (release, released) = oneshot::channel::<()>();
    let (reply, replied) = oneshot::channel();
    let caller = verger::once("caller", {
        let tasks = tasks.clone();
        async move |ctx: Context| -> Exit {
            let task = tasks.spawn_linked(&ctx, "reply", async {
                released.await.unwrap();
                42
            });
            reply.send(task.await).unwrap();
            let linked = tasks.spawn_linked(&ctx, "linked", pending::<()>());
            ctx.cancelled().await;
            assert!(!linked.is_finished());
            Ok(())
        }
    });
    let app = Supervisor::builder("app").child(tasks.spec()).child(caller);
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;

    assert_eq!(listed(&tasks).await, ["reply#1"]);
    release.send(()).unwrap();
    assert_eq!(replied.await.unwrap().unwrap(), 42);
    settle().await;
    assert_eq!(listed(&tasks).await, ["linked#2"], "the task that has replied is gone");

    app.stop_child("caller").await.unwrap();
    settle().await;
    assert_eq!(listed(&tasks).await, Vec::<String>::new(), "the linked task ended with its caller");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_96_a_task_without_a_link_replies_and_outlives_its_caller() {
    let tasks = TaskSupervisor::new("tasks");
    let (reply, replied) = oneshot::channel();
    let caller = verger::once("caller", {
        let tasks = tasks.clone();
        async move |_| {
            let _detached = tasks.spawn("detached", pending::<()>());
            reply.send(tasks.spawn("reply", async { 42 }).await).unwrap();
        }
    });
    let app = Supervisor::builder("app").child(tasks.spec()).child(caller);
    let app = app.build().unwrap().start().await.unwrap();
    assert_eq!(replied.await.unwrap().unwrap(), 42);
    settle().await;
    assert_eq!(listed(&tasks).await, ["detached#1"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_97_above_the_limit_of_children_the_caller_gets_an_error_at_once() {
    let tasks = TaskSupervisor::new("tasks").max_children(1);
    let app = start(&tasks).await;
    let first = tasks.spawn("a", pending::<()>());
    let began = Instant::now();
    let error = tasks.spawn("b", async { 1 }).await.unwrap_err();
    assert!(matches!(error, TaskError::Refused(ControlError::MaxChildren { max: 1, .. })));
    let text = "a task was refused: `app/tasks` already has 1 children, which is its limit";
    assert_eq!((error.to_string().as_str(), began.elapsed()), (text, Duration::ZERO));
    first.shutdown().await.unwrap_err();
    assert_eq!(tasks.spawn("c", async { 1 }).await.unwrap(), 1, "there is room again");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_98_a_permanent_child_below_the_tasks_that_is_shut_down_runs_again() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let contexts = Arc::new(Mutex::new(Vec::<Context>::new()));
    let child = worker_with("kept", Arc::clone(&contexts), async |ctx: Context, contexts| {
        contexts.lock().unwrap().push(ctx.clone());
        ctx.cancelled().await;
    });
    let handle = tasks.handle().await.unwrap();
    let child = child.restart(RestartType::Permanent).backoff(Backoff::none());
    let child = handle.start_child(child).await.unwrap();
    settle().await;
    let first = contexts.lock().unwrap()[0].clone();
    first.stop_self();
    settle().await;
    let info = handle.which_child(child.name()).await.unwrap();
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Active, 2));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_99_a_task_that_ends_after_its_await_timed_out_leaves_nothing() {
    let tasks = TaskSupervisor::new("tasks");
    let ended = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ended);
    let caller = worker_with("caller", tasks.clone(), move |ctx: Context, tasks| {
        let counted = Arc::clone(&counted);
        async move {
            let task = tasks.spawn_linked(&ctx, "slow", async move {
                sleep(2 * SECOND).await;
                counted.fetch_add(1, Ordering::SeqCst);
            });
            timeout(SECOND, task).await.unwrap_err();
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").child(tasks.spec()).child(caller);
    let app = app.build().unwrap().start().await.unwrap();
    let mut events = app.events();
    sleep(1500 * SECOND / 1000).await;
    assert_eq!(listed(&tasks).await, ["slow#1"], "it was detached");
    sleep(SECOND).await;
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert_eq!(listed(&tasks).await, Vec::<String>::new());
    assert_eq!(app.which_child("caller").await.unwrap().incarnation, 1);
    assert_eq!(failures(&mut events), Vec::<String>::new());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_100_a_stream_that_is_dropped_early_kills_the_tasks_that_never_end() {
    let tasks = TaskSupervisor::new("tasks").max_children(4);
    let app = start(&tasks).await;
    let dropped = Arc::new(AtomicU32::new(0));
    for unordered in [false, true] {
        let counted = Arc::clone(&dropped);
        let map = tasks.map(0.., move |n| {
            let counted = Counted(Arc::clone(&counted));
            async move {
                let _counted = counted;
                if n > 0 {
                    pending::<()>().await;
                }
                n
            }
        });
        let map = map.concurrency(4);
        let mut stream = if unordered { map.unordered() } else { map }.stream();
        assert_eq!(stream.next().await.unwrap().unwrap(), 0);
        assert_eq!(timeout(SECOND, stream.next()).await.ok().flatten().map(|_| ()), None);
        assert_eq!(listed(&tasks).await.len(), 4);
        drop(stream);
        settle().await;
        assert_eq!(listed(&tasks).await, Vec::<String>::new());
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 10, "five of each stream have begun");
    assert_eq!(tasks.spawn("next", async { 1 }).await.unwrap(), 1, "there is room again");
    app.stop("enough").await.unwrap();
}

/// Sleeps for so many seconds.
async fn slow(seconds: u32) -> u32 {
    sleep(seconds * SECOND).await;
    seconds
}

#[tokio::test(start_paused = true)]
async fn otp_101_results_come_in_the_order_of_inputs_or_of_ends_and_a_timeout_kills_one_task() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let began = Instant::now();
    let mut results = Vec::new();
    let mut ordered = tasks.map([3, 1, 2], slow).concurrency(3).stream();
    while let Some(result) = ordered.next().await {
        results.push((result.unwrap(), began.elapsed().as_secs()));
    }
    assert_eq!(results, [(3, 3), (1, 3), (2, 3)]);

    let began = Instant::now();
    results.clear();
    let mut unordered = tasks.map([3, 1, 2], slow).concurrency(3).unordered().stream();
    while let Some(result) = unordered.next().await {
        results.push((result.unwrap(), began.elapsed().as_secs()));
    }
    assert_eq!(results, [(1, 1), (2, 2), (3, 3)]);

    let mut limited =
        tasks.map([1, 9, 2], slow).concurrency(3).timeout(5 * SECOND).keep_inputs().stream();
    let mut texts = Vec::new();
    while let Some((input, result)) = limited.next().await {
        texts.push(format!("{input}: {result:?}"));
    }
    assert_eq!(
        texts,
        ["1: Ok(1)", "9: Err(`app/tasks/item#8` was aborted after its timeout of 5s)", "2: Ok(2)"]
    );
    settle().await;
    assert_eq!(listed(&tasks).await, Vec::<String>::new());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_102_a_value_wins_over_the_abnormal_end_of_the_same_task() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let mut events = app.events();
    let guard = PanicsOnDrop;
    let task = tasks.spawn(
        "both",
        std::future::poll_fn(move |_| {
            let _captured = &guard;
            std::task::Poll::Ready(7)
        }),
    );
    settle().await;
    assert!(task.is_finished());
    assert_eq!(task.shutdown().await.unwrap(), 7);
    assert_eq!(failures(&mut events), ["app/tasks/both#1: panicked: while dropped"]);

    // A value that comes within the grace wins, too.
    let task = tasks.spawn_with("polite", async |ctx: Context| {
        ctx.cancelled().await;
        sleep(SECOND).await;
        8
    });
    let began = Instant::now();
    assert_eq!((task.shutdown().await.unwrap(), began.elapsed()), (8, SECOND));

    let error = tasks.spawn("never", pending::<()>()).shutdown().await.unwrap_err();
    assert_eq!(error.to_string(), "`app/tasks/never#3` was stopped before it had a value");
    assert_eq!(listed(&tasks).await, Vec::<String>::new());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_returned_and_logged() {
    let log = Log::at(LevelFilter::INFO);
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let panics = async {
        if true {
            panic!("no memory")
        }
    };
    let error = tasks.spawn("resize", panics).await.unwrap_err();
    assert_eq!(error.to_string(), "`app/tasks/resize#1` panicked: no memory");
    assert_eq!(format!("{error:?}"), error.to_string());
    let TaskError::Failed { path, reason } = error else { panic!("{error}") };
    assert_eq!(path.as_str(), "app/tasks/resize#1");
    assert!(matches!(reason, ExitReason::Panicked(panic) if panic == "no memory"));
    settle().await;
    let expected = "INFO verger::lifecycle: returned its panic child=app/tasks/resize#1 incarnation=1 \
                    cause=\"panicked: no memory\" lived=0ns";
    assert_eq!(log.lines().last().map(String::as_str), Some(expected));
    assert_eq!(listed(&tasks).await, Vec::<String>::new(), "it isn't restarted");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_abort_drops_the_future_and_a_detached_task_runs_on() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let dropped = Arc::new(AtomicU32::new(0));
    let spawn = |name: &str| -> Task<()> {
        let counted = Counted(Arc::clone(&dropped));
        tasks.spawn(name, async move {
            let _counted = counted;
            pending::<()>().await;
        })
    };
    let mut aborted = spawn("aborted");
    let tied = spawn("tied").abort_on_drop();
    drop(spawn("detached"));
    settle().await;
    assert!(!aborted.is_finished());
    aborted.abort();
    drop(tied);
    let error = (&mut aborted).await.unwrap_err();
    assert!(matches!(error, TaskError::Stopped { .. }), "{error}");
    assert!(aborted.is_finished());
    settle().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    assert_eq!(listed(&tasks).await, ["detached#3"]);

    let never_begun = spawn("never begun");
    never_begun.abort();
    never_begun.await.unwrap_err();
    app.stop("enough").await.unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_refused_before_the_start_and_after_the_end() {
    let tasks = TaskSupervisor::new("tasks");
    let refused = async |name: &str| {
        let task = tasks.spawn(name, async { 1 });
        assert!(task.is_finished());
        task.await.unwrap_err().to_string()
    };
    let text = "a task was refused: `tasks` has not run yet; add its `spec()` to a tree, and start that before";
    assert_eq!(refused("a").await, text);

    let app = start(&tasks).await;
    assert_eq!(tasks.spawn("a", async { 1 }).await.unwrap(), 1);
    let text = "a task was refused: the name \"a/b\" below `app/tasks` contains `/`";
    let error = refused("a/b").await;
    assert!(error.starts_with("a task was refused: ") && error.contains("a/b"), "{text} {error}");

    app.stop_child("tasks").await.unwrap();
    let text = "a task was refused: the supervisor of `app/tasks/a` is not running; `app` is";
    assert_eq!(refused("a").await, text);

    app.otp().restart_child("tasks").await.unwrap();
    assert_eq!(tasks.spawn("a", async { 1 }).await.unwrap(), 1, "the value follows a restart");
    app.stop("enough").await.unwrap();
    assert_eq!(refused("a").await, "a task was refused: `app/tasks` has ended");
    assert!(matches!(tasks.handle().await, Err(ControlError::Ended { .. })));
}

#[tokio::test(start_paused = true)]
async fn while_the_supervisor_of_the_tasks_restarts_a_task_is_refused() {
    let tasks = TaskSupervisor::new("tasks");
    let spec = tasks.spec().backoff(Backoff::constant(SECOND));
    let app = Supervisor::builder("app").child(spec).build().unwrap().start().await.unwrap();
    let running: Vec<_> = (0..3).map(|_| tasks.spawn("a", pending::<()>())).collect();
    settle().await;
    app.kill("tasks").await.unwrap();
    for (task, number) in running.into_iter().zip(1..) {
        let text = format!("`app/tasks/a#{number}` was stopped before it had a value");
        assert_eq!(task.await.unwrap_err().to_string(), text);
    }
    let error = tasks.spawn("a", async { 1 }).await.unwrap_err();
    assert!(matches!(error, TaskError::Refused(ControlError::NotRunning { .. })), "{error}");
    sleep(SECOND).await;
    settle().await;
    assert_eq!(tasks.spawn("a", async { 1 }).await.unwrap(), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_the_tasks_at_once_and_each_await_returns() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let (early, late) = (tasks.spawn("early", pending::<()>()), tasks.clone());
    settle().await;
    // The request is pushed behind the stop.
    let (began, stop) = (Instant::now(), app.stop("enough"));
    let ((), stopped) = tokio::join!(
        async {
            assert!(matches!(early.await, Err(TaskError::Stopped { .. })));
            let error = late.spawn("late", async {}).await.unwrap_err();
            assert!(matches!(error, TaskError::Refused(_)), "{error}");
        },
        stop
    );
    stopped.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_return_their_values() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let spawned: Vec<_> = (0..10_000_u64).map(|n| tasks.spawn("n", async move { n })).collect();
    let mut sum = 0;
    for task in spawned {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, 49_995_000);

    let mut stream = tasks.map(0..10_000_u64, async |n| n).concurrency(1_000).unordered().stream();
    let mut sum = 0;
    while let Some(n) = stream.next().await {
        sum += n.unwrap();
    }
    assert_eq!(sum, 49_995_000);
    assert!(stream.next().await.is_none());
    settle().await;
    assert_eq!(listed(&tasks).await, Vec::<String>::new());
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_linked_task_fails_its_child_unless_it_is_awaited() {
    let tasks = TaskSupervisor::new("tasks");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (spawner, texts) = (tasks.clone(), Arc::clone(&seen));
    let child = worker("a", move |ctx: Context| {
        let (tasks, texts) = (spawner.clone(), Arc::clone(&texts));
        async move {
            let panics = async {
                sleep(SECOND).await;
                if true {
                    panic!("boom")
                }
            };
            let task = tasks.spawn_linked(&ctx, "linked", panics);
            match ctx.incarnation() {
                1 => drop(task),
                // No code awaits it.
                2 => std::mem::forget(task),
                3 => {
                    let mut task = task;
                    timeout(SECOND / 2, &mut task).await.unwrap_err();
                    sleep(SECOND).await;
                    drop(task);
                }
                _ => {
                    let text = task.await.unwrap_err().to_string();
                    texts.lock().unwrap().push(text);
                }
            }
            ctx.cancelled().await;
        }
    });
    let child = child.backoff(Backoff::none());
    let app = Supervisor::builder("app").child(tasks.spec()).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    let mut events = app.events();
    sleep(20 * SECOND).await;
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.lifecycle), (4, Lifecycle::Active));
    let failures = failures(&mut events);
    let of_child = failures.iter().filter(|text| text.as_str() == "app/a: panicked: boom").count();
    assert_eq!((of_child, failures.len()), (3, 7), "{failures:?}");
    assert_eq!(*seen.lock().unwrap(), ["`app/tasks/linked#4` panicked: boom"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_next_incarnation_of_a_child_starts_without_the_tasks_linked_to_the_last_one() {
    let tasks = TaskSupervisor::new("tasks");
    let (alive, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    struct Leaving(Arc<AtomicU32>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (spawner, running, seen) = (tasks.clone(), Arc::clone(&alive), Arc::clone(&most));
    let old = Arc::new(Mutex::new(None::<Context>));
    let first = Arc::clone(&old);
    let child = worker("a", move |ctx: Context| {
        let (tasks, running, seen) = (spawner.clone(), Arc::clone(&running), Arc::clone(&seen));
        first.lock().unwrap().get_or_insert(ctx.clone());
        async move {
            drop(tasks.spawn_linked(&ctx, "linked", async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                seen.fetch_max(now, Ordering::SeqCst);
                let _leaving = Leaving(running);
                pending::<()>().await;
            }));
            sleep(SECOND).await;
            Exit::Err("again".into())
        }
    });
    let child = child.backoff(Backoff::none());
    let app = Supervisor::builder("app").child(tasks.spec()).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    sleep(4500 * SECOND / 1000).await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 5);
    assert_eq!((alive.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (1, 1));
    let old = old.lock().unwrap().take().unwrap();
    let late = tasks.spawn_linked(&old, "late", async { 1 }).await.unwrap_err();
    assert_eq!(late.to_string(), "`app/tasks/late` was stopped before it had a value");
    app.stop("enough").await.unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_tasks_than_the_concurrency_run_or_wait_to_be_read() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let pulled = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&pulled);
    let items = [5, 1, 1, 1, 1].into_iter().inspect(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let mut stream = tasks.map(items, slow).concurrency(3).name("slow").stream();
    settle().await;
    assert_eq!(pulled.load(Ordering::SeqCst), 0, "nothing begins before the first poll");
    timeout(4 * SECOND, stream.next()).await.unwrap_err();
    assert_eq!(pulled.load(Ordering::SeqCst), 3, "two results wait for the slow one");
    assert_eq!(listed(&tasks).await, ["slow#1"]);
    let mut values = Vec::new();
    while let Some(value) = stream.next().await {
        values.push(value.unwrap());
    }
    assert_eq!((values, pulled.load(Ordering::SeqCst)), (vec![5, 1, 1, 1, 1], 5));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tasks_can_run_below_a_child_of_the_users() {
    let (answer, answered) = oneshot::channel();
    let child = verger::once("api", async move |ctx: Context| {
        let tasks = TaskSupervisor::of(&ctx.children());
        let value = tasks.spawn_with("path", async |ctx: Context| ctx.path().to_string()).await;
        answer.send(value).unwrap();
    });
    let app = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
    assert_eq!(answered.await.unwrap().unwrap(), "app/api/path#1");
    app.stop("enough").await.unwrap();
}

#[tokio::test]
async fn a_blocking_closure_returns_its_value_and_its_panic() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let (release, blocked) = mpsc::channel();
    let task = tasks.spawn_blocking("hash", move || blocked.recv().unwrap());
    settle().await;
    assert_eq!(listed(&tasks).await, ["hash#1"]);
    release.send(7).unwrap();
    assert_eq!(task.await.unwrap(), 7);
    let task = tasks.spawn_blocking("bad", || {
        if true {
            panic!("no memory")
        }
    });
    assert_eq!(task.await.unwrap_err().to_string(), "`app/tasks/bad#2` panicked: no memory");
    app.stop("enough").await.unwrap();
}

/// Waits for an event of this kind, and returns its path.
async fn next(events: &mut Subscription<Event>, wanted: fn(&EventKind) -> bool) -> String {
    loop {
        let event = events.next().await.unwrap();
        if wanted(&event.kind) {
            return event.path.to_string();
        }
    }
}

#[tokio::test]
async fn a_blocking_closure_that_outlives_a_stop_is_reported_as_leaked() {
    let tasks = TaskSupervisor::new("tasks");
    let builder = tasks.builder().leak_timeout(Duration::from_millis(1));
    let builder = builder.defaults(|child| child.shutdown(Shutdown::BrutalKill));
    let app = Supervisor::builder("app").child(builder).build().unwrap().start().await.unwrap();
    let mut events = app.events();
    let (release, blocked) = mpsc::channel::<()>();
    let (began, begun) = oneshot::channel();
    let task = tasks.spawn_blocking("hash", move || {
        began.send(()).unwrap();
        blocked.recv().unwrap_err();
    });
    begun.await.unwrap();
    let handle = tasks.handle().await.unwrap();
    handle.stop_child("hash#1").await.unwrap();
    assert_eq!(
        next(&mut events, |kind| matches!(kind, EventKind::Leaked)).await,
        "app/tasks/hash#1"
    );
    let error = task.await.unwrap_err();
    assert!(matches!(error, TaskError::Stopped { .. }), "{error}");
    drop(release);
    let ended = next(&mut events, |kind| matches!(kind, EventKind::LeakEnded)).await;
    assert_eq!(ended, "app/tasks/hash#1");

    let (release, blocked) = mpsc::channel::<()>();
    let (began, begun) = oneshot::channel();
    let task = tasks.spawn_blocking("hash", move || {
        began.send(()).unwrap();
        blocked.recv().unwrap_err();
    });
    begun.await.unwrap();
    let error = app.stop("enough").await.unwrap_err();
    let RunError::Forced { leaked: children, .. } = &error else { panic!("{error}") };
    assert_eq!(children.iter().map(verger::Path::as_str).collect::<Vec<_>>(), ["app/tasks/hash#2"]);
    assert!(matches!(task.await, Err(TaskError::Stopped { .. })));
    drop(release);
}

#[test]
fn a_closure_that_has_not_begun_never_does_once_it_is_cancelled() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
    runtime.unwrap().block_on(async {
        let tasks = TaskSupervisor::new("tasks");
        let app = start(&tasks).await;
        let (release, blocked) = mpsc::channel::<()>();
        let first = tasks.spawn_blocking("first", move || blocked.recv().unwrap());
        settle().await;
        let second = tasks.spawn_blocking("second", || unreachable!("the pool has one thread"));
        settle().await;
        let began = Instant::now();
        let error: TaskError = second.shutdown().await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(4), "it waits for no grace");
        assert!(matches!(error, TaskError::Stopped { .. }), "{error}");
        assert_eq!(listed(&tasks).await, ["first#1"]);
        release.send(()).unwrap();
        first.await.unwrap();
        app.stop("enough").await.unwrap();
    });
}

#[tokio::test]
async fn an_abort_of_a_closure_that_runs_returns_at_once_and_its_child_ends_with_it() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let (release, blocked) = mpsc::channel::<()>();
    let (began, begun) = oneshot::channel();
    let task = tasks.spawn_blocking("hash", move || {
        began.send(()).unwrap();
        blocked.recv().unwrap_err();
    });
    begun.await.unwrap();
    task.abort();
    assert!(matches!(task.await, Err(TaskError::Stopped { .. })));
    settle().await;
    assert_eq!(listed(&tasks).await, ["hash#1"]);
    let mut events = app.events();
    drop(release);
    let removed = next(&mut events, |kind| matches!(kind, EventKind::Removed)).await;
    assert_eq!(removed, "app/tasks/hash#1");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_exceeds_its_grace_is_stopped_without_a_value() {
    let tasks = TaskSupervisor::new("tasks");
    let builder = tasks.builder().defaults(|child| child.shutdown(2 * SECOND));
    let app = Supervisor::builder("app").child(builder).build().unwrap().start().await.unwrap();
    let task = tasks.spawn_with("deaf", async |_| pending::<()>().await);
    let began = Instant::now();
    let error = task.shutdown().await.unwrap_err();
    assert!(matches!(error, TaskError::Stopped { .. }), "{error}");
    assert_eq!(began.elapsed(), 2 * SECOND);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_stop_the_task_of_the_same_name_in_the_next_incarnation() {
    let tasks = TaskSupervisor::new("tasks");
    let spec = tasks.spec().backoff(Backoff::none());
    let app = Supervisor::builder("app").child(spec).build().unwrap().start().await.unwrap();
    let old = tasks.spawn("a", pending::<()>());
    settle().await;
    app.kill("tasks").await.unwrap();
    settle().await;
    let new = tasks.spawn("a", pending::<()>());
    settle().await;
    assert_eq!(listed(&tasks).await, ["a#1"]);
    let error = old.shutdown().await.unwrap_err();
    assert_eq!(error.to_string(), "`app/tasks/a#1` was stopped before it had a value");
    settle().await;
    assert!(!new.is_finished());
    assert_eq!(listed(&tasks).await, ["a#1"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_value_in_two_places_reaches_the_last_one_and_says_so() {
    let log = Log::at(LevelFilter::WARN);
    let tasks = TaskSupervisor::new("tasks");
    let app = Supervisor::builder("app").child(tasks.spec()).child(tasks.spec().named("again"));
    let app = app.build().unwrap().start().await.unwrap();
    let line = "WARN verger::lifecycle: `app/tasks` and `app/again` were made by the same value, which now \
                reaches `app/again` only; make one for each";
    assert_eq!(log.lines(), [line]);
    assert_eq!(tasks.handle().await.unwrap().path().as_str(), "app/again");
    app.stop("enough").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_await_returns_while_the_supervisor_is_killed_again_and_again() {
    let tasks = TaskSupervisor::new("tasks");
    let builder = tasks.builder().into_child().backoff(Backoff::none());
    let app = Supervisor::builder("app").unlimited_restarts().child(builder);
    let app = app.build().unwrap().start().await.unwrap();
    let spawning = [0_u32, 1].map(|_| {
        let tasks = tasks.clone();
        tokio::spawn(async move {
            let mut values = 0;
            for n in 0..2_000_u32 {
                let task = match n % 4 {
                    0 => tasks.spawn("value", async { 1 }),
                    1 => tasks.spawn("yields", async {
                        tokio::task::yield_now().await;
                        1
                    }),
                    2 => tasks.spawn_blocking("closure", || 1),
                    _ => {
                        let task = tasks.spawn("aborted", pending());
                        task.abort();
                        task
                    }
                };
                match if n % 3 == 0 { task.shutdown().await } else { task.await } {
                    Ok(value) => values += value,
                    Err(TaskError::Stopped { .. } | TaskError::Refused(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            values
        })
    });
    while spawning.iter().any(|spawning| !spawning.is_finished()) {
        // It may be restarting.
        drop(app.kill("tasks").await);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    for spawning in spawning {
        assert!(spawning.await.unwrap() > 0);
    }
    app.stop("enough").await.unwrap();
}

#[test]
fn tasks_and_streams_can_be_sent_to_other_threads() {
    fn is_send<T: Send + Unpin>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Task<std::cell::Cell<u8>>>();
    is_sync::<Task<std::cell::Cell<u8>>>();
    is_send::<verger::task::TaskStream<'static, u8>>();
    is_sync::<TaskSupervisor>();
}

#[cfg(feature = "config")]
#[tokio::test(start_paused = true)]
async fn the_value_of_new_code_reaches_the_supervisor_that_runs() {
    let (old, new) = (TaskSupervisor::new("tasks"), TaskSupervisor::new("tasks"));
    let app = start(&old).await;
    let task = old.spawn("a", pending::<()>());
    settle().await;
    let code = Supervisor::builder("app").child(new.spec()).build().unwrap();
    let plan = app.plan_tree(&code, &verger::config::Config::new()).await.unwrap();
    app.apply(plan).await.unwrap();
    assert_eq!(new.spawn("b", async { 1 }).await.unwrap(), 1);
    assert_eq!(old.spawn("c", async { 2 }).await.unwrap(), 2);
    settle().await;
    assert_eq!(listed(&new).await, ["a#1"]);
    task.shutdown().await.unwrap_err();
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_dropped_aborts_the_task() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let mut shutdown = Box::pin(tasks.spawn("a", pending::<()>()).shutdown());
    std::future::poll_fn(|cx| {
        assert!(shutdown.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(shutdown);
    settle().await;
    assert_eq!(listed(&tasks).await, Vec::<String>::new());
    app.stop("enough").await.unwrap();
}

#[test]
#[should_panic(expected = "a concurrency of 0 runs no task; write 1 or more")]
fn a_stream_that_could_run_no_task_is_refused() {
    drop(TaskSupervisor::new("tasks").map([1], slow).concurrency(0));
}

/// Every exit of a task is one line.
#[tokio::test(start_paused = true)]
async fn each_exit_of_a_task_leaves_a_line() {
    let tasks = TaskSupervisor::new("tasks");
    let app = start(&tasks).await;
    let log = Log::at(LevelFilter::DEBUG);
    tasks.spawn("value", async {}).await.unwrap();
    settle().await;
    tasks.spawn("panic", async { panic!("no") }).await.unwrap_err();
    settle().await;
    drop(tasks.spawn("alone", async { panic!("nobody awaits it") }));
    settle().await;
    let aborted = tasks.spawn("aborted", pending::<()>());
    settle().await;
    aborted.abort();
    settle().await;
    let dropped = tasks.spawn("dropped", pending::<()>()).abort_on_drop();
    settle().await;
    drop(dropped);
    settle().await;
    // Before its child has begun.
    drop(tasks.spawn("early", pending::<()>()).abort_on_drop());
    settle().await;
    let stopped = tasks.spawn("stopped", pending::<()>());
    settle().await;
    let _ = stopped.shutdown().await;
    settle().await;
    tasks.spawn("last", pending::<()>());
    settle().await;
    app.stop("enough").await.unwrap();
    let mut lines = log.lines();
    let exits = ["ended normally", "not restarted", "returned its panic", "changed by a call"];
    lines.retain(|line| exits.iter().any(|exit| line.contains(exit)));
    let ended = |name| {
        format!(
            "DEBUG verger::lifecycle: ended normally child=app/tasks/{name} incarnation=1 lived=0ns"
        )
    };
    let awaited = "INFO verger::lifecycle: returned its panic child=app/tasks/panic#2 incarnation=1 \
                   cause=\"panicked: no\" lived=0ns";
    let alone = "WARN verger::restart: not restarted child=app/tasks/alone#3 incarnation=1 \
                 cause=\"panicked: nobody awaits it\" lived=0ns";
    let called = "INFO verger::lifecycle: changed by a call child=app/tasks/stopped#7 \
                  call=\"stop_child\"";
    let expected = [
        ended("value#1"),
        awaited.to_owned(),
        alone.to_owned(),
        ended("aborted#4"),
        ended("dropped#5"),
        ended("early#6"),
        called.to_owned(),
    ];
    assert_eq!(lines[..expected.len()], expected);
}
