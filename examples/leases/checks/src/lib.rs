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
use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine, Released, Renewed};

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
