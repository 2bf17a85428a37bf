//! What takes long says what it waits for.

use std::future::pending;
use std::time::Duration;

use tokio::time::sleep;
use tracing::level_filters::LevelFilter;
use verger::policy::Start;
use verger::{
    Backoff, Context, DynamicSupervisor, Lifecycle, Readiness, Shutdown, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker, worker_with,
};

use crate::common::{killed, settle};
use crate::log::Log;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn deaf(name: &str) -> verger::ChildSpec {
    worker(name, |_| pending::<()>())
}

fn idle(name: &str) -> verger::ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

/// Starts a tree, and waits this long.
async fn started(tree: SupervisorBuilder, wait: Duration) {
    let start = tokio::spawn(tree.build().unwrap().start());
    sleep(wait).await;
    start.abort();
}

#[tokio::test(start_paused = true)]
async fn a_start_names_each_child_that_it_waits_for_after_10_s_and_then_every_30() {
    let log = Log::at(LevelFilter::WARN);
    let app = Supervisor::builder("app")
        .start(Start::Concurrent)
        .child(idle("db").readiness(Readiness::Signal))
        .child(idle("api").requires("db"))
        .child(idle("other"));
    started(app, Duration::from_millis(9_999)).await;
    assert_eq!(log.lines(), [""; 0]);

    let app = Supervisor::builder("app")
        .start(Start::Concurrent)
        .child(idle("db").readiness(Readiness::Signal))
        .child(idle("api").requires("db"))
        .child(idle("other"));
    started(app, secs(71)).await;
    let lines = |waited: &str| {
        [
            format!("WARN verger::lifecycle: waiting for readiness child=app/db waited={waited}"),
            format!(
                "WARN verger::lifecycle: waiting for a requirement child=app/api requires=app/db waited={waited}"
            ),
        ]
    };
    assert_eq!(log.lines(), [lines("10s"), lines("40s"), lines("70s")].concat());
}

#[tokio::test(start_paused = true)]
async fn a_sequential_start_names_the_child_that_it_has_come_to_at_the_level_where_it_waits() {
    let log = Log::at(LevelFilter::WARN);
    let failing = worker("failing", async |_| Err("no")).backoff(Backoff::constant(secs(35)));
    let inner = Supervisor::builder("inner")
        .child(failing.readiness(Readiness::Signal))
        .child(idle("later"));
    started(Supervisor::builder("app").child(inner).child(idle("last")), secs(20)).await;
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.contains("waiting")).collect();
    let line = "WARN verger::lifecycle: waiting for a restart child=app/inner/failing delay=25s waited=10s";
    assert_eq!(lines, [line]);
}

async fn stopped(app: &SupervisorHandle, wait: Duration) {
    let (app, stop) = (app.clone(), sleep(wait));
    tokio::select! {
        _ = app.stop("enough") => {}
        () = stop => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_names_each_child_with_what_is_left_of_its_grace() {
    let app = Supervisor::builder("app")
        .child(deaf("forever").shutdown(Shutdown::Infinity))
        .child(deaf("slow").shutdown(secs(15)));
    let app = app.build().unwrap().start().await.unwrap();
    let log = Log::at(LevelFilter::WARN);
    stopped(&app, secs(50)).await;
    assert_eq!(
        log.lines(),
        [
            "WARN verger::shutdown: waiting for the child to stop child=app/slow grace_left=5s waited=10s",
            "WARN verger::shutdown: killed child=app/slow incarnation=1 took=15s",
            "WARN verger::shutdown: waiting for the child to stop child=app/forever waited=40s",
        ]
    );
}

/// Returns what is logged in a minute about the stop of a child with this grace that runs on after its abort.
async fn runs_on(grace: Duration) -> Vec<String> {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(Some(released));
    let child = worker("a", move |ctx: Context| {
        let released = released.lock().unwrap().take().unwrap();
        async move { ctx.spawn_blocking(move || _ = released.recv()).await }
    });
    let app = Supervisor::builder("app").leak_timeout(secs(90)).child(child.shutdown(grace));
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    let log = Log::at(LevelFilter::WARN);
    let stopping = app.clone();
    let stopping = tokio::spawn(async move { stopping.stop("enough").await });
    // The closure keeps the paused clock from advancing alone.
    for _ in 0..60 {
        settle().await;
        tokio::time::advance(secs(1)).await;
    }
    settle().await;
    let lines = log.lines();
    drop(release);
    let _ = stopping.await;
    lines
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_an_aborted_child_is_measured_from_its_abort() {
    let aborted = "WARN verger::shutdown: waiting for the aborted child to end child=app/a waited=";
    // The lines of the stop are due after 10 s and after 40 s.
    let late =
        "WARN verger::shutdown: waiting for the child to stop child=app/a grace_left=1s waited=10s";
    assert_eq!(runs_on(secs(11)).await, [late.to_owned(), format!("{aborted}29s")]);
    // 2 s are too short a wait after 10 s, so the line comes 8 s later.
    assert_eq!(runs_on(secs(8)).await, [format!("{aborted}10s"), format!("{aborted}40s")]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_killed_after_ten_seconds_was_not_waited_for_after_its_abort() {
    let app = Supervisor::builder("app").child(deaf("a").shutdown(secs(10)));
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    let log = Log::at(LevelFilter::WARN);
    stopped(&app, secs(50)).await;
    let killed = "WARN verger::shutdown: killed child=app/a incarnation=1 took=10s";
    assert_eq!(log.lines(), [killed]);
}

#[tokio::test(start_paused = true)]
async fn of_many_children_ten_are_named() {
    let app = DynamicSupervisor::builder("app").build().unwrap().start().await.unwrap();
    for _ in 0..12 {
        app.start_child(deaf("conn").shutdown(secs(60))).await.unwrap();
    }
    let log = Log::at(LevelFilter::WARN);
    stopped(&app, secs(20)).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 11);
    assert_eq!(
        lines[0],
        "WARN verger::shutdown: waiting for the child to stop child=app/conn#1 grace_left=50s waited=10s"
    );
    assert_eq!(lines[10], "WARN verger::lifecycle: waiting for more children child=app waited=10s");
}

#[tokio::test(start_paused = true)]
async fn a_needless_ready_is_a_warning_once() {
    let log = Log::at(LevelFilter::WARN);
    let eager = worker("eager", async |ctx: Context| {
        ctx.ready();
        sleep(secs(1)).await;
        ctx.ready();
    });
    let told = worker("told", async |ctx: Context| {
        ctx.ready();
        ctx.cancelled().await;
    });
    let app = Supervisor::builder("app").unlimited_restarts();
    let app = app.child(eager).child(told.readiness(Readiness::Signal));
    started(app, secs(60)).await;
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.contains("ready")).collect();
    assert_eq!(
        lines,
        [
            "WARN verger::lifecycle: `ready` has no effect: the child is active as soon as it is started; set \
          `readiness(Readiness::Signal)` child=app/eager"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_root_is_shown_as_deactivating_while_it_stops() {
    let app = Supervisor::builder("app").child(deaf("a"));
    let app = app.build().unwrap().start().await.unwrap();
    let lifecycle = async || app.status().await.unwrap().root.child.lifecycle;
    assert_eq!(lifecycle().await, Lifecycle::Active);
    let stop = tokio::spawn({
        let app = app.clone();
        async move { app.stop("enough").await }
    });
    settle().await;
    assert_eq!(lifecycle().await, Lifecycle::Deactivating);
    stop.await.unwrap().or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_lists_every_reason_and_is_rolled_back_in_reverse() {
    let log = Log::at(LevelFilter::DEBUG);
    let fails = |name: &str, after: u64| {
        let work = worker_with(name, after, async |ctx: Context, after| -> verger::Exit {
            sleep(Duration::from_millis(after)).await;
            Err(format!("{} is broken", ctx.path().name()).into())
        });
        work.readiness(Readiness::Signal)
    };
    let app = Supervisor::builder("app")
        .start(Start::Concurrent)
        .first_start(verger::policy::FirstStart::Fail)
        .child(idle("db"))
        .child(fails("a", 5))
        .child(idle("cache"))
        .child(fails("b", 5));
    let error = app.build().unwrap().start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`app/a` could not be started: activation failed: a is broken; `app/b` failed, too: failed: \
         b is broken"
    );
    let lines = log.lines();
    let stopped = lines.iter().filter(|line| line.contains(": stopped child"));
    let stopped: Vec<_> = stopped.filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(stopped, ["child=app/b", "child=app/cache", "child=app/db", "child=app"]);
}
