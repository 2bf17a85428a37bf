//! The lease engines, against what they are made for: locked files of several processes, and real servers.

mod file;
mod folder;
mod peer;
mod rules;
mod supervised;

use std::time::Duration;

use verger::lease::{Acquired, Claim, FencingToken, LeaseEngine};

const TTL: Duration = Duration::from_millis(600);

fn claim(name: &str, holder: &str) -> Claim {
    Claim::new(name, holder, TTL)
}

fn held_by(holder: &str) -> Acquired {
    Acquired::Held { by: Some(holder.into()) }
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
    let asking = async {
        loop {
            if let Acquired::Granted(token) = engine.acquire(claim).await.unwrap() {
                return token;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.expect("it is never granted")
}
