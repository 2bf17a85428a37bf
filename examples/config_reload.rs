//! A changed policy and a changed setting, applied by SIGHUP while the program runs.
//!
//! ```text
//! app
//! ├─ poll      fails at once, and waits as long as its policy says
//! └─ writer    prints its setting whenever that changes
//! ```
//!
//! Start it, change the delay or the batch in the file that it names, and send the signal that it names. The log shows
//! the plan, and when each change counts. Break the file: nothing changes, and the log says what to write instead. Ctrl-C
//! ends the program. `config_watch` does the same without a signal, when the file is saved.
//!
//! ```text
//! cargo run --example config_reload --features config-file
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Deserialize;
use verger::config::ChildConfig;
use verger::status::{Event, EventKind, Subscription};
use verger::{Application, Context, Exit, Lifecycle, Supervisor, worker};

const FILE: &str = r#"[poll.restart]
backoff = { curve = "constant", delay = "5s", jitter = "none" }

[writer.config]
batch = 100
"#;

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

async fn poll(_ctx: Context) -> Exit {
    Err("no answer".into())
}

async fn writer(ctx: Context) -> Exit {
    let mut settings = ctx.config::<Settings>()?;
    loop {
        println!("writer #{}: batches of {}", ctx.incarnation(), settings.get().batch);
        if ctx.run_until_cancelled(settings.changed()).await.is_none() {
            return Ok(());
        }
    }
}

/// Prints each delay of `poll` that is another one than before.
async fn print_delays(mut events: Subscription<Event>) {
    let mut last = None;
    while let Some(event) = events.next().await {
        if let EventKind::Moved { to: Lifecycle::Restarting, wait: Some((_, delay)), .. } =
            event.kind
            && last.replace(delay) != Some(delay)
        {
            println!("{}: waits {delay:?} between its attempts", event.path.name());
        }
    }
}

/// Returns the file of the configuration, and writes one if none is named.
fn file() -> std::io::Result<PathBuf> {
    if let Some(file) = std::env::var_os("CONFIG_FILE") {
        return std::path::absolute(file);
    }
    let file = std::env::temp_dir().join("verger-config-reload.toml");
    std::fs::write(&file, FILE)?;
    Ok(file)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<ExitCode> {
    let log = tracing_subscriber::fmt().with_env_filter("verger::config=info").with_ansi(false);
    log.with_writer(std::io::stdout).log_internal_errors(false).init();
    let file = file()?;
    println!("edit {}, then: kill -HUP {}", file.display(), std::process::id());
    let mut app = Supervisor::builder("app")
        .unlimited_restarts()
        .child(worker("poll", poll))
        .child(worker("writer", writer).config(ChildConfig::<Settings>::new()))
        .build()?;
    // Before the start, so that the first failure is included. It ends with the tree.
    drop(tokio::spawn(print_delays(app.events())));
    Ok(Application::new(app).config_file(file).run().await)
}
