//! A [`Status`] as text, in 80 columns.
//!
//! Each child has a line: guides and name, policy, the state of its lifecycle, and then facts. Facts
//! that don't fit continue below the line.
//!
//! # Invariants
//!
//! 1. No line is wider than [`WIDTH`].
//! 2. The columns are fixed, so that a diff of two texts shows only what changed.
//! 3. Every function is `#[inline]`, so that only a program that shows the text compiles it.

use std::fmt::{self, Write};
use std::slice;
use std::time::Duration;

use crate::exit::ExitReason;
use crate::invisible::is_invisible;
use crate::lifecycle::Lifecycle;
use crate::status::{ChildInfo, ChildKind, LimitUse, MailboxInfo, Node, Status, SupervisorInfo};

/// The width of a line, in characters.
const WIDTH: usize = 80;
/// The width of the column with guides and name.
const NAME: usize = 22;
/// The width of the columns with a policy or a state: `rest_for_one`, `deactivating`.
const WORD: usize = 12;
/// The width to which the path in the first line is cut.
const PATH: usize = 24;
/// How many levels of guides fit in front of a name.
const LEVELS: usize = 4;

/// For each level above the current node, the siblings that are still to be written.
type OpenLevels<'a> = Vec<slice::Iter<'a, Node>>;

/// The format is described at [`Status`].
impl fmt::Display for Status {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.head().write(f)?;
        // A loop, because recursion would overflow the stack in a tree of a thousand levels.
        let mut open: OpenLevels<'_> = vec![self.root.children.iter()];
        while let Some(children) = open.last_mut() {
            let Some(node) = children.next() else {
                open.pop();
                continue;
            };
            f.write_char('\n')?;
            node.row(&open).write(f)?;
            open.push(node.children.iter());
        }
        Ok(())
    }
}

/// The lines of one child.
struct Entry<'a> {
    /// The beginning of the first line, up to the facts.
    line: String,
    /// The beginning of the lines that continue it.
    below: String,
    /// What separates the first fact from the beginning of the first line.
    gap: &'static str,
    node: &'a Node,
    /// The counts of children, for the root only. They replace the restart intensity, which the
    /// root's first line shows already.
    counts: Option<String>,
}

impl Node {
    /// Returns the lines of the root.
    #[inline]
    fn head(&self) -> Entry<'_> {
        let name = cut_in_the_middle(self.child.path.as_str(), PATH);
        let intensity = self.supervisor.as_ref().map(|it| format!(" {}", intensity(it)));
        let (intensity, state) = (intensity.unwrap_or_default(), state(self.child.lifecycle));
        Entry {
            line: format!("{name}  {}{intensity}  {state}", self.policy()),
            below: self.stem().to_owned(),
            gap: "  ",
            node: self,
            counts: Some(self.counts()),
        }
    }

    /// Returns the lines of a child below the supervisors in `open`.
    #[inline]
    fn row(&self, open: &OpenLevels<'_>) -> Entry<'_> {
        let depth = open.len();
        let (mut line, mut below) = (String::new(), String::new());
        let mut drawn = &open[..];
        if depth > LEVELS {
            let hidden = format!("+{}", depth - 2);
            drawn = &open[depth - 2..];
            // As wide as two levels of guides.
            line = format!("{hidden:<6}");
            below = " ".repeat(line.chars().count());
        }
        for (level, siblings) in drawn.iter().enumerate() {
            let is_last = siblings.as_slice().is_empty();
            let is_own = level + 1 == drawn.len();
            line.push_str(match (is_own, is_last) {
                (true, true) => "└─ ",
                (true, false) => "├─ ",
                (false, true) => "   ",
                (false, false) => "│  ",
            });
            below.push_str(if is_last { "   " } else { "│  " });
        }
        below.push_str(self.stem());
        let room = NAME.saturating_sub(line.chars().count());
        let name = cut_in_the_middle(self.child.path.name(), room);
        let (policy, state) = (self.policy(), state(self.child.lifecycle));
        let line = format!("{line}{name:<room$} {policy:<WORD$} {state:<WORD$}");
        Entry { line, below, gap: " ", node: self, counts: None }
    }

    /// Returns the guide that leads from this node down to its children.
    #[inline]
    fn stem(&self) -> &'static str {
        if self.children.is_empty() { "   " } else { "│  " }
    }

    #[inline]
    fn policy(&self) -> String {
        match (&self.supervisor, self.child.kind) {
            (Some(supervisor), _) => supervisor.strategy.to_owned(),
            (None, ChildKind::Supervisor) => "supervisor".to_owned(),
            (None, ChildKind::Worker) => self.child.restart.to_string(),
        }
    }

    /// Counts all children below this node, and those that aren't active by state.
    #[inline]
    fn counts(&self) -> String {
        let mut counts = [0_usize; Lifecycle::ALL.len()];
        let mut open: OpenLevels<'_> = vec![self.children.iter()];
        while let Some(children) = open.last_mut() {
            let Some(node) = children.next() else {
                open.pop();
                continue;
            };
            counts[node.child.lifecycle as usize] += 1;
            open.push(node.children.iter());
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
}

impl Entry<'_> {
    #[inline]
    fn write(mut self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let room = WIDTH - self.below.chars().count();
        let mut line = std::mem::take(&mut self.line);
        let mut gap = self.gap;
        for fact in self.facts(room) {
            if line.chars().count() + gap.len() + fact.chars().count() > WIDTH {
                f.write_str(line.trim_end())?;
                f.write_char('\n')?;
                line.clone_from(&self.below);
                gap = "";
            }
            line.push_str(gap);
            line.push_str(&fact);
            gap = "  ";
        }
        f.write_str(line.trim_end())
    }

    /// Returns what follows the columns, each fact at most `room` wide.
    #[inline]
    fn facts(&self, room: usize) -> impl Iterator<Item = String> {
        let (child, supervisor) = (&self.node.child, self.node.supervisor.as_deref());
        let status = child.status.as_deref().filter(|text| !text.trim().is_empty());
        // The state already shows that a child was stopped by its supervisor.
        let last = child.last_exit.as_ref().map(|last| &*last.reason);
        let last = last.filter(|last| !matches!(last, ExitReason::Shutdown));
        let last = last.map(innermost);
        let facts = [
            Some(time(child)),
            match &self.counts {
                Some(counts) => Some(cut(counts, room)),
                None => supervisor.map(intensity),
            },
            supervisor.filter(|it| it.on_child_failure).map(|_| "callback".to_owned()),
            child.version.as_ref().map(|version| cut(format_args!("version={version}"), room)),
            (child.restarts > 0).then(|| format!("restarts={}", child.restarts)),
            child.limit.filter(|limit| limit.restarts > 0).map(used),
            child.explanation().map(|why| cut(why, room)),
            (child.held && child.why != Some("held")).then(|| "held".to_owned()),
            (!child.waits_for.is_empty())
                .then(|| cut(format_args!("for {}", child.waits_for.join(", ")), room)),
            child.policy.as_ref().filter(|it| it.is_own()).map(|_| "own policy".to_owned()),
            configured(child, supervisor).map(|text| cut(text, room)),
            (child.healthy == Some(false)).then(|| "UNHEALTHY".to_owned()),
            child.mailbox.filter(|it| it.len > 0).map(queued),
            status.map(|text| format!("\"{}\"", cut(text, room - 2))),
            last.map(|reason| cut(format_args!("last: {reason}"), room)),
        ];
        facts.into_iter().flatten()
    }
}

/// The values that were set by a configuration, with their places: `config: backoff feed.toml:12`.
fn configured(child: &ChildInfo, supervisor: Option<&SupervisorInfo>) -> Option<String> {
    let own = child.configured.iter();
    let all = own.chain(supervisor.iter().flat_map(|it| &it.configured));
    let values: Vec<_> = all.map(|(name, place)| format!("{name} {place}")).collect();
    (!values.is_empty()).then(|| format!("config: {}", values.join(", ")))
}

/// How much of its own limit a child has used.
#[inline]
fn used(limit: LimitUse) -> String {
    window(limit.restarts, limit.max_restarts, limit.period)
}

#[inline]
fn queued(MailboxInfo { len, capacity }: MailboxInfo) -> String {
    format!("{len}/{capacity} messages")
}

/// Whether a state is written in capitals, because it needs attention.
#[inline]
fn is_loud(lifecycle: Lifecycle) -> bool {
    matches!(lifecycle, Lifecycle::Errored | Lifecycle::Restarting)
}

#[inline]
fn state(lifecycle: Lifecycle) -> String {
    let word = lifecycle.to_string();
    if is_loud(lifecycle) { word.to_uppercase() } else { word }
}

/// How long a child has been in its state, or how long until it is started again.
#[inline]
fn time(child: &ChildInfo) -> String {
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
fn intensity(supervisor: &SupervisorInfo) -> String {
    match supervisor.max_restarts {
        Some(max) => window(supervisor.restarts_in_period, max, supervisor.period),
        None => match supervisor.child_limit {
            Some(limit) => format!("{} for each", limit.in_words()),
            None => "unlimited restarts".to_owned(),
        },
    }
}

#[inline]
fn window(restarts: usize, max: u32, period: Duration) -> String {
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
fn age(age: Duration) -> String {
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
fn exactly(period: Duration) -> String {
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
fn cut_in_the_middle(name: &str, room: usize) -> String {
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
fn cut(text: impl fmt::Display, room: usize) -> String {
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
    use crate::status::LastExit;

    fn node(path: Path, children: Vec<Node>) -> Node {
        let kind = if children.is_empty() { ChildKind::Worker } else { ChildKind::Supervisor };
        let child = ChildInfo::sample(path, kind);
        Node { child, supervisor: None, children }
    }

    fn text(root: Node) -> String {
        Status::sample(root).to_string()
    }

    /// A supervisor above a supervisor, and so on, `levels` of them, each with a worker as well.
    fn deep(levels: usize) -> Node {
        let mut paths = vec![Path::root("s0")];
        for level in 1..levels {
            paths.push(paths[level - 1].join(&format!("s{level}")));
        }
        let worker = |path: &Path| node(path.join("w"), Vec::new());
        let lowest = worker(&paths[levels - 1].join("x"));
        paths.into_iter().rev().fold(lowest, |below, path| {
            let worker = worker(&path);
            node(path, vec![below, worker])
        })
    }

    #[test]
    fn below_the_fourth_level_the_levels_that_are_not_drawn_are_counted() {
        assert_eq!(
            text(deep(6)).lines().collect::<Vec<_>>(),
            [
                "s0  supervisor  active  up 0s  12 children",
                "├─ s1                  supervisor   active       up 0s",
                "│  ├─ s2               supervisor   active       up 0s",
                "│  │  ├─ s3            supervisor   active       up 0s",
                "│  │  │  ├─ s4         supervisor   active       up 0s",
                "+3    │  ├─ s5         supervisor   active       up 0s",
                "+4    │  ├─ w          permanent    active       up 0s",
                "+4    │  └─ w          permanent    active       up 0s",
                "+3    │  └─ w          permanent    active       up 0s",
                "│  │  │  └─ w          permanent    active       up 0s",
                "│  │  └─ w             permanent    active       up 0s",
                "│  └─ w                permanent    active       up 0s",
                "└─ w                   permanent    active       up 0s",
            ]
        );
    }

    #[test]
    fn a_thousand_levels_and_a_hundred_thousand_children_are_80_columns_wide() {
        let mut tree = deep(1_000);
        for serial in 0..100_000 {
            let mut child = node(tree.child.path.join(&format!("conn#{serial}")), Vec::new());
            child.child.status = Some("longword".repeat(20));
            tree.children.push(child);
        }
        let text = text(tree);

        assert_eq!(text.lines().map(|line| line.chars().count()).max(), Some(WIDTH));
        assert_eq!(text.lines().count(), 1 + 1_000 + 1_000 + 2 * 100_000);
        let lowest = text.lines().skip(999).take(2).collect::<Vec<_>>();
        assert_eq!(
            lowest,
            [
                "+997  │  ├─ s999       supervisor   active       up 0s",
                "+998  │  ├─ w          permanent    active       up 0s",
            ]
        );
    }

    #[test]
    fn a_status_text_stays_on_its_line_whatever_it_contains() {
        let mut child = node(Path::root("app").join("a"), Vec::new());
        child.child.status = Some("\n one\ttwo\r\nthree\u{1b}[31m ".to_owned());
        child.child.last_exit =
            Some(LastExit::sample(ExitReason::Panicked("line 1\n  line 2".into())));
        child.child.restarts = 4_000_000_000;
        let mut blank = node(Path::root("app").join("b"), Vec::new());
        blank.child.status = Some(" \n".to_owned());

        assert_eq!(
            text(node(Path::root("app"), vec![child, blank])).lines().collect::<Vec<_>>(),
            [
                "app  supervisor  active  up 0s  2 children",
                "├─ a                   permanent    active       up 0s  restarts=4000000000",
                "│     \"one two three [31m\"  last: panicked: line 1 line 2",
                "└─ b                   permanent    active       up 0s",
            ]
        );
    }

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
