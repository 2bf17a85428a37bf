//! A process supervisor: it starts the processes that a TOML file describes, restarts them, and stops them.
//!
//! Read [`tree`] first, and then [`process`] and [`reload`]. [`mod@file`] reads the file.

mod cli;
mod file;
mod keys;
mod mistake;
mod process;
mod reload;
mod requirements;
mod tree;

use std::io::{self, IsTerminal, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};
use verger::Application;
use verger::app::{Stage, StopStages};
use verger::console::Console;
use verger::log_lines::LogLines;

use crate::cli::Command;
use crate::file::{Definition, Settings};
use crate::mistake::InputError;
use crate::reload::Source;

/// The exit code for wrong usage and wrong files.
const BAD_INPUT: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let done = match cli::parse(std::env::args_os()) {
        Ok(Command::Help) => Ok(print(cli::USAGE)),
        Ok(Command::Check { file }) => check(file).await,
        Ok(Command::Run { file, json }) => run(file, json).await,
        Err(error) => {
            complain(&format!("verger-run: {error}\nTry `verger-run --help`."));
            return BAD_INPUT.into();
        }
    };
    done.unwrap_or_else(|error| {
        complain(&error.to_string());
        BAD_INPUT.into()
    })
}

async fn check(path: PathBuf) -> Result<ExitCode, InputError> {
    let (definition, source) = read(path)?;
    drop(tree::configured(&definition, &source).await?);
    let (file, count) = (definition.places.file(), definition.processes.len());
    let processes = if count == 1 { "process" } else { "processes" };
    Ok(print(&format!("{file}: {count} {processes}, no mistakes\n")))
}

async fn run(path: PathBuf, json: bool) -> Result<ExitCode, InputError> {
    let (definition, source) = read(path)?;
    let tree = tree::configured(&definition, &source).await?;
    let lines = log(json);
    let Settings { console, console_actions, probes, shutdown } = definition.settings;
    // It reloads the file.
    let _claim = verger::HangupClaim::new();
    let mut app = Application::new(tree).panic_hook().systemd();
    if let Some(address) = console {
        let console = Console::new().allow_actions(console_actions).log_lines(&lines);
        app = app.console(address.to_string(), console);
    }
    if let Some(address) = probes {
        app = app.probes(address.to_string());
    }
    if let Some(length) = shutdown {
        // In order at first, and in the last fifth all that are left at once.
        let last = length / 5;
        let stages = [Stage::Polite(length - last), Stage::Closing(last)];
        app = app.stages(StopStages::new(stages));
    }
    Ok(app.run().await)
}

fn read(path: PathBuf) -> Result<(Definition, Arc<Source>), InputError> {
    let definition = file::read(&path)?;
    // From here on SIGHUP doesn't end the program.
    let hangups = signal(SignalKind::hangup()).map_err(InputError::Signals)?;
    let (settings, hangups) = (definition.settings.clone(), Mutex::new(hangups));
    Ok((definition, Arc::new(Source { path, settings, hangups })))
}

/// Logs to stderr. Returns the lines that the console shows.
fn log(json: bool) -> LogLines {
    // A log that can't be written, as on a full disk, must not end the program.
    let log = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .log_internal_errors(false);
    let log = if json { log.json().boxed() } else { log.boxed() };
    let lines = LogLines::new();
    let all = tracing_subscriber::registry().with(log.with_filter(LevelFilter::INFO));
    all.with(lines.layer()).init();
    lines
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(text: &str) {
    // Not `eprintln!`, which panics where stderr can't be written.
    let _ = writeln!(io::stderr(), "{text}");
}
