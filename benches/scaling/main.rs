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
//! row has, and a round that other programs or slow memory disturbed is repeated.

#![expect(clippy::print_stdout, reason = "the tables are what it is run for")]

mod arguments;
mod backoffs;
mod children;
mod idle;
#[path = "../measure/mod.rs"]
mod measure;
mod report;
mod storm;
mod table;
mod trees;

use std::env;
use std::process::ExitCode;

use self::arguments::{Arguments, Wrong};
use self::measure::{Machine, Rounds};
use self::report::Report;
use self::table::Table;

const TABLES: [&Table; 4] = [&children::TABLE, &trees::TABLE, &backoffs::TABLE, &storm::TABLE];

fn main() -> ExitCode {
    if let Some(figures) = measure::answer(TABLES.iter().flat_map(|table| table.rows)) {
        println!("{figures}");
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<_> = env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("nothing to test; `cargo bench --bench scaling` measures");
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(arguments) {
        Ok(arguments) => run(&arguments),
        Err(Wrong::Help) => {
            println!("{}", arguments::HELP);
            ExitCode::SUCCESS
        }
        Err(Wrong::Said(problem)) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    let mut report = Report::begin(Machine::here(), arguments);
    let mut rounds = Rounds::new(arguments.plan);
    for table in TABLES {
        report.table(table);
        for row in table.rows.iter().filter(|row| arguments.wants(row)) {
            let sides = table.sides(row, arguments);
            report.add(row, sides.map(|row| rounds.measure(&row)).collect());
        }
    }
    if report.end() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
