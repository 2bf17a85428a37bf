//! A terminal for the console of a running tree: the tree live, or one command.
//!
//! The live view is a verger tree itself: read [`live`] first. [`commands`] are plain requests.

mod app;
mod cli;
mod client;
mod commands;
mod demo;
mod endpoint;
mod fold;
mod follow;
mod live;
mod model;
mod show;
mod sse;
mod terminal;
mod text;
mod tree;
mod view;

use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use verger::log_lines::LogLines;

use crate::cli::{Command, Options};
use crate::client::Client;
use crate::commands::{Failure, complain};

/// The exit code for wrong usage.
const USAGE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match cli::parse(std::env::args_os(), |name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(error) => {
            complain(&format!("{error}\nTry `verger-top --help`."));
            return USAGE.into();
        }
    };
    match run(options).await {
        Ok(code) => code,
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Message(error)) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<ExitCode, Failure> {
    if options.command == Command::Help {
        commands::print(cli::USAGE)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.command == Command::Version {
        commands::print(concat!("verger-top ", env!("CARGO_PKG_VERSION"), "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_live = options.command == Command::Live;
    if is_live && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        complain("this is not a terminal; print the tree once with `verger-top tree`");
        return Ok(USAGE.into());
    }
    let lines = LogLines::new();
    if is_live || options.endpoint.is_none() {
        // Nothing may be written across the screen. Without a subscriber, panics of children would be.
        tracing_subscriber::registry().with(lines.layer()).init();
    }
    let (endpoint, demo) = match options.endpoint {
        Some(endpoint) => (endpoint, None),
        None => {
            let (endpoint, demo) = demo::start(lines).await.map_err(Failure::Message)?;
            (endpoint, Some(demo))
        }
    };
    let client = Client::new(endpoint);
    let ended = if is_live {
        Ok(live::run(client, options.by).await)
    } else {
        if let Some(demo) = &demo {
            demo.warm_up().await;
        }
        commands::run(&client, options.command).await.map(|()| ExitCode::SUCCESS)
    };
    if let Some(demo) = demo {
        demo.stop().await;
    }
    ended
}
