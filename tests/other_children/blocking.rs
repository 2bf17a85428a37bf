//! Children that block a thread of their own.
//!
//! A blocked thread can't be paused: where one is to leak, the test runs in real time, and the leak timeout of a
//! millisecond is the only timer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::mpsc as channel;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use verger::policy::OnLeak;
use verger::status::EventKind;
use verger::{
    Backoff, BlockingContext, ChildSpec, Context, Exit, ExitError, Lifecycle, Readiness,
    RestartType, RunError, Shutdown, Supervisor, SupervisorHandle, blocking, worker,
};

use crate::log::Log;
use crate::{LEAK_ENDED, LEAKED, block, next_exit, start, until};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a child `hash` whose first incarnation blocks until the sender is dropped, and waits until it does. Later
/// ones wait for their cancellation.
async fn start_blocked(set: fn(ChildSpec) -> ChildSpec) -> (SupervisorHandle, mpsc::Sender<()>) {
    let (begun, mut begins) = channel::unbounded_channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(Some(released));
    let child = blocking("hash", move |ctx: BlockingContext| -> Exit {
        let released = released.lock().unwrap().take();
        if let Some(released) = released {
            begun.send(()).unwrap();
            block(&released);
            return Ok(());
        }
        ctx.block_on(ctx.cancelled());
        Ok(())
    });
    let app = start(set(child.shutdown(Shutdown::BrutalKill).backoff(Backoff::none()))).await;
    begins.recv().await.unwrap();
    (app, release)
}

#[tokio::test(start_paused = true)]
async fn what_the_function_returns_or_panics_with_is_the_exit_of_the_child() {
    let child = blocking("hash", |ctx: BlockingContext| -> Exit {
        match ctx.incarnation() {
            1 => Ok(()),
            2 => Err("no memory".into()),
            3 => panic!("overflow"),
            _ => Err(ExitError::ignore()),
        }
    });
    let mut app = Supervisor::builder("app").child(child.backoff(Backoff::none())).build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    assert_eq!(next_exit(&mut events).await, "ended normally");
    assert_eq!(next_exit(&mut events).await, "failed: no memory");
    assert_eq!(next_exit(&mut events).await, "panicked: overflow");
    until(&mut events, |kind| matches!(kind, EventKind::Moved { to: Lifecycle::Stopped, .. }))
        .await;
    let hash = app.which_child("hash").await.unwrap();
    assert_eq!((hash.incarnation, hash.lifecycle), (4, Lifecycle::Stopped), "it declined");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn check_fails_once_the_child_is_cancelled_and_that_is_a_clean_end() {
    let (checked, mut checks) = channel::unbounded_channel();
    let child = blocking("poll", move |ctx: BlockingContext| -> Exit {
        loop {
            let check = ctx.check();
            checked.send(check.is_ok()).unwrap();
            check?;
            ctx.block_on(ctx.cancelled());
        }
    });
    let app = start(child).await;
    let mut events = app.events();
    assert_eq!(checks.recv().await, Some(true));
    app.stop("enough").await.unwrap();
    assert_eq!(checks.recv().await, Some(false));
    assert_eq!(next_exit(&mut events).await, "shut down");
}

#[tokio::test(start_paused = true)]
async fn sleep_takes_its_time_and_a_cancellation_ends_it_at_once() {
    let (slept, mut sleeps) = channel::unbounded_channel();
    let child = blocking("poll", move |ctx: BlockingContext| {
        slept.send((ctx.sleep(60 * SECOND), Instant::now())).unwrap();
        slept.send((ctx.sleep(3_600 * SECOND), Instant::now())).unwrap();
        slept.send((ctx.sleep(3_600 * SECOND), Instant::now())).unwrap();
    });
    let began = Instant::now();
    let app = start(child).await;
    assert_eq!(sleeps.recv().await, Some((true, began + 60 * SECOND)));

    tokio::time::sleep(10 * SECOND).await;
    app.stop("enough").await.unwrap();
    let stopped = began + 70 * SECOND;
    assert_eq!(sleeps.recv().await, Some((false, stopped)));
    assert_eq!(sleeps.recv().await, Some((false, stopped)));
    assert_eq!(Instant::now(), stopped);
}

#[tokio::test(start_paused = true)]
async fn the_paused_clock_waits_for_a_thread_that_works() {
    let (done, mut finished) = channel::unbounded_channel();
    let (at_work, mut work) = channel::unbounded_channel();
    let (go_on, waits) = mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    let child = blocking("hash", move |_ctx: BlockingContext| {
        at_work.send(()).unwrap();
        let _ = waits.lock().unwrap().recv();
        done.send(Instant::now()).unwrap();
    });
    let began = Instant::now();
    let app = start(child.restart(RestartType::Temporary)).await;
    let sleeping = tokio::spawn(tokio::time::sleep(3_600 * SECOND));
    work.recv().await.unwrap();
    // The runtime is idle in between, and the thread works.
    tokio::task::spawn_blocking(move || drop(go_on)).await.unwrap();
    assert_eq!(finished.recv().await, Some(began));
    sleeping.await.unwrap();
    assert_eq!(began.elapsed(), 3_600 * SECOND);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_panics_is_replaced_by_a_new_one_after_the_backoff() {
    let (started, mut starts) = channel::unbounded_channel();
    let child = blocking("hash", move |ctx: BlockingContext| {
        started.send((std::thread::current().id(), Instant::now())).unwrap();
        assert!(ctx.incarnation() > 1, "the first one");
        ctx.block_on(ctx.cancelled());
    });
    let began = Instant::now();
    let app = start(child.backoff(Backoff::constant(SECOND))).await;
    let (first, at) = starts.recv().await.unwrap();
    assert_eq!(at, began);
    let (second, at) = starts.recv().await.unwrap();
    assert_eq!(at, began + SECOND);
    assert_ne!(first, second);
    app.stop("enough").await.unwrap();
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_runtime_and_the_span_of_the_child_are_entered() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_span_events(FmtSpan::ENTER)
        .with_thread_names(true)
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _subscriber = tracing::subscriber::set_default(subscriber);
    crate::log::register_second_subscriber();
    let (sent, mut values) = channel::unbounded_channel();
    let child = blocking("hash", move |ctx: BlockingContext| {
        // Both need the runtime.
        ctx.spawn(async {});
        let value = ctx.block_on(tokio::spawn(async { 7 })).unwrap();
        sent.send(value).unwrap();
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    assert_eq!(values.recv().await, Some(7));
    app.stop("enough").await.unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    // The name of the thread comes first.
    let entered: Vec<_> = text.lines().filter_map(|line| line.split_once(" app/hash ")).collect();
    let [(_, line)] = entered[..] else { panic!("{text}") };
    assert_eq!(line, "child{child=app/hash incarnation=1}: verger::child: enter");
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn the_thread_is_named_after_the_end_of_its_path() {
    let (named, mut names) = channel::unbounded_channel();
    let child = blocking("thumbnails", move |ctx: BlockingContext| {
        let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        named.send((own, std::thread::current().name().map(str::to_owned))).unwrap();
        ctx.block_on(ctx.cancelled());
    });
    let below = Supervisor::builder("ingest").child(child);
    let app = start(below).await;
    let (comm, name) = names.recv().await.unwrap();
    assert_eq!((comm.as_str(), name.as_deref()), ("thumbnails\n", Some("thumbnails")));
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let mut comms =
        threads.filter_map(|it| std::fs::read_to_string(it.unwrap().path().join("comm")).ok());
    assert!(comms.any(|comm| comm == "thumbnails\n"), "`top -H` shows it");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_signals_readiness_is_active_once_it_has() {
    let (go_on, waits) = mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    let child = blocking("device", move |ctx: BlockingContext| {
        let _ = waits.lock().unwrap().recv();
        ctx.ready();
        ctx.block_on(ctx.cancelled());
    });
    let app = Supervisor::builder("app").child(child.readiness(Readiness::Signal));
    let starting = tokio::spawn(app.build().unwrap().start());
    crate::common::settle().await;
    assert!(!starting.is_finished());
    drop(go_on);
    let app = starting.await.unwrap().unwrap();
    assert_eq!(app.which_child("device").await.unwrap().lifecycle, Lifecycle::Active);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watchdog_finds_a_thread_that_sends_no_heartbeat() {
    let child = blocking("poll", |ctx: BlockingContext| {
        if ctx.incarnation() == 1 {
            ctx.heartbeat();
            ctx.sleep(3_600 * SECOND);
            return;
        }
        while ctx.sleep(SECOND) {
            ctx.heartbeat();
        }
    });
    let app = start(child.watchdog(10 * SECOND).backoff(Backoff::none())).await;
    let mut events = app.events();
    assert_eq!(next_exit(&mut events).await, "hung: no heartbeat for 10s");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(app.which_child("poll").await.unwrap().incarnation, 2);
    app.stop("enough").await.unwrap();
}

#[tokio::test]
async fn a_blocked_thread_is_reported_as_leaked_and_the_stop_still_ends_within_its_bound() {
    let log = Log::at(LevelFilter::WARN);
    let (app, release) = start_blocked(|child| child).await;
    let mut events = app.events();
    let Err(RunError::Forced { leaked: children, .. }) = app.stop("enough").await else {
        panic!("the child has leaked")
    };
    let line = "ERROR verger::shutdown: leaked: aborted, and still running; does it block its thread? \
                child=app/hash incarnation=1";
    assert_eq!(log.lines(), [line]);
    assert_eq!(children.iter().map(ToString::to_string).collect::<Vec<_>>(), ["app/hash"]);
    assert_eq!(until(&mut events, LEAKED).await, ("app/hash".to_owned(), 1));
    drop(release);
}

#[tokio::test]
async fn the_end_of_a_leaked_thread_is_reported_when_it_comes() {
    let (app, release) = start_blocked(|child| child).await;
    let mut events = app.events();
    app.kill("hash").await.unwrap();
    assert_eq!(until(&mut events, LEAKED).await, ("app/hash".to_owned(), 1));
    let hash = app.which_child("hash").await.unwrap();
    assert_eq!((hash.incarnation, hash.lifecycle), (2, Lifecycle::Active), "beside the first one");

    drop(release);
    assert_eq!(until(&mut events, LEAK_ENDED).await, ("app/hash".to_owned(), 1));
    // Its thread may be slower than the leak timeout.
    let _ = app.stop("enough").await;
}

#[tokio::test]
async fn a_leaked_thread_that_parks_leaves_its_child_down_until_a_retry() {
    let (app, release) = start_blocked(|child| child.on_leak(OnLeak::Park)).await;
    let mut events = app.events();
    app.kill("hash").await.unwrap();
    until(&mut events, LEAKED).await;
    let hash = app.which_child("hash").await.unwrap();
    assert_eq!((hash.incarnation, hash.lifecycle), (1, Lifecycle::Errored));
    assert_eq!(hash.explanation().as_deref(), Some("leaked"));

    drop(release);
    until(&mut events, LEAK_ENDED).await;
    app.resume("hash").await.unwrap();
    assert_eq!(app.which_child("hash").await.unwrap().incarnation, 2);
    // Its thread may be slower than the leak timeout.
    let _ = app.stop("enough").await;
}

#[tokio::test]
async fn a_failure_of_a_helper_cancels_the_thread_and_fails_the_child() {
    let (ended, mut ends) = channel::unbounded_channel();
    let child = blocking("poll", move |ctx: BlockingContext| {
        ctx.spawn(async { Err::<(), _>("the helper's error") });
        ctx.block_on(ctx.cancelled());
        ended.send(()).unwrap();
    });
    let app = Supervisor::builder("app").child(child.restart(RestartType::Temporary));
    let mut app = app.build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    assert_eq!(next_exit(&mut events).await, "failed: the helper's error");
    ends.recv().await.unwrap();
    app.stop("enough").await.unwrap();
}

#[test]
fn neither_the_end_of_the_runtime_nor_of_the_tree_waits_for_a_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (app, release) = runtime.block_on(start_blocked(|child| child));
    drop((app, runtime));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn what_the_function_has_captured_is_dropped_with_the_spec() {
    struct Captured(Arc<AtomicU32>);
    impl Drop for Captured {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("while dropped");
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let captured = Captured(Arc::clone(&dropped));
    let child = blocking("hash", move |_ctx: BlockingContext| {
        let _ = &captured;
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    let other = worker("other", async |ctx: Context| ctx.cancelled().await);
    app.start_child(other).await.unwrap();
    app.stop("enough").await.unwrap();
    drop(app);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

const CASE: &str = "VERGER_TEST_NO_THREADS";

/// A process of its own: its standard library asks for stacks that the system has no room for.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_can_not_be_started_is_a_failed_activation_with_the_error_of_the_system() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "blocking::without_threads", "--nocapture"])
        .envs([(CASE, "1"), ("RUST_MIN_STACK", "1152921504606846976")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let reason = "activation failed: can't start a thread for `app/hash`: Resource temporarily unavailable \
                  (os error 11)";
    assert_eq!(text.lines().last(), Some(reason));
}

/// The case of the test above. Otherwise it does nothing.
#[test]
fn without_threads() {
    if std::env::var_os(CASE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let child = blocking("hash", |_ctx: BlockingContext| ()).restart(RestartType::Temporary);
        let mut app = Supervisor::builder("app").child(child).build().unwrap();
        let mut events = app.events();
        let app = app.start().await.unwrap();
        eprintln!("{}", next_exit(&mut events).await);
        app.stop("enough").await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn with_a_paused_clock_a_leak_is_reported_after_a_second_of_real_time() {
    let (app, release) = start_blocked(|child| child).await;
    let mut events = app.events();
    assert!(matches!(app.stop("enough").await, Err(RunError::Forced { .. })));
    until(&mut events, LEAKED).await;
    drop(release);
}
