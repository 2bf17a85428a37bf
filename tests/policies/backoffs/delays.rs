//! The indexes that a backoff is asked for, and the delays that follow.

use std::time::Duration;

use super::{DAY, Recorder, SECOND, app, fail, ms, pass, secs, seen};
use crate::common::{End, FakeChildren, start};
use tokio::time::Instant;
use verger::policy::{Curve, Jitter, Reset};
use verger::resilience::{Retry, RetryError, retry};
use verger::{Backoff, BuildError, Lifecycle, Supervisor, worker};

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

/// Asserts the first delay of a child with this backoff, where 0.5 is drawn for the jitter.
async fn assert_first_delay(backoff: Backoff, expected: Duration) {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").backoff(backoff);
    let tree = start(app().random(|| || 0.5).child(child)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, expected);
}

#[tokio::test(start_paused = true)]
async fn changing_one_bound_in_code_keeps_the_jitter_and_a_written_zero_removes_it() {
    let minute = Backoff::exponential(ms(200), secs(60));
    assert_first_delay(minute.clone(), ms(220)).await;
    assert_first_delay(minute.clone().jitter(0.0), ms(200)).await;
    assert_first_delay(minute.jitter(Jitter::None), ms(200)).await;
    assert_first_delay(Backoff::constant(ms(200)), ms(200)).await;
}

#[tokio::test(start_paused = true)]
async fn changing_one_bound_in_a_file_keeps_the_jitter_and_a_written_zero_removes_it() {
    let read = |text: &str| toml::from_str::<Backoff>(text).unwrap();
    assert_first_delay(read("min = '200ms'\nmax = '1m'"), ms(220)).await;
    assert_first_delay(read("min = '200ms'\nmax = '1m'\njitter = 0"), ms(200)).await;
}

#[cfg(feature = "macros")]
#[tokio::test(start_paused = true)]
async fn changing_one_bound_in_a_macro_keeps_the_jitter_and_a_written_zero_removes_it() {
    #[worker(backoff(exponential, max = "1m"))]
    async fn spread(_ctx: verger::Context) -> verger::Exit {
        Err("no luck".into())
    }

    #[worker(backoff(exponential, max = "1m", jitter = 0))]
    async fn exact(_ctx: verger::Context) -> verger::Exit {
        Err("no luck".into())
    }

    let tree = start(app().random(|| || 0.5).child(spread()).child(exact())).await;
    let delay = async |name| tree.which_child(name).await.unwrap().next.unwrap().delay;
    assert_eq!((delay("spread").await, delay("exact").await), (ms(220), ms(200)));
}

#[tokio::test(start_paused = true)]
async fn seed0_20_a_custom_curve_replaces_the_default() {
    let fakes = FakeChildren::new();
    let linear = Backoff::linear(ms(500), ms(500), ms(1_200)).jitter(Jitter::None);
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
async fn seed2_1_limits_count_and_a_backoff_delays() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").own_restarts(2, secs(60)).backoff(Backoff::none());
    let tree = start(app().child(child)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, Duration::ZERO, "a limit alone restarts at once");

    let fakes = FakeChildren::new();
    let child = fakes.child("a").own_restarts(2, secs(60)).backoff(Backoff::constant(SECOND));
    let tree = start(app().child(child)).await;
    assert_eq!(fail(&tree, &fakes, "a").await, SECOND);
}

#[tokio::test(start_paused = true)]
async fn kin_22_the_status_of_a_crash_loop_matches_the_table_at_each_tick() {
    let fakes = FakeChildren::new();
    let backoff =
        Backoff::exponential(SECOND, secs(10)).jitter(Jitter::None).reset_after(secs(20) + ms(1));
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
async fn kin_68_two_backoffs_keep_separate_state() {
    let fakes = FakeChildren::new();
    let short = Backoff::exponential(ms(10), SECOND).jitter(Jitter::None).reset_after(ms(50));
    let long = Backoff::exponential(SECOND, secs(60)).jitter(Jitter::None).reset(Reset::Never);
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
