//! The rules, several processes, poolers, crashes of the server, and the table.

use std::time::{Duration, Instant};

use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseRecord, Memo, MemoWrite, Released, Renewed,
};
use verger::testing::assert_lease_rules;
use verger_lease_postgres::{Postgres, fence};

use crate::recovers;
use crate::server::{self, Bouncer, Server, connect};
use crate::shared::peer::Peer;
use crate::shared::requests::{TTL, claim, compete, granted, granted_in_time, held_by};
use crate::shared::rules;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn it_keeps_the_rules_of_an_engine() {
    let Some(server) = Server::start() else { return };
    let (one, two) = (server.engine(), server.engine());
    one.migrate().await.unwrap();
    rules::check(&one, &two, "app").await;
    rules::check(&one, &one.clone(), "it's \"quoted\"; ä").await;
    assert_lease_rules(one.clone(), "checked", SECOND).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_that_compete_one_has_the_lease() {
    let Some(server) = Server::start() else { return };
    server.engine().migrate().await.unwrap();
    compete("app", 5, || server.engine()).await;
}

/// Two of them may both find no row, and meet in either of the table's unique indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_first_requests_for_a_lease_one_is_granted_and_none_fails() {
    let Some(server) = Server::start() else { return };
    server.engine().migrate().await.unwrap();
    let engines: Vec<_> = (0..8).map(|_| server.engine()).collect();
    for name in 0..200 {
        let requests: Vec<_> = engines
            .iter()
            .enumerate()
            .map(|(holder, engine)| {
                let (engine, claim) =
                    (engine.clone(), claim(&name.to_string(), &holder.to_string()));
                tokio::spawn(async move { engine.acquire(&claim).await.unwrap() })
            })
            .collect();
        let mut granted = 0;
        for request in requests {
            granted += u32::from(matches!(request.await.unwrap(), Acquired::Granted(_)));
        }
        assert_eq!(granted, 1, "lease {name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_that_compete_are_serialised_at_every_isolation_level() {
    for level in ["repeatable read", "serializable"] {
        let setting = format!("default_transaction_isolation={level}");
        let Some(server) = Server::with(&[&setting]) else { return };
        server.engine().migrate().await.unwrap();
        rules::check(&server.engine(), &server.engine(), "rules").await;
        compete("app", 2, || server.engine()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_works_through_pgbouncer_in_transaction_mode() {
    let Some(server) = Server::start() else { return };
    let Some(bouncer) = Bouncer::start(&server) else { return };
    let engine = || server::engine(&bouncer.url());
    engine().migrate().await.unwrap();
    let (one, two) = (engine(), engine());
    rules::check(&one, &two, "app").await;
    assert_lease_rules(one.clone(), "checked", SECOND).await;
    compete("competing", 3, engine).await;

    // The statements of one engine went over several connections.
    let query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'verger'";
    let pooled: i64 = server.client().await.query_one(query, &[]).await.unwrap().get(0);
    assert!((1..=Bouncer::POOL).contains(&pooled), "{pooled}");

    let mut client = connect(&bouncer.url()).await;
    let token = granted(&one, &claim("fenced", "a")).await;
    let transaction = client.transaction().await.unwrap();
    fence(&transaction, "fenced", token).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn a_killed_process_is_replaced_after_its_ttl() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let mut peer = Peer::start(server.own_url());
    let before = Instant::now();
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    let after = Instant::now();
    peer.kill();
    assert_eq!(engine.acquire(&claim("app", "a")).await.unwrap(), held_by("other"));
    assert_eq!(granted_in_time(&engine, &claim("app", "a")).await.get(), 2);
    let (most, least) = (before.elapsed(), after.elapsed());
    assert!(most >= TTL, "{most:?}");
    assert!(least < 2 * TTL, "{least:?}");
}

#[tokio::test]
async fn a_memo_outlives_the_process_that_has_written_it() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let mut peer = Peer::start(server.own_url());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    assert_eq!(peer.ask("memo app other 1 half-way"), "Ok(Stored)");
    let remaining = engine.holder("app").await.unwrap().remaining();
    assert!(remaining.is_some_and(|remaining| remaining <= TTL), "{remaining:?}");
    peer.kill();
    assert_eq!(granted_in_time(&engine, &claim("app", "a")).await.get(), 2);
    let record = engine.holder("app").await.unwrap();
    assert_eq!(record.memo().as_bytes(), b"half-way");
}

#[tokio::test]
async fn a_memo_is_not_written_after_the_expiry() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let none = Claim::new("none", "a", Duration::ZERO);
    let token = granted(&engine, &none).await;
    let written = engine.write_memo(&none, token, &Memo::new("late").unwrap()).await;
    assert_eq!(written.unwrap(), MemoWrite::NotHeld);
    assert_eq!(engine.holder("none").await.unwrap(), LeaseRecord::free());
}

#[tokio::test]
async fn a_table_of_the_first_version_gets_memos_and_keeps_its_tokens() {
    let Some(server) = Server::start() else { return };
    let of_first_version = "CREATE TABLE verger_leases (name text PRIMARY KEY, epoch bigint NOT NULL, \
         holder text NOT NULL, expires_at timestamptz NOT NULL, UNIQUE (name, epoch)); \
         COMMENT ON TABLE verger_leases IS 'verger leases, schema version 1'; \
         INSERT INTO verger_leases VALUES ('app', 7, 'a', now() + interval '1 hour')";
    server.run_sql(of_first_version).await;
    let engine = server.engine();
    let error = engine.holder("app").await.unwrap_err().to_string();
    assert!(error.contains("has schema version 1, and this program needs 2: call"), "{error}");
    engine.migrate().await.unwrap();
    let token = FencingToken::new(7);
    let record = engine.holder("app").await.unwrap();
    assert_eq!((record.token(), record.memo().is_empty()), (Some(token), true));
    let memo = Memo::new("kept").unwrap();
    let written = engine.write_memo(&claim("app", "a"), token, &memo).await;
    assert_eq!(written.unwrap(), MemoWrite::Stored);
    engine.migrate().await.unwrap();
    assert_eq!(*engine.holder("app").await.unwrap().memo(), memo);
}

#[tokio::test]
async fn a_memo_waits_for_no_fenced_transaction_and_delays_none() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let token = granted(&engine, &claim("app", "a")).await;
    let mut client = server.client().await;
    let transaction = client.transaction().await.unwrap();
    fence(&transaction, "app", token).await.unwrap();
    let memo = Memo::new("during").unwrap();
    let written = engine.write_memo(&claim("app", "a"), token, &memo).await;
    assert_eq!(written.unwrap(), MemoWrite::Stored);
    fence(&transaction, "app", token).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn a_process_that_releases_is_replaced_at_once() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let mut peer = Peer::start(server.own_url());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    assert_eq!(engine.acquire(&claim("app", "a")).await.unwrap(), held_by("other"));
    assert_eq!(peer.ask("release app other 1"), "Ok(Released)");
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 2);
}

#[tokio::test]
async fn a_process_that_was_stopped_for_too_long_has_lost_its_lease() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let mut peer = Peer::start(server.own_url());
    assert_eq!(peer.ask("acquire app other"), "granted 1");
    peer.signal("-STOP");
    assert_eq!(granted_in_time(&engine, &claim("app", "a")).await.get(), 2);
    peer.signal("-CONT");
    assert_eq!(peer.ask("renew app other 1"), "Ok(Lost)");
    assert_eq!(peer.ask("release app other 1"), "Ok(NotHeld)");
    assert_eq!(peer.ask("acquire app other"), format!("Ok({:?})", held_by("a")));
}

/// A grant whose commit had not reached the disk would be granted again, with the same token.
#[tokio::test]
async fn a_crash_of_the_server_takes_no_grant_back() {
    let settings = ["synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB"];
    let Some(mut server) = Server::with(&settings) else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let client = server.client().await;
    // All that was written so far is on the disk after this, and nothing else flushes the log.
    client.batch_execute("SET synchronous_commit = on; CREATE TABLE kept ()").await.unwrap();
    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    let long = |holder| Claim::new("app", holder, Duration::from_secs(60));
    let first = granted(&engine, &long("a")).await;
    let token = granted(&engine, &long("a")).await;
    // What the setting costs a program that doesn't wait.
    client.batch_execute("CREATE TABLE lost ()").await.unwrap();

    server.stop();
    server.start_again();
    assert_eq!(recovers(&engine, &long("b")).await, held_by("a"));
    assert_eq!(engine.renew(&long("a"), first).await.unwrap(), Renewed::Lost);
    assert_eq!(engine.renew(&long("a"), token).await.unwrap(), Renewed::Extended);
    let query = "SELECT to_regclass('lost') IS NULL";
    let is_lost: bool = server.client().await.query_one(query, &[]).await.unwrap().get(0);
    assert!(is_lost, "the server doesn't do what this test is about");
}

#[tokio::test]
async fn a_standby_writes_nothing_and_locks_nothing() {
    let Some(server) = Server::start() else { return };
    let (holder, standby) = (server.engine(), server.engine());
    holder.migrate().await.unwrap();
    let a = Claim::new("app", "a", Duration::from_secs(60));
    granted(&holder, &a).await;
    let client = server.client().await;
    // `xmax` is the last transaction that has locked or replaced the row.
    let query = "SELECT ctid::text, xmin::text, xmax::text FROM verger_leases";
    let row = async || {
        let row = client.query_one(query, &[]).await.unwrap();
        [0, 1, 2].map(|it| row.get::<_, String>(it))
    };
    let before = row().await;
    for _ in 0..10 {
        assert_eq!(standby.acquire(&claim("app", "b")).await.unwrap(), held_by("a"));
    }
    assert_eq!(row().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_programs_may_migrate_at_once() {
    let Some(server) = Server::start() else { return };
    for table in ["one", "two", "three", "four", "five", "six"] {
        let migrations: Vec<_> = (0..6)
            .map(|_| {
                let engine = server.engine().table(table).unwrap();
                tokio::spawn(async move {
                    // So that all are connected already.
                    drop(engine.acquire(&claim("connecting", "a")).await);
                    engine.migrate().await
                })
            })
            .collect();
        for migration in migrations {
            migration.await.unwrap().unwrap();
        }
    }
    let engine = server.engine().table("one").unwrap();
    assert_eq!(granted(&engine, &claim("app", "a")).await.get(), 1);
    engine.migrate().await.unwrap();
    assert_eq!(engine.acquire(&claim("app", "b")).await.unwrap(), held_by("a"));
}

#[tokio::test]
async fn the_schema_can_be_applied_by_migrations() {
    let Some(server) = Server::start() else { return };
    for _ in 0..2 {
        server.run_sql(Postgres::SCHEMA).await;
    }
    let engine = server.engine();
    rules::check(&engine, &server.engine(), "app").await;

    // A table of a different name is a different store.
    server.run_sql("CREATE SCHEMA ops").await;
    let ops = server.engine().table("ops.order").unwrap();
    server.run_sql(&ops.schema()).await;
    rules::check(&ops, &ops.clone(), "app").await;
    let other = ops.clone().table("leases_2").unwrap();
    other.migrate().await.unwrap();
    rules::check(&other, &other.clone(), "app").await;
}

/// The clock of the server decides alone: no request contains a time, and only the difference is the client's.
#[tokio::test]
async fn a_lease_expires_by_the_clock_of_the_server() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let year = Claim::new("app", "a", Duration::from_secs(366 * 24 * 3600));
    granted(&engine, &year).await;
    let remaining =
        "SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM verger_leases";
    let seconds: f64 = server.client().await.query_one(remaining, &[]).await.unwrap().get(0);
    assert!((seconds - 366.0 * 24.0 * 3600.0).abs() < 60.0, "{seconds}");

    for ttl in [Duration::MAX, Duration::from_secs(1 << 40)] {
        granted(&engine, &Claim::new("app", "a", ttl)).await;
        assert_eq!(engine.acquire(&claim("app", "b")).await.unwrap(), held_by("a"));
    }
    let none = Claim::new("none", "a", Duration::ZERO);
    let token = granted(&engine, &none).await;
    assert_eq!(engine.renew(&none, token).await.unwrap(), Renewed::Lost);
    assert_eq!(engine.release(&none, token).await.unwrap(), Released::NotHeld);
}

#[tokio::test]
async fn one_connection_serves_all_leases_of_an_engine() {
    let Some(server) = Server::start() else { return };
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let requests: Vec<_> = (0..50)
        .map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move { granted(&engine, &claim(&number.to_string(), "a")).await })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap().get(), 1);
    }
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'verger'";
    let client = server.client().await;
    let count: i64 = client.query_one(backends, &[]).await.unwrap().get(0);
    assert_eq!(count, 1);

    // It ends with the last clone.
    drop(engine);
    loop {
        let count: i64 = client.query_one(backends, &[]).await.unwrap().get(0);
        if count == 0 {
            break;
        }
    }
}

#[tokio::test]
async fn a_program_can_open_the_connections_itself() {
    let Some(server) = Server::start() else { return };
    let url = server.own_url();
    let engine = Postgres::with_connector(move || {
        let url = url.clone();
        async move {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        }
    });
    engine.migrate().await.unwrap();
    rules::check(&engine, &server.engine(), "app").await;
    assert!(matches!(engine.acquire(&claim("app", "b")).await, Ok(Acquired::Held { .. })));
}
