//! A bench as a command: its arguments, and how it ends.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use super::process;
use super::rounds::Plan;
use super::row::Row;

/// A bench that measures rows. `Own` is what it is told by an option that no other has.
pub(crate) struct Bench<Own> {
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<&'static Row>,
    /// The option's name, that of its value, and what it is for.
    pub(crate) own: [&'static str; 3],
    /// What makes it fail.
    pub(crate) failure: &'static str,
    /// Returns whether nothing did.
    pub(crate) run: fn(&Arguments<Own>) -> bool,
}

/// What is said on the command line.
pub(crate) struct Arguments<Own> {
    /// All of them if none is named.
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) plan: Plan,
    pub(crate) json: bool,
    pub(crate) table: Option<PathBuf>,
    pub(crate) own: Option<Own>,
}

enum Wrong {
    Help,
    Said(String),
}

impl<Own: FromStr> Bench<Own> {
    pub(crate) fn main(&self) -> ExitCode {
        if let Some(figures) = process::answer(self.rows.iter().copied()) {
            println!("{figures}");
            return ExitCode::SUCCESS;
        }
        let arguments: Vec<_> = env::args().skip(1).collect();
        if !arguments.iter().any(|argument| argument == "--bench") {
            println!("nothing to test; `cargo bench --bench {}` measures", self.name);
            return ExitCode::SUCCESS;
        }
        match self.parse(arguments) {
            Ok(arguments) if (self.run)(&arguments) => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(Wrong::Help) => {
                println!("{}", self.help());
                ExitCode::SUCCESS
            }
            Err(Wrong::Said(problem)) => {
                eprintln!("{problem}");
                ExitCode::from(2)
            }
        }
    }

    fn parse(&self, arguments: Vec<String>) -> Result<Arguments<Own>, Wrong> {
        let (rows, plan) = (Vec::new(), Plan::default());
        let mut parsed = Arguments { rows, plan, json: false, table: None, own: None };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let missing = || Wrong::Said(format!("`{argument}` needs a value"));
                arguments.next().ok_or_else(missing)
            };
            match argument.as_str() {
                // Said by cargo.
                "--bench" => {}
                "--row" => parsed.rows.push(self.named(&value()?)?),
                "--rounds" => parsed.plan.rounds = Some(read(&argument, &value()?)?),
                "--anyway" => parsed.plan.anyway = true,
                "--json" => parsed.json = true,
                "--table" => parsed.table = Some(value()?.into()),
                own if own == self.own[0] => parsed.own = Some(read(own, &value()?)?),
                "--help" | "-h" => return Err(Wrong::Help),
                _ => {
                    return Err(Wrong::Said(format!("`{argument}` is unknown\n\n{}", self.help())));
                }
            }
        }
        if parsed.rows.is_empty() {
            parsed.rows.clone_from(&self.rows);
        }
        Ok(parsed)
    }

    fn help(&self) -> String {
        let Self { name, own: [own, value, purpose], failure, .. } = self;
        let own = format!("{own} {value}");
        format!(
            "cargo bench --bench {name} -- [OPTIONS]

  --row NAME      only this row; may be said several times
  --rounds N      so many rounds, instead of what each row has
  --anyway        take disturbed rounds as they are
  --json          print one JSON document with the figures of all rounds
  --table FILE    write what is printed as Markdown, too
  {own:<15} {purpose}
  --help          print this

Exits with 1 if {failure}, and with 2 if it doesn't understand."
        )
    }

    fn named(&self, name: &str) -> Result<&'static Row, Wrong> {
        let names = || self.rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        let unknown = || Wrong::Said(format!("no row `{name}`; there are: {}", names()));
        self.rows.iter().find(|row| row.name == name).copied().ok_or_else(unknown)
    }
}

/// What is read and isn't just text is a number.
fn read<T: FromStr>(argument: &str, value: &str) -> Result<T, Wrong> {
    value.parse().map_err(|_| Wrong::Said(format!("`{argument}` needs a number")))
}
