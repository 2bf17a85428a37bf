//! Health checks report unhealthy children, and restart them if that is enabled.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{conns, settle, start};
use tokio::time::Instant;
use verger::policy::{Jitter, OnExhausted};
use verger::status::{ChildInfo, Event, EventKind, Subscription};
use verger::{
    Backoff, BuildError, ChildSpec, Context, DynamicSupervisor, Exit, ExitError, ExitKind,
    HealthCheck, Lifecycle, Readiness, Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Lets time pass, and everything react that is due.
async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

/// The results of the next checks, in order; later checks succeed.
#[derive(Clone, Default)]
struct Checks {
    answers: Arc<Mutex<VecDeque<bool>>>,
    /// The time of each check since the first, and the incarnation checked.
    at: Arc<Mutex<Vec<(Duration, u32)>>>,
}

impl Checks {
    /// Sets the results: `+` for success, `-` for failure.
    fn new(answers: &str) -> Self {
        let answers = answers.chars().map(|answer| answer == '+').collect();
        Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() }
    }

    fn check(&self) -> HealthCheck {
        let (checks, began) = (self.clone(), Instant::now());
        HealthCheck::new(move |ctx: Context| {
            let passed = checks.answers.lock().unwrap().pop_front().unwrap_or(true);
            checks.at.lock().unwrap().push((began.elapsed(), ctx.incarnation()));
            async move { if passed { Ok(()) } else { Err("no ping") } }
        })
    }

    fn at(&self) -> Vec<(u64, u32)> {
        let at = std::mem::take(&mut *self.at.lock().unwrap());
        at.into_iter().map(|(at, incarnation)| (at.as_secs(), incarnation)).collect()
    }
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

fn eager() -> SupervisorBuilder {
    let builder = Supervisor::builder("app").unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Returns the health events so far.
fn health_events(events: &mut Subscription<Event>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(Event { path, incarnation, kind, .. }) = events.try_next() {
        match kind {
            EventKind::Unhealthy { problem } => {
                texts.push(format!("{}#{incarnation} unhealthy: {problem}", path.name()));
            }
            EventKind::Healthy => texts.push(format!("{}#{incarnation} healthy", path.name())),
            _ => {}
        }
    }
    texts
}

#[tokio::test(start_paused = true)]
async fn seed3_34_unhealthy_is_reported_and_nothing_is_restarted() {
    let checks = Checks::new("+---------");
    let tree = start(eager().child(idle("a").health_check(checks.check()))).await;
    let mut events = tree.events();
    assert_eq!(seen(&tree, "a").await.healthy, None, "no check has run yet");

    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true));
    sleep(secs(20)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true), "it may fail twice");
    sleep(secs(10)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.healthy, child.lifecycle), (Some(false), Lifecycle::Active));
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("permanent    active       up 40s  UNHEALTHY"), "{text}");
    sleep(secs(50)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1, "it is not restarted");
    assert_eq!(health_events(&mut events), ["a#1 unhealthy: no ping"]);

    sleep(secs(20)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.healthy, child.restarts, child.last_exit.is_some()), (Some(true), 0, false));
    assert_eq!(health_events(&mut events), ["a#1 healthy"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_34_with_the_opt_in_an_unhealthy_child_is_restarted() {
    let checks = Checks::new("---+");
    let check = checks.check().restarts();
    let tree = start(eager().child(idle("a").health_check(check)).child(idle("b"))).await;
    let mut events = tree.events();
    sleep(secs(30)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (2, Lifecycle::Active));
    assert_eq!((child.healthy, child.age), (None, Duration::ZERO), "the next one begins anew");
    let last = child.last_exit.unwrap().reason;
    assert_eq!(
        (last.exit_kind(), last.to_string().as_str()),
        (ExitKind::Unhealthy, "unhealthy: no ping")
    );
    assert!(!last.is_clean());
    assert_eq!(seen(&tree, "b").await.incarnation, 1);
    assert_eq!(health_events(&mut events), ["a#1 unhealthy: no ping"]);
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true));
    assert_eq!(checks.at(), [(10, 1), (20, 1), (30, 1), (40, 2)]);
    assert_eq!(
        health_events(&mut events),
        Vec::<String>::new(),
        "a healthy next incarnation is not reported"
    );
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_163_a_slowly_stopping_child_is_restarted_once_and_not_checked() {
    let checks = Checks::new("----------");
    let slow = worker("a", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        tokio::time::sleep(secs(35)).await;
        Ok(())
    });
    let check = checks.check().restarts().failures(1);
    let tree = start(eager().child(slow.shutdown(secs(60)).health_check(check))).await;
    sleep(secs(44)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (1, Lifecycle::Errored));
    assert_eq!(child.healthy, None, "it isn't active");
    sleep(secs(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    assert_eq!(checks.at(), [(10, 1)]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_163_a_child_that_waits_for_its_restart_is_not_checked() {
    let checks = Checks::new("-----");
    let check = checks.check().restarts().failures(1);
    let a = idle("a").backoff(Backoff::constant(secs(60))).health_check(check);
    let tree = start(eager().child(a)).await;
    sleep(secs(69)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.lifecycle, child.failures), (Lifecycle::Restarting, 1));
    sleep(secs(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    assert_eq!(checks.at(), [(10, 1)]);
    sleep(secs(10)).await;
    assert_eq!(checks.at(), [(80, 2)]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_about_an_unhealthy_child() {
    let checks = Checks::new("--");
    // Often enough that the child isn't active long enough to reset.
    let check = checks.check().restarts().failures(1).every(secs(2));
    let a = idle("a").consecutive_restarts(1).on_exhausted(OnExhausted::Park);
    let tree = start(eager().child(a.health_check(check))).await;
    sleep(secs(4)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Errored, 2));
    assert_eq!(child.why, Some("given up"));
    tree.resume("a").await.unwrap();
    settle().await;
    assert_eq!(seen(&tree, "a").await.incarnation, 3);
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_is_checked_once_it_is_ready() {
    let checks = Checks::default();
    let slow = worker("a", async |ctx: Context| {
        tokio::time::sleep(secs(25)).await;
        ctx.ready();
        ctx.cancelled().await;
    });
    let slow = slow.readiness(Readiness::Signal).health_check(checks.check().every(secs(7)));
    let tree = start(eager().child(slow)).await;
    sleep(secs(14)).await;
    assert_eq!(checks.at(), [(32, 1), (39, 1)]);
    tree.stop("done").await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(checks.at(), [], "a child that was stopped isn't checked");
}

#[tokio::test(start_paused = true)]
async fn an_error_a_panic_and_a_timeout_of_a_check_are_failures() {
    let check = |which: u32| {
        HealthCheck::new(move |_: Context| async move {
            match which {
                0 => Err("no ping")?,
                1 => panic!("out of range"),
                _ => std::future::pending::<()>().await,
            }
            Exit::Ok(())
        })
    };
    let panics_at_once =
        HealthCheck::new(|_: Context| -> std::future::Ready<Exit> { panic!("before it began") });
    let children = [check(0), check(1), check(2), panics_at_once].into_iter().enumerate();
    let tree = children.fold(eager(), |tree, (number, check)| {
        tree.child(idle(&format!("c{number}")).health_check(check.failures(1)))
    });
    let tree = start(tree).await;
    let mut events = tree.events();
    sleep(secs(10)).await;
    let mut problems = health_events(&mut events);
    problems.sort();
    let expected = [
        "c0#1 unhealthy: no ping",
        "c1#1 unhealthy: the check panicked: out of range",
        "c3#1 unhealthy: the check panicked: before it began",
    ];
    assert_eq!(problems, expected);
    sleep(secs(3)).await;
    assert_eq!(health_events(&mut events), ["c2#1 unhealthy: no answer within 3s"]);
    tree.stop("done").await.unwrap();
}

/// A value that panics on drop.
struct Touchy;

impl Drop for Touchy {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_panics_on_drop_runs_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let check = HealthCheck::new(move |_: Context| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                let _touchy = Touchy;
                std::future::pending::<()>().await;
            }
        }
    });
    let tree = start(eager().child(idle("a").health_check(check.failures(1)))).await;
    sleep(secs(13)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(false));
    sleep(secs(7)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_undetermined_check_does_not_count() {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let check = HealthCheck::new(move |_: Context| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match number {
                0 | 2 => Exit::Err("no ping".into()),
                _ => Err(ExitError::ignore()),
            }
        }
    });
    let tree = start(eager().child(idle("a").health_check(check.failures(2)))).await;
    sleep(secs(20)).await;
    assert_eq!(seen(&tree, "a").await.healthy, None);
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(false), "two in a row");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn checks_of_one_child_never_overlap() {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (runs, max) = (Arc::clone(&running), Arc::clone(&most));
    let starts: Arc<Mutex<Vec<u64>>> = Arc::default();
    let (at, began) = (Arc::clone(&starts), Instant::now());
    let check = HealthCheck::new(move |_: Context| {
        let (runs, max) = (Arc::clone(&runs), Arc::clone(&max));
        at.lock().unwrap().push(began.elapsed().as_secs());
        async move {
            max.fetch_max(runs.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(secs(15)).await;
            runs.fetch_sub(1, Ordering::Relaxed);
        }
    });
    let check = check.timeout(secs(20));
    let tree = start(eager().child(idle("a").health_check(check))).await;
    sleep(secs(50)).await;
    assert_eq!(*starts.lock().unwrap(), [10, 25, 40], "one that is late is followed at once");
    assert_eq!(most.load(Ordering::Relaxed), 1);
    tree.stop("done").await.unwrap();
}

/// A value that sets a flag on drop.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_check_ends_with_its_child_and_with_its_supervisor() {
    for way in ["child", "supervisor", "dropped"] {
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone);
        let check = HealthCheck::new(move |_: Context| {
            let gone = Gone(Arc::clone(&flag));
            async move {
                let _gone = gone;
                std::future::pending::<()>().await;
            }
        });
        let child = idle("a").health_check(check.timeout(secs(600)));
        let running = tokio::spawn(eager().child(child.clone()).build().unwrap().run());
        let tree = start(eager().child(child)).await;
        sleep(secs(11)).await;
        assert!(!gone.load(Ordering::Relaxed));
        running.abort();
        match way {
            "child" => tree.stop_child("a").await.unwrap(),
            "supervisor" => tree.stop("done").await.unwrap(),
            _ => {}
        }
        sleep(Duration::ZERO).await;
        assert!(gone.load(Ordering::Relaxed), "{way}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_and_supervisors_are_checked_like_static_workers() {
    let (tree, conns) = conns().await;
    let checks = Checks::new("-");
    let check = checks.check().failures(1).restarts();
    let a =
        conns.start_child(idle("a").backoff(Backoff::none()).health_check(check)).await.unwrap();
    sleep(secs(10)).await;
    let children = conns.children().await.unwrap();
    assert_eq!((children.len(), children[0].incarnation), (1, 2), "{a:?}");
    conns.stop_child(children[0].path.name()).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(checks.at(), [(10, 1)]);
    tree.stop("done").await.unwrap();

    let checks = Checks::new("-");
    let check = checks.check().failures(1).restarts();
    let inner = DynamicSupervisor::builder("inner").into_child().health_check(check);
    let tree = start(eager().child(inner)).await;
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "inner").await.incarnation, 2);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fallback_has_its_own_check_or_none() {
    let (first, second) = (Checks::new("-"), Checks::default());
    let fallback = idle("b").health_check(second.check().every(secs(4)));
    let check = first.check().failures(1).restarts();
    let a = idle("a").consecutive_restarts(0).health_check(check).fallback(fallback);
    let tree = start(eager().child(a)).await;
    sleep(secs(18)).await;
    assert_eq!((first.at(), second.at()), (vec![(10, 1)], vec![(14, 2), (18, 2)]));

    let first = Checks::new("-");
    let check = first.check().failures(1).restarts();
    let a = idle("c").consecutive_restarts(0).health_check(check).fallback(idle("d"));
    tree.start_child(a).await.unwrap();
    sleep(secs(60)).await;
    let child = seen(&tree, "c").await;
    assert_eq!((child.incarnation, child.healthy, first.at().len()), (2, None, 1));
    tree.stop("done").await.unwrap();
}

#[test]
fn an_invalid_check_is_refused_when_the_tree_is_built() {
    let built =
        |check: HealthCheck| eager().child(idle("a").health_check(check)).build().unwrap_err();
    let check = || HealthCheck::new(async |_: Context| -> Exit { Ok(()) });
    let table = [
        (
            check().every(Duration::ZERO),
            "the period of the health check of `app/a` is zero; write a duration such as `10s`",
        ),
        (
            check().timeout(Duration::ZERO),
            "the timeout of the health check of `app/a` is zero; write a duration such as `3s`",
        ),
        (
            check().failures(0),
            "the health check of `app/a` has a threshold of 0 failures; write \
             `failures(1)` or more",
        ),
        (
            check().successes(0),
            "the health check of `app/a` has a threshold of 0 successes; write \
             `successes(1)` or more",
        ),
    ];
    for (check, text) in table {
        assert_eq!(built(check).to_string(), text);
    }
    assert!(
        matches!(built(check().failures(0)), BuildError::ZeroThreshold { path, .. } if path.as_str() == "app/a")
    );
}

/// A child that is active for longer than its backoff takes to reset, but never healthy.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_always_unhealthy_is_given_up() {
    let check = HealthCheck::new(async |_: Context| Exit::Err("no ping".into())).restarts();
    let backoff = Backoff::exponential(Duration::from_millis(200), secs(30)).jitter(Jitter::None);
    let app = Supervisor::builder("app").child(idle("db").health_check(check).backoff(backoff));
    let app = app.build().unwrap();
    assert_eq!(app.warnings(), []);
    let began = Instant::now();
    let error = tokio::time::timeout(secs(3_600), app.run()).await.expect("it gives up");
    assert_eq!(error.unwrap_err().to_string(), "`app` gave up on `app/db`: unhealthy: no ping");
    // Thirteen times 30 s, and twelve delays: they double from 200 ms to 25.6 s, and four are 30 s.
    assert_eq!(began.elapsed(), secs(13 * 30 + 171));
}

#[tokio::test(start_paused = true)]
async fn only_the_time_since_a_check_passes_resets_the_backoff() {
    // The time of the failure, counted from the start of the second incarnation, and the failures in a row
    // that the child has had after it. The checks run each 10 s, and the backoff resets after 20 s.
    let table = [
        ("", 15, 2),
        ("+++++", 25, 2),
        ("+++++", 31, 1),
        ("-++++", 31, 2),
        ("-++++", 41, 1),
        ("++-++", 45, 2),
        ("++-+++", 61, 1),
        ("++-", 35, 2),
    ];
    for (checks, life, failures) in table {
        let checks_of = Checks::new(checks);
        let child = worker("db", move |ctx: Context| async move {
            match ctx.incarnation() {
                1 => Exit::Err("at once".into()),
                2 => {
                    tokio::time::sleep(secs(life)).await;
                    Exit::Err("later".into())
                }
                _ => {
                    ctx.cancelled().await;
                    Ok(())
                }
            }
        });
        let backoff = Backoff::constant(secs(1)).reset_after(secs(20));
        let check = checks_of.check().every(secs(10)).restarts();
        let app = Supervisor::builder("app").child(child.health_check(check).backoff(backoff));
        let tree = start(app).await;
        sleep(secs(1) + secs(life)).await;
        let child = tree.which_child("db").await.unwrap();
        assert_eq!(child.lifecycle, Lifecycle::Restarting, "{checks} {life}");
        assert_eq!(child.failures, failures, "{checks} {life}");
        tree.stop("done").await.unwrap();
    }
}
