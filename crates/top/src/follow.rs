//! The commands that wait for more: events as they happen, and log lines.
//!
//! # Invariants
//!
//! 1. Nothing is printed twice, and what may be missing is said.
//! 2. A lost connection is opened again once. If that fails, the command ends with the error.

use std::collections::HashMap;
use std::time::Duration;

use crate::client::{Client, encode};
use crate::commands::{Failure, complain, events_of, now_ms, print};
use crate::model::{Change, Events, LogBelow, LogLine, StreamEvent};
use crate::show::{self, Order};
use crate::text::time;

/// How long to wait before a lost connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often log lines are read. The console has no stream of them.
const READ: Duration = Duration::from_secs(1);

/// Prints the events that the console has kept, and then those that follow, until the output is closed.
///
/// # Errors
///
/// If the console can't be reached; if the output can't be written.
pub(crate) async fn events(client: &Client, path: Option<&str>) -> Result<(), Failure> {
    // Subscribed first, so that no event is lost in between.
    let mut changes = client.stream().await?;
    let kept: Events = client.get(&events_of(path)).await?;
    print(&show::plain(&show::events(&kept, now_ms(), Order::OldestFirst)))?;
    let mut printed = kept.entries.iter().map(|entry| entry.seq).max().unwrap_or(0);
    loop {
        match changes.next().await {
            Ok(change) => print(&new_events(&change, path, &mut printed))?,
            Err(error) => {
                complain(&format!("{error}; connecting again"));
                tokio::time::sleep(AGAIN).await;
                // Fails if the program is gone for good.
                changes = client.stream().await?;
                printed = 0;
            }
        }
    }
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

/// Prints the log lines of the whole tree, or of a child and everything below it.
///
/// # Errors
///
/// If the console can't be reached or keeps no lines; if the output can't be written.
pub(crate) async fn logs(client: &Client, path: Option<&str>, follow: bool) -> Result<(), Failure> {
    let target = match path {
        None => "/api/log".to_owned(),
        Some(path) => format!("/api/log?under={}", encode(path)),
    };
    let LogBelow { mut lines } = client.get(&target).await?;
    // While it is followed, the output has log lines only.
    if !(follow && lines.is_empty()) {
        print(&show::plain(&show::log_below(&lines)))?;
    }
    if !follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(READ).await;
        let LogBelow { lines: read } = match client.get(&target).await {
            Ok(read) => read,
            Err(error) => {
                complain(&format!("{error}; connecting again"));
                tokio::time::sleep(AGAIN).await;
                client.get(&target).await?
            }
        };
        print(&new_lines(&lines, &read))?;
        lines = read;
    }
}

/// The lines that were not read before.
///
/// They have no number, so equal ones are counted: a line that is read twice as often as before was logged again.
fn new_lines(before: &[LogLine], read: &[LogLine]) -> String {
    let key =
        |line: &LogLine| (line.at_ms, line.path.clone(), line.message.clone(), line.fields.clone());
    let mut known: HashMap<_, usize> = HashMap::new();
    for line in before {
        *known.entry(key(line)).or_default() += 1;
    }
    let is_new = |line: &&LogLine| match known.get_mut(&key(line)) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let new: Vec<_> = read.iter().filter(is_new).map(show::log_line_of).collect();
    let text = show::plain(&new);
    // Not one line of before is left, so there may have been others in between.
    if !before.is_empty() && !new.is_empty() && new.len() == read.len() {
        return format!("some lines may be missing here: there were too many\n{text}");
    }
    text
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

    fn line(at_ms: u64, message: &str) -> LogLine {
        let level = "info".into();
        LogLine {
            at_ms,
            level,
            path: "app/db".into(),
            incarnation: 2,
            message: message.into(),
            ..LogLine::default()
        }
    }

    /// Rule: each line is printed once, even if it is logged again in the same millisecond.
    #[test]
    fn followed_log_lines_are_those_that_were_not_read_before() {
        let before = [line(0, "a"), line(1_000, "b")];
        let read = [line(1_000, "b"), line(1_000, "b"), line(2_000, "c")];
        assert_eq!(
            new_lines(&before, &read),
            "00:00:01 info  app/db#2 b\n00:00:02 info  app/db#2 c\n"
        );
        assert_eq!(new_lines(&before, &before), "");
        assert_eq!(
            new_lines(&before, &read[2..]),
            "some lines may be missing here: there were too many\n00:00:02 info  app/db#2 c\n"
        );
        assert_eq!(new_lines(&[], &read[2..]), "00:00:02 info  app/db#2 c\n");
    }
}
