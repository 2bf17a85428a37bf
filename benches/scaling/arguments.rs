//! What is said on the command line.

use std::path::PathBuf;

use crate::measure::{Plan, Row};
use crate::{TABLES, storm};

pub(crate) const HELP: &str = "\
cargo bench --bench scaling -- [OPTIONS]

  --row NAME      only this row; may be said several times
  --rounds N      so many rounds, instead of what each row has
  --anyway        take disturbed rounds as they are
  --storm N       let the storm last N seconds, instead of 10
  --json          print one JSON document with the figures of all rounds
  --table FILE    write the tables as Markdown, too
  --help          print this

Exits with 1 if something could not be measured, and with 2 if it doesn't understand.";

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    rows: Vec<String>,
    pub(crate) plan: Plan,
    storm: Option<u64>,
    pub(crate) json: bool,
    pub(crate) table: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Wrong {
    Help,
    Said(String),
}

impl Arguments {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, Wrong> {
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
                "--row" => parsed.rows.push(named(value()?)?),
                "--rounds" => parsed.plan.rounds = Some(number(&argument, &value()?)?),
                "--anyway" => parsed.plan.anyway = true,
                "--storm" => parsed.storm = Some(number(&argument, &value()?)?),
                "--json" => parsed.json = true,
                "--table" => parsed.table = Some(value()?.into()),
                "--help" | "-h" => return Err(Wrong::Help),
                _ => return Err(Wrong::Said(format!("`{argument}` is unknown\n\n{HELP}"))),
            }
        }
        Ok(parsed)
    }

    pub(crate) fn wants(&self, row: &Row) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|name| name == row.name)
    }

    /// How much of a row is measured, where the table doesn't say.
    pub(crate) fn number(&self, row: &Row) -> u64 {
        let storm = self.storm.filter(|_| row.name == storm::NAME);
        storm.unwrap_or(row.ours.n)
    }
}

fn number<T: std::str::FromStr>(argument: &str, value: &str) -> Result<T, Wrong> {
    value.parse().map_err(|_| Wrong::Said(format!("`{argument}` needs a number")))
}

fn named(name: String) -> Result<String, Wrong> {
    let names = || TABLES.iter().flat_map(|table| table.rows).map(|row| row.name);
    if names().any(|it| it == name) {
        return Ok(name);
    }
    let names = names().collect::<Vec<_>>().join(", ");
    Err(Wrong::Said(format!("no row `{name}`; there are: {names}")))
}
