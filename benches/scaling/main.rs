//! How costs grow with the number of children: from a thousand to a million, in several shapes.
//!
//! ```text
//! cargo bench --bench scaling                      all tables, in some minutes
//! cargo bench --bench scaling -- --row dynamic     only this table
//! cargo bench --bench scaling -- --help            all options
//! ```
//!
//! There are no budgets and nothing to compare with: a table shows whether a figure grows. Each
//! column is measured in processes of its own; figures are medians over the rounds.

#![expect(clippy::print_stdout, reason = "the bench exists to print its tables")]

mod backoffs;
mod children;
#[path = "../measure/mod.rs"]
mod measure;
mod trees;

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use self::measure::{
    Arguments, Side, Spread, Table, Unit, answer, machine, measure, replace_between_markers,
};

/// One table: a line for each figure, and a column for each number.
struct Scenario {
    /// The value of `--row`.
    name: &'static str,
    title: &'static str,
    columns: &'static [(&'static str, u64)],
    lines: &'static [(&'static str, Unit)],
    work: fn(u64) -> Vec<f64>,
}

const SCENARIOS: &[&Scenario] =
    &[&children::DECLARED, &children::DYNAMIC, &trees::TREES, &backoffs::BACKOFFS];

const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let find = |name: &str| SCENARIOS.iter().find(|it| it.name == name).expect("a known name");
    if answer(|name, _, n| (find(name).work)(n)) {
        return ExitCode::SUCCESS;
    }
    match run(&Arguments::parse(SCENARIOS.iter().map(|it| it.name))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (mut markdown, mut tables) = (String::new(), Vec::new());
    for scenario in SCENARIOS.iter().filter(|it| arguments.wants(it.name)) {
        eprintln!("measuring {}", scenario.name);
        let columns = scenario.measure(arguments.rounds.unwrap_or(ROUNDS))?;
        let table = scenario.table(&columns);
        if !arguments.json {
            println!("{}\n{table}", scenario.title);
        }
        writeln!(markdown, "{}\n\n{}", scenario.title, table.markdown()).expect("a string");
        tables.push(scenario.json(&columns));
    }
    if arguments.json {
        println!("{:#}", json!({ "machine": machine(), "tables": tables }));
    }
    writeln!(markdown, "Measured on {}.", machine()).expect("a string");
    let write = |file| replace_between_markers(file, "scaling", &markdown);
    arguments.table.as_deref().map_or(Ok(()), write)
}

impl Scenario {
    /// For each column and each line, the figures of all rounds.
    fn measure(&self, rounds: usize) -> Result<Vec<Vec<Vec<f64>>>, String> {
        let mut columns = vec![vec![Vec::new(); self.lines.len()]; self.columns.len()];
        for _ in 0..rounds {
            for ((_, n), column) in self.columns.iter().zip(&mut columns) {
                let figures = measure(self.name, Side::Verger, *n)?;
                column.iter_mut().zip(figures).for_each(|(line, figure)| line.push(figure));
            }
        }
        Ok(columns)
    }

    fn table(&self, columns: &[Vec<Vec<f64>>]) -> Table {
        let names = self.columns.iter().map(|(name, _)| *name);
        let mut table = Table::new(&[""].into_iter().chain(names).collect::<Vec<_>>());
        for (line, (name, unit)) in self.lines.iter().enumerate() {
            let median = |column: &Vec<Vec<f64>>| Spread::of(column[line].iter().copied()).median;
            let figures = columns.iter().map(|column| unit.show(median(column)));
            table.push([(*name).to_owned()].into_iter().chain(figures).collect());
        }
        table
    }

    fn json(&self, columns: &[Vec<Vec<f64>>]) -> Value {
        let columns = self.columns.iter().zip(columns).map(|((name, _), column)| {
            let lines = self.lines.iter().zip(column);
            let lines =
                lines.map(|((name, _), figures)| json!({ "line": name, "figures": figures }));
            json!({ "column": name, "lines": lines.collect::<Vec<_>>() })
        });
        json!({ "row": self.name, "title": self.title, "columns": columns.collect::<Vec<_>>() })
    }
}
