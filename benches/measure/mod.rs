//! What the benches `budgets` and `scaling` share.
//!
//! Each measurement runs in a process of its own, started by this program with `--measure ROW SIDE N`,
//! so that no allocator cache, thread or page of one measurement is part of the next. A row that
//! compares two sides runs them in turns; the ratio is taken within each round, and the median over
//! the rounds counts.
//!
//! * `arguments`: the command line.
//! * `process`: one measurement in a process of its own.
//! * `figures`: units, medians and spreads.
//! * `table`: tables as text and as Markdown.
//! * `children`: idle children, and the runtime.
//! * `machine`: this machine, and the memory of this process.
//! * `trees`: trees of supervisors.

#![allow(dead_code, unused_imports, reason = "each bench uses a part of it")]

mod arguments;
mod children;
mod figures;
mod machine;
mod process;
mod table;
mod trees;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::children::{
    STARTS, Starts, dynamic, idle, in_runtime, name, named, nanos, runtime, spawn_start,
};
pub(crate) use self::figures::{Spread, Unit, percentile};
pub(crate) use self::machine::peak_bytes;
pub(crate) use self::process::{Side, answer, machine, measure};
pub(crate) use self::table::{Table, replace_between_markers};
pub(crate) use self::trees::{Shape, Timing, tree, up_and_down};
