//! The command line: flags in, [`Options`] out.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

/// The range of children: enough for each zone to have an order, and few enough for a usual machine.
const CHILDREN: std::ops::RangeInclusive<usize> = 200..=1_000_000;
/// A year.
const MAX_MINUTES: f64 = 365.0 * 24.0 * 60.0;

pub(crate) const USAGE: &str = "\
Breaks a tree of thousands of children for minutes, and checks all the time that its rules hold.

Usage: soak [FLAGS]

  --minutes M     how long to break it; fractions such as 0.2 will do (default: 1)
  --seed N        the seed of the tree and of what is done to it (default: random, printed)
  --children N    how many children are live when all is well (default: 20000, at least 200)
  --plant FAULT   breaks a rule itself, which has to be found: `double-start`, a child that begins
                  a second life beside its first, or `stray-task`, one whose life outlasts it
  --help          print this

Exit codes: 0 every rule held and nothing leaked, 1 not so, 2 wrong usage.
";

/// The parsed flags.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    pub(crate) children: usize,
    pub(crate) plant: Option<Plant>,
}

/// A deliberate violation that the soak has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A child begins a second life beside the first.
    DoubleStart,
    /// A life continues after its child has ended.
    StrayTask,
}

impl Default for Options {
    fn default() -> Self {
        let time = Duration::from_secs(60);
        Self { time, seed: fastrand::u64(..), children: 20_000, plant: None }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Run(Options),
    Help,
}

/// Parses the arguments. The first one is the program's name.
///
/// # Errors
///
/// Returns a message that names the flag and what is wrong with it.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_iter(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("minutes") => {
                let minutes: f64 = number("--minutes", &mut parser)?;
                if !(minutes > 0.0 && minutes <= MAX_MINUTES) {
                    return Err(format!(
                        "--minutes: {minutes} is not above 0, or more than a year"
                    ));
                }
                options.time = Duration::from_secs_f64(minutes * 60.0);
            }
            Long("seed") => options.seed = number("--seed", &mut parser)?,
            Long("children") => {
                options.children = number("--children", &mut parser)?;
                if !CHILDREN.contains(&options.children) {
                    let (least, most) = (CHILDREN.start(), CHILDREN.end());
                    let children = options.children;
                    return Err(format!(
                        "--children: {children} is not between {least} and {most}"
                    ));
                }
            }
            Long("plant") => {
                options.plant = Some(match &*value("--plant", &mut parser)?.to_string_lossy() {
                    "double-start" => Plant::DoubleStart,
                    "stray-task" => Plant::StrayTask,
                    other => {
                        return Err(format!(
                            "--plant: `{other}` is neither `double-start` nor `stray-task`"
                        ));
                    }
                });
            }
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(Command::Run(options))
}

fn value(flag: &str, parser: &mut lexopt::Parser) -> Result<OsString, String> {
    parser.value().map_err(|_| format!("{flag} needs a value"))
}

fn number<T: FromStr>(flag: &str, parser: &mut lexopt::Parser) -> Result<T, String> {
    let value = value(flag, parser)?;
    let text = value.to_string_lossy();
    text.parse().map_err(|_| format!("{flag}: `{text}` is not a number in its range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &str) -> Result<Options, String> {
        let args = args.split_whitespace().map(OsString::from);
        match parse(std::iter::once(OsString::from("soak")).chain(args))? {
            Command::Run(options) => Ok(options),
            Command::Help => Err("help".into()),
        }
    }

    #[test]
    fn without_flags_the_defaults_hold() {
        let options = parsed("").unwrap();

        assert_eq!(options, Options { seed: options.seed, ..Options::default() });
        assert_eq!((options.time, options.children), (Duration::from_secs(60), 20_000));
    }

    #[test]
    fn every_flag_is_read() {
        let options = parsed("--minutes 0.2 --seed 7 --children 2000 --plant double-start");

        let (time, plant) = (Duration::from_secs(12), Some(Plant::DoubleStart));
        assert_eq!(options, Ok(Options { time, seed: 7, children: 2000, plant }));
    }

    #[test]
    fn a_wrong_flag_is_named() {
        for (args, words) in [
            ("--nope", "invalid option '--nope'"),
            ("stray", "unexpected argument \"stray\""),
            ("--minutes", "--minutes needs a value"),
            ("--minutes long", "--minutes: `long` is not a number"),
            ("--minutes 0", "--minutes: 0 is not above 0"),
            ("--minutes -1", "--minutes: -1 is not above 0"),
            ("--minutes NaN", "--minutes: NaN is not above 0"),
            ("--minutes inf", "--minutes: inf is not above 0"),
            ("--seed -1", "--seed: `-1` is not a number in its range"),
            ("--children 10", "--children: 10 is not between 200 and 1000000"),
            ("--plant weeds", "--plant: `weeds` is neither"),
        ] {
            let error = parsed(args).unwrap_err();
            assert!(error.contains(words), "{args}: {error}");
        }
    }
}
