//! What is said on the command line.

use std::path::PathBuf;

use crate::measure::{Plan, Row};

pub(crate) const HELP: &str = "\
cargo bench --bench budgets -- [OPTIONS]

  --row NAME      only this row; may be said several times
  --rounds N      so many rounds, instead of what each row has
  --anyway        take disturbed rounds as they are
  --json          print one JSON document with the figures of all rounds
  --table FILE    write the table as Markdown, too
  --plot FOLDER   draw what a child costs against their number, and measure nothing else
  --help          print this

Exits with 1 if a budget isn't met, and with 2 if it doesn't understand.";

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) plan: Plan,
    pub(crate) json: bool,
    pub(crate) table: Option<PathBuf>,
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Wrong {
    Help,
    Said(String),
}

impl Arguments {
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = String>,
        rows: impl Iterator<Item = &'static Row>,
    ) -> Result<Self, Wrong> {
        let rows: Vec<_> = rows.collect();
        let mut parsed = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let missing = || Wrong::Said(format!("`{argument}` needs a value"));
                arguments.next().ok_or_else(missing)
            };
            match argument.as_str() {
                // Said by cargo.
                "--bench" => {}
                "--row" => parsed.rows.push(named(&value()?, &rows)?),
                "--rounds" => {
                    let not_a_number = |_| Wrong::Said("`--rounds` needs a number".to_owned());
                    parsed.plan.rounds = Some(value()?.parse().map_err(not_a_number)?);
                }
                "--anyway" => parsed.plan.anyway = true,
                "--json" => parsed.json = true,
                "--table" => parsed.table = Some(value()?.into()),
                "--plot" => parsed.plot = Some(value()?.into()),
                "--help" | "-h" => return Err(Wrong::Help),
                _ => return Err(Wrong::Said(format!("`{argument}` is unknown\n\n{HELP}"))),
            }
        }
        if parsed.rows.is_empty() {
            parsed.rows = rows;
        }
        Ok(parsed)
    }
}

fn named(name: &str, rows: &[&'static Row]) -> Result<&'static Row, Wrong> {
    let names = || rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let unknown = || Wrong::Said(format!("no row `{name}`; there are: {}", names()));
    rows.iter().find(|row| row.name == name).copied().ok_or_else(unknown)
}
