//! Ordinary outages, met by trees that set nothing: no program ends, and each child works again within 40 s after its
//! cause is gone. What is broken for good is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::policy::{ChildFailure, OnExhausted};
use verger::{
    ChildSpec, Context, DynamicSupervisor, Exit, ExitReason, Lifecycle, Readiness, RestartType,
    RunError, Supervisor, SupervisorBuilder, SupervisorHandle, worker, worker_with,
};

use crate::common::killed;
use crate::gives_up_after;
use crate::log::Log;

/// The longest delay, and as much again for what a child needs to connect.
const SOON: Duration = Duration::from_secs(40);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Something that children need, and that is away until an instant.
#[derive(Clone)]
struct Needed {
    back_at: Instant,
    /// When each child that has reached it did so.
    reached: Arc<std::sync::Mutex<Vec<Duration>>>,
    began: Instant,
}

impl Needed {
    fn away_for(time: Duration) -> Self {
        let began = Instant::now();
        Self { back_at: began + time, reached: Arc::default(), began }
    }

    fn reach(&self) -> Exit {
        if Instant::now() < self.back_at {
            return Err("connection refused".into());
        }
        self.reached.lock().unwrap().push(self.began.elapsed());
        Ok(())
    }

    fn reached(&self) -> Vec<Duration> {
        self.reached.lock().unwrap().clone()
    }
}

async fn consumer(ctx: Context, needed: Needed) -> Exit {
    needed.reach()?;
    ctx.cancelled().await;
    Ok(())
}

/// Is active only once it has reached what it needs.
async fn watcher(ctx: Context, needed: Needed) -> Exit {
    needed.reach()?;
    ctx.ready();
    ctx.cancelled().await;
    Ok(())
}

fn without_jitter() -> SupervisorBuilder {
    Supervisor::builder("app").random(|| || 0.0)
}

fn three_consumers(app: SupervisorBuilder, needed: &Needed) -> SupervisorBuilder {
    ["orders", "mails", "reports"]
        .into_iter()
        .fold(app, |app, name| app.child(worker_with(name, needed.clone(), consumer)))
}

async fn start(app: SupervisorBuilder) -> SupervisorHandle {
    app.build().unwrap().start().await.unwrap()
}

async fn assert_all_active(app: &SupervisorHandle) {
    for child in app.children().await.unwrap() {
        assert_eq!(child.lifecycle, Lifecycle::Active, "{}", child.path);
    }
}

#[tokio::test(start_paused = true)]
async fn three_workers_survive_a_database_that_is_away_for_twenty_seconds_or_two_minutes() {
    // Attempts are due after 0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4, 51, 81, 111 and 141 s.
    for (outage, reached) in [(secs(20), Duration::from_millis(25_400)), (secs(120), secs(141))] {
        let needed = Needed::away_for(outage);
        let app = start(three_consumers(without_jitter(), &needed)).await;
        sleep(outage + SOON).await;
        assert_eq!(needed.reached(), [reached; 3]);
        assert_all_active(&app).await;
        app.stop("the test is over").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_the_jitter_is_they_work_within_forty_seconds_after_the_outage() {
    for outage in [secs(1), secs(20), secs(60), secs(120)] {
        let needed = Needed::away_for(outage);
        let app = start(three_consumers(Supervisor::builder("app"), &needed)).await;
        sleep(outage + SOON).await;
        assert_eq!(needed.reached().len(), 3, "{outage:?}");
        assert_all_active(&app).await;
        app.stop("the test is over").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_cannot_start_for_a_minute_starts_then() {
    for readiness in [Readiness::OnStart, Readiness::Signal] {
        let needed = Needed::away_for(secs(60));
        let child = worker_with("watcher", needed.clone(), watcher).readiness(readiness);
        let app = without_jitter().child(child).build().unwrap();
        let app = tokio::spawn(app.start());
        sleep(secs(60) + SOON).await;
        assert_eq!(needed.reached(), [secs(81)], "{readiness:?}");
        let app = app.await.unwrap().unwrap();
        assert_all_active(&app).await;
        app.stop("the test is over").await.unwrap();
    }
}

/// An endpoint that refuses three calls of ten until an instant, and the jobs that it should get.
#[derive(Clone)]
struct Endpoint {
    calls: Arc<AtomicU32>,
    well_from: Instant,
    jobs: Arc<(UnboundedSender<u32>, Mutex<UnboundedReceiver<u32>>)>,
    done: Arc<AtomicU32>,
}

impl Endpoint {
    fn flaky_for(time: Duration) -> Self {
        let (add, jobs) = unbounded_channel();
        let (jobs, well_from) = (Arc::new((add, Mutex::new(jobs))), Instant::now() + time);
        Self { calls: Arc::default(), well_from, jobs, done: Arc::default() }
    }

    async fn call(&self, takes: Duration) -> Exit {
        sleep(takes).await;
        let refused = matches!(self.calls.fetch_add(1, Ordering::Relaxed) % 10, 2 | 5 | 8);
        if refused && Instant::now() < self.well_from {
            return Err("503 Service Unavailable".into());
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn add_job(&self, number: u32) {
        self.jobs.0.send(number).unwrap();
    }
}

/// Sends one job after the other. A job that is refused goes back into the queue.
async fn sender(_ctx: Context, endpoint: Endpoint) -> Exit {
    loop {
        let job = endpoint.jobs.1.lock().await.recv().await.ok_or("the queue is closed")?;
        if let Err(error) = endpoint.call(Duration::from_millis(200)).await {
            endpoint.add_job(job);
            return Err(error);
        }
    }
}

/// A sender that never waits for a job, and reports each that it has sent.
async fn busy_sender(ctx: Context, endpoint: Endpoint) -> Exit {
    loop {
        endpoint.call(Duration::from_millis(100)).await?;
        ctx.report_healthy();
    }
}

async fn eight(child: impl Fn() -> ChildSpec) -> SupervisorHandle {
    let app = start(Supervisor::builder("app").child(DynamicSupervisor::builder("senders"))).await;
    let senders = app.supervisor("senders").await.unwrap();
    for _ in 0..8 {
        senders.start_child(child()).await.unwrap();
    }
    app
}

async fn assert_eight_active(app: &SupervisorHandle) {
    let senders = app.supervisor("senders").await.unwrap();
    assert_eq!(senders.children().await.unwrap().len(), 8, "none was removed");
    assert_all_active(&senders).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_eight_senders_survives_an_endpoint_that_refuses_three_calls_of_ten() {
    let endpoint = Endpoint::flaky_for(secs(600));
    let app = eight(|| worker_with("sender", endpoint.clone(), sender)).await;
    for number in 0..200 {
        endpoint.add_job(number);
        sleep(secs(3)).await;
    }
    sleep(SOON).await;
    assert_eight_active(&app).await;
    assert_eq!(endpoint.done.load(Ordering::Relaxed), 200, "each job was sent");
    app.stop("the test is over").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn senders_that_report_each_success_are_not_given_up_however_often_they_fail() {
    let endpoint = Endpoint::flaky_for(secs(600));
    let app = eight(|| worker_with("sender", endpoint.clone(), busy_sender)).await;
    sleep(secs(600) + SOON).await;
    assert_eight_active(&app).await;
    app.stop("the test is over").await.or_else(killed).unwrap();
}

async fn broken(_ctx: Context) -> Exit {
    Err("no such table".into())
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_broken_for_good_is_given_up_after_171_seconds() {
    let (after, error) = gives_up_after(without_jitter().child(worker("broken", broken))).await;
    assert_eq!(after, secs(171));
    assert_eq!(error.to_string(), "`app` gave up on `app/broken`: failed: no such table");
    assert_eq!(error.exit_code(), 1);

    let nested = Supervisor::builder("part").random(|| || 0.0).child(worker("broken", broken));
    let (after, error) = gives_up_after(without_jitter().child(nested)).await;
    // Four times 171 s, and three waits of 200 ms: after 171 s of being active the backoff of `part` has reset.
    assert_eq!(after, Duration::from_millis(684_600));
    let text = error.to_string();
    assert!(text.starts_with("`app` gave up on `app/part`: escalated"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_give_up_says_how_long_which_limit_and_what_to_write() {
    let log = Log::at(LevelFilter::ERROR);
    gives_up_after(without_jitter().child(worker("broken", broken))).await;
    assert_eq!(
        log.lines(),
        ["ERROR verger::restart: giving up child=app/broken incarnation=13 \
          cause=\"failed: no such table\" lived=0ns failing=171s restarts=12 limit=\"12 in 5m\" source=default \
          then=escalate hint=\"if the program can do without it, give it on_exhausted(OnExhausted::Pause(..))\""]
    );
    let nested = Supervisor::builder("part").random(|| || 0.0).child(worker("broken", broken));
    gives_up_after(without_jitter().child(nested)).await;
    // `part` was active in between, but its limit counts from its first failure, 171 s after the start.
    let line = log.lines().pop().unwrap();
    assert!(line.contains("child=app/part "), "{line}");
    assert!(line.contains(" failing=514s restarts=3 limit=\"3 in 17m\""), "{line}");

    // What the line says to write keeps the program running.
    let pause = OnExhausted::Pause(secs(60));
    let app = without_jitter().child(worker("broken", broken).on_exhausted(pause));
    let run = tokio::time::timeout(secs(24 * 3_600), app.build().unwrap().run()).await;
    assert!(run.is_err(), "it runs for a day");
}

#[tokio::test(start_paused = true)]
async fn a_callback_is_told_what_the_status_shows() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let callback = Arc::clone(&told);
    let app = without_jitter()
        .on_child_failure(move |failure: ChildFailure| {
            let numbers = (failure.restarts_in_period, failure.max_restarts, failure.period);
            callback.lock().unwrap().push(numbers);
            true
        })
        .child(worker("broken", broken));
    let app = start(app).await;
    sleep(Duration::from_millis(1_000)).await;
    let limit = app.which_child("broken").await.unwrap().limit.unwrap();
    assert_eq!((limit.restarts, limit.max_restarts, limit.period), (3, 12, secs(300)));
    let told = told.lock().unwrap().clone();
    assert_eq!(told, [0, 1, 2].map(|restarts| (restarts, Some(12), secs(300))));
    app.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_a_child_is_ready_is_charged_and_an_error_is_not() {
    async fn panics(_ctx: Context) -> Exit {
        panic!("DATABASE_URL isn't set")
    }
    let child = |name| worker(name, panics).readiness(Readiness::Signal);
    let (after, error) = gives_up_after(without_jitter().child(child("config"))).await;
    assert_eq!(after, secs(171));
    let RunError::GaveUp { reason, .. } = &error else { panic!("{error}") };
    assert!(matches!(reason, ExitReason::Panicked(_)), "{error}");

    let refused = worker("db", broken).readiness(Readiness::Signal);
    let app = without_jitter().child(refused).build().unwrap();
    let run = tokio::time::timeout(secs(3_600), app.run()).await;
    assert!(run.is_err(), "an outage of an hour ends nothing");
}

#[tokio::test(start_paused = true)]
async fn children_that_end_well_are_no_failures() {
    let job = worker("job", async |_: Context| {}).restart(RestartType::Transient);
    let app = start(without_jitter().child(job)).await;
    sleep(secs(3_600)).await;
    let job = app.which_child("job").await.unwrap();
    assert_eq!((job.lifecycle, job.restarts), (Lifecycle::Stopped, 0));
    app.stop("the test is over").await.unwrap();
}
