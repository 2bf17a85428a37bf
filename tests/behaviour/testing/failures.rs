//! The test kit's messages when a test fails, and their location.

#![cfg(feature = "testing")]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;
use verger::testing::{Expect, TestTree};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Lifecycle, RestartType, Shutdown, Supervisor,
    SupervisorBuilder, worker, worker_with,
};

const SECOND: Duration = Duration::from_secs(1);

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await).backoff(Backoff::constant(SECOND))
}

fn pair() -> SupervisorBuilder {
    Supervisor::builder("app").child(idle("db")).child(idle("api"))
}

/// Returns the text that the future panics with.
async fn failure<T>(future: impl Future<Output = T>) -> String {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(_)) => panic!("it was to fail"),
        Err(panic) => Poll::Ready(match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => panic_any(panic),
        }),
    })
    .await
}

/// The same for a call that isn't async.
fn failure_now<T>(call: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { panic!("it was to fail") };
    *panic.downcast::<String>().expect("a text")
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_reached_fails_with_the_tree_and_the_events() {
    let tree = TestTree::start(pair()).await;
    tree.kill("db").await;
    let began = Instant::now();

    let text = failure(tree.wait_for("db", Lifecycle::Stopped)).await;

    assert_eq!(began.elapsed(), Duration::from_secs(3600));
    let status = tree.handle().status().await.unwrap().to_string();
    let expected = "\
`app/db` did not become stopped, it is active: it did not happen within 3600s
the tree:
STATUS
what has happened:
       0ns  db: discovered -> resolved
       0ns  db: resolved -> activating
       0ns  db: activating -> active
       0ns  api: discovered -> resolved
       0ns  api: resolved -> activating
       0ns  api: activating -> active
       0ns  db: active -> errored (aborted)
       0ns  db: errored -> restarting
        1s  db: restarting -> resolved
        1s  db: resolved -> activating
        1s  db: activating -> active";
    assert_eq!(text, expected.replace("STATUS", status.trim_end()));
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_test_can_be_set() {
    let tree = TestTree::start(pair()).await.patience(2 * SECOND);
    let began = Instant::now();

    let text = failure(tree.wait_for("missing", Lifecycle::Active)).await;

    assert_eq!(began.elapsed(), 2 * SECOND);
    let first = text.lines().next();
    let expected = "`app/missing` did not become active, there is no `app/missing`: it did not \
                    happen within 2s";
    assert_eq!(first, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_tree_ends_an_expectation() {
    let tree = TestTree::start(pair().restarts(0, SECOND)).await;
    let began = Instant::now();
    tree.kill("db").await;

    let text = failure(tree.wait_for("db", Lifecycle::Active)).await;
    let expected = "`app/db` did not become active, it is stopped: the tree has ended: `app` gave \
                    up on `app/db`: aborted\n";
    assert!(text.starts_with(expected), "{text}");

    let text = failure(tree.expect(["db: -> active"])).await;
    let expected = "\
expected, in this order:
  ✗ db: -> active
but the tree has ended: `app` gave up on `app/db`: aborted
in the start it did, which `TestTree::start` skips; to expect it, use `TestTree::spawn` and `up`:
       0ns  db: discovered -> resolved
       0ns  db: resolved -> activating
       0ns  db: activating -> active
       0ns  api: discovered -> resolved
       0ns  api: resolved -> activating
       0ns  api: activating -> active
since the last event that was expected before:
       0ns  db: active -> errored (aborted)
       0ns  db: gave up (aborted)
       0ns  db: errored -> stopped
       0ns  api: active -> deactivating
       0ns  api: deactivating -> stopped (shutdown)";
    assert_eq!(text, expected);

    let text = failure(tree.stop()).await;
    assert_eq!(text, "`app` did not end well: `app` gave up on `app/db`: aborted");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_events_that_matched_an_expectation_are_marked() {
    let tree = TestTree::start(pair()).await;
    tree.kill("db").await;

    let text = failure(tree.expect(["db: active -> errored (aborted)", "api: -> errored"])).await;
    let expected = "\
expected, in this order:
  ✓ db: active -> errored (aborted)
  ✗ api: -> errored
but it did not happen within 3600s
since the last event that was expected before:
       0ns  db: active -> errored (aborted)
       0ns  db: errored -> restarting
        1s  db: restarting -> resolved
        1s  db: resolved -> activating
        1s  db: activating -> active";
    assert_eq!(text, expected);

    let began = Instant::now();
    let text = failure(tree.expect_exactly(["db: -> errored", "db: -> resolved"])).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "it can't come true any more");
    let expected = "\
expected, and nothing else:
  ✓ db: -> errored
  ✗ db: -> resolved
but this happened: db: errored -> restarting
";
    assert!(text.starts_with(expected), "{text}");
    tree.expect_exactly(["db: -> errored"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_differs_only_in_its_reason_does_not_match() {
    let tree = TestTree::start(pair()).await;
    tree.kill("db").await;

    let text = failure(tree.expect_exactly(["db: active -> errored (panicked)"])).await;

    assert!(text.contains("but this happened: db: active -> errored (aborted)\n"), "{text}");
    let text = failure(tree.expect([Expect::removed("db").because("aborted")])).await;
    assert!(text.contains("✗ db: removed (aborted)\n"), "{text}");
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_impossible_expectation_fails_at_once() {
    let tree = TestTree::start(pair()).await;
    let began = Instant::now();

    let text = failure(tree.expect(["db: active -> restarting"])).await;
    let expected = "`db: active -> restarting` can't happen: from `active` there is no step to \
                    `restarting`, only to `errored`, `deactivating`";
    assert_eq!(text, expected);
    let text = failure(tree.expect(["db: active -> errored (panic)"])).await;
    let expected = "`db: active -> errored (panic)` can't happen: no incarnation ends as `panic`, only as \
                    `normal`, `shutdown`, ";
    assert!(text.starts_with(expected), "{text}");

    for unreadable in [
        "db",
        "db: ",
        "db:active -> errored",
        "db: actve -> errored",
        "db: lost",
        ": removed",
        "db: -> active errored)",
        "db: active -> errored -> stopped",
        "",
    ] {
        let text = failure(tree.expect_exactly([unreadable])).await;
        let expected = format!(
            "`{unreadable}` can't be read; write `db: active -> errored`, `db: -> active`, `db: \
             active -> errored (failed)`, or `db: ` and one of `gave up`, `fell back`, `paused`, \
             `unhealthy`, `healthy`, `standby`, `lease granted`, `lease lost`, `leaked`, `leak ended`, `deactivate failed`, `removed`, `called`; the \
             states are `discovered`, `resolved`, `activating`, `active`, `errored`, \
             `restarting`, `deactivating`, `stopped`"
        );
        assert_eq!(text, expected);
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    tree.stop().await;
}

#[test]
fn an_expectation_is_read_as_it_is_written() {
    let (active, errored) = (Lifecycle::Active, Lifecycle::Errored);
    let table = [
        ("db: active -> errored", Expect::edge("db", active, errored)),
        ("a/b#1: active -> errored (hung)", Expect::edge("a/b#1", active, errored).because("hung")),
        ("on: the air: -> active", Expect::entered("on: the air", active)),
        ("db: gave up (failed)", Expect::gave_up("db").because("failed")),
        ("db: unhealthy", Expect::unhealthy("db")),
        ("db: healthy", Expect::healthy("db")),
        ("db: fell back (failed)", Expect::fell_back("db").because("failed")),
        ("db: paused", Expect::paused("db")),
        ("db: leaked", Expect::leaked("db")),
        ("db: leak ended", Expect::leak_ended("db")),
        ("db: deactivate failed (panicked)", Expect::deactivate_failed("db").because("panicked")),
        ("db: removed", Expect::removed("db")),
    ];
    for (text, expected) in table {
        assert_eq!(expected.to_string(), text);
        assert_eq!(Expect::from(text), expected);
        assert_eq!(Expect::from(text.to_owned()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_not_running_can_neither_be_killed_nor_hang() {
    let tree = TestTree::start(pair().child(idle("job").restart(RestartType::Temporary))).await;
    tree.handle().stop_child("db").await.unwrap();
    tree.kill("job").await;

    let table = [
        ("db", "it isn't running", "it is stopped (shut down)"),
        ("job", "there is no `app/job`", "there is no such child any more"),
        ("missing", "there is no `app/missing`", "there is no such child"),
    ];
    for (path, kill, hang) in table {
        let text = failure(tree.kill(path)).await;
        assert_eq!(text, format!("can't kill `app/{path}`: {kill}"));
        let text = failure_now(|| tree.hang(path));
        assert_eq!(text, format!("`app/{path}` can't hang: {hang}"));
    }

    let malformed = "`a//b` does not name a child; write a name such as `db`, or `ingest/mqtt`";
    assert_eq!(failure(tree.kill("a//b")).await, malformed);
    assert_eq!(failure(tree.wait_for("a//b", Lifecycle::Active)).await, malformed);
    assert_eq!(failure_now(|| tree.hang("a//b")), malformed);
    assert_eq!(failure_now(|| tree.fail_next_start("a//b", "no")), malformed);
    assert_eq!(failure_now(|| tree.hang_next_start("a//b")), malformed);
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_endless_restart_loop_does_not_stop_the_paused_clock_for_ever() {
    let flaky = worker("flaky", async |_| Err::<(), _>("no")).backoff(Backoff::none());
    let tree = TestTree::spawn(Supervisor::builder("app").unlimited_restarts().child(flaky));

    let text = failure(tree.expect(["flaky: removed"])).await;

    let expected = "but the clock stands still: a child restarts forever, without a backoff \
                    and without a limit\n";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_unused_fault_fails_the_test() {
    let tree = TestTree::start(pair()).await;
    tree.fail_next_start("bd", "no");
    tree.hang_next_start("bd");

    let text = failure(tree.stop()).await;

    let expected =
        "`app/bd` has 2 start fault(s) left: there is no such child; did you mean `app/db`?";
    assert_eq!(text, expected);
    assert_eq!(failure(tree.ended()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_fault_for_a_child_that_is_not_started_again_says_how_often_it_was() {
    let conns = DynamicSupervisor::builder("conns");
    let tree = TestTree::start(Supervisor::builder("app").child(conns)).await;
    let conns = tree.handle().supervisor("conns").await.unwrap();
    for _ in 0..2 {
        conns.start_child(idle("conn")).await.unwrap();
    }
    tree.fail_next_start("conns/conn", "no");
    let text = failure(tree.stop()).await;
    let left = "`app/conns/conn` has 1 start fault(s) left: ";
    let why = "it was started 2 times, and not again after the fault was set";
    assert_eq!(text, format!("{left}{why}"));
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_can_not_be_built_or_started_says_why() {
    let twice = "`app` has two children named `db`; give one of them another name";
    assert_eq!(failure(TestTree::start(pair().child(idle("db")))).await, twice);
    assert_eq!(failure_now(|| TestTree::spawn(pair().child(idle("db")))), twice);

    let slow = idle("slow").readiness(verger::Readiness::Signal);
    let fails = pair().child(slow.clone()).first_start(verger::policy::FirstStart::Fail);
    let tree = TestTree::spawn(fails);
    tree.fail_next_start("slow", "no route");
    let text = failure(tree.up()).await;
    assert_eq!(text, "`app/slow` could not be started: activation failed: no route");

    let text = failure(TestTree::start(pair().child(slow))).await;
    assert!(text.starts_with("`app` did not come up within 3600s\nthe tree:\n"), "{text}");
    assert!(text.ends_with("  slow: resolved -> activating"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_does_not_end_fails_with_the_remaining_children() {
    let tree = TestTree::start(pair().child(idle("job").shutdown(Shutdown::Infinity))).await;
    let text = failure(tree.ended()).await;
    assert!(text.starts_with("`app` did not end within 3600s\nthe tree:\n"), "{text}");

    tree.hang("job");
    let text = failure(tree.stop()).await;

    let expected = "`app` did not stop within 3600s, but these are still running:\n  api \
                    (incarnation 1)\n  db (incarnation 1)\n  job (incarnation 1, hangs)";
    assert_eq!(text, expected);
    drop(tree);
}

/// A supervisor that hangs can't be aborted in order. It counts as leaked once its own leak timeout
/// and that of its parent have passed.
#[tokio::test(start_paused = true)]
async fn a_leak_at_the_end_fails_the_test() {
    let ingest = Supervisor::builder("ingest").leak_timeout(4 * SECOND).child(idle("mqtt"));
    let ingest = ingest.into_child().shutdown(3 * SECOND);
    let app = Supervisor::builder("app").leak_timeout(2 * SECOND).child(ingest).child(idle("db"));

    let tree = TestTree::start(app.clone()).await;
    tree.hang("ingest");
    let began = Instant::now();
    let text = failure(tree.stop()).await;
    let expected = "`app` did not end well: stopped, but still running after they were aborted: \
                    `app/ingest`";
    assert_eq!(text, expected);
    assert_eq!(began.elapsed(), 9 * SECOND);

    let tree = TestTree::start(app).await;
    tree.hang("ingest");
    tree.handle().stop_child("ingest").await.unwrap();
    tree.expect(["ingest: leaked", "ingest: leak ended"]).await;
    tree.stop().await;
}

/// Uses real time, because a blocked thread also stops the paused clock. The leak timeout of a
/// millisecond is the only timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_blocks_its_thread_is_reported_as_leaked() {
    for gives_up in [false, true] {
        let (blocks, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let state = (blocks, Arc::new(Mutex::new(released)));
        let stuck = worker_with("stuck", state, async |_ctx, (blocks, released)| {
            blocks.send(()).unwrap();
            let _ = released.lock().unwrap().recv();
        });
        let app = Supervisor::builder("app")
            .restarts(0, SECOND)
            .leak_timeout(Duration::from_millis(1))
            .child(stuck.shutdown(Shutdown::BrutalKill))
            .child(idle("db"));
        let tree = TestTree::start(app).await;
        tokio::task::block_in_place(|| blocked.recv().unwrap());

        if gives_up {
            tree.kill("db").await;
            let text = failure(tree.ended()).await;
            let expected = "`app` has ended, but these are still running:\n  stuck (incarnation 1)";
            assert_eq!(text, expected);
        } else {
            let text = failure(tree.stop()).await;
            let expected = "`app` did not end well: stopped, but still running after they were \
                            aborted: `app/stuck`";
            assert_eq!(text, expected);
            assert!(tree.ended().await.is_err(), "an end with a leak is an answer");
        }
        drop(release);
    }
}

thread_local! {
    static LINE: Cell<u32> = const { Cell::new(0) };
}

#[tokio::test(start_paused = true)]
async fn a_failure_points_to_the_line_of_the_test() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let here = panic.location().filter(|location| location.file() == file!());
        LINE.set(here.map_or(0, |location| location.line()));
        hook(panic);
    }));
    let tree = TestTree::start(pair()).await;

    let awaited = async {
        let expectation = tree.expect(["db: removed"]);
        expectation.await
    };
    let line = line!() - 2;
    failure(awaited).await;
    assert_eq!(LINE.replace(0), line);

    failure_now(|| tree.hang("missing"));
    assert_eq!(LINE.replace(0), line!() - 1);

    tree.stop().await;
}
