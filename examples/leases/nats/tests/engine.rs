//! The engine and a NATS server.

mod server;

use std::time::{Duration, Instant};

use lease_checks::{
    answered, check_holder_and_memo, compete, granted, granted_within, measure_takeovers,
    serve_peer,
};
use tokio::time::{sleep, timeout};
use verger::lease::{Acquired, Claim, LeaseEngine, Released, Renewed};
use verger::testing::assert_lease_rules;

use self::server::{Server, engine};

const TTL: Duration = Duration::from_secs(2);

fn claim(name: &str, holder: &str) -> Claim {
    Claim::new(name, holder, TTL)
}

#[tokio::test]
async fn it_keeps_the_rules_of_an_engine() {
    let server = Server::start().await;
    assert_lease_rules(server.engine().await, "app", TTL).await;
    assert_lease_rules(server.engine().await, "it's \"quoted\".>* ä", TTL).await;
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

/// The header belongs to each message: one without it would make the lease permanent.
#[tokio::test]
async fn a_lease_that_was_renewed_expires() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let token = granted(&engine, &claim("app", "a")).await;
    for _ in 0..3 {
        sleep(TTL / 2).await;
        assert_eq!(engine.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Extended);
    }
    let (next, waited) = granted_within(&engine, &claim("app", "b"), 3 * TTL).await;
    assert!(waited >= TTL - Duration::from_millis(20), "{waited:?}");
    assert!(next > token);
}

#[tokio::test]
async fn a_ttl_with_a_fraction_is_not_shortened() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let ttl = Duration::from_millis(1900);
    granted(&engine, &Claim::new("app", "a", ttl)).await;
    let (_, waited) = granted_within(&engine, &claim("app", "b"), 3 * ttl).await;
    assert!(waited >= ttl, "{waited:?}");
}

#[tokio::test]
async fn tokens_grow_after_a_crash_of_the_server() {
    let mut server = Server::start().await;
    let engine = server.engine().await;
    let first = granted(&engine, &claim("app", "a")).await;
    engine.release(&claim("app", "a"), first).await.unwrap();
    // The stream is empty.
    server.crash();
    server.start_again();
    let (second, _) = granted_within(&engine, &claim("app", "b"), 10 * TTL).await;
    assert!(second > first, "{second} after {first}");

    sleep(3 * TTL).await;
    server.crash();
    server.start_again();
    let (third, _) = granted_within(&engine, &claim("app", "a"), 10 * TTL).await;
    assert!(third > second, "{third} after {second}");
    // It expires while the server is down.
    server.crash();
    sleep(3 * TTL).await;
    server.start_again();
    let (fourth, _) = granted_within(&engine, &claim("app", "b"), 10 * TTL).await;
    assert!(fourth > third, "{fourth} after {third}");
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
    for _ in 0..2 {
        let unanswered = timeout(TTL, engine.renew(&claim("app", "a"), token)).await;
        assert!(!matches!(unanswered, Ok(Ok(_))), "{unanswered:?}");
    }
    assert!(began.elapsed() >= TTL);
    server.signal("-CONT");
    let (next, _) = granted_within(&engine, &claim("app", "b"), 10 * TTL).await;
    assert!(next > token);
    assert_eq!(engine.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Lost);
    assert_eq!(engine.release(&claim("app", "a"), token).await.unwrap(), Released::NotHeld);
}

/// The answer to a renewal is lost, so the engine knows an old sequence.
#[tokio::test]
async fn a_renewal_without_an_answer_costs_nothing() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    let token = granted(&one, &claim("app", "a")).await;
    assert_eq!(two.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Extended);
    assert_eq!(one.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Extended);
    assert_eq!(two.release(&claim("app", "a"), token).await.unwrap(), Released::Released);
    assert_eq!(one.release(&claim("app", "a"), token).await.unwrap(), Released::NotHeld);
    assert_eq!(one.renew(&claim("app", "a"), token).await.unwrap(), Renewed::Lost);
}

#[tokio::test]
async fn a_stream_with_different_settings_is_refused() {
    let server = Server::start().await;
    let client = server.client().await;
    let engine = verger_lease_nats::Nats::with_stream(client.clone(), "other");
    let error = engine.acquire(&claim("app", "a")).await.unwrap_err().to_string();
    assert!(error.contains("`other` can't be used") && error.contains("create_stream"), "{error}");
    let config = async_nats::jetstream::stream::Config {
        name: "other".into(),
        subjects: vec!["other.*".into()],
        max_messages_per_subject: 1,
        ..Default::default()
    };
    async_nats::jetstream::new(client).create_stream(config).await.unwrap();
    let error = engine.acquire(&claim("app", "a")).await.unwrap_err().to_string();
    assert!(error.contains("doesn't have the setting `allow_msg_ttl: true`"), "{error}");
}

/// Debian's server, which accepts the header and ignores it.
#[tokio::test]
async fn a_server_that_ignores_the_ttl_is_refused() {
    let Some(old) = Server::old() else { return };
    let engine = verger_lease_nats::Nats::new(old.client().await);
    for error in [
        engine.create_stream(1).await.unwrap_err(),
        engine.acquire(&claim("app", "a")).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("ignores the TTL of a message"), "{error}");
    }
}
