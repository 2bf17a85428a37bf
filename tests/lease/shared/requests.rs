//! Requests to an engine, as tests send them.

use std::sync::Arc;
use std::time::Duration;

use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine};

pub(crate) const TTL: Duration = Duration::from_millis(600);

pub(crate) fn claim(name: &str, holder: &str) -> Claim {
    Claim::new(name, holder, TTL)
}

pub(crate) fn held_by(holder: &str) -> Acquired {
    Acquired::Held { by: Some(holder.into()) }
}

/// Waits, but not forever.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it takes too long")
}

/// Acquires a lease that is free.
pub(crate) async fn granted(engine: &impl LeaseEngine, claim: &Claim) -> FencingToken {
    match engine.acquire(claim).await {
        Ok(Acquired::Granted(token)) => token,
        other => panic!("{claim:?}: {other:?}"),
    }
}

/// Asks for a lease until it is granted.
pub(crate) async fn granted_in_time(engine: &impl LeaseEngine, claim: &Claim) -> FencingToken {
    in_time(async {
        loop {
            if let Acquired::Granted(token) = engine.acquire(claim).await.unwrap() {
                return token;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

/// Lets twenty tasks, each with an engine of its own, compete for a lease, each for several rounds.
pub(crate) async fn compete<E: LeaseEngine>(name: &str, rounds: u64, engine: impl Fn() -> E) {
    let inside = Arc::new(tokio::sync::Mutex::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let claim = Claim::new(name, format!("task-{number}"), Duration::from_secs(60));
            let (engine, inside) = (engine(), Arc::clone(&inside));
            tokio::spawn(async move {
                for _ in 0..rounds {
                    let token = granted_in_time(&engine, &claim).await;
                    let mut last = inside.try_lock().expect("another task has the lease");
                    assert!(token.get() > *last, "{token} after {last}");
                    *last = token.get();
                    tokio::task::yield_now().await;
                    drop(last);
                    engine.release(&claim, token).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*inside.lock().await, 20 * rounds, "one token for each grant");
}
