//! A child is found by its name from anywhere, and what is found runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use verger::mailbox::Inbox;
use verger::policy::{FirstStart, OnExhausted, Preset};
use verger::{
    Backoff, ChildRef, Context, ControlError, DynamicSupervisor, Exit, Lifecycle, RestartType,
    Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, worker, worker_with,
    worker_with_mailbox,
};

use crate::common::{End, FakeChildren, NextStart, killed, settle, start};

const SECOND: Duration = Duration::from_secs(1);

/// A root whose children restart after a minute.
fn app() -> SupervisorBuilder {
    named("app")
}

fn named(name: &str) -> SupervisorBuilder {
    let backoff = Backoff::constant(60 * SECOND);
    Supervisor::builder(name).defaults(|child| child.backoff(backoff)).unlimited_restarts()
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

/// Returns the path and the incarnation of a child that was found, or the error.
fn text(found: Result<ChildRef, ControlError>) -> String {
    match found {
        Ok(child) => format!("{}#{}", child.path(), child.incarnation().unwrap()),
        Err(error) => error.to_string(),
    }
}

async fn child(tree: &SupervisorHandle, path: &str) -> String {
    text(tree.child(path).await)
}

async fn try_child(tree: &SupervisorHandle, path: &str) -> String {
    text(tree.try_child(path).await)
}

/// Begins to look for a child, in a task of its own.
async fn seek(tree: &SupervisorHandle, path: &'static str) -> JoinHandle<String> {
    let tree = tree.clone();
    let sought = tokio::spawn(async move { child(&tree, path).await });
    settle().await;
    sought
}

// Paths.

#[tokio::test(start_paused = true)]
async fn a_full_path_works_on_every_handle_of_the_tree_and_in_every_call() {
    let fakes = FakeChildren::new();
    let deep = named("deep").child(fakes.child("a")).child(fakes.child("b"));
    let ingest = named("ingest").child(deep).child(fakes.child("writer"));
    let tree = start(app().child(ingest).child(fakes.child("db"))).await;
    let ingest = tree.supervisor("app/ingest").await.unwrap();
    let deep = ingest.supervisor("app/ingest/deep").await.unwrap();
    assert_eq!(deep.path().as_str(), "app/ingest/deep");

    for handle in [&tree, &ingest, &deep] {
        assert_eq!(handle.which_child("app/db").await.unwrap().path.as_str(), "app/db");
        assert_eq!(child(handle, "app/ingest").await, "app/ingest#1");
        assert_eq!(child(handle, "app/ingest/writer").await, "app/ingest/writer#1");
        assert_eq!(child(handle, "app/ingest/deep/b").await, "app/ingest/deep/b#1");
        let spec = handle.child_spec("app/ingest/deep/a").await.unwrap();
        assert_eq!(spec.name, "a");
    }
    deep.stop_child("app/db").await.unwrap();
    assert_eq!(text(deep.otp().restart_child("app/db").await), "app/db#2");
    assert_eq!(text(ingest.restart("app/db").await), "app/db#3");
    deep.kill("app/ingest/writer").await.unwrap();
    settle().await;
    deep.resume("app/ingest/writer").await.unwrap();
    assert_eq!(child(&tree, "ingest/writer").await, "app/ingest/writer#2");
    assert_eq!(child(&tree, "app").await, "there is no `app/app`", "one name is relative");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_finds_any_other_through_its_parent() {
    let (found, mut answer) = tokio::sync::mpsc::unbounded_channel();
    let seeker = worker_with("seeker", found, async |ctx: Context, found| {
        let paths = ["app/db", "app/ingest/seeker", "seeker"];
        for path in paths {
            found.send(text(ctx.parent().child(path).await)).unwrap();
        }
        ctx.cancelled().await;
    });
    let ingest = named("ingest").child(seeker);
    let tree = start(app().child(worker("db", idle)).child(ingest)).await;
    let mut answers = Vec::new();
    answer.recv_many(&mut answers, 3).await;
    settle().await;
    while let Ok(more) = answer.try_recv() {
        answers.push(more);
    }
    assert_eq!(answers, ["app/db#1", "app/ingest/seeker#1", "app/ingest/seeker#1"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_with_the_name_of_the_root_is_reached_by_its_full_path() {
    let inner = named("app").child(worker("x", idle));
    let tree = start(app().child(inner).child(worker("y", idle))).await;
    assert_eq!(child(&tree, "app").await, "app/app#1");
    assert_eq!(child(&tree, "app/app/x").await, "app/app/x#1");
    assert_eq!(child(&tree, "app/y").await, "app/y#1", "not a child of `app/app`");
    let inner = tree.supervisor("app").await.unwrap();
    assert_eq!(inner.path().as_str(), "app/app");
    assert_eq!(child(&inner, "x").await, "app/app/x#1");
    assert_eq!(child(&inner, "app/y").await, "app/y#1");
    tree.stop("done").await.unwrap();
}

// Waiting.

#[tokio::test(start_paused = true)]
async fn a_child_is_found_once_it_is_active_and_not_before() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error, NextStart::Error]);
    let sub = named("sub").first_start(FirstStart::Retry).child(fakes.child("a"));
    let sub = sub.child(fakes.child("b"));
    let tree = start(app()).await;
    let starting = tokio::spawn({
        let tree = tree.clone();
        async move { text(tree.start_child(sub).await) }
    });
    settle().await;
    for path in ["sub", "sub/a", "sub/b"] {
        let refused = tree.try_child(path).await.unwrap_err();
        assert!(matches!(refused, ControlError::Restarting { .. }), "{refused}");
    }
    let sought =
        [seek(&tree, "sub").await, seek(&tree, "sub/a").await, seek(&tree, "app/sub/b").await];
    tokio::time::sleep(119 * SECOND).await;
    assert!(sought.iter().all(|it| !it.is_finished()), "two starts fail");
    tokio::time::sleep(2 * SECOND).await;
    let expected = ["app/sub#1", "app/sub/a#3", "app/sub/b#1"];
    for (sought, expected) in sought.into_iter().zip(expected) {
        assert_eq!(sought.await.unwrap(), expected);
    }
    assert_eq!(starting.await.unwrap(), "app/sub#1");
    assert_eq!(try_child(&tree, "sub/a").await, "app/sub/a#3");

    fakes.end("a", End::Error).await;
    let restarting = "`app/sub/a` is about to be restarted; wait, or use `stop_child` first";
    assert_eq!(try_child(&tree, "sub/a").await, restarting);
    assert_eq!(child(&tree, "sub/a").await, "app/sub/a#4");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_the_group_restarts() {
    let fakes = FakeChildren::new();
    let tree = app().strategy(Strategy::OneForAll).child(fakes.child("a")).child(fakes.child("b"));
    let tree = start(tree).await;
    fakes.next_starts("a", [NextStart::Error]);
    fakes.end("a", End::Error).await;
    let sought = seek(&tree, "b").await;
    assert_eq!(child(&tree, "a").await, "app/a#3");
    assert_eq!(sought.await.unwrap(), "app/b#2");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_a_supervisor_above_restarts() {
    let fakes = FakeChildren::new();
    let inner = named("inner").child(fakes.child("a"));
    let outer = named("outer").child(inner).child(fakes.child("b"));
    let tree = start(app().child(outer).child(fakes.child("c"))).await;
    let inner = tree.supervisor("outer/inner").await.unwrap();

    tree.kill("outer/inner").await.unwrap();
    settle().await;
    let waits = seek(&tree, "outer/inner/a").await;
    assert_eq!(
        try_child(&tree, "outer/inner/a").await,
        "`app/outer/inner/a` is about to be restarted; wait, or use `stop_child` first",
    );
    tree.kill("outer").await.unwrap();
    settle().await;
    assert!(!waits.is_finished());
    let through_old_handle = seek(&inner, "a").await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(waits.await.unwrap(), "app/outer/inner/a#1");
    assert_eq!(through_old_handle.await.unwrap(), "app/outer/inner/a#1");
    assert_eq!(child(&tree, "outer").await, "app/outer#2");

    // A worker has no children, also while it is down.
    fakes.end("c", End::Error).await;
    let began = tokio::time::Instant::now();
    for call in [child(&tree, "c/x").await, try_child(&tree, "c/x").await] {
        assert_eq!(call, "there is no `app/c/x`");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_child_survives_the_ordered_stop_of_its_supervisor_that_restarts() {
    let fakes = FakeChildren::new();
    let ingest = named("ingest").child(fakes.child("a")).child(fakes.child("b"));
    let tree = start(app().child(ingest)).await;
    fakes.ignore_cancellation("a");
    fakes.end("a", End::Error).await;
    tokio::time::sleep(60 * SECOND).await;

    // `a` ignores its cancellation, so `ingest` stops for a while.
    let restarting = tokio::spawn({
        let tree = tree.clone();
        async move { text(tree.restart("ingest").await) }
    });
    settle().await;
    let ingest = tree.supervisor("ingest").await.unwrap();
    let sought = seek(&tree, "ingest/b").await;
    assert!(!sought.is_finished());
    let own = seek(&ingest, "b").await;
    assert_eq!(
        own.await.unwrap(),
        "`app/ingest` is shutting down",
        "a child would wait for itself"
    );
    assert_eq!(try_child(&tree, "ingest/b").await, "`app/ingest` is shutting down");
    assert_eq!(sought.await.unwrap(), "app/ingest/b#1");
    assert_eq!(restarting.await.unwrap(), "app/ingest#2");
    tree.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_what_it_requires_is_found_once_that_is_up() {
    let fakes = FakeChildren::new();
    let tree = app().child(fakes.child("db")).child(fakes.child("api").requires("db"));
    let tree = start(tree).await;
    tree.stop_child("api").await.unwrap();
    fakes.end("db", End::Error).await;
    let started = tokio::spawn({
        let tree = tree.clone();
        async move { text(tree.otp().restart_child("api").await) }
    });
    settle().await;
    let sought = seek(&tree, "api").await;
    assert!(!sought.is_finished());
    tree.resume("db").await.unwrap();
    assert_eq!(sought.await.unwrap(), "app/api#2");
    assert_eq!(started.await.unwrap(), "app/api#2");

    // Nothing starts it while what it requires stays down.
    tree.stop_child("api").await.unwrap();
    fakes.end("db", End::Error).await;
    let gated = tokio::spawn({
        let tree = tree.clone();
        async move { tree.otp().restart_child("api").await.map(|child| child.is_gated()) }
    });
    settle().await;
    assert!(!gated.is_finished());
    let sought = seek(&tree, "api").await;
    tree.stop_child("db").await.unwrap();
    let blocked = "`app/api` is discovered, so `child` has nothing to do";
    assert_eq!(sought.await.unwrap(), blocked);
    assert_eq!(child(&tree, "api").await, blocked);
    assert!(matches!(gated.await.unwrap(), Ok(true)), "its start waits no longer than the child");
    tree.stop("done").await.unwrap();
}

// Children that stay down.

#[tokio::test(start_paused = true)]
async fn a_child_that_is_down_for_good_is_refused_at_once() {
    let fakes = FakeChildren::new();
    let parked = worker("parked", async |_| -> Exit { Err("no".into()) });
    let sub = named("sub").child(fakes.child("x"));
    let (_, mailbox) = verger::mailbox::<u32>();
    let dormant = worker_with_mailbox(
        "dormant",
        mailbox,
        async |_: Context, mut inbox: Inbox<u32>| {
            while inbox.recv().await.is_some() {}
        },
    );
    let tree = app()
        .child(fakes.child("stopped"))
        .child(fakes.child("finished").restart(RestartType::Transient))
        .child(parked.own_restarts(0, SECOND).on_exhausted(OnExhausted::Park))
        .child(dormant.start_on_message())
        .child(sub);
    let tree = start(tree).await;
    tree.stop_child("stopped").await.unwrap();
    tree.stop_child("sub").await.unwrap();
    fakes.end("finished", End::Normal).await;
    for (path, state) in [
        ("stopped", Lifecycle::Stopped),
        ("finished", Lifecycle::Stopped),
        ("parked", Lifecycle::Errored),
        ("dormant", Lifecycle::Discovered),
        ("sub", Lifecycle::Stopped),
    ] {
        for call in ["child", "try_child"] {
            let found = match call {
                "child" => child(&tree, path).await,
                _ => try_child(&tree, path).await,
            };
            assert_eq!(found, format!("`app/{path}` is {state}, so `{call}` has nothing to do"));
        }
    }
    assert_eq!(
        child(&tree, "sub/x").await,
        "the supervisor of `app/sub/x` is not running; `app` is"
    );
    assert_eq!(
        try_child(&tree, "sub/x").await,
        "the supervisor of `app/sub/x` is not running; `app` is"
    );
    for path in ["", "a//b", "/"] {
        let error = tree.child(path).await.unwrap_err();
        assert!(matches!(error, ControlError::NotAChild { .. }), "{error}");
    }
    tree.stop("done").await.unwrap();
    let ended = "`app` has ended";
    assert_eq!([child(&tree, "stopped").await, try_child(&tree, "sub").await], [ended, ended]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_child_stays_down_or_is_removed_or_its_supervisor_ends() {
    let fakes = FakeChildren::new();
    let begin = || async {
        let sub = named("sub").child(fakes.child("x"));
        let tree = start(app().child(sub).child(fakes.child("b"))).await;
        fakes.end("b", End::Error).await;
        fakes.end("x", End::Error).await;
        let sought = [seek(&tree, "b").await, seek(&tree, "sub/x").await];
        assert!(sought.iter().all(|it| !it.is_finished()));
        (tree, sought)
    };
    let (tree, [b, x]) = begin().await;
    tree.stop_child("b").await.unwrap();
    assert_eq!(b.await.unwrap(), "`app/b` was stopped before it was up");
    tree.stop_child("sub").await.unwrap();
    assert_eq!(x.await.unwrap(), "the supervisor of `app/sub/x` is not running; `app` is");
    tree.stop("done").await.unwrap();

    let (tree, [b, x]) = begin().await;
    tree.stop("done").await.unwrap();
    assert_eq!(b.await.unwrap(), "`app` is shutting down");
    assert_eq!(x.await.unwrap(), "`app` is shutting down");

    let conns = named("conns").child(DynamicSupervisor::builder("conns"));
    let tree = start(conns).await;
    let conns = tree.supervisor("conns").await.unwrap();
    let conn = conns.start_child(fakes.child("conn")).await.unwrap();
    assert_eq!(child(&tree, "conns/conns/conn#1").await, "conns/conns/conn#1#1");
    fakes.end("conn", End::Error).await;
    let sought = seek(&conns, "conn#1").await;
    conns.stop_child(conn.name()).await.unwrap();
    assert_eq!(sought.await.unwrap(), "there is no `conns/conns/conn#1`");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_changes_nothing_about_a_child_that_fails() {
    let outcome = async |seeks: bool| {
        let fakes = FakeChildren::new();
        fakes.next_starts("a", [NextStart::Error]);
        let tree = start(app()).await;
        let sub = Supervisor::builder("sub").preset(Preset::otp());
        let sub = sub.child(fakes.child("b").activation_timeout(SECOND)).child(fakes.child("a"));
        fakes.next_starts("b", [NextStart::Hang]);
        let starting = tokio::spawn({
            let tree = tree.clone();
            async move { text(tree.start_child(sub).await) }
        });
        settle().await;
        let sought = match seeks {
            true => vec![seek(&tree, "sub/a").await, seek(&tree, "sub/b").await],
            false => Vec::new(),
        };
        let started = starting.await.unwrap();
        let mut answers = Vec::new();
        for sought in sought {
            answers.push(sought.await.unwrap());
        }
        tree.stop("done").await.unwrap();
        (started, fakes.log(), answers)
    };
    let (with, without) = (outcome(true).await, outcome(false).await);
    assert_eq!((&with.0, &with.1), (&without.0, &without.1));
    assert_eq!(with.2, ["there is no `app/sub/a`", "there is no `app/sub/b`"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_given_up_are_forgotten() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    for _ in 0..1000 {
        let sought = tree.child("a");
        tokio::time::timeout(Duration::ZERO, sought).await.unwrap_err();
    }
    assert_eq!(child(&tree, "a").await, "app/a#2");
    tree.stop("done").await.unwrap();
}

// Names that are taken, and names that come back.

#[tokio::test(start_paused = true)]
async fn otp_60_a_killed_supervisor_and_a_killed_worker_are_found_again_under_their_names() {
    let fakes = FakeChildren::new();
    let tree =
        start(app().child(named("sub").child(fakes.child("a"))).child(fakes.child("b"))).await;
    for incarnation in 1..=3 {
        assert_eq!(child(&tree, "sub").await, format!("app/sub#{incarnation}"));
        assert_eq!(child(&tree, "b").await, format!("app/b#{incarnation}"));
        tree.kill("sub").await.unwrap();
        tree.kill("b").await.unwrap();
        let [sub, b] = [tree.try_child("sub").await, tree.try_child("b").await];
        assert!(matches!(sub, Err(ControlError::Restarting { .. })), "{sub:?}");
        assert!(matches!(b, Err(ControlError::Restarting { .. })), "{b:?}");
        let next = incarnation + 1;
        assert_eq!(child(&tree, "sub").await, format!("app/sub#{next}"));
        assert_eq!(child(&tree, "b").await, format!("app/b#{next}"));
        assert_eq!(child(&tree, "sub/a").await, "app/sub/a#1", "a child of the new incarnation");
    }
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_123_a_second_supervisor_with_a_taken_name_is_already_started_and_runs_no_child() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(named("sub").child(fakes.child("a")))).await;
    assert_eq!(fakes.log(), ["start a"]);

    let second = named("sub").child(fakes.child("b")).child(fakes.child("c"));
    let error = tree.start_child(second).await.unwrap_err();
    assert!(matches!(error, ControlError::NameTaken { running: true, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "there is already a child `app/sub`, which is running; use `replace_child` to put the new one in its place, or `remove` first"
    );
    settle().await;
    assert_eq!(fakes.log(), [""; 0], "none of its children ran");
    assert_eq!(child(&tree, "sub").await, "app/sub#1");
    assert_eq!(child(&tree, "sub/a").await, "app/sub/a#1");
    assert_eq!(child(&tree, "sub/b").await, "there is no `app/sub/b`");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_is_free_as_soon_as_its_child_is_gone() {
    let fakes = FakeChildren::new();
    let tree = start(app()).await;
    for _ in 0..3 {
        let sub = named("sub").child(fakes.child("a"));
        assert_eq!(text(tree.start_child(sub).await), "app/sub#1");
        assert_eq!(child(&tree, "sub/a").await, "app/sub/a#1");
        tree.stop_child("sub").await.unwrap();
        tree.otp().delete_child("sub").await.unwrap();
        assert_eq!(child(&tree, "sub").await, "there is no `app/sub`");

        let once = fakes.child("once").restart(RestartType::Temporary);
        assert_eq!(text(tree.start_child(once).await), "app/once#1");
        fakes.end("once", End::Error).await;
        assert_eq!(
            child(&tree, "once").await,
            "there is no `app/once` any more; its last exit: failed: once failed"
        );
    }
    tree.stop("done").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_is_killed_5000_times_is_never_found_dead() {
    const KILLS: u32 = 5000;
    // The incarnation that has ended, as far as is known: a child knows that the one before it has.
    let ended = Arc::new(AtomicU32::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let victim = worker_with("victim", Arc::clone(&ended), async |ctx: Context, ended| {
        ended.fetch_max(ctx.incarnation() - 1, Ordering::SeqCst);
        ctx.cancelled().await;
    });
    let inner = Supervisor::builder("inner").unlimited_restarts();
    let inner = inner.defaults(|child| child.backoff(Backoff::none()));
    let tree = start(Supervisor::builder("app").child(inner.child(victim))).await;

    let seekers: Vec<_> = (0..8)
        .map(|number| {
            let (tree, ended, done) = (tree.clone(), Arc::clone(&ended), Arc::clone(&done));
            tokio::spawn(async move {
                let path = if number % 2 == 0 { "inner/victim" } else { "app/inner/victim" };
                let mut found = 0_u32;
                while !done.load(Ordering::SeqCst) {
                    let known = ended.load(Ordering::SeqCst);
                    let child = tree.child(path).await.unwrap().incarnation().unwrap();
                    assert!(child > known, "incarnation {child}, although {known} had ended");
                    found += 1;
                }
                found
            })
        })
        .collect();
    for kill in 1..=KILLS {
        let found = tree.child("inner/victim").await.unwrap().incarnation().unwrap();
        assert_eq!(found, kill);
        tree.kill("inner/victim").await.unwrap();
        ended.fetch_max(kill, Ordering::SeqCst);
    }
    assert_eq!(child(&tree, "inner/victim").await, format!("app/inner/victim#{}", KILLS + 1));
    done.store(true, Ordering::SeqCst);
    for seeker in seekers {
        assert!(seeker.await.unwrap() > 0);
    }
    tree.stop("done").await.unwrap();
}

// Addresses.

#[tokio::test(start_paused = true)]
async fn an_address_is_found_by_name_and_outlives_restarts() {
    let (received, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let (_, mailbox) = verger::mailbox::<u32>();
    let sum = worker_with_mailbox("sum", mailbox, move |ctx: Context, mut inbox: Inbox<u32>| {
        let received = received.clone();
        async move {
            while let Some(number) = inbox.recv().await {
                received.send((ctx.incarnation(), number)).unwrap();
            }
        }
    });
    let ingest = Supervisor::builder("ingest").child(sum.backoff(Backoff::none()));
    let tree = start(app().child(ingest).child(worker("db", idle))).await;
    let ingest = tree.supervisor("ingest").await.unwrap();
    let address = ingest.address::<u32>("app/ingest/sum").await.unwrap();
    address.send(1).await.unwrap();
    assert_eq!(receiver.recv().await, Some((1, 1)));
    tree.kill("ingest/sum").await.unwrap();
    address.send(2).await.unwrap();
    assert_eq!(receiver.recv().await, Some((2, 2)));
    assert_eq!(address.path().unwrap().as_str(), "app/ingest/sum");

    let other = tree.address::<String>("ingest/sum").await.unwrap_err();
    assert!(matches!(other, ControlError::WrongMessageType { .. }));
    assert_eq!(
        other.to_string(),
        "the mailbox of `app/ingest/sum` is for `u32`, not `alloc::string::String`; write \
         `address::<u32>`",
    );
    for path in ["db", "ingest"] {
        let none = tree.address::<u32>(path).await.unwrap_err();
        assert!(matches!(none, ControlError::NoMailbox { .. }));
        let text = format!("`app/{path}` has no mailbox; declare it with `worker_with_mailbox`");
        assert_eq!(none.to_string(), text);
    }
    let gone = tree.address::<u32>("ingest/sun").await.unwrap_err();
    assert_eq!(gone.to_string(), "there is no `app/ingest/sun`; did you mean `app/ingest/sum`?");
    tree.stop("done").await.unwrap();
}

// Names that don't exist.

#[tokio::test(start_paused = true)]
async fn the_error_for_an_unknown_name_lists_the_nearest_ones() {
    let names = ["writer", "reader", "waiter", "write"];
    let ingest = names.iter().fold(named("ingest"), |it, name| it.child(worker(*name, idle)));
    let storage = named("storage").child(worker("journal", idle)).child(worker("db", idle));
    let archive = named("archive").child(worker("journal", idle));
    let tree = app().child(ingest).child(storage).child(archive);
    let tree = start(tree.child(DynamicSupervisor::builder("conns"))).await;
    let ingest = tree.supervisor("ingest").await.unwrap();
    for (path, mean) in [
        ("ingest/raeder", "`app/ingest/reader`"),
        ("app/ingest/wirter", "`app/ingest/writer`, `app/ingest/waiter` or `app/ingest/write`"),
        ("ingset", "`app/ingest`"),
        ("ingset/reader", "`app/ingest/reader`"),
        ("ingset/nothing", "`app/ingest`"),
        ("storage/db2", "`app/storage/db`"),
        // A supervisor is forgotten.
        ("db", "`app/storage/db`"),
        ("journal", "`app/archive/journal` or `app/storage/journal`"),
        ("conns/journal", "`app/archive/journal` or `app/storage/journal`"),
        ("app/ingest/db", "`app/storage/db`"),
    ] {
        let full = format!("app/{}", path.strip_prefix("app/").unwrap_or(path));
        let expected = format!("there is no `{full}`; did you mean {mean}?");
        assert_eq!(child(&tree, path).await, expected);
        assert_eq!(tree.which_child(path).await.unwrap_err().to_string(), expected);
        assert_eq!(ingest.kill(&full).await.unwrap_err().to_string(), expected);
    }
    for path in ["nothing", "ingest/nothing", "conns/conn#1", "ingest/reader/x"] {
        assert_eq!(child(&tree, path).await, format!("there is no `app/{path}`"));
    }
    // A child that was deleted is not meant.
    tree.stop_child("storage/db").await.unwrap();
    tree.otp().delete_child("storage/db").await.unwrap();
    assert_eq!(child(&tree, "storage/db").await, "there is no `app/storage/db`");
    let error = tree.child("ingest/raeder").await.unwrap_err();
    let ControlError::NotFound { path, similar, .. } = error else { panic!("{error}") };
    assert_eq!(path.as_str(), "app/ingest/raeder");
    assert_eq!(similar.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["app/ingest/reader"]);
    tree.stop("done").await.unwrap();
}
