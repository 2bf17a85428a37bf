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
//! * `children`: idle children, the runtime, memory.
//! * `trees`: trees of supervisors.

#![allow(dead_code, unused_imports, reason = "each bench uses a part of it")]

mod arguments;
mod children;
mod figures;
mod process;
mod table;
mod trees;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::children::{
    STARTS, Starts, dynamic, idle, name, named, nanos, peak_bytes, runtime,
};
pub(crate) use self::figures::{Spread, Unit, percentile};
pub(crate) use self::process::{Side, answer, machine, measure};
pub(crate) use self::table::{Table, replace_between_markers};
pub(crate) use self::trees::{Shape, Timing, tree, up_and_down};
