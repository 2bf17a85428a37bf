//! Children on standby whose engine can't ask its store: what their status says they wait for.

use std::time::Duration;

use verger::lease::Lease;
use verger::{Context, Lifecycle, Supervisor, worker};
use verger_lease_postgres::Postgres;

use crate::process::free_port;
use crate::server::{self, PASSWORD, Server};
use crate::shared::requests::in_time;

/// Starts a tree, and returns what its child waits for once the engine has answered.
async fn waits_for(engine: Postgres) -> String {
    let child = worker("scheduler", async |ctx: Context| ctx.cancelled().await);
    let app = Supervisor::builder("app").child(child.lease(Lease::new("scheduler", engine)));
    let tree = in_time(app.build().unwrap().start()).await.expect("a standby holds up no start");
    let info = in_time(async {
        loop {
            let info = tree.which_child("scheduler").await.unwrap();
            if info.lease.as_ref().is_some_and(|lease| lease.problem.is_some()) {
                return info;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!((info.lifecycle, info.why), (Lifecycle::Discovered, Some("standby")));
    assert_eq!((info.failures, info.restarts), (0, 0));
    assert!(info.ready, "it isn't the fault of this process");
    in_time(tree.stop("over")).await.unwrap();
    let text = info.explanation().unwrap().into_owned();
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    assert!(text.starts_with("standby: "), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` isn't in: {text}");
    }
}

#[tokio::test]
async fn without_a_server() {
    let port = free_port();
    let engine = Postgres::new(&format!("host=127.0.0.1 port={port} user=app")).unwrap();
    let address = format!("127.0.0.1:{port} accepts no connections (");
    assert_says(&waits_for(engine).await, &[&address, "start PostgreSQL there"]);
}

#[tokio::test]
async fn with_a_wrong_password_without_the_table_and_with_a_replica() {
    let Some(mut server) = Server::start() else { return };
    let wrong = server::engine(&server.url("postgres", "wrong", "postgres"));
    let text = waits_for(wrong).await;
    assert_says(&text, &["refuses the user `postgres`", "correct user and password"]);

    let text = waits_for(server.engine()).await;
    assert_says(&text, &["has no table `verger_leases`", "call `Postgres::migrate`"]);

    server.engine().migrate().await.unwrap();
    server.stop();
    server.become_replica();
    server.start_again();
    let text = waits_for(server.engine()).await;
    assert_says(&text, &["is read-only", "`target_session_attrs=read-write`"]);
}
