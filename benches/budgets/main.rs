//! What supervision costs, beside hand-written tokio: every budget, measured.
//!
//! ```text
//! cargo bench --bench budgets                      all rows; exits with 1 if a budget isn't met
//! cargo bench --bench budgets -- --row start       one of them, or several
//! cargo bench --bench budgets -- --help            the rest
//! ```
//!
//! Each figure is the median of several rounds, in which both sides do the same work one right after
//! the other, in processes of their own. *Raw* is what one would write by hand with a `JoinSet` and a
//! `CancellationToken`; verger is used through its public API, and does all that it does anywhere. A
//! round that other programs, slow memory or shared cores disturbed is repeated. The rows take turns,
//! so that the table comes when all of them are done.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

mod crowd;
mod hello;
mod idle;
#[path = "../measure/mod.rs"]
mod measure;
mod messages;
mod names;
mod plot;
mod raw;
mod report;
mod restart;
mod snapshot;
mod start;
mod trees;

use std::path::PathBuf;
use std::process::ExitCode;

use self::measure::{Arguments, Bench, Machine, Rounds, Row};
use self::report::Table;

/// In the order of the table.
fn rows() -> impl Iterator<Item = &'static Row> {
    [
        start::ROWS,
        restart::ROWS,
        crowd::ROWS,
        trees::ROWS,
        messages::ROWS,
        names::ROWS,
        snapshot::ROWS,
        hello::ROWS,
    ]
    .into_iter()
    .flatten()
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "budgets",
        rows: rows().collect(),
        own: [
            "--plot",
            "FOLDER",
            "draw what a child costs against their number, and measure nothing else",
        ],
        failure: "a budget isn't met",
        run,
    };
    bench.main()
}

fn run(arguments: &Arguments<PathBuf>) -> bool {
    let mut rounds = Rounds::new(arguments.plan);
    if let Some(folder) = &arguments.own {
        let drawn = plot::write(folder, rows(), &mut rounds, |line| println!("{line}"));
        return drawn.inspect_err(|error| eprintln!("{}: {error}", folder.display())).is_ok();
    }
    let (rows, of) = (&arguments.rows, arguments.rows.len());
    let measured = rounds.measure_all(rows.iter().copied(), |done| {
        eprintln!("{done} of {of} rows measured");
    });
    let mut table = Table::begin(Machine::here(), arguments);
    for (row, measured) in rows.iter().zip(measured) {
        table.add(row, measured);
    }
    table.end()
}
