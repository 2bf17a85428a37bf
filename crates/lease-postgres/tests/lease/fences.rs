//! Writes of the holder of a lease, which an older holder can't make.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine, Released, Renewed};
use verger_lease_postgres::{Fenced, Postgres, fence};

use crate::server::Server;
use crate::shared::requests::{claim, granted, granted_in_time, held_by, in_time};

async fn start() -> Option<(Server, Postgres, Client)> {
    let server = Server::start()?;
    let engine = server.engine();
    engine.migrate().await.unwrap();
    let client = server.client().await;
    client.batch_execute("CREATE TABLE invoices (number bigint, amount bigint)").await.unwrap();
    Some((server, engine, client))
}

async fn write(client: &mut Client, token: FencingToken) -> Result<(), Fenced> {
    let transaction = client.transaction().await.unwrap();
    fence(&transaction, "billing", token).await?;
    transaction.execute("INSERT INTO invoices VALUES (1, 1)", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    Ok(())
}

async fn invoices(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM invoices", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_write_with_an_older_token_is_refused() {
    let Some((_server, engine, mut client)) = start().await else { return };
    let never = write(&mut client, FencingToken::new(1)).await.unwrap_err();
    assert!(matches!(never, Fenced::Stale { .. }), "{never}");

    let short = Claim::new("billing", "a", Duration::from_millis(50));
    let stale = granted(&engine, &short).await;
    write(&mut client, stale).await.unwrap();
    let current = granted_in_time(&engine, &claim("billing", "b")).await;
    let error = write(&mut client, stale).await.unwrap_err();
    assert!(
        matches!(&error, Fenced::Stale { name, token } if name == "billing" && *token == stale)
    );
    assert_eq!(
        error.to_string(),
        "the lease `billing` was granted again since token 1: roll the transaction back"
    );
    for token in [0, 3, u64::MAX] {
        assert!(write(&mut client, FencingToken::new(token)).await.is_err(), "{token}");
    }
    write(&mut client, current).await.unwrap();
    assert_eq!(invoices(&client).await, 2);

    // After a release, the token is still the last one.
    engine.release(&claim("billing", "b"), current).await.unwrap();
    write(&mut client, current).await.unwrap();
    granted(&engine, &claim("billing", "c")).await;
    assert!(write(&mut client, current).await.is_err());
    assert_eq!(invoices(&client).await, 3);
}

#[tokio::test]
async fn a_statement_can_check_the_token_itself() {
    let Some((_server, engine, client)) = start().await else { return };
    let stale = granted(&engine, &claim("billing", "a")).await.get() as i64;
    let current = granted(&engine, &claim("billing", "a")).await.get() as i64;
    // As in the documentation of `fence`.
    let insert = "INSERT INTO invoices (number, amount) \
                  SELECT $1, $2 FROM verger_leases WHERE name = $3 AND epoch = $4 FOR KEY SHARE";
    let update = "WITH fence AS (SELECT FROM verger_leases WHERE name = $2 AND epoch = $3 FOR KEY SHARE) \
                  UPDATE invoices SET amount = 0 WHERE number = $1 AND EXISTS (SELECT FROM fence)";
    for (token, changed) in [(stale, 0), (current, 1)] {
        let inserted = client.execute(insert, &[&7_i64, &100_i64, &"billing", &token]).await;
        assert_eq!(inserted.unwrap(), changed);
        let updated = client.execute(update, &[&7_i64, &"billing", &token]).await;
        assert_eq!(updated.unwrap(), changed);
    }
}

#[tokio::test]
async fn an_open_transaction_delays_the_next_grant_and_no_renewal() {
    let Some((_server, engine, mut client)) = start().await else { return };
    let (a, b) = (claim("billing", "a"), claim("billing", "b"));
    let token = granted(&engine, &a).await;
    let transaction = client.transaction().await.unwrap();
    fence(&transaction, "billing", token).await.unwrap();

    assert_eq!(in_time(engine.renew(&a, token)).await.unwrap(), Renewed::Extended);
    assert_eq!(in_time(engine.release(&a, token)).await.unwrap(), Released::Released);
    // The answer is no. A standby that waited would keep a connection of the server for each of its requests.
    for _ in 0..5 {
        assert_eq!(in_time(engine.acquire(&b)).await.unwrap(), held_by("a"));
    }
    transaction.execute("INSERT INTO invoices VALUES (1, 1)", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(granted(&engine, &b).await.get(), 2);
}

#[tokio::test]
async fn a_grant_that_is_being_committed_makes_an_older_token_wait() {
    let Some((server, engine, mut client)) = start().await else { return };
    let token = granted(&engine, &claim("billing", "a")).await;
    // What the statement of a grant does, between its update and its commit.
    let granting = server.client().await;
    granting.batch_execute("BEGIN; UPDATE verger_leases SET epoch = epoch + 1").await.unwrap();
    let mut writing = pin!(write(&mut client, token));
    let waited = timeout(Duration::from_millis(200), &mut writing).await;
    assert!(waited.is_err(), "it is decided by a commit that hasn't happened: {waited:?}");
    granting.batch_execute("COMMIT").await.unwrap();
    let error = in_time(writing).await.unwrap_err();
    assert!(matches!(error, Fenced::Stale { .. }), "{error}");
}

#[tokio::test]
async fn a_transaction_that_hangs_is_ended_by_the_timeout_of_the_server() {
    let Some((_server, engine, mut client)) = start().await else { return };
    client.batch_execute("SET idle_in_transaction_session_timeout = '300ms'").await.unwrap();
    let short = Claim::new("billing", "a", Duration::from_millis(50));
    let token = granted(&engine, &short).await;
    let transaction = client.transaction().await.unwrap();
    fence(&transaction, "billing", token).await.unwrap();
    assert_eq!(granted_in_time(&engine, &claim("billing", "b")).await.get(), 2);
    assert!(transaction.execute("INSERT INTO invoices VALUES (1, 1)", &[]).await.is_err());
}

#[tokio::test]
async fn a_snapshot_from_before_the_grant_is_refused() {
    let Some((_server, engine, mut client)) = start().await else { return };
    let a = claim("billing", "a");
    let token = granted(&engine, &a).await;
    let snapshot = async |client: &mut Client, change: &dyn Fn() -> Change| {
        let transaction = client.build_transaction();
        let level = tokio_postgres::IsolationLevel::RepeatableRead;
        let transaction = transaction.isolation_level(level).start().await.unwrap();
        transaction.query("SELECT FROM invoices", &[]).await.unwrap();
        change().await;
        fence(&transaction, "billing", token).await
    };
    let (engine, a) = (&engine, &a);
    let renewal = move || -> Change {
        let (engine, a) = (engine.clone(), a.clone());
        Box::pin(async move {
            assert_eq!(engine.renew(&a, token).await.unwrap(), Renewed::Extended);
        })
    };
    snapshot(&mut client, &renewal).await.expect("a renewal changes nothing");
    let grant = move || -> Change {
        let (engine, a) = (engine.clone(), a.clone());
        Box::pin(async move {
            assert!(matches!(engine.acquire(&a).await, Ok(Acquired::Granted(_))));
        })
    };
    let error = snapshot(&mut client, &grant).await.unwrap_err();
    let Fenced::Unknown { error: beneath, .. } = &error else { panic!("{error}") };
    assert_eq!(beneath.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    assert!(error.to_string().contains("could not serialize access"), "{error}");
}

type Change = Pin<Box<dyn Future<Output = ()>>>;

#[tokio::test]
async fn an_engine_fences_with_its_own_table() {
    let Some((server, default, mut client)) = start().await else { return };
    let engine = server.engine().table("other_leases").unwrap();
    engine.migrate().await.unwrap();
    for _ in 0..3 {
        granted(&engine, &claim("billing", "a")).await;
    }
    granted(&default, &claim("billing", "a")).await;
    let transaction = client.transaction().await.unwrap();
    engine.fence(&transaction, "billing", FencingToken::new(3)).await.unwrap();
    assert!(engine.fence(&transaction, "billing", FencingToken::new(1)).await.is_err());
    assert!(fence(&transaction, "billing", FencingToken::new(3)).await.is_err());
    fence(&transaction, "billing", FencingToken::new(1)).await.unwrap();
}
