//! The command line of a bench.

use std::path::PathBuf;
use std::{env, process};

const HELP: &str = "
  --row NAME      measure only this row; may be repeated
  --rounds N      measure N rounds instead of each row's own number
  --json          print one JSON document with the figures of all rounds
  --table FILE    write the table between the markers in this Markdown file, too
  --help          print this";

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The names given with `--row`. Empty means all rows.
    rows: Vec<String>,
    pub(crate) rounds: Option<usize>,
    pub(crate) json: bool,
    pub(crate) table: Option<PathBuf>,
}

impl Arguments {
    /// Reads the arguments behind the program's name. Ends the process if they are wrong, after
    /// `--help`, and without `--bench`, which `cargo test --all-targets` leaves out.
    pub(crate) fn parse(known_rows: impl Iterator<Item = &'static str>) -> Self {
        Self::read(known_rows).unwrap_or_else(|error| {
            eprintln!("{error}");
            process::exit(2)
        })
    }

    fn read(known_rows: impl Iterator<Item = &'static str>) -> Result<Self, String> {
        let mut parsed = Self::default();
        if !env::args().any(|argument| argument == "--bench") {
            println!("nothing to test; `cargo bench` measures");
            process::exit(0);
        }
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                // Added by cargo.
                "--bench" => {}
                "--row" => parsed.rows.push(value()?),
                "--rounds" => match value()?.parse() {
                    Ok(rounds) if rounds > 0 => parsed.rounds = Some(rounds),
                    _ => return Err("`--rounds` needs a number above zero".to_owned()),
                },
                "--json" => parsed.json = true,
                "--table" => parsed.table = Some(value()?.into()),
                "--help" | "-h" => {
                    println!("options:{HELP}");
                    process::exit(0);
                }
                _ => return Err(format!("unknown argument `{argument}`; options:{HELP}")),
            }
        }
        let known_rows: Vec<_> = known_rows.collect();
        match parsed.rows.iter().find(|row| !known_rows.contains(&row.as_str())) {
            Some(row) => Err(format!("no row `{row}`; rows: {}", known_rows.join(", "))),
            None => Ok(parsed),
        }
    }

    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|wanted| wanted == row)
    }
}
