//! Rules of fx, systemd and elfo for the start and the stop of a tree, and for those that wait for it.

use std::future::{pending, ready};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::level_filters::LevelFilter;
use verger::app::{StopStages, hook};
use verger::policy::{AutoShutdown, FirstStart, Start};
use verger::status::{EventKind, StatusStream};
use verger::{
    Application, BuildError, Child, ChildSpec, Context, ControlError, Exit, Lifecycle, Readiness,
    RestartType, RunError, StartError, Supervisor, SupervisorBuilder, async_trait, child, worker,
};

use super::{lifecycle, limited, secs, start};
use crate::common::{End, FakeChildren, NextStart, killed, settle};
use crate::log::Log;

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

// --- The start -----------------------------------------------------------------------------------

/// `a`, then a supervisor with `b` and `c`, then `d`, of which the first start may not fail.
fn strict(fakes: &FakeChildren) -> SupervisorBuilder {
    let mid = Supervisor::builder("mid").first_start(FirstStart::Fail);
    let mid = mid.child(fakes.child("b")).child(fakes.child("c"));
    let app = Supervisor::builder("app").first_start(FirstStart::Fail);
    app.child(fakes.child("a")).child(mid).child(fakes.child("d"))
}

#[tokio::test(start_paused = true)]
async fn kin_147_children_start_in_order_and_an_error_stops_in_reverse_what_had_started() {
    let fakes = FakeChildren::new();
    let app = start(strict(&fakes)).await;
    assert_eq!(fakes.actions(), ["start a", "start b", "start c", "start d"]);
    app.stop("done").await.unwrap();
    fakes.actions();

    for failed in ["a", "b", "c", "d"] {
        fakes.next_starts(failed, [NextStart::Error]);
        let error = strict(&fakes).build().unwrap().start().await.unwrap_err();
        let StartError::ChildFailed { path, .. } = &error else { panic!("{error}") };
        assert!(path.as_str().starts_with("app/") && error.to_string().contains("no start"));
        let expected: &[&str] = match failed {
            "a" => &["try a"],
            "b" => &["start a", "try b", "stop a"],
            "c" => &["start a", "start b", "try c", "stop b", "stop a"],
            _ => &["start a", "start b", "start c", "try d", "stop c", "stop b", "stop a"],
        };
        assert_eq!(fakes.actions(), expected, "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn kin_147_an_application_whose_start_fails_runs_only_the_hooks_that_follow_its_end() {
    let fakes = FakeChildren::new();
    fakes.next_starts("c", [NextStart::Error]);
    let note = |what: &'static str| {
        let fakes = fakes.clone();
        hook(what, move |cause| async move {
            fakes.note(what, &cause);
        })
    };
    let app = Application::new(strict(&fakes)).listen_to_signals(false);
    let app = app.before_stop(note("before")).after_stop(note("after"));
    let error = app.run_to_end().await.unwrap_err();
    assert!(matches!(error, RunError::Start(_)), "{error}");
    let actions = ["start a", "start b", "try c", "stop b", "stop a", "after ended"];
    assert_eq!(fakes.actions(), actions);
}

#[tokio::test(start_paused = true)]
async fn kin_147_nothing_starts_once_the_time_to_run_is_over() {
    let fakes = FakeChildren::new();
    let tree = strict(&fakes).build().unwrap();
    tree.with_graceful_shutdown(ready("too late")).await.unwrap();
    settle().await;
    assert_eq!(fakes.log(), [""; 0]);
}

/// The root can't be started twice, because its start consumes it.
#[tokio::test(start_paused = true)]
async fn kin_147_a_start_of_what_has_started_is_an_error_and_starts_nothing() {
    let fakes = FakeChildren::new();
    let app = start(strict(&fakes)).await;
    fakes.actions();
    let error = app.start_child(fakes.child("a")).await.unwrap_err();
    assert!(
        matches!(&error, ControlError::NameTaken { path, running: true } if path.as_str() == "app/a")
    );
    let error = app.start_child(Supervisor::builder("mid")).await.unwrap_err();
    assert!(
        matches!(&error, ControlError::NameTaken { path, running: true } if path.as_str() == "app/mid")
    );
    let error = app.otp().restart_child("mid/b").await.unwrap_err();
    assert!(matches!(&error, ControlError::Running { path } if path.as_str() == "app/mid/b"));
    assert_eq!(fakes.actions(), [""; 0]);
    app.stop("done").await.unwrap();
}

// --- The stop ------------------------------------------------------------------------------------

/// A child that writes what it does, and whose start or stop may fail.
#[derive(Clone)]
struct Part {
    fakes: FakeChildren,
    name: &'static str,
    fails: Option<&'static str>,
}

#[async_trait]
impl Child for Part {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        self.fakes.note("activate", self.name);
        if self.fails == Some("activate") { Err("no start".into()) } else { Ok(()) }
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        if self.fails == Some("never") {
            pending::<()>().await;
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.fakes.note("deactivate", self.name);
        match self.fails {
            Some("error") => Err("not closed".into()),
            Some("panic") => panic!("on purpose"),
            _ => Ok(()),
        }
    }
}

fn part(fakes: &FakeChildren, name: &'static str, fails: Option<&'static str>) -> ChildSpec {
    let part = Part { fakes: fakes.clone(), name, fails };
    child(name, move || part.clone())
}

#[tokio::test(start_paused = true)]
async fn kin_148_a_stop_goes_on_in_reverse_after_errors_and_reports_each_of_them() {
    let log = Log::at(LevelFilter::WARN);
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid");
    let mid = mid.child(part(&fakes, "b", Some("error"))).child(part(&fakes, "c", None));
    let app = Supervisor::builder("app").child(part(&fakes, "a", None)).child(mid).child(part(
        &fakes,
        "d",
        Some("panic"),
    ));
    let app = start(app).await;
    let mut events = app.events();
    fakes.log();
    app.stop("done").await.unwrap();

    let order = ["deactivate d", "deactivate c", "deactivate b", "deactivate a"];
    assert_eq!(fakes.actions(), order);
    let failed = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event.kind {
        EventKind::DeactivateFailed { reason } => Some(format!("{} {reason}", event.path)),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed, ["app/d panicked: on purpose", "app/mid/b failed: not closed"]);
    assert_eq!(
        log.lines(),
        [
            "WARN verger::lifecycle: deactivate failed child=app/d incarnation=1 cause=\"panicked: on purpose\"",
            "WARN verger::lifecycle: deactivate failed child=app/mid/b incarnation=1 cause=\"failed: not closed\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn kin_148_nothing_is_deactivated_that_has_not_started() {
    let fakes = FakeChildren::new();
    let tree = |fails| {
        let app = Supervisor::builder("app").first_start(FirstStart::Fail);
        app.child(part(&fakes, "a", None))
            .child(part(&fakes, "b", fails))
            .child(part(&fakes, "c", None))
    };
    drop(tree(None).build().unwrap());
    assert_eq!(fakes.log(), [""; 0], "it was never started");

    tree(Some("activate")).build().unwrap().start().await.unwrap_err();
    assert_eq!(fakes.actions(), ["activate a", "activate b", "deactivate a"]);

    let app = start(tree(None)).await;
    app.stop_child("b").await.unwrap();
    fakes.log();
    app.stop("done").await.unwrap();
    app.stop("again").await.unwrap();
    assert_eq!(fakes.actions(), ["deactivate c", "deactivate a"], "each of them once");
}

#[tokio::test(start_paused = true)]
async fn kin_148_nothing_is_deactivated_once_the_time_to_stop_is_over() {
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app").child(part(&fakes, "a", None));
    let app = app.child(part(&fakes, "b", None));
    let stop = async {
        sleep(secs(1)).await;
        "test"
    };
    let app = Application::new(app).listen_to_signals(false).stages(StopStages::new([]));
    app.stop_on(stop).run_to_end().await.or_else(killed).unwrap();
    assert_eq!(fakes.actions(), ["activate a", "activate b"]);

    let app = Supervisor::builder("app").stop_deadline(secs(3)).child(part(&fakes, "a", None));
    let app = start(app.child(part(&fakes, "b", Some("never")).shutdown(secs(60)))).await;
    fakes.log();
    let began = Instant::now();
    app.stop("done").await.or_else(killed).unwrap();
    assert_eq!((began.elapsed(), fakes.actions()), (secs(3), vec![]), "`b` used up all of it");
}

// --- The wait ------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn kin_150_waiting_for_what_has_ended_returns_its_result_at_once_every_time() {
    let fakes = FakeChildren::new();
    let job = fakes.child("job").restart(RestartType::Transient).significant();
    let app = Supervisor::builder("app").auto_shutdown(AutoShutdown::AnySignificant).child(job);
    let well = start(app).await;
    let badly = start(limited("app", 0).child(fakes.child("worker"))).await;
    let waiters = [&well, &well, &badly, &badly].map(|tree| {
        let tree = tree.clone();
        tokio::spawn(async move { tree.wait().await })
    });
    settle().await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    fakes.end("job", End::Normal).await;
    fakes.end("worker", End::Error).await;

    let began = Instant::now();
    let gave_up = "`app` gave up on `app/worker`: failed: worker failed";
    for (number, waiter) in waiters.into_iter().enumerate() {
        let result = waiter.await.unwrap().map_err(|error| error.to_string());
        let expected = if number < 2 { Ok(()) } else { Err(gave_up.to_owned()) };
        assert_eq!(result, expected, "each waiter gets it");
    }
    for _ in 0..2 {
        well.wait().await.unwrap();
        well.stop("again").await.unwrap();
        assert_eq!(badly.wait().await.unwrap_err().to_string(), gave_up);
        assert_eq!(badly.stop("again").await.unwrap_err().to_string(), gave_up);
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn kin_150_several_callers_wait_for_one_child_whatever_changes_beside_it() {
    let fakes = FakeChildren::new();
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        sleep(secs(4)).await;
    });
    let app = start(Supervisor::builder("app").child(fakes.child("a")).child(slow)).await;
    let began = Instant::now();
    let stop = async || {
        app.stop_child("slow").await.unwrap();
        began.elapsed()
    };
    let change = async {
        sleep(secs(1)).await;
        app.start_child(fakes.child("b")).await.unwrap();
        app.restart("a").await.unwrap();
        app.stop_child("a").await.unwrap();
        app.otp().delete_child("a").await.unwrap();
    };
    let (first, second, ()) = tokio::join!(stop(), stop(), change);
    assert_eq!((first, second), (secs(4), secs(4)));
    app.stop_child("slow").await.unwrap();
    assert_eq!(began.elapsed(), secs(4), "it is down already");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_150_a_caller_that_waits_for_a_child_that_is_removed_gets_an_error() {
    let never_ready = |name| idle(name).readiness(Readiness::Signal);
    let app = start(Supervisor::builder("app")).await;
    let mid = app.start_child(Supervisor::builder("mid")).await.unwrap();
    let below = app.supervisor("mid").await.unwrap();
    let remove = async {
        sleep(secs(1)).await;
        app.stop_child("a").await.unwrap();
        app.otp().delete_child("a").await.unwrap();
        app.stop_child(mid.name()).await.unwrap();
        app.otp().delete_child(mid.name()).await.unwrap();
    };
    let (a, b, waited, ()) = tokio::join!(
        app.start_child(never_ready("a")),
        below.start_child(never_ready("b")),
        below.wait(),
        remove
    );
    assert!(matches!(&a, Err(ControlError::Stopped { path }) if path.as_str() == "app/a"));
    let b = b.unwrap_err();
    assert!(matches!(&b, ControlError::ShuttingDown { path } if path.as_str() == "app/mid"), "{b}");
    waited.unwrap();
    for _ in 0..2 {
        let gone = app.stop_child("a").await.unwrap_err();
        assert_eq!(gone.to_string(), "there is no `app/a`");
        let gone = below.start_child(idle("c")).await.unwrap_err();
        assert_eq!(gone.to_string(), "there is no `app/mid`");
        below.wait().await.unwrap();
    }
    app.stop("done").await.unwrap();
}

// --- Rings ---------------------------------------------------------------------------------------

/// The names of a ring that begins with the child `from` of twenty, each of which requires the next.
fn ring(from: usize) -> String {
    let names = (from..=from + 20).map(|number| format!("n{}", number % 20));
    names.collect::<Vec<_>>().join(" → ")
}

#[test]
fn kin_151_a_tree_with_a_ring_of_twenty_is_refused_with_the_ring() {
    for first in [0, 7, 19] {
        for how in [Start::Concurrent, Start::Sequential] {
            // The one that is declared first is the first that is named.
            let numbers = (first..first + 20).map(|number| number % 20);
            let app = numbers.fold(Supervisor::builder("app").start(how), |app, number| {
                let required = format!("n{}", (number + 1) % 20);
                app.child(idle(&format!("n{number}")).requires(required))
            });
            let error = app.child(idle("other")).build().unwrap_err();
            let BuildError::RequirementCycle { parent, cycle } = error else { panic!("{error}") };
            assert_eq!((parent.as_str(), cycle), ("app", ring(first)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kin_151_a_start_that_would_close_a_ring_is_refused_and_the_supervisor_goes_on() {
    // Each requires the next one, the last one requires none.
    let app = (0..20).fold(Supervisor::builder("app").start(Start::Concurrent), |app, number| {
        let child = idle(&format!("n{number}"));
        let next = format!("n{}", number + 1);
        app.child(if number < 19 { child.requires(next) } else { child })
    });
    let app = start(app).await;
    app.stop_child("n19").await.unwrap();
    app.otp().delete_child("n19").await.unwrap();

    for first in 0..19 {
        let closing = idle("n19").requires(format!("n{first}"));
        let error = app.start_child(closing).await.unwrap_err();
        let chain: Vec<_> = (first..20).map(|number| format!("n{number}")).collect();
        assert_eq!(
            error.to_string(),
            format!(
                "the children of `app` require each other in a cycle: n19 → {}; remove one of these \
                 requirements",
                chain.join(" → ")
            )
        );
        let below = Supervisor::builder("below").child(idle("a").requires("a"));
        let error = app.start_child(below).await.unwrap_err();
        assert!(matches!(
            error,
            ControlError::InvalidSpec(BuildError::RequirementCycle { parent, .. })
                if parent.as_str() == "app/below"
        ));
        assert_eq!(app.otp().count_children().await.unwrap().specs, 19, "nothing was added");
    }

    app.start_child(idle("n19")).await.unwrap();
    app.restart("n0").await.unwrap();
    let children = app.children().await.unwrap();
    assert!(children.len() == 20 && children.iter().all(|it| it.lifecycle == Lifecycle::Active));
    app.stop("done").await.unwrap();
}

// --- Subscriptions -------------------------------------------------------------------------------

/// Returns all that a subscriber receives within a second, as in `a active`.
async fn received(stream: &mut StatusStream) -> Vec<String> {
    let mut changes = Vec::new();
    while let Ok(Some(change)) = timeout(secs(1), stream.next()).await {
        let state = change.lifecycle.map_or("gone".to_owned(), |state| state.to_string());
        changes.push(format!("{} {state}", change.path.name()));
    }
    changes
}

#[tokio::test(start_paused = true)]
async fn kin_156_a_subscriber_gets_each_current_state_once_and_then_only_changes() {
    let fakes = FakeChildren::new();
    let initializing = worker("initializing", async |ctx: Context| {
        sleep(secs(10)).await;
        ctx.ready();
        ctx.cancelled().await;
    });
    let backoff = verger::Backoff::constant(secs(20));
    let app = limited("app", 5)
        .child(fakes.child("failed").backoff(backoff))
        .child(fakes.child("finished").restart(RestartType::Temporary))
        .child(fakes.child("stopped"))
        .child(fakes.child("running"));
    let app = start(app).await;
    let handle = app.clone();
    let starting = initializing.readiness(Readiness::Signal);
    let starting = tokio::spawn(async move { handle.start_child(starting).await });
    fakes.end("failed", End::Error).await;
    fakes.end("finished", End::Normal).await;
    app.stop_child("stopped").await.unwrap();

    let now = ["failed restarting", "stopped stopped", "running active", "initializing activating"];
    let mut first = app.subscribe_status().await.unwrap();
    assert_eq!(received(&mut first).await, now, "and nothing of the one that is forgotten");
    assert_eq!(received(&mut first).await, [""; 0], "no state is repeated");
    // What changes nothing.
    app.stop_child("stopped").await.unwrap();
    app.otp().restart_child("running").await.unwrap_err();
    assert_eq!(received(&mut first).await, [""; 0]);

    let mut second = app.subscribe_status().await.unwrap();
    assert_eq!(received(&mut second).await, now, "it has a replay of its own");
    assert_eq!(received(&mut first).await, [""; 0], "which is for nobody else");

    sleep(secs(30)).await;
    starting.await.unwrap().unwrap();
    let changes = ["initializing active", "failed resolved", "failed activating", "failed active"];
    for stream in [&mut first, &mut second] {
        assert_eq!(received(stream).await, changes);
    }
    assert_eq!(lifecycle(&app, "failed").await, Lifecycle::Active);
    app.stop("done").await.unwrap();
}
