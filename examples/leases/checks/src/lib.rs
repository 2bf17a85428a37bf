//! What the tests of the lease engines share.
//!
//! | file | what |
//! | --- | --- |
//! | `server` | a server in a process of its own, in a temporary directory |
//! | `peer` | another process, with a tree whose child needs the lease |
//! | `lib` | requests, and competitors |

mod peer;
mod server;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use verger::lease::{
    Acquired, Claim, FencingToken, LeaseEngine, LeaseRecord, Memo, MemoWrite, Released, Renewed,
};

pub use self::peer::{Takeover, measure_takeovers, serve_peer};
pub use self::server::{Folder, Process, free_port, wait_for_port};

/// How many holders compete.
const COMPETITORS: usize = 20;
/// How long a lease of a competitor lasts: longer than any of them takes.
const LONG: Duration = Duration::from_secs(30);
/// How long a server may take to answer again.
const RECOVERY: Duration = Duration::from_secs(20);

/// Requests the lease, which has to be granted.
pub async fn granted(engine: &impl LeaseEngine, claim: &Claim) -> FencingToken {
    match engine.acquire(claim).await.unwrap() {
        Acquired::Granted(token) => token,
        held @ Acquired::Held { .. } => panic!("{held:?}"),
    }
}

/// Requests the lease until it is granted, which may take this long. Errors count as no answer.
pub async fn granted_within(
    engine: &impl LeaseEngine,
    claim: &Claim,
    within: Duration,
) -> (FencingToken, Duration) {
    let began = Instant::now();
    loop {
        let answer = timeout(Duration::from_secs(2), engine.acquire(claim)).await;
        if let Ok(Ok(Acquired::Granted(token))) = answer {
            return (token, began.elapsed());
        }
        assert!(began.elapsed() < within, "not granted within {within:?}: {answer:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Requests the lease until the server answers.
pub async fn answered(engine: &impl LeaseEngine, claim: &Claim) -> Acquired {
    let began = Instant::now();
    loop {
        let answer = timeout(Duration::from_secs(2), engine.acquire(claim)).await;
        if let Ok(Ok(acquired)) = answer {
            return acquired;
        }
        assert!(began.elapsed() < RECOVERY, "no answer within {RECOVERY:?}: {answer:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that one engine of a store sees who has the lease by the other, and the memo, before and after each way in which
/// the lease ends. Takes about twice the TTL.
///
/// # Panics
///
/// If it doesn't.
pub async fn check_holder_and_memo(
    one: &impl LeaseEngine,
    two: &impl LeaseEngine,
    name: &str,
    ttl: Duration,
) {
    let (a, b) = (Claim::new(name, "a", ttl), Claim::new(name, "b", ttl));
    assert_eq!(two.holder(name).await.unwrap(), LeaseRecord::free(), "never granted");
    let shows = async |claim: Option<(&Claim, FencingToken)>, memo: &Memo| {
        for engine in [one as &dyn LeaseEngine, two] {
            let record = engine.holder(name).await.unwrap();
            let shown = (record.holder(), record.token());
            assert_eq!(shown, (claim.map(|it| it.0.holder()), claim.map(|it| it.1)));
            assert_eq!((record.is_held(), record.memo()), (claim.is_some(), memo));
            // In whole seconds, rounded up.
            let longest = ttl + Duration::from_secs(1);
            assert!(record.remaining().is_none_or(|it| it <= longest), "{record:?}");
        }
    };
    let stored = async |engine: &dyn LeaseEngine, claim: &Claim, token, memo: &Memo| {
        engine.write_memo(claim, token, memo).await.unwrap() == MemoWrite::Stored
    };
    let [first, second, late] = ["first", "second", "late"].map(|it| Memo::new(it).unwrap());
    let longest = Memo::new([0xff; Memo::MAX_LENGTH]).unwrap();

    let token = granted(one, &a).await;
    shows(Some((&a, token)), &Memo::default()).await;
    for memo in [longest, Memo::default(), first] {
        assert!(stored(one, &a, token, &memo).await);
        shows(Some((&a, token)), &memo).await;
    }
    // Each with an error in one of the two.
    assert!(!stored(one, &b, token, &late).await);
    assert!(!stored(two, &b, token, &late).await);
    assert!(!stored(one, &a, FencingToken::new(u64::MAX), &late).await);
    // Renewals and memos of one grant don't get in each other's way.
    for _ in 0..5 {
        let renewed = async { one.renew(&a, token).await.unwrap() };
        let (renewed, stored) = tokio::join!(renewed, one.write_memo(&a, token, &second));
        assert_eq!((renewed, stored.unwrap()), (Renewed::Extended, MemoWrite::Stored));
    }
    shows(Some((&a, token)), &second).await;

    // An expiry, after which another holder writes.
    let (next, _) = granted_within(two, &b, 3 * ttl).await;
    shows(Some((&b, next)), &second).await;
    assert!(!stored(one, &a, token, &late).await, "an earlier holder");
    assert!(stored(two, &b, next, &first).await);

    // A release, and a new grant to the same holder.
    assert_eq!(two.release(&b, next).await.unwrap(), Released::Released);
    shows(None, &first).await;
    assert!(!stored(two, &b, next, &late).await, "released");
    let last = granted(two, &b).await;
    assert!(!stored(two, &b, next, &late).await, "an earlier grant");
    shows(Some((&b, last)), &first).await;
    assert_eq!(two.release(&b, last).await.unwrap(), Released::Released);
}

/// Lets twenty holders, each with an engine of its own, compete for the lease. At no time do two of them have it, and
/// the tokens grow.
pub async fn compete<E, F>(name: &str, rounds: usize, connect: impl Fn() -> F)
where
    E: LeaseEngine,
    F: Future<Output = E>,
{
    let inside = Arc::new(AtomicBool::new(false));
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for competitor in 0..COMPETITORS {
        let engine = connect().await;
        let claim = Claim::new(name, format!("competitor-{competitor}"), LONG);
        let (inside, tokens) = (Arc::clone(&inside), Arc::clone(&tokens));
        tasks.push(tokio::spawn(async move {
            for _ in 0..rounds {
                let token = loop {
                    match engine.acquire(&claim).await.unwrap() {
                        Acquired::Granted(token) => break token,
                        Acquired::Held { .. } => sleep(Duration::from_millis(5)).await,
                    }
                };
                assert!(!inside.swap(true, Ordering::SeqCst), "two have the lease");
                tokens.lock().unwrap().push(token);
                sleep(Duration::from_millis(1)).await;
                assert_eq!(engine.renew(&claim, token).await.unwrap(), Renewed::Extended);
                inside.store(false, Ordering::SeqCst);
                assert_eq!(engine.release(&claim, token).await.unwrap(), Released::Released);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), COMPETITORS * rounds);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}
