//! What verger costs as a tree grows: from a thousand children to a million, in several shapes.
//!
//! ```text
//! cargo bench --bench scaling                      all of it, in some minutes
//! cargo bench --bench scaling -- --row dynamic     one row, or several
//! cargo bench --bench scaling -- --help            the rest
//! ```
//!
//! There are no budgets here and nothing to compare with: what is shown is whether a figure grows
//! with the number of children. Each is measured in a process of its own, in as many rounds as the
//! row has, and a round that other programs, slow memory or shared cores disturbed is repeated.

#![expect(clippy::print_stdout, reason = "the tables are what it is run for")]

mod backoffs;
mod children;
mod idle;
#[path = "../measure/mod.rs"]
mod measure;
mod report;
mod storm;
mod table;
mod trees;

use std::process::ExitCode;

use self::measure::{Arguments, Bench, Machine, Rounds, Row};
use self::report::Report;
use self::table::Table;

const TABLES: [&Table; 4] = [&children::TABLE, &trees::TABLE, &backoffs::TABLE, &storm::TABLE];

fn main() -> ExitCode {
    let bench = Bench {
        name: "scaling",
        rows: TABLES.iter().flat_map(|table| table.rows).collect(),
        own: ["--storm", "N", "let the storm last N seconds, instead of 10"],
        failure: "something could not be measured",
        run,
    };
    bench.main()
}

fn run(arguments: &Arguments<u64>) -> bool {
    let mut rounds = Rounds::new(arguments.plan);
    let mut report = Report::begin(Machine::here(), arguments);
    for table in TABLES {
        report.table(table);
        let is_wanted = |row: &&Row| arguments.rows.iter().any(|it| it.name == row.name);
        for row in table.rows.iter().filter(is_wanted) {
            let sides = table.sides(row, arguments.own);
            report.add(row, sides.map(|row| rounds.measure(&row)).collect());
        }
    }
    report.end()
}
