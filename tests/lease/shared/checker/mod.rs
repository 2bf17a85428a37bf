//! A checker of leases in real processes: members that have a tree and a lease each, faults, and a judge.
//!
//! The members run as processes of their own and write to a resource that refuses older tokens. They are stopped, paused
//! beyond the TTL and killed in random order. Each says what it does and when, by the clock that all processes of a machine
//! share. The judge finds runs that overlap, tokens that don't grow, and accepted writes that go back.
//!
//! `VERGER_LEASE_ROUNDS` sets the number of rounds, 20 by default. `VERGER_LEASE_SEED` repeats the faults of an earlier run,
//! though not their exact times. Two faults are planted in the members to show that the judge finds what they lead to.

pub(crate) mod crowd;
pub(crate) mod faults;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod member;

use std::time::Duration;

use self::crowd::Crowd;
use self::faults::Takeovers;
use self::history::History;
use self::judge::{Violation, explain, judge};
use self::member::Plant;
use crate::store::Store;

pub(crate) const LEASE: &str = "checked";
pub(crate) const TTL: Duration = Duration::from_secs(1);
pub(crate) const MEMBERS: usize = 3;

pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value}: write a number")))
}

fn rounds() -> u32 {
    number("VERGER_LEASE_ROUNDS").map_or(20, |it| it.try_into().unwrap())
}

fn seed() -> u64 {
    number("VERGER_LEASE_SEED").unwrap_or_else(|| fastrand::u64(..))
}

/// Ends the members, and adds what the resource has accepted.
async fn end(crowd: Crowd, store: &Store) -> History {
    let mut history = crowd.end().await;
    history.writes = store.writes().await;
    history
}

/// Runs the faults, and fails if the judge finds anything.
pub(crate) async fn check(mut store: Store) {
    let seed = seed();
    let mut crowd = Crowd::start(store.addresses(), None);
    let takeovers = faults::run(&mut crowd, &mut store, rounds(), seed).await;
    conclude(store.name(), seed, &end(crowd, &store).await, takeovers);
}

/// Runs members whose resource accepts each token.
pub(crate) async fn check_without_fencing(store: Store) {
    let crowd = Crowd::start(store.addresses(), Some(Plant::Unfenced));
    faults::outlive(&crowd, &store, crowd.holder().await).await;
    let history = end(crowd, &store).await;
    let found = judge(&history);
    let went_back = found.iter().any(|it| matches!(it, Violation::WentBack { .. }));
    assert!(went_back, "{}", explain(&found, &history));
}

/// Runs members that release the lease soon after it is granted, and go on.
pub(crate) async fn check_with_early_release(store: Store) {
    let crowd = Crowd::start(store.addresses(), Some(Plant::EarlyRelease));
    crowd.two_run().await;
    tokio::time::sleep(2 * TTL).await;
    let history = end(crowd, &store).await;
    let found = judge(&history);
    let overlap = found.iter().any(|it| matches!(it, Violation::Overlap { .. }));
    assert!(overlap, "{}", explain(&found, &history));
}

/// Prints the figures, and fails if anything was violated.
#[expect(clippy::print_stdout, reason = "figures for `--nocapture`")]
fn conclude(engine: &str, seed: u64, history: &History, takeovers: Takeovers) {
    let found = judge(history);
    assert!(found.is_empty(), "VERGER_LEASE_SEED={seed}\n{}", explain(&found, history));
    println!(
        "{engine}: {} runs, {} grants, {} writes, {} refused",
        history.runs.len(),
        history.grants.len(),
        history.writes.len(),
        history.refusals.len(),
    );
    for (what, mut times) in [("a stop", takeovers.stops), ("kill -9", takeovers.kills)] {
        times.sort();
        if let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) {
            let (median_ms, worst_ms) = (median.as_millis(), worst.as_millis());
            let number = times.len();
            println!(
                "{engine}: taken over {median_ms} ms after {what}, at worst {worst_ms} ms, of {number}"
            );
            // A busy machine, or the fault before, may delay one. The median of a few says little about crashes.
            let limit = if what == "a stop" { Duration::from_secs(1) } else { TTL * 11 / 10 };
            let says_much = what == "a stop" || number >= 10;
            assert!(*median < limit || !says_much, "VERGER_LEASE_SEED={seed}: {median:?}");
        }
    }
}
