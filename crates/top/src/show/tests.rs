//! Descriptions of children, as they are printed.

use serde_json::{Value, json};

use super::*;
use crate::model::{Child, Events, Letters, Log, Plan};

/// 2026-01-31T12:00:00Z
const NOON: u64 = 1_769_860_800_000;

/// Reads the answer of a console, as it would arrive.
fn described(view: Value) -> String {
    let view: Child = serde_json::from_value(view).unwrap();
    plain(&describe(&view, NOON))
}

#[test]
fn a_child_that_waits_for_a_restart_is_described_with_everything_known() {
    let text = described(json!({
        "child": {
            "path": "app/ingest/mqtt", "kind": "worker", "restart": "transient", "version": "2.1",
            "lifecycle": "restarting", "since_ms": NOON - 1_000, "incarnation": 6, "restarts": 5, "failures": 4,
            "essential": true, "ready": false, "declared": false, "held": true,
            "status": "lag 12 ms", "why": "held", "explanation": "held by console: maintenance",
            "created_at_ms": NOON - 8_100_000, "started_at_ms": NOON - 1_120,
            "last_exit": {
                "incarnation": 6, "at_ms": NOON - 1_000, "lived_ms": 120,
                "reason": { "kind": "failed", "message": "failed: no route\u{1b}[31m to host" }
            },
            "next": { "attempt": 4, "at_ms": NOON + 4_200, "delay_ms": 5_000, "remaining_ms": 4_200 },
            "limit": { "restarts": 4, "max_restarts": 5, "period_ms": 60_000, "reached": true },
            "mailbox": { "len": 18, "capacity": 20 },
            "requires": ["db", "cache"], "waits_for": ["db"], "defined_at": "src/main.rs:12",
            "last_call": { "call": "hold", "by": "console", "reason": "maintenance", "at_ms": NOON - 60_000 },
            "policy": {
                "restart": { "value": "transient", "source": "spec" },
                "backoff": { "value": { "curve": "constant", "delay": "5s" }, "source": "file" }
            },
            "configured": { "backoff": "app.toml:12" }
        },
        "spec": { "shutdown": "5s", "activation_timeout_ms": 10_000, "watchdog_ms": null, "on_leak": "restart" },
        "events": [{
            "path": "app/ingest/mqtt", "incarnation": 6, "count": 12, "first_at_ms": NOON - 240_000,
            "last_at_ms": NOON - 1_000, "seq": 9, "text": "restarting in 5s (attempt 4)", "level": "warn"
        }],
        "log": {
            "incarnation": 6,
            "current": [{ "at_ms": NOON - 1_100, "level": "INFO", "message": "connecting", "fields": "to=10.0.0.1" }],
            "previous": [{ "at_ms": NOON - 9_000, "level": "ERROR", "message": "lost" }]
        }
    }));

    insta::assert_snapshot!(text);
}

#[test]
fn a_periodic_child_is_described_with_its_next_run_and_the_last() {
    let text = described(json!({
        "child": {
            "path": "app/backup", "kind": "worker", "restart": "permanent", "lifecycle": "active", "ready": true,
            "since_ms": NOON - 8_100_000, "incarnation": 1,
            "schedule": {
                "plan": "30 4 * * * in Europe/Berlin", "next_ms": NOON + 3_600_000, "running": 0, "runs": 12,
                "failed": 1, "skipped": 2,
                "last": { "planned_ms": NOON - 60_000, "began_ms": NOON - 60_000, "took_ms": 4_200,
                          "outcome": "failed", "problem": "ran for longer than 4s" }
            }
        }
    }));

    insta::assert_snapshot!(text);
}

#[test]
fn a_supervisor_is_described_with_its_limit_and_the_children_that_are_gone() {
    let text = described(json!({
        "child": {
            "path": "app/http", "kind": "supervisor", "restart": "permanent", "lifecycle": "active", "ready": true,
            "since_ms": NOON - 8_100_000, "incarnation": 1, "healthy": false, "problem": "no answer",
            "supervisor": {
                "strategy": "dynamic", "restarts_in_period": 2, "max_restarts": null, "period_ms": 5_000,
                "gone": [{ "path": "app/http/conn#7", "incarnation": 1, "at_ms": NOON - 2_000, "lived_ms": 900,
                           "reason": { "kind": "failed", "message": "failed: broken pipe" } }]
            }
        }
    }));

    insta::assert_snapshot!(text);
}

#[test]
fn lists_say_what_is_missing() {
    let kept = Events { missed: 2, entries: Vec::new() };
    assert_eq!(plain(&events(&kept, NOON)), "2 events were missed\n");
    assert_eq!(plain(&events(&Events::default(), NOON)), "no events\n");
    assert_eq!(plain(&log_lines(&Log::default(), 9)), "no log lines\n");
    assert_eq!(plain(&letters(&Letters::default())), "no dead letters\n");
    assert_eq!(plain(&plan(&Plan::default())), "the plan is empty\n");
}

#[test]
fn a_dead_letter_is_one_line() {
    let kept: Letters = serde_json::from_value(json!({
        "missed": 1,
        "letters": [{ "id": 3, "at_ms": NOON, "path": "app/writer", "reason": "mailbox_full", "error": null,
                      "event_type": "shop::demo::Order", "payload": "Order {\n number: 4 }", "replayable": true }]
    })).unwrap();
    assert_eq!(
        plain(&letters(&kept)),
        "1 older ones are not kept\n12:00:00 app/writer mailbox_full Order  Order {  number: 4 }\n"
    );
}
