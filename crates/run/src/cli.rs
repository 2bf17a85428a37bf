//! The command line: arguments in, a [`Command`] out.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

pub(crate) const USAGE: &str = "\
Supervises the processes that a TOML file describes.

Usage: verger-run [--json] FILE
       verger-run check FILE

  FILE        start the processes of this file; SIGHUP reads it again, SIGTERM and SIGINT stop them all
  check FILE  say what is wrong with the file, and start nothing

Options:
  --json      log in JSON, one object in each line
  --help      print this

The log, with each line of the processes, goes to stderr.

Exit codes: 0 stopped in order, 1 a process was given up, 2 wrong usage or a wrong file,
3 stopped, but a process had to be killed.
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run { file: PathBuf, json: bool },
    Check { file: PathBuf },
    Help,
}

/// Parses the arguments. The first one is the program's name.
///
/// # Errors
///
/// Returns what is wrong.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let (mut words, mut json): (Vec<PathBuf>, _) = (Vec::new(), false);
    let mut parser = lexopt::Parser::from_iter(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            Value(word) => words.push(word.into()),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let mut words = words.into_iter();
    match (words.next(), words.next(), words.next()) {
        (Some(word), None, _) if word.as_os_str() != "check" => {
            Ok(Command::Run { file: word, json })
        }
        (Some(word), Some(file), None) if word.as_os_str() == "check" => {
            if json {
                Err("--json: `check` logs nothing".into())
            } else {
                Ok(Command::Check { file })
            }
        }
        (Some(word), None, _) => {
            Err(format!("`{0}` needs a file; write `{0} FILE`", word.display()))
        }
        (None, ..) => Err("no file; write the path of a TOML file".into()),
        (_, Some(extra), None) | (_, _, Some(extra)) => {
            Err(format!("`{}` is one argument too many", extra.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, String> {
        parse(["verger-run"].iter().chain(args).map(OsString::from))
    }

    #[test]
    fn a_file_is_run_or_checked() {
        let file = PathBuf::from("a.toml");
        assert_eq!(parsed(&["a.toml"]), Ok(Command::Run { file: file.clone(), json: false }));
        assert_eq!(
            parsed(&["a.toml", "--json"]),
            Ok(Command::Run { file: file.clone(), json: true })
        );
        assert_eq!(parsed(&["check", "a.toml"]), Ok(Command::Check { file }));
        assert_eq!(parsed(&["check", "--help"]), Ok(Command::Help));
    }

    #[test]
    fn wrong_usage_is_named() {
        let wrong = |args| parsed(args).unwrap_err();
        assert_eq!(wrong(&[]), "no file; write the path of a TOML file");
        assert_eq!(wrong(&["check"]), "`check` needs a file; write `check FILE`");
        assert_eq!(wrong(&["a", "b"]), "`b` is one argument too many");
        assert_eq!(wrong(&["check", "a", "b"]), "`b` is one argument too many");
        assert_eq!(wrong(&["check", "a", "--json"]), "--json: `check` logs nothing");
        assert_eq!(wrong(&["--jason", "a"]), "invalid option '--jason'");
    }
}
