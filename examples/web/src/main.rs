//! A service to copy: HTTP over SQLite, with what production needs around the tree.
//!
//! [`tree`] says what the service consists of. This file is what every service needs.

mod http;
mod metrics_page;
mod options;
mod storage;
mod tree;

use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};
use verger::Application;
use verger::app::memory::MemoryGuard;
use verger::console::Console;
use verger::log_lines::LogLines;

use crate::options::Options;
use crate::tree::Resources;

/// How long the service goes on after `/readyz` has begun to answer 503.
const DRAIN: Duration = Duration::from_secs(5);
/// `TimeoutStopSec` in `deploy/web.service`, `terminationGracePeriodSeconds` in `deploy/web.yaml`.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The exit code for what a restart doesn't mend: usage, configuration, a port in use.
const INVALID: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let lines = start_log();
    let resources = match open(&options) {
        Ok(resources) => resources,
        Err(error) => {
            tracing::error!(error, "can't start");
            return INVALID.into();
        }
    };
    Application::new(tree::tree(resources))
        .config_file(options.config)
        .check_only(options.check)
        .probes(options.probes)
        .console(options.console, Console::new().log_lines(&lines))
        .drain(DRAIN)
        .stop_limit(STOP_LIMIT)
        .memory(MemoryGuard::new())
        .panic_hook()
        .systemd()
        .run()
        .await
}

/// Logs one JSON object a line to standard output, and keeps the last lines of each child.
fn start_log() -> LogLines {
    // A filter without a default would show nothing but errors unless `RUST_LOG` is set.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    // A log that can't be written, as on a full disk, must not end the service.
    let log = tracing_subscriber::fmt::layer().json().log_internal_errors(false);
    let lines = LogLines::new();
    tracing_subscriber::registry().with(log.with_filter(filter)).with(lines.layer()).init();
    lines
}

/// Opens what outlives every restart of a child. An error here is one that no restart mends.
fn open(options: &Options) -> Result<Resources, String> {
    // A check must not need the ports of the service that runs.
    let bind =
        |address: &str| TcpListener::bind(if options.check { "127.0.0.1:0" } else { address });
    let named = |flag, address| bind(address).map_err(|error| format!("{flag} {address}: {error}"));
    let listen = named("--listen", &options.listen)?;
    let metrics = named("--metrics", &options.metrics)?;
    let recorder = metrics_page::install_recorder();
    Ok(Resources { listen, metrics, recorder, database: options.database.clone() })
}
