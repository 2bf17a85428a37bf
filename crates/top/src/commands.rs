//! The commands that print once.
//!
//! Knows nothing of the live view. All text is cleaned of control characters before it is printed.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::cli::{Act, Command};
use crate::client::{Client, ClientError, encode};
use crate::model::{Acted, Change, Child, Events, Info, Letters, StreamEvent};
use crate::show;
use crate::text::{clean_lines, time};

/// How long to wait before a lost connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);

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
        Command::Tree { json } => tree(client, json).await,
        Command::Describe(path) => {
            let target = format!("/api/child?path={}", encode(&path));
            let view: Child = client.get(&target).await?;
            print(&show::plain(&show::describe(&view, now_ms())))
        }
        Command::Events { follow, path } => events(client, follow, path.as_deref()).await,
        Command::Letters => {
            let letters: Letters = client.get("/api/dead-letters").await?;
            print(&show::plain(&show::letters(&letters)))
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
        Command::Live | Command::Help => unreachable!("`main` handles these"),
    }
}

/// # Errors
///
/// A message that names the file.
fn text_of(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::Message(format!("can't read {}: {error}", file.display())))
}

async fn tree(client: &Client, json: bool) -> Result<(), Failure> {
    let text = if json {
        // Read as a value, so that fields of a newer server aren't lost.
        let status: Value = client.get("/api/status").await?;
        format!("{status:#}")
    } else {
        client.get_text("/api/tree.txt").await?
    };
    print(&format!("{}\n", clean_lines(text.trim_end())))
}

async fn is_root(client: &Client, path: &str) -> bool {
    client.get::<Info>("/api/info").await.is_ok_and(|info| &*info.root == path)
}

/// The body of an action.
pub(crate) fn body(act: &Act) -> Value {
    let mut body = json!({ "action": act.action, "path": act.path });
    for (name, value) in [("reason", &act.reason), ("confirm", &act.confirm)] {
        if let Some(value) = value {
            body[name] = value.as_str().into();
        }
    }
    body
}

/// Prints the events that the console has kept, and then those that follow, until the output is closed.
async fn events(client: &Client, follow: bool, path: Option<&str>) -> Result<(), Failure> {
    // Subscribed first, so that no event is lost in between.
    let mut stream = if follow { Some(client.stream().await?) } else { None };
    let target = path.map_or_else(
        || "/api/events".to_owned(),
        |path| format!("/api/events?under={}", encode(path)),
    );
    let kept: Events = client.get(&target).await?;
    print(&show::plain(&show::events(&kept, now_ms())))?;
    let mut printed = kept.entries.iter().map(|entry| entry.seq).max().unwrap_or(0);
    while let Some(changes) = &mut stream {
        match changes.next().await {
            Ok(change) => print(&new_events(&change, path, &mut printed))?,
            Err(error) => {
                complain(&format!("{error}; connecting again"));
                tokio::time::sleep(AGAIN).await;
                // Fails if the program is gone for good.
                stream = Some(client.stream().await?);
                printed = 0;
            }
        }
    }
    Ok(())
}

/// The events of a change that weren't printed and are at or below the path, as lines.
fn new_events(change: &Change, path: Option<&str>, printed: &mut u64) -> String {
    let mut lines = String::new();
    for StreamEvent { seq, at_ms, path: at, incarnation, text } in &change.events {
        if *seq > *printed && path.is_none_or(|path| is_below(at, path)) {
            lines.push_str(&format!("{} {at}#{incarnation} {text}\n", time(*at_ms)));
        }
    }
    *printed = change.events.iter().map(|event| event.seq).fold(*printed, u64::max);
    if change.resync {
        lines.push_str("some events are missing here: there were too many\n");
    }
    lines
}

/// Whether `path` is the child at `above` or below it. The name of the root may be left out in `above`.
fn is_below(path: &str, above: &str) -> bool {
    let is_at = |path: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_at(path) || path.split_once('/').is_some_and(|(_, rest)| is_at(rest))
}

fn now_ms() -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event((path, seq): (&str, u64)) -> StreamEvent {
        StreamEvent {
            seq,
            at_ms: 1_769_860_800_000,
            path: path.into(),
            incarnation: 2,
            text: "ready".into(),
        }
    }

    #[test]
    fn followed_events_are_new_and_at_the_path_or_below() {
        let events =
            [("app/db", 1), ("app/db", 2), ("app/db/pool", 3), ("app/dbs", 4), ("app/x/db", 5)];
        let change =
            Change { events: events.map(event).to_vec(), resync: true, ..Change::default() };
        for path in ["app/db", "db"] {
            let mut printed = 1;
            assert_eq!(
                new_events(&change, Some(path), &mut printed),
                "2026-01-31T12:00:00Z app/db#2 ready\n2026-01-31T12:00:00Z app/db/pool#2 ready\n\
                 some events are missing here: there were too many\n"
            );
            assert_eq!(printed, 5);
        }
        assert_eq!(new_events(&change, None, &mut 0).lines().count(), 6);
    }
}
