//! What the recipes share and a program of yours doesn't need: a frame for a demonstration, and servers of their own.

mod server;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::timeout;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use verger::status::ChildInfo;
use verger::{Lifecycle, SupervisorHandle, signals};

pub use crate::server::{MissingServer, Server};

/// More than any recipe takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a recipe, and prints its last line.
///
/// The exit code is 0, or 2 if a server isn't installed, or 1 after any other error. The log goes to stderr.
pub fn run(show: impl Future<Output = anyhow::Result<String>>) -> ExitCode {
    log();
    match block_on(show) {
        Ok(seen) => {
            println!("{seen}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(if error.is::<MissingServer>() { 2 } else { 1 })
        }
    }
}

/// Waits until this incarnation of a child is active, or a later one.
pub async fn until_active(
    tree: &SupervisorHandle,
    child: &str,
    incarnation: u32,
) -> anyhow::Result<()> {
    let is_active = |it: &ChildInfo| it.lifecycle == Lifecycle::Active;
    until(tree, child, |it| it.incarnation >= incarnation && is_active(it)).await
}

/// Waits until something is true of a child.
pub async fn until(
    tree: &SupervisorHandle,
    child: &str,
    is_true: impl Fn(&ChildInfo) -> bool,
) -> anyhow::Result<()> {
    // Before the first look, so that no change is missed.
    let mut events = tree.events();
    while !is_true(&tree.which_child(child).await?) {
        events.next().await.context("the tree has ended")?;
    }
    Ok(())
}

/// Runs everything on one thread. The kernel sends the servers the signal of `--pdeathsig` when the thread ends that has
/// started them.
#[tokio::main(flavor = "current_thread")]
async fn block_on(show: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<String> {
    tokio::select! {
        seen = timeout(LIMIT, show) => seen.context("the recipe takes too long")?,
        signal = signals() => bail!("ended by {signal}"),
    }
}

/// The lines of the servers, and those of the clients about their attempts, would hide those of the tree.
fn log() {
    let targets = Targets::new().with_default(LevelFilter::ERROR);
    let targets = targets.with_target("verger", LevelFilter::INFO);
    let targets = targets.with_target("verger::process", LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}
