use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::exit::ExitReason;
use crate::policy::{
    Backoff, ChildRules, EffectivePolicy, OnExhausted, RestartPolicy, RestartType,
};
use crate::status::{ChildKind, LastCall, LimitUse, NextAttempt, Node, samples};

fn lines(diff: &StatusDiff) -> Vec<String> {
    diff.to_string().lines().map(str::to_owned).collect()
}

/// The differences of a worker, if `change` is all that happens to it.
fn changed(change: impl FnOnce(&mut Node)) -> String {
    let (before, mut after) = (samples::wide(1), samples::wide(1));
    change(&mut after.root.children[0]);
    before.diff(&after).to_string()
}

#[test]
fn a_snapshot_has_no_differences_from_itself() {
    let (before, mut after) = (samples::service(), samples::service());
    after.root.child.age += Duration::from_secs(1);
    after.root.children[1].children[0].child.mailbox = None;
    let diff = before.diff(&after);

    assert!(diff.is_empty());
    assert_eq!(diff.to_string(), "no differences");
}

#[test]
fn differences_are_in_the_order_of_the_later_snapshot_with_removed_children_at_the_end() {
    let (before, mut after) = (samples::service(), samples::service());
    after.seq = 12;
    after.captured_at = UNIX_EPOCH + Duration::from_millis(1_500);
    let app = after.root.child.path.clone();
    let [db, ingest, cache, feed, ..] = &mut after.root.children[..] else { panic!("too few") };
    db.child.incarnation = 2;
    db.child.last_exit = Some(samples::ended(ExitReason::Normal));
    ingest.supervisor.as_mut().unwrap().restarts_in_period = 4;
    ingest.supervisor.as_mut().unwrap().limit_reached = false;
    ingest.children.clear();
    cache.child.healthy = Some(true);
    cache.child.status = Some("warm".to_owned());
    feed.child.lifecycle = Lifecycle::Active;
    feed.child.why = None;
    after.root.children.truncate(4);
    after.root.children.insert(2, samples::node(&app.join("late"), Vec::new()));
    let diff = before.diff(&after);

    assert_eq!(
        lines(&diff),
        [
            "~ app/db  incarnation 1 → 2  last_exit none → ended normally",
            "~ app/ingest  intensity 5/5 in 7m AT LIMIT → 4/5 in 7m",
            "+ app/late  active",
            "~ app/cache  health unhealthy → healthy  status none → \"warm\"",
            "~ app/feed  errored → active  why parked → none",
            "- app/ingest/writer  active",
            "- app/ingest/mqtt  restarting",
            "- app/migrate  stopped",
            "- app/http  activating",
            "- app/search  discovered",
            "- app/old  deactivating",
            "- app/report  stopped",
        ]
    );
    assert_eq!((diff.from_seq, diff.to_seq), (0, 12));
    assert_eq!(diff.elapsed, Duration::from_millis(1_500));
    assert_eq!(after.diff(&before).elapsed, Duration::ZERO);
    assert_eq!(
        lines(&after.diff(&before))[1],
        "~ app/ingest  intensity 4/5 in 7m → 5/5 in 7m AT LIMIT"
    );
}

#[cfg(feature = "serde")]
#[test]
fn a_difference_is_serialised_with_its_values() {
    let (before, mut after) = (samples::wide(2), samples::wide(2));
    after.root.children.remove(0);
    after.root.children[0].child.status = Some("warm".to_owned());

    assert_eq!(
        serde_json::to_value(before.diff(&after)).unwrap(),
        serde_json::json!({
            "from_seq": 0,
            "to_seq": 0,
            "elapsed_ms": 0,
            "children": [
                {
                    "path": "app/conn#2",
                    "change": "changed",
                    "facts": [{ "fact": "status", "before": null, "after": "warm" }],
                },
                { "path": "app/conn#1", "change": "removed", "lifecycle": "active" },
            ],
        })
    );
}

#[test]
#[rustfmt::skip]
fn each_fact_of_a_child_is_compared() {
    let next = NextAttempt {
        at: UNIX_EPOCH,
        attempt: 2,
        delay: Duration::from_millis(400),
        remaining: Duration::from_millis(100),
    };
    let places = || [("backoff", "feed.toml:12".into())].into();
    let failed = samples::ended(ExitReason::Failed("no route".into()));
    let (later, waits) = (UNIX_EPOCH + Duration::from_secs(1), vec!["db".to_owned(), "cache".to_owned()]);
    let period = Duration::from_secs(60);
    let limit = LimitUse { restarts: 5, max_restarts: 5, period, reached: true };
    let call = LastCall {
        call: "hold",
        by: "operator".into(),
        reason: Some("disk swap".into()),
        at: UNIX_EPOCH,
    };
    let supervisor = samples::service().root.supervisor;
    let kind = ChildKind::Supervisor;
    let line = |facts: &str| format!("~ app/conn#1  {facts}");

    assert_eq!(changed(|it| it.child.lifecycle = Lifecycle::Stopped), line("active → stopped"));
    assert_eq!(changed(|it| it.child.incarnation = 3), line("incarnation 1 → 3"));
    assert_eq!(changed(|it| it.child.started_at = Some(later)), line("incarnation 1 → 1, changed"));
    assert_eq!(changed(|it| it.child.held = true), line("held no → yes"));
    assert_eq!(changed(|it| it.child.waits_for = waits), line("waits_for none → db, cache"));
    assert_eq!(changed(|it| it.child.limit = Some(limit)), line("limit none → 5/5 in 1m AT LIMIT"));
    assert_eq!(changed(|it| it.child.last_call = Some(call)), line("last_call none → hold by operator: disk swap"));
    assert_eq!(changed(|it| it.child.why = Some("parked")), line("why none → parked"));
    assert_eq!(changed(|it| it.child.next = Some(next)), line("next none → attempt 2 after 400ms"));
    assert_eq!(changed(|it| it.child.last_exit = Some(failed)), line("last_exit none → failed: no route"));
    assert_eq!(changed(|it| it.child.healthy = Some(false)), line("health none → unhealthy"));
    assert_eq!(changed(|it| (it.child.healthy, it.child.problem) = (Some(false), Some("lag 9s".into()))), line("health none → unhealthy: lag 9s"));
    assert_eq!(changed(|it| it.child.status = Some("a".to_owned())), line("status none → \"a\""));
    assert_eq!(changed(|it| it.child.kind = kind), line("kind worker → supervisor"));
    assert_eq!(changed(|it| it.child.version = Some("1.2".into())), line("version none → 1.2"));
    assert_eq!(changed(|it| it.child.significant = true), line("significant no → yes"));
    assert_eq!(changed(|it| it.child.essential = false), line("essential yes → no"));
    assert_eq!(changed(|it| it.child.configured = places()), line("configured none → backoff feed.toml:12"));
    assert_eq!(
        changed(|it| it.supervisor = supervisor),
        line("intensity none → 0/5 in 7m  strategy none → one_for_one  on_child_failure none → no"),
    );
}

#[test]
fn each_part_of_a_policy_is_compared_with_its_source() {
    let second = Duration::from_secs(1);
    let lines = |before: RestartPolicy, after: RestartPolicy| {
        let rules = ChildRules::of(&Arc::default(), &Arc::default());
        let policy = |own| EffectivePolicy::new(Arc::clone(&rules), Some(Arc::new(own)));
        let (mut earlier, mut later) = (samples::wide(1), samples::wide(1));
        earlier.root.children[0].child.policy = Some(policy(before));
        later.root.children[0].child.policy = Some(policy(after));
        earlier.diff(&later).to_string()
    };
    let backoff = |delay| RestartPolicy::new().backoff(Backoff::constant(delay));

    assert_eq!(lines(backoff(second), backoff(second)), "no differences");
    assert_eq!(
        lines(backoff(second), backoff(second * 2)),
        "~ app/conn#1  backoff (child) → (child), changed",
        "the value differs in a part that the text doesn't have",
    );
    assert_eq!(
        lines(RestartPolicy::new(), backoff(second).restart(RestartType::Transient)),
        "~ app/conn#1  restart permanent (default) → transient (child)  \
         backoff (default) → (child)",
    );
    let limits = RestartPolicy::new().own_restarts(3, second).consecutive_restarts(4);
    assert_eq!(
        lines(limits.clone().failing_for(second), limits.on_exhausted(OnExhausted::Park)),
        "~ app/conn#1  failing_for 1s (child) → none  \
         on_exhausted escalate (default) → park (child)",
    );
}

#[test]
fn values_are_cut_so_that_a_line_has_80_columns() {
    let text = |length: usize| "a longer text ".repeat(10).chars().take(length).collect();
    let line = |before, after| {
        let (mut earlier, mut later) = (samples::wide(1), samples::wide(1));
        earlier.root.children[0].child.status = Some(text(before));
        later.root.children[0].child.status = Some(text(after));
        earlier.diff(&later).to_string()
    };

    assert_eq!(
        line(13, 30),
        "~ app/conn#1  status \"a longer text\" → \"a longer text a longer text a \""
            .replace("a \"", "a\""),
    );
    assert_eq!(
        line(13, 60),
        "~ app/conn#1  status \"a longer text\" → \"a longer text a longer text a l…\"",
    );
    assert_eq!(
        line(50, 60),
        "~ app/conn#1  status \"a longer text a longer…\" → \"a longer text a longer…\"",
    );
}

#[test]
fn a_hostile_text_stays_in_its_line() {
    assert_eq!(
        changed(|it| it.child.status = Some(samples::HOSTILE.to_owned())),
        r#"~ app/conn#1  status none → ""<script>alert('&')</script>\\n\u{1b}[31m\u{202e}…""#,
    );
}

#[test]
fn deep_and_wide_trees_are_compared_child_by_child() {
    samples::in_a_small_stack(|| {
        let (before, mut after) = (samples::deep(1_000), samples::deep(1_000));
        let mut node = &mut after.root;
        while !node.children.is_empty() {
            node.child.incarnation = 2;
            node = &mut node.children[0];
        }
        node.child.lifecycle = Lifecycle::Stopped;
        let diff = before.diff(&after);
        assert_eq!(diff.children.len(), 1_001);
        assert!(diff.to_string().ends_with("/s998/s999/w  active → stopped"));

        let (before, mut after) = (samples::wide(10_000), samples::wide(10_000));
        after.root.children.drain(..5_000);
        assert_eq!(before.diff(&after).children.len(), 5_000);
        assert_eq!(after.diff(&before).children.len(), 5_000);
    });
}
