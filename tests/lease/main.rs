//! The lease engine for one machine, and leases of simulated hosts. The engine for PostgreSQL has its tests in
//! `crates/lease-postgres`, which share what is in `shared`.
//!
//! The tests with a wrong date need the Debian package `faketime`. Without it, they check nothing. With
//! `VERGER_LEASE_SERVERS=1`, which `.ci/run lease` sets, they fail then.

mod clocks;
mod file;
mod judge_tests;
mod partition;
mod promise;
mod register;
mod shards;
mod shared;
mod store;
mod supervised;
