//! When the runs of `cron` begin, and what becomes of those that were missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use verger::periodic::{Cron, Missed, Overrun, RunContext};
use verger::{Exit, cron};

use crate::common::{killed, start};
use crate::diary::{Diary, eager, millis, runs_logged, secs, sleep};
use crate::log::Log;

/// A wall clock that a test can change.
#[derive(Clone)]
pub(crate) struct WallClock {
    began: tokio::time::Instant,
    from: SystemTime,
    ahead: Arc<AtomicI64>,
}

impl WallClock {
    pub(crate) fn at(time: &str) -> Self {
        let from = time.parse::<Timestamp>().unwrap().into();
        Self { began: tokio::time::Instant::now(), from, ahead: Arc::default() }
    }

    pub(crate) fn now(&self) -> SystemTime {
        let now = self.from + self.began.elapsed();
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { now - by } else { now + by }
    }

    /// Puts the clock forward, or back.
    fn change(&self, secs: i64) {
        self.ahead.fetch_add(secs, Ordering::Relaxed);
    }
}

/// Notes the planned time of each run, and when the wall clock says that it begins.
fn noting(
    diary: &Diary,
    clock: &WallClock,
    expression: &str,
    takes: Duration,
) -> Cron<impl Fn(RunContext) -> Boxed + Send + Sync + 'static + use<>> {
    let (noted, read) = (diary.clone(), clock.clone());
    let run = move |run: RunContext| -> Boxed {
        let time = |at: SystemTime| Timestamp::try_from(at).unwrap().strftime("%T").to_string();
        let (planned, now) = (time(run.planned()), time(read.now()));
        noted.note(&if planned == now { planned } else { format!("{planned} at {now}") });
        Box::pin(tokio::time::sleep(takes))
    };
    let clock = clock.clone();
    cron("a", expression, run).clock(move || clock.now())
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lines of the diary, without the time of the test.
fn runs(diary: &Diary) -> Vec<String> {
    let lines = diary.lines();
    lines.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_begin_at_the_times_of_the_expression_in_utc() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T11:52:30Z"));
    let tree = start(eager().child(noting(&diary, &clock, "*/15 * * * *", secs(1)))).await;
    sleep(secs(40 * 60)).await;
    assert_eq!(diary.lines(), ["450 12:00:00", "1350 12:15:00", "2250 12:30:00"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn six_fields_have_seconds_and_the_first_run_is_not_at_the_start() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
    let tree = start(eager().child(noting(&diary, &clock, "*/20 * * * * *", secs(1)))).await;
    sleep(secs(40)).await;
    assert_eq!(runs(&diary), ["12:00:20", "12:00:40"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_plan() {
    let clock = WallClock::at("2026-01-01T11:59:50Z");
    let diary = Diary::new();
    let (noted, read) = (diary.clone(), clock.clone());
    let job = cron("a", "* * * * *", move |run: RunContext| {
        noted.note(&format!("run {}", run.number()));
        std::future::ready(Exit::Err("no".into()))
    });
    let tree = start(eager().child(job.clock(move || read.now()))).await;
    sleep(secs(130)).await;
    assert_eq!(diary.text(), "10 run 1, 70 run 2, 130 run 3");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_skips_or_queues_the_next() {
    let expected: [(_, &[&str]); 3] = [
        (Overrun::Skip, &["12:01:00", "12:04:00"]),
        (Overrun::Queue, &["12:01:00", "12:03:00 at 12:03:30"]),
        (Overrun::Replace, &["12:01:00", "12:02:00", "12:03:00", "12:04:00"]),
    ];
    for (overrun, expected) in expected {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
        let job = noting(&diary, &clock, "* * * * *", secs(150)).overrun(overrun);
        let tree = start(eager().child(job)).await;
        sleep(secs(4 * 60)).await;
        assert_eq!(runs(&diary), expected, "{overrun:?}");
        tree.stop("done").await.or_else(killed).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn missed_once_within_also_makes_up_for_an_overrun() {
    for (deadline, expected) in
        [(30, ["12:01:00", "12:03:00 at 12:03:30"]), (29, ["12:01:00", "12:04:00"])]
    {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
        let job = noting(&diary, &clock, "* * * * *", secs(150));
        let job = job.missed(Missed::OnceWithin(secs(deadline)));
        let tree = start(eager().child(job)).await;
        sleep(secs(4 * 60)).await;
        assert_eq!(runs(&diary), expected, "{deadline}");
        tree.stop("done").await.or_else(killed).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_suspend_missed_runs_are_skipped_or_the_last_one_is_made_up_for() {
    for (missed, expected) in [
        (Missed::Skip, vec!["12:15:00", "15:45:00"]),
        (Missed::OnceWithin(secs(300)), vec!["12:15:00", "15:45:00"]),
        (Missed::OnceWithin(secs(3600)), vec!["12:15:00", "15:30:00 at 15:36:01", "15:45:00"]),
    ] {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:14:00Z"));
        let job = noting(&diary, &clock, "*/15 * * * *", secs(1)).missed(missed);
        let tree = start(eager().child(job)).await;
        sleep(secs(120)).await;
        // From 12:16 to 15:36, which is noticed within a minute.
        clock.change(200 * 60);
        sleep(secs(9 * 60 + 2)).await;
        assert_eq!(runs(&diary), expected, "{missed:?}");
        let info = tree.which_child("a").await.unwrap().schedule.unwrap();
        let skipped = if expected.len() == 2 { 13 } else { 12 };
        assert_eq!((info.runs, info.skipped), (expected.len() as u64, skipped));
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_long_suspend_the_plan_goes_on_at_once_and_a_thousand_runs_are_counted() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
    let tree = start(eager().child(noting(&diary, &clock, "* * * * * *", millis(1)))).await;
    sleep(secs(1)).await;
    clock.change(365 * 24 * 3600);
    sleep(secs(2)).await;
    assert_eq!(runs(&diary), ["12:00:01", "12:00:02", "12:00:03"]);
    let info = tree.which_child("a").await.unwrap().schedule.unwrap();
    assert_eq!((info.runs, info.skipped), (2, 1_000));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_late_by_a_minute_is_not_missed() {
    for (forward, expected) in [(60, vec!["12:15:00 at 12:16:00"]), (61, vec![])] {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:14:00Z"));
        let tree = start(eager().child(noting(&diary, &clock, "15 * * * *", secs(1)))).await;
        clock.change(forward);
        sleep(secs(60)).await;
        assert_eq!(runs(&diary), expected, "{forward}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_goes_back_repeats_no_run_of_fixed_hours() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:59:00Z"));
    let tree = start(eager().child(noting(&diary, &clock, "0 9-17 * * *", secs(1)))).await;
    sleep(secs(120)).await;
    assert_eq!(runs(&diary), ["13:00:00"]);
    // From 13:01 to 12:01.
    clock.change(-3600);
    sleep(secs(2 * 3600)).await;
    assert_eq!(runs(&diary), ["14:00:00"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_star_as_minute_or_hour_follows_a_wall_clock_that_goes_back() {
    for (expression, expected) in [
        ("*/20 * * * *", vec!["11:20:00", "11:40:00", "12:00:00"]),
        ("0 * * * *", vec!["12:00:00"]),
        ("30 */2 * * *", vec![]),
        ("0,30 10-14 * * *", vec![]),
    ] {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:59:00Z"));
        let tree = start(eager().child(noting(&diary, &clock, expression, secs(1)))).await;
        sleep(secs(120)).await;
        runs(&diary);
        // From 13:01 to 11:01.
        clock.change(-7200);
        sleep(secs(3600)).await;
        assert_eq!(runs(&diary), expected, "{expression}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_corrected_by_seconds_repeats_no_run() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:30Z"));
    let tree = start(eager().child(noting(&diary, &clock, "* * * * *", secs(1)))).await;
    sleep(secs(31)).await;
    clock.change(-50);
    sleep(secs(120)).await;
    assert_eq!(runs(&diary), ["12:01:00", "12:02:00"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_was_wrong_by_more_than_three_hours_begins_the_plan_anew() {
    let (diary, clock) = (Diary::new(), WallClock::at("2030-01-01T12:59:00Z"));
    let tree = start(eager().child(noting(&diary, &clock, "0 * * * *", secs(1)))).await;
    sleep(secs(120)).await;
    clock.change(-4 * 365 * 24 * 3600);
    sleep(secs(3600)).await;
    assert_eq!(runs(&diary), ["13:00:00", "14:00:00"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_missed_while_the_child_is_down_follow_the_same_rule() {
    for (missed, expected) in [
        (Missed::Skip, vec!["12:01:00", "12:06:00"]),
        (Missed::OnceWithin(secs(60)), vec!["12:01:00", "12:05:00 at 12:05:30", "12:06:00"]),
    ] {
        let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
        let tree =
            start(eager().child(noting(&diary, &clock, "* * * * *", secs(1)).missed(missed)));
        let tree = tree.await;
        sleep(secs(90)).await;
        tree.stop_child("a").await.unwrap();
        sleep(secs(240)).await;
        tree.otp().restart_child("a").await.unwrap();
        sleep(secs(30)).await;
        assert_eq!(runs(&diary), expected, "{missed:?}");
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_missed_before_the_first_start() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:30Z"));
    let job = noting(&diary, &clock, "0 * * * *", secs(1)).missed(Missed::OnceWithin(secs(3600)));
    let tree = start(eager().child(job)).await;
    sleep(secs(600)).await;
    assert_eq!(runs(&diary), [""; 0]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jitter_and_limits_apply_as_for_every() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:00:00Z"));
    let job = noting(&diary, &clock, "* * * * *", secs(600)).limit_run(secs(50));
    let tree = start(eager().child(job.jitter(millis(500)))).await;
    sleep(secs(300)).await;
    let info = tree.which_child("a").await.unwrap().schedule.unwrap();
    assert_eq!((info.runs, info.failed, info.skipped), (4, 4, 0));
    assert_eq!(info.last.unwrap().problem.as_deref(), Some("ran for longer than 50s"));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_logged() {
    let log = Log::at(LevelFilter::WARN);
    let (diary, clock) = (Diary::new(), WallClock::at("2026-01-01T12:14:00Z"));
    let tree = start(eager().child(noting(&diary, &clock, "*/15 * * * *", secs(1)))).await;
    clock.change(3600);
    sleep(secs(60)).await;
    assert_eq!(
        runs_logged(&log),
        ["WARN verger::periodic: skipped planned runs child=app/a incarnation=1 count=4 total=4 \
          cause=\"the wall clock was put forward, or the machine was suspended\""]
    );
    assert_eq!(runs(&diary), ["13:15:00"]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_status_names_the_expression_and_its_time_zone() {
    let (diary, clock) = (Diary::new(), WallClock::at("2026-07-01T12:00:00Z"));
    let job = noting(&diary, &clock, "30 4 * * *", secs(1)).in_tz("Europe/Berlin");
    let tree = start(eager().child(job)).await;
    let info = tree.which_child("a").await.unwrap().schedule.unwrap();
    assert_eq!(&*info.plan, "30 4 * * * in Europe/Berlin");
    let next = Timestamp::try_from(info.next.unwrap()).unwrap();
    assert_eq!(next.to_string(), "2026-07-02T02:30:00Z");
    tree.stop("done").await.unwrap();
}
