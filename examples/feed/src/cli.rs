//! The command line: flags in, [`Options`] out.
//!
//! Parsing opens nothing. Whether a file exists or a port is free is checked by
//! [`service`](crate::service).

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::limits::CONNECTIONS;

/// The most built-in clients, which fit into the usual 1,024 file descriptors.
const MAX_CLIENTS: usize = 256;

pub(crate) const USAGE: &str = "\
Keeps every line it is given in SQLite, and goes on doing so while parts of it fail.

Usage: feed [FLAGS]

  --file PATH    the file to read (default: the example's data/feed.txt)
  --db PATH      the database; a second start resumes (default: a temporary one, removed at the end)
  --listen ADDR  where `NAME/N TEXT` lines are taken over TCP (default: 127.0.0.1:0)
  --http ADDR    where /stats, /tree and /healthz are served (default: 127.0.0.1:0)
  --probes ADDR  where /livez, /readyz and /startupz are served (default: 127.0.0.1:0)
  --console[=ADDR]
                 where the console of verger is served, a page that shows the tree and acts on it
                 (default: 127.0.0.1:7007); without the flag, nowhere
  --drain N      seconds from a signal to the stop, for a load balancer to notice (default: 0)
  --rate N       lines per second from the file and from each client, 0 = no limit (default: 5000)
  --clients N    built-in TCP clients, 1,000 lines each (default: 0, at most 256)
  --connections N
                 connections over TCP at once; for a further one, the one that has been silent for
                 longest is closed (default: 512)
  --follow       wait for more when the file ends, and for its successor, until a signal
  --config FILE  restart policies, limits and batch size, as in the example's feed.toml; read again at
                 SIGHUP, and sent to the children again, changed or not, at SIGUSR2
  --check        check the flags and the file of --config, and start nothing
  --chaos        make parts of the service fail, on a schedule of work done
  --kills N      run the service in a process of its own, kill it N times with SIGKILL at random
                 moments, start it again each time, and audit its database; the clients send until
                 the last kill, and what isn't acknowledged again (default: 0)
  --seed N       the seed of that schedule, and of the kills (default: random, printed)
  --help         print this

Exit codes: 0 nothing was lost or duplicated, 1 something was or the service gave up, 2 wrong usage
or an invalid configuration.
";

/// The parsed flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) db: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) probes: SocketAddr,
    /// Where the console is served, if it is.
    pub(crate) console: Option<SocketAddr>,
    /// How long the service goes on after a signal.
    pub(crate) drain: Duration,
    /// Lines per second; 0 is no limit.
    pub(crate) rate: u32,
    pub(crate) clients: usize,
    pub(crate) connections: usize,
    pub(crate) follow: bool,
    pub(crate) config: Option<PathBuf>,
    /// Whether the configuration is only checked.
    pub(crate) check: bool,
    pub(crate) chaos: bool,
    /// How often the service's process is killed.
    pub(crate) kills: u32,
    pub(crate) seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            file: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/feed.txt")),
            db: None,
            listen: loopback,
            http: loopback,
            probes: loopback,
            console: None,
            drain: Duration::ZERO,
            rate: 5_000,
            clients: 0,
            connections: CONNECTIONS,
            follow: false,
            config: None,
            check: false,
            chaos: false,
            kills: 0,
            seed: fastrand::u64(..),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run(Box<Options>),
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
            Long("file") => options.file = path("--file", &mut parser)?,
            Long("db") => options.db = Some(path("--db", &mut parser)?),
            Long("config") => options.config = Some(path("--config", &mut parser)?),
            Long("listen") => options.listen = address("--listen", &mut parser)?,
            Long("http") => options.http = address("--http", &mut parser)?,
            Long("probes") => options.probes = address("--probes", &mut parser)?,
            Long("console") => options.console = Some(console(&mut parser)?),
            Long("drain") => {
                options.drain = Duration::from_secs(number("--drain", &mut parser)?);
            }
            Long("rate") => options.rate = number("--rate", &mut parser)?,
            Long("clients") => options.clients = number("--clients", &mut parser)?,
            Long("connections") => options.connections = number("--connections", &mut parser)?,
            Long("kills") => options.kills = number("--kills", &mut parser)?,
            Long("seed") => options.seed = number("--seed", &mut parser)?,
            Long("follow") => options.follow = true,
            Long("check") => options.check = true,
            Long("chaos") => options.chaos = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected().to_string()),
        }
    }
    if options.clients > MAX_CLIENTS {
        return Err(format!("--clients: {} is more than {MAX_CLIENTS}", options.clients));
    }
    if options.connections == 0 {
        return Err("--connections: 0 connections can't take a line; use at least 1".into());
    }
    if options.check && options.config.is_none() {
        return Err("--check: there is nothing to check; add --config FILE".into());
    }
    Ok(Command::Run(Box::new(options)))
}

fn value(flag: &str, parser: &mut lexopt::Parser) -> Result<OsString, String> {
    parser.value().map_err(|_| format!("{flag} needs a value"))
}

fn path(flag: &str, parser: &mut lexopt::Parser) -> Result<PathBuf, String> {
    let path = PathBuf::from(value(flag, parser)?);
    if path.as_os_str().is_empty() {
        return Err(format!("{flag}: the path is empty"));
    }
    Ok(path)
}

fn number<T: FromStr>(flag: &str, parser: &mut lexopt::Parser) -> Result<T, String> {
    let value = value(flag, parser)?;
    let text = value.to_string_lossy();
    text.parse().map_err(|_| format!("{flag}: `{text}` is not a whole number in its range"))
}

fn address(flag: &str, parser: &mut lexopt::Parser) -> Result<SocketAddr, String> {
    resolve(flag, &value(flag, parser)?)
}

fn resolve(flag: &str, value: &OsStr) -> Result<SocketAddr, String> {
    let text = value.to_string_lossy();
    let resolved = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    resolved.ok_or_else(|| format!("{flag}: `{text}` is not an address like 127.0.0.1:7000"))
}

/// The address is optional, so it follows an equals sign.
fn console(parser: &mut lexopt::Parser) -> Result<SocketAddr, String> {
    match parser.optional_value() {
        Some(value) => resolve("--console", &value),
        None => Ok(SocketAddr::from(([127, 0, 0, 1], 7007))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &str) -> Result<Options, String> {
        let args = args.split_whitespace().map(OsString::from);
        match parse(std::iter::once(OsString::from("feed")).chain(args))? {
            Command::Run(options) => Ok(*options),
            Command::Help => Err("help".into()),
        }
    }

    #[test]
    fn without_flags_the_defaults_hold() {
        let options = parsed("").unwrap();

        assert_eq!(options, Options { seed: options.seed, ..Options::default() });
        assert!(options.file.ends_with("data/feed.txt"));
        assert_eq!((options.rate, options.clients), (5_000, 0));
    }

    #[test]
    fn every_flag_is_read() {
        let options = parsed(
            "--file f --db d --listen 127.0.0.1:1 --http=[::1]:2 --probes 127.0.0.1:3 --console=127.0.0.1:4 --drain 5 --rate 0 \
             --clients 20 --connections 9 --follow --config c --check --chaos --kills 200 --seed 18446744073709551615",
        );

        let expected = Options {
            file: "f".into(),
            db: Some("d".into()),
            listen: "127.0.0.1:1".parse().unwrap(),
            http: "[::1]:2".parse().unwrap(),
            probes: "127.0.0.1:3".parse().unwrap(),
            console: Some("127.0.0.1:4".parse().unwrap()),
            drain: Duration::from_secs(5),
            rate: 0,
            clients: 20,
            connections: 9,
            follow: true,
            config: Some("c".into()),
            check: true,
            chaos: true,
            kills: 200,
            seed: u64::MAX,
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn the_console_has_a_default_address() {
        let address = parsed("--console --chaos").unwrap().console;
        assert_eq!(address, Some("127.0.0.1:7007".parse().unwrap()));
    }

    #[test]
    fn a_wrong_flag_is_named() {
        for (args, words) in [
            ("--nope", "invalid option '--nope'"),
            ("stray", "unexpected argument \"stray\""),
            ("--rate", "--rate needs a value"),
            ("--rate fast", "--rate: `fast` is not a whole number"),
            ("--kills -1", "--kills: `-1` is not a whole number"),
            ("--rate -1", "--rate: `-1` is not a whole number"),
            ("--seed 18446744073709551616", "--seed: `18446744073709551616` is not a whole number"),
            ("--clients 257", "--clients: 257 is more than 256"),
            ("--connections 0", "--connections: 0 connections"),
            ("--listen nowhere", "--listen: `nowhere` is not an address"),
            ("--http 127.0.0.1:65536", "--http: `127.0.0.1:65536` is not an address"),
            ("--file=", "--file: the path is empty"),
            ("--config", "--config needs a value"),
            ("--check", "--check: there is nothing to check; add --config FILE"),
            ("--chaos=yes", "unexpected argument"),
        ] {
            let error = parsed(args).unwrap_err();
            assert!(error.contains(words), "{args}: {error}");
        }
    }
}
