//! Events, log lines, dead letters and plans.

use super::{Line, Tone};
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
    let repeats = match entry.count {
        0 | 1 => String::new(),
        n => format!(" (×{n} in {})", duration(entry.last_at_ms.saturating_sub(entry.first_at_ms))),
    };
    let text = format!("{age:>10}  {path}#{} {}{repeats}", entry.incarnation, entry.text);
    Line::new(level_tone(&entry.level), text)
}

/// The list of events, the newest last.
pub(crate) fn events(events: &Events, now_ms: u64) -> Vec<Line> {
    let missed = (events.missed > 0).then(|| {
        let missed = count(events.missed, "event was", "events were");
        Line::new(Tone::Warn, format!("{missed} missed"))
    });
    let lines = events.entries.iter().map(|entry| event(entry, now_ms, ""));
    or_none(missed.into_iter().chain(lines).collect(), "no events")
}

fn log_line(line: &LogLine) -> Line {
    let fields = if line.fields.is_empty() { String::new() } else { format!(" {}", line.fields) };
    let text = format!("{} {:<5} {}{fields}", time_of_day(line.at_ms), line.level, line.message);
    Line::new(level_tone(&line.level), text)
}

/// The log of a child: the previous incarnation, then the current one, at most `max` lines of each.
pub(crate) fn log_lines(log: &Log, max: usize) -> Vec<Line> {
    let current = match log.incarnation {
        // A supervisor logs before and between its incarnations.
        0 => "Log".to_owned(),
        incarnation => format!("Log of incarnation {incarnation}"),
    };
    let parts =
        [(&log.previous, "Log of the incarnation before".to_owned()), (&log.current, current)];
    let mut lines = Vec::new();
    for (part, title) in parts.into_iter().filter(|(part, _)| !part.is_empty()) {
        lines.push(Line::new(Tone::Title, title));
        lines.extend(part[part.len().saturating_sub(max)..].iter().map(log_line));
    }
    or_none(lines, "no log lines")
}

/// The dead letters, the newest last.
pub(crate) fn letters(letters: &Letters) -> Vec<Line> {
    let missed = (letters.missed > 0)
        .then(|| Line::new(Tone::Warn, format!("{} older ones are not kept", letters.missed)));
    let lines = letters.letters.iter().map(|letter| {
        let (at, path, reason) = (time_of_day(letter.at_ms), &letter.path, &letter.reason);
        let short = letter.event_type.rsplit("::").next().unwrap_or_default();
        let error = after(": ", letter.error.as_ref());
        let payload = after("  ", letter.payload.as_ref().map(|it| cut(it, 200)));
        Line::new(Tone::Plain, format!("{at} {path} {reason} {short}{error}{payload}"))
    });
    or_none(missed.into_iter().chain(lines).collect(), "no dead letters")
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
