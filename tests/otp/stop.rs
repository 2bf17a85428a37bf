//! How children stop, and how children that don't stop in time are ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{FakeChildren, killed, settle};
use crate::journal::{Journal, ignores_cancellation, seconds, slow};
use tokio::time::{Instant, sleep, sleep_until};
use verger::{
    ChildSpec, DynamicSupervisor, Exit, Lifecycle, RestartType, Shutdown, Strategy, Supervisor,
    SupervisorHandle, worker, worker_with,
};

async fn ordered(children: impl IntoIterator<Item = ChildSpec>) -> SupervisorHandle {
    let builder = Supervisor::builder("app");
    let builder = children.into_iter().fold(builder, |builder, child| builder.child(child));
    builder.build().unwrap().start().await.unwrap()
}

async fn dynamic(children: impl IntoIterator<Item = ChildSpec>) -> SupervisorHandle {
    let tree = DynamicSupervisor::builder("pool").build().unwrap().start().await.unwrap();
    for child in children {
        tree.start_child(child).await.unwrap();
    }
    tree
}

#[tokio::test(start_paused = true)]
async fn otp_68_an_infinite_shutdown_waits_for_worker_and_supervisor() {
    let hour = seconds(3600);
    let below = Supervisor::builder("below").child(slow("deep", seconds(4))).into_child();
    let tree = ordered([
        slow("worker", hour).shutdown(Shutdown::Infinity),
        below.shutdown(Shutdown::Infinity),
    ])
    .await;
    let mut journal = Journal::of(&tree);

    let began = Instant::now();
    tree.stop("enough").await.unwrap();

    assert_eq!(began.elapsed(), hour + seconds(4));
    let stops = ["deep: shut down after 4s", "below: shut down after 4s"];
    assert_eq!(journal.stops(), [stops[0], stops[1], "worker: shut down after 3600s"]);
}

#[tokio::test(start_paused = true)]
async fn otp_69_a_child_that_ignores_its_cancellation_is_aborted_after_its_grace() {
    let tree =
        ordered([slow("good", Duration::ZERO), ignores_cancellation("bad").shutdown(seconds(1))])
            .await;
    let mut journal = Journal::of(&tree);
    let began = Instant::now();
    tree.stop("enough").await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), seconds(1));
    assert_eq!(journal.stops(), ["bad: killed after 1s", "good: shut down after 0ns"]);

    let tree =
        dynamic([slow("good", Duration::ZERO), ignores_cancellation("bad").shutdown(seconds(1))])
            .await;
    let mut journal = Journal::of(&tree);
    let began = Instant::now();
    tree.stop("enough").await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), seconds(1));
    assert_eq!(journal.stops(), ["good#1: shut down after 0ns", "bad#2: killed after 1s"]);
}

/// verger keeps the last quarter of the grace for `deactivate`.
#[tokio::test(start_paused = true)]
async fn otp_69_the_run_of_a_value_is_dropped_in_time_for_deactivate() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("bad");
    let tree = ordered([fakes.child("good"), fakes.child("bad").shutdown(seconds(1))]).await;
    let mut journal = Journal::of(&tree);

    tree.stop("enough").await.or_else(killed).unwrap();

    assert_eq!(journal.stops(), ["bad: killed after 750ms", "good: shut down after 0ns"]);
}

#[tokio::test(start_paused = true)]
async fn otp_70_a_brutal_kill_takes_no_time_and_affects_no_sibling() {
    let brutal = || slow("brutal", seconds(9)).shutdown(Shutdown::BrutalKill);
    let specs = || [slow("a", seconds(1)), brutal(), slow("b", seconds(1))];
    for (tree, name) in [(ordered(specs()).await, "brutal"), (dynamic(specs()).await, "brutal#2")] {
        let mut journal = Journal::of(&tree);
        let began = Instant::now();

        tree.otp().terminate_child(name).await.unwrap();

        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(journal.stops(), [format!("{name}: killed after 0ns")]);
        let siblings = tree.otp().which_children().await.unwrap();
        let active = siblings.iter().filter(|child| child.lifecycle == Lifecycle::Active);
        assert_eq!(active.map(|child| child.incarnation).collect::<Vec<_>>(), [1, 1]);
    }

    let tree = ordered(specs()).await;
    let mut journal = Journal::of(&tree);
    tree.stop("enough").await.unwrap();
    let stops = ["b: shut down after 1s", "brutal: killed after 0ns", "a: shut down after 1s"];
    assert_eq!(journal.stops(), stops);
}

#[derive(Clone, Copy, Debug)]
enum How {
    Normal,
    Error,
    Panic,
    StopSelf,
}

/// A function that ends by itself at an instant, and counts its starts.
fn ends_at(name: String, at: Instant, how: How, starts: &Arc<AtomicU32>) -> ChildSpec {
    let state = (at, how, Arc::clone(starts));
    worker_with(name, state, async |ctx, (at, how, starts)| -> Exit {
        starts.fetch_add(1, Ordering::Relaxed);
        sleep_until(at).await;
        match how {
            How::Normal => Ok(()),
            How::Error => Err("broken".into()),
            How::Panic => panic!("boom"),
            How::StopSelf => {
                ctx.stop_self();
                ctx.cancelled().await;
                Ok(())
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn otp_71_children_that_end_by_themselves_during_a_shutdown_are_not_restarted() {
    let restarts = [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let starts = Arc::new(AtomicU32::new(0));
        let at = Instant::now() + seconds(10);
        let mut builder = Supervisor::builder("app").strategy(strategy);
        builder = builder.child(slow("first", Duration::ZERO));
        let mut expected = Vec::new();
        for how in [How::Normal, How::Error, How::Panic, How::StopSelf] {
            for restart in restarts {
                let name = format!("{how:?}-{restart}").to_lowercase();
                expected.push(match how {
                    How::Normal => format!("{name}: ended normally"),
                    How::Error => format!("{name}: failed: broken"),
                    How::Panic => format!("{name}: panicked: boom"),
                    How::StopSelf => format!("{name}: shut down"),
                });
                builder = builder.child(ends_at(name, at, how, &starts).restart(restart));
            }
        }
        builder = builder.child(slow("last", seconds(2)));
        let tree = builder.build().unwrap().start().await.unwrap();
        let mut journal = Journal::of(&tree);

        sleep_until(at - seconds(1)).await;
        let began = Instant::now();
        tree.stop("enough").await.unwrap();

        assert_eq!(began.elapsed(), seconds(2), "{strategy}");
        assert_eq!(starts.load(Ordering::Relaxed), 12, "{strategy}: none was started again");
        let mut reasons = journal.reasons();
        let last = reasons.split_off(12);
        assert_eq!(last, ["last: shut down", "first: shut down"], "{strategy}");
        reasons.sort();
        expected.sort();
        assert_eq!(reasons, expected, "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_72_dynamic_children_keep_their_exit_reasons() {
    let tree = dynamic([
        worker("normal", async |ctx| {
            ctx.cancelled().await;
        }),
        worker("error", async |ctx| -> Exit {
            ctx.cancelled().await;
            Err("broken".into())
        }),
        worker("panic", async |ctx| -> Exit {
            ctx.cancelled().await;
            panic!("boom");
        }),
        ignores_cancellation("deaf").shutdown(Shutdown::BrutalKill),
    ])
    .await;
    settle().await;
    let mut journal = Journal::of(&tree);

    let began = Instant::now();
    tree.stop("enough").await.unwrap();

    assert_eq!(began.elapsed(), Duration::ZERO);
    let mut reasons = journal.reasons();
    reasons.sort();
    let expected = [
        "deaf#4: killed",
        "error#2: failed: broken",
        "normal#1: shut down",
        "panic#3: panicked: boom",
    ];
    assert_eq!(reasons, expected);
}

#[tokio::test(start_paused = true)]
async fn otp_73_dynamic_children_stop_in_parallel_within_one_grace() {
    let mut children: Vec<_> = (0..10).map(|_| slow("quick", seconds(1))).collect();
    children.push(slow("late", seconds(5)));
    let tree = dynamic(children.into_iter().map(|child| child.shutdown(seconds(2)))).await;
    settle().await;
    let mut journal = Journal::of(&tree);

    let began = Instant::now();
    tree.stop("enough").await.or_else(killed).unwrap();

    assert_eq!(began.elapsed(), seconds(2));
    let mut stops = journal.stops();
    assert_eq!(stops.pop().unwrap(), "late#11: killed after 2s");
    assert_eq!(stops.len(), 10);
    for stop in stops {
        assert!(stop.ends_with(": shut down after 1s"), "{stop}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_74_each_dynamic_child_stops_by_its_own_shutdown_setting() {
    let tree = dynamic([
        ignores_cancellation("brutal").shutdown(Shutdown::BrutalKill),
        ignores_cancellation("short").shutdown(seconds(1)),
        ignores_cancellation("long").shutdown(seconds(3)),
        slow("patient", seconds(9)).shutdown(Shutdown::Infinity),
        slow("brief", seconds(2)).shutdown(seconds(3)),
        ignores_cancellation("shortest").shutdown(Duration::from_millis(500)),
    ])
    .await;
    settle().await;
    let mut journal = Journal::of(&tree);

    let began = Instant::now();
    tree.stop("enough").await.or_else(killed).unwrap();

    assert_eq!(began.elapsed(), seconds(9));
    let expected = [
        "brutal#1: killed after 0ns",
        "shortest#6: killed after 500ms",
        "short#2: killed after 1s",
        "brief#5: shut down after 2s",
        "long#3: killed after 3s",
        "patient#4: shut down after 9s",
    ];
    assert_eq!(journal.stops(), expected);
}

/// There are no links to remove. A child is most detached if its work continues in its own task and
/// it ignores its cancellation.
#[tokio::test(start_paused = true)]
async fn otp_75_a_detached_child_delays_no_call() {
    let detached = worker("detached", async |_ctx| -> Exit {
        let work = tokio::spawn(std::future::pending::<()>());
        Ok(work.await?)
    });
    for (tree, name) in [
        (ordered([detached.clone()]).await, "detached"),
        (dynamic([detached.clone()]).await, "detached#1"),
    ] {
        settle().await;
        let mut journal = Journal::of(&tree);
        let (began, caller) = (Instant::now(), tree.clone());
        let terminated = async move {
            caller.otp().terminate_child(name).await.unwrap();
            began.elapsed()
        };
        let served = async {
            sleep(seconds(1)).await;
            (tree.which_child(name).await.unwrap().lifecycle, began.elapsed())
        };

        let (terminated, served) = tokio::join!(terminated, served);

        assert_eq!(served, (Lifecycle::Deactivating, seconds(1)), "served while it waits");
        assert_eq!(terminated, seconds(5), "the default grace");
        assert_eq!(journal.stops(), [format!("{name}: killed after 5s")]);
        assert_eq!(tree.otp().count_children().await.unwrap().active, 0);
        assert_eq!(began.elapsed(), seconds(5));
    }
}
