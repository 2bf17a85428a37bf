//! The command line: arguments in, a [`Command`] out.
//!
//! Parsing opens nothing. The environment is an argument.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::endpoint::Endpoint;

pub(crate) const USAGE: &str = "\
Shows a running verger tree in the terminal, and acts on it.

Usage: verger-top [OPTIONS] [COMMAND]

Without a command, it shows the tree live; press `?` there for the keys. The commands print once:

  tree [--json]       the whole tree
  describe PATH       all facts about one child
  events [-f] [PATH]  what has happened, in the whole tree or below PATH; -f waits for more
  letters             the dead letters
  plan [FILE]         what a reload of the program's configuration file would change, or what this
                      FILE would; nothing is applied
  restart PATH        run a new incarnation of a child; for a supervisor, of everything below it
  stop PATH           stop a child, which then stays down; for the whole tree, add --confirm NAME
  resume PATH         start a child now that is stopped, waits for its next attempt or was given up
  hold PATH           don't start the child automatically until it is released
  release PATH        end a hold
  reset PATH          reset the counters of failures and restarts

Options:
  --url URL           the console of the program (default: $VERGER_URL, or http://127.0.0.1:7007)
  --token TOKEN       needed for actions and for `plan`; the program logs it at its start
                      (default: $VERGER_TOKEN, or what follows `#token=` in the URL)
  --reason TEXT       why you do it: kept in the events and in the log
  --confirm NAME      the name of the root, to stop the whole tree
  --demo              start a tree in this process that fails a lot, and attach to it
  --help              print this

NO_COLOR switches colours off. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
";

const DEFAULT_URL: &str = "http://127.0.0.1:7007";

/// What to do, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `None` for the demonstration, which has an endpoint of its own.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) command: Command,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The live view.
    Live,
    Tree {
        json: bool,
    },
    Describe(String),
    Events {
        follow: bool,
        path: Option<String>,
    },
    Letters,
    /// Of this file, or of the program's own.
    Plan(Option<PathBuf>),
    Act(Act),
    Help,
}

/// An action on a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// The action, as the endpoint calls it.
    pub(crate) action: &'static str,
    pub(crate) path: String,
    pub(crate) reason: Option<String>,
    /// The name of the root, which the action `stop_tree` needs.
    pub(crate) confirm: Option<String>,
}

/// The actions that the endpoint and the command line name alike.
const ACTIONS: [&str; 6] = ["restart", "stop", "resume", "hold", "release", "reset"];
const COMMANDS: [&str; 6] = ["tree", "describe", "events", "letters", "plan", "help"];

/// The arguments as they come, before they are checked against the command.
#[derive(Default)]
struct Given {
    words: Vec<String>,
    url: Option<String>,
    token: Option<String>,
    reason: Option<String>,
    confirm: Option<String>,
    json: bool,
    follow: bool,
    demo: bool,
    help: bool,
}

/// Parses the arguments. The first one is the program's name.
///
/// # Errors
///
/// Returns a message that names the argument and what is wrong with it.
pub(crate) fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Options, String> {
    let given = Given::read(args)?;
    let command = given.command()?;
    let fits = matches!(command, Command::Act(_));
    if given.reason.is_some() && !fits {
        return Err(
            "--reason: only actions have a reason, such as `restart PATH --reason TEXT`".into()
        );
    }
    if given.confirm.is_some() && !matches!(&command, Command::Act(Act { action: "stop_tree", .. }))
    {
        return Err("--confirm: only `stop PATH` of the whole tree is confirmed".into());
    }
    if given.json && !matches!(command, Command::Tree { .. }) {
        return Err("--json: this is a form of `tree`; write `tree --json`".into());
    }
    if given.follow && !matches!(command, Command::Events { .. }) {
        return Err("-f: only `events` can be followed; write `events -f`".into());
    }
    Ok(Options { endpoint: given.endpoint(environment)?, command })
}

impl Given {
    fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut given = Self::default();
        let mut parser = lexopt::Parser::from_iter(args);
        while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
            match arg {
                Long("url") => given.url = Some(value("--url", &mut parser)?),
                Long("token") => given.token = Some(value("--token", &mut parser)?),
                Long("reason") => given.reason = Some(value("--reason", &mut parser)?),
                Long("confirm") => given.confirm = Some(value("--confirm", &mut parser)?),
                Long("json") => given.json = true,
                Long("follow") | Short('f') => given.follow = true,
                Long("demo") => given.demo = true,
                Long("help") | Short('h') => given.help = true,
                Value(word) => given.words.push(word.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().to_string()),
            }
        }
        Ok(given)
    }

    fn command(&self) -> Result<Command, String> {
        if self.help {
            return Ok(Command::Help);
        }
        let Some((word, rest)) = self.words.split_first() else { return Ok(Command::Live) };
        let most = match word.as_str() {
            "tree" | "letters" | "help" => 0,
            _ => 1,
        };
        if let Some(extra) = rest.get(most) {
            return Err(format!("{word}: `{extra}` is one argument too many"));
        }
        let path = || {
            rest.first()
                .cloned()
                .ok_or_else(|| format!("{word} needs a PATH, such as `{word} app/db`"))
        };
        match word.as_str() {
            "tree" => Ok(Command::Tree { json: self.json }),
            "describe" => Ok(Command::Describe(path()?)),
            "events" => Ok(Command::Events { follow: self.follow, path: rest.first().cloned() }),
            "letters" => Ok(Command::Letters),
            "plan" => Ok(Command::Plan(rest.first().map(PathBuf::from))),
            "help" => Ok(Command::Help),
            word => match ACTIONS.into_iter().find(|&action| action == word) {
                Some("stop") if self.confirm.is_some() => self.act("stop_tree", path()?),
                Some(action) => self.act(action, path()?),
                None => Err(unknown(word)),
            },
        }
    }

    fn act(&self, action: &'static str, path: String) -> Result<Command, String> {
        let (reason, confirm) = (self.reason.clone(), self.confirm.clone());
        Ok(Command::Act(Act { action, path, reason, confirm }))
    }

    fn endpoint(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Endpoint>, String> {
        if self.demo {
            if self.url.is_some() || self.token.is_some() {
                return Err("--demo starts a tree of its own; leave out --url and --token".into());
            }
            return Ok(None);
        }
        let set = |name| environment(name).filter(|value| !value.is_empty());
        let url =
            self.url.clone().or_else(|| set("VERGER_URL")).unwrap_or_else(|| DEFAULT_URL.into());
        let mut endpoint = Endpoint::parse(&url)?;
        let given = self.token.clone().or_else(|| endpoint.token.take());
        endpoint.token = given.or_else(|| set("VERGER_TOKEN"));
        Ok(Some(endpoint))
    }
}

fn value(flag: &str, parser: &mut lexopt::Parser) -> Result<String, String> {
    let value = parser.value().map_err(|_| format!("{flag} needs a value"))?;
    value.into_string().map_err(|_| format!("{flag}: the value is not UTF-8"))
}

fn unknown(word: &str) -> String {
    let words = COMMANDS.into_iter().chain(ACTIONS);
    let similar = words.map(|known| (strsim::jaro_winkler(word, known), known));
    let nearest = similar.max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest.filter(|(similarity, _)| *similarity > 0.8) {
        Some((_, near)) => format!("there is no command `{word}`; did you mean `{near}`?"),
        None => format!("there is no command `{word}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_in(args: &str, environment: &[(&str, &str)]) -> Result<Options, String> {
        let args = ["verger-top"].into_iter().chain(args.split_whitespace()).map(OsString::from);
        parse(args, |name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn command(args: &str) -> Result<Command, String> {
        parsed_in(args, &[]).map(|options| options.command)
    }

    fn act(action: &'static str, path: &str) -> Act {
        Act { action, path: path.into(), reason: None, confirm: None }
    }

    #[test]
    fn every_command_is_read() {
        assert_eq!(command(""), Ok(Command::Live));
        assert_eq!(command("tree"), Ok(Command::Tree { json: false }));
        assert_eq!(command("tree --json"), Ok(Command::Tree { json: true }));
        assert_eq!(command("--json tree"), Ok(Command::Tree { json: true }));
        assert_eq!(command("describe app/db"), Ok(Command::Describe("app/db".into())));
        assert_eq!(command("events"), Ok(Command::Events { follow: false, path: None }));
        assert_eq!(
            command("events -f a"),
            Ok(Command::Events { follow: true, path: Some("a".into()) })
        );
        assert_eq!(command("letters"), Ok(Command::Letters));
        assert_eq!(command("plan"), Ok(Command::Plan(None)));
        assert_eq!(command("plan a.toml"), Ok(Command::Plan(Some("a.toml".into()))));
        assert_eq!(command("tree --help"), Ok(Command::Help));
        for action in ACTIONS {
            assert_eq!(command(&format!("{action} a/b")), Ok(Command::Act(act(action, "a/b"))));
        }
        let reason = Act { reason: Some("slow".into()), ..act("restart", "a") };
        assert_eq!(command("restart a --reason slow"), Ok(Command::Act(reason)));
        let stop = Act { confirm: Some("app".into()), ..act("stop_tree", "app") };
        assert_eq!(command("stop app --confirm app"), Ok(Command::Act(stop)));
    }

    #[test]
    fn a_wrong_argument_is_named_with_what_to_write() {
        for (args, part) in [
            ("tre", "did you mean `tree`?"),
            ("xyz", "there is no command `xyz`"),
            ("restart", "restart needs a PATH"),
            ("stop a b", "`b` is one argument too many"),
            ("tree a", "`a` is one argument too many"),
            ("letters --json", "write `tree --json`"),
            ("tree -f", "write `events -f`"),
            ("tree --reason x", "only actions have a reason"),
            ("resume a --confirm a", "only `stop PATH`"),
            ("plan a.toml b", "`b` is one argument too many"),
            ("--url", "--url needs a value"),
            ("--frob", "--frob"),
            ("--demo --url h", "leave out --url"),
        ] {
            let error = command(args).unwrap_err();
            assert!(error.contains(part), "{args}: {error}");
        }
    }

    #[test]
    fn an_argument_precedes_the_url_and_that_the_environment() {
        let environment = [("VERGER_URL", "http://e:1#token=url"), ("VERGER_TOKEN", "env")];
        let token = |args: &str, environment: &[(&str, &str)]| {
            let endpoint = parsed_in(args, environment).unwrap().endpoint.unwrap();
            (endpoint.authority, endpoint.token)
        };
        assert_eq!(token("", &[]), ("127.0.0.1:7007".into(), None));
        assert_eq!(token("", &environment), ("e:1".into(), Some("url".into())));
        assert_eq!(token("--url a:2", &environment), ("a:2".into(), Some("env".into())));
        assert_eq!(token("--token arg", &environment), ("e:1".into(), Some("arg".into())));
        assert_eq!(token("", &[("VERGER_URL", "")]).0, "127.0.0.1:7007");
    }

    #[test]
    fn the_demonstration_needs_no_endpoint() {
        assert_eq!(
            parsed_in("--demo", &[]),
            Ok(Options { endpoint: None, command: Command::Live })
        );
        assert_eq!(command("--demo tree"), Ok(Command::Tree { json: false }));
    }
}
