//! When the backoff resets, and which clock measures that.

use std::sync::Arc;

use super::{DAY, Recorder, SECOND, app, fail, ms, pass, secs, seen};
use crate::common::{End, FakeChildren, settle, start};
use tokio::sync::Semaphore;
use verger::policy::{Jitter, OnExhausted, Preset, Reset};
use verger::{Backoff, Context, Lifecycle, RestartType, worker};

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
    let backoff = Backoff::exponential(DAY, 30 * DAY).jitter(Jitter::None).reset_after(365 * DAY);
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    for expected in [1, 2, 4] {
        assert_eq!(fail(&tree, &fakes, "a").await, expected * DAY);
    }
    pass(365 * DAY).await;
    assert_eq!(fail(&tree, &fakes, "a").await, DAY);
    assert!(began.elapsed() < DAY, "a year has passed, and not on the wall");
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
async fn kin_67_after_the_reset_time_the_next_delay_is_the_first_again() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(10), SECOND).jitter(Jitter::None).reset_after(ms(100));
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(10));
    assert_eq!(fail(&tree, &fakes, "a").await, ms(20));
    pass(ms(101)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, ms(10));
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
