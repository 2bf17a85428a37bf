//! `run_time_limit`: how long an incarnation may be active.

use verger::{ChildDefaults, Context, ExitKind, RestartType, Supervisor, worker};

use crate::common::start;
use crate::diary::{eager, millis, secs, sleep};

#[tokio::test(start_paused = true)]
async fn a_child_that_runs_for_too_long_is_cancelled_and_has_failed() {
    let child = worker("a", async |ctx: Context| ctx.cancelled().await);
    let tree = start(eager().child(child.run_time_limit(secs(300)))).await;
    sleep(secs(300) - millis(1)).await;
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
    sleep(millis(1)).await;
    let child = tree.which_child("a").await.unwrap();
    let last = child.last_exit.unwrap();
    assert_eq!((child.incarnation, last.lived), (2, Some(secs(300))));
    assert_eq!(last.reason.to_string(), "ran for longer than 5m");
    assert_eq!((last.reason.exit_kind(), last.reason.kind()), (ExitKind::TimedOut, "timed_out"));
    assert!(!last.reason.is_clean());
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ignores_the_cancellation_is_aborted_after_its_grace() {
    let deaf = worker("a", async |_: Context| std::future::pending::<()>().await);
    let deaf = deaf.run_time_limit(secs(10)).shutdown(secs(7)).restart(RestartType::Temporary);
    let tree = start(eager().child(deaf)).await;
    sleep(secs(17) - millis(1)).await;
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
    sleep(millis(1)).await;
    assert!(tree.which_child("a").await.is_err(), "it is temporary");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_default_limits_workers_and_not_supervisors() {
    let idle = |name: &str| worker(name, async |ctx: Context| ctx.cancelled().await);
    let limit = |child: ChildDefaults| child.run_time_limit(secs(10));
    let pool = Supervisor::builder("pool").child(idle("b"));
    let tree = start(eager().child(idle("a")).child(pool).defaults(limit)).await;
    let of = async |name| tree.child_spec(name).await.unwrap().run_time_limit;
    assert_eq!((of("a").await, of("pool").await, of("pool/b").await), (Some(secs(10)), None, None));
    sleep(secs(10)).await;
    let incarnation = async |name| tree.which_child(name).await.unwrap().incarnation;
    assert_eq!((incarnation("a").await, incarnation("pool").await), (2, 1));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_with_a_limit_of_its_own_is_restarted() {
    let idle = worker("b", async |ctx: Context| ctx.cancelled().await);
    let pool = Supervisor::builder("pool").child(idle).into_child().run_time_limit(secs(10));
    let tree = start(eager().child(pool)).await;
    sleep(secs(10)).await;
    assert_eq!(tree.which_child("pool").await.unwrap().incarnation, 2);
    tree.stop("done").await.unwrap();
}
