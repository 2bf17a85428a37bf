//! Events, log lines, dead letters and plans.

use super::{Line, Order, Tone};
use crate::model::{Entry, Events, Letters, Log, LogLine, Plan};
use crate::text::{after, clean_lines, count, cut, duration, time_of_day};

fn level_tone(level: &str) -> Tone {
    match level.to_ascii_lowercase().as_str() {
        "error" => Tone::Bad,
        "warn" => Tone::Warn,
        "debug" | "trace" => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// One line of the list of events.
///
/// `of`: the path that needn't be written, because the whole list is about it.
pub(super) fn event(entry: &Entry, now_ms: u64, of: &str) -> Line {
    let path = if &*entry.path == of { "" } else { &*entry.path };
    let age = format!("{} ago", duration(now_ms.saturating_sub(entry.last_at_ms)));
    let text = format!("{age:>10}  {path}{}", what(entry));
    Line::new(level_tone(&entry.level), text)
}

/// What has happened, after the path: `#3 restarting in 5s (×12 in 4m)`.
fn what(entry: &Entry) -> String {
    let within = duration(entry.last_at_ms.saturating_sub(entry.first_at_ms));
    match (&*entry.event, entry.count) {
        // The lives of many children, which have no incarnation in common.
        ("lives", n) => format!(" ×{n} {} in {within}", entry.text),
        (_, 0 | 1) => format!("#{} {}", entry.incarnation, entry.text),
        (_, n) => format!("#{} {} (×{n} in {within})", entry.incarnation, entry.text),
    }
}

/// Says since when a list is complete.
pub(super) fn dropped(before_ms: u64) -> Line {
    Line::new(Tone::Warn, format!("older than {}: dropped", time_of_day(before_ms)))
}

/// The list of events, and what is missing in it.
pub(crate) fn events(events: &Events, now_ms: u64, order: Order) -> Vec<Line> {
    let missed = (events.missed > 0).then(|| {
        let missed = count(events.missed, "event was", "events were");
        Line::new(Tone::Warn, format!("{missed} missed"))
    });
    let entries = events.entries.iter().map(|entry| event(entry, now_ms, ""));
    // What was dropped is older than the oldest entry.
    let mut lines: Vec<_> =
        events.dropped_before_ms.flatten().map(dropped).into_iter().chain(entries).collect();
    if order == Order::NewestFirst {
        lines.reverse();
    }
    let lines: Vec<_> = missed.into_iter().chain(lines).collect();
    // A server that doesn't report what it has dropped may have dropped everything.
    let none = match events.dropped_before_ms {
        Some(None) => "no events since the program started",
        _ => "no events",
    };
    or_none(lines, none)
}

fn log_line(line: &LogLine) -> Line {
    let LogLine { at_ms, level, message, .. } = line;
    let text = format!("{} {level:<5} {message}{}", time_of_day(*at_ms), line.spaced_fields());
    Line::new(level_tone(level), text)
}

/// A log line in a list of several children's lines.
pub(crate) fn log_line_of(line: &LogLine) -> Line {
    let LogLine { at_ms, level, path, incarnation, message, .. } = line;
    let (at, fields) = (time_of_day(*at_ms), line.spaced_fields());
    let text = format!("{at} {level:<5} {path}#{incarnation} {message}{fields}");
    Line::new(level_tone(level), text)
}

/// Log lines of a child and everything below it, the newest last.
pub(crate) fn log_below(lines: &[LogLine]) -> Vec<Line> {
    or_none(lines.iter().map(log_line_of).collect(), "no log lines")
}

/// The log of a child: the previous incarnation, then the current one, at most `max` lines of each.
pub(crate) fn log_lines(log: &Log, max: usize) -> Vec<Line> {
    let current = match log.incarnation {
        // A supervisor logs before and between its incarnations.
        0 => "Log".to_owned(),
        incarnation => format!("Log of incarnation {incarnation}"),
    };
    let parts =
        [(&log.previous, "Log of the previous incarnation".to_owned()), (&log.current, current)];
    let mut lines = Vec::new();
    for (part, title) in parts.into_iter().filter(|(part, _)| !part.is_empty()) {
        lines.push(Line::new(Tone::Title, title));
        lines.extend(part[part.len().saturating_sub(max)..].iter().map(log_line));
    }
    or_none(lines, "no log lines")
}

/// The dead letters.
pub(crate) fn letters(letters: &Letters, order: Order) -> Vec<Line> {
    let missed = (letters.missed > 0)
        .then(|| Line::new(Tone::Warn, format!("{} older ones are not kept", letters.missed)));
    let lines = letters.letters.iter().map(|letter| {
        let (at, path, reason) = (time_of_day(letter.at_ms), &letter.path, &letter.reason);
        let short = letter.event_type.rsplit("::").next().unwrap_or_default();
        let error = after(": ", letter.error.as_ref());
        let payload = after("  ", letter.payload.as_ref().map(|it| cut(it, 200)));
        Line::new(Tone::Plain, format!("{at} {path} {reason} {short}{error}{payload}"))
    });
    let mut lines: Vec<_> = missed.into_iter().chain(lines).collect();
    if order == Order::NewestFirst {
        lines.reverse();
    }
    or_none(lines, "no dead letters")
}

/// The plan of the configuration file.
pub(crate) fn plan(plan: &Plan) -> Vec<Line> {
    let lines = clean_lines(&plan.text);
    or_none(lines.lines().map(|line| Line::new(Tone::Plain, line)).collect(), "the plan is empty")
}

fn or_none(mut lines: Vec<Line>, none: &str) -> Vec<Line> {
    if lines.is_empty() {
        lines.push(Line::new(Tone::Dim, none));
    }
    lines
}
