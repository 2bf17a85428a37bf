//! The dynamic supervisor that a child can have of its own.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Supervisor,
    SupervisorHandle, async_trait, child, once, worker,
};

use crate::common::{killed, settle};
use crate::journal::Journal;

/// A child that takes a second to stop.
fn slow(name: &str, journal: &Journal) -> ChildSpec {
    let journal = journal.clone();
    once(name, async move |ctx: Context| {
        journal.note(format!("start {}", ctx.path()));
        ctx.cancelled().await;
        sleep(Duration::from_secs(1)).await;
        journal.note(format!("stop {}", ctx.path()));
    })
}

/// A component with two children.
struct Rooms {
    journal: Journal,
    exit: fn() -> Exit,
}

#[async_trait]
impl Child for Rooms {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        for name in ["lobby", "garden"] {
            ctx.children().start_child(slow(name, &self.journal)).await?;
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() == 1 {
            ctx.run_until_cancelled(sleep(Duration::from_secs(5))).await;
            self.journal.note("returned");
            return (self.exit)();
        }
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.journal.note("deactivate");
        Ok(())
    }
}

async fn start(exit: fn() -> Exit) -> (SupervisorHandle, Journal) {
    let journal = Journal::default();
    let rooms = {
        let journal = journal.clone();
        child("rooms", move || Rooms { journal: journal.clone(), exit })
    };
    let rooms = rooms.backoff(Backoff::constant(Duration::from_secs(1)));
    let app = Supervisor::builder("app").child(rooms).build().unwrap().start().await.unwrap();
    settle().await;
    (app, journal)
}

#[tokio::test(start_paused = true)]
async fn own_children_stop_after_run_and_before_deactivate_inside_of_the_grace() {
    let (app, journal) = start(|| Ok(())).await;
    assert_eq!(journal.taken(), ["start app/rooms/lobby#1", "start app/rooms/garden#2"]);
    let began = Instant::now();
    app.stop("enough").await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1), "they stop in parallel");
    assert_eq!(
        journal.taken(),
        ["returned", "stop app/rooms/garden#2", "stop app/rooms/lobby#1", "deactivate"]
    );
}

#[tokio::test(start_paused = true)]
async fn own_children_belong_to_one_incarnation() {
    let (app, journal) = start(|| Err("again".into())).await;
    journal.taken();
    sleep(Duration::from_millis(7_500)).await;
    assert_eq!(
        journal.taken(),
        [
            "returned",
            "stop app/rooms/garden#2",
            "stop app/rooms/lobby#1",
            "deactivate",
            "start app/rooms/lobby#1",
            "start app/rooms/garden#2",
        ]
    );
    assert_eq!(app.which_child("rooms").await.unwrap().incarnation, 2);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_are_aborted_if_the_child_panics() {
    let (app, journal) = start(|| panic!("boom")).await;
    journal.taken();
    sleep(Duration::from_millis(5_500)).await;
    assert_eq!(journal.taken(), ["returned"]);
    assert!(app.supervisor("rooms").await.is_err(), "its supervisor has ended");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(journal.taken(), ["start app/rooms/lobby#1", "start app/rooms/garden#2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_are_aborted_when_the_grace_is_over() {
    let rooms = worker("rooms", async |ctx: Context| -> Exit {
        let endless = once("a", async |_| std::future::pending::<()>().await);
        ctx.children().start_child(endless.shutdown(Duration::from_secs(60))).await?;
        ctx.cancelled().await;
        Ok(())
    });
    let rooms = rooms.shutdown(Duration::from_secs(3));
    let app = Supervisor::builder("app").child(rooms).build().unwrap().start().await.unwrap();
    settle().await;
    let began = Instant::now();
    app.stop("enough").await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn own_children_of_a_function_stop_when_it_returns() {
    let journal = Journal::default();
    let seen = journal.clone();
    let rooms = worker("rooms", move |ctx: Context| {
        let journal = seen.clone();
        async move {
            ctx.children().start_child(slow("lobby", &journal)).await?;
            ctx.cancelled().await;
            journal.note("returned");
            Exit::Ok(())
        }
    });
    let app = Supervisor::builder("app").child(rooms).build().unwrap().start().await.unwrap();
    settle().await;
    app.stop("enough").await.unwrap();
    let journal = journal.taken();
    assert_eq!(journal, ["start app/rooms/lobby#1", "returned", "stop app/rooms/lobby#1"]);
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_own_children_and_handles_find_them() {
    let (app, _) = start(|| Ok(())).await;
    let status = app.status().await.unwrap();
    let rooms = &status.root.children[0];
    let paths: Vec<_> = rooms.children.iter().map(|room| room.child.path.as_str()).collect();
    assert_eq!(paths, ["app/rooms/lobby#1", "app/rooms/garden#2"]);
    insta::assert_snapshot!(status, @r"
    app  one_for_one 12 in 5m for each  active  up 0s  3 children
    └─ rooms               dynamic      active       up 0s  12 in 5m for each
       ├─ lobby#1          temporary    active       up 0s
       └─ garden#2         temporary    active       up 0s
    ");
    let lobby = app.which_child("rooms/lobby#1").await.unwrap();
    assert_eq!(lobby.incarnation, 1);
    app.stop_child("rooms/lobby#1").await.unwrap();
    assert_eq!(
        app.supervisor("rooms").await.unwrap().otp().count_children().await.unwrap().specs,
        1
    );
    app.stop("enough").await.unwrap();
}

/// Returns why incarnations have ended, each as `path: reason`.
pub(crate) fn reasons(events: &mut Subscription<Event>) -> Vec<String> {
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            reasons.push(format!("{}: {reason}", event.path));
        }
    }
    reasons
}

#[tokio::test(start_paused = true)]
async fn own_children_restart_by_themselves_and_an_exhausted_limit_fails_their_owner() {
    let owner = worker("owner", async |ctx: Context| -> Exit {
        let limited = DynamicSupervisor::builder("any").restarts(1, Duration::from_secs(60));
        let children = ctx.children_with(limited)?;
        let failing = worker("a", async |_| -> Exit { Err("broken".into()) });
        children.start_child(failing.backoff(Backoff::constant(Duration::from_secs(1)))).await?;
        ctx.cancelled().await;
        Ok(())
    });
    let owner = owner.restart(verger::RestartType::Temporary);
    let app = Supervisor::builder("app").child(owner).build().unwrap().start().await.unwrap();
    let mut events = app.events();
    // The first failure was before.
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(
        reasons(&mut events),
        [
            "app/owner/a#1: failed: broken",
            "app/owner: escalated: child app/owner/a#1: failed: broken",
        ]
    );
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_context_of_an_ended_incarnation_starts_no_children() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let a = once("a", async move |ctx: Context| drop(pass.send(ctx)));
    let app = Supervisor::builder("app").child(a).build().unwrap().start().await.unwrap();
    let ctx: Context = passed.recv().await.unwrap();
    settle().await;
    let refused = ctx.children().start_once("b", async |_| {}).await.unwrap_err();
    assert!(matches!(refused, ControlError::NotFound { .. }), "{refused}");
    app.stop("enough").await.unwrap();
    let refused = ctx.children().start_once("b", async |_| {}).await.unwrap_err();
    assert!(matches!(refused, ControlError::Ended { .. }), "{refused}");
}

/// Returns a child that passes its contexts to the test, and has a child of its own.
fn owner() -> (ChildSpec, mpsc::UnboundedReceiver<Context>) {
    let (pass, passed) = mpsc::unbounded_channel();
    let owner = worker("owner", move |ctx: Context| {
        let pass = pass.clone();
        async move {
            ctx.children().start_once("x", async |ctx: Context| ctx.cancelled().await).await?;
            pass.send(ctx.clone()).unwrap();
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    (owner, passed)
}

#[tokio::test(start_paused = true)]
async fn a_stale_context_does_not_hide_the_children_of_the_next_incarnation() {
    let (owner, mut passed) = owner();
    let app = Supervisor::builder("app").child(owner).build().unwrap().start().await.unwrap();
    let stale = passed.recv().await.unwrap();
    app.restart("owner").await.unwrap();
    passed.recv().await.unwrap();
    drop(stale.children());
    let own = app.supervisor("owner").await.unwrap();
    assert_eq!(own.otp().count_children().await.unwrap().specs, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_that_were_stopped_by_a_call_can_be_started_again() {
    let (owner, mut passed) = owner();
    let app = Supervisor::builder("app").child(owner).build().unwrap().start().await.unwrap();
    let ctx = passed.recv().await.unwrap();
    app.supervisor("owner").await.unwrap().stop("by hand").await.unwrap();
    settle().await;
    assert_eq!(app.which_child("owner").await.unwrap().incarnation, 1);
    let child = ctx.children().start_once("y", async |ctx: Context| ctx.cancelled().await).await;
    assert_eq!(child.unwrap().path().as_str(), "app/owner/y#1");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_stop_before_deactivate_also_if_run_ignores_its_cancellation() {
    struct Stubborn(Journal);

    #[async_trait]
    impl Child for Stubborn {
        async fn run(&mut self, ctx: &Context) -> Exit {
            let journal = self.0.clone();
            ctx.children()
                .start_once("x", async move |ctx: Context| {
                    ctx.cancelled().await;
                    journal.note("x cancelled");
                })
                .await?;
            std::future::pending().await
        }

        async fn deactivate(&mut self, _ctx: &Context) -> Exit {
            self.0.note("deactivate");
            Ok(())
        }
    }

    let journal = Journal::default();
    let noted = journal.clone();
    let stubborn = child("a", move || Stubborn(noted.clone()));
    let app = Supervisor::builder("app").child(stubborn.shutdown(Duration::from_secs(4)));
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    let began = Instant::now();
    app.stop("enough").await.or_else(killed).unwrap();
    assert_eq!(journal.taken(), ["x cancelled", "deactivate"]);
    assert_eq!(
        began.elapsed(),
        Duration::from_secs(3),
        "three quarters of the grace are for `run`"
    );
}

#[tokio::test(start_paused = true)]
async fn own_children_know_why_they_stop() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let owner = worker("owner", move |ctx: Context| {
        let tell = tell.clone();
        async move {
            ctx.children()
                .start_once("x", async move |ctx: Context| {
                    ctx.cancelled().await;
                    tell.send(ctx.stop_reason().unwrap().to_string()).unwrap();
                })
                .await?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let app = Supervisor::builder("app").child(owner).build().unwrap().start().await.unwrap();
    settle().await;
    app.restart("owner").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "`app/owner` stops");
    settle().await;
    app.stop("the end of the day").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "the end of the day");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_own_child_that_leaks_is_named_and_not_its_owner() {
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let (blocks, mut is_blocked) = mpsc::unbounded_channel();
    let goes_on = Mutex::new(Some((goes_on, blocks)));
    let owner = worker("owner", move |ctx: Context| {
        let (goes_on, blocks) = goes_on.lock().unwrap().take().unwrap();
        async move {
            ctx.children()
                .start_once("x", async move |_| {
                    blocks.send(()).unwrap();
                    _ = goes_on.recv();
                })
                .await?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let owner = owner.shutdown(Duration::from_millis(50));
    let app = Supervisor::builder("app").leak_timeout(Duration::from_secs(2)).child(owner);
    let app = app.build().unwrap().start().await.unwrap();
    is_blocked.recv().await.unwrap();
    let leaked = app.stop("enough").await.unwrap_err();
    let text = leaked.to_string();
    assert!(text.contains("app/owner/x#1") && !text.contains("app/owner`"), "{text}");
    go_on.send(()).unwrap();
}
