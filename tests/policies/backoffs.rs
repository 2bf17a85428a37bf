//! The backoff of one failing child: the indexes it is asked for, and the delays that follow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use verger::mailbox::{Inbox, Reply};
use verger::policy::{Curve, Intensity, Jitter, OnExhausted, OnExit, Preset, Reset, RestartPolicy};
use verger::resilience::{Retry, RetryError, retry};
use verger::status::{ChildInfo, EventKind};
use verger::{
    Backoff, BuildError, Child, ChildRef, ChildSpec, Context, ControlError, Exit, ExitKind,
    Lifecycle, RestartType, Supervisor, SupervisorBuilder, SupervisorHandle, async_trait, child,
    child_with_mailbox, mailbox, worker,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A curve of one second each that records the indexes it was asked for.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<u32>>>);

impl Recorder {
    fn indexes(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }

    fn backoff(&self) -> Backoff {
        Backoff::custom(self.clone())
    }
}

impl Curve for Recorder {
    fn delay(&self, index: u32) -> Duration {
        self.0.lock().unwrap().push(index);
        SECOND
    }
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").unlimited_restarts()
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Sleeps, and lets every task react that is due.
async fn pass(time: Duration) {
    sleep(time).await;
    settle().await;
}

/// Fails the child, and waits for its delay.
async fn fail(tree: &SupervisorHandle, fakes: &FakeChildren, path: &str) -> Duration {
    let name = path.rsplit('/').next().unwrap_or(path);
    fakes.end(name, End::Error).await;
    let wait = seen(tree, path).await.next.map_or(Duration::ZERO, |next| next.delay);
    pass(wait).await;
    wait
}

#[tokio::test(start_paused = true)]
async fn seed0_2_there_is_never_more_than_one_live_child() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
        assert_eq!(tree.count_children().await.unwrap().active, 0, "while it waits");
        pass(SECOND).await;
        assert_eq!(tree.count_children().await.unwrap().active, 1);
    }
    assert_eq!(
        fakes.log().join(", "),
        "start a, end a, dead a, start a, end a, dead a, start a, end a, dead a, start a"
    );
}

/// A child that counts its constructions, activations and deactivations.
#[derive(Clone, Default)]
struct Counted(Arc<[AtomicU32; 3]>);

impl Counted {
    fn counts(&self) -> [u32; 3] {
        [0, 1, 2].map(|which| self.0[which].load(Ordering::Relaxed))
    }

    fn count(&self, which: usize) {
        self.0[which].fetch_add(1, Ordering::Relaxed);
    }

    fn child(&self) -> ChildSpec {
        let counted = self.clone();
        child("a", move || {
            counted.count(0);
            FailsOnce(counted.clone())
        })
    }
}

struct FailsOnce(Counted);

#[async_trait]
impl Child for FailsOnce {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        self.0.count(1);
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.0.count(2);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_4_a_crash_ends_the_incarnation_and_the_next_is_a_new_value() {
    let counted = Counted::default();
    let tree = start(app().child(counted.child().backoff(Backoff::constant(SECOND)))).await;
    settle().await;
    assert_eq!(counted.counts(), [1, 1, 1], "it was tidied up once, before any wait");
    pass(SECOND).await;
    assert_eq!(counted.counts(), [2, 2, 1], "and is not activated as what it was");
    tree.stop("enough").await.unwrap();
    assert_eq!(counted.counts(), [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn seed0_15_the_factory_is_called_once_for_each_incarnation() {
    let counted = Counted::default();
    let tree = start(app().child(counted.child().backoff(Backoff::none()))).await;
    settle().await;
    assert_eq!(counted.counts()[0], seen(&tree, "a").await.incarnation);
}

#[tokio::test(start_paused = true)]
async fn seed0_6_each_failure_asks_for_the_next_index() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let child = fakes.child("a").backoff(recorder.backoff().reset(Reset::Never));
    let tree = start(app().child(child)).await;
    for _ in 0..3 {
        assert_eq!(fail(&tree, &fakes, "a").await, SECOND);
    }
    assert_eq!(recorder.indexes(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn kin_46_the_first_crash_waits_for_the_first_delay_and_the_second_for_the_next() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let child = fakes.child("a").backoff(recorder.backoff().reset(Reset::Never));
    let tree = start(app().child(child)).await;
    fail(&tree, &fakes, "a").await;
    pass(DAY).await;
    fail(&tree, &fakes, "a").await;
    assert_eq!(recorder.indexes(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn kin_47_a_stable_run_resets_the_backoff() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let child = fakes.child("a").backoff(recorder.backoff().reset_after(secs(5)));
    let tree = start(app().child(child)).await;
    fail(&tree, &fakes, "a").await;
    pass(secs(5)).await;
    fail(&tree, &fakes, "a").await;
    assert_eq!(recorder.indexes(), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn seed0_7_a_failed_start_is_a_failure() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    fakes.next_starts("a", [NextStart::Error, NextStart::Error]);
    let child = fakes.child("a").backoff(recorder.backoff());
    let tree = tokio::spawn(start(app().child(child)));
    pass(secs(2)).await;
    let tree = tree.await.unwrap();
    assert_eq!(recorder.indexes(), [0, 1]);
    assert_eq!(seen(&tree, "a").await.incarnation, 3);
}

#[tokio::test(start_paused = true)]
async fn kin_48_after_two_failed_starts_the_third_incarnation_answers() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    fakes.next_starts("a", [NextStart::Panic, NextStart::Error]);
    let tree = start(app().child(fakes.child("a").backoff(recorder.backoff()))).await;
    assert_eq!(recorder.indexes(), [0, 1]);
    assert_eq!(fakes.actions(), ["try a", "try a", "start a"]);
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
}

/// The name stays the same, and the incarnation number distinguishes runs.
#[tokio::test(start_paused = true)]
async fn seed0_11_incarnations_are_numbered_from_one() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("db").backoff(Backoff::constant(SECOND)))).await;
    let mut events = tree.events();
    for _ in 0..2 {
        fail(&tree, &fakes, "db").await;
    }
    tree.stop("enough").await.unwrap();
    let mut active = Vec::new();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Moved { to: Lifecycle::Active, .. }) {
            active.push(format!("{}-{}", event.path, event.incarnation));
        }
    }
    assert_eq!(active, ["app/db-2", "app/db-3"]);
}

/// A child always has a name, and it can be changed.
#[tokio::test(start_paused = true)]
async fn seed0_16_a_childs_name_is_part_of_its_path() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").named("db"))).await;
    assert_eq!(seen(&tree, "db").await.path.to_string(), "app/db");
    assert!(matches!(tree.which_child("a").await, Err(ControlError::NotFound { .. })));
}

fn refused(backoff: Backoff) -> String {
    let child = worker("db", async |_| {}).backoff(backoff);
    let error = app().child(child).build().unwrap_err();
    assert!(matches!(error, BuildError::BadBackoff { .. }));
    error.to_string()
}

#[test]
fn seed0_17_a_minimum_delay_of_zero_is_refused_with_the_field() {
    let text = refused(Backoff::exponential(Duration::ZERO, SECOND));
    assert!(text.contains("app/db") && text.contains("`min` of the backoff is 0s"), "{text}");
}

#[test]
fn seed0_18_a_maximum_delay_below_the_minimum_is_refused_with_both() {
    let text = refused(Backoff::exponential(secs(2), SECOND));
    assert!(text.contains("`max` of the backoff is 1s"), "{text}");
    assert!(text.contains("at least `min`, which is 2s"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn seed0_19_by_default_jitter_adds_up_to_a_fifth() {
    for (drawn, expected) in [(0.0, 200), (0.5, 220)] {
        let fakes = FakeChildren::new();
        let app = app().random(move || move || drawn).child(fakes.child("a"));
        let tree = start(app).await;
        assert_eq!(fail(&tree, &fakes, "a").await, ms(expected));
    }
    let text = refused(Backoff::default().jitter(1.5));
    assert!(text.contains("`jitter` of the backoff is 1.5"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn seed0_20_a_custom_curve_replaces_the_default() {
    let fakes = FakeChildren::new();
    let linear = Backoff::linear(ms(500), ms(500), ms(1_200));
    let tree = start(app().child(fakes.child("a").backoff(linear))).await;
    for expected in [500, 1_000, 1_200, 1_200] {
        assert_eq!(fail(&tree, &fakes, "a").await, ms(expected));
    }
}

/// The sample of the document: 100, 100, 200, 300, 500, … ms.
struct Fib;

impl Curve for Fib {
    fn delay(&self, index: u32) -> Duration {
        let (mut a, mut b) = (100, 100);
        for _ in 0..index.min(40) {
            (a, b) = (b, a + b);
        }
        ms(a)
    }
}

#[tokio::test(start_paused = true)]
async fn seed1_18_a_custom_curve_of_one_method_works_in_a_supervisor_and_in_a_retry() {
    let fib = Backoff::custom(Fib).cap(ms(500));
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(fib.clone()))).await;
    for expected in [100, 100, 200, 300, 500, 500] {
        assert_eq!(fail(&tree, &fakes, "a").await, ms(expected));
    }

    let began = Instant::now();
    let mut calls = Vec::new();
    let policy = Retry::with(fib).attempts(7);
    let result: Result<(), RetryError<&str>> = retry(policy, || {
        calls.push(began.elapsed());
        std::future::ready(Err("no"))
    })
    .await;
    assert!(matches!(result, Err(RetryError::Failed("no"))), "{result:?}");
    assert_eq!(calls, [0, 100, 200, 400, 700, 1_200, 1_700].map(ms));
}

#[tokio::test(start_paused = true)]
async fn seed1_19_a_custom_curve_plugs_into_a_supervisor() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let tree = start(app().child(fakes.child("a").backoff(recorder.backoff().cap(ms(400))))).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(400));
}

/// The default reset is after the maximum delay, and after ten seconds at least. The preset keeps
/// actor-ts's rule, the minimum delay.
#[tokio::test(start_paused = true)]
async fn seed0_21_by_default_a_run_as_long_as_the_maximum_delay_resets_the_backoff() {
    for (preset, enough) in [(None, secs(30)), (Some(Preset::actor_ts()), ms(200))] {
        let fakes = FakeChildren::new();
        let mut app = app().random(|| || 0.0).child(fakes.child("a"));
        if let Some(preset) = preset {
            app = app.preset(preset);
        }
        let tree = start(app).await;
        let first = fail(&tree, &fakes, "a").await;
        pass(enough - ms(1)).await;
        assert_eq!(fail(&tree, &fakes, "a").await, 2 * first);
        pass(enough).await;
        assert_eq!(fail(&tree, &fakes, "a").await, first);
    }
}

/// The clock is tokio's, which a test can pause; the core reads no clock.
#[tokio::test(start_paused = true)]
async fn seed0_27_the_clock_can_be_replaced() {
    let (fakes, began) = (FakeChildren::new(), std::time::Instant::now());
    let backoff = Backoff::exponential(DAY, 30 * DAY).reset_after(365 * DAY);
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    for expected in [1, 2, 4] {
        assert_eq!(fail(&tree, &fakes, "a").await, expected * DAY);
    }
    pass(365 * DAY).await;
    assert_eq!(fail(&tree, &fakes, "a").await, DAY);
    assert!(began.elapsed() < DAY, "a year has passed, and not on the wall");
}

#[test]
fn seed0_28_a_second_policy_of_a_child_is_refused_with_both_settings() {
    let db = || worker("db", async |_| {}).restarts(3, SECOND);
    let file = RestartPolicy::new().restarts(5, SECOND);
    let twice = worker("db", async |_| {}).consecutive_restarts(2).consecutive_restarts(4);
    let late = worker("db", async |_| {}).failing_for(SECOND).failing_for(DAY);
    for (spec, text) in [
        (db().restarts(5, SECOND), "`restarts(3, 1s)` and `restarts(5, 1s)`"),
        (db().intensity(Intensity::tumbling(5, SECOND)), "`restarts(3, 1s)` and `tumbling(5, 1s)`"),
        (db().policy(file), "`restarts(3, 1s)` and `restarts(5, 1s)`"),
        (twice, "`consecutive_restarts(2)` and `consecutive_restarts(4)`"),
        (late, "`failing_for(1s)` and `failing_for(1day)`"),
    ] {
        let error = app().child(spec).build().unwrap_err();
        let BuildError::SetTwice { path, first, second } = &error else { panic!("{error}") };
        assert_eq!(path.as_str(), "app/db");
        assert_eq!(format!("`{first}` and `{second}`"), text);
    }
}

/// The parent sets the policy of a supervisor as its child, and the supervisor that of its children.
#[tokio::test(start_paused = true)]
async fn seed0_28_a_supervisor_is_supervised_by_its_parent_and_its_child_by_itself() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid")
        .restarts(0, SECOND)
        .defaults(|child| child.backoff(Backoff::none()))
        .child(fakes.child("a"));
    let mid = mid.into_child().restarts(1, DAY).backoff(Backoff::constant(secs(7)));
    let tree = start(app().child(mid.on_exhausted(OnExhausted::Park))).await;
    let (mid, a) = (tree.child_spec("mid").await.unwrap(), tree.child_spec("mid/a").await.unwrap());
    assert_eq!((mid.backoff, a.backoff), (Backoff::constant(secs(7)), Backoff::none()));

    // The limit of `mid` is for its child, and that of the parent for `mid`.
    fakes.end("a", End::Error).await;
    let info = seen(&tree, "mid").await;
    assert_eq!((info.lifecycle, info.next.unwrap().delay), (Lifecycle::Restarting, secs(7)));
    pass(secs(7)).await;
    let info = seen(&tree, "mid").await;
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Active, 2));
    fakes.end("a", End::Error).await;
    assert_eq!(seen(&tree, "mid").await.lifecycle, Lifecycle::Errored);
}

#[tokio::test(start_paused = true)]
async fn seed0_43_a_custom_curve_is_not_capped_and_has_its_own_reset() {
    struct Minute;
    impl Curve for Minute {
        fn delay(&self, _index: u32) -> Duration {
            secs(60)
        }
    }
    let fakes = FakeChildren::new();
    let backoff = Backoff::custom(Minute).reset_after(ms(200));
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    assert_eq!(fail(&tree, &fakes, "a").await, secs(60));
    pass(ms(200)).await;
    assert_eq!(seen(&tree, "a").await.failures, 0, "it has begun again");
}

#[tokio::test(start_paused = true)]
async fn seed4_35_after_a_healthy_run_comes_a_restart_at_once_which_is_the_first_of_the_limit() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restart(RestartType::Transient).consecutive_restarts(3);
    let child = child.on_exhausted(OnExhausted::Park);
    let tree = start(app().preset(Preset::elfo()).random(|| || 0.0).child(child)).await;
    for (life, expected) in [(0, 5), (4_999, 10), (0, 20), (5_000, 0), (0, 5), (4_999, 10)] {
        pass(ms(life)).await;
        assert_eq!(fail(&tree, &fakes, "a").await, secs(expected));
    }
    let child = seen(&tree, "a").await;
    assert_eq!((child.lifecycle, child.failures), (Lifecycle::Active, 3));
    pass(ms(4_999)).await;
    fakes.end("a", End::Error).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Errored, 7));
}

#[tokio::test(start_paused = true)]
async fn seed2_1_limits_count_and_a_backoff_delays() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restarts(2, secs(60)).backoff(Backoff::none());
    let tree = start(app().child(child)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, Duration::ZERO, "a limit alone restarts at once");

    let fakes = FakeChildren::new();
    let child = fakes.child("a").restarts(2, secs(60)).backoff(Backoff::constant(SECOND));
    let tree = start(app().child(child)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, SECOND);
}

#[tokio::test(start_paused = true)]
async fn kin_22_the_status_of_a_crash_loop_matches_the_table_at_each_tick() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(SECOND, secs(10)).reset_after(secs(20) + ms(1));
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    // The child fails as soon as it is up, so it is only seen waiting, except at the ticks of its
    // starts.
    let mut table = Vec::new();
    for tick in 0..=35_u64 {
        let info = seen(&tree, "a").await;
        table.push(info.next.map(|next| next.delay.as_secs()));
        // At its last start, it stays up.
        if info.lifecycle == Lifecycle::Active && tick < 35 {
            fakes.end("a", End::Error).await;
        }
        if tick < 35 {
            pass(SECOND).await;
        }
    }
    let starts = [0, 1, 3, 7, 15, 25, 35];
    let waits = [1, 2, 4, 8, 10, 10];
    for (tick, seen) in table.into_iter().enumerate() {
        let expected = match starts.iter().position(|&start| start >= tick) {
            Some(_) if starts.contains(&tick) => None,
            Some(next) => Some(waits[next - 1]),
            None => unreachable!("the last tick is a start"),
        };
        assert_eq!(seen, expected, "tick {tick}");
    }
    pass(secs(20)).await;
    assert_eq!(seen(&tree, "a").await.failures, 6, "tick 55: not for long enough");
    pass(SECOND).await;
    assert_eq!(seen(&tree, "a").await.failures, 0, "tick 56: more than twice the longest wait");
    assert_eq!(fail(&tree, &fakes, "a").await, SECOND, "tick 57");
}

#[tokio::test(start_paused = true)]
async fn kin_26_the_reported_delay_is_the_actual_delay() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(SECOND).jitter(Jitter::AdditiveAbs(SECOND));
    let app = app().random(|| fastrand_of(26)).child(fakes.child("a").backoff(backoff));
    let tree = start(app).await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        fakes.end("a", End::Error).await;
        let wait = seen(&tree, "a").await.next.unwrap().delay;
        assert!((SECOND..2 * SECOND).contains(&wait), "{wait:?}");
        // tokio's timers have a resolution of a millisecond.
        pass(wait - ms(2)).await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Restarting);
        pass(ms(4)).await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
        waits.push(wait);
    }
    waits.dedup();
    assert!(waits.len() > 1, "{waits:?}");
}

/// A fixed sequence of numbers that look random.
fn fastrand_of(seed: u64) -> impl FnMut() -> f64 + Send {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    }
}

#[tokio::test(start_paused = true)]
async fn kin_49_a_stop_in_a_backoff_cancels_the_start_and_asks_the_backoff_no_more() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let tree = start(app().child(fakes.child("a").backoff(recorder.backoff()))).await;
    fakes.end("a", End::Error).await;
    tree.stop("enough").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start a", "end a"]);
    assert_eq!(recorder.indexes(), [0]);
}

#[tokio::test(start_paused = true)]
async fn kin_80_a_stop_during_the_backoff_succeeds_and_nothing_starts_afterwards() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    fakes.end("a", End::Error).await;
    tree.terminate_child("a").await.unwrap();
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
    pass(DAY).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1);
}

#[tokio::test(start_paused = true)]
async fn kin_55_a_restart_increments_count_and_incarnation() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::none()))).await;
    let before = seen(&tree, "a").await;
    assert_eq!((before.restarts, before.incarnation), (0, 1));
    fakes.end("a", End::Error).await;
    let after = seen(&tree, "a").await;
    assert_eq!((after.restarts, after.incarnation), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn kin_56_a_child_can_report_itself_healthy() {
    let heard = Arc::new(Semaphore::new(0));
    let well = Arc::clone(&heard);
    let run = move |ctx: Context| {
        let well = Arc::clone(&well);
        async move {
            if ctx.incarnation() == 1 {
                return Err("once");
            }
            well.acquire().await.unwrap().forget();
            ctx.report_healthy();
            ctx.cancelled().await;
            Ok(())
        }
    };
    let backoff = Backoff::constant(SECOND).reset(Reset::Manual);
    let tree = start(app().child(worker("a", run).backoff(backoff))).await;
    pass(DAY).await;
    assert_eq!(seen(&tree, "a").await.failures, 1, "time alone changes nothing");
    heard.add_permits(1);
    settle().await;
    assert_eq!(seen(&tree, "a").await.failures, 0);
}

#[tokio::test(start_paused = true)]
async fn kin_60_four_failures_wait_twice_as_long_each_and_incarnations_never_overlap() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(200), secs(10));
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    for expected in [200, 400, 800, 1_600] {
        fakes.end("a", End::Error).await;
        pass(ms(expected - 1)).await;
        assert_eq!(tree.count_children().await.unwrap().active, 0);
        pass(ms(1)).await;
        assert_eq!(tree.count_children().await.unwrap().active, 1);
    }
}

/// A value that answers with its incarnation, and whose end waits for a permit.
struct SlowToEnd {
    inbox: Inbox<Query>,
    ends: Arc<Semaphore>,
}

enum Query {
    Incarnation(Reply<u32>),
    Fail,
}

#[async_trait]
impl Child for SlowToEnd {
    async fn run(&mut self, ctx: &Context) -> Exit {
        while let Some(query) = self.inbox.recv().await {
            match query {
                Query::Incarnation(reply) => reply.send(ctx.incarnation()),
                Query::Fail => return Err("it fails".into()),
            }
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.ends.acquire().await?.forget();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn kin_63_a_failure_is_recorded_when_the_child_has_exited() {
    let ends = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&ends);
    let (address, mailbox) = mailbox();
    let slow = child_with_mailbox("a", mailbox, move |inbox| SlowToEnd {
        inbox,
        ends: Arc::clone(&permits),
    });
    let tree = start(app().child(slow.backoff(Backoff::constant(SECOND)))).await;
    assert_eq!(address.ask(Query::Incarnation).await.unwrap(), 1);

    address.send(Query::Fail).await.unwrap();
    settle().await;
    let asked = tokio::spawn({
        let address = address.clone();
        async move { address.ask(Query::Incarnation).await }
    });
    pass(DAY).await;
    let called = Instant::now();
    let info = seen(&tree, "a").await;
    assert_eq!((info.incarnation, info.restarts, info.failures), (1, 0, 0), "still the old one");
    assert_eq!(tree.status().await.unwrap().root.children.len(), 1);
    assert_eq!(called.elapsed(), Duration::ZERO, "a query doesn't wait for the child");
    assert!(!asked.is_finished(), "the old child answers no more");

    ends.add_permits(1);
    settle().await;
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.failures), (Lifecycle::Restarting, 1));
    assert_eq!(info.next.unwrap().remaining, SECOND, "from the exit, and not from the failure");
    pass(SECOND + ms(50)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    assert_eq!(asked.await.unwrap().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn kin_67_after_the_reset_time_the_next_delay_is_the_first_again() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(10), SECOND).reset_after(ms(100));
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(10));
    assert_eq!(fail(&tree, &fakes, "a").await, ms(20));
    pass(ms(101)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(10));
}

#[tokio::test(start_paused = true)]
async fn kin_68_two_backoffs_keep_separate_state() {
    let fakes = FakeChildren::new();
    let short = Backoff::exponential(ms(10), SECOND).reset_after(ms(50));
    let long = Backoff::exponential(SECOND, secs(60)).reset(Reset::Never);
    let inner = app().child(fakes.child("a").backoff(short.clone())).into_child();
    let outer = Supervisor::builder("outer")
        .unlimited_restarts()
        .child(inner.named("inner").backoff(long.clone()))
        .child(fakes.child("b").backoff(long));
    let tree = start(outer).await;
    assert_eq!(fail(&tree, &fakes, "b").await, SECOND);
    assert_eq!(fail(&tree, &fakes, "inner/a").await, ms(10));
    pass(ms(60)).await;
    assert_eq!(seen(&tree, "inner/a").await.failures, 0);
    assert_eq!(fail(&tree, &fakes, "b").await, secs(2), "the reset of `a` was its own");
}

#[tokio::test(start_paused = true)]
async fn kin_69_typed_pekko_resets_after_the_mean_of_its_delays() {
    let fakes = FakeChildren::new();
    let tree = start(app().preset(Preset::pekko_typed()).random(|| || 0.0).child(fakes.child("a")));
    let tree = tree.await;
    let mean = (ms(200) + secs(10)) / 2;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(200));
    pass(mean - ms(1)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(400));
    pass(mean).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(200));
}

/// A failed start is a failure in all three cases: with a limit, with a backoff, and with neither.
#[tokio::test(start_paused = true)]
async fn kin_70_a_failed_start_is_an_ordinary_failure() {
    let plain = |child: ChildSpec| child.backoff(Backoff::none());
    let limited = |child: ChildSpec| child.backoff(Backoff::none()).restarts(2, secs(60));
    let delayed = |child: ChildSpec| child.backoff(Backoff::constant(SECOND));
    for spec in [plain, limited, delayed] {
        let fakes = FakeChildren::new();
        fakes.next_starts("a", [NextStart::Error, NextStart::Error]);
        let tree = start(app().child(spec(fakes.child("a")))).await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
    }
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error; 3]);
    let error = app().child(limited(fakes.child("a"))).build().unwrap().run().await.unwrap_err();
    assert!(error.to_string().contains("activation failed: no start"), "{error}");
}

/// In pebble, the error also names the next step. Here, the documentation of each call does.
#[tokio::test(start_paused = true)]
async fn kin_81_the_caller_of_a_start_learns_of_the_failure_and_of_the_next_step() {
    let fakes = FakeChildren::new();
    let tree = start(app()).await;
    let failed = |result: Result<ChildRef, ControlError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, ControlError::ActivationFailed { .. }));
        assert_eq!(error.to_string(), "`app/a` failed to start: activation failed: no start");
    };
    // A child that is added is removed.
    fakes.next_starts("a", [NextStart::Error]);
    failed(tree.start_child(fakes.child("a")).await);
    pass(DAY).await;
    let gone = tree.which_child("a").await.unwrap_err();
    assert!(matches!(gone, ControlError::NotFound { .. }), "it is forgotten, and not retried");
    assert_eq!(fakes.actions(), ["try a"]);

    // A stopped child stays stopped.
    tree.start_child(fakes.child("a").backoff(Backoff::constant(SECOND))).await.unwrap();
    tree.terminate_child("a").await.unwrap();
    fakes.next_starts("a", [NextStart::Error]);
    failed(tree.restart_child("a").await);
    pass(DAY).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
    assert_eq!(fakes.actions(), ["start a", "stop a", "try a"]);

    // A running child is restarted by its policy.
    tree.restart_child("a").await.unwrap();
    fakes.next_starts("a", [NextStart::Error]);
    failed(tree.restart("a").await);
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.next.unwrap().remaining), (Lifecycle::Restarting, SECOND));
    pass(SECOND).await;
    assert_eq!(fakes.actions(), ["start a", "stop a", "try a", "start a"]);

    // If its policy ignores the failure, it stays errored.
    let ignores = fakes.child("a").on_exit(ExitKind::ActivationFailed, OnExit::Leave);
    let tree = start(app().child(ignores)).await;
    fakes.next_starts("a", [NextStart::Error]);
    failed(tree.restart("a").await);
    pass(DAY).await;
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.why), (Lifecycle::Errored, Some("not restarted")));
}

#[tokio::test(start_paused = true)]
async fn kin_82_a_stop_while_the_start_is_pending_fails_the_start_and_succeeds_itself() {
    let fakes = FakeChildren::new();
    let tree = start(app()).await;
    fakes.next_starts("a", [NextStart::Hang]);
    let starter = tree.clone();
    let spec = fakes.child("a").restart(RestartType::Permanent);
    let started = tokio::spawn(async move { starter.start_child(spec).await });
    settle().await;
    let stopper = tree.clone();
    let stopped = tokio::spawn(async move { stopper.terminate_child("a").await });
    let error = started.await.unwrap().unwrap_err();
    assert!(matches!(error, ControlError::Stopped { .. }), "{error}");
    stopped.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_84_a_manual_start_cuts_a_delay_of_a_day_short_and_keeps_the_count() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(DAY).reset(Reset::Manual);
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    fakes.end("a", End::Error).await;
    tree.wake("a").await.unwrap();
    settle().await;
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.failures), (Lifecycle::Active, 1));
    pass(2 * DAY).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2, "the day is not waited for any more");
}

#[tokio::test(start_paused = true)]
async fn kin_86_a_child_whose_delayed_start_fails_is_listed_and_retried() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    fakes.next_starts("a", [NextStart::Error]);
    assert_eq!(fail(&tree, &fakes, "a").await, SECOND);
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Restarting, 2));
    pass(SECOND).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn kin_87_a_waiting_child_can_be_stopped_deleted_or_started_manually_once() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(SECOND);
    let tree = start(app().child(fakes.child("a").backoff(backoff.clone()))).await;
    fakes.end("a", End::Error).await;
    tree.terminate_child("a").await.unwrap();
    tree.delete_child("a").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start a", "end a"]);

    tree.start_child(fakes.child("b").backoff(backoff)).await.unwrap();
    fakes.end("b", End::Error).await;
    tree.terminate_child("b").await.unwrap();
    tree.restart_child("b").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start b", "end b", "start b"]);
}
