//! The properties hold, and each rule that is left out violates one.

use lease_model::model::{Bounds, Lease};
use lease_model::row::Mutant;
use stateright::{Checker, HasDiscoveries, Model};

const LAST_GRANT: &str = "each accepted write is of the last grant";
const NEVER_BACK: &str = "accepted tokens never go back";
const ONE_RUNS: &str = "two run only if a clock has stopped";
const RUNS_AGAIN: &str = "a process runs after a crash";

/// Checks all states.
fn holds(bounds: Bounds) {
    let checker = Lease { bounds, mutant: None }.checker().threads(2).spawn_dfs().join();
    checker.assert_properties();
}

/// Checks the states until this property is violated.
fn is_violated(bounds: Bounds, mutant: Mutant, property: &'static str) {
    let lease = Lease { bounds, mutant: Some(mutant) };
    let until = HasDiscoveries::AllOf([property].into());
    let checker = lease.checker().threads(2).finish_when(until).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{mutant:?}");
}

#[test]
fn the_protocol_holds_with_late_messages_and_stopped_clocks() {
    holds(Bounds::LATE);
}

#[test]
fn the_protocol_holds_with_lost_messages_and_a_crash() {
    holds(Bounds::PROMPT);
}

#[test]
fn without_the_epoch_check_an_older_write_is_accepted() {
    is_violated(Bounds::LATE, Mutant::NoEpochCheck, LAST_GRANT);
    is_violated(Bounds::LATE, Mutant::NoEpochCheck, NEVER_BACK);
}

#[test]
fn an_epoch_that_restarts_lets_an_older_write_in() {
    is_violated(Bounds::LATE, Mutant::EpochRestarts, LAST_GRANT);
}

#[test]
fn two_run_if_the_lease_is_granted_early() {
    is_violated(Bounds::LATE, Mutant::EarlyGrant, ONE_RUNS);
}

#[test]
fn two_run_if_a_process_counts_from_the_answer() {
    is_violated(Bounds::LATE, Mutant::CountsFromAnswer, ONE_RUNS);
}

#[test]
fn no_process_runs_if_a_refused_one_gives_up() {
    // All three lose the lease by lost answers, and the crash takes the last one.
    let bounds = Bounds { processes: 2, losses: 3, ..Bounds::PROMPT };
    is_violated(bounds, Mutant::GivesUp, RUNS_AGAIN);
}
