//! What becomes of local times that do not exist, or occur twice, in two time zones.
//!
//! | zone | clocks go forward | clocks go back |
//! | --- | --- | --- |
//! | Europe/Berlin | 2026-03-29, 02:00 to 03:00 | 2026-10-25, 03:00 to 02:00 |
//! | Australia/Lord_Howe | 2026-10-04, 02:00 to 02:30 | 2026-04-05, 02:00 to 01:30 |

use jiff::Timestamp;
use verger::cron;
use verger::periodic::RunContext;

use crate::common::start;
use crate::cron::WallClock;
use crate::diary::{Diary, eager, secs, sleep};

/// Returns the local times of the runs between two instants, with the offset from UTC.
async fn local_runs(zone: &str, expression: &str, from: &str, hours: u64) -> Vec<String> {
    let (diary, clock) = (Diary::new(), WallClock::at(from));
    let (noted, in_zone) = (diary.clone(), zone.to_owned());
    let job = cron("a", expression, move |run: RunContext| {
        let planned = Timestamp::try_from(run.planned()).unwrap().in_tz(&in_zone).unwrap();
        noted.note(&planned.strftime("%d %H:%M %:z").to_string());
        std::future::ready(())
    });
    let job = job.in_tz(zone).clock(move || clock.now());
    let tree = start(eager().child(job)).await;
    sleep(secs(hours * 3600)).await;
    tree.stop("done").await.unwrap();
    let lines = diary.lines();
    lines.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

const BERLIN: &str = "Europe/Berlin";
const LORD_HOWE: &str = "Australia/Lord_Howe";

#[tokio::test(start_paused = true)]
async fn berlin_goes_forward() {
    // From 00:30 to 05:30 on 29 March: 02:00 to 03:00 does not exist.
    let from = "2026-03-28T23:30:00Z";
    let table: [(&str, &[&str]); 7] = [
        ("30 2 * * *", &["29 03:00 +02:00"]),
        ("0 2 * * *", &["29 03:00 +02:00"]),
        ("30 1 * * *", &["29 01:30 +01:00"]),
        ("0 3 * * *", &["29 03:00 +02:00"]),
        (
            "0 * * * *",
            &["29 01:00 +01:00", "29 03:00 +02:00", "29 04:00 +02:00", "29 05:00 +02:00"],
        ),
        (
            "30 * * * *",
            &["29 01:30 +01:00", "29 03:30 +02:00", "29 04:30 +02:00", "29 05:30 +02:00"],
        ),
        ("0,30 2 * * *", &[]),
    ];
    for (expression, expected) in table {
        assert_eq!(local_runs(BERLIN, expression, from, 4).await, expected, "{expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn berlin_goes_back() {
    // From 00:30 to 04:30 on 25 October: 02:00 to 03:00 occurs twice.
    let from = "2026-10-24T22:30:00Z";
    let table: [(&str, &[&str]); 5] = [
        ("30 2 * * *", &["25 02:30 +02:00"]),
        ("0 2 * * *", &["25 02:00 +02:00"]),
        ("0 3 * * *", &["25 03:00 +01:00"]),
        (
            "0 * * * *",
            &[
                "25 01:00 +02:00",
                "25 02:00 +02:00",
                "25 02:00 +01:00",
                "25 03:00 +01:00",
                "25 04:00 +01:00",
            ],
        ),
        (
            "0,30 2 * * *",
            &["25 02:00 +02:00", "25 02:30 +02:00", "25 02:00 +01:00", "25 02:30 +01:00"],
        ),
    ];
    for (expression, expected) in table {
        assert_eq!(local_runs(BERLIN, expression, from, 5).await, expected, "{expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn lord_howe_goes_forward_by_half_an_hour() {
    // From 00:30 to 04:00 on 4 October: 02:00 to 02:30 does not exist.
    let from = "2026-10-03T14:00:00Z";
    let table: [(&str, &[&str]); 5] = [
        ("15 2 * * *", &["04 02:30 +11:00"]),
        ("0 2 * * *", &["04 02:30 +11:00"]),
        ("30 2 * * *", &["04 02:30 +11:00"]),
        (
            "*/30 * * * *",
            &[
                "04 01:00 +10:30",
                "04 01:30 +10:30",
                "04 02:30 +11:00",
                "04 03:00 +11:00",
                "04 03:30 +11:00",
                "04 04:00 +11:00",
            ],
        ),
        ("15 * * * *", &["04 01:15 +10:30", "04 03:15 +11:00"]),
    ];
    for (expression, expected) in table {
        assert_eq!(local_runs(LORD_HOWE, expression, from, 3).await, expected, "{expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn lord_howe_goes_back_by_half_an_hour() {
    // From 00:30 to 03:00 on 5 April: 01:30 to 02:00 occurs twice.
    let from = "2026-04-04T13:30:00Z";
    let table: [(&str, &[&str]); 4] = [
        ("45 1 * * *", &["05 01:45 +11:00"]),
        ("30 1 * * *", &["05 01:30 +11:00"]),
        ("0 2 * * *", &["05 02:00 +10:30"]),
        (
            "*/30 * * * *",
            &[
                "05 01:00 +11:00",
                "05 01:30 +11:00",
                "05 01:30 +10:30",
                "05 02:00 +10:30",
                "05 02:30 +10:30",
                "05 03:00 +10:30",
            ],
        ),
    ];
    for (expression, expected) in table {
        assert_eq!(local_runs(LORD_HOWE, expression, from, 3).await, expected, "{expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_weekly_run_moves_with_the_local_time() {
    let runs = local_runs(BERLIN, "30 4 * * SUN", "2026-03-21T00:00:00Z", 16 * 24).await;
    assert_eq!(runs, ["22 04:30 +01:00", "29 04:30 +02:00", "05 04:30 +02:00"]);
}
