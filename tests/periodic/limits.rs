//! `limit_run`: a run that takes too long is cancelled, has the grace of its child, and is dropped then.

use std::time::Duration;

use tracing::level_filters::LevelFilter;
use verger::periodic::{Every, Overrun, RunContext};
use verger::status::ScheduleInfo;
use verger::{Exit, ExitError, Shutdown, Supervisor, SupervisorHandle, every};

use crate::common::start;
use crate::diary::{Diary, eager, millis, runs_logged, secs, sleep};
use crate::log::Log;

const ALL: [Overrun; 4] = [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)];

async fn schedule(tree: &SupervisorHandle) -> ScheduleInfo {
    *tree.which_child("a").await.unwrap().schedule.expect("it is periodic")
}

/// A job that does nothing but sleep, every 100 s.
fn deaf(
    diary: &Diary,
    takes: Duration,
) -> Every<impl Fn(RunContext) -> Boxed + Send + Sync + 'static + use<>> {
    let noted = diary.clone();
    every("a", secs(100), move |run: RunContext| -> Boxed {
        let diary = noted.clone();
        Box::pin(async move { diary.run(&run, takes).await })
    })
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test(start_paused = true)]
async fn a_run_over_its_limit_is_cancelled_then_has_the_grace_and_is_dropped() {
    for overrun in ALL {
        let (diary, log) = (Diary::new(), Log::at(LevelFilter::WARN));
        let job = deaf(&diary, secs(50)).limit_run(secs(5)).overrun(overrun);
        let tree = start(eager().child(job.spec().shutdown(secs(7)))).await;
        sleep(secs(12) - millis(1)).await;
        assert_eq!(diary.text(), "0 run 1", "{overrun:?}");
        assert_eq!(schedule(&tree).await.running, 1);
        sleep(millis(1)).await;
        assert_eq!(diary.text(), "12 dropped 1", "{overrun:?}");
        let runs = schedule(&tree).await;
        assert_eq!((runs.running, runs.runs, runs.failed), (0, 1, 1));
        assert_eq!(runs.last.as_ref().unwrap().problem.as_deref(), Some("ran for longer than 5s"));
        assert_eq!(runs.last.unwrap().took, secs(12));
        assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
        assert_eq!(
            runs_logged(&log),
            [
                "WARN verger::periodic: a run has failed child=app/a incarnation=1 cause=\"ran for longer than 5s\" \
              failed_in_a_row=1"
            ]
        );
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_sees_that_it_is_cancelled_at_its_limit_and_its_child_is_not() {
    for overrun in ALL {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(100), move |run: RunContext| {
            let diary = noted.clone();
            async move {
                let (token, copy) = (run.token(), run.clone());
                assert!(!run.is_cancelled() && !token.is_cancelled());
                tokio::join!(
                    async {
                        copy.cancelled().await;
                        diary.note("cancelled");
                    },
                    async {
                        let done = run.run_until_cancelled(std::future::pending::<()>()).await;
                        diary.note(&format!("{done:?}"));
                    },
                    async {
                        token.cancelled().await;
                        diary.note("token");
                    },
                );
                assert!(run.is_cancelled() && run.token().is_cancelled());
                assert!(!run.context().is_cancelled() && !run.context().token().is_cancelled());
                // Cleaning up.
                tokio::time::sleep(secs(2)).await;
                diary.note("cleaned up");
            }
        });
        let tree = start(eager().child(job.limit_run(secs(5)).overrun(overrun))).await;
        sleep(secs(8)).await;
        let lines = diary.lines();
        let (mut seen, last) = (lines[..3].to_vec(), &lines[3..]);
        seen.sort();
        assert_eq!(seen, ["5 None", "5 cancelled", "5 token"], "{overrun:?}");
        assert_eq!(last, ["7 cleaned up"], "{overrun:?}");
        let runs = schedule(&tree).await;
        assert_eq!(
            (runs.runs, runs.failed),
            (1, 1),
            "it is over its limit, though it has returned"
        );
        assert_eq!(runs.last.unwrap().problem.as_deref(), Some("ran for longer than 5s"));
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_over_its_limit_has_timed_out_whatever_it_returns() {
    for overrun in ALL {
        for fatal in [false, true] {
            let job = every("a", secs(100), move |run: RunContext| async move {
                run.cancelled().await;
                Exit::Err(if fatal { ExitError::fatal("late") } else { ExitError::ignore() })
            });
            let tree = start(eager().child(job.limit_run(secs(5)).overrun(overrun))).await;
            sleep(secs(105)).await;
            let runs = schedule(&tree).await;
            assert_eq!((runs.runs, runs.failed), (2, 2), "{overrun:?}");
            assert_eq!(runs.last.unwrap().problem.as_deref(), Some("ran for longer than 5s"));
            assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
            tree.stop("done").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_within_its_limit_is_never_cancelled_and_succeeds() {
    for overrun in ALL {
        let job = every("a", secs(100), async |run: RunContext| -> Exit {
            tokio::time::sleep(secs(5) - millis(1)).await;
            if run.is_cancelled() { Err("cancelled".into()) } else { Ok(()) }
        });
        let tree = start(eager().child(job.limit_run(secs(5)).overrun(overrun))).await;
        sleep(secs(50)).await;
        let runs = schedule(&tree).await;
        assert_eq!((runs.runs, runs.failed), (1, 0), "{overrun:?}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn with_an_infinite_grace_a_run_is_cancelled_and_never_dropped() {
    for overrun in ALL {
        let diary = Diary::new();
        let job = deaf(&diary, secs(90)).limit_run(secs(5)).overrun(overrun);
        let tree = start(eager().child(job.spec().shutdown(Shutdown::Infinity))).await;
        sleep(secs(90)).await;
        assert_eq!(diary.text(), "0 run 1, 90 done 1", "{overrun:?}");
        let runs = schedule(&tree).await;
        assert_eq!((runs.runs, runs.failed), (1, 1));
        tree.stop_child("a").await.unwrap();
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_limited_run_is_cancelled_with_its_child() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace] {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(100), move |run: RunContext| {
            let diary = noted.clone();
            async move {
                run.cancelled().await;
                diary.note(&format!("cancelled {}", run.is_cancelled()));
            }
        });
        let tree = start(eager().child(job.limit_run(secs(50)).overrun(overrun))).await;
        sleep(secs(3)).await;
        tree.stop("done").await.unwrap();
        assert_eq!(diary.text(), "3 cancelled true", "{overrun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_replaced_within_the_grace_of_its_limit_has_failed() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        let takes = secs(if run.number() == 1 { 90 } else { 1 });
        async move { diary.run(&run, takes).await }
    });
    let job = job.limit_run(secs(8)).overrun(Overrun::Replace);
    let tree = start(eager().child(job.spec().shutdown(secs(60)))).await;
    sleep(secs(12)).await;
    assert_eq!(diary.text(), "0 run 1, 10 dropped 1, 10 run 2, 11 done 2");
    let runs = schedule(&tree).await;
    assert_eq!((runs.runs, runs.failed, runs.failed_in_a_row), (2, 1, 0));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runs_over_their_limit_are_failed_runs_in_a_row() {
    let diary = Diary::new();
    let job = deaf(&diary, secs(50)).limit_run(secs(5)).fail_after(2);
    let app = Supervisor::builder("app").child(job.spec().own_restarts(0, secs(60)));
    let error = app.build().unwrap().run().await.unwrap_err();
    assert!(error.to_string().contains("ran for longer than 5s"), "{error}");
    assert_eq!(diary.text(), "0 run 1, 10 dropped 1, 100 run 2, 110 dropped 2");
}

#[cfg(feature = "cron")]
#[tokio::test(start_paused = true)]
async fn the_limit_of_a_run_of_cron_works_likewise() {
    let (diary, clock) = (Diary::new(), crate::cron::WallClock::at("2026-01-01T11:59:50Z"));
    let noted = diary.clone();
    let job = verger::cron("a", "0 * * * *", move |run: RunContext| {
        let diary = noted.clone();
        async move {
            run.cancelled().await;
            diary.note("cancelled");
            diary.run(&run, secs(600)).await;
        }
    });
    let job = job.clock(move || clock.now()).limit_run(secs(30));
    let tree = start(eager().child(job)).await;
    sleep(secs(60)).await;
    assert_eq!(diary.text(), "40 cancelled, 40 run 1, 45 dropped 1");
    assert_eq!(schedule(&tree).await.failed, 1);
    tree.stop("done").await.unwrap();
}
