//! What the status shows beside the state of each child: where it comes from, how it ended, what it waits for,
//! what was called on it, and what is gone.

use std::time::Duration;

use tokio::time::sleep;
use verger::policy::Intensity;
use verger::status::{ChildInfo, EventKind, EventLog};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, ExitReason, HealthCheck,
    Lifecycle, Supervisor, SupervisorHandle, worker,
};

use crate::common::{End, FakeChildren};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

async fn start(children: impl IntoIterator<Item = ChildSpec>) -> SupervisorHandle {
    let app = Supervisor::builder("app").restarts(5, secs(60));
    let app = app.defaults(|c| c.backoff(Backoff::constant(secs(5))));
    let app = children.into_iter().fold(app, |app, child| app.child(child));
    app.build().unwrap().start().await.unwrap()
}

async fn seen(app: &SupervisorHandle, path: &str) -> ChildInfo {
    app.which_child(path).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_child_shows_where_it_is_described_and_whether_it_was_added() {
    let line = line!() + 1;
    let declared = worker("declared", async |ctx: Context| ctx.cancelled().await);
    let app = start([declared]).await;
    sleep(secs(3)).await;
    app.start_child(idle("added")).await.unwrap();

    let (declared, added) = (seen(&app, "declared").await, seen(&app, "added").await);
    let place = |child: &ChildInfo| child.defined_at.map(|it| (it.file(), it.line())).unwrap();
    assert_eq!(place(&declared), (file!(), line));
    assert_eq!((declared.declared, added.declared), (true, false));
    assert_eq!(added.created_at.duration_since(declared.created_at).unwrap(), secs(3));
    assert_eq!(added.started_at, Some(added.created_at));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_the_library_describes_shows_no_place() {
    let app = start([idle("a")]).await;
    app.start_once("task", async |ctx: Context| ctx.cancelled().await).await.unwrap();
    assert_eq!(seen(&app, "task").await.defined_at, None);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_exit_shows_when_and_how_long_the_incarnation_had_lived() {
    let fakes = FakeChildren::new();
    let app = start([fakes.child("a")]).await;
    let began = seen(&app, "a").await.created_at;
    sleep(secs(7)).await;
    fakes.end("a", End::Error).await;
    sleep(secs(6)).await;

    let a = seen(&app, "a").await;
    let last = a.last_exit.unwrap();
    assert_eq!((last.incarnation, last.lived), (1, Some(secs(7))));
    assert_eq!(last.at.duration_since(began).unwrap(), secs(7));
    assert!(matches!(*last.reason, ExitReason::Failed(_)), "{last}");
    assert_eq!((a.incarnation, a.age), (2, secs(1)));
    assert_eq!(a.started_at.unwrap().duration_since(began).unwrap(), secs(12));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_its_own_shows_how_much_is_used() {
    let fakes = FakeChildren::new();
    let a = fakes.child("a").intensity(Intensity::sliding(2, secs(60)));
    let app = start([a, idle("b")]).await;
    let used = async || {
        let limit = seen(&app, "a").await.limit.unwrap();
        (limit.restarts, limit.max_restarts, limit.period, limit.reached)
    };
    assert_eq!(used().await, (0, 2, secs(60), false));
    for expected in [(1, 2, secs(60), false), (2, 2, secs(60), true)] {
        fakes.end("a", End::Error).await;
        sleep(secs(6)).await;
        assert_eq!(used().await, expected);
    }
    assert!(seen(&app, "b").await.limit.is_none());
    let root = app.status().await.unwrap().root;
    let supervisor = root.supervisor.as_ref().unwrap();
    assert_eq!((supervisor.restarts_in_period, supervisor.limit_reached), (2, false));
    assert!(root.children[0].child.limit.unwrap().reached);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_shows_what_it_requires_and_what_it_waits_for() {
    let app =
        start([idle("db"), idle("cache"), idle("api").requires("db").requires("cache")]).await;
    app.hold("db").await.unwrap();
    app.kill("db").await.unwrap();
    app.kill("api").await.unwrap();
    sleep(secs(20)).await;

    let api = seen(&app, "api").await;
    assert_eq!(*api.requires, ["db".to_owned(), "cache".to_owned()]);
    assert_eq!((api.lifecycle, api.waits_for), (Lifecycle::Discovered, vec!["db".to_owned()]));
    assert!(app.status().await.unwrap().to_string().contains("waits for a requirement  for db"));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_child_shows_its_problem_until_it_is_healthy() {
    let (sick, is_sick) = tokio::sync::watch::channel(true);
    let check = HealthCheck::new(move |_| {
        let sick = *is_sick.borrow();
        async move { if sick { Err("no ping") } else { Ok(()) } }
    });
    let app = start([idle("a").health_check(check.every(secs(1)).failures(1))]).await;
    sleep(secs(2)).await;
    assert_eq!(seen(&app, "a").await.problem.as_deref(), Some("no ping"));
    sick.send(false).unwrap();
    sleep(secs(2)).await;
    assert_eq!(seen(&app, "a").await.problem, None);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_an_operator_has_stopped_shows_the_caller_and_the_reason() {
    let app = start([idle("a"), idle("b")]).await;
    let mut events = app.events();
    let operator = app.on_behalf_of("operator", "disk swap");
    operator.stop_child("a").await.unwrap();
    app.stop_child("b").await.unwrap();

    let (a, b) = (seen(&app, "a").await, seen(&app, "b").await);
    assert_eq!(
        (a.why, a.explanation().as_deref()),
        (Some("stopped manually"), Some("stopped by operator: disk swap"))
    );
    assert_eq!((b.explanation().as_deref(), b.last_call), (Some("stopped manually"), None));
    let call = a.last_call.unwrap();
    assert_eq!(
        (call.call, &*call.by, call.reason.as_deref()),
        ("stop_child", "operator", Some("disk swap"))
    );
    assert!(app.status().await.unwrap().to_string().contains("stopped by operator: disk swap"));
    let mut called = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Called { .. } = event.kind {
            called.push(event.to_string());
        }
    }
    assert_eq!(called, ["app/a stop_child called by operator: disk swap"]);

    operator.otp().restart_child("a").await.unwrap();
    assert_eq!(seen(&app, "a").await.explanation(), None);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_removes_a_child_names_its_last_incarnation() {
    let app = start([idle("a")]).await;
    let mut events = app.events();
    let operator = app.on_behalf_of("operator", "");
    operator.restart("a").await.unwrap();
    operator.stop_child("a").await.unwrap();
    operator.otp().delete_child("a").await.unwrap();
    let mut called = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Called { call, .. } = event.kind {
            called.push((call, event.incarnation));
        }
    }
    assert_eq!(called, [("restart", 2), ("stop_child", 2), ("delete_child", 2)]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_program_is_not_explained_by_an_earlier_one_of_an_operator() {
    let app = start([idle("a"), idle("b"), idle("c")]).await;
    let operator = app.on_behalf_of("operator", "disk swap");
    let explained =
        async |path| seen(&app, path).await.explanation().map(std::borrow::Cow::into_owned);

    operator.stop_child("a").await.unwrap();
    app.otp().restart_child("a").await.unwrap();
    app.stop_child("a").await.unwrap();
    assert_eq!(explained("a").await.as_deref(), Some("stopped manually"));

    operator.hold("b").await.unwrap();
    app.stop_child("b").await.unwrap();
    assert_eq!(explained("b").await.as_deref(), Some("stopped manually"));

    operator.hold("c").await.unwrap();
    app.release("c").await.unwrap();
    app.hold("c").await.unwrap();
    app.kill("c").await.unwrap();
    sleep(secs(9)).await;
    assert_eq!(explained("c").await.as_deref(), Some("held"));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_held_child_refuses_to_start_and_its_error_says_what_to_call() {
    let app = start([idle("a")]).await;
    app.on_behalf_of("operator", "").hold("a").await.unwrap();
    let a = seen(&app, "a").await;
    assert_eq!((a.held, a.ready, a.explanation()), (true, true, None), "it runs on");
    app.kill("a").await.unwrap();
    sleep(secs(9)).await;
    let a = seen(&app, "a").await;
    assert_eq!(
        (a.lifecycle, a.explanation().as_deref()),
        (Lifecycle::Discovered, Some("held by operator"))
    );

    assert!(!a.ready && !app.status().await.unwrap().is_ready(), "it is missing");
    let refused = app.otp().restart_child("a").await.unwrap_err();
    assert_eq!(refused.to_string(), "`app/a` is held by operator for 9s; call `release`");
    assert!(matches!(refused, ControlError::Withheld { .. }));
    app.release("a").await.unwrap();
    assert_eq!((seen(&app, "a").await.incarnation, seen(&app, "a").await.held), (2, false));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn counters_that_are_reset_leave_room_for_more_restarts() {
    let fakes = FakeChildren::new();
    let app = start([fakes.child("a")]).await;
    for _ in 0..5 {
        fakes.end("a", End::Error).await;
        sleep(secs(6)).await;
    }
    let supervisor = app.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!((supervisor.restarts_in_period, supervisor.limit_reached), (5, true));
    app.reset("a").await.unwrap();
    let supervisor = app.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!((supervisor.restarts_in_period, supervisor.limit_reached), (0, false));
    assert_eq!((seen(&app, "a").await.failures, seen(&app, "a").await.restarts), (0, 5));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn children_that_are_gone_are_shown_for_a_minute_and_the_last_32_of_them() {
    let conns = DynamicSupervisor::builder("conns");
    let app = Supervisor::builder("app").child(conns).build().unwrap().start().await.unwrap();
    let gone = async || {
        let conns = app.status().await.unwrap().root.children.remove(0);
        conns.supervisor.unwrap().gone
    };
    for number in 0..40_u64 {
        let conn = async move |_: Context| sleep(secs(number + 1)).await;
        app.supervisor("conns").await.unwrap().start_once("conn", conn).await.unwrap();
    }
    sleep(secs(40)).await;
    let all = gone().await;
    assert_eq!(all.len(), 32);
    let (first, last) = (&all[0], &all[31]);
    assert_eq!(
        (first.path.as_str(), last.path.as_str()),
        ("app/conns/conn#9", "app/conns/conn#40")
    );
    assert_eq!((last.incarnation, last.lived), (1, Some(secs(40))));
    assert!(matches!(last.reason.as_deref(), Some(ExitReason::Normal)));

    sleep(secs(59)).await;
    assert_eq!(gone().await.len(), 2, "those of the last minute");
    sleep(secs(2)).await;
    assert_eq!(gone().await.len(), 0);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn totals_count_the_whole_tree_and_never_decrease() {
    let fakes = FakeChildren::new();
    let sub = Supervisor::builder("sub").child(fakes.child("a")).child(idle("b"));
    let app = start([sub.into_child(), idle("c")]).await;
    fakes.end("a", End::Panic).await;
    sleep(secs(20)).await;
    app.restart("sub").await.unwrap();

    let totals = app.status().await.unwrap().totals;
    assert_eq!((totals.children, totals.lifecycle[&Lifecycle::Active]), (4, 4));
    // Four at first, one after the panic, three with the supervisor.
    assert_eq!((totals.starts, totals.failures), (8, 1));
    // The children of a supervisor that is restarted are new.
    assert_eq!(totals.restarts, 2);
    let part = app.supervisor("sub").await.unwrap().status().await.unwrap().totals;
    assert_eq!((part.children, part.starts), (2, 8));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn supervisors_have_versions_as_well_and_that_of_the_root_is_the_programs() {
    let versions = async |app: verger::SupervisorBuilder| {
        let app = app.build().unwrap().start().await.unwrap();
        let root = app.status().await.unwrap().root;
        let children = root.children.iter().map(|node| node.child.version.as_deref());
        let versions: Vec<_> =
            std::iter::once(root.child.version.as_deref()).chain(children).collect();
        let versions = format!("{versions:?}");
        app.stop("done").await.unwrap();
        versions
    };
    let sub = |name| Supervisor::builder(name).version("2.0").child(idle("a"));
    let app = Supervisor::builder("app").version("1.4.2 (9f3c2d1)");
    let app = app
        .child(sub("builder"))
        .child(sub("tree").build().unwrap())
        .child(sub("spec").into_child().version("3.0"))
        .child(idle("none"));
    let expected = r#"[Some("1.4.2 (9f3c2d1)"), Some("2.0"), Some("2.0"), Some("3.0"), None]"#;
    assert_eq!(versions(app).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_before_the_start_has_the_whole_first_start() {
    let mut app = Supervisor::builder("app").child(idle("a")).child(idle("b")).build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    let mut lines = Vec::new();
    while let Some(event) = events.try_next() {
        lines.push(format!("{} {event}", event.seq));
    }
    assert_eq!(
        lines,
        [
            "1 app/a resolved",
            "2 app/a activating",
            "3 app/a active",
            "4 app/b resolved",
            "5 app/b activating",
            "6 app/b active",
        ]
    );
    app.stop("done").await.unwrap();
    while events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_a_tree_that_never_runs_ends() {
    let mut app = Supervisor::builder("app").child(idle("a")).build().unwrap();
    let mut events = app.events();
    let copy = app.clone().start().await.unwrap();
    assert!(events.try_next().is_none(), "a clone has no part in it");
    copy.stop("done").await.unwrap();
    drop(app);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_a_few_lines_of_an_event_log() {
    let app = Supervisor::builder("app").unlimited_restarts();
    let fails = worker("a", async |_: Context| Err::<(), _>("no\nroute \u{1b}[2J"));
    let fails = fails.backoff(Backoff::constant(secs(4)));
    let mut app = app.child(fails).build().unwrap();
    let mut events = app.events();
    let app = app.start().await.unwrap();
    sleep(secs(46)).await;

    let mut log = EventLog::new(100);
    while let Some(event) = events.try_next() {
        log.record(&event);
    }
    let lines: Vec<_> = log.entries().map(|it| format!("{} ×{}", it.text, it.count)).collect();
    assert_eq!(
        lines,
        [
            "active ×12",
            "errored: failed: no\\nroute \\u{1b}[2J ×12",
            "restarting in 4s (attempt 12) ×12",
        ]
    );
    app.stop("done").await.unwrap();
}
