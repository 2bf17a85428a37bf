use std::sync::{Arc, mpsc};

use tokio::sync::Semaphore;

use super::*;
use crate::child::Context;
use crate::child::incarnation::orphan;
use crate::policy::AutoShutdown;
use crate::status::ChildInfo;
use crate::{
    Exit, Readiness, RestartType, Supervisor, SupervisorBuilder, SupervisorHandle, blocking, local,
    worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// An incarnation that no supervisor has started, of a tree that is measured.
fn measured() -> Arc<Incarnation> {
    let incarnation = orphan::incarnation(1);
    incarnation.parent.tree.busy.users.fetch_add(1, Ordering::Relaxed);
    incarnation
}

/// Rule: a poll counts once, with the wall time from its begin to its return.
#[test]
fn the_times_of_polls_are_added_and_the_longest_is_kept() {
    let incarnation = measured();
    assert_eq!(incarnation.busy(), Some(BusyTime::default()));
    let (first, before) = (clock::real(), clock::now());
    for began in [2, 7, 3] {
        drop(TimedPoll::new(&incarnation, first.checked_sub(secs(began)).unwrap()));
    }
    let elapsed = first.elapsed();
    let busy = incarnation.busy().unwrap();
    assert_eq!((busy.polls, busy.polling), (3, None));
    assert!(busy.total >= secs(12) && busy.total <= secs(12) + 3 * elapsed, "{busy:?}");
    assert!(busy.longest >= secs(7) && busy.longest <= secs(7) + elapsed, "{busy:?}");
    let wall_clock = |at| incarnation.parent.tree.wall_clock(at);
    let noted = wall_clock(before)..=wall_clock(clock::now());
    assert!(noted.contains(&busy.long_at.unwrap()), "{busy:?}, not in {noted:?}");
}

/// Rule: a poll of less than a second isn't a long one.
#[test]
fn the_end_of_a_short_poll_is_not_noted() {
    let incarnation = measured();
    drop(TimedPoll::new(&incarnation, clock::real()));
    let busy = incarnation.busy().unwrap();
    assert_eq!((busy.polls, busy.long_at), (1, None));
    assert!(busy.total == busy.longest && busy.total > Duration::ZERO, "{busy:?}");
}

/// Rule: of the polls that run at the same time, the one that lasts longest is shown. The fifth isn't known until it returns.
#[test]
fn polls_that_run_at_the_same_time_are_known_but_the_fifth() {
    let incarnation = measured();
    let now = clock::real();
    let begin = |ago| TimedPoll::new(&incarnation, now.checked_sub(secs(ago)).unwrap()).unwrap();
    let lasts = || incarnation.busy().unwrap().polling.map(|polling| polling.as_secs() / 10 * 10);
    // Before all others: what instants are measured from.
    drop(begin(100));
    let (first, second, third, fourth) = (begin(20), begin(50), begin(10), begin(30));
    let fifth = begin(80);
    assert_eq!(lasts(), Some(50));
    drop(second);
    assert_eq!(lasts(), Some(30));
    // In the place of the second one.
    let sixth = begin(70);
    assert_eq!(lasts(), Some(70));
    drop((first, third, fourth, sixth));
    assert_eq!((lasts(), incarnation.busy().unwrap().polls), (None, 6));
    drop(fifth);
    let busy = incarnation.busy().unwrap();
    assert_eq!((busy.polling, busy.polls, busy.longest.as_secs() / 10), (None, 7, 10));
}

/// Takes a permit in each poll but the first.
async fn take_all(permits: Arc<Semaphore>) {
    loop {
        permits.acquire().await.unwrap().forget();
    }
}

/// Starts a tree with one worker `child`, which is polled again for each permit.
async fn start(builder: SupervisorBuilder) -> (SupervisorHandle, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let taken = Arc::clone(&permits);
    let child = worker("child", move |_ctx: Context| take_all(Arc::clone(&taken)));
    let app = builder.child(child).build().unwrap().start().await.unwrap();
    (app, permits)
}

/// Wakes the child, which is polled before this returns.
async fn wake(permits: &Semaphore) {
    permits.add_permits(1);
    tokio::task::yield_now().await;
    assert_eq!(permits.available_permits(), 0);
}

async fn polls(app: &SupervisorHandle) -> Option<u64> {
    busy(app, "child").await.map(|busy| busy.polls)
}

async fn busy(app: &SupervisorHandle, child: &str) -> Option<BusyTime> {
    let ChildInfo { busy, .. } = app.which_child(child).await.unwrap();
    busy.map(|busy| *busy)
}

/// Rule: the root sets whether its tree is measured. A supervisor has no busy time.
#[tokio::test]
async fn each_poll_of_a_worker_is_counted_and_none_of_a_supervisor() {
    let below = Supervisor::builder("below").busy_time(false);
    let builder = Supervisor::builder("app").busy_time(true).child(below);
    let (app, permits) = start(builder).await;
    assert_eq!(polls(&app).await, Some(1));
    for count in 2..5 {
        wake(&permits).await;
        assert_eq!(polls(&app).await, Some(count));
    }
    assert_eq!(busy(&app, "below").await, None);
    app.stop_child("child").await.unwrap();
    assert_eq!(polls(&app).await, None);
    app.restart("child").await.unwrap();
    assert_eq!(polls(&app).await, Some(1), "of the next incarnation");
}

/// Rule: without a setting, a tree is measured while something shows the times, and otherwise not.
#[cfg(feature = "console")]
#[tokio::test]
async fn a_tree_is_measured_while_something_shows_the_times() {
    let (app, permits) = start(Supervisor::builder("app")).await;
    assert_eq!(polls(&app).await, None);
    let (first, second) = (app.measure_busy(), app.measure_busy());
    assert_eq!(polls(&app).await, Some(0));
    wake(&permits).await;
    assert_eq!(polls(&app).await, Some(1));
    drop(first);
    wake(&permits).await;
    assert_eq!(polls(&app).await, Some(2));
    drop(second);
    wake(&permits).await;
    assert_eq!(polls(&app).await, None);
    let again = app.measure_busy();
    wake(&permits).await;
    assert_eq!(polls(&app).await, Some(3), "the poll without a guard isn't counted");
    drop(again);
}

/// Rule: `busy_time(false)` wins over what shows the times.
#[cfg(feature = "console")]
#[tokio::test]
async fn a_root_can_switch_it_off() {
    let (app, permits) = start(Supervisor::builder("app").busy_time(false)).await;
    assert!(app.measure_busy().is_none());
    wake(&permits).await;
    assert_eq!(polls(&app).await, None);
}

/// Rule: the polls of a helper are polls of its child.
#[tokio::test]
async fn the_polls_of_helpers_are_counted() {
    let permits = Arc::new(Semaphore::new(0));
    let taken = Arc::clone(&permits);
    let child = worker("child", move |ctx: Context| {
        let taken = Arc::clone(&taken);
        async move {
            ctx.spawn(take_all(taken));
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").busy_time(true).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(polls(&app).await, Some(2));
    wake(&permits).await;
    assert_eq!(polls(&app).await, Some(3));
}

/// Rule: a poll that blocks its thread is shown while it lasts, and is added when it returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_blocks_is_shown_while_it_lasts_and_added_when_it_returns() {
    let (blocks, blocked) = tokio::sync::oneshot::channel();
    let (release, released) = mpsc::channel();
    let (again, polled_again) = tokio::sync::oneshot::channel();
    let once = std::sync::Mutex::new(Some((blocks, released, again)));
    let child = worker("child", move |ctx: Context| {
        let (blocks, released, again) = once.lock().unwrap().take().unwrap();
        async move {
            tokio::task::yield_now().await;
            blocks.send(clock::real()).unwrap();
            released.recv().unwrap();
            tokio::task::yield_now().await;
            again.send(()).unwrap();
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").busy_time(true).child(child);
    let app = app.build().unwrap().start().await.unwrap();
    let began = blocked.await.unwrap();
    let least = began.elapsed();
    let during = busy(&app, "child").await.unwrap();
    assert!(during.polls == 1 && during.polling.unwrap() >= least, "{during:?}, {least:?}");
    let least = began.elapsed();
    release.send(()).unwrap();
    polled_again.await.unwrap();
    let after = busy(&app, "child").await.unwrap();
    assert!(after.polls >= 2 && after.longest >= least, "{after:?}, {least:?}");
    assert!(after.total >= after.longest, "{after:?}");
}

/// Uses this much CPU time of the thread.
#[cfg(all(unix, any(feature = "console", feature = "metrics")))]
fn burn(time: Duration) {
    let end = thread_time().unwrap() + time;
    while thread_time().unwrap() < end {
        std::hint::spin_loop();
    }
}

/// Rule: a closure that blocks adds its CPU time when it returns, and isn't a poll.
#[cfg(all(unix, any(feature = "console", feature = "metrics")))]
#[tokio::test]
async fn a_closure_adds_the_cpu_time_of_its_thread() {
    const CPU: Duration = Duration::from_millis(20);
    let child = worker("child", async |ctx: Context| -> Exit {
        ctx.spawn_blocking(|| burn(CPU)).await?;
        ctx.ready();
        ctx.cancelled().await;
        Ok(())
    });
    let child = child.readiness(Readiness::Signal);
    let (before, app) = (clock::real(), Supervisor::builder("app").busy_time(true).child(child));
    let app = app.build().unwrap().start().await.unwrap();
    let busy = busy(&app, "child").await.unwrap();
    assert!(busy.total >= CPU && busy.total <= before.elapsed(), "{busy:?}");
    // Of its task, and of the helper that waits for the closure.
    assert_eq!((busy.polls, busy.long_at), (4, None));
}

/// Rule: a `blocking` child adds the CPU time of its thread when it exits. A `local` child has polls, which are measured once.
#[cfg(all(unix, any(feature = "console", feature = "metrics")))]
#[tokio::test]
async fn a_child_with_its_own_thread_is_measured_once() {
    const CPU: Duration = Duration::from_millis(50);
    let (kept, incarnations) = mpsc::channel();
    let also_kept = kept.clone();
    let blocking = blocking("blocking", move |ctx: crate::BlockingContext| {
        kept.send(Arc::clone(&ctx.incarnation)).unwrap();
        burn(CPU);
    });
    let local = local("local", move |ctx: Context| {
        also_kept.send(Arc::clone(&ctx.incarnation)).unwrap();
        async { burn(CPU) }
    });
    for child in [blocking, local] {
        let (before, app) = (clock::real(), Supervisor::builder("app").busy_time(true));
        let child = child.restart(RestartType::Transient).significant();
        let app = app.auto_shutdown(AutoShutdown::AnySignificant).child(child);
        app.build().unwrap().start().await.unwrap().wait().await.unwrap();
        let incarnation = incarnations.try_recv().unwrap();
        let busy = incarnation.busy().unwrap();
        assert!(busy.total >= CPU && busy.total <= before.elapsed(), "{busy:?}");
    }
}

/// A recorder that adds up one counter over all labels.
#[cfg(feature = "metrics")]
#[derive(Clone, Default)]
struct BusySeconds(Arc<AtomicU64>);

#[cfg(feature = "metrics")]
mod recorder {
    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::{Arc, BusySeconds, Ordering};

    impl CounterFn for BusySeconds {
        fn increment(&self, value: u64) {
            self.0.fetch_add(value, Ordering::Relaxed);
        }

        fn absolute(&self, _: u64) {
            unreachable!("counters are incremented");
        }
    }

    impl Recorder for BusySeconds {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            assert_eq!(key.name(), "verger_busy_seconds_total");
            Counter::from_arc(Arc::new(self.clone()))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }
}

/// Rule: a whole second is counted by the poll that completes it, and the rest at the exit, together with the rests of
/// incarnations before.
#[cfg(feature = "metrics")]
#[test]
fn the_metric_has_whole_seconds_and_loses_none() {
    let recorded = BusySeconds::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let seconds = || recorded.0.load(Ordering::Relaxed);
    let poll = |incarnation: &Incarnation| {
        let began = clock::real().checked_sub(Duration::from_millis(700)).unwrap();
        drop(TimedPoll::new(incarnation, began));
    };
    let first = measured();
    poll(&first);
    assert_eq!(seconds(), 0);
    poll(&first);
    assert_eq!(seconds(), 1, "1.4 s");
    first.report_exit(None);
    assert_eq!(seconds(), 1);
    let second = orphan::incarnation_of(&first.parent, 2);
    poll(&second);
    assert_eq!(seconds(), 1);
    second.report_exit(None);
    assert_eq!(seconds(), 2, "2.1 s");
}
