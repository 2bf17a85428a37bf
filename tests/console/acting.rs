//! What actions do, and what they answer.

use serde_json::json;
use verger::{Context, Exit, Lifecycle, Shutdown, Supervisor, SupervisorHandle, worker};

use crate::{app, console, idle, secs, served, start};

async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

fn ok(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_operator_restarts_stops_and_resumes_a_child() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console(), &tree);
    let act = async |action: &str| {
        server.act(json!({ "action": action, "path": "app/db", "reason": "a test" })).await
    };
    assert_eq!(act("restart").await, ok("restarted app/db"));
    assert_eq!(state(&tree, "db").await, (Lifecycle::Active, 2));
    assert_eq!(act("stop").await, ok("stopped app/db"));
    assert_eq!(state(&tree, "db").await, (Lifecycle::Stopped, 2));
    assert_eq!(act("kill").await.0, 200, "it has nothing to do");
    for _ in 0..2 {
        assert_eq!(act("resume").await, ok("resumed app/db"));
        assert_eq!(
            state(&tree, "db").await,
            (Lifecycle::Active, 3),
            "a running child keeps running"
        );
    }
    assert_eq!(act("kill").await, ok("killed app/db"));
}

#[tokio::test(start_paused = true)]
async fn a_child_and_its_events_name_the_caller_and_the_reason_of_a_change() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console(), &tree);
    let stop = json!({ "action": "stop", "path": "app/db", "reason": "disk swap\n\u{1b}[2J" });
    assert_eq!(server.act(stop).await, ok("stopped app/db"));

    let db = server.get("/api/child?path=app/db").await.json();
    let call = &db["child"]["last_call"];
    assert_eq!((&call["call"], &call["by"]), (&json!("stop_child"), &json!("operator")));
    assert_eq!(call["reason"], "disk swap\n\u{1b}[2J");
    assert_eq!(db["child"]["explanation"], "stopped by operator: disk swap\n\u{1b}[2J");
    let texts: Vec<_> = db["events"].as_array().unwrap().iter().map(|it| &it["text"]).collect();
    let called = "stop_child called by operator: disk swap\\n\\u{1b}[2J";
    assert_eq!(texts, ["deactivating", "stopped", called]);
}

#[tokio::test(start_paused = true)]
async fn an_operator_holds_a_child_that_fails_resets_its_counters_and_releases_it() {
    let failing = worker("db", async |_: Context| -> Exit { Err("no".into()) });
    let failing = failing.backoff(verger::Backoff::constant(secs(1)));
    let tree = start(app().unlimited_restarts().child(failing)).await;
    let server = served(console(), &tree);
    let act = async |action: &str| server.act(json!({ "action": action, "path": "app/db" })).await;
    tokio::time::sleep(secs(5)).await;
    assert_eq!(act("hold").await, ok("held app/db"));
    tokio::time::sleep(secs(5)).await;
    let held = server.get("/api/child?path=db").await.json();
    assert_eq!(
        (&held["child"]["held"], &held["child"]["lifecycle"]),
        (&json!(true), &json!("discovered"))
    );
    let incarnation = state(&tree, "db").await.1;
    assert_eq!(act("reset").await, ok("reset the counters of app/db"));
    assert_eq!(tree.which_child("db").await.unwrap().failures, 0);
    assert_eq!(act("release").await, ok("released app/db"));
    assert_eq!(state(&tree, "db").await.1, incarnation + 1);
}

#[tokio::test(start_paused = true)]
async fn an_operator_ends_a_backoff() {
    let failing = worker("db", async |ctx: Context| -> Exit {
        if ctx.incarnation() == 1 {
            return Err("no".into());
        }
        idle(ctx).await;
        Ok(())
    });
    let failing = failing.backoff(verger::Backoff::constant(secs(600)));
    for (action, text) in [("resume", "resumed app/db"), ("restart", "restarted app/db")] {
        let tree = start(app().child(failing.clone())).await;
        let server = served(console(), &tree);
        tokio::time::sleep(secs(1)).await;
        assert_eq!(state(&tree, "db").await.0, Lifecycle::Restarting);
        assert_eq!(server.act(json!({ "action": action, "path": "db" })).await, ok(text));
        tokio::time::sleep(secs(1)).await;
        assert_eq!(state(&tree, "db").await, (Lifecycle::Active, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_a_supervisor_restarts_what_is_below() {
    let net = Supervisor::builder("net").child(worker("http", idle));
    let tree = start(app().child(net)).await;
    let server = served(console(), &tree);
    let order = json!({ "action": "restart", "path": "app/net" });
    assert_eq!(server.act(order).await, ok("restarted app/net"));
    assert_eq!(state(&tree, "net").await, (Lifecycle::Active, 2));
    assert_eq!(state(&tree, "net/http").await.0, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_long_action_answers_in_time_says_what_it_waits_for_and_goes_on() {
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(30)).await;
    });
    let net = Supervisor::builder("net").child(slow.shutdown(Shutdown::Timeout(secs(60))));
    let tree = start(app().child(net)).await;
    let server = served(console(), &tree);
    let began = tokio::time::Instant::now();
    let (status, text) = server.act(json!({ "action": "restart", "path": "app/net" })).await;
    assert_eq!(began.elapsed(), secs(10));
    assert_eq!(
        (status, text.as_str()),
        (
            202,
            "still restarting app/net after 10s; it waits for app/net/slow, which is deactivating"
        )
    );
    let again = server.act(json!({ "action": "restart", "path": "app/net" })).await;
    assert_eq!(again, (202, text), "it waits for the same stop");
    tokio::time::sleep(secs(11)).await;
    assert_eq!(state(&tree, "net").await, (Lifecycle::Active, 2));
}

#[tokio::test(start_paused = true)]
async fn an_action_while_the_tree_stops_is_refused_and_changes_nothing() {
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
    });
    let tree = start(app().child(worker("db", idle)).child(slow)).await;
    let server = served(console(), &tree);
    let stop = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("a test").await }
    });
    tokio::time::sleep(secs(1)).await;
    let (status, text) = server.act(json!({ "action": "restart", "path": "app/db" })).await;
    assert_eq!((status, text.as_str()), (503, "`app` is shutting down"));
    stop.await.unwrap().unwrap();
    let (status, text) = server.act(json!({ "action": "restart", "path": "app/db" })).await;
    assert_eq!((status, text.as_str()), (503, "`app` has ended"));
    let answer = server.get("/api/status").await;
    assert_eq!(answer.problem(), (503, "shutting_down".to_owned()));
    assert!(answer.headers.contains("retry-after: "), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn the_tree_is_stopped_once_its_name_is_confirmed() {
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
    });
    let tree = start(app().child(slow)).await;
    let server = served(console(), &tree);
    let began = tokio::time::Instant::now();
    let unsure = server.act(json!({ "action": "stop_tree" })).await;
    assert_eq!(unsure, (400, "write `app` as `confirm` to stop the whole tree".to_owned()));
    assert_eq!(state(&tree, "slow").await, (Lifecycle::Active, 1));
    let order = json!({ "action": "stop_tree", "confirm": "app", "reason": "maintenance" });
    assert_eq!(server.act(order).await, ok("stopped app"));
    assert_eq!(began.elapsed(), secs(3), "each child has had its grace");
    tree.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_the_tree_during_a_long_action_ends_both() {
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(8)).await;
    });
    let tree = start(app().child(slow.shutdown(Shutdown::Timeout(secs(9))))).await;
    let server = served(console(), &tree);
    let restart = tokio::spawn({
        let server = server.clone();
        async move { server.act(json!({ "action": "restart", "path": "app/slow" })).await }
    });
    tokio::time::sleep(secs(1)).await;
    let began = tokio::time::Instant::now();
    tree.stop("a test").await.unwrap();
    assert_eq!(began.elapsed(), secs(7), "what was left of the grace");
    let (status, text) = restart.await.unwrap();
    assert_eq!((status, text.as_str()), (503, "`app` is shutting down"));
}

#[tokio::test(start_paused = true)]
async fn two_operators_who_act_on_one_child_both_stay_in_the_history() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console(), &tree);
    for by in ["alice", "bob"] {
        let order =
            json!({ "action": "stop", "path": "db", "by": by, "reason": format!("{by} stops it") });
        assert_eq!(server.act(order).await.0, 200);
    }
    let past = server.get("/api/events?under=app/db").await.json();
    let calls = past["entries"].as_array().unwrap().iter().filter(|it| it["event"] == "called");
    assert_eq!(
        calls.map(|it| it["text"].as_str().unwrap()).collect::<Vec<_>>(),
        [
            "stop_child called by alice (typed): alice stops it",
            "stop_child called by bob (typed): bob stops it",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_or_a_reason_that_is_too_long_is_refused_with_its_length() {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console(), &tree);
    for (field, most) in [("by", 64), ("reason", 200)] {
        let order =
            |length: usize| json!({ "action": "stop", "path": "db", field: "é".repeat(length) });
        let text = format!("`{field}` has {} characters; write at most {most}", most + 1);
        assert_eq!(server.act(order(most + 1)).await, (400, text));
        assert_eq!(state(&tree, "db").await, (Lifecycle::Active, 1));
        assert_eq!(server.act(order(most)).await, ok("stopped app/db"));
        tree.remove("db").await.unwrap();
        tree.add_child(worker("db", idle)).await.unwrap();
        tokio::time::sleep(secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_being_stopped_shows_who_asked_and_the_grace_that_is_left() {
    let slow = worker("slow", async |_: Context| std::future::pending::<()>().await);
    let tree = start(app().child(slow.shutdown(Shutdown::Timeout(secs(9))))).await;
    let server = served(console(), &tree);
    let stop = tokio::spawn({
        let server = server.clone();
        let order =
            json!({ "action": "stop", "path": "slow", "by": "alice", "reason": "it hangs" });
        async move { server.act(order).await }
    });
    tokio::time::sleep(secs(2)).await;
    let child = server.get("/api/child?path=slow").await.json();
    let (stopping, since) = (&child["child"]["stopping"], &child["child"]["since_ms"]);
    assert_eq!(
        (&stopping["by"], &stopping["reason"]),
        (&json!("alice (typed)"), &json!("it hangs"))
    );
    assert_eq!(stopping["ends_ms"].as_u64().unwrap(), since.as_u64().unwrap() + 9_000);
    assert_eq!(stop.await.unwrap(), ok("stopped app/slow"));
    let child = server.get("/api/child?path=slow").await.json();
    assert_eq!(child["child"].get("stopping"), None);
}
