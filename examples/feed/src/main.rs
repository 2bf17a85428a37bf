//! A service that stores every line it receives, while its parts fail.
//!
//! It reads a file, receives lines over TCP, writes both to SQLite, and shows its state over HTTP.
//! With `--chaos`, its parts panic, fail, hang and are aborted; with `--kills`, the process is killed
//! and started again. At the end, an audit compares input and database. Read [`tree`] first.

mod acknowledged;
mod app;
mod audit;
mod chaos;
mod cli;
mod clients;
mod config;
mod http;
mod ingest;
mod input;
mod kills;
mod ledger;
mod limits;
mod report;
mod room;
mod run;
mod service;
mod stats;
mod storage;
mod tree;

use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};
use verger::log_lines::LogLines;

use crate::cli::Command;
use crate::report::{complain, say};
use crate::service::Failure;

/// The exit code for wrong usage.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match cli::parse(std::env::args_os()) {
        Ok(Command::Run(options)) => *options,
        Ok(Command::Help) => {
            say!("{}", cli::USAGE.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            complain!("feed: {error}\n\n{}", cli::USAGE.trim_end());
            return USAGE.into();
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn,verger=info".into());
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // A log that can't be written, as on a full disk, must not end the service.
        .log_internal_errors(false);
    let lines = LogLines::new();
    let kept = options.console.map(|_| lines.layer());
    tracing_subscriber::registry().with(log.with_filter(filter)).with(kept).init();
    let ended = match (options.check, options.kills) {
        (true, _) => service::check(&options).await.map(|()| {
            say!("the configuration is valid");
            ExitCode::SUCCESS
        }),
        (false, 0) => service::run(options, &lines).await.map(|outcome| report::print(&outcome)),
        (false, _) => kills::run(options).await.map(|outcome| report::print_kills(&outcome)),
    };
    match ended {
        Ok(code) => code,
        Err(Failure::Usage(error)) => {
            complain!("feed: {error}");
            USAGE.into()
        }
        Err(Failure::Environment(error)) => {
            complain!("feed: {error}");
            ExitCode::FAILURE
        }
    }
}
