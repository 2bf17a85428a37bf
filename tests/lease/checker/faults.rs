//! What is done to the members and to their store, round by round.

use std::time::Duration;

use fastrand::Rng;

use super::TTL;
use super::crowd::Crowd;
use super::history::Nanos;
use super::proxy::Network;
use super::store::Store;

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
    /// As `Pause`, and meanwhile the file is replaced by a copy of it, which isn't locked.
    ReplaceFile,
    /// The server crashes, and starts again.
    RestartServer,
    /// All processes of the server are stopped by SIGSTOP.
    FreezeServer,
    /// What the holder and the server send each other is late.
    Delay,
    /// What the holder and the server send each other arrives after a long time.
    Hold,
    /// The holder can't reach the server.
    Cut,
    /// No member can reach the server.
    CutAll,
}

/// The order is random, so that each fault follows each other one.
const WITH_FILES: &[Fault] = &[
    Fault::Stop,
    Fault::Kill,
    Fault::Pause,
    Fault::PauseAndKill,
    Fault::PauseStandby,
    Fault::KillStandby,
    Fault::ReplaceFile,
];
const WITH_ROWS: &[Fault] = &[
    Fault::Stop,
    Fault::Kill,
    Fault::Pause,
    Fault::PauseAndKill,
    Fault::PauseStandby,
    Fault::RestartServer,
    Fault::FreezeServer,
    Fault::Delay,
    Fault::Hold,
    Fault::Cut,
    Fault::CutAll,
];

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
            left = if matches!(store, Store::Files(_)) { WITH_FILES } else { WITH_ROWS }.to_vec();
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
        Fault::ReplaceFile => outlive(crowd, store, holder).await,
        Fault::RestartServer => {
            let Store::Rows { server, .. } = store else { return };
            server.stop();
            // It takes some time to start as well.
            tokio::time::sleep(any_time / 2).await;
            server.start_again();
        }
        Fault::FreezeServer => {
            let frozen = store.freeze();
            tokio::time::sleep(any_time).await;
            drop(frozen);
        }
        Fault::Delay => {
            let delay = TTL.mul_f64(0.01 + 0.2 * random.f64());
            break_network(store, &[holder], Network::Delays(delay), longer_than_ttl).await;
        }
        Fault::Hold => break_network(store, &[holder], Network::Holds, any_time).await,
        Fault::Cut => break_network(store, &[holder], Network::Cuts, any_time).await,
        Fault::CutAll => {
            let all: Vec<_> = crowd.places().collect();
            break_network(store, &all, Network::Cuts, any_time).await;
        }
    }
}

async fn break_network(store: &Store, places: &[usize], network: Network, time: Duration) {
    places.iter().for_each(|place| store.set_network(*place, network));
    tokio::time::sleep(time).await;
    places.iter().for_each(|place| store.set_network(*place, Network::Works));
}

/// Pauses the holder, lets a different member have the lease, and resumes the first one: it doesn't know.
pub(crate) async fn outlive(crowd: &Crowd, store: &Store, holder: usize) {
    let at = crowd.pause(holder);
    tokio::time::sleep(TTL).await;
    store.replace_file();
    crowd.next_start(at).await;
    crowd.resume(holder);
    crowd.one_left().await;
}

async fn since(at: Nanos, crowd: &Crowd) -> Duration {
    Duration::from_nanos(crowd.next_start(at).await - at)
}
