//! The engine against real servers.
//!
//! Each test that needs a server starts one, from the Debian packages `postgresql` and `pgbouncer`. Those with a wrong date need
//! `faketime`. Without them, these tests check nothing. With `VERGER_LEASE_SERVERS=1`, which `.ci/run lease` sets, they fail
//! then.

mod clocks;
mod failures;
mod fences;
mod postgres;
mod process;
mod promise;
mod proxy;
mod register;
mod server;
// Also the tests of the engine for one machine.
#[path = "../../../../tests/lease/shared/mod.rs"]
mod shared;
mod store;
mod waiting;

use std::time::Duration;

use verger::lease::{Acquired, Claim, LeaseEngine};

use self::shared::requests::in_time;

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
