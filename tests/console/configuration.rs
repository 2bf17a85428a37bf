//! The configuration in the console: its values, plans, and reloads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use verger::config::{ChildConfig, Secret};
use verger::{Application, Context, worker};

use crate::application::Running;
use crate::client::post;
use crate::{app, console, idle};

/// A file that is removed at the end.
struct File(PathBuf);

impl File {
    fn new(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("verger-console-{}-{count}.toml", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Database {
    user: String,
    password: Secret<String>,
}

fn application(file: &File) -> Application {
    let db = worker("db", async |ctx: Context| idle(ctx).await);
    let db = db.config(ChildConfig::<Database>::new());
    Application::new(app().child(db).child(worker("web", idle))).config_file(&file.0)
}

/// The values, without the name of the file in front of the line.
fn values(list: &Value) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let place = |value: &Value| text(value).rsplit_once(':').unwrap().1.to_owned();
    let row = |it: &Value| {
        (text(&it["path"]), text(&it["key"]), text(&it["value"]), place(&it["source"]))
    };
    list["values"].as_array().unwrap().iter().map(row).collect()
}

fn owned(rows: &[[&str; 4]]) -> Vec<(String, String, String, String)> {
    let row = |[a, b, c, d]: &[&str; 4]| ((*a).into(), (*b).into(), (*c).into(), (*d).into());
    rows.iter().map(row).collect()
}

#[tokio::test]
async fn values_are_listed_with_their_places_and_without_secrets() {
    let file = File::new(
        "[\"app/db\".config]\nuser = \"feed\"\npassword = \"hunter2\"\n[\"app/web\"]\nshutdown = \"7s\"\n",
    );
    let running = Running::start(application(&file), console()).await;
    let answer = running.server.get("/api/config").await;
    assert_eq!(
        values(&answer.json()),
        owned(&[
            ["app/db", "config.password", "(secret)", "3"],
            ["app/db", "config.user", "\"feed\"", "2"],
            ["app/web", "shutdown", "\"7s\"", "5"],
        ])
    );
    assert!(!answer.body.contains("hunter2"), "{answer:?}");
    let child = running.server.get("/api/child?path=app/db").await;
    assert!(!child.body.contains("hunter2"), "{child:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_plan_is_shown_first_and_applied_by_its_id_unless_the_file_has_changed() {
    let file = File::new("[\"app/web\"]\nshutdown = \"7s\"\n");
    let running = Running::start(application(&file), console()).await;
    let server = &running.server;
    assert_eq!(server.get("/api/info").await.json()["reload"], true);
    let shutdown =
        async || server.get("/api/child?path=app/web").await.json()["spec"]["shutdown"].clone();
    let reload = async |plan: &Value| {
        let order = json!({ "plan": plan, "reason": "a test" });
        server.send(post("/api/reload", order)).await.text()
    };
    let plan = async || server.send(post("/api/plan", "{}")).await.json();

    let empty = plan().await;
    assert_eq!((&empty["text"], &empty["changes"]), (&json!("no changes"), &json!([])));
    file.write("[\"app/web\"]\nshutdown = \"8s\"\n");
    let first = plan().await;
    let change = &first["changes"][0];
    assert_eq!((&change["path"], &change["key"]), (&json!("app/web"), &json!("shutdown")));
    assert_eq!((&change["old"], &change["new"]), (&json!("\"7s\""), &json!("\"8s\"")));
    assert!(first["text"].as_str().unwrap().starts_with("~ app/web  shutdown  \"7s\" → \"8s\""));
    assert_eq!(shutdown().await, "7s", "shown, and not applied");

    file.write("[\"app/web\"]\nshutdown = \"9s\"\n");
    let (status, text) = reload(&first["id"]).await;
    assert_eq!(status, 409, "{text}");
    assert_eq!(shutdown().await, "7s");
    let second = plan().await;
    assert_eq!(reload(&second["id"]).await, (200, "reloaded: 1 change, 0 unchanged".to_owned()));
    assert_eq!(shutdown().await, "9s");
    let past = server.get("/api/events?under=app").await.json();
    let reloaded = past["entries"].as_array().unwrap().iter().find(|it| it["event"] == "reloaded");
    let reloaded = reloaded.map(|it| (&it["path"], &it["text"]));
    let text = json!("reloaded: 1 change, 0 unchanged, by console: a test");
    assert_eq!(reloaded, Some((&json!("app"), &text)));
    let (status, text) = reload(&second["id"]).await;
    assert_eq!(status, 409, "it has been applied already: {text}");
    assert_eq!(reload(&json!("nothing")).await.0, 404);

    file.write("[\"app/web\"]\nshutdwon = \"9s\"\n");
    let (status, text) = server.send(post("/api/plan", "{}")).await.text();
    assert_eq!(status, 409);
    assert!(text.contains("shutdwon"), "{text}");
    std::fs::remove_file(&file.0).unwrap();
    assert_eq!(server.send(post("/api/plan", "{}")).await.status, 409);
    assert_eq!(shutdown().await, "9s");
    running.stop().await;
}

#[tokio::test]
async fn a_secret_that_changes_changes_a_plan_and_is_never_shown() {
    let text = |password: &str| format!("[\"app/db\".config]\npassword = \"{password}\"\n");
    let file = File::new(&text("hunter2"));
    let running = Running::start(application(&file), console()).await;
    file.write(&text("hunter3"));
    let plan = running.server.send(post("/api/plan", "{}")).await;
    assert!(!plan.body.contains("hunter"), "{plan:?}");
    assert_eq!(plan.json()["changes"][0]["new"], "[redacted]");
    file.write(&text("hunter4"));
    let order = json!({ "plan": plan.json()["id"] });
    let answer = running.server.send(post("/api/reload", order)).await;
    assert_eq!(answer.problem(), (409, "plan_changed".to_owned()), "it looks the same, and isn't");
    running.stop().await;
}

#[tokio::test]
async fn a_plan_of_a_given_file_is_shown_and_cannot_be_applied() {
    let app = Application::new(app().child(worker("web", idle)));
    let running = Running::start(app, console()).await;
    let plan = async |toml: &str| {
        let file = json!({ "name": "mine.toml", "toml": toml });
        running.server.send(post("/api/plan", json!({ "file": file }))).await
    };
    let answer = plan("[\"app/web\"]\nshutdown = \"8s\"\n").await.json();
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("~ app/web  shutdown  \"5s\" → \"8s\""), "{text}");
    assert_eq!(answer["id"], Value::Null);

    let mistake = plan("[\"app/web\"]\nshutdwon = \"8s\"\n").await;
    assert_eq!(mistake.status, 409);
    assert!(mistake.body.contains("mine.toml:2"), "{mistake:?}");
    let large = plan(&"# a line of a long file\n".repeat(10_000)).await;
    assert_eq!(large.status, 200, "240 kB: {large:?}");
    assert_eq!(large.json()["text"], "no changes");
    let too_large = plan(&"#".repeat(1024 * 1024)).await;
    assert_eq!(too_large.problem(), (413, "too_large".to_owned()));
    running.stop().await;
}

#[tokio::test]
async fn without_a_configuration_there_is_no_plan() {
    let app = Application::new(app().child(worker("web", idle)));
    let running = Running::start(app, console()).await;
    assert_eq!(running.server.get("/api/info").await.json()["reload"], false);
    assert_eq!(running.server.get("/api/config").await.json(), json!({ "values": [] }));
    let answer = running.server.send(post("/api/plan", "{}")).await;
    assert_eq!(answer.problem(), (409, "wrong_state".to_owned()));
    running.stop().await;
}
