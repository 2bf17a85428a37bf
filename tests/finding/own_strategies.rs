//! The supervisor that a child has of its own, with any strategy.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use verger::mailbox::Inbox;
use verger::policy::{OnExhausted, Preset};
use verger::{
    Backoff, BuildError, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit,
    Lifecycle, RestartType, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, async_trait,
    child, mailbox, worker, worker_with_mailbox,
};

use crate::common::{killed, settle};
use crate::journal::Journal;
use crate::own_children::reasons;

/// A child that takes a second to stop. The one named `bad` fails one second after each start.
fn part(name: &'static str, journal: &Journal) -> ChildSpec {
    let journal = journal.clone();
    let part = worker(name, move |ctx: Context| {
        let journal = journal.clone();
        async move {
            journal.note(format!("start {name}"));
            if name == "bad" {
                ctx.run_until_cancelled(sleep(Duration::from_secs(1))).await;
                if !ctx.is_cancelled() {
                    return Exit::Err("broken".into());
                }
            }
            ctx.cancelled().await;
            sleep(Duration::from_secs(1)).await;
            journal.note(format!("stop {name}"));
            Ok(())
        }
    });
    part.backoff(Backoff::constant(Duration::from_secs(1)))
}

fn parts(strategy: Strategy, names: &[&'static str], journal: &Journal) -> SupervisorBuilder {
    let builder = Supervisor::builder("parts").strategy(strategy);
    names.iter().fold(builder, |builder, name| builder.child(part(name, journal)))
}

/// A component that starts a supervisor of its own, and ends as `exit` says when five seconds have passed.
struct Machine {
    journal: Journal,
    parts: SupervisorBuilder,
    exit: Option<fn() -> Exit>,
}

#[async_trait]
impl Child for Machine {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        ctx.children_with(self.parts.clone())?;
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        if let Some(exit) = self.exit
            && ctx.run_until_cancelled(sleep(Duration::from_millis(5_500))).await.is_some()
        {
            self.journal.note("returned");
            return exit();
        }
        ctx.cancelled().await;
        self.journal.note("returned");
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.journal.note("deactivate");
        Ok(())
    }
}

fn machine(parts: SupervisorBuilder, exit: Option<fn() -> Exit>, journal: &Journal) -> ChildSpec {
    let journal = journal.clone();
    let machine =
        child("machine", move || Machine { journal: journal.clone(), parts: parts.clone(), exit });
    machine.shutdown(Duration::from_secs(20)).backoff(Backoff::constant(Duration::from_secs(1)))
}

/// A function that starts a supervisor of its own, and runs until it is cancelled.
fn owner(name: &str, own: SupervisorBuilder) -> ChildSpec {
    worker(name, move |ctx: Context| {
        let own = own.clone();
        async move {
            ctx.children_with(own)?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    })
}

async fn start(machine: ChildSpec) -> SupervisorHandle {
    let app = Supervisor::builder("app").child(machine).build().unwrap().start().await.unwrap();
    settle().await;
    app
}

#[tokio::test(start_paused = true)]
async fn under_one_for_all_a_failure_restarts_all_own_children_in_order() {
    let journal = Journal::default();
    let parts = parts(Strategy::OneForAll, &["a", "bad", "c"], &journal);
    let app = start(machine(parts, None, &journal)).await;
    assert_eq!(journal.taken(), ["start a", "start bad", "start c"]);
    // `bad` fails after 1 s. The others take a second each to stop.
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!(
        journal.taken(),
        ["stop c", "stop a", "start a", "start bad", "start c"],
        "they stop in reverse order, and start in order"
    );
    assert_eq!(app.which_child("machine").await.unwrap().incarnation, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn under_rest_for_one_a_failure_restarts_the_own_children_behind_it() {
    let journal = Journal::default();
    let parts = parts(Strategy::RestForOne, &["a", "bad", "c", "d"], &journal);
    let app = start(machine(parts, None, &journal)).await;
    assert_eq!(journal.taken(), ["start a", "start bad", "start c", "start d"]);
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!(journal.taken(), ["stop d", "stop c", "start bad", "start c", "start d"]);
    assert_eq!(app.which_child("machine/a").await.unwrap().incarnation, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_that_exceed_their_limit_fail_the_child_as_escalated() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let journal = Journal::default();
        let parts = parts(strategy, &["a", "bad"], &journal).restarts(1, Duration::from_secs(60));
        let machine = machine(parts, None, &journal).restart(RestartType::Temporary);
        let app = Supervisor::builder("app").child(machine).build().unwrap().start().await.unwrap();
        let mut events = app.events();
        sleep(Duration::from_secs(10)).await;
        let reasons = reasons(&mut events);
        let last = reasons.last().unwrap();
        assert_eq!(
            last, "app/machine: escalated: child app/machine/bad: failed: broken",
            "{strategy:?}"
        );
        let journal = journal.taken();
        assert_eq!(
            &journal[journal.len() - 2..],
            ["stop a", "deactivate"],
            "the others stop, and then the component is deactivated: {strategy:?}"
        );
        app.stop("enough").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn ordered_own_children_stop_in_reverse_order_after_run_and_before_deactivate() {
    let journal = Journal::default();
    let parts = parts(Strategy::OneForAll, &["a", "b", "c"], &journal);
    let app = start(machine(parts, None, &journal)).await;
    journal.taken();
    let began = Instant::now();
    app.stop("enough").await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(3), "they stop one after another");
    assert_eq!(journal.taken(), ["returned", "stop c", "stop b", "stop a", "deactivate"]);
}

#[tokio::test(start_paused = true)]
async fn ordered_own_children_belong_to_one_incarnation() {
    let journal = Journal::default();
    let parts = parts(Strategy::RestForOne, &["a", "b"], &journal);
    let app = start(machine(parts, Some(|| Err("again".into())), &journal)).await;
    journal.taken();
    sleep(Duration::from_secs(9)).await;
    assert_eq!(
        journal.taken(),
        ["returned", "stop b", "stop a", "deactivate", "start a", "start b"]
    );
    assert_eq!(app.which_child("machine").await.unwrap().incarnation, 2);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ordered_own_children_that_outlast_the_grace_of_the_child_are_aborted() {
    let journal = Journal::default();
    let parts = parts(Strategy::OneForOne, &["a", "b", "c", "d"], &journal);
    let app = start(owner("machine", parts).shutdown(Duration::from_millis(2_500))).await;
    journal.taken();
    let began = Instant::now();
    app.stop("enough").await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(2_500));
    assert_eq!(journal.taken(), ["stop d", "stop c"]);
}

#[tokio::test(start_paused = true)]
async fn ordered_own_children_are_aborted_if_the_child_panics() {
    let journal = Journal::default();
    let parts = parts(Strategy::OneForAll, &["a", "b"], &journal);
    let app = start(machine(parts, Some(|| panic!("boom")), &journal)).await;
    journal.taken();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(journal.taken(), ["returned"], "none of them is stopped in order");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(journal.taken(), ["start a", "start b"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_ordered_own_children_below_the_child() {
    let journal = Journal::default();
    let inner = parts(Strategy::OneForAll, &["x"], &journal);
    let parts = parts(Strategy::RestForOne, &["a"], &journal)
        .child(inner)
        .child(DynamicSupervisor::builder("conns"));
    let app = start(machine(parts, None, &journal)).await;
    let conn = worker("conn", async |ctx: Context| ctx.cancelled().await);
    app.supervisor("machine/conns").await.unwrap().start_child(conn).await.unwrap();
    insta::assert_snapshot!(app.status().await.unwrap(), @r"
    app  one_for_one 12 in 5m for each  active  up 0s  6 children
    └─ machine             rest_for_one active       up 0s  12 in 6m for each
       ├─ a                permanent    active       up 0s
       ├─ parts            one_for_all  active       up 0s  12 in 5m for each
       │  └─ x             permanent    active       up 0s
       └─ conns            dynamic      active       up 0s  12 in 5m for each
          └─ conn#1        permanent    active       up 0s
    ");
    assert_eq!(app.child("machine/parts/x").await.unwrap().incarnation(), Some(1));
    let seen = app.supervisor("app/machine").await.unwrap().children().await.unwrap();
    let seen: Vec<_> = seen.iter().map(|child| child.path.as_str()).collect();
    assert_eq!(seen, ["app/machine/a", "app/machine/parts", "app/machine/conns"]);
    app.stop("enough").await.unwrap();
}

/// Starts a child that does nothing else than to pass its context to the test.
async fn idle() -> (SupervisorHandle, Context) {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let owner = worker("owner", move |ctx: Context| {
        pass.send(ctx.clone()).unwrap();
        async move { ctx.cancelled().await }
    });
    let app = start(owner).await;
    (app, passed.recv().await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_second_description_of_own_children_is_refused() {
    let (app, ctx) = idle().await;
    let journal = Journal::default();
    let first = ctx.children_with(parts(Strategy::OneForAll, &["a"], &journal)).unwrap();
    assert_eq!(first.path().as_str(), "app/owner");

    let refused = ctx.children_with(DynamicSupervisor::builder("others")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`app/owner` already has children of its own; use `children()`, or describe all of them in the \
         first call of `children_with`",
    );
    assert!(matches!(refused, ControlError::HasChildren { .. }), "{refused}");
    let seen = ctx.children().children().await.unwrap();
    assert_eq!(seen[0].path.as_str(), "app/owner/a", "`children` returns the first supervisor");

    ctx.children().stop("to describe others").await.unwrap();
    settle().await;
    let others = ctx.children_with(DynamicSupervisor::builder("others")).unwrap();
    others.start_child(part("b", &journal)).await.unwrap();
    assert_eq!(app.which_child("owner/b#1").await.unwrap().lifecycle, Lifecycle::Active);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_can_not_be_described_once_the_default_ones_were_started() {
    let (app, ctx) = idle().await;
    ctx.children().start_child(part("a", &Journal::default())).await.unwrap();
    let refused = ctx.children_with(Supervisor::builder("parts")).unwrap_err();
    assert!(matches!(refused, ControlError::HasChildren { .. }), "{refused}");
    assert_eq!(ctx.children().otp().count_children().await.unwrap().specs, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_description_of_own_children_that_is_invalid_is_refused_with_its_path() {
    let (app, ctx) = idle().await;
    let journal = Journal::default();
    let refused = |builder| match ctx.children_with(builder).unwrap_err() {
        ControlError::InvalidSpec(error) => error,
        error => panic!("{error}"),
    };

    let twice = refused(parts(Strategy::OneForAll, &["a", "a"], &journal));
    assert_eq!(
        twice.to_string(),
        "`app/owner` has two children named `a`; give one of them another name"
    );
    let inner = parts(Strategy::OneForAll, &["b"], &journal).restarts(1, Duration::ZERO);
    let inner = refused(Supervisor::builder("own").child(inner));
    assert!(inner.to_string().starts_with("`app/owner/parts` allows 1 restarts"), "{inner}");
    let name = refused(Supervisor::builder("own").child(part("a/b", &journal)));
    assert!(matches!(name, BuildError::BadName { .. }), "{name}");
    assert!(name.to_string().starts_with("`app/owner` has a child with a bad name"), "{name}");
    let name = refused(Supervisor::builder("a/b"));
    assert!(matches!(name, BuildError::BadName { .. }), "{name}");

    let (_, taken) = mailbox::<u32>();
    let other = worker_with_mailbox("other", taken, async |ctx: Context, _| {
        ctx.cancelled().await;
    });
    app.start_child(other.clone()).await.unwrap();
    let shared = refused(Supervisor::builder("own").child(other));
    assert_eq!(
        shared.to_string(),
        "`app/owner/other` uses the mailbox of `app/other`; make one mailbox for each child"
    );

    // What was refused has left nothing.
    assert!(journal.taken().is_empty());
    ctx.children_with(parts(Strategy::OneForAll, &["a"], &journal)).unwrap();
    settle().await;
    assert_eq!(journal.taken(), ["start a"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_children_with_a_preset_escalate_as_below_any_other_supervisor() {
    // At the root, this preset parks what exceeds its limit.
    let journal = Journal::default();
    let parts = parts(Strategy::OneForOne, &["bad"], &journal).preset(Preset::signalpy());
    let app = start(machine(parts, None, &journal).restart(RestartType::Temporary)).await;
    let own = app.supervisor("machine").await.unwrap();
    assert_eq!(own.child_spec("bad").await.unwrap().on_exhausted, OnExhausted::Escalate);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn mailboxes_of_own_children_can_be_used_again_by_the_next_incarnation() {
    let (address, inbox) = mailbox::<u32>();
    let seen = Journal::default();
    let noted = seen.clone();
    let reader = worker_with_mailbox("reader", inbox, move |_: Context, mut inbox: Inbox<u32>| {
        let seen = noted.clone();
        async move {
            while let Some(number) = inbox.recv().await {
                seen.note(format!("{number}"));
            }
        }
    });
    let own = Supervisor::builder("own").child(reader);
    let app = start(owner("owner", own)).await;
    address.send(1).await.unwrap();
    settle().await;
    app.restart("owner").await.unwrap();
    settle().await;
    address.send(2).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(seen.taken(), ["1", "2"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_leak_in_a_nested_supervisor_of_own_children_is_named_and_not_their_owner() {
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let (blocks, mut is_blocked) = mpsc::unbounded_channel();
    let goes_on = Mutex::new(Some((goes_on, blocks)));
    let stuck = verger::once("stuck", async move |_| {
        let (goes_on, blocks) = goes_on.lock().unwrap().take().unwrap();
        blocks.send(()).unwrap();
        _ = goes_on.recv();
    });
    let timeout = Duration::from_secs(30);
    let inner = Supervisor::builder("inner").leak_timeout(timeout).child(stuck);
    let own = Supervisor::builder("own").leak_timeout(timeout).child(inner);
    let app = start(owner("owner", own).shutdown(Duration::from_millis(50))).await;
    is_blocked.recv().await.unwrap();
    let leaked = app.stop("enough").await.unwrap_err();
    let text = leaked.to_string();
    assert!(text.contains("app/owner/inner/stuck") && !text.contains("app/owner`"), "{text}");
    go_on.send(()).unwrap();
}
