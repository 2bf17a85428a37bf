//! The lease engines, against what they are made for: locked files of several processes, and real servers.
//!
//! Each test that needs a server starts one of its own, from the Debian packages `postgresql` and `pgbouncer`. Those with
//! a wrong date need `faketime`. Without them, these tests check nothing. With `VERGER_LEASE_SERVERS=1`, which `.ci/run
//! lease` sets, they fail then.

mod checker;
mod clocks;
mod failures;
mod fences;
mod file;
mod folder;
mod partition;
mod peer;
mod postgres;
mod process;
mod rules;
mod server;
mod shards;
mod supervised;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine};

const TTL: Duration = Duration::from_millis(600);

fn claim(name: &str, holder: &str) -> Claim {
    Claim::new(name, holder, TTL)
}

fn held_by(holder: &str) -> Acquired {
    Acquired::Held { by: Some(holder.into()) }
}

/// Waits, but not for ever.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it takes too long")
}

/// Acquires a lease that is free.
async fn granted(engine: &impl LeaseEngine, claim: &Claim) -> FencingToken {
    match engine.acquire(claim).await {
        Ok(Acquired::Granted(token)) => token,
        other => panic!("{claim:?}: {other:?}"),
    }
}

/// Asks for a lease until it is granted.
async fn granted_in_time(engine: &impl LeaseEngine, claim: &Claim) -> FencingToken {
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

/// Asks until there is an answer.
async fn recovers(engine: &impl LeaseEngine, claim: &Claim) -> Acquired {
    in_time(async {
        loop {
            if let Ok(answer) = engine.acquire(claim).await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

/// Lets twenty tasks, each with an engine of its own, compete for a lease, each for several rounds.
async fn compete<E: LeaseEngine>(name: &str, rounds: u64, engine: impl Fn() -> E) {
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
