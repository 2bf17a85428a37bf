//! A job queue on PostgreSQL, run by several processes, of which any may fail.
//!
//! One of the processes is the scheduler, which adds jobs; all of them run jobs. Each job runs to its end exactly once,
//! also when processes are killed, paused or cut off, and when the database is away. Read [`service`] and [`queue`] first.

mod cli;
mod database;
mod demo;
mod error;
mod queue;
mod report;
mod server;
mod service;

use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::cli::Command;
use crate::database::Database;
use crate::error::Failure;
use crate::queue::Audit;
use crate::report::{complain, say};

/// The exit code for wrong usage.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // A log that can't be written, as on a full disk, must not end the service.
        .log_internal_errors(false)
        .init();
    match command().await {
        Ok(code) => code,
        Err(error @ Failure::Usage(_)) => {
            complain!("jobs-postgres: {error}; --help shows all arguments");
            USAGE.into()
        }
        Err(error @ Failure::Environment(_)) => {
            complain!("jobs-postgres: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn command() -> Result<ExitCode, Failure> {
    match cli::parse(std::env::args_os())? {
        Command::Help => say!("{}", cli::USAGE.trim_end()),
        Command::Serve(options) => server::serve(options).await?,
        Command::Run(settings) => service::run(settings).await?,
        Command::Demo(options) => {
            let database = options.database.clone();
            demo::run(options).await?;
            return Ok(verdict(audit(&database).await?));
        }
        Command::Audit(database) => return Ok(verdict(audit(&database).await?)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn audit(database: &Database) -> Result<Audit, Failure> {
    let (client, connection) = database.open().await?;
    tokio::select! {
        audit = queue::audit(database, &client) => Ok(audit?),
        lost = connection => Err(Failure::Environment(format!("the connection was closed: {lost:?}"))),
    }
}

/// Prints what the tables prove, as the last line.
fn verdict(audit: Audit) -> ExitCode {
    say!("{audit}");
    if audit.is_exact() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
