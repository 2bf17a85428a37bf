//! What several failed runs in a row lead to: an unhealthy child, or one that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::level_filters::LevelFilter;
use verger::periodic::{Every, Overrun, RunContext};
use verger::status::{EventKind, ScheduleInfo};
use verger::{
    Backoff, ChildSpec, Exit, ExitError, ExitKind, RunError, Supervisor, SupervisorHandle, every,
};

use crate::common::start;
use crate::diary::{Diary, SECOND, eager, millis, runs_logged, secs, sleep};
use crate::log::Log;

/// Whether the tree is ready, and what is wrong.
async fn seen(tree: &SupervisorHandle) -> (bool, Vec<String>) {
    let status = tree.status().await.unwrap();
    let problems = status.problems().iter().map(ToString::to_string).collect();
    (status.is_ready(), problems)
}

async fn schedule(tree: &SupervisorHandle) -> ScheduleInfo {
    *tree.which_child("a").await.unwrap().schedule.expect("it is periodic")
}

/// A job that fails for as long as the switch is on.
fn broken(
    period: std::time::Duration,
) -> (Arc<AtomicBool>, Every<impl Fn(RunContext) -> std::future::Ready<Exit> + Send + Sync>) {
    let is_broken = Arc::new(AtomicBool::new(true));
    let read = Arc::clone(&is_broken);
    let job = every("a", period, move |_: RunContext| {
        std::future::ready(if read.load(Ordering::Relaxed) { Err("no".into()) } else { Ok(()) })
    });
    (is_broken, job)
}

#[tokio::test(start_paused = true)]
async fn a_job_that_always_panics_for_an_hour_is_a_problem_and_restarts_nothing_until_it_succeeds()
{
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let log = Log::at(LevelFilter::INFO);
        let is_broken = Arc::new(AtomicBool::new(true));
        let read = Arc::clone(&is_broken);
        let job = every("a", secs(2), move |_: RunContext| {
            let is_broken = read.load(Ordering::Relaxed);
            async move {
                if is_broken {
                    // A panic that prints nothing.
                    std::panic::resume_unwind(Box::new("oh"));
                }
            }
        });
        let tree = start(Supervisor::builder("app").child(job.overrun(overrun))).await;
        sleep(secs(4) - millis(1)).await;
        assert_eq!(seen(&tree).await, (true, vec![]), "two runs have failed");
        sleep(millis(1)).await;
        let problem = "app/a: active, unhealthy: 3 runs in a row have failed: panicked: oh";
        assert_eq!(seen(&tree).await, (false, vec![problem.to_owned()]));

        sleep(secs(3_600 - 4)).await;
        let child = tree.which_child("a").await.unwrap();
        assert_eq!((child.incarnation, child.restarts, child.failures), (1, 0, 0));
        let runs = child.schedule.unwrap();
        assert_eq!((runs.runs, runs.failed, runs.failed_in_a_row), (1_801, 1_801, 1_801));
        let problem = "app/a: active, unhealthy: 1801 runs in a row have failed: panicked: oh";
        assert_eq!(seen(&tree).await, (false, vec![problem.to_owned()]));

        is_broken.store(false, Ordering::Relaxed);
        sleep(secs(2)).await;
        assert_eq!(seen(&tree).await, (true, vec![]));
        let runs = schedule(&tree).await;
        assert_eq!((runs.runs, runs.failed, runs.failed_in_a_row), (1_802, 1_801, 0));
        let lines = log.lines();
        let health: Vec<_> = lines.iter().filter(|line| line.contains("health")).collect();
        let span = "child{child=app/a incarnation=1}: verger::lifecycle";
        assert_eq!(
            health,
            [
                &format!(
                    "WARN {span}: unhealthy child=app/a incarnation=1 problem=\"3 runs in a row have failed: panicked: \
                     oh\""
                ),
                &format!("INFO {span}: healthy again child=app/a incarnation=1"),
            ]
        );
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn each_failed_run_is_one_line_in_every_kind_of_overrun() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let log = Log::at(LevelFilter::WARN);
        let (_, job) = broken(secs(10));
        let tree = start(Supervisor::builder("app").child(job.overrun(overrun))).await;
        sleep(secs(29)).await;
        let line = |in_a_row| {
            format!(
                "WARN verger::periodic: a run has failed child=app/a incarnation=1 cause=\"failed: no\" \
                 failed_in_a_row={in_a_row}"
            )
        };
        let unhealthy = "WARN verger::lifecycle: unhealthy child=app/a incarnation=1 problem=\"3 runs in a row have \
                         failed: no\"";
        assert_eq!(log.lines(), [line(1), line(2), line(3), unhealthy.to_owned()], "{overrun:?}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn becoming_unhealthy_and_healthy_again_are_events() {
    let (is_broken, job) = broken(secs(10));
    let mut app = Supervisor::builder("app").child(job).build().unwrap();
    let mut events = app.events();
    let tree = app.start().await.unwrap();
    sleep(secs(45)).await;
    is_broken.store(false, Ordering::Relaxed);
    sleep(secs(10)).await;
    tree.stop("done").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        if matches!(event.kind, EventKind::Unhealthy { .. } | EventKind::Healthy) {
            seen.push(event.kind.to_string());
        }
    }
    assert_eq!(seen, ["unhealthy: 3 runs in a row have failed: no", "healthy again"]);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_failed_runs_that_make_a_child_unhealthy_can_be_set() {
    let (is_broken, job) = broken(secs(10));
    let tree = start(Supervisor::builder("app").child(job.unhealthy_after(1))).await;
    let problem = "app/a: active, unhealthy: the last run has failed: no";
    assert_eq!(seen(&tree).await, (false, vec![problem.to_owned()]));
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.ready, child.healthy), (false, Some(false)));
    assert_eq!(child.problem.as_deref(), Some("the last run has failed: no"));
    is_broken.store(false, Ordering::Relaxed);
    sleep(secs(10)).await;
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.ready, child.healthy, child.problem), (true, None, None));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_inessential_child_is_a_problem_and_the_tree_is_ready() {
    let (_, job) = broken(secs(10));
    let job = ChildSpec::from(job).essential(false);
    let tree = start(Supervisor::builder("app").child(job)).await;
    sleep(secs(20)).await;
    let problem =
        "app/a: active, unhealthy: 3 runs in a row have failed: no (not essential)".to_owned();
    assert_eq!(seen(&tree).await, (true, vec![problem]));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_succeeds_begins_the_count_again() {
    let job = every("a", secs(10), async |run: RunContext| -> Exit {
        if run.number().is_multiple_of(3) { Ok(()) } else { Err("no".into()) }
    });
    let tree = start(Supervisor::builder("app").child(job.fail_after(3))).await;
    for count in 1..=100 {
        assert_eq!(schedule(&tree).await.failed_in_a_row, count % 3);
        assert_eq!(seen(&tree).await, (true, vec![]));
        sleep(secs(10)).await;
    }
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_replaced_neither_fails_nor_succeeds() {
    let job = every("a", secs(10), async |run: RunContext| -> Exit {
        if run.number() == 3 {
            std::future::pending::<()>().await;
        }
        Err("no".into())
    });
    let tree = start(Supervisor::builder("app").child(job.overrun(Overrun::Replace))).await;
    sleep(secs(29)).await;
    assert_eq!(schedule(&tree).await.failed_in_a_row, 2);
    sleep(SECOND).await;
    let runs = schedule(&tree).await;
    assert_eq!((runs.runs, runs.failed, runs.failed_in_a_row), (4, 3, 3));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restarted_child_counts_from_zero_and_is_healthy() {
    let (_, job) = broken(secs(10));
    let tree = start(Supervisor::builder("app").child(job)).await;
    sleep(secs(25)).await;
    assert!(!seen(&tree).await.0);
    tree.stop_child("a").await.unwrap();
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.healthy, child.problem), (None, None), "it isn't active");
    tree.otp().restart_child("a").await.unwrap();
    assert_eq!(schedule(&tree).await.failed_in_a_row, 0);
    assert_eq!(seen(&tree).await, (true, vec![]));
    sleep(secs(25)).await;
    assert_eq!(schedule(&tree).await.failed_in_a_row, 3);
    assert!(!seen(&tree).await.0);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fail_after_fails_the_child_with_the_last_cause_and_its_limit_applies() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let (diary, log) = (Diary::new(), Log::at(LevelFilter::WARN));
        let noted = diary.clone();
        let job = every("a", secs(10), move |run: RunContext| {
            noted.note(&format!("run {} in #{}", run.number(), run.incarnation()));
            let error = ExitError::from(format!("no {}", run.number()));
            std::future::ready(Exit::Err(error))
        });
        let spec = job.overrun(overrun).fail_after(3).spec();
        let spec = spec.backoff(Backoff::constant(secs(1))).own_restarts(1, secs(600));
        let app = Supervisor::builder("app").child(spec).build().unwrap();
        let error = app.run().await.unwrap_err();
        assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
        assert!(error.to_string().contains("failed: no 6"), "{error}");
        assert_eq!(
            diary.text(),
            "0 run 1 in #1, 10 run 2 in #1, 20 run 3 in #1, 30 run 4 in #2, 40 run 5 in #2, 50 run 6 in #2"
        );
        let lines = log.lines();
        let runs: Vec<_> = lines.iter().filter(|line| line.contains("a run has failed")).collect();
        let line = |run, in_a_row, incarnation| {
            format!(
                "WARN verger::periodic: a run has failed child=app/a incarnation={incarnation} cause=\"failed: no \
                 {run}\" failed_in_a_row={in_a_row}"
            )
        };
        // The line about the failure of the child has the cause of its last run.
        assert_eq!(runs, [&line(1, 1, 1), &line(2, 2, 1), &line(4, 1, 2), &line(5, 2, 2)]);
        for run in [3, 6] {
            let cause = format!("cause=\"failed: no {run}\"");
            let lines: Vec<_> = lines.iter().filter(|line| line.contains(&cause)).collect();
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("verger::restart"), "{lines:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_fails_the_child_whatever_the_count() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let job = every("a", secs(10), async |run: RunContext| -> Exit {
            match run.number() {
                1 => Err("no".into()),
                _ => Err(ExitError::fatal("the port is taken")),
            }
        });
        let job = job.overrun(overrun).fail_after(100);
        let began = tokio::time::Instant::now();
        let error = Supervisor::builder("app").child(job).build().unwrap().run().await.unwrap_err();
        assert!(error.to_string().contains("the port is taken"), "{error}");
        assert_eq!(began.elapsed(), secs(10), "{overrun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_of_a_child_that_stops_fails_nothing() {
    let job = every("a", secs(10), async |run: RunContext| -> Exit {
        run.cancelled().await;
        Err("interrupted".into())
    });
    let tree = start(eager().child(job)).await;
    sleep(secs(1)).await;
    tree.stop_child("a").await.unwrap();
    let child = tree.which_child("a").await.unwrap();
    assert_eq!(child.schedule.unwrap().failed, 1);
    assert!(child.last_exit.is_none_or(|last| last.reason.exit_kind() == ExitKind::Shutdown));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_a_job_that_always_fails_are_bounded_and_its_count_is_not() {
    let log = Log::at(LevelFilter::WARN);
    let (_, job) = broken(secs(1));
    let tree = start(Supervisor::builder("app").child(job)).await;
    sleep(secs(200)).await;
    let lines = runs_logged(&log);
    assert_eq!(lines.len(), 10, "{lines:?}");
    assert!(lines[9].contains("a run has failed; no more are logged for a while"), "{lines:?}");
    assert_eq!(schedule(&tree).await.failed_in_a_row, 201);
    tree.stop("done").await.unwrap();
}

#[cfg(feature = "cron")]
#[tokio::test(start_paused = true)]
async fn all_of_this_holds_for_cron() {
    let clock = crate::cron::WallClock::at("2026-01-01T12:00:30Z");
    let job = || {
        let clock = clock.clone();
        let job =
            verger::cron("a", "* * * * *", async |_: RunContext| -> Exit { Err("no".into()) });
        job.clock(move || clock.now())
    };
    let tree = start(Supervisor::builder("app").child(job())).await;
    sleep(secs(91)).await;
    assert_eq!(seen(&tree).await, (true, vec![]));
    sleep(secs(60)).await;
    let problem = "app/a: active, unhealthy: 3 runs in a row have failed: no";
    assert_eq!(seen(&tree).await, (false, vec![problem.to_owned()]));
    sleep(secs(3_600)).await;
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.schedule.unwrap().failed), (1, 63));
    tree.stop("done").await.unwrap();

    let tree = start(eager().child(job().fail_after(2))).await;
    sleep(secs(600)).await;
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.schedule.unwrap().failed), (6, 10));
    tree.stop("done").await.unwrap();
}
