//! Guards of several simulated hosts, whose engines ask a store on one more host over a network that fails.
//!
//! `turmoil` runs all hosts in this thread, each with a paused clock of its own, so a minute takes some milliseconds.
//! Partitions of both directions or of one, held and late messages, crashes of members and of the store, and orderly
//! stops are drawn from a seed, and so is each delay of a message.
//!
//! # Rules
//!
//! Those of the [judge](crate::shared::checker::judge), without exceptions, because no host is paused here, and:
//!
//! 1. Each run is over before the store lets its lease expire. This is what the renew deadline and the grace are for,
//!    and stricter than that no two runs overlap.
//! 2. Once all faults are over, exactly one member runs within the TTL and the time of a retry.
//!
//! `VERGER_LEASE_SEEDS` sets the number of seeds, 50 by default. `VERGER_LEASE_SEED` repeats the faults of one of them,
//! though not the exact time of each message. Faults are planted in the engines to show that a member which ignores the
//! renew deadline is found.

mod network;
mod record;
mod store;

use std::sync::atomic::{AtomicU64, Ordering};

use self::network::{Fault, Network, SETTLES_WITHIN, TTL};
use self::record::nanos;
use self::store::Plant;
use crate::shared::checker::history::{History, Nanos};
use crate::shared::checker::judge::{Violation, explain};
use crate::shared::checker::number;

/// How often hosts fail, for each seed.
const ROUNDS: u32 = 6;

/// Lets hosts fail as the seed says.
fn simulate(seed: u64, plant: Option<Plant>) -> (History, Vec<Violation>, u64) {
    let mut network = Network::new(seed, plant);
    for _ in 0..ROUNDS {
        let holder = network.settle();
        network.fail_at_random(holder);
    }
    network.settle();
    let (history, found) = network.record.judge();
    (history, found, network.faults)
}

/// Cuts the holder off for twice the TTL. The number is when that began.
fn cut_off(plant: Option<Plant>) -> (History, Vec<Violation>, Nanos) {
    let mut network = Network::new(1, plant);
    let holder = network.settle();
    let began = network.begin(holder, Fault::Cut);
    network.run_for(2 * TTL);
    network.end(holder, Fault::Cut);
    network.settle();
    let (history, found) = network.record.judge();
    (history, found, began)
}

fn overlaps(found: &[Violation]) -> bool {
    found.iter().any(|it| matches!(it, Violation::Overlap { .. }))
}

#[test]
#[expect(clippy::print_stdout, reason = "figures for `--nocapture`")]
fn members_keep_their_promise_over_a_network_that_fails() {
    let seeds = match number("VERGER_LEASE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("VERGER_LEASE_SEEDS").unwrap_or(50),
    };
    let (next, totals) = (AtomicU64::new(seeds.start), [const { AtomicU64::new(0) }; 3]);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let (history, found, faults) = simulate(seed, None);
            assert!(found.is_empty(), "VERGER_LEASE_SEED={seed}\n{}", explain(&found, &history));
            let figures = [history.runs.len() as u64, history.grants.len() as u64, faults];
            for (total, figure) in totals.iter().zip(figures) {
                total.fetch_add(figure, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let [runs, grants, faults] = totals.map(AtomicU64::into_inner);
    println!("{} seeds: {faults} faults, {grants} grants, {runs} runs", seeds.end - seeds.start);
    assert!(runs > seeds.end - seeds.start, "the lease was never taken over");
}

#[test]
fn a_holder_that_is_cut_off_is_down_before_its_lease_expires() {
    let (history, found, began) = cut_off(None);
    assert_eq!(found, [], "{}", explain(&found, &history));
    let [first, second] = history.runs[..] else { panic!("{:?}", history.runs) };
    assert!(first.member != second.member && second.token == first.token + 1);
    let (ended, taken_over) = (first.ended.expect("it is cut off"), second.started);
    assert!((began..taken_over).contains(&ended), "{history:?}");
    assert!(taken_over - began < nanos(SETTLES_WITHIN), "{history:?}");
}

#[test]
fn a_holder_that_ignores_the_renew_deadline_is_found() {
    for plant in [Plant::RenewsUnasked, Plant::TakesSilenceForYes] {
        let (history, found, _) = cut_off(Some(plant));
        assert!(overlaps(&found), "{plant:?}\n{}", explain(&found, &history));
        // A seed may happen to cut off no holder for long enough.
        let seeds = (0..5).filter(|seed| overlaps(&simulate(*seed, Some(plant)).1)).count();
        assert!(seeds >= 3, "{plant:?}: found with {seeds} of 5 seeds");
    }
}
