//! The commands that print once.
//!
//! Knows nothing of the live view. All text is cleaned of control characters before it is printed.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::cli::{Act, Command};
use crate::client::{Client, ClientError, encode};
use crate::follow;
use crate::model::{Acted, Child, Events, Incidents, Info, Letters, Status};
use crate::show::{self, Order};
use crate::text::clean_lines;

/// Why a command has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The message for the user.
    Message(String),
    /// The output was closed, as by `| head`.
    OutputClosed,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Message(error.to_string())
    }
}

/// Runs a command and prints its result.
///
/// # Errors
///
/// If the console can't be reached, or refuses; if the output can't be written.
pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Incidents => {
            let known: Incidents = client.get("/api/incidents").await?;
            print(&show::plain(&show::incidents(&known, now_ms(), None).0))
        }
        Command::Tree(extent) => {
            let status: Status = client.get("/api/status").await?;
            print(&show::tree(&status, extent))
        }
        Command::TreeJson => {
            // Read as a value, so that fields of a newer server aren't lost.
            let status: Value = client.get("/api/status").await?;
            print(&format!("{}\n", clean_lines(&format!("{status:#}"))))
        }
        Command::Describe(path) => {
            let target = format!("/api/child?path={}", encode(&path));
            let view: Child = client.get(&target).await?;
            print(&show::plain(&show::describe(&view, now_ms(), Order::OldestFirst)))
        }
        Command::Events { follow: false, path } => {
            let kept: Events = client.get(&events_of(path.as_deref())).await?;
            print(&show::plain(&show::events(&kept, now_ms(), Order::OldestFirst)))
        }
        Command::Events { follow: true, path } => follow::events(client, path.as_deref()).await,
        Command::Logs { follow, path } => follow::logs(client, path.as_deref(), follow).await,
        Command::Letters => {
            let letters: Letters = client.get("/api/dead-letters").await?;
            print(&show::plain(&show::letters(&letters, Order::OldestFirst)))
        }
        Command::Plan(file) => {
            let plan = match file {
                None => client.plan().await?,
                Some(file) => client.plan_of(&file, &text_of(&file)?).await?,
            };
            print(&show::plain(&show::plan(&plan)))
        }
        Command::Act(act) => {
            let answer = client.post("/api/action", &body(&act)).await;
            if answer.is_err() && act.action == "stop" && is_root(client, &act.path).await {
                let text =
                    format!("`{0}` is the whole tree; to stop that, add --confirm {0}", act.path);
                return Err(Failure::Message(text));
            }
            let Acted { text } = answer?;
            print(&format!("{text}\n"))
        }
        Command::Live | Command::Help | Command::Version => unreachable!("`main` handles these"),
    }
}

/// # Errors
///
/// A message that names the file.
fn text_of(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::Message(format!("can't read {}: {error}", file.display())))
}

async fn is_root(client: &Client, path: &str) -> bool {
    client.get::<Info>("/api/info").await.is_ok_and(|info| &*info.root == path)
}

/// The body of an action.
pub(crate) fn body(act: &Act) -> Value {
    let mut body = json!({ "action": act.action, "path": act.path });
    for (name, value) in [("reason", &act.reason), ("by", &act.by), ("confirm", &act.confirm)] {
        if let Some(value) = value {
            body[name] = value.as_str().into();
        }
    }
    body
}

/// The request for the events of the whole tree, or of a child and everything below it.
pub(crate) fn events_of(path: Option<&str>) -> String {
    match path {
        None => "/api/events".to_owned(),
        Some(path) => format!("/api/events?under={}", encode(path)),
    }
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Writes to stdout.
///
/// # Errors
///
/// If stdout is closed or full. `print!` would panic.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(error) => Err(Failure::Message(format!("can't write the output: {error}"))),
    }
}

/// Writes to stderr. What can't be written is lost.
pub(crate) fn complain(text: &str) {
    _ = writeln!(io::stderr(), "verger-top: {text}");
}
