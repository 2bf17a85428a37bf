//! What the requests that look at a tree return.

use serde_json::{Value, json};
use verger::console::Console;
use verger::dead_letter::DeadLetterStore;
use verger::policy::Jitter;
use verger::{Backoff, Exit, Supervisor, mailbox_with_capacity, worker, worker_with_mailbox};

use crate::{app, console, idle, served, start, without_times};

/// A text that isn't escaped in some place or other.
const NASTY: &str = "<script>alert(1)</script>\u{1b}[2J\r\nX-Injected: 1\u{202e}\"\\";

#[tokio::test(start_paused = true)]
async fn the_status_is_the_snapshot_of_the_tree() {
    let net = Supervisor::builder("net").child(worker("http", idle));
    let tree = start(app().child(worker("db", idle)).child(net)).await;
    let server = served(Console::new(), &tree);

    let answer = server.get("/api/status").await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains("content-type: application/json"), "{answer:?}");
    let status: Value = serde_json::to_value(tree.status().await.unwrap()).unwrap();
    assert_eq!(without_times(answer.json()), without_times(status));

    let part = server.get("/api/status?under=app/net").await.json();
    assert_eq!(part["root"]["path"], "app/net");
    assert_eq!(part["root"]["children"][0]["path"], "app/net/http");
    let part = server.get("/api/status?under=net/http").await.json();
    assert_eq!(
        (&part["root"]["path"], &part["root"]["children"]),
        (&json!("app/net/http"), &json!([]))
    );
    let none = server.get("/api/status?under=net/htpp").await;
    let text = "there is no `app/net/htpp`; did you mean `app/net/http`?".to_owned();
    assert_eq!(none.text(), (404, text));
}

#[tokio::test(start_paused = true)]
async fn a_small_tree_has_exactly_this_status() {
    let failing = worker("db", async |_| -> Exit { Err("no route".into()) });
    let backoff = Backoff::constant(crate::secs(10)).jitter(Jitter::None);
    let tree = start(app().child(failing.backoff(backoff))).await;
    let server = served(Console::new(), &tree);
    tokio::time::sleep(crate::secs(11)).await;
    let expected: Value = serde_json::from_str(
        r#"{
        "format": 1, "seq": 5, "captured_at_ms": "…",
        "program": { "verger": "0.1.0", "pid": "…", "started_at_ms": "…", "uptime_ms": "…" },
        "totals": {
            "children": 1, "lifecycle": { "restarting": 1 },
            "starts": 2, "restarts": 1, "failures": 2, "dead_letters": 0
        },
        "root": {
            "path": "app", "kind": "supervisor", "restart": "temporary", "policy": null,
            "significant": false, "essential": true, "ready": true, "lifecycle": "active", "why": null,
            "incarnation": 1, "restarts": 0, "failures": 0, "since_ms": "…", "for_ms": "…",
            "status": null, "healthy": null, "problem": null, "mailbox": null, "declared": true,
            "created_at_ms": "…", "started_at_ms": "…", "last_exit": null, "next": null, "limit": null,
            "requires": [], "waits_for": [], "defined_at": "…", "held": false, "last_call": null,
            "explanation": null, "problems": [], "supervisor": {
                "strategy": "one_for_one", "restarts_in_period": 0, "max_restarts": null,
                "period_ms": 0, "limit_reached": false, "child_limit": { "max": 12, "period": "5m" },
                "on_child_failure": false,
                "counts": { "specs": 1, "active": 0, "restarting": 1, "supervisors": 0, "workers": 1 },
                "gone": []
            },
            "children": [{
                "path": "app/db", "kind": "worker", "restart": "permanent",
                "policy": {
                    "restart": { "value": "permanent", "source": "default" },
                    "backoff": { "value": { "curve": "constant", "delay": "10s" }, "source": "spec" },
                    "intensity": { "value": { "max": 12, "period": "5m" }, "source": "default" },
                    "on_exhausted": { "value": "escalate", "source": "default" },
                    "failure_log": { "value": { "level": "warn" }, "source": "default" }
                },
                "significant": false, "essential": true, "ready": false, "lifecycle": "restarting",
                "why": null, "incarnation": 2, "restarts": 1, "failures": 2, "since_ms": "…",
                "for_ms": "…", "status": null, "healthy": null, "problem": null, "mailbox": null,
                "declared": true, "created_at_ms": "…", "started_at_ms": "…",
                "last_exit": {
                    "incarnation": 2, "at_ms": "…", "lived_ms": 0,
                    "reason": { "kind": "failed", "message": "failed: no route" }
                },
                "next": { "attempt": 2, "at_ms": "…", "delay_ms": 10000, "remaining_ms": 9000 },
                "limit": { "restarts": 2, "max_restarts": 12, "period_ms": 300000, "reached": false },
                "requires": [], "waits_for": [], "defined_at": "…", "held": false,
                "last_call": null, "explanation": null, "supervisor": null, "children": [],
                "problems": [{
                    "kind": "down", "problem": "restarting, attempt 2 in 9.0s, last: failed: no route",
                    "cause": "failed: no route", "since_ms": "…", "essential": true
                }]
            }]
        }
    }"#,
    )
    .unwrap();
    assert_eq!(without_times(server.get("/api/status").await.json()), expected);
}

#[tokio::test(start_paused = true)]
async fn the_text_is_the_tree_as_it_is_displayed() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(Console::new(), &tree);
    let answer = server.get("/api/tree.txt").await;
    assert!(answer.headers.contains("content-type: text/plain; charset=utf-8"), "{answer:?}");
    assert_eq!(
        answer.body,
        "app  one_for_one 12 in 5m for each  active  up 0s  1 child\n\
         └─ db                  permanent    active       up 0s\n"
    );
    let part = server.get("/api/tree.txt?under=db").await;
    assert!(part.body.starts_with("app/db  permanent  active  up 0s"), "{part:?}");
}

#[tokio::test(start_paused = true)]
async fn one_snapshot_is_shared_for_half_a_second_and_renewed_after_an_action() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console(), &tree);
    let seen = async || {
        let status = server.get("/api/status").await.json();
        status["root"]["children"].as_array().unwrap().len()
    };
    assert_eq!(seen().await, 1);
    tree.start_child(worker("late", idle)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(499)).await;
    assert_eq!(seen().await, 1, "the same snapshot");
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(seen().await, 2);
    tree.start_child(worker("later", idle)).await.unwrap();
    server.act(json!({ "action": "restart", "path": "app/db" })).await;
    assert_eq!(seen().await, 3, "an operator sees what an action has done");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_shown_with_its_settings_and_its_events() {
    let failing = worker("db", async |_| -> Exit { Err("no route".into()) });
    let tree = start(app().child(failing)).await;
    let server = served(Console::new(), &tree);
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;

    let child = server.get("/api/child?path=app/db").await.json();
    assert_eq!(child["child"]["path"], "app/db");
    assert_eq!(child["child"]["lifecycle"], "restarting");
    assert!(child["child"].get("children").is_none());
    assert_eq!(child["spec"]["name"], "db");
    assert_eq!(child["spec"], serde_json::to_value(tree.child_spec("db").await.unwrap()).unwrap());
    assert_eq!(child["log"], Value::Null);
    let relative = server.get("/api/child?path=db").await.json();
    assert_eq!(without_times(relative), without_times(child));

    let root = server.get("/api/child?path=app").await.json();
    assert_eq!((&root["child"]["path"], &root["spec"]), (&json!("app"), &Value::Null));
    assert_eq!(root["child"]["supervisor"]["strategy"], "one_for_one");
    assert_eq!(root["child"]["supervisor"]["counts"]["specs"], 1);
    let misspelt = server.get("/api/child?path=app/bd").await;
    assert_eq!(misspelt.text(), (404, "there is no `app/bd`; did you mean `app/db`?".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_without_a_store_and_cant_be_replayed() {
    let (address, mailbox) = mailbox_with_capacity::<u32>(8);
    let reader = worker_with_mailbox("reader", mailbox, async |ctx, _inbox| idle(ctx).await);
    let tree = start(app().child(reader)).await;
    let server = served(console(), &tree);
    assert_eq!(server.get("/api/dead-letters").await.json(), json!({ "missed": 0, "letters": [] }));

    address.try_send(7).unwrap();
    tree.stop_child("reader").await.unwrap();
    let list = without_times(server.get("/api/dead-letters").await.json());
    let expected = json!({ "missed": 0, "letters": [{
        "id": 1, "at_ms": "…", "path": "app/reader", "reason": "undelivered_at_stop",
        "event_type": "u32", "error": null, "payload": null, "replayable": false,
    }] });
    assert_eq!(list, expected);
    let answer =
        server.send(crate::client::post("/api/dead-letters/replay", json!({ "id": 1 }))).await;
    assert_eq!(answer.problem(), (409, "wrong_state".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_of_a_store_is_replayed_once() {
    let (address, mailbox) = mailbox_with_capacity::<u32>(8);
    let reader = worker_with_mailbox("reader", mailbox, async |ctx, _inbox| idle(ctx).await);
    let store = DeadLetterStore::ring(10);
    let tree = start(app().dead_letter_store(&store).child(reader)).await;
    let server = served(console().dead_letter_store(&store), &tree);
    let replay = async |id: u32| {
        let request = crate::client::post("/api/dead-letters/replay", json!({ "id": id }));
        server.send(request).await.text()
    };

    address.try_send(7).unwrap();
    tree.stop_child("reader").await.unwrap();
    let list = server.get("/api/dead-letters").await.json();
    assert_eq!(
        (&list["letters"][0]["id"], &list["letters"][0]["replayable"]),
        (&json!(1), &json!(true))
    );
    tree.otp().restart_child("reader").await.unwrap();
    assert_eq!(replay(1).await, (200, "replayed dead letter 1 to app/reader".to_owned()));
    assert_eq!(replay(1).await, (404, "there is no dead letter 1 any more".to_owned()));
    assert_eq!(server.get("/api/dead-letters").await.json()["letters"], json!([]));
    assert_eq!(tree.which_child("reader").await.unwrap().mailbox.unwrap().len, 1);
}

#[tokio::test(start_paused = true)]
async fn texts_that_would_break_a_page_or_a_terminal_arrive_as_they_are_in_json() {
    let failing = worker("db", async |ctx: verger::Context| -> Exit {
        ctx.set_status(NASTY);
        tokio::time::sleep(crate::secs(1)).await;
        Err(NASTY.into())
    });
    let tree = start(app().child(failing)).await;
    let server = served(console(), &tree);
    let child = server.get("/api/child?path=db").await.json();
    assert_eq!(child["child"]["status"], NASTY);
    tokio::time::sleep(crate::secs(1)).await;
    let answer = server.get("/api/child?path=db").await;
    assert!(!answer.headers.contains("x-injected"), "{answer:?}");
    assert!(!answer.body.contains('\u{1b}') && !answer.body.contains('\n'), "{answer:?}");
    let text = server.get("/api/tree.txt").await.body;
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");

    let path = "/api/child?path=%3Cscript%3Ealert(1)%3C/script%3E%1b%5b2J%0d%0aX-Injected:%201";
    let answer = server.get(path).await;
    assert_eq!(answer.status, 404);
    assert!(!answer.headers.contains("x-injected"), "{answer:?}");
    assert!(answer.headers.contains("content-type: application/json"), "never a page: {answer:?}");
    let order = json!({ "action": "restart", "path": "app/<b>\u{1b}[2J\n", "reason": NASTY });
    let (status, text) = server.act(order).await;
    assert_eq!((status, text.as_str()), (404, "there is no `app/<b>\\u{1b}[2J\\n`"));
    assert_eq!(tree.which_child("db").await.unwrap().incarnation, 1);
}

#[tokio::test(start_paused = true)]
async fn the_views_of_a_tree_are_those_of_its_status() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(Console::new(), &tree);
    for (path, content_type, text) in [
        ("/api/tree.txt", "text/plain; charset=utf-8", tree.status().await.unwrap().to_string()),
        ("/api/tree.svg", "image/svg+xml", tree.status().await.unwrap().svg()),
    ] {
        let answer = server.get(path).await;
        let header = format!("content-type: {content_type}\r\n");
        assert!(answer.headers.contains(&header), "{path}: {answer:?}");
        assert!(answer.body.contains("db"), "{path}: {answer:?}");
        assert_eq!(answer.body.lines().count(), text.lines().count(), "{path}");
        let part = server.get(&format!("{path}?under=app/db")).await;
        assert!(part.body.contains("db") && part.body.len() < answer.body.len(), "{part:?}");
        assert_eq!(server.get(&format!("{path}?under=app/dc")).await.status, 404);
    }
    let picture = server.get("/api/tree.svg").await;
    let policy = "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; \
                  frame-ancestors 'none'; sandbox\r\n";
    assert!(picture.headers.contains(policy), "it may run nothing: {picture:?}");
}

#[tokio::test(start_paused = true)]
async fn the_log_lines_of_a_child_are_shown_by_incarnation_and_those_of_the_tree_in_order() {
    use tracing_subscriber::layer::SubscriberExt as _;

    let lines = verger::log_lines::LogLines::new();
    let subscriber = tracing_subscriber::registry().with(lines.layer());
    let _for_this_thread = tracing::subscriber::set_default(subscriber);
    let failing = worker("db", async |ctx: verger::Context| -> Exit {
        tracing::info!(text = NASTY, "connecting");
        tokio::time::sleep(crate::secs(ctx.incarnation().into())).await;
        Err("no route".into())
    });
    let tree = start(app().child(failing).child(worker("web", idle))).await;
    let without = served(console(), &tree);
    let server = served(console().log_lines(&lines), &tree);
    tokio::time::sleep(crate::secs(2)).await;

    let messages = |lines: &Value| -> Vec<String> {
        let lines = lines.as_array().unwrap().iter();
        lines
            .map(|it| {
                format!("{} {}", it["path"].as_str().unwrap(), it["message"].as_str().unwrap())
            })
            .collect()
    };
    let log = server.get("/api/log?path=app/db").await.json();
    assert_eq!(log["incarnation"], 2);
    assert!(messages(&log["current"]).contains(&"app/db connecting".to_owned()), "{log}");
    assert!(messages(&log["previous"]).contains(&"app/db restarting".to_owned()), "{log}");
    assert_eq!(server.get("/api/child?path=db").await.json()["log"], log);
    let all = server.get("/api/log").await;
    let all_messages = messages(&all.json()["lines"]);
    assert_eq!(all_messages.iter().filter(|it| *it == "app/db connecting").count(), 2);
    assert!(!all.body.contains('\u{1b}') && !all.body.contains("\\u001b"), "{all:?}");
    assert_eq!(server.get("/api/info").await.json()["log"], true);

    assert_eq!(without.get("/api/info").await.json()["log"], false);
    assert_eq!(without.get("/api/log").await.problem(), (404, "not_found".to_owned()));
}

/// A program that serves the console from a child of its tree logs the token in the span of that child.
#[tokio::test(start_paused = true)]
async fn the_token_is_not_among_the_log_lines_that_the_console_shows() {
    use tracing_subscriber::layer::SubscriberExt as _;

    let lines = verger::log_lines::LogLines::new();
    let subscriber = tracing_subscriber::registry().with(lines.layer());
    let _for_this_thread = tracing::subscriber::set_default(subscriber);
    let shown = lines.clone();
    let http = worker("http", move |ctx: verger::Context| {
        let console = Console::new().allow_actions(true).log_lines(&shown);
        async move {
            tracing::info!("listening");
            let _router = console.router(&ctx.parent());
            ctx.cancelled().await;
        }
    });
    let tree = start(app().child(http)).await;
    tokio::time::sleep(crate::secs(1)).await;
    let server = served(console().log_lines(&lines), &tree);
    let log = server.get("/api/log").await;
    assert!(log.body.contains("listening"), "{log:?}");
    assert!(!log.body.contains("token"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_router_of_the_users_keeps_its_own_pages_beside_the_console() {
    let tree = start(app().child(worker("db", idle))).await;
    let own = axum::Router::new()
        .route("/own", axum::routing::get(async || "own"))
        .fallback(async || (axum::http::StatusCode::NOT_FOUND, "nothing here"));
    let server = crate::client::serve(own.merge(Console::new().router(&tree)));

    assert_eq!(server.get("/api/status").await.status, 200);
    let mut foreign = crate::client::get("/api/status");
    let mut missing = crate::client::get("/missing");
    for request in [&mut foreign, &mut missing] {
        request.headers = vec![("host".to_owned(), "example.com".to_owned())];
    }
    assert_eq!(server.send(foreign).await.status, 403);
    let missing = server.send(missing).await;
    assert_eq!((missing.status, &*missing.body), (404, "nothing here"));

    // Without a fallback as well, a page that isn't the console's is none of its business.
    let own = axum::Router::new().route("/own", axum::routing::get(async || "own"));
    let server = crate::client::serve(own.merge(Console::new().router(&tree)));
    let mut missing = crate::client::get("/missing");
    missing.headers = vec![("host".to_owned(), "example.com".to_owned())];
    assert_eq!(server.send(missing).await.status, 404);
}
