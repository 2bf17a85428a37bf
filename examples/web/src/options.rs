//! The flags of the command line.
//!
//! What can change while the service runs is in the configuration file instead.

use std::path::PathBuf;
use std::process::exit;

use lexopt::ValueExt;

const USAGE: &str = "\
Usage: web [--config PATH] [--database PATH] [--listen ADDRESS] [--probes ADDRESS]
           [--metrics ADDRESS] [--console ADDRESS] [--check]

  --config PATH      the configuration file; SIGHUP reads it again (web.toml)
  --database PATH    the database of SQLite, which is created if it doesn't exist (web.db)
  --listen ADDRESS   where the service answers (127.0.0.1:8000)
  --probes ADDRESS   /livez, /readyz and /startupz (127.0.0.1:8080)
  --metrics ADDRESS  /metrics, for Prometheus (127.0.0.1:9464)
  --console ADDRESS  a page that shows the tree; a loopback address (127.0.0.1:7007)
  --check            says whether the configuration is valid, and starts nothing
";

/// The flags, or their defaults.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) config: PathBuf,
    pub(crate) database: PathBuf,
    pub(crate) listen: String,
    pub(crate) probes: String,
    pub(crate) metrics: String,
    pub(crate) console: String,
    pub(crate) check: bool,
}

impl Options {
    /// Parses the arguments of the process. Ends it if they are wrong, or ask for help.
    pub(crate) fn parse() -> Self {
        match Self::parse_from(lexopt::Parser::from_env()) {
            Ok(Some(options)) => options,
            Ok(None) => {
                eprint!("{USAGE}");
                exit(0)
            }
            Err(error) => {
                eprint!("web: {error}\n\n{USAGE}");
                exit(crate::INVALID.into())
            }
        }
    }

    /// Returns `None` for `--help`.
    fn parse_from(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        use lexopt::Arg::{Long, Short};
        let mut options = Self {
            config: "web.toml".into(),
            database: "web.db".into(),
            listen: "127.0.0.1:8000".into(),
            probes: "127.0.0.1:8080".into(),
            metrics: "127.0.0.1:9464".into(),
            console: "127.0.0.1:7007".into(),
            check: false,
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Long("config") => options.config = parser.value()?.into(),
                Long("database") => options.database = parser.value()?.into(),
                Long("listen") => options.listen = parser.value()?.string()?,
                Long("probes") => options.probes = parser.value()?.string()?,
                Long("metrics") => options.metrics = parser.value()?.string()?,
                Long("console") => options.console = parser.value()?.string()?,
                Long("check") => options.check = true,
                Short('h') | Long("help") => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(options))
    }
}
