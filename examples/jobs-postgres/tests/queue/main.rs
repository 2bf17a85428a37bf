//! Tests of the queue as processes: arguments, output, exit codes, and the ledger.
//!
//! Each test that needs a database starts a server of its own, from Debian's package `postgresql`. Without it, these tests
//! check nothing. With `VERGER_LEASE_SERVERS=1`, which `.ci/run lease` sets, they fail then.

mod demo;
mod outage;
mod program;
mod server;
mod usage;
