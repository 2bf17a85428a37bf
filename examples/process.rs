//! An OS process as a child, which breaks in several ways.
//!
//! ```text
//! app            one_for_one
//! └─ encoder     a shell script that is told by its environment which incarnation it is
//! ```
//!
//! The first incarnation can't read its input, and exits with code 3. The second one is killed by a signal, and leaves a
//! process of its own behind. The third one says that it is ready, works, and ignores SIGTERM when it is stopped. The log
//! shows what the processes write, and what verger decides. At the end, no process is left.
//!
//! ```text
//! cargo run --example process --features process
//! ```

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::timeout;
use verger::process::ReadyWhen;
use verger::{Backoff, ChildSpec, RunError, Supervisor, command};

const SCRIPT: &str = r#"
case $ATTEMPT in
    1) echo "input.mov: unexpected end of file" >&2; exit 3 ;;
    2) sleep 1000 & kill -SEGV $$ ;;
    *) trap 'echo "not now"' TERM
       sleep 1000 &
       echo "encoding"
       while :; do wait; sleep 1000 & done ;;
esac
"#;

/// Marks the processes of this example.
const MARK: &str = "VERGER_EXAMPLE";

fn encoder() -> ChildSpec {
    // The factory is called once for each incarnation.
    let attempts = AtomicU32::new(0);
    let encoder = command("encoder", move || {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).env("ATTEMPT", attempt.to_string());
        command.env(MARK, std::process::id().to_string());
        command
    });
    encoder
        .ready_when(ReadyWhen::line_contains("encoding"))
        .into_child()
        .backoff(Backoff::constant(Duration::from_millis(100)))
        .shutdown(Duration::from_millis(500))
}

async fn show() -> anyhow::Result<()> {
    let app = Supervisor::builder("app").child(encoder()).build()?.start().await?;

    let encoder = app.which_child("encoder").await?;
    tracing::info!(status = encoder.status, restarts = encoder.restarts, "the encoder works");
    ensure!(encoder.restarts == 2, "it was not started three times");
    ensure!(processes() == 2, "the shell and what it has started");

    let stopped = app.stop("the example is over").await;
    ensure!(matches!(stopped, Err(RunError::Forced { .. })), "it was not killed: {stopped:?}");
    ensure!(processes() == 0, "a process is left");
    tracing::info!("no process is left");
    Ok(())
}

/// Returns how many processes of this example there are, as far as the system says so.
fn processes() -> usize {
    let mark = format!("{MARK}={}", std::process::id());
    let is_ours = |path: std::path::PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|it| it == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| is_ours(entry.path())).count()
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let log = tracing_subscriber::fmt().with_ansi(false).log_internal_errors(false);
    log.with_writer(std::io::stdout).init();
    timeout(Duration::from_secs(60), show()).await.context("the example takes too long")?
}
