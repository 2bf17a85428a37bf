//! How a periodic child ends.

use verger::periodic::{Overrun, RunContext};
use verger::{ExitReason, every};

use crate::common::{killed, start};
use crate::diary::{Diary, eager, millis, secs, sleep};

#[tokio::test(start_paused = true)]
async fn an_idle_child_ends_at_once() {
    let tree = start(eager().child(every("a", secs(10), async |_: RunContext| {}))).await;
    sleep(secs(4)).await;
    let began = tokio::time::Instant::now();
    tree.stop("done").await.unwrap();
    assert_eq!(began.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn a_run_has_the_grace_of_its_child_and_no_other_one_begins() {
    for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace] {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(10), move |run: RunContext| {
            let diary = noted.clone();
            async move { diary.run(&run, secs(25)).await }
        });
        let spec = job.overrun(overrun).spec().shutdown(secs(60));
        let tree = start(eager().child(spec)).await;
        sleep(secs(5)).await;
        tree.stop_child("a").await.unwrap();
        assert_eq!(diary.text(), "0 run 1, 25 done 1", "{overrun:?}");
        let exit = tree.which_child("a").await.unwrap().last_exit;
        assert!(exit.is_none_or(|exit| matches!(*exit.reason, ExitReason::Shutdown)));
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_longer_is_aborted() {
    for overrun in [Overrun::Skip, Overrun::Replace] {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(100), move |run: RunContext| {
            let diary = noted.clone();
            async move { diary.run(&run, secs(90)).await }
        });
        let tree = start(eager().child(job.overrun(overrun).spec().shutdown(secs(7)))).await;
        sleep(secs(5)).await;
        tree.stop("done").await.or_else(killed).unwrap();
        assert_eq!(diary.text(), "0 run 1, 12 dropped 1", "{overrun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_runs_are_helpers_which_are_aborted_when_the_child_has_ended() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        async move { diary.run(&run, secs(90)).await }
    });
    let tree = start(eager().child(job.overrun(Overrun::Allow(5)))).await;
    sleep(secs(15)).await;
    tree.stop("done").await.unwrap();
    let mut lines = diary.lines();
    lines.sort();
    assert_eq!(lines, ["0 run 1", "10 run 2", "15 dropped 1", "15 dropped 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_learns_of_the_cancellation() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(100), move |run: RunContext| {
        let diary = noted.clone();
        async move {
            run.cancelled().await;
            diary.note("cancelled");
        }
    });
    let tree = start(eager().child(job)).await;
    sleep(secs(3)).await;
    tree.stop("done").await.unwrap();
    assert_eq!(diary.text(), "3 cancelled");
}
