//! A configuration file that is reloaded whenever it is edited.
//!
//! ```text
//! app
//! └─ writer     prints its configuration whenever that changes
//! ```
//!
//! ```text
//! cargo run --example config_watch --features config-file
//! CONFIG_FILE=app.toml cargo run --example config_watch --features config-file
//! ```
//!
//! Without `CONFIG_FILE`, it writes a file into a directory of its own and says where that is. Edit it, with a
//! mistake in it, too; Ctrl-C ends the program.
//!
//! Watched is the directory and not the file, because editors replace a file by a new one, and Kubernetes
//! the link beside it that leads to the file. So any change in the directory is a reason to reload. A reload
//! of a file that is the same changes nothing.

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use verger::app::Reloader;
use verger::config::ChildConfig;
use verger::{Application, Context, Exit, Supervisor, worker};

/// How long after the first change the file is read: a replacement is several changes.
const DEBOUNCE: Duration = Duration::from_millis(200);

const FILE: &str = "[\"app/writer\".config]\nbatch = 100\n";

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 1 }
    }
}

async fn writer(ctx: Context) -> Exit {
    let mut settings = ctx.config::<Settings>()?;
    loop {
        println!("writer: batches of {}", settings.get().batch);
        if ctx.run_until_cancelled(settings.changed()).await.is_none() {
            return Ok(());
        }
    }
}

/// Returns the file to watch, and writes one if none is named.
fn file() -> anyhow::Result<PathBuf> {
    if let Some(file) = std::env::var_os("CONFIG_FILE") {
        return Ok(std::path::absolute(file)?);
    }
    let directory = std::env::temp_dir().join("verger-config-watch");
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("app.toml");
    std::fs::write(&file, FILE)?;
    Ok(file)
}

/// Watches a directory. A change is kept until it is received, and further ones are the same.
fn watch(directory: &Path) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let (changed, changes) = mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reading the file is an event, too. An error may stand for changes that were missed.
        if event.map_or(true, |event| !event.kind.is_access()) {
            let _ = changed.try_send(());
        }
    })?;
    watcher.watch(directory, RecursiveMode::NonRecursive)?;
    Ok((watcher, changes))
}

/// Reloads at each change, once the application runs.
async fn reload_at(
    mut changes: mpsc::Receiver<()>,
    reloader: Reloader,
    started: oneshot::Receiver<()>,
) -> Infallible {
    if started.await.is_ok() {
        println!("watching");
        while changes.recv().await.is_some() {
            sleep(DEBOUNCE).await;
            // What has changed meanwhile is read now.
            let _ = changes.try_recv();
            match reloader.reload().await {
                Ok(applied) => println!("reloaded: {applied}"),
                Err(error) => println!("not reloaded: {error}"),
            }
        }
    }
    pending().await
}

async fn run() -> anyhow::Result<ExitCode> {
    let file = file()?;
    println!("edit {}", file.display());
    let directory = file.parent().context("the file is in no directory")?;
    // Before the file is read for the first time, so that no change is missed. It watches until it is dropped.
    let (_watcher, changes) = watch(directory)?;
    let writer = worker("writer", writer).config(ChildConfig::<Settings>::new());
    let (starts, started) = oneshot::channel();
    let application = Application::new(Supervisor::builder("app").child(writer))
        .config_file(&file)
        .on_start(move |_| {
            let _ = starts.send(());
        });
    let reloader = application.reloader();
    tokio::select! {
        code = application.run() => Ok(code),
        never = reload_at(changes, reloader, started) => match never {},
    }
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<ExitCode> {
    run().await
}
