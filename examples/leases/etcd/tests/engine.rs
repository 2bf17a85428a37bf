//! The engine and an etcd server.

mod server;

use std::time::{Duration, Instant};

use etcd_client::{Txn, TxnOp};
use lease_checks::{
    answered, check_holder_and_memo, compete, granted, granted_within, measure_takeovers,
    serve_peer,
};
use tokio::time::{sleep, timeout};
use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine, Released, Renewed};
use verger::testing::assert_lease_rules;

use self::server::{Server, engine};

/// The server grants no shorter lease.
const TTL: Duration = Duration::from_secs(2);

fn claim(name: &str, holder: &str) -> Claim {
    Claim::new(name, holder, TTL)
}

#[tokio::test]
async fn it_keeps_the_rules_of_an_engine() {
    let server = Server::start().await;
    assert_lease_rules(server.engine().await, "app", TTL).await;
    assert_lease_rules(server.engine().await, "it's \"quoted\"/ ä", TTL).await;
}

#[tokio::test]
async fn others_see_the_holder_and_the_memo_of_each() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    check_holder_and_memo(&one, &two, "app", TTL).await;
    check_holder_and_memo(&one, &two, "app.2", TTL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_that_compete_one_has_the_lease() {
    let server = Server::start().await;
    compete("app", 5, || server.engine()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_takes_over() {
    let server = Server::start().await;
    measure_takeovers(&server.url(), server.engine().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer() {
    serve_peer(async |url| engine(&url).await).await;
}

#[tokio::test]
async fn tokens_grow_after_a_crash_of_the_server() {
    let mut server = Server::start().await;
    let engine = server.engine().await;
    let first = granted(&engine, &claim("app", "a")).await;
    engine.release(&claim("app", "a"), first).await.unwrap();
    server.crash();
    server.start_again();
    let (second, _) = granted_within(&engine, &claim("app", "b"), 10 * TTL).await;
    assert!(second > first, "{second} after {first}");

    // It expires while the server is down, and the server begins to count again.
    server.crash();
    sleep(2 * TTL).await;
    server.start_again();
    let (third, _) = granted_within(&engine, &claim("app", "a"), 10 * TTL).await;
    assert!(third > second, "{third} after {second}");
}

#[tokio::test]
async fn a_lease_survives_a_crash_of_the_server() {
    let mut server = Server::start().await;
    let engine = server.engine().await;
    let long = |holder| Claim::new("app", holder, Duration::from_secs(60));
    let token = granted(&engine, &long("a")).await;
    server.crash();
    let unanswered = timeout(TTL, engine.renew(&long("a"), token)).await;
    assert!(!matches!(unanswered, Ok(Ok(_))), "{unanswered:?}");
    server.start_again();
    let held = Acquired::Held { by: Some("a".into()) };
    assert_eq!(answered(&engine, &long("b")).await, held);
    assert_eq!(engine.renew(&long("a"), token).await.unwrap(), Renewed::Extended);
    assert_eq!(engine.release(&long("a"), token).await.unwrap(), Released::Released);
    assert!(granted(&engine, &long("b")).await > token);
}

#[tokio::test]
async fn a_server_that_hangs_answers_nothing_and_then_goes_on() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let token = granted(&engine, &claim("app", "a")).await;
    server.signal("-STOP");
    let began = Instant::now();
    while began.elapsed() < 2 * TTL {
        let unanswered = timeout(TTL, engine.renew(&claim("app", "a"), token)).await;
        assert!(!matches!(unanswered, Ok(Ok(_))), "{unanswered:?}");
        sleep(TTL / 10).await;
    }
    server.signal("-CONT");
    let (next, _) = granted_within(&engine, &claim("app", "b"), 10 * TTL).await;
    assert!(next > token);
    assert_eq!(engine.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Lost);
    assert_eq!(engine.release(&claim("app", "a"), token).await.unwrap(), Released::NotHeld);
}

/// The keep-alive of the older lease of etcd succeeds, and says nothing about the key.
#[tokio::test]
async fn a_keep_alive_alone_renews_nothing() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    let long = Claim::new("app", "a", Duration::from_secs(60));
    let first = granted(&one, &long).await;
    let second = granted(&two, &long).await;
    assert_eq!(one.renew(&long, first).await.unwrap(), Renewed::Lost);
    assert_eq!(one.release(&long, first).await.unwrap(), Released::NotHeld);
    assert_eq!(one.renew(&long, second).await.unwrap(), Renewed::Extended);
    assert_eq!(two.renew(&long, second).await.unwrap(), Renewed::Extended);
}

#[tokio::test]
async fn a_transaction_with_an_older_token_writes_nothing() {
    let server = Server::start().await;
    let (engine, mut client) = (server.engine().await, server.client().await);
    let mut write = async |token: FencingToken, value: &str| {
        let transaction = Txn::new()
            .when([engine.fence("app", token)])
            .and_then([TxnOp::put("data", value, None)]);
        client.txn(transaction).await.unwrap().succeeded()
    };
    let first = granted(&engine, &claim("app", "a")).await;
    assert!(write(first, "first").await);
    engine.release(&claim("app", "a"), first).await.unwrap();
    assert!(!write(first, "after the release").await);
    let second = granted(&engine, &claim("app", "b")).await;
    assert!(!write(first, "with an older token").await);
    assert!(write(second, "second").await);
    assert!(!write(FencingToken::new(u64::MAX), "never granted").await);
}
