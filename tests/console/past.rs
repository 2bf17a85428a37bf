//! What the console tells of the past: incidents, the history of each child, samples.

use serde_json::{Value, json};
use tokio::time::sleep;
use verger::{Backoff, Context, DynamicSupervisor, Exit, Supervisor, worker};

use crate::{app, console, idle, secs, served, start};

/// Fails when it is started first, and works from then on.
async fn fails_once(ctx: Context) -> Exit {
    if ctx.incarnation() == 1 {
        sleep(secs(1)).await;
        return Err("TLS certificate expired".into());
    }
    idle(ctx).await;
    Ok(())
}

/// Rule: a failure of an hour ago is there with its cause, although there were many short lives since.
#[tokio::test(start_paused = true)]
async fn fifty_lives_a_second_push_out_no_failure_of_another_child() {
    let gateway = worker("gateway", fails_once).backoff(Backoff::constant(secs(1)));
    let tree = app().child(gateway).child(DynamicSupervisor::builder("web"));
    let tree = start(tree).await;
    let server = served(console(), &tree);
    sleep(secs(3)).await;
    let web = tree.supervisor("web").await.unwrap();
    for _ in 0..60 {
        for _ in 0..50 {
            web.start_once("conn", async |_| Ok::<(), verger::ExitError>(())).await.unwrap();
        }
        sleep(secs(60)).await;
    }
    let past = server.get("/api/events?under=app/gateway").await.json();
    assert_eq!((&past["missed"], &past["dropped_before_ms"]), (&json!(0), &Value::Null));
    let failures: Vec<_> = past["entries"].as_array().unwrap().iter().collect();
    let failure = failures.iter().find(|it| it["event"] == "errored").unwrap();
    assert_eq!(failure["text"], "errored: failed: TLS certificate expired");

    let whole = server.get("/api/events").await.json();
    let lives = whole["entries"].as_array().unwrap().iter().filter(|it| it["event"] == "lives");
    let lives: Vec<_> = lives.map(|it| json!([it["path"], it["count"], it["text"]])).collect();
    let last = [
        json!(["app/web", 50, "children started"]),
        json!(["app/web", 50, "children exited normally"]),
    ];
    assert_eq!(lives[lives.len() - 2..], last);
    assert_eq!(lives.len(), 2 * 6, "of the last five minutes");
}

#[tokio::test(start_paused = true)]
async fn an_incident_of_ten_minutes_ago_has_its_cause_and_what_was_done_before() {
    let gateway = worker("gateway", fails_once).backoff(Backoff::constant(secs(1)));
    let held = worker("held", idle);
    let tree = start(app().child(gateway).child(held)).await;
    let server = served(console(), &tree);
    let order = json!({ "action": "hold", "path": "held", "by": "alice", "reason": "an update" });
    assert_eq!(server.act(order).await.0, 200);
    sleep(secs(600)).await;

    let list = server.get("/api/incidents").await.json();
    let incidents = list["incidents"].as_array().unwrap();
    let of = |it: &Value| json!([it["path"], it["now"], it["failures"], it["cause"]]);
    assert_eq!(
        incidents.iter().map(of).collect::<Vec<_>>(),
        [json!(["app/gateway", false, 1, "failed: TLS certificate expired"])]
    );
    let changes: Vec<_> =
        incidents[0]["changes"].as_array().unwrap().iter().map(|it| &it["text"]).collect();
    assert_eq!(changes, ["hold called by alice (typed): an update"]);
    let of_held = server.get("/api/incidents?under=app/held").await.json();
    assert_eq!(of_held["incidents"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn each_child_of_a_snapshot_has_its_problems() {
    let tree = start(app().child(worker("db", idle)).child(worker("web", idle))).await;
    let server = served(console(), &tree);
    tree.on_behalf_of("alice", "disk swap").stop_child("db").await.unwrap();
    let status = server.get("/api/status").await.json();
    let status = &status["root"];
    let problems = |child: usize| &status["children"][child]["problems"];
    let db = &problems(0)[0];
    assert_eq!((&db["kind"], &db["essential"]), (&json!("down"), &json!(true)));
    assert_eq!(db["problem"], "stopped by alice: disk swap");
    assert_eq!(*problems(1), json!([]));
}

#[tokio::test(start_paused = true)]
async fn samples_are_kept_from_the_start_of_the_program() {
    let failing = worker("db", async |_: Context| -> Exit {
        sleep(secs(3)).await;
        Err("no".into())
    });
    let failing = failing.backoff(Backoff::constant(secs(3)));
    let net = Supervisor::builder("net").unlimited_restarts().child(failing);
    let tree = start(app().child(net)).await;
    let server = served(console(), &tree);
    sleep(secs(31)).await;
    for path in ["app/net/db", "app/net", "app"] {
        let list = server.get(&format!("/api/samples?path={path}")).await.json();
        assert_eq!(list["every_ms"], 2_000);
        let samples = list["samples"].as_array().unwrap();
        let restarts: Vec<_> = samples.iter().map(|it| it["restarts"].as_u64().unwrap()).collect();
        assert_eq!(restarts, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5], "{path}");
    }
    let unknown = server.get("/api/samples?path=app/other").await.json();
    assert!(unknown["samples"].as_array().unwrap().iter().all(|it| it["restarts"] == 0));
}

#[tokio::test(start_paused = true)]
async fn log_lines_are_selected_by_path_on_the_server() {
    use tracing_subscriber::layer::SubscriberExt as _;

    let lines = verger::log_lines::LogLines::new();
    let subscriber = tracing_subscriber::registry().with(lines.layer());
    let _this_thread = tracing::subscriber::set_default(subscriber);
    let talks = async |ctx: Context| {
        tracing::info!("hello");
        idle(ctx).await;
    };
    let net = Supervisor::builder("net").child(worker("http", talks));
    let tree = start(app().child(net).child(worker("db", talks))).await;
    let server = served(console().log_lines(&lines), &tree);
    sleep(secs(1)).await;
    let of = async |query: &str| {
        let lines = server.get(&format!("/api/log{query}")).await.json();
        let hello = |it: &&Value| it["message"] == "hello";
        let lines = lines["lines"].as_array().unwrap().clone();
        lines.iter().filter(hello).map(|it| it["path"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("").await, ["app/net/http", "app/db"]);
    assert_eq!(of("?under=app/net").await, ["app/net/http"]);
}
