//! What is wrong now and was lately: for each incident what failed, the whole cause, since when, and what has changed
//! before it.

use super::lists::dropped;
use super::{Line, Tone};
use crate::model::{Entry, Incident, Incidents};
use crate::text::{after, count, duration, time_of_day};

/// What stands before the lines below the first one.
const INDENT: &str = "       ";

/// The lines of the incidents, in the server's order: those that last, and then the latest first.
///
/// `selected`: the incident to mark, if one can be selected. Also returns the position of its first line.
pub(crate) fn incidents(
    known: &Incidents,
    now_ms: u64,
    selected: Option<usize>,
) -> (Vec<Line>, usize) {
    let (mut lines, mut marked) = (Vec::new(), 0);
    for (at, incident) in known.incidents.iter().enumerate() {
        if at > 0 {
            lines.push(Line::default());
        }
        if selected == Some(at) {
            marked = lines.len();
        }
        lines.extend(one(incident, now_ms, selected == Some(at)));
    }
    if lines.is_empty() {
        let text =
            format!("nothing is wrong, and nothing was since {}", time_of_day(known.from_ms));
        lines.push(Line::new(Tone::Good, text));
    }
    // Only what was dropped of the time that the list is about is missing in it.
    lines.extend(known.dropped_before_ms.filter(|&at| at > known.from_ms).map(dropped));
    (lines, marked)
}

fn one(incident: &Incident, now_ms: u64, is_selected: bool) -> Vec<Line> {
    let (word, tone) = if incident.now { ("NOW", Tone::Bad) } else { ("past", Tone::Title) };
    let mark = if is_selected { "▸" } else { " " };
    let others = match incident.children {
        0 | 1 => String::new(),
        children => format!(" and {} like it", children - 1),
    };
    let mut lines = vec![Line::new(tone, format!("{mark}{word:<4}  {}{others}", incident.path))];
    let mut add = |tone, text: String| lines.push(Line { label: INDENT.to_owned(), text, tone });
    let cause = incident.cause.as_deref();
    if let Some(cause) = cause {
        add(Tone::Bad, cause.to_owned());
    }
    // The text of the first problem contains the cause, and what the line below says about attempts.
    let is_new = |text: &str| cause.is_none_or(|cause| !text.contains(cause));
    for problem in incident.problems.iter().filter(|it| is_new(&it.problem)) {
        add(Tone::Warn, problem.problem.to_string());
    }
    add(Tone::Plain, times(incident, now_ms));
    for change in &incident.changes {
        let when = if change.first_at_ms < incident.since_ms { "before" } else { "during" };
        add(Tone::Dim, format!("{when}: {}", changed(change, incident)));
    }
    lines
}

/// Since when or from when to when, how often, and what comes next.
fn times(incident: &Incident, now_ms: u64) -> String {
    let ago = |at: u64| duration(now_ms.saturating_sub(at));
    let (since, last) = (incident.since_ms, incident.last_ms);
    let mut text = match incident.now {
        true => format!("since {} ({} ago)", time_of_day(since), ago(since)),
        false if last <= since => format!("at {} ({} ago)", time_of_day(since), ago(since)),
        false => format!("{} to {} ({} ago)", time_of_day(since), time_of_day(last), ago(last)),
    };
    if incident.failures > 0 {
        text.push_str(&format!(", {}", count(incident.failures, "failure", "failures")));
    }
    if let Some(attempt) = incident.attempt {
        let left = incident.next_ms.map(|at| duration(at.saturating_sub(now_ms)));
        text.push_str(&format!(", attempt {attempt}{}", after(" in ", left)));
    }
    text
}

fn changed(change: &Entry, incident: &Incident) -> String {
    let of = if change.path == incident.path { String::new() } else { format!(" {}", change.path) };
    let repeats = if change.count > 1 { format!(" (×{})", change.count) } else { String::new() };
    format!("{}{of} {}{repeats}", time_of_day(change.last_at_ms), change.text)
}
