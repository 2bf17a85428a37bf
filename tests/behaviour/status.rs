//! The status of a running tree as text, JSON and values.

use std::time::Duration;

use tokio::time::sleep;
use verger::policy::OnExhausted;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, RestartType, Strategy, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker,
};

use crate::common::{End, FakeChildren, NextStart, settle};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").defaults(|child| child.backoff(Backoff::constant(secs(5))))
}

/// A child that idles and sets `status` as its own status.
fn says(name: &str, status: &'static str) -> ChildSpec {
    worker(name, move |ctx: Context| async move {
        ctx.set_status(status);
        ctx.cancelled().await;
    })
}

async fn text(handle: &SupervisorHandle) -> Vec<String> {
    let text = handle.status().await.unwrap().to_string();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_healthy_tree_is_one_line_per_child() {
    let fakes = FakeChildren::new();
    let ingest = Supervisor::builder("ingest")
        .strategy(Strategy::RestForOne)
        .restarts(3, secs(90))
        .child(fakes.child("mqtt"))
        .child(fakes.child("writer").restart(RestartType::Transient));
    let app = app()
        .child(says("db", "pool 8/10"))
        .child(fakes.child("http"))
        .child(ingest)
        .child(fakes.child("migrate").restart(RestartType::Temporary));
    let app = start(app).await;
    sleep(secs(8_100)).await;

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 2h15m  6 children",
            "├─ db                  permanent    active       up 2h15m  \"pool 8/10\"",
            "├─ http                permanent    active       up 2h15m",
            "├─ ingest              rest_for_one active       up 2h15m  0/3 in 90s",
            "│  ├─ mqtt             permanent    active       up 2h15m",
            "│  └─ writer           transient    active       up 2h15m",
            "└─ migrate             temporary    active       up 2h15m",
        ]
    );
    assert_eq!(
        text(&app.supervisor("ingest").await.unwrap()).await,
        [
            "app/ingest  rest_for_one 0/3 in 90s  active  up 2h15m  2 children",
            "├─ mqtt                permanent    active       up 2h15m",
            "└─ writer              transient    active       up 2h15m",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_does_not_run_shows_its_strategy() {
    let fakes = FakeChildren::new();
    let ingest = Supervisor::builder("ingest").strategy(Strategy::RestForOne);
    let conns = verger::DynamicSupervisor::builder("conns");
    let app = start(app().child(ingest.child(fakes.child("mqtt"))).child(conns)).await;
    for name in ["ingest", "conns"] {
        app.stop_child(name).await.unwrap();
    }
    let lines = text(&app).await;
    let words = lines[1..].iter().map(|line| line.split_whitespace().skip(1).take(3));
    let words: Vec<_> = words.map(|words| words.collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(words, ["ingest rest_for_one stopped", "conns dynamic stopped"], "{lines:?}");
    app.stop("done").await.unwrap();
}

/// The example in the documentation of `Status`.
#[tokio::test(start_paused = true)]
async fn a_waiting_child_shows_delay_reason_and_attempt() {
    let fakes = FakeChildren::new();
    let ingest = Supervisor::builder("ingest")
        .strategy(Strategy::RestForOne)
        .child(fakes.child("writer").backoff(Backoff::none()))
        .child(fakes.child("mqtt").backoff(Backoff::constant(secs(5))));
    let app = app().child(says("db", "pool 8/10")).child(ingest).child(fakes.child("http"));
    let app = start(app).await;
    sleep(secs(8_062)).await;
    for _ in 0..2 {
        fakes.end("writer", End::Panic).await;
    }
    sleep(secs(23)).await;
    fakes.next_starts("mqtt", [NextStart::Error; 4]);
    fakes.end("mqtt", End::Error).await;
    sleep(Duration::from_millis(15_800)).await;

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 2h15m  5 children, 1 restarting",
            "├─ db                  permanent    active       up 2h15m  \"pool 8/10\"",
            "├─ ingest              rest_for_one active       up 2h15m  12 in 6m for each",
            "│  ├─ writer           permanent    active       up 38s  restarts=2  2/12 in 5m",
            "│  │     last: panicked: writer panicked",
            "│  └─ mqtt             permanent    RESTARTING   retry in 4.2s (attempt 4)",
            "│        restarts=5  1/12 in 5m  last: activation failed: no start",
            "└─ http                permanent    active       up 2h15m",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_parked_child_and_the_siblings_down_with_it_are_marked() {
    let fakes = FakeChildren::new();
    let app = app()
        .restarts(1, secs(60))
        .on_exhausted(OnExhausted::Park)
        .strategy(Strategy::RestForOne)
        .child(fakes.child("a"))
        .child(fakes.child("b"))
        .child(fakes.child("c"))
        .child(fakes.child("d").requires("c"));
    let app = start(app).await;
    fakes.end("b", End::Panic).await;
    let waiting = text(&app).await;
    sleep(secs(5)).await;
    settle().await;
    fakes.end("b", End::Error).await;
    sleep(secs(61)).await;

    assert_eq!(
        waiting,
        [
            "app  rest_for_one 1/1 in 1m AT LIMIT  active  up 0s",
            "│  4 children, 1 restarting, 2 stopped",
            "├─ a                   permanent    active       up 0s",
            "├─ b                   permanent    RESTARTING   retry in 5s (attempt 1)",
            "│     last: panicked: b panicked",
            "├─ c                   permanent    stopped      for 0s  stopped with its group",
            "└─ d                   permanent    stopped      for 0s  stopped with its group",
        ]
    );
    assert_eq!(
        text(&app).await,
        [
            "app  rest_for_one 0/1 in 1m  active  up 1m  4 children, 1 errored, 2 stopped",
            "├─ a                   permanent    active       up 1m",
            "├─ b                   permanent    ERRORED      for 1m  restarts=1  given up",
            "│     last: failed: b failed",
            "├─ c                   permanent    stopped      for 1m  restarts=1",
            "│     stopped with its group",
            "└─ d                   permanent    stopped      for 1m  restarts=1",
            "      stopped with its group",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_manually_stopped_child_is_not_shown_as_failed() {
    let fakes = FakeChildren::new();
    let ingest = Supervisor::builder("ingest").child(fakes.child("mqtt"));
    let app = start(app().child(ingest).child(fakes.child("http"))).await;
    fakes.end("http", End::Error).await;
    sleep(secs(6)).await;
    app.stop_child("ingest").await.unwrap();
    app.stop_child("http").await.unwrap();
    sleep(secs(3)).await;

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 9s  2 children, 2 stopped",
            "├─ ingest              one_for_one  stopped      for 3s  stopped manually",
            "└─ http                permanent    stopped      for 3s  restarts=1  1/12 in 5m",
            "      stopped manually",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_gave_up_names_the_child_while_it_waits() {
    let fakes = FakeChildren::new();
    let ingest = Supervisor::builder("ingest").restarts(0, secs(5)).child(fakes.child("mqtt"));
    let app = start(app().child(ingest)).await;
    fakes.end("mqtt", End::Error).await;
    sleep(Duration::from_millis(4_500)).await;

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 4s  1 child, 1 restarting",
            "└─ ingest              one_for_one  RESTARTING   retry in 0.5s (attempt 1)",
            "      1/3 in 5m  last: escalated: child app/ingest/mqtt: failed: mqtt failed",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_are_distinguished_by_their_number() {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
    let app = start(app().child(conns)).await;
    let conns = app.supervisor("conns").await.unwrap();
    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 0s  1 child",
            "└─ conns               dynamic      active       up 0s  no shared limit",
        ]
    );
    for client in ["alice", "bob", "carol"] {
        conns.start_child(says("conn", client)).await.unwrap();
        sleep(secs(1)).await;
    }
    conns.stop_child("conn#2").await.unwrap();

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 3s  3 children",
            "└─ conns               dynamic      active       up 3s  no shared limit",
            "   ├─ conn#1           permanent    active       up 3s  \"alice\"",
            "   └─ conn#3           permanent    active       up 1s  \"carol\"",
        ]
    );
    assert_eq!(
        text(&conns).await,
        [
            "app/conns  dynamic no shared limit  active  up 3s  2 children",
            "├─ conn#1              permanent    active       up 3s  \"alice\"",
            "└─ conn#3              permanent    active       up 1s  \"carol\"",
        ]
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn long_names_and_long_words_are_cut_to_80_columns() {
    let long = "a-listener-with-a-name-that-no-column-has-room-for";
    let lowest =
        (1..=5).rev().fold(Supervisor::builder("level-6").child(says(long, "")), |below, level| {
            Supervisor::builder(format!("level-{level}")).child(below)
        });
    let story = "this child has a long story to tell, and it will not fit into one line of 80";
    let app = app().child(says(long, story)).child(lowest);
    let app = start(app).await;
    let path = "level-1/level-2/level-3/level-4/level-5/level-6";
    let lowest = app.supervisor(path).await.unwrap();

    assert_eq!(
        text(&app).await,
        [
            "app  one_for_one 12 in 5m for each  active  up 0s  8 children",
            "├─ a-listene…-room-for permanent    active       up 0s",
            "│     \"this child has a long story to tell, and it will not fit into one line…\"",
            "└─ level-1             one_for_one  active       up 0s  12 in 5m for each",
            "   └─ level-2          one_for_one  active       up 0s  12 in 5m for each",
            "      └─ level-3       one_for_one  active       up 0s  12 in 5m for each",
            "         └─ level-4    one_for_one  active       up 0s  12 in 5m for each",
            "+3       └─ level-5    one_for_one  active       up 0s  12 in 5m for each",
            "+4       └─ level-6    one_for_one  active       up 0s  12 in 5m for each",
            "+5       └─ a-lis…-for permanent    active       up 0s",
        ]
    );
    assert_eq!(
        text(&lowest).await,
        [
            "app/level-1/…l-5/level-6  one_for_one 12 in 5m for each  active  up 0s  1 child",
            "└─ a-listene…-room-for permanent    active       up 0s",
        ]
    );
    app.stop("done").await.unwrap();
}

#[cfg(feature = "json")]
#[tokio::test(start_paused = true)]
async fn every_time_in_json_is_a_number_of_milliseconds() {
    let fakes = FakeChildren::new();
    let app = start(app().restarts(3, secs(90)).child(fakes.child("mqtt"))).await;
    fakes.end("mqtt", End::Error).await;
    sleep(Duration::from_millis(800)).await;

    let json = app.status().await.unwrap().json();
    assert!(
        json.starts_with("{\n  \"format\": 1,\n  \"seq\": 0,\n  \"captured_at_ms\": "),
        "{json}"
    );
    assert!(json.ends_with("\n}\n"), "{json}");
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    let captured_at = status["captured_at_ms"].as_u64().unwrap();
    let year_2020 = 1_577_836_800_000;
    assert!((year_2020..year_2020 * 10).contains(&captured_at), "milliseconds since the epoch");
    let root = &status["root"];
    let defined_at = root["defined_at"].as_str().unwrap();
    assert!(defined_at.contains(".rs:"), "{defined_at}");
    let mqtt = serde_json::json!({
        "path": "app/mqtt",
        "kind": "worker",
        "declared": true,
        "defined_at": root["children"][0]["defined_at"],
        "restart": "permanent",
        "policy": {
            "restart": { "value": "permanent", "source": "default" },
            "backoff": {
                "value": { "curve": "constant", "delay": "5s" },
                "source": "defaults",
            },
            "on_exhausted": { "value": "escalate", "source": "default" },
            "failure_log": { "value": { "level": "warn" }, "source": "default" },
        },
        "significant": false,
        "essential": true,
        "ready": false,
        "lifecycle": "restarting",
        "why": null,
        "incarnation": 1,
        "restarts": 0,
        "failures": 1,
        "limit": null,
        "created_at_ms": captured_at - 800,
        "started_at_ms": captured_at - 800,
        "since_ms": captured_at - 800,
        "for_ms": 800,
        "last_exit": {
            "incarnation": 1,
            "at_ms": captured_at - 800,
            "lived_ms": 0,
            "reason": { "kind": "failed", "message": "failed: mqtt failed" },
        },
        "next": {
            "attempt": 1,
            "at_ms": captured_at + 4200,
            "delay_ms": 5000,
            "remaining_ms": 4200,
        },
        "status": null,
        "healthy": null,
        "problem": null,
        "requires": [],
        "waits_for": [],
        "held": false,
        "last_call": null,
        "explanation": null,
        "problems": [{
            "kind": "down",
            "problem": "restarting, attempt 1 in 4.2s, last: failed: mqtt failed",
            "cause": "failed: mqtt failed",
            "since_ms": captured_at - 800,
            "essential": true,
        }],
        "mailbox": null,
        "supervisor": null,
        "children": [],
    });
    let counts = serde_json::json!({
        "specs": 1, "active": 0, "restarting": 1, "supervisors": 0, "workers": 1,
    });
    let root = serde_json::json!({
        "path": "app",
        "kind": "supervisor",
        "declared": true,
        "defined_at": defined_at,
        "restart": "temporary",
        "policy": null,
        "significant": false,
        "essential": true,
        "ready": true,
        "lifecycle": "active",
        "why": null,
        "incarnation": 1,
        "restarts": 0,
        "failures": 0,
        "limit": null,
        "created_at_ms": captured_at - 800,
        "started_at_ms": captured_at - 800,
        "since_ms": captured_at - 800,
        "for_ms": 800,
        "last_exit": null,
        "next": null,
        "status": null,
        "healthy": null,
        "problem": null,
        "requires": [],
        "waits_for": [],
        "held": false,
        "last_call": null,
        "explanation": null,
        "problems": [],
        "mailbox": null,
        "supervisor": {
            "strategy": "one_for_one",
            "on_child_failure": false,
            "restarts_in_period": 1,
            "max_restarts": 3,
            "period_ms": 90_000,
            "limit_reached": false,
            "counts": counts,
            "gone": [],
        },
        "children": [mqtt],
    });
    let program = serde_json::json!({
        "verger": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "started_at_ms": captured_at - 800,
        "uptime_ms": 800,
    });
    let totals = serde_json::json!({
        "children": 1,
        "lifecycle": { "restarting": 1 },
        "starts": 1,
        "restarts": 0,
        "failures": 1,
        "dead_letters": 0,
    });
    let expected = serde_json::json!({
        "format": 1,
        "seq": 0,
        "captured_at_ms": captured_at,
        "program": program,
        "totals": totals,
        "root": root,
    });
    assert_eq!(status, expected);
    app.stop("done").await.unwrap();
}
