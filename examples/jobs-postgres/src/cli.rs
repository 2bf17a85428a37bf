//! The command line: arguments in, [`Command`] out. Parsing opens nothing, except the file of `serve-database`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::database::Database;
use crate::demo;
use crate::error::Failure;
use crate::server;
use crate::service::Settings;

/// The environment variable with the connection string. It isn't an argument, because it contains a password, and the
/// list of processes shows arguments to all users of the machine.
pub(crate) const URL: &str = "DATABASE_URL";

pub(crate) const USAGE: &str = "\
A job queue on PostgreSQL, run by several processes, of which any may fail.

Usage: jobs-postgres serve-database [--down SECONDS] [--url-file PATH]
       jobs-postgres demo [--ttl SECONDS] [--url-file PATH]
       jobs-postgres run --name NAME [--workers N] [--every MS] [--ttl SECONDS] [--url-file PATH]
       jobs-postgres audit [--url-file PATH]

  serve-database   start a PostgreSQL server of its own on a free port of 127.0.0.1, with an empty database
                   that is deleted at the end; Ctrl-C ends it
  demo             start three processes of the queue; kill one, stop one, cut one off, and stop the
                   database; compare jobs and ledger at the end
  run              one process of the queue; Ctrl-C or SIGTERM ends it in order
  audit            compare jobs and ledger now

  --down SECONDS   how long a server that was stopped from outside stays down (default: 30)
  --ttl SECONDS    how long the lease of the scheduler lasts without a renewal (default: 6)
  --name NAME      the name of the process, as the ledger shows it
  --workers N      how many jobs it runs at the same time (default: 2)
  --every MS       the time from one batch of 5 jobs to the next (default: 40)
  --url-file PATH  where serve-database writes the connection string, and the others read it
                   (default: beside this program)
  --help           print this

Environment: DATABASE_URL, the connection string of a different database. It comes before the file.

Exit codes: 0 each job ran exactly once, 1 it did not, or something is missing, 2 wrong usage.
";

/// What the program does.
#[derive(Debug)]
pub(crate) enum Command {
    Serve(server::Options),
    Demo(demo::Options),
    Run(Settings),
    Audit(Database),
    Help,
}

/// The flags of all commands, as far as they are given.
#[derive(Debug, Default)]
struct Flags {
    down: Option<u32>,
    ttl: Option<f64>,
    name: Option<String>,
    workers: Option<u32>,
    every: Option<u32>,
    url_file: Option<PathBuf>,
}

/// Parses the arguments. The first one is the program's name.
///
/// # Errors
///
/// A message that names the argument, and what is wrong with it.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let (command, mut flags) = read(args).map_err(Failure::Usage)?;
    let Some(command) = command else { return Ok(Command::Help) };
    let url_file = flags.url_file.take().map_or_else(beside_program, Ok)?;
    let command = match &*command {
        "serve-database" => {
            let down = Duration::from_secs(flags.down.take().unwrap_or(30).into());
            Command::Serve(server::Options { down, url_file })
        }
        "demo" => Command::Demo(demo::Options {
            ttl: ttl(flags.ttl.take())?,
            database: database(url_file)?,
        }),
        "run" => Command::Run(Settings {
            name: name(flags.name.take())?,
            workers: flags.workers.take().unwrap_or(2),
            every: Duration::from_millis(flags.every.take().unwrap_or(40).into()),
            ttl: ttl(flags.ttl.take())?,
            database: database(url_file)?,
        }),
        "audit" => Command::Audit(database(url_file)?),
        other => {
            return Err(Failure::Usage(format!(
                "`{other}` is no command; write serve-database, demo, run or audit"
            )));
        }
    };
    match flags.left() {
        Some(flag) => Err(Failure::Usage(format!("{flag} isn't a flag of this command"))),
        None => Ok(command),
    }
}

/// Reads the name of the command and all flags. Without a command, help is asked for.
fn read(args: impl IntoIterator<Item = OsString>) -> Result<(Option<String>, Flags), String> {
    let (mut command, mut flags) = (None, Flags::default());
    let mut parser = lexopt::Parser::from_iter(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("down") => flags.down = Some(number("--down", &mut parser)?),
            Long("ttl") => flags.ttl = Some(number("--ttl", &mut parser)?),
            Long("workers") => flags.workers = Some(number("--workers", &mut parser)?),
            Long("every") => flags.every = Some(number("--every", &mut parser)?),
            Long("name") => flags.name = Some(text("--name", &mut parser)?),
            Long("url-file") => flags.url_file = Some(text("--url-file", &mut parser)?.into()),
            Long("help") | Short('h') => return Ok((None, flags)),
            Value(value) if command.is_none() => command = Some(value.to_string_lossy().into()),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let missing = || "the command is missing; write serve-database, demo, run or audit".to_owned();
    command.ok_or_else(missing).map(|command| (Some(command), flags))
}

impl Flags {
    /// Returns a flag that the command has not taken.
    fn left(&self) -> Option<&'static str> {
        let given = [
            (self.down.is_some(), "--down"),
            (self.ttl.is_some(), "--ttl"),
            (self.name.is_some(), "--name"),
            (self.workers.is_some(), "--workers"),
            (self.every.is_some(), "--every"),
        ];
        given.into_iter().find_map(|(is_given, flag)| is_given.then_some(flag))
    }
}

fn text(flag: &str, parser: &mut lexopt::Parser) -> Result<String, String> {
    let value = parser.value().map_err(|_| format!("{flag} needs a value"))?;
    let text = value.into_string().map_err(|_| format!("{flag}: this isn't UTF-8"))?;
    if text.is_empty() { Err(format!("{flag}: the value is empty")) } else { Ok(text) }
}

fn number<T: FromStr>(flag: &str, parser: &mut lexopt::Parser) -> Result<T, String> {
    let text = text(flag, parser)?;
    text.parse().map_err(|_| format!("{flag}: `{text}` isn't a number in its range"))
}

/// The lease advertises the name, which can't contain a space.
fn name(name: Option<String>) -> Result<String, Failure> {
    let example = "write a name such as `a`";
    match name {
        Some(name) if !name.contains(char::is_whitespace) => Ok(name),
        Some(name) => Err(Failure::Usage(format!("--name: `{name}` contains a space; {example}"))),
        None => Err(Failure::Usage(format!("--name is missing; {example}"))),
    }
}

fn ttl(seconds: Option<f64>) -> Result<Duration, Failure> {
    let seconds = seconds.unwrap_or(6.0);
    // A shorter one leaves no time for the scheduler to end, and expires whenever the machine is busy.
    if (1.0..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(Failure::Usage(format!("--ttl: {seconds} isn't from 1 to 3600; write 6")))
    }
}

fn database(url_file: PathBuf) -> Result<Database, Failure> {
    match std::env::var(URL) {
        Ok(url) => Database::parse(&url),
        Err(_) => Database::read(&url_file),
    }
}

fn beside_program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Environment(error.to_string()))?;
    Ok(program.with_extension("url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &str) -> Result<Command, String> {
        let args = args.split_whitespace().map(OsString::from);
        parse(std::iter::once(OsString::from("jobs-postgres")).chain(args))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read() {
        let Ok(Command::Serve(options)) = parsed("serve-database --down 3 --url-file u") else {
            panic!("it is valid");
        };
        assert_eq!((options.down, options.url_file), (Duration::from_secs(3), "u".into()));
        let Ok(Command::Serve(options)) = parsed("serve-database") else { panic!("it is valid") };
        assert_eq!(options.down, Duration::from_secs(30));
        assert!(options.url_file.is_absolute());
        assert!(matches!(parsed("demo --help"), Ok(Command::Help)));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (args, words) in [
            ("", "the command is missing; write serve-database"),
            ("--ttl 5", "the command is missing"),
            ("serve", "`serve` is no command"),
            ("demo demo", "unexpected argument \"demo\""),
            ("demo --nope", "invalid option '--nope'"),
            ("demo --ttl", "--ttl needs a value"),
            ("demo --ttl soon", "--ttl: `soon` isn't a number"),
            ("demo --ttl 0.9", "--ttl: 0.9 isn't from 1 to 3600"),
            ("demo --ttl NaN", "--ttl: NaN isn't from 1 to 3600"),
            ("run", "--name is missing; write a name such as `a`"),
            ("run --name=", "--name: the value is empty"),
            ("run --name a --workers -1", "--workers: `-1` isn't a number in its range"),
            ("serve-database --name a", "--name isn't a flag of this command"),
            ("serve-database --ttl 3", "--ttl isn't a flag of this command"),
        ] {
            let error = parsed(args).unwrap_err();
            assert!(error.contains(words), "{args}: {error}");
        }
    }
}
