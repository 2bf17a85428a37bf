use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::exit::ExitReason;

fn event(seq: u64, path: &str, kind: EventKind) -> Event {
    let at = UNIX_EPOCH + Duration::from_secs(seq);
    Event { seq, at, path: Path::from_text(path.to_owned()), incarnation: 1, kind }
}

fn moved(to: Lifecycle, reason: Option<ExitReason>) -> EventKind {
    let (from, after, wait) = (Lifecycle::Active, Duration::ZERO, None);
    EventKind::Moved { from, to, after, reason: reason.map(Arc::new), wait }
}

fn errored(text: &str) -> EventKind {
    moved(Lifecycle::Errored, Some(ExitReason::Failed(text.into())))
}

fn called(by: &str) -> EventKind {
    EventKind::Called { call: "stop_child", by: by.into(), reason: None }
}

fn secs(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn line(it: &LoggedEvent) -> String {
    let LoggedEvent { path, text, count, first_at, last_at, .. } = it;
    format!("{path} {text} ×{count} {}–{}", secs(*first_at), secs(*last_at))
}

fn lines(log: &EventLog) -> Vec<String> {
    log.kept.check();
    log.entries().map(line).collect()
}

fn path(text: &str) -> Path {
    Path::from_text(text.to_owned())
}

#[test]
fn repeated_events_are_counted_under_the_latest_text() {
    let mut log = EventLog::new(9);
    for seq in 1..=3 {
        log.record(&event(seq, "app/a", errored(&format!("no {seq}"))));
        log.record(&event(seq, "app/b", EventKind::Healthy));
    }
    let expected = ["app/a errored: failed: no 3 ×3 1–3", "app/b healthy again ×3 1–3"];
    assert_eq!(lines(&log), expected);
}

#[test]
fn an_event_after_a_quiet_time_begins_a_new_entry() {
    let mut log = EventLog::new(9);
    for seq in [1, 601, 1_202] {
        log.record(&event(seq, "app/a", EventKind::Healthy));
    }
    let expected = ["app/a healthy again ×2 1–601", "app/a healthy again ×1 1202–1202"];
    assert_eq!(lines(&log), expected);
    log.record(&event(1_203, "app/a", EventKind::Healthy));
    assert_eq!(lines(&log)[1], "app/a healthy again ×2 1202–1203");
}

#[test]
fn two_operators_who_do_the_same_both_stay_in_the_history() {
    let mut log = EventLog::new(9);
    for (seq, by) in [(1, "alice"), (2, "bob"), (3, "alice")] {
        log.record(&event(seq, "app/a", called(by)));
    }
    let expected =
        ["app/a stop_child called by bob ×1 2–2", "app/a stop_child called by alice ×2 1–3"];
    assert_eq!(lines(&log), expected);
}

/// Rule: the failure of an hour ago is there, although other children have done much since.
#[test]
fn a_flood_of_other_children_pushes_out_nothing_of_a_child() {
    let mut log = EventLog::new(100);
    log.record(&event(1, "app/gateway", errored("TLS certificate expired")));
    for seq in 2..=3_600 {
        let conn = format!("app/web/conn#{seq}");
        log.record(&event(seq, &conn, moved(Lifecycle::Active, None)));
        log.record(&event(seq, &conn, errored("reset")));
        log.record(&event(seq, &format!("app/{}", seq % 1_500), errored("away")));
    }
    log.kept.check();
    let found: Vec<_> = log.below(&path("app/gateway")).map(line).collect();
    assert_eq!(found, ["app/gateway errored: failed: TLS certificate expired ×1 1–1"]);
    assert_eq!(log.dropped_before(&path("app/gateway")), None);
    // Of the connections, the last hundred failures are kept.
    let failed = log.below(&path("app/web")).filter(|it| it.level == EventLevel::Warn).count();
    assert_eq!(failed, 100);
    assert_eq!(log.dropped_before(&path("app/web")).map(secs), Some(3_500));
    assert_eq!(log.dropped_before(&path("app/web/conn#7")).map(secs), Some(3_500));
    assert_eq!(log.dropped_before(&path("app")).map(secs), Some(3_500));
}

#[test]
fn the_lives_of_dynamic_children_are_counted_for_ten_seconds() {
    let mut log = EventLog::new(9);
    for seq in 1..=13 {
        let conn = format!("app/web/conn#{seq}/reader");
        log.record(&event(seq, &conn, moved(Lifecycle::Active, None)));
        log.record(&event(seq, &conn, moved(Lifecycle::Deactivating, None)));
        log.record(&event(seq, &conn, moved(Lifecycle::Stopped, Some(ExitReason::Normal))));
        log.record(&event(seq, &conn, EventKind::Removed));
    }
    let expected = [
        "app/web children started ×11 1–11",
        "app/web children exited normally ×11 1–11",
        "app/web children started ×2 12–13",
        "app/web children exited normally ×2 12–13",
    ];
    assert_eq!(lines(&log), expected);
    assert!(log.entries().all(|it| it.event == "lives"));
    log.record(&event(400, "app/web/conn#9", moved(Lifecycle::Active, None)));
    assert_eq!(lines(&log), ["app/web children started ×1 400–400"]);
    assert_eq!(log.dropped_before(&path("app")), None, "that they go is no loss");
}

#[test]
fn a_child_that_never_failed_is_the_first_to_lose_its_reserve() {
    let mut log = EventLog::new(1);
    log.record(&event(1, "app/failed", errored("no route")));
    for seq in 2..=2_003 {
        log.record(&event(seq, &format!("app/{seq}"), EventKind::Healthy));
    }
    log.kept.check();
    assert_eq!(log.entries().count(), 2_001, "2,000 in reserve, and one");
    let first: Vec<_> = log.entries().take(2).map(line).collect();
    assert_eq!(
        first,
        ["app/failed errored: failed: no route ×1 1–1", "app/4 healthy again ×1 4–4"]
    );
    assert_eq!(log.dropped_before(&path("app/3")).map(secs), Some(3));
    assert_eq!(log.dropped_before(&path("app/4")), None);
}

#[test]
fn the_child_with_the_most_entries_pays_for_the_bytes() {
    let mut log = EventLog::new(100_000);
    log.record(&event(1, "app/quiet", errored("no route")));
    let long = "é".repeat(3_000);
    for seq in 2..=2_000 {
        // Different reasons, so that they aren't folded.
        let (by, reason) = (format!("{seq}").into(), Some(long.as_str().into()));
        log.record(&event(seq, "app/loud", EventKind::Called { call: "hold", by, reason }));
    }
    log.kept.check();
    assert_eq!(log.below(&path("app/quiet")).count(), 1);
    assert!((350..420).contains(&log.below(&path("app/loud")).count()));
    let text = &log.entries().last().unwrap().text;
    assert!(text.ends_with("é…") && (TEXT - 1..=TEXT).contains(&text.len()), "{}", text.len());
}

#[test]
fn a_subtree_is_the_child_and_what_is_below_it() {
    let mut log = EventLog::new(9);
    for path in ["app/a", "app/ab", "app/a/b"] {
        log.record(&event(1, path, EventKind::Leaked));
    }
    let below: Vec<_> = log.below(&path("app/a")).map(|it| it.path.as_str()).collect();
    assert_eq!(below, ["app/a", "app/a/b"]);
}

proptest! {
    /// Every order of events keeps the invariants, the last entry of every child that is kept, and the order of places.
    #[test]
    fn the_invariants_hold_after_every_event(
        events in prop::collection::vec((0_u64..40, 0_usize..30, 0_usize..6), 1..400),
        capacity in 0_usize..20,
    ) {
        let mut log = EventLog::new(capacity);
        let mut at = 0;
        for (later, child, kind) in events {
            at += later;
            let path = if child < 20 { format!("app/{child}") } else { format!("app/web/conn#{child}") };
            let kind = match kind {
                0 => errored("no"),
                1 => moved(Lifecycle::Active, None),
                2 => moved(Lifecycle::Stopped, Some(ExitReason::Normal)),
                3 => EventKind::Healthy,
                4 => called(&format!("{}", at % 50)),
                _ => EventKind::Removed,
            };
            log.record(&event(at, &path, kind));
            log.kept.check();
            let last: Vec<_> = log.entries().map(|it| it.last_at).collect();
            prop_assert!(last.is_sorted());
        }
    }
}
