//! Answers of the console as lines of text: one child on one screen, events, log, dead letters.
//!
//! Both the commands and the terminal show these lines. Knows nothing of terminals: a [`Tone`] says how important a
//! line is. [`describe`](mod@describe) is about one child, [`incidents`](mod@incidents) about what is wrong,
//! [`tree`](mod@tree) about all children, and [`lists`] are events, log lines, dead letters and plans.

mod describe;
mod incidents;
mod lists;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use self::describe::describe;
pub(crate) use self::incidents::incidents;
pub(crate) use self::lists::{events, letters, log_below, log_line_of, log_lines, plan};
pub(crate) use self::tree::{Extent, tree};
use crate::model::Node;

/// Which entry of a list is at its top.
///
/// What is printed once is read like a log, and `-f` continues it, so the newest is last. On a screen the newest is
/// first, as in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

/// How a line is shown where there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Title,
    Dim,
    Good,
    Warn,
    Bad,
}

/// A line of text. The label is right-aligned in a separate column, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Line {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { label: String::new(), text: text.into(), tone }
    }
}

/// Returns the lines as one text, each with a line break.
pub(crate) fn plain(lines: &[Line]) -> String {
    lines
        .iter()
        .map(|Line { label, text, .. }| format!("{label}{text}").trim_end().to_owned() + "\n")
        .collect()
}

/// How a state is shown.
pub(crate) fn tone(node: &Node) -> Tone {
    match (&*node.lifecycle, node.healthy) {
        ("errored", _) | (_, Some(false)) => Tone::Bad,
        ("restarting", _) => Tone::Warn,
        ("active", _) => Tone::Good,
        ("stopped", _) => Tone::Dim,
        _ => Tone::Plain,
    }
}
