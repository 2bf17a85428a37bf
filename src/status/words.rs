//! The facts of a child in a few words, which the text and the pictures of a tree share.
//!
//! # Invariants
//!
//! 1. The same fact has the same words in every view.
//! 2. [`cut`] returns one line without invisible characters, whatever a text contains.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::exit::ExitReason;
use crate::invisible::is_invisible;
use crate::lifecycle::Lifecycle;
use crate::status::{ChildInfo, ChildKind, Node, ScheduleInfo, SupervisorInfo};

/// The length to which one fact is cut in a picture.
pub(super) const FACT: usize = 200;

/// Returns further facts about a child, each at most `room` wide.
///
/// Without its policy, its state, its time, and the limit of a supervisor.
#[inline]
pub(super) fn notes(node: &Node, room: usize) -> Vec<String> {
    let (child, supervisor) = (&node.child, node.supervisor.as_deref());
    let status = child.status.as_deref().filter(|text| !text.trim().is_empty());
    // The state already shows that a child was stopped by its supervisor.
    let last = child.last_exit.as_ref().map(|last| &*last.reason);
    let last = last.filter(|last| !matches!(last, ExitReason::Shutdown));
    let last = last.map(innermost);
    let last_run = child.schedule.as_deref().and_then(|it| it.last.as_ref());
    let failed = last_run.and_then(|it| it.problem.as_ref());
    let notes = [
        supervisor.filter(|it| it.on_child_failure).map(|_| "callback".to_owned()),
        child.version.as_ref().map(|version| cut(format_args!("version={version}"), room)),
        (child.restarts > 0).then(|| format!("restarts={}", child.restarts)),
        child
            .limit
            .filter(|limit| limit.restarts > 0)
            .map(|it| window(it.restarts, it.max_restarts, it.period)),
        child.explanation().map(|why| cut(why, room)),
        (child.held && child.why != Some("held")).then(|| "held".to_owned()),
        (!child.waits_for.is_empty())
            .then(|| cut(format_args!("for {}", child.waits_for.join(", ")), room)),
        child.awaits.as_ref().map(|what| cut(format_args!("waits for {what}"), room)),
        child.policy.as_ref().filter(|it| it.is_own()).map(|_| "own policy".to_owned()),
        places(node).map(|places| cut(format_args!("config: {places}"), room)),
        child.schedule.as_deref().map(|it| cut(runs(child, it), room)),
        failed.map(|problem| cut(format_args!("last run: {problem}"), room)),
        (child.healthy == Some(false)).then(|| match &child.problem {
            Some(problem) => cut(format_args!("UNHEALTHY: {problem}"), room),
            None => "UNHEALTHY".to_owned(),
        }),
        (child.long_polls > 0).then(|| format!("long polls: {}", child.long_polls)),
        child
            .mailbox
            .filter(|it| it.len > 0)
            .map(|it| format!("{}/{} messages", it.len, it.capacity)),
        child.alarming.as_deref().map(|text| cut(format_args!("ALARM: {text}"), room)),
        status.map(|text| format!("\"{}\"", cut(text, room - 2))),
        last.map(|reason| cut(format_args!("last: {reason}"), room)),
    ];
    notes.into_iter().flatten().collect()
}

/// How many children there are, and how many of them aren't active, by state.
#[inline]
pub(super) fn counts(root: &Node) -> String {
    let mut counts = [0_usize; Lifecycle::ALL.len()];
    for visit in root.walk().skip(1) {
        counts[visit.node.child.lifecycle as usize] += 1;
    }
    let mut text = match counts.iter().sum() {
        1 => "1 child".to_owned(),
        total => format!("{total} children"),
    };
    let loud = Lifecycle::ALL.into_iter().filter(|&lifecycle| is_loud(lifecycle));
    let quiet = Lifecycle::ALL.into_iter().filter(|&lifecycle| !is_loud(lifecycle));
    for lifecycle in loud.chain(quiet) {
        let count = counts[lifecycle as usize];
        if count > 0 && lifecycle != Lifecycle::Active {
            text.push_str(&format!(", {count} {lifecycle}"));
        }
    }
    text
}

/// The strategy of a supervisor, or the restart type of a worker.
#[inline]
pub(super) fn policy(node: &Node) -> String {
    match (&node.supervisor, node.child.kind) {
        (Some(supervisor), _) => supervisor.strategy.to_owned(),
        (None, ChildKind::Supervisor) => node.child.strategy.unwrap_or("supervisor").to_owned(),
        (None, ChildKind::Worker) => node.child.restart.to_string(),
    }
}

/// The values that were set by a configuration, with their places: `backoff feed.toml:12`.
#[inline]
pub(super) fn places(node: &Node) -> Option<String> {
    let of_supervisor = node.supervisor.iter().flat_map(|it| &it.configured);
    let all = node.child.configured.iter().chain(of_supervisor);
    let places: Vec<_> = all.map(|(name, place)| format!("{name} {place}")).collect();
    (!places.is_empty()).then(|| places.join(", "))
}

/// The schedule of a periodic child, its next run, and what went wrong.
#[inline]
fn runs(child: &ChildInfo, schedule: &ScheduleInfo) -> String {
    let now = child.since.checked_add(child.age);
    let ahead = schedule.next.zip(now).and_then(|(next, now)| next.duration_since(now).ok());
    let mut text = schedule.plan.to_string();
    match (schedule.running, ahead) {
        (0, Some(ahead)) => text += &format!(", next {}", wait(ahead)),
        (0, None) => {}
        (1, _) => text += ", running",
        (many, _) => text += &format!(", {many} running"),
    }
    for (word, count) in [("failed", schedule.failed), ("skipped", schedule.skipped)] {
        if count > 0 {
            text += &format!(", {word}={count}");
        }
    }
    text
}

/// Whether a state is written in capitals, because it needs attention.
#[inline]
fn is_loud(lifecycle: Lifecycle) -> bool {
    matches!(lifecycle, Lifecycle::Errored | Lifecycle::Restarting)
}

#[inline]
pub(super) fn state(lifecycle: Lifecycle) -> String {
    let word = lifecycle.to_string();
    if is_loud(lifecycle) { word.to_uppercase() } else { word }
}

/// How long a child has been in its state, or how long until it is started again.
#[inline]
pub(super) fn time(child: &ChildInfo) -> String {
    match child.next {
        Some(next) if child.lifecycle == Lifecycle::Restarting => {
            format!("retry {} (attempt {})", wait(next.remaining), next.attempt)
        }
        _ if child.lifecycle == Lifecycle::Active => format!("up {}", age(child.age)),
        _ => format!("for {}", age(child.age)),
    }
}

/// The restarts that count now, the limit, and the period.
#[inline]
pub(super) fn intensity(supervisor: &SupervisorInfo) -> String {
    match supervisor.max_restarts {
        Some(max) => window(supervisor.restarts_in_period, max, supervisor.period),
        None => match supervisor.child_limit {
            Some(limit) => format!("{} for each", limit.in_words()),
            None => "no shared limit".to_owned(),
        },
    }
}

/// The restarts that count now, a limit, and its period.
#[inline]
pub(super) fn window(restarts: usize, max: u32, period: Duration) -> String {
    let loud = if restarts > 0 && restarts >= max as usize { " AT LIMIT" } else { "" };
    match period {
        Duration::MAX => format!("{restarts}/{max} for ever{loud}"),
        _ => format!("{restarts}/{max} in {}{loud}", exactly(period)),
    }
}

/// Returns the innermost escalation, whose path names the supervisors above it.
#[inline]
fn innermost(mut reason: &ExitReason) -> &ExitReason {
    while let ExitReason::Escalated { source, .. } = reason
        && let ExitReason::Escalated { .. } = **source
    {
        reason = source;
    }
    reason
}

/// Formats a duration with its one or two largest units, rounded down.
#[inline]
pub(super) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// Formats a remaining time, rounded up.
#[inline]
fn wait(left: Duration) -> String {
    let tenths = left.as_millis().div_ceil(100);
    let seconds = tenths.div_ceil(10);
    match tenths {
        0 => "now".to_owned(),
        1..600 if tenths.is_multiple_of(10) => format!("in {seconds}s"),
        1..600 => format!("in {}.{}s", tenths / 10, tenths % 10),
        600..36_000 => format!("in {}m{}s", seconds / 60, seconds % 60),
        _ => format!("in {}", age(left)),
    }
}

/// Formats a duration without rounding.
#[inline]
pub(super) fn exactly(period: Duration) -> String {
    let seconds = period.as_secs();
    if period.subsec_nanos() > 0 || seconds == 0 || !seconds.is_multiple_of(60) {
        format!("{period:?}")
    } else if seconds.is_multiple_of(3_600) {
        format!("{}h", seconds / 3_600)
    } else {
        format!("{}m", seconds / 60)
    }
}

#[inline]
pub(super) fn cut_in_the_middle(name: &str, room: usize) -> String {
    let len = name.chars().count();
    if len <= room {
        return name.to_owned();
    }
    let tail = room.saturating_sub(1) / 2;
    let head = room.saturating_sub(1) - tail;
    let (head, tail) = (name.chars().take(head), name.chars().skip(len - tail));
    head.chain(['…']).chain(tail).collect()
}

/// Cuts a text to one line of `room` characters.
#[inline]
pub(super) fn cut(text: impl fmt::Display, room: usize) -> String {
    let mut cut = Cut { text: String::new(), room, space: false };
    // An error means that there is no more room, and ends the formatting of a long text early.
    if write!(cut, "{text}").is_err() {
        cut.text.pop();
        cut.text.truncate(cut.text.trim_end().len());
        cut.text.push('…');
    }
    cut.text
}

/// A writer that collects text in one line until the room is used up.
struct Cut {
    text: String,
    room: usize,
    /// Whether white space or control characters come before the next character.
    space: bool,
}

impl Write for Cut {
    #[inline]
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for c in s.chars() {
            if c.is_whitespace() || is_invisible(c) {
                self.space = !self.text.is_empty();
                continue;
            }
            for c in std::mem::take(&mut self.space).then_some(' ').into_iter().chain([c]) {
                self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
                self.text.push(c);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    #[test]
    fn an_escalation_shows_its_innermost_supervisor() {
        let mqtt = Path::root("app").join("ingest").join("mqtt");
        let mut reason = ExitReason::Failed("refused".into());
        for child in [mqtt.clone(), mqtt.parent().unwrap()] {
            reason = ExitReason::Escalated { child, source: reason.into() };
        }

        assert_eq!(
            innermost(&reason).to_string(),
            "escalated: child app/ingest/mqtt: failed: refused"
        );
    }

    #[test]
    fn a_text_is_cut_at_its_end_and_a_name_in_its_middle() {
        for (room, expected) in
            [(8, "one two"), (7, "one two"), (6, "one t…"), (5, "one…"), (1, "…")]
        {
            assert_eq!(cut(" one\n two ", room), expected);
        }
        for (room, name) in [(6, "conn#1"), (5, "co…#1"), (4, "co…1"), (1, "…")] {
            assert_eq!(cut_in_the_middle("conn#1", room), name);
        }
        assert_eq!(cut_in_the_middle("übergröße", 5), "üb…ße", "characters, not bytes");
    }

    #[test]
    fn times_are_formatted_with_a_fitting_precision() {
        let second = Duration::from_secs(1);
        #[rustfmt::skip]
        let ages = [
            (0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h0m"), (8_100, "2h15m"),
            (86_399, "23h59m"), (86_400, "1d0h"), (100_000, "1d3h"),
        ];
        for (seconds, expected) in ages {
            assert_eq!(age(second * seconds), expected);
            assert_eq!(age(second * (seconds + 1) - Duration::from_nanos(1)), expected);
        }
        #[rustfmt::skip]
        let waits = [
            (0, "now"), (1, "in 0.1s"), (200, "in 0.2s"), (4_199, "in 4.2s"), (5_000, "in 5s"),
            (59_900, "in 59.9s"), (59_901, "in 1m0s"), (90_000, "in 1m30s"), (119_500, "in 2m0s"),
            (3_599_400, "in 60m0s"), (5_400_000, "in 1h30m"),
        ];
        for (millis, expected) in waits {
            assert_eq!(wait(Duration::from_millis(millis)), expected);
        }
        #[rustfmt::skip]
        let periods = [
            (500, "500ms"), (1_500, "1.5s"), (5_000, "5s"), (60_000, "1m"), (90_000, "90s"),
            (3_600_000, "1h"), (5_400_000, "90m"),
        ];
        for (millis, expected) in periods {
            assert_eq!(exactly(Duration::from_millis(millis)), expected);
        }
    }
}
