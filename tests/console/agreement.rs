//! Probes, log, status and console agree at every moment, while things go wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::app::probes;
use verger::console::Console;
use verger::lease::Lease;
use verger::status::Status;
use verger::testing::MemoryLeases;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, Readiness, RunError, SupervisorBuilder,
    SupervisorHandle, worker,
};

use crate::client::{Server, serve};
use crate::log::Log;
use crate::{app, idle, secs, served, start, without_times};

/// All that shows a tree.
struct Views {
    tree: SupervisorHandle,
    probes: Server,
    console: Server,
    log: Log,
    began: Instant,
    /// What was logged so far.
    logged: Vec<String>,
    /// The readiness, whenever it changed, and the problems at that moment.
    changes: Vec<String>,
}

impl Views {
    async fn of(tree: SupervisorBuilder) -> Self {
        let log = Log::at(LevelFilter::INFO);
        let tree = start(tree).await;
        let (probes, console) = (serve(probes(&tree)), served(Console::new(), &tree));
        let (began, logged, changes) = (Instant::now(), Vec::new(), Vec::new());
        Self { tree, probes, console, log, began, logged, changes }
    }

    /// Asserts that all of them say the same, and returns that.
    async fn agree(&mut self) -> Status {
        let status = self.tree.status().await.unwrap();
        let problems = status.problems();

        let readyz = self.probes.get("/readyz?verbose").await;
        let essential = problems.iter().filter(|problem| problem.essential);
        let mut lines: Vec<_> = essential.map(ToString::to_string).collect();
        let others = problems.iter().filter(|problem| !problem.essential);
        assert_eq!(readyz.status, if lines.is_empty() { 200 } else { 503 }, "{status}");
        assert_eq!(status.is_ready(), lines.is_empty(), "{status}");
        if lines.is_empty() {
            lines.push("ok".to_owned());
        }
        lines.extend(others.map(ToString::to_string));
        assert_eq!(readyz.body, format!("{}\n{status}\n", lines.join("\n")));

        let page = self.console.get("/api/status").await.json();
        let shown = without_times(serde_json::to_value(&status).unwrap());
        let page = without_times(page);
        if page != shown {
            let (p, s) = (format!("{page:#}"), format!("{shown:#}"));
            let d: Vec<_> = p.lines().zip(s.lines()).filter(|(a, b)| a != b).take(6).collect();
            panic!("the page differs from\n{status} {d:#?}");
        }
        let text = self.console.get("/api/tree.txt").await.body;
        assert_eq!(text.trim_end(), status.to_string().trim_end());

        // No failure is silent: whatever is a problem has a line above INFO, by its path or by that of its supervisor.
        self.logged.extend(self.log.lines());
        for problem in &problems {
            let path = problem.path.as_str();
            let names = |line: &String| {
                !line.starts_with("INFO")
                    && line.split(' ').any(|word| word == format!("child={path}"))
            };
            let below = format!("child={path}/");
            let stops = |line: &String| line.contains("shutting down child=app ");
            let is_logged = |line| names(line) || line.contains(&below) || stops(line);
            let is_logged = self.logged.iter().any(is_logged);
            assert!(is_logged, "{problem} isn't in the log: {:#?}", self.logged);
        }

        let at = self.began.elapsed();
        let shown: Vec<_> = problems.iter().map(|problem| problem.path.to_string()).collect();
        let ready = if status.is_ready() { "ready" } else { "not ready" };
        let state = format!("{ready} [{}]", shown.join(" "));
        if self.changes.last().is_none_or(|last| last.split_once(": ").unwrap().1 != state) {
            self.changes.push(format!("{at:?}: {state}"));
        }
        status
    }

    /// Looks so often that the console has a new snapshot each time: it takes two in a second.
    async fn watch(&mut self, time: Duration) {
        let until = Instant::now() + time;
        // Between the instants at which anything happens here, so that all look at the same state.
        sleep(Duration::from_millis(7)).await;
        while Instant::now() < until {
            self.agree().await;
            sleep(Duration::from_millis(600)).await;
        }
    }
}

/// A sender that works while its endpoint does.
fn sender(endpoint: &Arc<AtomicBool>) -> ChildSpec {
    let endpoint = Arc::clone(endpoint);
    let run = move |ctx: Context| {
        let endpoint = Arc::clone(&endpoint);
        async move {
            while endpoint.load(Ordering::Relaxed) {
                ctx.ready();
                if ctx.run_until_cancelled(sleep(secs(1))).await.is_none() {
                    return Exit::Ok(());
                }
            }
            Err("no answer".into())
        }
    };
    worker("sender", run).readiness(Readiness::Signal).backoff(Backoff::constant(secs(2)))
}

#[tokio::test(start_paused = true)]
async fn about_a_pool_of_eight_senders_whose_endpoint_is_away() {
    let endpoint = Arc::new(AtomicBool::new(true));
    let pool = DynamicSupervisor::builder("senders").min_ready(4);
    let mut views = Views::of(app().child(pool).child(worker("api", idle))).await;
    let senders = views.tree.supervisor("senders").await.unwrap();
    for _ in 0..8 {
        senders.start_child(sender(&endpoint)).await.unwrap();
    }
    views.watch(secs(3)).await;
    endpoint.store(false, Ordering::Relaxed);
    views.watch(secs(20)).await;
    endpoint.store(true, Ordering::Relaxed);
    views.watch(secs(20)).await;
    let senders: Vec<_> = (1..=8).map(|number| format!("app/senders/sender#{number}")).collect();
    let down = format!("4.214s: not ready [app/senders {}]", senders.join(" "));
    // They have failed within the last five minutes.
    let again = format!("24.021s: ready [{}]", senders.join(" "));
    assert_eq!(views.changes, ["7ms: ready []", &down, &again]);
    views.tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn about_a_lease_that_is_lost_and_an_engine_that_is_away() {
    let leases = MemoryLeases::new();
    let job = worker("job", idle).lease(Lease::new("job", leases.clone()).jitter(0.0));
    let mut views = Views::of(app().child(job).child(worker("api", idle))).await;
    views.watch(secs(2)).await;
    leases.take_away("job");
    views.watch(secs(30)).await;
    leases.set_unreachable(true);
    views.watch(secs(60)).await;
    leases.set_unreachable(false);
    views.watch(secs(30)).await;
    // Losing it is no failure: the other one works. An engine that can't be asked is a problem.
    assert_eq!(views.changes, ["7ms: ready []", "33.021s: ready [app/job]", "98.428s: ready []"]);
    views.tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn about_a_stop_with_a_child_that_ignores_it() {
    let deaf = worker("deaf", async |_: Context| std::future::pending::<()>().await);
    let mut views = Views::of(app().child(deaf.shutdown(secs(5))).child(worker("api", idle))).await;
    views.watch(secs(1)).await;
    let tree = views.tree.clone();
    let stopped = tokio::spawn(async move { tree.stop("an update").await });
    tokio::task::yield_now().await;
    views.watch(Duration::from_millis(4_200)).await;
    assert_eq!(views.changes, ["7ms: ready []", "1.214s: not ready [app app/deaf app/api]"]);
    let error = stopped.await.unwrap().unwrap_err();
    assert!(matches!(&error, RunError::Forced { killed, .. } if killed.len() == 1), "{error}");
    assert_eq!(
        views.log.lines()[0],
        "WARN verger::shutdown: killed child=app/deaf incarnation=1 took=5s"
    );
    let readyz = views.probes.get("/readyz").await;
    assert_eq!(readyz.status, 503);
}
