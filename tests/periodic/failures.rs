//! What a run that fails leads to.

use std::time::Duration;

use tracing::level_filters::LevelFilter;
use verger::periodic::{Overrun, RunContext};
use verger::{
    Backoff, Exit, ExitError, ExitKind, Lifecycle, RestartType, RunError, Shutdown, Supervisor,
    every,
};

use crate::common::start;
use crate::diary::{Diary, eager, millis, runs_logged, secs, sleep};
use crate::log::Log;

/// Notes its run, and fails in those with these numbers.
fn failing(diary: &Diary, fails: &'static [u64]) -> impl AsyncRun {
    let diary = diary.clone();
    move |run: RunContext| {
        diary.note(&format!("run {} in #{}", run.number(), run.incarnation()));
        let fails = fails.contains(&run.number());
        std::future::ready(if fails { Err("no".into()) } else { Ok(()) })
    }
}

trait AsyncRun: Fn(RunContext) -> std::future::Ready<Exit> + Send + Sync + 'static {}

impl<F: Fn(RunContext) -> std::future::Ready<Exit> + Send + Sync + 'static> AsyncRun for F {}

#[tokio::test(start_paused = true)]
async fn the_child_fails_and_the_next_run_is_at_the_next_planned_time() {
    let diary = Diary::new();
    let job = every("a", secs(10), failing(&diary, &[1, 2])).fail_after(1);
    let tree = start(eager().child(job)).await;
    sleep(secs(29)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 10 run 2 in #2, 20 run 3 in #3");
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.lifecycle), (3, Lifecycle::Active));
    assert_eq!(child.last_exit.unwrap().reason.to_string(), "failed: no");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_planned_during_the_backoff_are_skipped() {
    let diary = Diary::new();
    let log = Log::at(LevelFilter::WARN);
    let app = eager().defaults(|child| child.backoff(Backoff::constant(secs(25))));
    let job = every("a", secs(10), failing(&diary, &[1])).fail_after(1);
    let tree = start(app.child(job)).await;
    sleep(secs(49)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 30 run 2 in #2, 40 run 3 in #2");
    let line = "WARN verger::periodic: skipped planned runs child=app/a incarnation=2 count=2 total=2 \
                cause=\"the child was down\"";
    assert_eq!(runs_logged(&log), [line]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fixed_delay_counts_from_the_end_of_the_failed_run() {
    let diary = Diary::new();
    let job = every("a", secs(10), failing(&diary, &[1])).fixed_delay().fail_after(1);
    let app = eager().defaults(|child| child.backoff(Backoff::constant(secs(3))));
    let tree = start(app.child(job)).await;
    sleep(secs(20)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 10 run 2 in #2, 20 run 3 in #2");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_one_line_with_its_cause_and_the_child_stays_up() {
    let diary = Diary::new();
    let log = Log::at(LevelFilter::WARN);
    let job = every("a", secs(10), failing(&diary, &[1, 2, 4]));
    let tree = start(Supervisor::builder("app").child(job)).await;
    sleep(secs(39)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 10 run 2 in #1, 20 run 3 in #1, 30 run 4 in #1");
    let line = |in_a_row| {
        format!(
            "WARN verger::periodic: a run has failed child=app/a incarnation=1 cause=\"failed: no\" \
             failed_in_a_row={in_a_row}"
        )
    };
    assert_eq!(log.lines(), [line(1), line(2), line(1)], "and nothing else");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_run_is_a_failure_in_each_way() {
    for overrun in [Overrun::Skip, Overrun::Replace, Overrun::Allow(2)] {
        for fails in [false, true] {
            let mut job = every("a", secs(10), async |run: RunContext| {
                assert!(run.number() != 1, "oh");
            });
            if fails {
                job = job.fail_after(1);
            }
            let tree = start(eager().child(job.overrun(overrun))).await;
            sleep(secs(9)).await;
            let child = tree.which_child("a").await.unwrap();
            assert_eq!(child.incarnation, if fails { 2 } else { 1 }, "{overrun:?}");
            let problem = child.schedule.unwrap().last.unwrap().problem.unwrap();
            assert!(problem.starts_with("panicked"), "{problem}");
            tree.stop("done").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_before_it_returns_a_future_is_a_failure_too() {
    for overrun in [Overrun::Skip, Overrun::Allow(2)] {
        let job = every("a", secs(10), |run: RunContext| {
            assert!(run.number() != 1, "oh");
            async {}
        });
        let tree = start(eager().child(job.overrun(overrun).fail_after(1))).await;
        sleep(secs(9)).await;
        let child = tree.which_child("a").await.unwrap();
        let last = child.last_exit.unwrap().reason;
        assert_eq!((child.incarnation, last.exit_kind()), (2, ExitKind::Panicked));
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_run_is_dropped_is_a_failure() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }

    let job = every("a", secs(10), async |run: RunContext| {
        let _bomb = (run.number() == 1).then_some(Bomb);
        std::future::pending::<()>().await;
    });
    let tree = start(eager().child(job.overrun(Overrun::Replace).fail_after(1))).await;
    sleep(secs(10)).await;
    let child = tree.which_child("a").await.unwrap();
    let last = child.last_exit.unwrap().reason;
    assert_eq!((child.incarnation, last.exit_kind()), (2, ExitKind::Panicked));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_over_its_limit_is_dropped_immediately_without_a_grace() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(10), move |run: RunContext| {
            let diary = noted.clone();
            let takes = secs(if run.number() == 1 { 8 } else { 1 });
            async move { diary.run(&run, takes).await }
        });
        let tree = start(
            eager().child(
                job.limit_run(secs(5))
                    .overrun(overrun)
                    .fail_after(1)
                    .spec()
                    .shutdown(Shutdown::BrutalKill),
            ),
        )
        .await;
        sleep(secs(5) - millis(1)).await;
        assert_eq!(diary.text(), "0 run 1");
        sleep(secs(10)).await;
        assert_eq!(diary.text(), "5 dropped 1, 10 run 2, 11 done 2", "{overrun:?}");
        let child = tree.which_child("a").await.unwrap();
        let last = child.last_exit.unwrap().reason;
        assert_eq!(last.to_string(), "ran for longer than 5s");
        assert_eq!((child.incarnation, last.exit_kind()), (2, ExitKind::TimedOut));
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_fails_the_child_and_its_supervisor_with_the_first_run() {
    let job = every("a", secs(10), async |_: RunContext| -> Exit { Err(ExitError::fatal("port")) });
    let app = Supervisor::builder("app").child(job).build().unwrap();
    let error = app.run().await.unwrap_err();
    assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_declines_ends_the_job() {
    let job = every("a", secs(10), async |run: RunContext| -> Exit {
        if run.number() == 3 { Err(ExitError::ignore()) } else { Ok(()) }
    });
    let tree = start(eager().child(job)).await;
    sleep(secs(20)).await;
    let child = tree.which_child("a").await.unwrap();
    assert_eq!((child.lifecycle, child.incarnation), (Lifecycle::Stopped, 1));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_restart_type_of_the_child_applies() {
    let diary = Diary::new();
    let job = every("a", secs(10), failing(&diary, &[2])).fail_after(1);
    let job = job.spec().restart(RestartType::OnSuccess);
    let tree = start(eager().child(job)).await;
    sleep(secs(60)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 10 run 2 in #1");
    assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Errored);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_a_call_keeps_the_plan() {
    let diary = Diary::new();
    let tree = start(eager().child(every("a", secs(10), failing(&diary, &[])))).await;
    sleep(Duration::from_secs(4)).await;
    tree.stop_child("a").await.unwrap();
    tree.otp().restart_child("a").await.unwrap();
    sleep(secs(6)).await;
    assert_eq!(diary.text(), "0 run 1 in #1, 10 run 2 in #2");
    tree.stop("done").await.unwrap();
}
