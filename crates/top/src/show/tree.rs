//! The tree as text, in 80 columns.
//!
//! Each child has a line with guides and name, policy, state and facts. What is wrong follows below the line, before
//! the facts that don't fit.
//!
//! # Invariants
//!
//! 1. No line is wider than [`WIDTH`].
//! 2. The columns are fixed, so that a diff of two texts shows only what has changed.
//! 3. A cause is wrapped and not cut, up to [`CAUSE`] lines; `describe` shows all of it.

use crate::fold::{Part, counts, fold, stem};
use crate::model::{Limit, Mailbox, Node, Status, Supervisor};
use crate::text::{after, count, cut, cut_in_the_middle, duration, wrap};

const WIDTH: usize = 80;
/// The width of guides and name.
const NAME: usize = 22;
/// The width of a policy or a state: `rest_for_one`, `deactivating`.
const WORD: usize = 12;
/// How many levels of guides fit in front of a name.
const LEVELS: usize = 4;
/// The most lines of a cause.
const CAUSE: usize = 4;

/// What is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Lists dynamic children one by one.
    pub(crate) all: bool,
    /// How many levels below the root are written.
    pub(crate) depth: Option<usize>,
}

/// A line that is still to be written.
struct Row<'a> {
    what: What<'a>,
    /// For each level above it, whether a sibling follows there; its own level is the last.
    follows: Vec<bool>,
}

enum What<'a> {
    Child(&'a Node),
    Many(Vec<&'a Node>),
}

/// Writes the tree.
pub(crate) fn tree(status: &Status, extent: Extent) -> String {
    let (root, now_ms) = (&status.root, status.captured_at_ms);
    let mut text = head(root, now_ms);
    // A loop, because recursion would overflow the stack in a tree of a thousand levels.
    let mut open = rows(root, &[], extent);
    while let Some(Row { what, follows }) = open.pop() {
        let (guides, below) = guides(&follows);
        match what {
            What::Many(nodes) => many(&mut text, guides, &nodes),
            What::Child(node) => {
                let is_cut = extent.depth == Some(follows.len()) && !node.children.is_empty();
                child(&mut text, (guides, below), node, now_ms, is_cut);
                if !is_cut {
                    open.extend(rows(node, &follows, extent));
                }
            }
        }
    }
    text
}

/// The lines of a supervisor's children, the last one first.
fn rows<'a>(node: &'a Node, above: &[bool], extent: Extent) -> Vec<Row<'a>> {
    if extent.depth == Some(0) {
        return Vec::new();
    }
    let children = &node.children;
    let parts = match extent.all {
        true => (0..children.len()).map(Part::One).collect(),
        false => fold(children.iter().map(|child| (child.name(), child.is_problem()))),
    };
    let last = parts.len().saturating_sub(1);
    let rows = parts.into_iter().enumerate().map(|(at, part)| Row {
        what: match part {
            Part::One(child) => What::Child(&children[child]),
            Part::Many(members) => What::Many(members.iter().map(|&it| &children[it]).collect()),
        },
        follows: [above, &[at < last]].concat(),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.reverse();
    rows
}

/// What stands before a name, and before the lines that continue its line.
fn guides(follows: &[bool]) -> (String, String) {
    let (mut guides, mut below) = (String::new(), String::new());
    let mut drawn = follows;
    if follows.len() > LEVELS {
        drawn = &follows[follows.len() - 2..];
        // As wide as two levels of guides.
        guides = format!("{:<6}", format!("+{}", follows.len() - 2));
        below = " ".repeat(guides.chars().count());
    }
    for (level, &follows) in drawn.iter().enumerate() {
        guides.push_str(match (level + 1 == drawn.len(), follows) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        });
        below.push_str(if follows { "│  " } else { "   " });
    }
    (guides, below)
}

/// The lines of the root.
fn head(root: &Node, now_ms: u64) -> String {
    let name = cut_in_the_middle(&root.path, 24);
    let limit = after(" ", root.supervisor.as_ref().map(limit));
    let mut line = format!("{name}  {}{limit}  {}", root.policy_word(), root.state());
    line.push_str(&format!("  {}  {}", time(root, now_ms), children_below(root)));
    let mut text = String::new();
    write(&mut text, line, stem_of(root), root, notes(root));
    text
}

fn child(text: &mut String, guides: (String, String), node: &Node, now_ms: u64, is_cut: bool) {
    let (guides, below) = guides;
    let room = NAME.saturating_sub(guides.chars().count());
    let name = cut_in_the_middle(node.name(), room);
    let (policy, state) = (node.policy_word(), node.state());
    let line =
        format!("{guides}{name:<room$} {policy:<WORD$} {state:<WORD$} {}", time(node, now_ms));
    let mut facts: Vec<_> = node.supervisor.iter().map(limit).collect();
    facts.extend(is_cut.then(|| children_below(node)));
    facts.extend(notes(node));
    let stem = if is_cut { "   " } else { stem_of(node) };
    write(text, line, &format!("{below}{stem}"), node, facts);
}

/// The guide that leads from a child down to its children.
fn stem_of(node: &Node) -> &'static str {
    if node.children.is_empty() { "   " } else { "│  " }
}

fn many(text: &mut String, guides: String, nodes: &[&Node]) {
    let name = nodes.first().and_then(|node| stem(node.name())).unwrap_or_default();
    let room = WIDTH - guides.chars().count();
    let states = counts(nodes.iter().map(|node| &node.lifecycle));
    text.push_str(&format!(
        "{guides}{}\n",
        cut(&format!("{name}#… ×{}  {states}", nodes.len()), room)
    ));
}

/// Writes the first line of a child, and what is wrong below it. The facts fill the first line, or follow.
fn write(text: &mut String, mut line: String, below: &str, node: &Node, facts: Vec<String>) {
    let room = WIDTH - below.chars().count();
    let mut gap = "  ";
    let causes = node.cause().into_iter();
    let more = node.problems.iter().skip(1).map(|it| &*it.problem);
    for cause in causes.chain(more) {
        text.push_str(line.trim_end());
        text.push('\n');
        let mut pieces = wrap(cause, room);
        if pieces.len() > CAUSE {
            pieces.truncate(CAUSE);
            pieces[CAUSE - 1] = cut(&format!("{} …", pieces[CAUSE - 1]), room);
        }
        let last = pieces.pop().unwrap_or_default();
        text.extend(pieces.into_iter().map(|piece| format!("{below}{piece}\n")));
        line = format!("{below}{last}");
    }
    for fact in facts {
        let fact = cut(&fact, room);
        if line.chars().count() + gap.len() + fact.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = below.to_owned();
            gap = "";
        }
        line.push_str(gap);
        line.push_str(&fact);
        gap = "  ";
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// How many children are below, and how many of them have a problem.
fn children_below(node: &Node) -> String {
    let (mut children, mut problems) = (0, 0);
    let mut open: Vec<_> = node.children.iter().collect();
    while let Some(node) = open.pop() {
        children += 1;
        problems += u64::from(node.is_problem());
        open.extend(&node.children);
    }
    let problems = (problems > 0).then(|| count(problems, "problem", "problems"));
    format!("{}{}", count(children, "child", "children"), after(", ", problems))
}

/// How long a child has been in its state, or how long until it is started again.
fn time(node: &Node, now_ms: u64) -> String {
    let seconds = |ms: u64| match ms {
        0..1_000 => "0s".to_owned(),
        _ => duration(ms / 1_000 * 1_000),
    };
    match (&node.next, &*node.lifecycle) {
        (Some(next), "restarting") => {
            let left = duration(next.at_ms.saturating_sub(now_ms));
            format!("retry in {left} (attempt {})", next.attempt)
        }
        (_, "active") => format!("up {}", seconds(now_ms.saturating_sub(node.since_ms))),
        _ => format!("for {}", seconds(now_ms.saturating_sub(node.since_ms))),
    }
}

/// The limit on the restarts of a supervisor's children.
fn limit(supervisor: &Supervisor) -> String {
    match (supervisor.max_restarts, &supervisor.child_limit) {
        (Some(max), _) => window(supervisor.restarts_in_period, max, supervisor.period_ms),
        (None, Some(limit)) => match (&limit.period, &limit.half_life) {
            (Some(period), _) => format!("{} in {period} for each", limit.max),
            (None, half_life) => {
                format!("score {}, half-life {} for each", limit.max, after("", half_life.as_ref()))
            }
        },
        (None, None) => "no shared limit".to_owned(),
    }
}

/// The restarts that are within a limit, the limit, and its period.
fn window(restarts: u64, max: u64, period_ms: u64) -> String {
    let loud = if restarts > 0 && restarts >= max { " AT LIMIT" } else { "" };
    match period_ms {
        u64::MAX => format!("{restarts}/{max} forever{loud}"),
        period => format!("{restarts}/{max} in {}{loud}", duration(period)),
    }
}

/// What else is known of a child, the most important first.
fn notes(node: &Node) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(node.version.as_ref().map(|version| format!("version={version}")));
    notes.extend((node.restarts > 0).then(|| format!("restarts={}", node.restarts)));
    if let Some(Limit { restarts: restarts @ 1.., max_restarts, period_ms, .. }) = &node.limit {
        notes.push(window(*restarts, *max_restarts, *period_ms));
    }
    notes.extend(node.more_explanation().map(str::to_owned));
    notes.extend((node.held && node.why.as_deref() != Some("held")).then(|| "held".to_owned()));
    if !node.waits_for.is_empty() {
        notes.push(format!("for {}", node.waits_for.join(", ")));
    }
    if let Some(schedule) = &node.schedule {
        notes.push(schedule.plan.to_string() + if schedule.running > 0 { ", running" } else { "" });
    }
    if let Some(Mailbox { len: len @ 1.., capacity, .. }) = &node.mailbox {
        notes.push(format!("{len}/{capacity} messages"));
    }
    notes.extend(node.status.as_ref().map(|status| format!("\"{status}\"")));
    let supervisor = node.supervisor.as_ref();
    notes.extend(supervisor.filter(|it| it.on_child_failure).map(|_| "callback".to_owned()));
    // The cause of a problem is written already, and a stop is in the state.
    let is_new = |message: &str| node.cause().is_none_or(|cause| !message.contains(cause));
    let last = node.last_exit.as_ref().map(|exit| &exit.reason);
    let last = last.filter(|it| &*it.kind != "shutdown" && is_new(&it.message));
    notes.extend(last.map(|reason| format!("last: {}", reason.message)));
    notes
}
