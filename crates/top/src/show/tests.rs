//! Descriptions of children, as they are printed.

use serde_json::{Value, json};

use super::*;
use crate::model::{Child, Events, Incidents, Letters, Log, Plan, Status};

/// 2026-01-31T12:00:00Z
const NOON: u64 = 1_769_860_800_000;

/// Reads the answer of a console, as it would arrive.
fn described(view: Value) -> String {
    let view: Child = serde_json::from_value(view).unwrap();
    plain(&describe(&view, NOON, Order::OldestFirst))
}

#[test]
fn a_child_that_waits_for_a_restart_is_described_with_everything_known() {
    let text = described(json!({
        "child": {
            "path": "app/ingest/mqtt", "kind": "worker", "restart": "transient", "version": "2.1",
            "lifecycle": "restarting", "since_ms": NOON - 1_000, "incarnation": 6, "restarts": 5, "failures": 4,
            "essential": true, "ready": false, "declared": false, "held": true,
            "problems": [
                { "kind": "down", "problem": "restarting, held, attempt 4 in 4.2s, last: failed: no route to host",
                  "cause": "failed: no route to host", "since_ms": NOON - 1_000, "essential": true },
                { "kind": "mailbox", "problem": "18/20 messages for 30s", "since_ms": NOON - 30_000,
                  "essential": false }
            ],
            "status": "lag 12 ms", "why": "held", "explanation": "held by console: maintenance",
            "created_at_ms": NOON - 8_100_000, "started_at_ms": NOON - 1_120,
            "last_exit": {
                "incarnation": 6, "at_ms": NOON - 1_000, "lived_ms": 120,
                "reason": { "kind": "failed", "message": "failed: no route\u{1b}[31m to host" }
            },
            "next": { "attempt": 4, "at_ms": NOON + 4_200, "delay_ms": 5_000, "remaining_ms": 4_200 },
            "limit": { "restarts": 4, "max_restarts": 5, "period_ms": 60_000, "reached": true },
            "mailbox": { "len": 18, "capacity": 20, "full_since_ms": NOON - 30_000 },
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
    let listed = |events_of: &Events| plain(&events(events_of, NOON, Order::OldestFirst));
    assert_eq!(listed(&Events { missed: 2, ..Events::default() }), "2 events were missed\n");
    assert_eq!(plain(&log_lines(&Log::default(), 9)), "no log lines\n");
    assert_eq!(plain(&log_below(&[])), "no log lines\n");
    assert_eq!(plain(&letters(&Letters::default(), Order::OldestFirst)), "no dead letters\n");
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
        plain(&letters(&kept, Order::OldestFirst)),
        "1 older ones are not kept\n12:00:00 app/writer mailbox_full Order  Order {  number: 4 }\n"
    );
}

#[test]
fn a_child_that_stops_is_described_with_who_asked_and_the_grace_that_is_left() {
    let text = described(json!({
        "child": {
            "path": "app/exports", "kind": "worker", "restart": "permanent", "lifecycle": "deactivating",
            "since_ms": NOON - 2_000, "incarnation": 2, "ready": true, "started_at_ms": NOON - 100_000,
            "stopping": { "ends_ms": NOON + 4_200, "by": "alice (typed)", "reason": "new host" },
            "busy": { "total_ms": 12_000, "polls": 340, "longest_ms": 1_300, "long_at_ms": NOON - 60_000,
                      "polling_ms": 2_100 }
        }
    }));

    insta::assert_snapshot!(text);
}

/// Rule: only a server that has dropped nothing lets a reader say that nothing has happened.
#[test]
fn a_list_says_since_when_it_is_complete() {
    let listed = |answer: Value| {
        plain(&events(&serde_json::from_value(answer).unwrap(), NOON, Order::OldestFirst))
    };
    assert_eq!(listed(json!({ "entries": [] })), "no events\n");
    assert_eq!(
        listed(json!({ "dropped_before_ms": null, "entries": [] })),
        "no events since the program started\n"
    );
    let lives = json!({ "path": "app/http", "event": "lives", "count": 501, "level": "info",
                        "text": "children exited normally", "first_at_ms": NOON - 20_000,
                        "last_at_ms": NOON - 10_000 });
    assert_eq!(
        listed(json!({ "dropped_before_ms": NOON - 60_000, "entries": [lives] })),
        "older than 11:59:00: dropped\n   10s ago  app/http ×501 children exited normally in 10s\n"
    );
}

#[test]
fn incidents_are_printed_with_their_whole_cause_and_what_has_changed_before() {
    let cause = format!("failed: HTTP 503 from https://vendor.example.com/{}", "x".repeat(200));
    let known: Incidents = serde_json::from_value(json!({
        "from_ms": NOON - 900_000, "dropped_before_ms": NOON - 60_000, "incidents": [
            { "path": "app/rates", "children": 1, "now": true, "since_ms": NOON - 600_000, "last_ms": NOON - 1_000,
              "failures": 12, "attempt": 13, "next_ms": NOON + 3_200, "cause": cause,
              "problems": [
                  { "kind": "down", "problem": format!("restarting, attempt 13 in 3.2s, last: {cause}"), "cause": cause },
                  { "kind": "limit", "problem": "restarts used: 4/5 in 1m" }
              ],
              "changes": [
                  { "path": "app", "count": 1, "first_at_ms": NOON - 610_000, "last_at_ms": NOON - 610_000,
                    "event": "reloaded", "text": "reloaded by alice (header)" },
                  { "path": "app/rates", "count": 2, "first_at_ms": NOON - 30_000, "last_at_ms": NOON - 20_000,
                    "event": "called", "text": "restart by bob (typed): try again" }
              ] },
            { "path": "app/http/conn#9", "children": 7, "now": false, "since_ms": NOON - 480_000,
              "last_ms": NOON - 300_000, "failures": 7, "cause": "panicked at src/http.rs:4:1: boom" }
        ]
    })).unwrap();

    insta::assert_snapshot!(plain(&incidents(&known, NOON, None).0));
    let none = Incidents { from_ms: NOON - 900_000, ..Incidents::default() };
    assert_eq!(
        plain(&incidents(&none, NOON, None).0),
        "nothing is wrong, and nothing was since 11:45:00\n"
    );
}

/// A shop in which one of many sessions fails.
fn shop() -> Status {
    let session = |number: u64| {
        json!({ "path": format!("shop/sessions/session#{number}"), "kind": "worker", "restart": "temporary",
                "lifecycle": "active", "since_ms": NOON - 60_000 })
    };
    let mut sessions: Vec<_> = (0..500).map(session).collect();
    sessions.push(json!({
        "path": "shop/sessions/session#500", "kind": "worker", "restart": "transient", "lifecycle": "restarting",
        "next": { "attempt": 1, "at_ms": NOON + 900 },
        "last_exit": { "reason": { "kind": "failed", "message": "failed: the client has hung up" } },
        "problems": [{ "kind": "down", "problem": "restarting, attempt 1 in 0.9s, last: failed: the client has hung up",
                       "cause": "failed: the client has hung up" }]
    }));
    let cause = "failed: HTTP 503 from https://vendor.example.com/v1/rates?base=EUR&symbols=USD,GBP,JPY,CHF,SEK,NOK";
    serde_json::from_value(json!({
        "captured_at_ms": NOON,
        "root": {
            "path": "shop", "kind": "supervisor", "lifecycle": "active", "since_ms": NOON - 8_000,
            "supervisor": { "strategy": "one_for_one", "max_restarts": null, "child_limit": { "max": 12, "period": "5m" } },
            "children": [
                { "path": "shop/database", "kind": "worker", "restart": "permanent", "lifecycle": "active",
                  "since_ms": NOON - 8_100_000, "version": "16.4", "status": "pool 7/10" },
                { "path": "shop/sessions", "kind": "supervisor", "lifecycle": "active", "since_ms": NOON - 8_000,
                  "supervisor": { "strategy": "dynamic", "restarts_in_period": 5, "max_restarts": 5, "period_ms": 60_000 },
                  "children": sessions },
                { "path": "shop/rates", "kind": "worker", "restart": "permanent", "lifecycle": "restarting",
                  "restarts": 3, "next": { "attempt": 4, "at_ms": NOON + 800 },
                  "last_exit": { "reason": { "kind": "failed", "message": cause } },
                  "problems": [
                      { "kind": "down", "problem": format!("restarting, attempt 4 in 0.8s, last: {cause}"), "cause": cause },
                      { "kind": "limit", "problem": "restarts used: 3/3 in 1m AT LIMIT" }
                  ] }
            ]
        }
    })).unwrap()
}

/// Rule: a tree with thousands of connections is read on one screen, and what fails is in sight.
#[test]
fn the_tree_folds_dynamic_children_and_keeps_those_with_problems() {
    let text = tree(&shop(), Extent::default());
    assert_eq!(text.lines().map(|line| line.chars().count()).max(), Some(80));
    insta::assert_snapshot!(text);
}

#[test]
fn the_tree_is_written_as_deep_and_as_complete_as_wanted() {
    let lines = |all, depth| tree(&shop(), Extent { all, depth }).lines().count();
    // Two lines of `session#500` and four of `rates` aren't rows.
    assert_eq!(lines(true, None), 1 + 3 + 501 + 1 + 4);
    assert_eq!(lines(false, Some(0)), 1);
    insta::assert_snapshot!("one_level", tree(&shop(), Extent { all: false, depth: Some(1) }));
}
