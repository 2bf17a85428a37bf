//! The duration of a stop, to the millisecond, for every kind of child that delays it.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use verger::status::EventKind;
use verger::{
    Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, Readiness, RunError, Shutdown,
    StartError, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, async_trait, child,
    worker, worker_with,
};

use crate::common::{killed, settle};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Entries, each with the milliseconds since the diary was created.
#[derive(Clone)]
struct Diary {
    began: Instant,
    entries: Arc<Mutex<Vec<(u128, String)>>>,
}

impl Diary {
    fn new() -> Self {
        Self { began: Instant::now(), entries: Arc::default() }
    }

    fn note(&self, what: impl Into<String>) {
        let at = self.began.elapsed().as_millis();
        self.entries.lock().unwrap().push((at, what.into()));
    }

    fn entries(&self) -> Vec<(u128, String)> {
        self.entries.lock().unwrap().clone()
    }

    /// Adds an entry on drop.
    fn guard(&self, name: &str) -> Guard {
        Guard { diary: self.clone(), name: name.to_owned() }
    }

    /// Returns a child that ignores its cancellation.
    fn ignores_cancellation(&self, name: &'static str) -> ChildSpec {
        worker_with(name, self.clone(), async |ctx: Context, diary| -> Exit {
            let _guard = diary.guard(&name_of(&ctx));
            pending().await
        })
    }

    /// Returns a child that takes this long to stop.
    fn slow(&self, name: &'static str, takes: Duration) -> ChildSpec {
        worker_with(name, (self.clone(), takes), async |ctx: Context, (diary, takes)| -> Exit {
            let _guard = diary.guard(&name_of(&ctx));
            ctx.cancelled().await;
            sleep(takes).await;
            Ok(())
        })
    }
}

/// Returns the child's name, without the number that a dynamic child has.
fn name_of(ctx: &Context) -> String {
    let path = ctx.path();
    path.name().split('#').next().unwrap_or_default().to_owned()
}

struct Guard {
    diary: Diary,
    name: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.diary.note(self.name.as_str());
    }
}

fn at(entries: &[(u128, &str)]) -> Vec<(u128, String)> {
    entries.iter().map(|&(at, what)| (at, what.to_owned())).collect()
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    let handle = builder.build().unwrap().start().await.unwrap();
    settle().await;
    handle
}

/// Stops the tree, and returns how long that took.
async fn stop(handle: &SupervisorHandle) -> Duration {
    let called = Instant::now();
    let stopped = handle.stop("the test is over").await;
    assert!(matches!(stopped, Ok(()) | Err(RunError::Forced { .. })), "{stopped:?}");
    called.elapsed()
}

#[tokio::test(start_paused = true)]
async fn children_that_ignore_their_cancellation_cost_the_sum_of_their_graces_in_reverse_order() {
    let diary = Diary::new();
    let app = app()
        .child(diary.ignores_cancellation("a").shutdown(secs(1)))
        .child(diary.ignores_cancellation("b").shutdown(secs(2)))
        .child(diary.ignores_cancellation("default"))
        .child(diary.ignores_cancellation("killed").shutdown(Shutdown::BrutalKill))
        .child(diary.slow("slow", ms(700)));
    let app = start(app).await;
    assert_eq!(stop(&app).await, ms(700) + secs(5 + 2 + 1));
    let order = [(700, "slow"), (700, "killed"), (5700, "default"), (7700, "b"), (8700, "a")];
    assert_eq!(diary.entries(), at(&order));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_reacts_to_its_cancellation_is_not_aborted_however_short_its_grace() {
    let diary = Diary::new();
    let app = start(app().child(diary.slow("a", Duration::ZERO).shutdown(Duration::ZERO))).await;
    let mut events = app.events();
    assert_eq!(stop(&app).await, Duration::ZERO);
    let mut endings = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            endings.push(reason.kind());
        }
    }
    assert_eq!(endings, ["shutdown"]);
}

/// A child whose `run`, `activate` or `deactivate` takes the given time after its cancellation.
struct Staged {
    diary: Diary,
    activate: Option<Duration>,
    run: Duration,
    deactivate: Duration,
}

#[async_trait]
impl Child for Staged {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        if let Some(takes) = self.activate {
            ctx.cancelled().await;
            sleep(takes).await;
            return Err("given up".into());
        }
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let _guard = self.diary.guard("run is over");
        ctx.cancelled().await;
        sleep(self.run).await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.diary.note("deactivate begins");
        let _guard = self.diary.guard("deactivate is over");
        sleep(self.deactivate).await;
        self.diary.note("deactivate is done");
        Ok(())
    }
}

/// Stops such a child, and returns how long it took, how it ended, and its entries.
async fn stop_staged(
    shutdown: impl Into<Shutdown>,
    activate: Option<Duration>,
    run: Duration,
    deactivate: Duration,
) -> (Duration, &'static str, Vec<(u128, String)>) {
    let diary = Diary::new();
    let factory = {
        let diary = diary.clone();
        move || Staged { diary: diary.clone(), activate, run, deactivate }
    };
    // It starts beside a child that is up at once, so that the tree starts while this child
    // activates.
    let tree = app().child(worker("first", async |ctx: Context| ctx.cancelled().await));
    let app = start(tree).await;
    let mut events = app.events();
    let staged = child("staged", factory).shutdown(shutdown);
    let adding = tokio::spawn({
        let app = app.clone();
        async move { app.start_child(staged).await }
    });
    settle().await;
    let took = stop(&app).await;
    assert_eq!(adding.await.unwrap().is_ok(), activate.is_none());
    let mut ending = None;
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Moved { reason: Some(reason), .. } if event.path.name() == "staged" => {
                ending = Some(reason.kind());
            }
            _ => {}
        }
    }
    (took, ending.unwrap(), diary.entries())
}

#[tokio::test(start_paused = true)]
async fn a_value_has_three_quarters_of_its_grace_for_run_and_the_rest_for_deactivate() {
    let never = Duration::MAX;
    // `run` returns in time, and `deactivate` has the rest of the grace.
    let (took, ending, diary) = stop_staged(secs(4), None, ms(500), ms(3400)).await;
    assert_eq!((took, ending), (ms(3900), "shutdown"));
    let entries = [(500, "run is over"), (500, "deactivate begins"), (3900, "deactivate is done")];
    assert_eq!(diary[..3], at(&entries));
    // `run` doesn't return in time, and `deactivate` does.
    let (took, ending, diary) = stop_staged(secs(4), None, never, ms(900)).await;
    assert_eq!((took, ending), (ms(3900), "killed"));
    let entries =
        [(3000, "run is over"), (3000, "deactivate begins"), (3900, "deactivate is done")];
    assert_eq!(diary[..3], at(&entries));
    // Neither returns in time.
    let (took, ending, diary) = stop_staged(secs(4), None, never, never).await;
    assert_eq!((took, ending), (secs(4), "killed"));
    let entries =
        [(3000, "run is over"), (3000, "deactivate begins"), (4000, "deactivate is over")];
    assert_eq!(diary, at(&entries));
    // At exactly the limit, it is too late.
    let (took, ending, _) = stop_staged(secs(4), None, secs(3), ms(0)).await;
    assert_eq!((took, ending), (secs(3), "shutdown"), "done in the instant in which it is late");
    // Without a limit, there are no quarters.
    let (took, ending, _) = stop_staged(Shutdown::Infinity, None, secs(3000), secs(1000)).await;
    assert_eq!((took, ending), (secs(4000), "shutdown"));
}

#[tokio::test(start_paused = true)]
async fn a_function_has_its_whole_grace() {
    let diary = Diary::new();
    let app = start(app().child(diary.slow("a", ms(3999)).shutdown(secs(4)))).await;
    assert_eq!(stop(&app).await, ms(3999));
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_activate_grants_the_grace_and_skips_deactivate() {
    let never = Duration::MAX;
    let (took, ending, diary) = stop_staged(secs(4), Some(ms(3900)), never, never).await;
    assert_eq!((took, ending, diary), (ms(3900), "failed", vec![]));
    let (took, ending, diary) = stop_staged(secs(4), Some(never), never, never).await;
    assert_eq!((took, ending, diary), (secs(4), "killed", vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_stop_aborts_the_remaining_children_in_reverse_order() {
    let diary = Diary::new();
    let tree = app()
        .stop_deadline(secs(3))
        .child(diary.ignores_cancellation("a").shutdown(Shutdown::Infinity))
        .child(Supervisor::builder("mid").child(diary.ignores_cancellation("b")))
        .child(diary.ignores_cancellation("c").shutdown(secs(2)));
    let app = start(tree).await;
    assert_eq!(stop(&app).await, secs(3));
    let mut entries = diary.entries();
    assert_eq!(entries.remove(0), (2000, "c".to_owned()));
    // Both are aborted at the same instant; tokio decides the order in which they are dropped.
    entries.sort();
    assert_eq!(entries, at(&[(3000, "a"), (3000, "b")]));
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_takes_at_most_25_s_and_a_stop_is_unbounded() {
    for (deadline, bound) in [(None, secs(25)), (Some(secs(10)), secs(10))] {
        let diary = Diary::new();
        let tree = app().child(diary.ignores_cancellation("a").shutdown(Shutdown::Infinity));
        let tree = deadline.into_iter().fold(tree, SupervisorBuilder::stop_deadline);
        let signal = sleep(secs(7));
        tree.build().unwrap().with_graceful_shutdown(signal).await.or_else(killed).unwrap();
        assert_eq!(diary.began.elapsed(), secs(7) + bound);
        assert_eq!(diary.entries(), at(&[(diary.began.elapsed().as_millis(), "a")]));
    }
    let diary = Diary::new();
    let app =
        start(app().child(diary.ignores_cancellation("a").shutdown(Shutdown::Infinity))).await;
    let hour = timeout(secs(3600), app.stop("please")).await;
    assert!(hour.is_err(), "nothing bounds it");
    assert_eq!(diary.entries(), []);
}

#[tokio::test(start_paused = true)]
async fn a_supervisors_grace_is_the_sum_of_its_childrens_unless_it_has_its_own() {
    let tree = |diary: &Diary, grace: Shutdown| {
        let low =
            Supervisor::builder("low").child(diary.ignores_cancellation("l").shutdown(secs(2)));
        let mid = Supervisor::builder("mid")
            .child(diary.ignores_cancellation("m").shutdown(secs(1)))
            .child(low)
            .child(diary.ignores_cancellation("n").shutdown(secs(3)));
        let top = diary.ignores_cancellation("a").shutdown(secs(4));
        app().child(top).child(mid.into_child().shutdown(grace))
    };
    let diary = Diary::new();
    let app = start(tree(&diary, Shutdown::Infinity)).await;
    assert_eq!(stop(&app).await, secs(3 + 2 + 1 + 4));
    let order = [(3000, "n"), (5000, "l"), (6000, "m"), (10_000, "a")];
    assert_eq!(diary.entries(), at(&order));

    let diary = Diary::new();
    let app = start(tree(&diary, Shutdown::Timeout(secs(4)))).await;
    assert_eq!(stop(&app).await, secs(4 + 4));
    let mut entries = diary.entries();
    entries[1..3].sort();
    assert_eq!(entries, at(&[(3000, "n"), (4000, "l"), (4000, "m"), (8000, "a")]));
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_stop_in_parallel() {
    let diary = Diary::new();
    let app = start(app().child(DynamicSupervisor::builder("conns"))).await;
    let conns = app.supervisor("conns").await.unwrap();
    for _ in 0..100 {
        conns.start_child(diary.ignores_cancellation("short").shutdown(secs(1))).await.unwrap();
        conns.start_child(diary.slow("slow", ms(1500)).shutdown(secs(2))).await.unwrap();
        conns.start_child(diary.ignores_cancellation("long").shutdown(secs(4))).await.unwrap();
    }
    settle().await;
    assert_eq!(stop(&app).await, secs(4), "the longest grace, not their sum");
    let ended = |at, name: &str| {
        let entries = diary.entries();
        entries.iter().filter(|entry| **entry == (at, name.to_owned())).count()
    };
    assert_eq!([ended(1000, "short"), ended(1500, "slow"), ended(4000, "long")], [100; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_backoff_takes_no_time() {
    let fail = async |_ctx: Context| -> Exit { Err("no".into()) };
    let wait = Backoff::constant(secs(60));
    let app = start(app().child(worker("a", fail).backoff(wait))).await;
    sleep(secs(1)).await;
    assert_eq!(app.otp().count_children().await.unwrap().restarting, 1);
    assert_eq!(stop(&app).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_group_restart_continues_from_its_position() {
    // The stop comes two seconds into the grace of a sibling that ignores its cancellation, or in
    // the backoff.
    for (into, left) in [(secs(2), secs(1)), (secs(4), Duration::ZERO)] {
        let diary = Diary::new();
        let fail = async |ctx: Context| -> Exit {
            ctx.run_until_cancelled(sleep(secs(1))).await;
            Err("no".into())
        };
        let tree = app()
            .strategy(Strategy::OneForAll)
            .child(worker("a", fail).backoff(Backoff::constant(secs(60))))
            .child(diary.ignores_cancellation("b").shutdown(secs(3)));
        let app = start(tree).await;
        sleep(secs(1) + into).await;
        assert_eq!(stop(&app).await, left);
        assert_eq!(diary.entries(), at(&[(4000, "b")]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_first_start_stops_the_started_children_and_starts_no_more() {
    let diary = Diary::new();
    let stopper = async move |ctx: Context| -> Exit {
        sleep(secs(1)).await;
        // The call runs in its own task, which outlives the child.
        tokio::spawn(async move { ctx.parent().stop("enough").await });
        pending().await
    };
    let tree = app()
        .child(diary.ignores_cancellation("a").shutdown(secs(2)))
        .child(worker("b", stopper).readiness(Readiness::Signal).shutdown(secs(3)))
        .child(diary.ignores_cancellation("never"));
    let error = tree.build().unwrap().start().await.unwrap_err();
    assert!(matches!(error, StartError::Stopped { .. }), "{error}");
    assert_eq!(error.to_string(), "`app` was stopped before it was up");
    assert_eq!(diary.began.elapsed(), secs(1 + 3 + 2));
    assert_eq!(diary.entries(), at(&[(6000, "a")]));
}

#[tokio::test(start_paused = true)]
async fn children_that_exit_during_a_stop_are_neither_restarted_nor_waited_for() {
    let diary = Diary::new();
    let fail = async |_ctx: Context| -> Exit {
        sleep(secs(2)).await;
        Err("no".into())
    };
    let tree = app()
        .child(diary.ignores_cancellation("a").shutdown(secs(1)))
        .child(worker("b", fail).backoff(Backoff::none()).shutdown(secs(10)))
        .child(diary.ignores_cancellation("c").shutdown(secs(3)));
    let app = start(tree).await;
    let mut events = app.events();
    assert_eq!(stop(&app).await, secs(3 + 1), "`b` failed while `c` was stopping");
    let mut starts = 0;
    while let Some(event) = events.next().await {
        starts += u32::from(event.incarnation > 1);
    }
    assert_eq!(starts, 0);
}

#[tokio::test(start_paused = true)]
async fn every_caller_of_stop_returns_when_the_stop_is_complete() {
    let diary = Diary::new();
    let app = start(app().child(diary.ignores_cancellation("a").shutdown(secs(3)))).await;
    let late = async {
        sleep(secs(1)).await;
        app.stop("again").await
    };
    let (first, second, third) = tokio::join!(app.stop("once"), late, app.wait());
    for ended in [first, second, third] {
        assert!(matches!(ended, Err(RunError::Forced { .. })), "{ended:?}");
    }
    assert_eq!(diary.began.elapsed(), secs(3), "asking twice does not give the grace twice");
    app.stop("it has ended").await.or_else(killed).unwrap();
}
