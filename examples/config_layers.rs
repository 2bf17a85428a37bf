//! Configuration in layers: a file, and environment variables over it, by the crate `config`.
//!
//! verger reads its configuration from whatever serde can read, so that a crate that combines sources can
//! combine them first. A variable is `APP`, the path of a child, and the keys below it, with two
//! underscores between them. The values of variables are text; verger accepts quoted numbers.
//!
//! ```text
//! cargo run --example config_layers --features config
//! env APP__app/writer__config__batch=7 cargo run --example config_layers --features config
//! env APP__app/writer__config__batch=many cargo run --example config_layers --features config
//! ```
//!
//! A shell can't assign a variable with a `/` in its name, but `env`, systemd and Kubernetes can.
//! `config::Environment` can't be used for such names, and neither can `set_override`: keys with a `/`
//! aren't paths to them. So each variable is a [`Source`] of its own here, which takes a few lines.

#![expect(clippy::print_stdout, reason = "the example prints what is effective")]

use std::time::Duration;

use anyhow::Context as _;
use config::{ConfigError, File, FileFormat, Map, Source, Value};
use serde::Deserialize;
use tokio::time::timeout;
use verger::config::{ChildConfig, Config};
use verger::{Context, Exit, Supervisor, worker};

/// A file is `File::with_name("app.toml")`; here it is part of the program, so that the example is one file.
const FILE: &str = r#"
["app/writer".config]
batch = 100
target = "db:5432"

["app/writer".restart]
min_backoff = "1s"
max_backoff = "30s"
"#;

const PREFIX: &str = "APP__";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    batch: usize,
    target: String,
}

/// One environment variable: a value at a place in the tables of the configuration.
#[derive(Clone, Debug)]
struct Variable {
    /// The path of a child, and the keys below it.
    keys: Vec<String>,
    value: String,
}

impl Variable {
    /// Returns the variables that begin with the prefix.
    fn all() -> impl Iterator<Item = Self> {
        // `vars` would panic at text that isn't Unicode, even in a variable of a different program.
        std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let keys = name.strip_prefix(PREFIX)?.split("__").map(str::to_owned).collect();
            Some(Self { keys, value: value.to_string_lossy().into_owned() })
        })
    }
}

impl Source for Variable {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    /// Returns tables in tables, which are merged key by key over those of the file.
    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let [path, below @ ..] = &*self.keys else { return Ok(Map::new()) };
        let value = Value::from(self.value.clone());
        let value =
            below.iter().rev().fold(value, |value, key| Map::from([(key.clone(), value)]).into());
        Ok(Map::from([(path.clone(), value)]))
    }
}

/// Reads all layers. The last one counts.
fn layers() -> Result<Config, ConfigError> {
    let file = config::Config::builder().add_source(File::from_str(FILE, FileFormat::Toml));
    Variable::all()
        .fold(file, |layers, variable| layers.add_source(variable))
        .build()?
        .try_deserialize()
}

async fn writer(ctx: Context) -> Exit {
    let settings = ctx.config::<Settings>()?.get();
    println!("app/writer: batches of {} to {}", settings.batch, settings.target);
    ctx.ready();
    ctx.cancelled().await;
    Ok(())
}

async fn show() -> anyhow::Result<()> {
    let config = layers().context("the layers can't be read")?;
    let writer = worker("writer", writer).readiness(verger::Readiness::Signal);
    let writer = writer.config(ChildConfig::<Settings>::new().validate(async |new| -> Exit {
        if new.batch == 0 { Err("`batch` is 0; write at least 1".into()) } else { Ok(()) }
    }));
    let tree = Supervisor::builder("app").child(writer).build()?;

    // All mistakes are found here, whichever layer they are in, before any child is started.
    let app = tree.configured(&config).await?.start().await?;

    let policy = app.which_child("writer").await?.policy.context("a running child has a policy")?;
    let backoff = policy.backoff();
    println!("app/writer: {}, by the {}", serde_json::to_string(&backoff.value)?, backoff.source);
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    timeout(Duration::from_secs(20), show()).await.context("the example takes too long")?
}
