//! The command line: arguments in, a [`Command`] out.
//!
//! Parsing opens nothing. The environment is an argument.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::endpoint::Endpoint;
use crate::show::Extent;

pub(crate) const USAGE: &str = "\
Shows a running verger tree in the terminal, and acts on it.

Usage: verger-top [OPTIONS] [COMMAND]

Without a command, it shows the tree live; press `?` there for the keys.

These commands print once. Lists have the oldest entry first, like a log:
  incidents            what is wrong now and was in the last fifteen minutes
  tree                 the whole tree; of more than eight dynamic children of
                       one name, one line and those with problems
  describe PATH        all facts about one child
  events [-f] [PATH]   what has happened at PATH and below
  logs [-f] [PATH]     the log lines of PATH and below
  letters              the dead letters
  plan [FILE]          what a reload of the configuration file would change, or
                       what this FILE would; nothing is applied

These commands act on the tree:
  restart PATH         start a new incarnation; of a supervisor, with all below
  stop PATH            stop a child, which then stays down; for the whole tree,
                       add --confirm NAME
  kill PATH            abort a child without its grace; needs --reason
  resume PATH          start a child now that is stopped, waits or was given up
  hold PATH            don't start the child automatically until its release
  release PATH         end a hold
  reset PATH           reset the counters of failures and restarts

Options:
  --url URL            the console of the program
                       (default: $VERGER_URL, or http://127.0.0.1:7007)
  --token TOKEN        for actions, for `plan`, and for reading if the program
                       asks for it; the program logs it at its start
                       (default: $VERGER_TOKEN, or what follows `#token=` in
                       the URL)
  -f, --follow         wait for more: of `events` and `logs`
  --all, --depth N     of `tree`: list all dynamic children; only N levels
                       below the root
  --json               of `tree`: as JSON
  --reason TEXT        why you act: kept in the events and in the log
  --by NAME            who acts: kept beside the reason
                       (default: $SUDO_USER or $USER)
  --confirm NAME       the name of the root, to stop the whole tree
  --demo               start a tree in this process that fails a lot
  --version, --help    print the version, or this

NO_COLOR switches colours off.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
";

const DEFAULT_URL: &str = "http://127.0.0.1:7007";
/// The longest name of an operator that the endpoint takes.
const MAX_NAME: usize = 64;

/// What to do, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `None` for the demonstration, which has an endpoint of its own.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) command: Command,
    /// Who acts, in the live view.
    pub(crate) by: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The live view.
    Live,
    Incidents,
    Tree(Extent),
    /// The tree as JSON.
    TreeJson,
    Describe(String),
    Events {
        follow: bool,
        path: Option<String>,
    },
    Logs {
        follow: bool,
        path: Option<String>,
    },
    Letters,
    /// Of this file, or of the program's own.
    Plan(Option<PathBuf>),
    Act(Act),
    Version,
    Help,
}

/// An action on a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// The action, as the endpoint calls it.
    pub(crate) action: &'static str,
    pub(crate) path: String,
    pub(crate) reason: Option<String>,
    /// Who does it, as the user has typed it.
    pub(crate) by: Option<String>,
    /// The name of the root, which the action `stop_tree` needs.
    pub(crate) confirm: Option<String>,
}

/// The actions that the endpoint and the command line name alike.
const ACTIONS: [&str; 7] = ["restart", "stop", "kill", "resume", "hold", "release", "reset"];
const COMMANDS: [&str; 8] =
    ["incidents", "tree", "describe", "events", "logs", "letters", "plan", "help"];

/// The arguments as they come, before they are checked against the command.
#[derive(Default)]
struct Given {
    words: Vec<String>,
    url: Option<String>,
    token: Option<String>,
    reason: Option<String>,
    confirm: Option<String>,
    by: Option<String>,
    depth: Option<String>,
    all: bool,
    json: bool,
    follow: bool,
    demo: bool,
    version: bool,
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
    let by = given.by(&environment)?;
    let command = given.command(by.clone())?;
    given.check(&command)?;
    Ok(Options { endpoint: given.endpoint(environment)?, command, by })
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
                Long("by") => given.by = Some(value("--by", &mut parser)?),
                Long("depth") => given.depth = Some(value("--depth", &mut parser)?),
                Long("all") => given.all = true,
                Long("version") | Short('V') => given.version = true,
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

    /// Refuses options that don't belong to the command.
    fn check(&self, command: &Command) -> Result<(), String> {
        let is_tree = matches!(command, Command::Tree(_) | Command::TreeJson);
        let is_list = matches!(command, Command::Events { .. } | Command::Logs { .. });
        let is_act = matches!(command, Command::Act(_));
        let is_stop = matches!(command, Command::Act(Act { action: "stop_tree", .. }));
        let acts = is_act || *command == Command::Live;
        let (depth, by) = (self.depth.is_some(), self.by.is_some());
        // An option, whether it fits, and what to write instead.
        let rules = [
            (
                "--reason",
                self.reason.is_some(),
                is_act,
                "only actions have a reason, such as `restart PATH --reason TEXT`",
            ),
            ("--by", by, acts, "only actions have an author, such as `restart PATH --by NAME`"),
            (
                "--confirm",
                self.confirm.is_some(),
                is_stop,
                "only `stop PATH` of the whole tree is confirmed",
            ),
            ("--json", self.json, is_tree, "this is a form of `tree`; write `tree --json`"),
            ("--all", self.all, is_tree, "this lists all children of `tree`; write `tree --all`"),
            ("--depth", depth, is_tree, "this cuts `tree`; write `tree --depth N`"),
            (
                "--json",
                self.json,
                !self.all && !depth,
                "the JSON is always the whole tree; leave out --all and --depth",
            ),
            (
                "-f",
                self.follow,
                is_list,
                "only `events` and `logs` can be followed; write `events -f`",
            ),
        ];
        let wrong = rules.into_iter().find(|&(_, is_given, fits, _)| is_given && !fits);
        match wrong {
            _ if matches!(command, Command::Help | Command::Version) => Ok(()),
            Some((option, _, _, instead)) => Err(format!("{option}: {instead}")),
            None => Ok(()),
        }
    }

    /// The name that actions have as their author.
    fn by(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
        if let Some(name) = &self.by {
            return match name.chars().count() {
                0..=MAX_NAME => Ok(Some(name.clone()).filter(|name| !name.is_empty())),
                _ => Err(format!("--by: the name is longer than {MAX_NAME} characters")),
            };
        }
        // With `sudo`, the one who has typed the command and not `root`.
        let names = ["SUDO_USER", "USER", "USERNAME"].into_iter();
        let name = names.filter_map(environment).find(|name| !name.is_empty());
        Ok(name.map(|name| name.chars().take(MAX_NAME).collect()))
    }

    fn command(&self, by: Option<String>) -> Result<Command, String> {
        if self.help {
            return Ok(Command::Help);
        }
        if self.version {
            return Ok(Command::Version);
        }
        let Some((word, rest)) = self.words.split_first() else { return Ok(Command::Live) };
        let most = match word.as_str() {
            "incidents" | "tree" | "letters" | "help" => 0,
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
            "incidents" => Ok(Command::Incidents),
            "tree" if self.json => Ok(Command::TreeJson),
            "tree" => Ok(Command::Tree(self.extent()?)),
            "describe" => Ok(Command::Describe(path()?)),
            "events" => Ok(Command::Events { follow: self.follow, path: rest.first().cloned() }),
            "logs" => Ok(Command::Logs { follow: self.follow, path: rest.first().cloned() }),
            "letters" => Ok(Command::Letters),
            "plan" => Ok(Command::Plan(rest.first().map(PathBuf::from))),
            "help" => Ok(Command::Help),
            word => match ACTIONS.into_iter().find(|&action| action == word) {
                Some("stop") if self.confirm.is_some() => self.act("stop_tree", path()?, by),
                // Whoever finds the child killed needs to know why it got no time to stop.
                Some("kill") if self.reason.as_ref().is_none_or(|it| it.trim().is_empty()) => {
                    path()?;
                    let text =
                        "kill aborts a child without its grace; give the reason with --reason TEXT";
                    Err(text.to_owned())
                }
                Some(action) => self.act(action, path()?, by),
                None => Err(unknown(word)),
            },
        }
    }

    fn act(
        &self,
        action: &'static str,
        path: String,
        by: Option<String>,
    ) -> Result<Command, String> {
        let (reason, confirm) = (self.reason.clone(), self.confirm.clone());
        Ok(Command::Act(Act { action, path, reason, by, confirm }))
    }

    fn extent(&self) -> Result<Extent, String> {
        let depth = self.depth.as_ref().map(|text| {
            text.parse()
                .map_err(|_| format!("--depth: `{text}` is not a number; write `--depth 2`"))
        });
        Ok(Extent { all: self.all, depth: depth.transpose()? })
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
        Act { action, path: path.into(), reason: None, by: None, confirm: None }
    }

    fn tree(all: bool, depth: Option<usize>) -> Command {
        Command::Tree(Extent { all, depth })
    }

    #[test]
    fn every_command_is_read() {
        assert_eq!(command(""), Ok(Command::Live));
        assert_eq!(command("tree"), Ok(tree(false, None)));
        assert_eq!(command("tree --json"), Ok(Command::TreeJson));
        assert_eq!(command("--json tree"), Ok(Command::TreeJson));
        assert_eq!(command("describe app/db"), Ok(Command::Describe("app/db".into())));
        assert_eq!(command("events"), Ok(Command::Events { follow: false, path: None }));
        assert_eq!(
            command("events -f a"),
            Ok(Command::Events { follow: true, path: Some("a".into()) })
        );
        assert_eq!(command("incidents"), Ok(Command::Incidents));
        assert_eq!(command("tree --all --depth 2"), Ok(tree(true, Some(2))));
        assert_eq!(command("logs"), Ok(Command::Logs { follow: false, path: None }));
        assert_eq!(
            command("logs -f a/b"),
            Ok(Command::Logs { follow: true, path: Some("a/b".into()) })
        );
        assert_eq!(command("--version"), Ok(Command::Version));
        assert_eq!(command("letters"), Ok(Command::Letters));
        assert_eq!(command("plan"), Ok(Command::Plan(None)));
        assert_eq!(command("plan a.toml"), Ok(Command::Plan(Some("a.toml".into()))));
        assert_eq!(command("tree --help"), Ok(Command::Help));
        for action in ACTIONS {
            let reason = Some("slow".to_owned());
            let act = Act { reason, ..act(action, "a/b") };
            assert_eq!(command(&format!("{action} a/b --reason slow")), Ok(Command::Act(act)));
        }
        assert_eq!(command("restart a"), Ok(Command::Act(act("restart", "a"))));
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
            ("logs --all", "write `tree --all`"),
            ("describe a --depth 2", "write `tree --depth N`"),
            ("tree --depth two", "`two` is not a number"),
            ("tree --json --all", "leave out --all and --depth"),
            ("tree --by me", "only actions have an author"),
            ("kill a", "give the reason with --reason TEXT"),
            ("kill", "kill needs a PATH"),
            ("incidents a", "`a` is one argument too many"),
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
            Ok(Options { endpoint: None, command: Command::Live, by: None })
        );
        assert_eq!(command("--demo tree"), Ok(tree(false, None)));
    }

    #[test]
    fn an_action_has_an_author_even_if_none_is_given() {
        let by = |args: &str, environment: &[(&str, &str)]| {
            let Command::Act(act) = parsed_in(args, environment).unwrap().command else {
                panic!("`{args}` is no action")
            };
            act.by
        };
        let both = [("USER", "root"), ("SUDO_USER", "alice")];
        assert_eq!(by("stop a", &[("USER", "bob")]), Some("bob".into()));
        assert_eq!(by("stop a", &both), Some("alice".into()));
        assert_eq!(by("stop a --by carol", &both), Some("carol".into()));
        assert_eq!(by("stop a", &[("USER", "")]), None);
        assert_eq!(by("stop a", &[("USER", &"x".repeat(70))]).unwrap().len(), 64);
        // The live view acts too.
        assert_eq!(parsed_in("--by carol", &both).unwrap().by, Some("carol".into()));
        let long = format!("stop a --by {}", "x".repeat(65));
        assert!(command(&long).unwrap_err().contains("longer than 64 characters"));
    }

    #[test]
    fn the_help_fits_into_80_columns() {
        let widest = USAGE.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 80, "{widest}");
    }
}
