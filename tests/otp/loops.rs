//! Children whose restart keeps failing slowly, and the calls that end the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{settle, start};
use crate::journal::{seconds, slow};
use tokio::time::{Instant, sleep};
use verger::{
    Backoff, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Lifecycle, Strategy,
    Supervisor, async_trait, child,
};

/// The duration of each start attempt.
const ATTEMPT: Duration = Duration::from_millis(300);
/// The delay from a failure to the next attempt.
const WAIT: Duration = Duration::from_secs(1);

/// The state that the test shares with all incarnations of a child.
#[derive(Clone, Default)]
struct Loop {
    broken: Arc<AtomicBool>,
    attempts: Arc<AtomicU32>,
    crash: Arc<tokio::sync::Notify>,
    /// Whether a start attempt ends at its cancellation.
    listens: bool,
}

impl Loop {
    fn spec(&self, name: &str) -> ChildSpec {
        let state = self.clone();
        child(name, move || state.clone()).backoff(Backoff::constant(WAIT))
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Begins the loop: ends the child, whose starts fail from then on.
    async fn begin(&self) {
        assert_eq!(self.attempts(), 1);
        self.broken.store(true, Ordering::Relaxed);
        self.crash.notify_one();
        settle().await;
    }

    fn recover(&self) {
        self.broken.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl Child for Loop {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if self.listens {
            ctx.run_until_cancelled(sleep(ATTEMPT)).await;
        } else {
            sleep(ATTEMPT).await;
        }
        if self.broken.load(Ordering::Relaxed) {
            return Err("broken".into());
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        match ctx.run_until_cancelled(self.crash.notified()).await {
            None => Ok(()),
            Some(()) => Err("crashed".into()),
        }
    }
}

/// Between two attempts, and during one.
const MOMENTS: [(Duration, Duration); 2] = [
    (Duration::from_millis(1800), Duration::ZERO),
    (Duration::from_millis(2400), Duration::from_millis(200)),
];

#[tokio::test(start_paused = true)]
async fn otp_76_a_child_in_a_restart_loop_can_be_terminated_and_started_manually_later() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for (moment, takes) in MOMENTS {
            let state = Loop::default();
            let tree =
                start(Supervisor::builder("app").strategy(strategy).child(state.spec("a"))).await;
            state.begin().await;
            sleep(moment).await;
            let attempts = state.attempts();
            assert_eq!(attempts, if takes.is_zero() { 2 } else { 3 }, "{strategy} at {moment:?}");

            let called = Instant::now();
            tree.otp().terminate_child("a").await.unwrap();

            assert_eq!(called.elapsed(), takes, "{strategy} at {moment:?}: what is left of it");
            let stopped = tree.which_child("a").await.unwrap();
            assert_eq!(stopped.lifecycle, Lifecycle::Stopped);
            assert_eq!(stopped.why, Some("stopped manually"));
            sleep(seconds(3600)).await;
            assert_eq!(state.attempts(), attempts, "{strategy} at {moment:?}: it went on");

            state.recover();
            let called = Instant::now();
            tree.otp().restart_child("a").await.unwrap();
            assert_eq!(called.elapsed(), ATTEMPT);
            assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Active);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_77_a_supervisor_with_a_child_in_a_restart_loop_stops_promptly() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for (moment, takes) in MOMENTS {
            for listens in [false, true] {
                let state = Loop { listens, ..Loop::default() };
                let tree =
                    start(Supervisor::builder("app").strategy(strategy).child(state.spec("a")))
                        .await;
                state.begin().await;
                sleep(moment).await;
                let attempts = state.attempts();

                let called = Instant::now();
                tree.stop("enough").await.unwrap();

                let expected = if listens { Duration::ZERO } else { takes };
                assert_eq!(called.elapsed(), expected, "{strategy} at {moment:?}");
                sleep(seconds(3600)).await;
                assert_eq!(state.attempts(), attempts, "{strategy} at {moment:?}: it went on");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_78_under_rest_for_one_children_before_a_restart_loop_run_and_later_ones_are_stopped() {
    let state = Loop::default();
    let builder = Supervisor::builder("app").strategy(Strategy::RestForOne);
    let builder = builder
        .child(slow("first", Duration::ZERO))
        .child(state.spec("middle"))
        .child(slow("last", Duration::ZERO));
    let tree = start(builder).await;
    state.begin().await;
    // The second attempt failed 500 ms ago.
    sleep(MOMENTS[0].0).await;

    let children = tree.otp().which_children().await.unwrap();

    let seen: Vec<_> =
        children.iter().map(|child| (child.path.name(), child.lifecycle, child.why)).collect();
    let expected = [
        ("first", Lifecycle::Active, None),
        ("middle", Lifecycle::Restarting, None),
        ("last", Lifecycle::Stopped, Some("stopped with its group")),
    ];
    assert_eq!(seen, expected);
    let counts = tree.otp().count_children().await.unwrap();
    assert_eq!((counts.specs, counts.active, counts.restarting, counts.workers), (3, 1, 1, 3));
    let next = children[1].next.unwrap();
    assert_eq!((next.attempt, next.remaining), (2, Duration::from_millis(500)));

    state.recover();
    sleep(next.remaining + ATTEMPT).await;
    settle().await;
    let incarnations: Vec<_> = tree
        .otp()
        .which_children()
        .await
        .unwrap()
        .iter()
        .map(|child| (child.lifecycle, child.incarnation))
        .collect();
    let active = Lifecycle::Active;
    assert_eq!(incarnations, [(active, 1), (active, 3), (active, 2)]);
}

#[tokio::test(start_paused = true)]
async fn otp_79_a_dynamic_child_in_a_restart_loop_can_be_terminated_by_its_old_name() {
    for (moment, takes) in MOMENTS {
        let state = Loop::default();
        let tree = DynamicSupervisor::builder("pool").build().unwrap().start().await.unwrap();
        let child = tree.start_child(state.spec("a")).await.unwrap();
        assert_eq!(child.name(), "a#1");
        state.begin().await;
        sleep(moment).await;
        let attempts = state.attempts();

        let called = Instant::now();
        tree.otp().terminate_child("a#1").await.unwrap();

        assert_eq!(called.elapsed(), takes, "at {moment:?}");
        let gone = tree.which_child("a#1").await;
        assert!(matches!(gone, Err(ControlError::NotFound { .. })), "{gone:?}");
        assert_eq!(tree.otp().count_children().await.unwrap().specs, 0);
        sleep(seconds(3600)).await;
        assert_eq!(state.attempts(), attempts, "at {moment:?}: it went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_about_a_child_whose_siblings_are_in_a_restart_loop_is_answered() {
    let state = Loop::default();
    let builder = Supervisor::builder("app").strategy(Strategy::OneForAll).unlimited_restarts();
    let tree = start(builder.child(state.spec("a")).child(slow("b", Duration::ZERO))).await;
    state.begin().await;
    tree.otp().terminate_child("b").await.unwrap();
    let called = Instant::now();

    let (added, again) =
        tokio::join!(tree.start_child(slow("c", Duration::ZERO)), tree.otp().restart_child("b"));

    // At the end of the first attempt, which fails.
    assert_eq!(called.elapsed(), WAIT + ATTEMPT);
    let expected = "`app/c` is about to be restarted; wait, or use `stop_child` first";
    assert_eq!(added.unwrap_err().to_string(), expected);
    assert!(matches!(again, Err(ControlError::Restarting { path }) if path.as_str() == "app/b"));

    state.recover();
    sleep(WAIT + ATTEMPT).await;
    settle().await;
    for name in ["a", "b", "c"] {
        assert_eq!(tree.which_child(name).await.unwrap().lifecycle, Lifecycle::Active, "{name}");
    }
}
