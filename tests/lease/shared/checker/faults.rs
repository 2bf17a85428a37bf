//! What is done to the members and to their store, round by round.

use std::time::Duration;

use fastrand::Rng;

use super::TTL;
use super::crowd::Crowd;
use super::history::Nanos;
use crate::store::{Store, StoreFault};

/// What happens in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The holder is stopped in order.
    Stop,
    /// The holder is killed.
    Kill,
    /// The holder is stopped by SIGSTOP for longer than the TTL.
    Pause,
    /// As `Pause`, and the holder is killed without being resumed.
    PauseAndKill,
    /// A member on standby is stopped by SIGSTOP.
    PauseStandby,
    /// A member on standby is killed.
    KillStandby,
    /// One of the store, or of the way to it.
    OfStore(StoreFault),
}

/// The moment at which a fault of the store begins, and how long it may last.
#[allow(dead_code, reason = "a file needs the first two only")]
pub(crate) struct Moment<'a> {
    pub(crate) crowd: &'a Crowd,
    pub(crate) holder: usize,
    pub(crate) longer_than_ttl: Duration,
    /// Sometimes the lease survives it, sometimes not.
    pub(crate) any_time: Duration,
    pub(crate) random: &'a mut Rng,
}

/// How long it took after a fault until a different member ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Takeovers {
    pub(crate) stops: Vec<Duration>,
    pub(crate) kills: Vec<Duration>,
}

/// Runs these rounds: each fault once in a random order, and again.
pub(crate) async fn run(crowd: &mut Crowd, store: &mut Store, rounds: u32, seed: u64) -> Takeovers {
    let mut random = Rng::with_seed(seed);
    let mut takeovers = Takeovers::default();
    let mut left = Vec::new();
    for round in 0..rounds {
        if left.is_empty() {
            // The order is random, so that each fault follows each other one.
            left = Store::FAULTS.to_vec();
            random.shuffle(&mut left);
        }
        let Some(fault) = left.pop() else { return takeovers };
        crowd.holder().await;
        // At any moment between two renewals.
        tokio::time::sleep(TTL.mul_f64(0.3 * random.f64())).await;
        crowd.note(&format!("round {round}: {fault:?}"));
        apply(fault, crowd, store, &mut random, &mut takeovers).await;
        crowd.one_left().await;
        crowd.refill();
    }
    crowd.holder().await;
    takeovers
}

async fn apply(
    fault: Fault,
    crowd: &mut Crowd,
    store: &mut Store,
    random: &mut Rng,
    takeovers: &mut Takeovers,
) {
    let holder = crowd.holder().await;
    let standby = (holder + random.usize(1..=*crowd.places().end())) % crowd.places().count();
    let longer_than_ttl = TTL.mul_f64(1.1 + random.f64());
    // Sometimes the lease survives it, sometimes not.
    let any_time = TTL.mul_f64(0.1 + 1.5 * random.f64());
    match fault {
        Fault::Stop => {
            let at = crowd.stop(holder);
            takeovers.stops.push(since(at, crowd).await);
        }
        Fault::Kill => {
            let at = crowd.kill(holder);
            takeovers.kills.push(since(at, crowd).await);
        }
        Fault::Pause => {
            crowd.pause(holder);
            tokio::time::sleep(longer_than_ttl).await;
            crowd.resume(holder);
        }
        Fault::PauseAndKill => {
            crowd.pause(holder);
            tokio::time::sleep(longer_than_ttl).await;
            crowd.kill(holder);
        }
        Fault::PauseStandby => {
            crowd.pause(standby);
            tokio::time::sleep(any_time).await;
            crowd.resume(standby);
        }
        Fault::KillStandby => {
            crowd.kill(standby);
        }
        Fault::OfStore(fault) => {
            let moment = Moment { crowd, holder, longer_than_ttl, any_time, random };
            store.apply(fault, moment).await;
        }
    }
}

/// Pauses the holder, lets a different member have the lease, and resumes the first one: it doesn't know.
pub(crate) async fn outlive(crowd: &Crowd, store: &Store, holder: usize) {
    let at = crowd.pause(holder);
    tokio::time::sleep(TTL).await;
    store.free_lease();
    crowd.next_start(at).await;
    crowd.resume(holder);
    crowd.one_left().await;
}

async fn since(at: Nanos, crowd: &Crowd) -> Duration {
    Duration::from_nanos(crowd.next_start(at).await - at)
}
