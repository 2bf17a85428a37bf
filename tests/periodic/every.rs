//! When the runs of `every` begin.

use std::time::{Duration, SystemTime};

use verger::every;
use verger::periodic::RunContext;

use crate::common::start;
use crate::diary::{Diary, SECOND, eager, millis, secs, sleep};

#[tokio::test(start_paused = true)]
async fn the_first_run_begins_with_the_child_and_the_others_whole_periods_later() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        async move { diary.run(&run, secs(3)).await }
    });
    let tree = start(eager().child(job)).await;
    sleep(secs(29)).await;
    assert_eq!(diary.text(), "0 run 1, 3 done 1, 10 run 2, 13 done 2, 20 run 3, 23 done 3");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_run_can_wait_for_any_time() {
    for first in [secs(10), millis(1)] {
        let diary = Diary::new();
        let noted = diary.clone();
        let job = every("a", secs(10), move |_: RunContext| {
            noted.note("run");
            std::future::ready(())
        });
        let tree = start(eager().child(job.first_after(first))).await;
        sleep(first + secs(10)).await;
        let (first, second) = (first.as_secs_f64(), (first + secs(10)).as_secs_f64());
        assert_eq!(diary.lines(), [format!("{first} run"), format!("{second} run")]);
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_delay_counts_from_the_end_of_a_run() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let diary = noted.clone();
        async move { diary.run(&run, secs(3)).await }
    });
    let tree = start(eager().child(job.fixed_delay())).await;
    sleep(secs(30)).await;
    assert_eq!(diary.text(), "0 run 1, 3 done 1, 13 run 2, 16 done 2, 26 run 3, 29 done 3");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_is_given_its_planned_time_and_how_late_it_is() {
    let diary = Diary::new();
    let epoch = SystemTime::UNIX_EPOCH;
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        let planned = run.planned().duration_since(epoch).unwrap();
        noted.note(&format!("{} of {planned:?}, late by {:?}", run.number(), run.late()));
        assert_eq!(run.path().as_str(), "app/a");
        let late = if run.number() == 1 { secs(14) } else { Duration::ZERO };
        async move { tokio::time::sleep(late).await }
    });
    let job = job.overrun(verger::periodic::Overrun::Queue);
    let tree = start(eager().child(job.clock(diary.wall_clock(epoch + secs(1000))))).await;
    sleep(secs(21)).await;
    assert_eq!(
        diary.lines(),
        ["0 1 of 1000s, late by 0ns", "14 2 of 1010s, late by 4s", "20 3 of 1020s, late by 0ns"]
    );
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jitter_delays_each_run_and_not_the_plan() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        assert!(run.late() <= secs(5) + millis(1), "{:?}", run.late());
        noted.note("run");
        std::future::ready(())
    });
    let clock = diary.wall_clock(SystemTime::UNIX_EPOCH);
    let tree = start(eager().child(job.jitter(secs(5)).clock(clock))).await;
    sleep(secs(1_000) - SECOND).await;
    let lines = diary.lines();
    let at = |line: &String| line.split(' ').next().unwrap().parse::<f64>().unwrap();
    let periods: Vec<_> = lines.iter().map(|line| (at(line) / 10.0).floor() as usize).collect();
    assert_eq!(periods, (0..100).collect::<Vec<_>>(), "one run in each period");
    let offsets: f64 = lines.iter().map(|line| at(line) % 10.0).sum();
    assert!((100.0..400.0).contains(&offsets), "{offsets} of 250 expected");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn clones_of_a_spec_have_plans_of_their_own() {
    let diary = Diary::new();
    let noted = diary.clone();
    let job = every("a", secs(10), move |run: RunContext| {
        noted.note(&format!("{} {}", run.path().name(), run.number()));
        std::future::ready(())
    });
    let spec = job.spec();
    let tree = start(eager().child(spec.clone())).await;
    sleep(secs(4)).await;
    tree.start_child(spec.named("b")).await.unwrap();
    sleep(secs(12)).await;
    assert_eq!(diary.text(), "0 a 1, 4 b 1, 10 a 2, 14 b 2");
    tree.stop("done").await.unwrap();
}
