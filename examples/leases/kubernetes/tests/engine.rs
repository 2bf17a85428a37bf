//! The engine and a fake of an API server.

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

fn claim(holder: &str) -> Claim {
    Claim::new("app", holder, TTL)
}

fn held_by(holder: &str) -> Acquired {
    Acquired::Held { by: Some(holder.into()) }
}

#[tokio::test]
async fn it_keeps_the_rules_of_an_engine() {
    let server = Server::start().await;
    assert_lease_rules(server.engine().await, "app", TTL).await;
}

#[tokio::test]
async fn it_keeps_the_rules_when_answers_are_slow() {
    let server = Server::start().await;
    server.delay(Duration::from_millis(20), Duration::from_millis(20));
    assert_lease_rules(server.engine().await, "app", TTL).await;
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

/// It doesn't know when the object was written, and no clock of a different machine counts.
#[tokio::test]
async fn a_process_that_has_just_started_waits_a_whole_ttl() {
    let server = Server::start().await;
    granted(&server.engine().await, &claim("a")).await;
    sleep(2 * TTL).await;
    let engine = server.engine().await;
    let (_, waited) = granted_within(&engine, &claim("b"), 3 * TTL).await;
    assert!(waited >= TTL, "{waited:?}");
}

#[tokio::test]
async fn no_wall_clock_counts() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    let token = granted(&one, &claim("a")).await;
    for time in ["1970-01-01T00:00:00.000000Z", "2170-01-01T00:00:00.000000Z"] {
        server.edit("app", |object| object["spec"]["renewTime"] = time.into());
        assert_eq!(two.acquire(&claim("b")).await.unwrap(), held_by("a"));
        let renewed = one.renew(&claim("a"), token).await.unwrap();
        assert_eq!(renewed, Renewed::Extended, "{time}");
    }
    server.edit("app", |object| object["spec"]["renewTime"] = "2170-01-01T00:00:00.000000Z".into());
    let (_, waited) = granted_within(&two, &claim("b"), 3 * TTL).await;
    assert!(waited >= TTL && waited < 2 * TTL, "{waited:?}");
}

/// A standby with a shorter TTL takes nothing early.
#[tokio::test]
async fn the_ttl_of_the_holder_counts() {
    let server = Server::start().await;
    let engine = server.engine().await;
    granted(&engine, &Claim::new("app", "a", 2 * TTL)).await;
    let (_, waited) = granted_within(&engine, &claim("b"), 4 * TTL).await;
    assert!(waited >= 2 * TTL - Duration::from_millis(20), "{waited:?}");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_has_its_effect() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    server.lose_answers(true);
    one.acquire(&claim("a")).await.unwrap_err();
    server.lose_answers(false);
    assert_eq!(two.acquire(&claim("b")).await.unwrap(), held_by("a"));
    let token = granted(&one, &claim("a")).await;
    assert_eq!(token.get(), 2);

    server.lose_answers(true);
    one.renew(&claim("a"), token).await.unwrap_err();
    server.lose_answers(false);
    assert_eq!(one.renew(&claim("a"), token).await.unwrap(), Renewed::Extended);

    server.lose_answers(true);
    one.release(&claim("a"), token).await.unwrap_err();
    server.lose_answers(false);
    assert_eq!(one.release(&claim("a"), token).await.unwrap(), Released::NotHeld);
    assert_eq!(granted(&two, &claim("b")).await.get(), 3);
}

/// The renewal reaches the server after another holder was granted the lease.
#[tokio::test]
async fn a_renewal_that_is_late_is_refused() {
    let server = Server::start().await;
    let (one, two) = (server.engine().await, server.engine().await);
    let token = granted(&one, &claim("a")).await;
    sleep(TTL / 2).await;
    let late = async {
        server.delay(2 * TTL, Duration::ZERO);
        let renewed = one.renew(&claim("a"), token).await;
        renewed.unwrap()
    };
    let other = async {
        sleep(TTL / 10).await;
        server.delay(Duration::ZERO, Duration::ZERO);
        granted_within(&two, &claim("b"), 3 * TTL).await.0
    };
    let (renewed, next) = tokio::join!(late, other);
    assert_eq!(renewed, Renewed::Lost);
    assert!(next > token);
}

#[tokio::test]
async fn a_server_that_hangs_answers_nothing_and_then_goes_on() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let token = granted(&engine, &claim("a")).await;
    server.delay(Duration::from_secs(3600), Duration::ZERO);
    for _ in 0..2 {
        assert!(timeout(TTL, engine.renew(&claim("a"), token)).await.is_err());
    }
    server.delay(Duration::ZERO, Duration::ZERO);
    // Counted from before the request, so it has expired for its holder.
    assert_eq!(engine.renew(&claim("a"), token).await.unwrap(), Renewed::Lost);
    let (next, _) = granted_within(&engine, &claim("b"), 3 * TTL).await;
    assert!(next > token);
    assert_eq!(engine.release(&claim("a"), token).await.unwrap(), Released::NotHeld);
}

#[tokio::test]
async fn a_lease_survives_a_restart_of_the_server() {
    let mut server = Server::start().await;
    let engine = server.engine().await;
    let long = |holder| Claim::new("app", holder, Duration::from_secs(60));
    let token = granted(&engine, &long("a")).await;
    server.stop().await;
    let began = Instant::now();
    let error = engine.renew(&long("a"), token).await.unwrap_err().to_string();
    assert!(error.starts_with("Kubernetes can't read a lease ("), "{error}");
    assert!(began.elapsed() < TTL);
    server.start_again().await;
    assert_eq!(answered(&engine, &long("b")).await, held_by("a"));
    assert_eq!(engine.renew(&long("a"), token).await.unwrap(), Renewed::Extended);
    assert_eq!(engine.release(&long("a"), token).await.unwrap(), Released::Released);
    assert!(granted(&engine, &long("b")).await > token);
}

#[tokio::test]
async fn tokens_grow_although_one_number_is_reset() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let first = granted(&engine, &claim("a")).await;
    engine.release(&claim("a"), first).await.unwrap();
    server.edit("app", |object| object["spec"]["leaseTransitions"] = 0.into());
    let second = granted(&engine, &claim("b")).await;
    assert!(second > first);
    engine.release(&claim("b"), second).await.unwrap();
    server.edit("app", |object| object["spec"]["leaseTransitions"] = 7.into());
    server.edit("app", |object| object["metadata"]["annotations"] = serde_json::json!({}));
    assert!(granted(&engine, &claim("c")).await > second);
}

/// An elector of client-go knows no token.
#[tokio::test]
async fn a_holder_without_a_token_is_waited_for() {
    let server = Server::start().await;
    let engine = server.engine().await;
    let token = granted(&engine, &claim("a")).await;
    engine.release(&claim("a"), token).await.unwrap();
    server.edit("app", |object| {
        object["spec"]["holderIdentity"] = "elector".into();
        object["spec"]["leaseDurationSeconds"] = 2.into();
        object["metadata"]["annotations"] = serde_json::json!({});
    });
    assert_eq!(engine.acquire(&claim("a")).await.unwrap(), held_by("elector"));
    assert_eq!(engine.renew(&claim("a"), token).await.unwrap(), Renewed::Lost);
    let (next, _) = granted_within(&engine, &claim("a"), 3 * TTL).await;
    assert!(next > token, "by `leaseTransitions`");
}
