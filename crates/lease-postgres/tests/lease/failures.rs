//! The engine when something is wrong: what an error says, and that the engine works again afterwards.

use std::time::Duration;

use tokio::time::timeout;
use verger::lease::{Acquired, Claim, LeaseEngine, LeaseError, Renewed};
use verger_lease_postgres::Postgres;

use crate::process::free_port;
use crate::recovers;
use crate::server::{self, PASSWORD, Server};
use crate::shared::requests::{claim, granted, held_by, in_time};

/// Returns the text of an error, after a look at all that could be logged.
fn text(error: &LeaseError) -> String {
    let mut all = format!("{error:?}");
    let mut beneath = Some(error as &dyn std::error::Error);
    while let Some(error) = beneath {
        all += &format!("{error} {error:?}");
        beneath = error.source();
    }
    assert!(!all.contains(PASSWORD), "{all}");
    error.to_string()
}

async fn refused(engine: &Postgres) -> String {
    text(&engine.acquire(&claim("app", "a")).await.unwrap_err())
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` isn't in: {text}");
    }
}

#[tokio::test]
async fn users_and_databases() {
    let Some(server) = Server::start() else { return };
    let port = server.port;
    let engine = server::engine;

    let error = refused(&engine(&server.url("nobody", PASSWORD, "postgres"))).await;
    assert_says(&error, &[&format!("127.0.0.1:{port} refuses the user `nobody` (password auth")]);
    let wrong = refused(&engine(&server.url("postgres", "hunter", "postgres"))).await;
    assert_says(&wrong, &["refuses the user `postgres`", ": correct user and password;"]);
    let none = refused(&engine(&format!("postgres://postgres@127.0.0.1:{port}/x"))).await;
    assert_says(&none, &["password missing"]);

    let error = refused(&engine(&server.url("postgres", PASSWORD, "absent"))).await;
    assert_says(
        &error,
        &["doesn't have the database (database \"absent\" does not exist)", ": create it, or"],
    );

    let tls = format!("{}?sslmode=require", server.own_url());
    let error = refused(&engine(&tls)).await;
    assert_says(&error, &["can't be reached with TLS", "`Postgres::with_connector`"]);

    server.run_sql("CREATE USER app PASSWORD 'app'").await;
    let restricted = engine(&server.url("app", "app", "postgres"));
    let error = text(&restricted.migrate().await.unwrap_err());
    assert_says(
        &error,
        &["doesn't allow this to the user `app` (permission denied", "needs CREATE"],
    );
    server.engine().migrate().await.unwrap();
    restricted.migrate().await.expect("there is nothing to do");
    let error = refused(&restricted).await;
    assert_says(
        &error,
        &["doesn't allow this to the user `app`", ": grant SELECT, INSERT and UPDATE"],
    );
    server.run_sql("GRANT SELECT, INSERT, UPDATE ON verger_leases TO app").await;
    assert_eq!(granted(&restricted, &claim("app", "a")).await.get(), 1, "on the same connection");
}

#[tokio::test]
async fn tables() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    let error = refused(&engine).await;
    assert_says(
        &error,
        &["of the database `postgres` has no table `verger_leases`: call `Postgres::migrate`"],
    );
    let away = server.engine().table("nowhere.leases").unwrap();
    let error = text(&away.migrate().await.unwrap_err());
    assert_says(&error, &["doesn't have the schema of the table `nowhere.leases`", "create it"]);

    engine.migrate().await.unwrap();
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 1, "on the same connection");

    // It disappears while the engine is connected.
    server.run_sql("ALTER TABLE verger_leases RENAME TO away").await;
    assert_says(&refused(&engine).await, &["has no table `verger_leases`"]);
    server.run_sql("ALTER TABLE away RENAME TO verger_leases").await;
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 2);

    let comment = |text: &str| format!("COMMENT ON TABLE verger_leases IS {text}");
    server.run_sql(&comment("'verger leases, schema version 0'")).await;
    let error = refused(&server.engine()).await;
    assert_says(
        &error,
        &["has schema version 0, and this program needs 2: call `Postgres::migrate`"],
    );
    server.engine().migrate().await.unwrap();
    assert_eq!(granted(&server.engine(), &claim("app", "a")).await.get(), 3, "the rows are kept");

    server.run_sql(&comment("'verger leases, schema version 3'")).await;
    let newer = "has schema version 3, and this program knows 2: use the version of verger";
    assert_says(&refused(&server.engine()).await, &[newer]);
    assert_says(&text(&server.engine().migrate().await.unwrap_err()), &[newer]);

    server.run_sql(&comment("NULL")).await;
    let foreign = "has no comment `verger leases, schema version 2`, so it may be a different one";
    assert_says(&refused(&server.engine()).await, &[foreign]);
    assert_says(&text(&server.engine().migrate().await.unwrap_err()), &[foreign]);

    server.run_sql("ALTER TABLE verger_leases RENAME holder TO owner").await;
    server.run_sql(&comment("'verger leases, schema version 2'")).await;
    assert_says(&refused(&server.engine()).await, &["has different columns", "compare it with"]);
}

#[tokio::test]
async fn a_server_that_is_read_only() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let token = granted(&engine, &claim("app", "a")).await;
    server.run_sql("ALTER DATABASE postgres SET default_transaction_read_only = on").await;
    let read_only = server.engine();
    let error = refused(&read_only).await;
    assert_says(&error, &["is read-only (cannot execute", "`target_session_attrs=read-write`"]);
    let error = text(&read_only.renew(&claim("app", "a"), token).await.unwrap_err());
    assert_says(&error, &["is read-only"]);
    let error = text(&server.engine().table("new").unwrap().migrate().await.unwrap_err());
    assert_says(&error, &["is read-only"]);

    // The setting is that of new sessions: the engine has left the one that was of no use.
    let reset =
        "BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT";
    server.run_sql(reset).await;
    assert!(granted(&read_only, &claim("app", "a")).await > token);
}

#[tokio::test]
async fn a_replica() {
    let Some(mut server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let token = granted(&engine, &claim("app", "a")).await;
    server.stop();
    server.become_replica();
    server.start_again();
    let engine = server.engine();
    let error = refused(&engine).await;
    assert_says(&error, &["is read-only (cannot execute", "`target_session_attrs=read-write`"]);
    let error = text(&engine.renew(&claim("app", "a"), token).await.unwrap_err());
    assert_says(&error, &["is read-only (cannot execute"]);

    server.run_sql("SELECT pg_promote()").await;
    let Acquired::Granted(later) = recovers(&engine, &claim("app", "a")).await else { panic!() };
    assert!(later > token);
}

#[tokio::test]
async fn no_server() {
    let port = free_port();
    let engine = Postgres::new(&format!("host=127.0.0.1 port={port} user=app password={PASSWORD}"));
    let engine = engine.unwrap();
    let error = refused(&engine).await;
    assert_says(
        &error,
        &[&format!("127.0.0.1:{port} accepts no connections ("), "start PostgreSQL there"],
    );
    let error = text(&engine.migrate().await.unwrap_err());
    assert_says(&error, &["accepts no connections"]);

    let socket = Postgres::new("host=/nowhere user=app").unwrap();
    assert_says(&refused(&socket).await, &["/nowhere:5432 accepts no connections ("]);

    // It is listening, and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = Postgres::new(&format!("host=127.0.0.1 port={port} user=app")).unwrap();
    let silent = silent.connect_timeout(Duration::from_millis(50));
    let error = in_time(refused(&silent)).await;
    assert_says(
        &error,
        &["accepts no connection within 50ms: ", "raise `Postgres::connect_timeout`"],
    );
}

#[tokio::test]
async fn a_connector_that_fails() {
    let engine = Postgres::with_connector(async || Err("the vault is sealed".into()));
    let error = refused(&engine).await;
    assert_eq!(error, "the connector returned no connection (the vault is sealed)");

    let port = free_port();
    let engine = Postgres::with_connector(move || async move {
        let config = format!("host=127.0.0.1 port={port} user=app");
        let (client, _) = tokio_postgres::connect(&config, tokio_postgres::NoTls).await?;
        Ok(client)
    });
    let error = refused(&engine).await;
    assert_says(&error, &["the connector's server accepts no connections (", "start PostgreSQL"]);
}

#[test]
fn passwords_are_never_shown() {
    let secret = "postgres://app:hunter2@db.internal:1/leases";
    let shown = format!("{:?}", Postgres::new(secret).unwrap());
    assert_eq!(
        shown,
        "Postgres { server: \"db.internal:1\", database: Some(\"leases\"), table: \"verger_leases\", .. }"
    );
    for broken in ["postgres://app:hunter2@db:hunter2/x", "password=a hunter2=b", "hunter2"] {
        assert_says(
            &text(&Postgres::new(broken).unwrap_err()),
            &["the connection string can't be parsed"],
        );
    }
}

#[tokio::test]
async fn a_server_that_is_stopped_and_started_again() {
    let Some(mut server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(60));
    let token = granted(&engine, &a).await;
    server.stop();
    let error = text(&engine.renew(&a, token).await.unwrap_err());
    assert!(error.contains("has closed the connection") || error.contains("accepts no"), "{error}");
    assert_says(&in_time(refused(&engine)).await, &["accepts no connections"]);

    server.start_again();
    assert_eq!(engine.renew(&a, token).await.unwrap(), Renewed::Extended, "at the first request");
    assert_eq!(engine.acquire(&claim("app", "b")).await.unwrap(), held_by("a"));
}

#[tokio::test]
async fn a_connection_that_the_server_ends() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(60));
    granted(&engine, &a).await;
    server
        .run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'verger'")
        .await;
    assert!(matches!(recovers(&engine, &a).await, Acquired::Granted(_)));
}

#[tokio::test]
async fn a_server_that_hangs_and_goes_on() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(60));
    let token = granted(&engine, &a).await;
    assert_eq!(server.signal_backends("-STOP").await, 1);
    server.signal("-STOP");
    for _ in 0..3 {
        let renewal = engine.renew(&a, token);
        assert!(
            timeout(Duration::from_millis(50), renewal).await.is_err(),
            "the server is stopped"
        );
    }
    // A new engine can't connect either.
    let other = server.engine().connect_timeout(Duration::from_millis(50));
    assert_says(&in_time(refused(&other)).await, &["accepts no connection within 50ms"]);

    server.signal("-CONT");
    assert_eq!(server.signal_backends("-CONT").await, 1);
    assert_eq!(in_time(engine.renew(&a, token)).await.unwrap(), Renewed::Extended);
    assert_eq!(server.signal_backends("-CONT").await, 1, "it is the same connection");
}

/// With the times of the book: a TTL of 6 s, a renew deadline of 4 s, a retry after 1 s.
#[tokio::test]
async fn a_connection_that_turns_silent_is_replaced_before_the_lease_is_lost() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(6));
    let token = granted(&engine, &a).await;
    assert_eq!(server.signal_backends("-STOP").await, 1);
    // A guard drops a request after a third of the renew deadline, and sends the next one immediately.
    tokio::time::pause();
    let dropped = timeout(Duration::from_secs(4) / 3, engine.renew(&a, token)).await;
    tokio::time::resume();
    assert!(dropped.is_err(), "the server is stopped");
    assert_eq!(in_time(engine.renew(&a, token)).await.unwrap(), Renewed::Extended);
    server.signal_backends("-CONT").await;
}

/// As behind a proxy whose server has disappeared: the connection stays open, and no answer comes.
#[tokio::test]
async fn a_connection_that_stays_silent_is_replaced() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(60));
    let token = granted(&engine, &a).await;
    assert_eq!(server.signal_backends("-STOP").await, 1);
    for _ in 0..3 {
        let renewal = engine.renew(&a, token);
        assert!(
            timeout(Duration::from_millis(20), renewal).await.is_err(),
            "the server is stopped"
        );
    }
    // Without waiting for real.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    assert_eq!(in_time(engine.renew(&a, token)).await.unwrap(), Renewed::Extended);
    server.signal_backends("-CONT").await;
}
