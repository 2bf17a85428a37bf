//! Programs of the documents that these policies come from, with the documents' numbers. Their limits are charged a
//! failure to start, so they are written with `count_failed_starts`.
//!
//! The program of elfo's documentation is in `configuration/seeds.rs`, the delays of all documents are in `presets.rs`.

use std::time::Duration;

use tokio::time::Instant;
use verger::policy::{Jitter, Preset};
use verger::{
    Backoff, Child, Context, Exit, Lifecycle, RunError, Strategy, Supervisor, SupervisorBuilder,
    async_trait, child, worker,
};

use crate::gives_up_after;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Fails in `preStart` or `activate` until this incarnation.
struct Flaky {
    works_from: u32,
}

#[async_trait]
impl Child for Flaky {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        if ctx.incarnation() < self.works_from {
            return Err("connect ECONNREFUSED".into());
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

/// `BackoffSupervisor.props({ minBackoff: 200, maxBackoff: 10_000, randomFactor: 0.2 })`. Half of the range of the
/// random factor is the delay of the curve.
fn flaky_supervisor(works_from: u32) -> SupervisorBuilder {
    let backoff = Backoff::exponential(ms(200), secs(10)).jitter(Jitter::Symmetric(0.2));
    let flaky = child("flaky", move || Flaky { works_from }).backoff(backoff);
    Supervisor::builder("flaky-supervisor").random(|| || 0.5).child(flaky)
}

#[tokio::test(start_paused = true)]
async fn document_0_a_backoff_supervisor_waits_until_its_child_can_start() {
    let began = Instant::now();
    let app = flaky_supervisor(4).build().unwrap().start().await.unwrap();
    assert_eq!(began.elapsed(), ms(200 + 400 + 800));
    app.stop("the test is over").await.unwrap();
}

/// "Back off between restarts, but give up entirely after 10 attempts": `{ maxRetries: 10 }` without a time range.
///
/// Rule: seed0.53
#[tokio::test(start_paused = true)]
async fn document_0_together_with_a_limit_of_ten_it_gives_up_a_child_that_cannot_start() {
    let app = flaky_supervisor(u32::MAX).restarts(10, Duration::MAX).count_failed_starts(true);
    let (after, error) = gives_up_after(app).await;
    // 200 ms doubling to 6.4 s, and four times 10 s.
    assert_eq!(after, ms(12_600 + 40_000));
    let RunError::GaveUp { child, .. } = &error else { panic!("{error}") };
    assert_eq!(child.as_str(), "flaky-supervisor/flaky");
}

/// `@lifecycle.supervision(strategy="one_for_one", max_restarts=3, within_seconds=60, backoff="exponential",
/// base_delay=2.0)` with three workers, the second of which can't be activated.
fn my_supervisor(name: &str) -> SupervisorBuilder {
    let idle = async |ctx: Context| ctx.cancelled().await;
    Supervisor::builder(name)
        .strategy(Strategy::OneForOne)
        .restarts(3, secs(60))
        .count_failed_starts(true)
        .defaults(|child| {
            child.backoff(Backoff::exponential(secs(2), secs(60)).jitter(Jitter::None))
        })
        .child(worker("worker-a", idle))
        .child(child("worker-b", || Flaky { works_from: u32::MAX }))
        .child(worker("worker-c", idle))
}

/// Rule: seed3.25
#[tokio::test(start_paused = true)]
async fn document_3_a_component_that_cannot_be_activated_is_given_up_after_three_restarts() {
    let (after, error) = gives_up_after(my_supervisor("my-supervisor")).await;
    assert_eq!(after, secs(2 + 4 + 8));
    let text = "`my-supervisor` gave up on `my-supervisor/worker-b`: activation failed: connect ECONNREFUSED";
    assert_eq!(error.to_string(), text);
}

/// The chain of the document: the pipeline escalates, and its root, which can't help, leaves it errored.
#[tokio::test(start_paused = true)]
async fn document_3_the_root_leaves_a_component_errored_that_it_cannot_help() {
    let root =
        Supervisor::builder("root").preset(Preset::signalpy()).child(my_supervisor("pipeline"));
    let began = Instant::now();
    let root = root.build().unwrap().start().await.unwrap();
    // Four times 14 s, and the delays of the preset: 1, 2 and 4 s.
    assert_eq!(began.elapsed(), secs(4 * 14 + 7));
    let pipeline = root.which_child("pipeline").await.unwrap();
    assert_eq!((pipeline.lifecycle, pipeline.incarnation), (Lifecycle::Errored, 4));
    root.stop("the test is over").await.unwrap();
}

/// A written `false` overrides a preset that charges everything.
#[tokio::test(start_paused = true)]
async fn a_written_false_spares_starts_that_fail_under_a_preset_that_charges_them() {
    let app = |count: Option<bool>| {
        let app = Supervisor::builder("app").preset(Preset::oversight());
        let app = app.defaults(|child| child.backoff(Backoff::constant(secs(1))));
        let app = app.restarts(3, secs(60)).child(child("db", || Flaky { works_from: 100 }));
        match count {
            Some(count) => app.count_failed_starts(count),
            None => app,
        }
    };
    assert_eq!(gives_up_after(app(None)).await.0, secs(3));
    assert_eq!(gives_up_after(app(Some(true))).await.0, secs(3));
    let began = Instant::now();
    let app = app(Some(false)).build().unwrap().start().await.unwrap();
    assert_eq!(began.elapsed(), secs(99));
    app.stop("the test is over").await.unwrap();
}
