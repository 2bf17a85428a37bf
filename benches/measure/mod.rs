//! How the benches measure: in turns, in processes of their own, and with an eye on what else runs.
//!
//! A bench has [`Row`]s. Each row is measured by a function that is called in a process of its own,
//! once for each [`Side`] and round, and prints its figures. What counts is the ratio of the two
//! sides *in one round*, and its median over all rounds: two runs that follow each other meet the
//! same machine.
//!
//! * `command`: a bench's arguments, and how it ends.
//! * `row`: what a row is, and its budget.
//! * `process`: a measurement in a process of its own.
//! * `rounds`: both sides in turns, and disturbed rounds once more.
//! * `load`: what other processes take of the machine.
//! * `pulse`: how fast memory and the processors are at the moment.
//! * `figures`: medians, spreads, and numbers as one reads them.
//! * `thread`: what one thread has worked.
//! * `machine`: where it was measured.
//! * `package`: what cargo makes of a program.
//! * `children`: what a child does on both sides, and how it is seen to have started.

#![allow(dead_code, unused_imports, reason = "each bench uses a part of it")]

mod children;
mod command;
mod figures;
mod load;
mod machine;
mod package;
mod process;
mod pulse;
mod rounds;
mod row;
mod thread;

pub(crate) use self::children::{KEPT, Starts, nanos, peak_bytes, resident_bytes, runtime};
pub(crate) use self::command::{Arguments, Bench};
pub(crate) use self::figures::{Spread, Unit, p50};
pub(crate) use self::load::worked;
pub(crate) use self::machine::Machine;
pub(crate) use self::package::Package;
pub(crate) use self::rounds::{By, Measured, Plan, Rounds};
pub(crate) use self::row::{Budget, Part, Row, Side, Who};
pub(crate) use self::thread::worked_here;
