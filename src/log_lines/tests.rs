//! The store and the layer, without a tree.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Span, debug, error, info, info_span, warn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::*;

/// Sets lines for this thread, as the only layer.
fn set(lines: &LogLines) -> DefaultGuard {
    set_default(tracing_subscriber::registry().with(lines.layer()))
}

fn child(path: &str, incarnation: u32) -> Span {
    info_span!(target: "verger::child", parent: None, "child", child = %path, incarnation)
}

fn shown(lines: &[LogLine]) -> Vec<String> {
    lines.iter().map(|line| format!("{} {}", line.message, line.fields).trim_end().into()).collect()
}

fn current(lines: &LogLines, path: &str) -> Vec<String> {
    shown(&lines.of(path).current)
}

fn previous(lines: &LogLines, path: &str) -> Vec<String> {
    shown(&lines.of(path).previous)
}

#[test]
fn the_lines_of_two_incarnations_are_kept_and_those_before_are_not() {
    let lines = LogLines::new();
    let _set = set(&lines);
    for incarnation in 1..=3 {
        child("app/db", incarnation).in_scope(|| info!(n = incarnation, "connecting"));
        warn!(target: "verger::restart", child = %"app/db", incarnation, attempt = 1, "restarting");
    }
    let kept = lines.of("app/db");
    assert_eq!(kept.incarnation, 3);
    assert_eq!(shown(&kept.current), ["connecting n=3", "restarting attempt=1"]);
    assert_eq!(shown(&kept.previous), ["connecting n=2", "restarting attempt=1"]);
    let numbers =
        |lines: &[LogLine]| -> Vec<u32> { lines.iter().map(|it| it.incarnation).collect() };
    assert_eq!((numbers(&kept.current), numbers(&kept.previous)), (vec![3, 3], vec![2, 2]));
    assert_eq!(lines.of("app"), ChildLines::default());
    assert_eq!(lines.of("//\n"), ChildLines::default(), "no path");
}

#[test]
fn a_line_that_announces_an_incarnation_is_one_of_its_lines() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 1).in_scope(|| info!("first"));
    info!(target: "verger::lifecycle", child = %"app/db", incarnation = 2, "starting");
    let second = child("app/db", 2);
    assert_eq!(
        (current(&lines, "app/db"), previous(&lines, "app/db")),
        (vec!["starting".to_owned()], vec!["first".to_owned()])
    );

    second.in_scope(|| info!("second"));
    info!(target: "verger::config", child = %"app/db", "configured");
    assert_eq!(current(&lines, "app/db"), ["starting", "second", "configured"]);
    assert_eq!(lines.of("app/db").current[2].incarnation, 2);
}

#[test]
fn a_late_line_of_the_incarnation_before_joins_its_lines() {
    let lines = LogLines::new();
    let _set = set(&lines);
    let first = child("app/db", 1);
    first.in_scope(|| info!("first"));
    let second = child("app/db", 2);
    second.in_scope(|| info!("second"));
    first.in_scope(|| info!("late"));
    info!(target: "verger::shutdown", child = %"app/db", incarnation = 1, "leaked child has ended");
    assert_eq!(previous(&lines, "app/db"), ["first", "late", "leaked child has ended"]);
    assert_eq!(current(&lines, "app/db"), ["second"]);
}

#[test]
fn a_child_that_is_added_again_begins_with_its_first_incarnation() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 7).in_scope(|| info!("before"));
    child("app/db", 1).in_scope(|| info!("again"));
    assert_eq!(
        (current(&lines, "app/db"), previous(&lines, "app/db")),
        (vec!["again".to_owned()], vec!["before".to_owned()])
    );
    child("app/db", 1).in_scope(|| info!("and again"));
    assert_eq!(
        (current(&lines, "app/db"), previous(&lines, "app/db")),
        (vec!["and again".to_owned()], vec!["again".to_owned()])
    );

    // A supervisor has no span.
    for incarnation in [3, 1] {
        info!(target: "verger::lifecycle", child = %"app/sub", incarnation, "active");
    }
    assert_eq!(lines.of("app/sub").incarnation, 1);
    assert_eq!(lines.of("app/sub").previous[0].incarnation, 3);
}

#[test]
fn a_line_belongs_to_the_child_around_it_through_any_spans_between() {
    let lines = LogLines::new();
    let _set = set(&lines);
    info!("before any child");
    info_span!("alone").in_scope(|| info!("in no child"));
    let db = child("app/db", 1);
    let request = db.in_scope(|| {
        info_span!("query").in_scope(|| info!("nested"));
        // As a span with a link: a root of its own.
        info_span!(parent: None, "request")
    });
    request.in_scope(|| info_span!("row").in_scope(|| info!("of a root span")));
    let linked = info_span!("linked");
    linked.follows_from(&db);
    linked.in_scope(|| info!("of a link"));
    let explicit = info_span!(parent: &db, "explicit");
    info!(parent: &explicit, "of an explicit parent");
    db.in_scope(|| child("app/db/own", 1).in_scope(|| info!("of its own child")));
    db.in_scope(|| {
        warn!(target: "verger::restart", child = %"app/db/own", incarnation = 1, "restarting");
    });
    db.in_scope(|| info!(target: "verger::circuit", name = "dns", from = "open", "changed"));

    let found = [
        "nested",
        "of a root span",
        "of a link",
        "of an explicit parent",
        "changed name=dns from=open",
    ];
    assert_eq!(current(&lines, "app/db"), found);
    assert_eq!(current(&lines, "app/db/own"), ["of its own child", "restarting"]);
    assert_eq!(lines.last(100).len(), 7, "and no others");
}

#[test]
fn a_line_of_verger_belongs_to_the_child_that_it_names() {
    let lines = LogLines::new();
    let _set = set(&lines);
    info!(target: "verger::lifecycle", child = %"app", "active");
    error!(target: "verger::restart", child = %"app/db", incarnation = 4, "giving up");
    info!(target: "other", child = %"app/db", "of another crate");
    warn!(target: "verger::lifecycle", child = %"app//x\n", "of no path");
    assert_eq!(current(&lines, "app"), ["active"]);
    assert_eq!(current(&lines, "app/db"), ["giving up"]);
    assert_eq!(lines.last(9).len(), 2);
}

#[test]
fn values_are_one_visible_line_and_quoted_where_they_need_it() {
    struct Bell;
    impl fmt::Debug for Bell {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\u{7}\u{202e}")
        }
    }
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 1).in_scope(|| {
        let text = "a \"b\"";
        info!(
            plain = "x", spaced = "a b", empty = "", equals = %"a=b", quoted = ?text, display = %text, number = -1,
            bell = ?Bell, html = "<script>", "two\nlines \u{1b}[2J"
        );
    });
    let line = &lines.of("app/db").current[0];
    assert_eq!(line.message, r"two\nlines \u{1b}[2J");
    assert_eq!(
        line.fields,
        r#"plain=x spaced="a b" empty="" equals="a=b" quoted="a \"b\"" display="a \"b\"" number=-1 bell=\u{7}\u{202e} html=<script>"#
    );
}

#[test]
fn an_error_is_shown_with_its_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("can't connect")]
    struct Connect(#[source] std::io::Error);
    let lines = LogLines::new();
    let _set = set(&lines);
    let failed = Connect(std::io::Error::other("no\troute"));
    child("app/db", 1).in_scope(|| {
        error!(error = &failed as &dyn std::error::Error, "failed");
    });
    assert_eq!(current(&lines, "app/db"), [r#"failed error="can't connect: no\troute""#]);
}

#[test]
fn a_value_that_panics_or_logs_while_it_is_shown_is_no_problem() {
    struct Panics;
    impl fmt::Display for Panics {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("in Display")
        }
    }
    /// A tracing subscriber isn't called again in one of its own calls, but a store may be read there.
    struct Reads(LogLines);
    impl fmt::Display for Reads {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            info!("inside");
            write!(f, "{}", self.0.last(9).len())
        }
    }
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 1).in_scope(|| {
        info!(panics = %Panics, after = 1, "one");
        info!(reads = %Reads(lines.clone()), "two");
    });
    let kept = current(&lines, "app/db");
    assert_eq!(kept.first().unwrap(), "one panics=(panicked) after=1");
    assert_eq!(kept.last().unwrap(), "two reads=1");
}

#[test]
fn a_long_line_ends_at_two_kibibytes() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 1).in_scope(|| {
        info!(field = "é".repeat(5_000), "short");
        info!(field = "unseen", "{}", "é".repeat(5_000));
        info!(first = "x".repeat(2_030), second = 22_222_222, "m");
    });
    let kept = lines.of("app/db").current;
    assert_eq!(kept[0].message, "short");
    assert_eq!(kept[0].fields, format!("field={}…", "é".repeat(1_017)));
    assert_eq!(kept[1].message, format!("{}…", "é".repeat(1_022)));
    for line in &kept {
        let bytes = line.message.len() + line.fields.len();
        assert!((2_044..=2_048).contains(&bytes), "{bytes}");
    }
}

#[test]
fn lines_are_bounded_for_each_incarnation() {
    let lines = LogLines::new().max_lines(3);
    let _set = set(&lines);
    let db = child("app/db", 1);
    db.in_scope(|| (0..10).for_each(|n| info!("{n}")));
    child("app/db", 2).in_scope(|| (10..12).for_each(|n| info!("{n}")));
    db.in_scope(|| info!("late"));
    assert_eq!(previous(&lines, "app/db"), ["8", "9", "late"]);
    assert_eq!(current(&lines, "app/db"), ["10", "11"]);
}

#[test]
fn the_child_with_the_oldest_last_line_is_removed() {
    let lines = LogLines::new().max_children(2);
    let _set = set(&lines);
    for path in ["app/a", "app/b", "app/a", "app/c"] {
        child(path, 1).in_scope(|| info!("line"));
    }
    // A child that only starts takes no place.
    for n in 0..10 {
        drop(child(&format!("app/quiet{n}"), 1));
    }
    assert_eq!(lines.of("app/b"), ChildLines::default());
    assert_eq!([lines.below("app/a", 9).len(), lines.below("app/c", 9).len()], [2, 1]);
}

#[test]
fn bytes_are_bounded_and_counted_exactly() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/a", 1).in_scope(|| info!("line"));
    let (_, each) = lines.shared.store.lock().size();
    let lines = lines.max_bytes(4 * each);
    for path in ["app/b", "app/c", "app/d"] {
        child(path, 1).in_scope(|| info!("line"));
    }
    assert_eq!(lines.shared.store.lock().size(), (4, 4 * each));

    child("app/e", 1).in_scope(|| info!("line"));
    assert_eq!(lines.shared.store.lock().size(), (4, 4 * each));
    assert_eq!(lines.of("app/a"), ChildLines::default());

    // One child alone loses its oldest lines, of the incarnation before first.
    for incarnation in 1..=3 {
        child("app/e", incarnation).in_scope(|| (0..3).for_each(|_| info!("line")));
    }
    assert_eq!(lines.shared.store.lock().size(), (1, 4 * each));
    assert_eq!([current(&lines, "app/e").len(), previous(&lines, "app/e").len()], [3, 1]);

    let lines = lines.max_bytes(0);
    child("app/e", 3).in_scope(|| info!("line"));
    assert_eq!(lines.shared.store.lock().size(), (1, 0));
    assert_eq!(lines.last(9), []);
}

#[test]
fn the_last_lines_of_a_tree_are_in_order() {
    let lines = LogLines::new();
    let _set = set(&lines);
    let [a, b, old, other] = ["app/a", "app/a/b", "app/a", "app/ab"].map(|path| child(path, 1));
    let spans = [&a, &b, &other, &old, &b, &a];
    for (n, span) in spans.into_iter().enumerate() {
        span.in_scope(|| info!("{n}"));
    }
    assert_eq!(shown(&lines.last(4)), ["2", "3", "4", "5"]);
    assert_eq!(shown(&lines.below("app/a", 9)), ["0", "1", "3", "4", "5"]);
    assert_eq!(shown(&lines.below("app/a", 2)), ["4", "5"]);
    assert_eq!(shown(&lines.below("app/a/b", 9)), ["1", "4"]);
    assert_eq!(lines.below("ap", 9), []);
    assert_eq!(lines.last(0), []);
}

#[test]
fn only_lines_of_the_level_are_kept_and_spans_at_each_level() {
    for (level, kept) in [(LogLevel::Error, 1), (LogLevel::Info, 2), (LogLevel::Debug, 3)] {
        let lines = LogLines::new().level(level);
        let _set = set(&lines);
        let db = child("app/db", 1);
        db.in_scope(|| (error!("e"), info!("i"), debug!("d")));
        assert_eq!(lines.last(9).len(), kept, "{level}");
    }
}

#[test]
fn a_filter_of_another_layer_changes_nothing_and_a_filter_of_its_own_applies() {
    let quiet = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
    let quiet = quiet.with_filter(EnvFilter::new("error"));
    let (lines, filtered) = (LogLines::new(), LogLines::new().level(LogLevel::Trace));
    let filter = EnvFilter::new("warn,verger::child=info,mine=debug");
    let layers = tracing_subscriber::registry()
        .with(quiet)
        .with(lines.layer())
        .with(filtered.layer().with_filter(filter));
    let _set = set_default(layers);
    child("app/db", 1).in_scope(|| {
        info_span!("between").in_scope(|| info!("info"));
        debug!(target: "mine", "debug");
        warn!("warn");
    });
    assert_eq!(current(&lines, "app/db"), ["info", "warn"]);
    assert_eq!(current(&filtered, "app/db"), ["debug", "warn"]);
}

#[cfg(feature = "serde")]
#[test]
fn a_line_is_shown_and_serialised() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 3).in_scope(|| warn!(target: "db", port = 1, "down"));
    let mut line = lines.last(1).remove(0);
    assert_eq!(line.to_string(), "warn db: down port=1");
    line.at = UNIX_EPOCH + Duration::from_millis(1_500);
    let json = serde_json::json!({
        "at_ms": 1500, "level": "warn", "target": "db", "path": "app/db", "incarnation": 3, "message": "down", "fields": "port=1",
    });
    assert_eq!(serde_json::to_value(&line).unwrap(), json);
    let kept = ChildLines { incarnation: 3, current: vec![line], previous: vec![] };
    let kept = serde_json::to_value(kept).unwrap();
    assert_eq!(kept, serde_json::json!({ "incarnation": 3, "current": [json], "previous": [] }));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_line_is_tokios() {
    let lines = LogLines::new();
    let _set = set(&lines);
    let db = child("app/db", 1);
    db.in_scope(|| info!("first"));
    tokio::time::advance(Duration::from_secs(5)).await;
    db.in_scope(|| info!("second"));
    let kept = lines.last(2);
    assert_eq!(kept[1].at.duration_since(kept[0].at).unwrap(), Duration::from_secs(5));
}

/// A line of the crate `log`, as `tracing-log` passes it on.
#[test]
fn a_line_of_the_crate_log_has_its_own_target() {
    let lines = LogLines::new();
    let _set = set(&lines);
    child("app/db", 1).in_scope(|| {
        info!(target: "log", { log.target = "hyper::client", log.line = 7, n = 1 }, "pooled");
    });
    let line = lines.last(1).remove(0);
    assert_eq!((&*line.target, &*line.message, &*line.fields), ("hyper::client", "pooled", "n=1"));
}

#[test]
fn a_line_at_the_end_of_a_thread_is_no_problem() {
    struct LogsLate(LogLines, Option<DefaultGuard>);
    impl Drop for LogsLate {
        fn drop(&mut self) {
            child("app/db", 1).in_scope(|| info!("late"));
            drop(self.0.last(1));
        }
    }
    thread_local!(static LATE: RefCell<Option<LogsLate>> = const { RefCell::new(None) });
    let lines = LogLines::new();
    let thread = std::thread::spawn(move || {
        let set = set(&lines);
        LATE.set(Some(LogsLate(lines, Some(set))));
        LATE.with_borrow(|late| assert!(late.as_ref().is_some_and(|late| late.1.is_some())));
    });
    thread.join().unwrap();
}
