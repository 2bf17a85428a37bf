//! What happens when a run is due and the one before is still running.

use tracing::level_filters::LevelFilter;
use verger::every;
use verger::periodic::{Overrun, RunContext};

use crate::common::{killed, start};
use crate::diary::{Diary, eager, millis, runs_logged, secs, sleep};
use crate::log::Log;

/// Returns what a job with a period of 10 s does in 59 s, if its first run takes 25 s and every other one 3 s.
async fn story(overrun: Overrun) -> String {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        let takes = secs(if run.number() == 1 { 25 } else { 3 });
        async move { diary.run(&run, takes).await }
    });
    let tree = start(eager().child(job.overrun(overrun))).await;
    sleep(secs(39)).await;
    let text = diary.text();
    tree.stop("done").await.unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn skip_leaves_out_what_is_due_meanwhile() {
    assert_eq!(story(Overrun::Skip).await, "0 run 1, 25 done 1, 30 run 2, 33 done 2");
    assert_eq!(Overrun::default(), Overrun::Skip);
}

#[tokio::test(start_paused = true)]
async fn queue_makes_up_for_one_run() {
    let expected = "0 run 1, 25 done 1, 25 run 2, 28 done 2, 30 run 3, 33 done 3";
    assert_eq!(story(Overrun::Queue).await, expected);
}

#[tokio::test(start_paused = true)]
async fn replace_drops_the_running_one() {
    let expected =
        "0 run 1, 10 dropped 1, 10 run 2, 13 done 2, 20 run 3, 23 done 3, 30 run 4, 33 done 4";
    assert_eq!(story(Overrun::Replace).await, expected);
}

#[tokio::test(start_paused = true)]
async fn allow_runs_some_beside_each_other() {
    let expected =
        "0 run 1, 10 run 2, 13 done 2, 20 run 3, 23 done 3, 25 done 1, 30 run 4, 33 done 4";
    assert_eq!(story(Overrun::Allow(2)).await, expected);
    let expected = "0 run 1, 25 done 1, 30 run 2, 33 done 2";
    assert_eq!(story(Overrun::Allow(1)).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_never_done_is_replaced_each_time() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        async move { diary.run(&run, secs(1_000_000)).await }
    });
    let tree = start(eager().child(job.overrun(Overrun::Replace))).await;
    sleep(secs(20)).await;
    assert_eq!(diary.text(), "0 run 1, 10 dropped 1, 10 run 2, 20 dropped 2, 20 run 3");
    tree.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn skipped_runs_are_logged_with_their_number() {
    let log = Log::at(LevelFilter::WARN);
    story(Overrun::Skip).await;
    assert_eq!(
        runs_logged(&log),
        ["WARN verger::periodic: skipped planned runs child=app/a incarnation=1 count=2 total=2 \
          cause=\"the run before takes too long\""]
    );
    story(Overrun::Queue).await;
    assert_eq!(
        runs_logged(&log),
        ["WARN verger::periodic: skipped planned runs child=app/a incarnation=1 count=1 total=1 \
          cause=\"the run before takes too long\""]
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_standstill_of_the_program_one_run_begins_and_the_log_says_why() {
    let standstill = "cause=\"the program stood still\"";
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(4)] {
        let log = Log::at(LevelFilter::WARN);
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(1), move |run: RunContext| {
            let diary = noted.clone();
            async move { diary.run(&run, millis(200)).await }
        });
        let tree = start(eager().child(job.overrun(overrun))).await;
        sleep(millis(500)).await;
        diary.text();
        // As if the program got SIGSTOP and, later, SIGCONT.
        tokio::time::advance(secs(1_000)).await;
        sleep(millis(400)).await;
        assert_eq!(diary.text(), "1000.5 run 2, 1000.7 done 2", "{overrun:?}");
        let expected = format!(
            "WARN verger::periodic: skipped planned runs child=app/a incarnation=1 count=999 total=999 {standstill}"
        );
        assert_eq!(runs_logged(&log), [expected], "{overrun:?}");
        tree.stop("done").await.unwrap();
    }

    // In the middle of a run.
    let log = Log::at(LevelFilter::WARN);
    let job = every("a", secs(1), async |_: RunContext| sleep(millis(200)).await);
    let tree = start(eager().child(job)).await;
    sleep(millis(100)).await;
    tokio::time::advance(secs(10)).await;
    sleep(millis(200)).await;
    let lines = runs_logged(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with(&format!("count=10 total=10 {standstill}")), "{lines:?}");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_always_too_slow_does_not_flood_the_log() {
    let log = Log::at(LevelFilter::WARN);
    let job = every("a", secs(1), async |_: RunContext| tokio::time::sleep(secs(3)).await);
    let tree = start(eager().child(job)).await;
    sleep(secs(200)).await;
    let lines = runs_logged(&log);
    assert_eq!(lines.len(), 10, "{lines:?}");
    assert!(lines[9].contains("skipped planned runs; no more are logged for a while"));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runs_without_an_await_leave_the_thread_to_others() {
    // Without a yield, the child would run for ever in one poll.
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
        let job = every("a", std::time::Duration::from_nanos(1), |_: RunContext| async {});
        let tree = start(eager().child(job.overrun(overrun))).await;
        tree.stop("done").await.unwrap();
    }
}
