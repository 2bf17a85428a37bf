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
//! round that other programs or slow memory disturbed is repeated.

#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

mod arguments;
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

use std::env;
use std::process::ExitCode;

use self::arguments::{Arguments, Wrong};
use self::measure::{Machine, Rounds, Row};
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
    if let Some(figures) = measure::answer(rows()) {
        println!("{figures}");
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<_> = env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("nothing to test; `cargo bench --bench budgets` measures");
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(arguments, rows()) {
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
    if let Some(folder) = &arguments.plot {
        let drawn = plot::write(folder, rows(), arguments.plan, |line| println!("{line}"));
        return drawn.map_or_else(
            |error| {
                eprintln!("{}: {error}", folder.display());
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        );
    }
    let mut table = Table::begin(Machine::here(), arguments);
    let mut rounds = Rounds::new(arguments.plan);
    for row in &arguments.rows {
        table.add(row, rounds.measure(row));
    }
    if table.end() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
