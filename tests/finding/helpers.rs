//! Helper tasks: they end with the incarnation that has spawned them, and fail it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::status::{EventKind, Subscription};
use verger::{
    Backoff, Context, Exit, Lifecycle, RestartType, Supervisor, SupervisorHandle, worker,
};

use crate::common::settle;
use crate::log::Log;

/// A value whose drop is counted.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn start(child: verger::ChildSpec) -> SupervisorHandle {
    Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap()
}

/// Returns the reasons of the exits so far.
fn exits(events: &mut Subscription<verger::status::Event>) -> Vec<String> {
    let mut exits = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            exits.push(reason.to_string());
        }
    }
    exits
}

#[tokio::test(start_paused = true)]
async fn a_helper_ends_with_its_incarnation_and_before_the_next_one_starts() {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (alive, seen) = (Arc::clone(&running), Arc::clone(&most));
    let child = worker("a", move |ctx: Context| {
        let (alive, seen) = (Arc::clone(&alive), Arc::clone(&seen));
        async move {
            let now = alive.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            let leaving = Leaving(alive);
            ctx.spawn(async move {
                let _leaving = leaving;
                std::future::pending::<()>().await;
            });
            sleep(Duration::from_secs(1)).await;
            Exit::Err("again".into())
        }
    });
    struct Leaving(Arc<AtomicU32>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let app = start(child.backoff(Backoff::none())).await;
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 5);
    assert_eq!((running.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (1, 1));
    app.stop("enough").await.unwrap();
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_of_a_helper_fails_its_child() {
    let child = worker("a", async |ctx: Context| {
        let number = ctx.incarnation();
        ctx.spawn(async move {
            sleep(Duration::from_secs(1)).await;
            match number {
                1 => Err("the helper's error"),
                2 => panic!("the helper's panic"),
                _ => Ok(()),
            }
        });
        ctx.cancelled().await;
    });
    let app = start(child.backoff(Backoff::constant(Duration::from_secs(1)))).await;
    let mut events = app.events();
    let began = Instant::now();
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(exits(&mut events), ["failed: the helper's error", "panicked: the helper's panic"]);
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.lifecycle), (3, Lifecycle::Active), "it returned `Ok`");
    assert_eq!(began.elapsed(), Duration::from_millis(4_500));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn detached_errors_are_logged_and_fail_no_child() {
    let log = Log::at(LevelFilter::WARN);
    let child = worker("a", async |ctx: Context| {
        ctx.detached_errors().spawn(async { Err::<(), _>("lost") });
        ctx.detached_errors().spawn(async {
            if true {
                panic!("boom")
            }
        });
        ctx.cancelled().await;
    });
    let app = start(child).await;
    settle().await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    let line = |cause: &str| {
        format!(
            "WARN verger::lifecycle: a helper has failed child=app/a incarnation=1 cause=\"{cause}\""
        )
    };
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, [line("failed: lost"), line("panicked: boom")]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_cancellation_is_logged_and_does_not_cut_the_stop_short() {
    let log = Log::at(LevelFilter::WARN);
    let (finished, mut has_finished) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let finished = finished.clone();
        async move {
            let helper = ctx.clone();
            ctx.spawn(async move {
                helper.cancelled().await;
                Err::<(), _>("connection lost")
            });
            ctx.cancelled().await;
            sleep(Duration::from_secs(2)).await;
            finished.send(()).unwrap();
        }
    });
    let app = start(child).await;
    let began = Instant::now();
    app.stop("enough").await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    has_finished.try_recv().unwrap();
    let line = "WARN verger::lifecycle: a helper has failed child=app/a incarnation=1 cause=\"failed: connection lost\"";
    assert_eq!(log.lines(), [line]);
}

#[tokio::test(start_paused = true)]
async fn helpers_of_a_killed_child_are_aborted() {
    let dropped = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&dropped);
    let child = worker("a", move |ctx: Context| {
        let counted = Counted(Arc::clone(&count));
        async move {
            ctx.spawn(async move {
                let _counted = counted;
                std::future::pending::<()>().await;
            });
            ctx.cancelled().await;
        }
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    settle().await;
    app.kill("a").await.unwrap();
    settle().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_helper_can_be_awaited_and_aborted() {
    let (report, mut reports) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let report = report.clone();
        async move {
            let slow = ctx.spawn(async { sleep(Duration::from_secs(3)).await });
            let began = Instant::now();
            assert!(!slow.is_finished());
            slow.await;
            report.send(began.elapsed()).unwrap();
            let endless = ctx.spawn(std::future::pending::<()>());
            endless.abort();
            endless.await;
            report.send(began.elapsed()).unwrap();
            ctx.cancelled().await;
        }
    });
    let app = start(child).await;
    assert_eq!(reports.recv().await, Some(Duration::from_secs(3)));
    assert_eq!(reports.recv().await, Some(Duration::from_secs(3)));
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_context_of_an_ended_incarnation_spawns_nothing() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let pass = pass.clone();
        async move { drop(pass.send(ctx)) }
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    let ctx: Context = passed.recv().await.unwrap();
    settle().await;
    let dropped = Arc::new(AtomicU32::new(0));
    let counted = Counted(Arc::clone(&dropped));
    let helper = ctx.spawn(async move {
        let _counted = counted;
        std::future::pending::<()>().await;
    });
    assert!(helper.is_finished());
    helper.await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_panics_while_it_is_dropped_fails_no_other_incarnation() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let child = worker("a", async |ctx: Context| {
        ctx.spawn(async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        });
        // The helper is polled once.
        tokio::task::yield_now().await;
        Exit::Err("first".into())
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    let mut events = app.events();
    settle().await;
    assert_eq!(exits(&mut events), ["failed: first"]);
    app.stop("enough").await.unwrap();
}

/// Returns a child that passes its contexts to the test, and runs until it is cancelled.
fn passing(name: &str) -> (verger::ChildSpec, mpsc::UnboundedReceiver<Context>) {
    let (pass, passed) = mpsc::unbounded_channel();
    let child = worker(name, move |ctx: Context| {
        let pass = pass.clone();
        async move {
            pass.send(ctx.clone()).unwrap();
            // Not awaiting the cancellation, which would register a waker.
            std::future::pending::<()>().await;
        }
    });
    (child.shutdown(verger::Shutdown::BrutalKill), passed)
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_is_spawned_from_elsewhere_fails_its_child_as_well() {
    let (child, mut passed) = passing("a");
    let app = start(child.restart(RestartType::Temporary)).await;
    let mut events = app.events();
    let ctx = passed.recv().await.unwrap();
    settle().await;
    ctx.spawn(async { Err::<(), _>("the helper's error") });
    settle().await;
    assert_eq!(exits(&mut events), ["failed: the helper's error"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_declines_has_just_ended() {
    let (child, mut passed) = passing("a");
    let app = start(child).await;
    let ctx = passed.recv().await.unwrap();
    ctx.spawn(async { Err::<(), _>(verger::ExitError::ignore()) }).await;
    settle().await;
    assert_eq!(app.which_child("a").await.unwrap().lifecycle, Lifecycle::Active);
    app.stop("enough").await.unwrap();
}

/// A component that notes what happens to it.
struct Noting {
    journal: Arc<std::sync::Mutex<Vec<String>>>,
    fails_in: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Activate,
    Run,
    Deactivate,
}

#[verger::async_trait]
impl verger::Child for Noting {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        if self.fails_in == Phase::Activate {
            ctx.spawn(async { Err::<(), _>("the helper's error") });
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let journal = Arc::clone(&self.journal);
        ctx.children()
            .start_once("x", async move |ctx: Context| {
                ctx.cancelled().await;
                sleep(Duration::from_secs(1)).await;
                journal.lock().unwrap().push("x stopped".to_owned());
            })
            .await?;
        let delay = if self.fails_in == Phase::Run { 0 } else { 1_500 };
        ctx.spawn(async move {
            sleep(Duration::from_millis(delay)).await;
            Err::<(), _>("the helper's error")
        });
        match self.fails_in {
            Phase::Run => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        sleep(Duration::from_secs(1)).await;
        self.journal.lock().unwrap().push("deactivated".to_owned());
        Ok(())
    }
}

/// Runs such a component to its end. Returns what it has noted, and its exit.
async fn noted(fails_in: Phase) -> (Vec<String>, Vec<String>) {
    let journal = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&journal);
    let noting = verger::child("a", move || Noting { journal: Arc::clone(&noted), fails_in });
    let app = Supervisor::builder("app").build().unwrap().start().await.unwrap();
    let mut events = app.events();
    _ = app.start_child(noting.restart(RestartType::Temporary)).await;
    sleep(Duration::from_secs(9)).await;
    let exits = exits(&mut events);
    app.stop("enough").await.unwrap();
    (std::mem::take(&mut journal.lock().unwrap()), exits)
}

#[tokio::test(start_paused = true)]
async fn a_failing_helper_ends_run_as_an_error_of_run_does() {
    let (journal, exits) = noted(Phase::Run).await;
    assert_eq!(journal, ["x stopped", "deactivated"]);
    assert_eq!(exits[1..], ["failed: the helper's error"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_helper_fails_the_activation() {
    let (journal, exits) = noted(Phase::Activate).await;
    assert_eq!(journal, [""; 0]);
    assert_eq!(exits, ["activation failed: the helper's error"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_child_has_returned_is_logged_and_cuts_nothing_short() {
    let log = Log::at(LevelFilter::WARN);
    let (journal, exits) = noted(Phase::Deactivate).await;
    assert_eq!(journal, ["x stopped", "deactivated"]);
    assert_eq!(exits[1..], ["ended normally"]);
    let line = "WARN verger::lifecycle: a helper has failed child=app/a incarnation=1 cause=\"failed: \
                the helper's error\"";
    assert_eq!(log.lines(), [line]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_helper_that_blocks_its_thread_is_a_leak_of_its_child_also_if_that_has_returned() {
    for fails in [true, false] {
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let goes_on = Arc::new(std::sync::Mutex::new(goes_on));
        let (blocks, mut is_blocked) = mpsc::unbounded_channel();
        let (end, ends) = tokio::sync::watch::channel(());
        let child = worker("a", move |ctx: Context| {
            let (goes_on, blocks, mut ends) = (Arc::clone(&goes_on), blocks.clone(), ends.clone());
            async move {
                ctx.spawn(async move {
                    blocks.send(()).unwrap();
                    _ = goes_on.lock().unwrap().recv();
                });
                // The wake comes from a thread that isn't blocked.
                ends.changed().await.unwrap();
                if fails { Err("over") } else { Ok(()) }
            }
        });
        let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(50));
        let app = app.child(child.restart(RestartType::Temporary));
        let app = app.build().unwrap().start().await.unwrap();
        let mut events = app.events();
        is_blocked.recv().await.unwrap();
        end.send(()).unwrap();
        let leaked = async |events: &mut Subscription<verger::status::Event>, ended: bool| loop {
            let event = events.next().await.unwrap();
            match event.kind {
                EventKind::Leaked if !ended => return event.path.to_string(),
                EventKind::LeakEnded if ended => return event.path.to_string(),
                _ => {}
            }
        };
        assert_eq!(leaked(&mut events, false).await, "app/a");
        go_on.send(()).unwrap();
        assert_eq!(leaked(&mut events, true).await, "app/a");
        app.stop("enough").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helpers_that_are_spawned_while_their_child_ends_never_meet_the_next_incarnation() {
    const RESTARTS: u32 = 1_000;
    let alive = Arc::new(AtomicU32::new(0));
    let (done, mut is_done) = mpsc::unbounded_channel();
    let running = Arc::clone(&alive);
    let child = worker("a", move |ctx: Context| {
        let (alive, done) = (Arc::clone(&running), done.clone());
        async move {
            assert_eq!(alive.load(Ordering::SeqCst), 0, "helpers of the last incarnation");
            if ctx.incarnation() == RESTARTS {
                done.send(()).unwrap();
                ctx.cancelled().await;
                return Exit::Ok(());
            }
            let (spawning, runtime) = (ctx.clone(), tokio::runtime::Handle::current());
            tokio::task::spawn_blocking(move || {
                let _runtime = runtime.enter();
                for _ in 0..20 {
                    let alive = Arc::clone(&alive);
                    spawning.spawn(async move {
                        alive.fetch_add(1, Ordering::SeqCst);
                        let _leaving = Leaving(alive);
                        std::future::pending::<()>().await;
                    });
                }
            });
            for _ in 0..ctx.incarnation() % 8 {
                tokio::task::yield_now().await;
            }
            Err("again".into())
        }
    });
    struct Leaving(Arc<AtomicU32>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let app = Supervisor::builder("app").unlimited_restarts();
    let app = app.child(child.backoff(Backoff::none())).build().unwrap();
    let app = app.start().await.unwrap();
    is_done.recv().await.unwrap();
    app.stop("enough").await.unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}
