//! Supervisors in partitions: which keys reach which of them, and how many there are.

use std::collections::BTreeSet;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::task::{ByHash, PartitionedSupervisor};
use verger::{
    Backoff, Context, ControlError, DynamicSupervisor, Lifecycle, Supervisor, SupervisorHandle,
    worker,
};

use crate::common::settle;

fn partitions(count: usize) -> PartitionedSupervisor {
    PartitionedSupervisor::new("sessions", count, |_| DynamicSupervisor::builder("any"))
}

async fn start(sessions: &PartitionedSupervisor) -> SupervisorHandle {
    Supervisor::builder("app").child(sessions.spec()).build().unwrap().start().await.unwrap()
}

fn session() -> verger::ChildSpec {
    worker("session", async |ctx: Context| ctx.cancelled().await)
}

/// Returns the path of the partition of a key.
async fn path_of(sessions: &PartitionedSupervisor, key: i64) -> String {
    sessions.partition(&key).await.unwrap().path().to_string()
}

#[tokio::test(start_paused = true)]
async fn otp_93_keys_are_spread_over_one_supervisor_per_core() {
    let sessions =
        PartitionedSupervisor::per_core("sessions", |_| DynamicSupervisor::builder("any"));
    let cores = available_parallelism().unwrap().get();
    assert_eq!((sessions.partitions(), sessions.active()), (cores, cores));
    let app = start(&sessions).await;
    let listed = app.supervisor("sessions").await.unwrap().children().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|child| child.path.to_string()).collect();
    let expected: Vec<_> = (0..cores).map(|number| format!("app/sessions/{number}")).collect();
    assert_eq!(listed, expected);

    for key in 0..3 * cores {
        sessions.partition(&key).await.unwrap().start_child(session()).await.unwrap();
    }
    for number in 0..cores {
        let partition = sessions.partition(&number).await.unwrap();
        assert_eq!(partition.otp().count_children().await.unwrap().active, 3, "{number}");
    }
    app.stop("enough").await.unwrap();

    let three = partitions(3);
    let app = start(&three).await;
    for (key, number) in [(0, 0), (1, 1), (2, 2), (3, 0), (-1, 1), (-2, 2), (-3, 0), (i64::MIN, 2)]
    {
        assert_eq!(path_of(&three, key).await, format!("app/sessions/{number}"), "{key}");
    }
    let spread: BTreeSet<_> = {
        let mut paths = BTreeSet::new();
        for number in 0..30 {
            let (name, pair) = (format!("user-{number}"), ("user", number));
            let by_name = three.partition(name.as_str()).await.unwrap().path();
            assert_eq!(three.partition(&name).await.unwrap().path(), by_name);
            let by_pair = three.partition(&ByHash(&pair)).await.unwrap().path();
            assert_eq!(three.partition(&ByHash(&pair)).await.unwrap().path(), by_pair);
            paths.extend([by_name.to_string(), by_pair.to_string()]);
        }
        paths
    };
    assert_eq!(spread.len(), 3);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_94_a_resize_in_any_order_leaves_exactly_so_many_live_partitions() {
    let sessions = partitions(8);
    let app = start(&sessions).await;
    let handle = app.supervisor("sessions").await.unwrap();
    for size in [8, 3, 5, 0, 1, 8, 7, 2, 0, 6, 4, 8] {
        sessions.resize(size).await.unwrap();
        assert_eq!((sessions.partitions(), sessions.active()), (8, size));
        let counts = handle.otp().count_children().await.unwrap();
        assert_eq!((counts.specs, counts.active), (8, u32::try_from(size).unwrap()), "{size}");
        let mut reached = BTreeSet::new();
        for key in 0..100 {
            match sessions.partition(&key).await {
                Ok(partition) => {
                    assert_eq!(partition.otp().count_children().await.unwrap().specs, 0);
                    reached.insert(partition.path().to_string());
                }
                Err(error) => {
                    assert_eq!(size, 0);
                    let text =
                        "`app/sessions` has 0 active partitions of 8; call `resize` with 1 to 8";
                    assert_eq!(error.to_string(), text);
                    let at_once = sessions.try_partition(&key).await.unwrap_err();
                    assert!(matches!(at_once, ControlError::NoPartitions { partitions: 8, .. }));
                }
            }
        }
        assert_eq!(reached.len(), size);
    }
    let error = sessions.resize(9).await.unwrap_err();
    assert!(matches!(error, ControlError::TooManyPartitions { size: 9, partitions: 8, .. }));
    let text = "`app/sessions` can't be resized to 9; it has 8 partitions, so write 0 to 8";
    assert_eq!((error.to_string().as_str(), sessions.active()), (text, 8));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn otp_124_a_lookup_waits_for_a_partition_that_restarts_slowly() {
    let sessions = PartitionedSupervisor::new("sessions", 2, |_| {
        let backoff = Backoff::constant(Duration::from_secs(10));
        DynamicSupervisor::builder("any").into_child().backoff(backoff)
    });
    let app = start(&sessions).await;
    sessions.partition(&1).await.unwrap().start_child(session()).await.unwrap();
    app.kill("sessions/1").await.unwrap();
    let began = Instant::now();

    let error = sessions.try_partition(&1).await.unwrap_err();
    assert!(matches!(error, ControlError::Restarting { .. }), "{error}");
    assert!(error.to_string().starts_with("`app/sessions/1` is about to be restarted"), "{error}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(path_of(&sessions, 0).await, "app/sessions/0", "the other one goes on");
    assert_eq!(began.elapsed(), Duration::ZERO);

    let (first, second) = tokio::join!(sessions.partition(&1), sessions.partition(&3));
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    for partition in [first, second] {
        let partition = partition.unwrap();
        assert_eq!(partition.otp().count_children().await.unwrap().specs, 0);
        let child = partition.start_child(session()).await.unwrap();
        partition.stop_child(child.name()).await.unwrap();
    }
    let child = app.which_child("sessions/1").await.unwrap();
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Active, 2));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lookup_waits_for_the_supervisor_of_the_partitions_and_ends_with_the_tree() {
    let sessions = partitions(2);
    let not_started = sessions.partition(&0).await.unwrap_err();
    let text = "`sessions` has not run yet; add its `spec()` to a tree, and start that before";
    assert_eq!(not_started.to_string(), text);

    let spec = sessions.spec().backoff(Backoff::constant(Duration::from_secs(10)));
    let app = Supervisor::builder("app").child(spec).build().unwrap().start().await.unwrap();
    sessions.resize(1).await.unwrap();
    app.kill("sessions").await.unwrap();
    let began = Instant::now();
    assert!(matches!(sessions.try_partition(&1).await, Err(ControlError::Restarting { .. })));
    let waiting = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.partition(&1).await.map(|partition| partition.path().to_string()) }
    });
    assert_eq!(waiting.await.unwrap().unwrap(), "app/sessions/0", "it was resized to 1 by then");
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    assert_eq!(sessions.active(), 2, "a restart starts all partitions");
    assert_eq!(path_of(&sessions, 1).await, "app/sessions/1");

    app.stop_child("sessions/1").await.unwrap();
    for error in [sessions.partition(&1).await, sessions.try_partition(&1).await] {
        assert!(matches!(error, Err(ControlError::InvalidState { .. })));
    }
    app.kill("sessions").await.unwrap();
    settle().await;
    let waiting = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.partition(&1).await.unwrap_err() }
    });
    sleep(Duration::from_secs(1)).await;
    app.stop("enough").await.unwrap();
    let error = waiting.await.unwrap();
    assert!(matches!(error, ControlError::ShuttingDown { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_waits_follows_a_resize() {
    let sessions = PartitionedSupervisor::new("sessions", 2, |_| {
        let backoff = Backoff::constant(Duration::from_secs(10));
        DynamicSupervisor::builder("any").into_child().backoff(backoff)
    });
    let app = start(&sessions).await;
    app.kill("sessions/1").await.unwrap();
    settle().await;
    let began = Instant::now();
    let (found, resized) = tokio::join!(sessions.partition(&1), async {
        sleep(Duration::from_secs(1)).await;
        sessions.resize(1).await
    });
    resized.unwrap();
    assert_eq!(found.unwrap().path().as_str(), "app/sessions/0");
    assert_eq!(began.elapsed(), Duration::from_secs(1));

    let worker = PartitionedSupervisor::new("wrong", 1, |_| session());
    app.start_child(worker.spec()).await.unwrap();
    let error = worker.partition(&0).await.unwrap_err();
    assert_eq!(error.to_string(), "`app/wrong/0` is not a supervisor");
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lookup_waits_while_a_partition_stops_by_itself() {
    let partition = |_| {
        let slow = verger::worker("slow", async |ctx: verger::Context| {
            ctx.cancelled().await;
            sleep(Duration::from_secs(1)).await;
        });
        let end = verger::worker("end", async |ctx: verger::Context| {
            if ctx.path().as_str() == "app/sessions/0/end" {
                sleep(Duration::from_secs(1)).await;
            }
        });
        let partition = Supervisor::builder("any")
            .auto_shutdown(verger::policy::AutoShutdown::AnySignificant)
            .child(slow)
            .child(end.restart(verger::RestartType::Temporary).significant());
        partition.into_child().backoff(Backoff::constant(Duration::from_secs(1)))
    };
    let sessions = PartitionedSupervisor::new("sessions", 1, partition);
    let app = start(&sessions).await;
    sleep(Duration::from_millis(1_500)).await;
    let began = Instant::now();
    let stopping = sessions.try_partition(&0).await.unwrap_err();
    assert!(matches!(stopping, ControlError::ShuttingDown { .. }), "{stopping}");
    sessions.partition(&0).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(1_500), "it stops for 1 s and waits for 1 s");
    app.stop("enough").await.unwrap();
}

#[test]
#[should_panic(expected = "`sessions` has 0 partitions; write 1 or more, or use `per_core`")]
fn no_partitions_are_refused() {
    drop(partitions(0));
}
