//! A soak test: breaks a tree of thousands of children for minutes, and checks its rules.
//!
//! Hands fail, hang, abort, stop, restart and replace children ([`hand`]). Children note each step
//! of their lives ([`child`]). An observer for each part of the tree compares these notes with the
//! events of the library ([`watch`], which lists the rules). [`layout`] describes the tree.

mod child;
mod cli;
mod hand;
mod layout;
mod memory;
mod notes;
mod report;
mod run;
mod tally;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;

use crate::cli::{Command, Options};
use crate::report::say;
use crate::tally::Tally;

/// The exit code for wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let options = match cli::parse(std::env::args_os()) {
        Ok(Command::Run(options)) => options,
        Ok(Command::Help) => {
            say!("{}", cli::USAGE.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("soak: {error}\n\n{}", cli::USAGE.trim_end());
            return USAGE.into();
        }
    };
    // Deliberate failures would fill the screen.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // A log that can't be written must not end the run.
        .log_internal_errors(false)
        .init();
    soak(&options)
}

fn soak(options: &Options) -> ExitCode {
    say!("seed={}", options.seed);
    let tally = Arc::new(Tally::new());
    report_panics(&tally);
    // Two threads on every machine, which is enough for races.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let outcome = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(run::run(options, &tally));
            // Children that still block a thread were counted.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(report) => report::print(&report, &tally),
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reports each panic as a violation, except for deliberate ones.
fn report_panics(tally: &Arc<Tally>) {
    let tally = Arc::clone(tally);
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&child::PLANNED) {
            tally.violation(panic.to_string());
        }
    }));
}
