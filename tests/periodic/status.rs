//! What the status shows of a periodic child.

use std::time::SystemTime;

use verger::periodic::{Overrun, RunContext};
use verger::status::{RunOutcome, ScheduleInfo};
use verger::{Exit, SupervisorHandle, every};

use crate::common::start;
use crate::diary::{Diary, eager, secs, sleep};

async fn seen(tree: &SupervisorHandle) -> ScheduleInfo {
    *tree.which_child("a").await.unwrap().schedule.expect("it is periodic")
}

#[tokio::test(start_paused = true)]
async fn it_shows_the_last_run_and_the_next() {
    let diary = Diary::new();
    let epoch = SystemTime::UNIX_EPOCH;
    let job = every("a", secs(10), async |run: RunContext| -> Exit {
        tokio::time::sleep(secs(3)).await;
        if run.number() == 2 { Err("no".into()) } else { Ok(()) }
    });
    let job = job.clock(diary.wall_clock(epoch)).first_after(secs(1));
    let tree = start(eager().child(job)).await;

    let info = seen(&tree).await;
    assert_eq!((&*info.plan, info.running, info.runs, info.last), ("every 10s", 0, 0, None));
    assert_eq!(info.next, Some(epoch + secs(1)));

    sleep(secs(2)).await;
    let info = seen(&tree).await;
    assert_eq!((info.running, info.runs, info.next), (1, 0, Some(epoch + secs(11))));

    sleep(secs(3)).await;
    let last = seen(&tree).await.last.unwrap();
    assert_eq!((last.planned, last.began, last.took), (epoch + secs(1), epoch + secs(1), secs(3)));
    assert_eq!((last.outcome, last.problem), (RunOutcome::Done, None));

    sleep(secs(10)).await;
    let info = seen(&tree).await;
    assert_eq!((info.runs, info.failed, info.skipped), (2, 1, 0));
    let last = info.last.unwrap();
    assert_eq!((last.outcome, last.problem.as_deref()), (RunOutcome::Failed, Some("failed: no")));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_counts_what_was_skipped_replaced_and_aborted() {
    let long = |overrun| {
        every("a", secs(10), async |run: RunContext| {
            tokio::time::sleep(secs(if run.number() == 1 { 25 } else { 5 })).await;
        })
        .overrun(overrun)
    };
    let tree = start(eager().child(long(Overrun::Skip))).await;
    sleep(secs(26)).await;
    let info = seen(&tree).await;
    assert_eq!((info.runs, info.failed, info.skipped), (1, 0, 2));
    tree.stop("done").await.unwrap();

    let tree = start(eager().child(long(Overrun::Replace))).await;
    sleep(secs(11)).await;
    let info = seen(&tree).await;
    assert_eq!((info.runs, info.running), (1, 1));
    assert_eq!(info.last.unwrap().outcome, RunOutcome::Replaced);
    tree.kill("a").await.unwrap();
    sleep(secs(1)).await;
    let info = seen(&tree).await;
    assert_eq!((info.runs, info.running), (2, 0));
    assert_eq!(info.last.unwrap().outcome, RunOutcome::Aborted);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn at_a_fixed_delay_the_next_run_is_unknown_during_a_run() {
    let job = every("a", secs(10), async |_: RunContext| tokio::time::sleep(secs(3)).await);
    let tree = start(eager().child(job.fixed_delay())).await;
    let info = seen(&tree).await;
    assert_eq!((&*info.plan, info.next), ("10s after each run", None));
    sleep(secs(3)).await;
    assert!(seen(&tree).await.next.is_some());
    tree.stop("done").await.unwrap();
}

/// All but the time of the next run of `backup`, which depends on the time of the day.
#[cfg(feature = "cron")]
#[tokio::test(start_paused = true)]
async fn the_listing_of_the_chapter_is_what_the_status_shows() {
    const PAGE: &str = include_str!("../../book/src/periodic.md");
    let (_, section) = PAGE.split_once("\n## What the status shows\n").unwrap();
    let (_, listing) = section.split_once("```text\n").unwrap();
    let (listing, _) = listing.split_once("\n```").unwrap();

    let sync = async |run: RunContext| -> Exit {
        if run.number() == 2 { Err("connection refused".into()) } else { Ok(()) }
    };
    let sync = every("sync", secs(10), sync).clock(Diary::new().wall_clock(SystemTime::now()));
    let backup = verger::cron("backup", "30 4 * * *", async |_| ()).in_tz("Europe/Berlin");
    let tree = verger::Supervisor::builder("app").child(sync).child(backup).build().unwrap();
    let tree = tree.start().await.unwrap();
    sleep(secs(25)).await;
    let shown = tree.status().await.unwrap().to_string();
    let without_next = |text: &str| {
        let lines =
            text.trim_end().lines().map(|line| match line.split_once(" in Europe/Berlin") {
                Some((plan, _)) => format!("{plan} in Europe/Berlin"),
                None => line.to_owned(),
            });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(without_next(listing), without_next(&shown));
    tree.stop("done").await.unwrap();
}
